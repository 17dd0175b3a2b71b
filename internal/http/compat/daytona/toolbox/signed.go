package toolbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"time"

	"cove/internal/core/problem"
)

// Signature is that of an address of a file, as Daytona's clients make it with the signing key of a sandbox. path is as the address has it, and expires its seconds since 1970, or
// "0" for one that does not expire.
func Signature(key, method, path, expires string) string {
	sum := hmac.New(sha256.New, []byte(key))
	_, _ = sum.Write([]byte("v1:files:" + method + ":" + path + ":" + expires)) // never fails
	return "v1_" + base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// IsSigned says whether a request brings a signature in the place of a key; path is what follows the sandbox's id.
func IsSigned(r *http.Request, path string) bool {
	switch r.Method + " " + path {
	case "GET /files/download", "HEAD /files/download", "POST /files/upload-v2":
		return r.URL.Query().Get("signature") != ""
	}
	return false
}

// Signed returns why a request that brings a signature may not be answered; nil: it may, as one of who has the sandbox's signing key. Problems: link_not_found.
func Signed(r *http.Request, key string, now time.Time) error {
	q := r.URL.Query()
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	expires := q.Get("expires")
	if key == "" || !hmac.Equal([]byte(q.Get("signature")), []byte(Signature(key, method, q.Get("path"), expires))) {
		return problem.New(problem.LinkNotFound, "the signature of the address is wrong")
	}
	at, err := strconv.ParseInt(expires, 10, 64)
	if err != nil || at != 0 && now.Unix() > at {
		return problem.New(problem.LinkNotFound, "the address has expired")
	}
	return nil
}
