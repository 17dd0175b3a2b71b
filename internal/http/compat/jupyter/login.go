package jupyter

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
)

// A client brings its key as "Authorization: token KEY", as the query's token, or, where it knows a server's password alone, in a cookie that it got
// for the password. The password is a key, since Jupyter's form has no name of a user. What the cookie has of it is sealed: a program that reads the cookie can use
// the server as long as the cookie holds, and does not learn the key.

const (
	keyCookie  = "cove_jupyter" // as all of the server's own begin, which no program in a session is sent
	xsrfCookie = "_xsrf"
	xsrfHeader = "X-XSRFToken"
	cookieLife = 12 * time.Hour
)

// keys are those that a request brings in Jupyter's ways.
func (s *server) keys(r *http.Request) []string {
	var texts []string
	for _, v := range r.Header.Values("Authorization") {
		if scheme, text, _ := strings.Cut(v, " "); strings.EqualFold(scheme, "token") {
			texts = append(texts, strings.TrimSpace(text))
		}
	}
	texts = append(texts, r.URL.Query()["token"]...)
	if len(texts) > 0 || r.Header.Get("Authorization") != "" || r.Header.Get("X-Api-Key") != "" {
		return texts
	}
	if text := s.keyOfCookie(r); text != "" {
		texts = append(texts, text)
	}
	return texts
}

// keyOfCookie is the key of a client that has given the password. A request that changes something also repeats the value of another cookie in a
// header, which a page of somebody else's cannot have a browser do; the front door has looked at the origin of those that upgrade.
func (s *server) keyOfCookie(r *http.Request) string {
	c, err := r.Cookie(keyCookie)
	if err != nil {
		return ""
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if x, err := r.Cookie(xsrfCookie); err != nil || x.Value == "" || x.Value != r.Header.Get(xsrfHeader) {
			return ""
		}
	}
	return s.seal.open(c.Value, s.Now())
}

// loginPage gives a client the value that it repeats when it sends the password. There is no page for people.
func (s *server) loginPage(c *call) error {
	s.setCookie(c, xsrfCookie, rand.Text(), 0)
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = c.w.Write([]byte("cove\n\nPOST a key here as the field password, with the cookie _xsrf as the field _xsrf; or send it as ?token= or as Authorization: token.\n"))
	return nil
}

func (s *server) login(c *call) error {
	c.Body = bodybudget.Bounded(c.w, c.Body, longestBody)
	if err := c.ParseForm(); err != nil {
		return problem.New(problem.InvalidRequest, "the body is not a form")
	}
	x, err := c.Cookie(xsrfCookie)
	given := c.PostForm.Get("_xsrf")
	if given == "" {
		given = c.Header.Get(xsrfHeader)
	}
	if err != nil || x.Value == "" || given != x.Value {
		return problem.New(problem.Forbidden, "the field _xsrf is not what the cookie _xsrf is").WithHint("get /login first")
	}
	key := c.PostForm.Get("password")
	if key == "" {
		return problem.New(problem.Unauthenticated, "the password is missing").WithHint("the password is a key; cove key create makes one")
	}
	_, err = auth.VisitOf(c.Context()).Login(c.Context(), "", func(ctx context.Context) (auth.Principal, error) { return s.Accounts.Authenticate(ctx, key) })
	if err != nil {
		return err
	}
	sealed, err := s.seal.close(key, s.Now().Add(cookieLife))
	if err != nil {
		return err
	}
	s.setCookie(c, keyCookie, sealed, int(cookieLife.Seconds()))
	c.w.Header().Set("Location", Prefix+"/api")
	c.w.WriteHeader(http.StatusFound)
	return nil
}

func (s *server) logout(c *call) error {
	s.setCookie(c, keyCookie, "", -1)
	return c.reply(http.StatusOK, map[string]string{"message": "the cookie is withdrawn", "reason": ""})
}

// setCookie sets a cookie for all of the server: some libraries send no other to a host without a name.
func (s *server) setCookie(c *call, name, value string, seconds int) {
	secure := c.TLS != nil || strings.EqualFold(c.Header.Get("X-Forwarded-Proto"), "https")
	http.SetCookie(c.w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: seconds, HttpOnly: name == keyCookie, Secure: secure, SameSite: http.SameSiteStrictMode})
}

// seal hides keys in what clients keep.
type seal struct{ aead cipher.AEAD }

type sealed struct {
	Key   string `json:"k"`
	Until int64  `json:"u"` // seconds
}

func newSeal(secret []byte) seal {
	aead, err := protocol.Cipher(protocol.Secret(secret), "keys of clients of Jupyter")
	if err != nil {
		return seal{}
	}
	return seal{aead}
}

func (s seal) close(key string, until time.Time) (string, error) {
	if s.aead == nil {
		return "", fmt.Errorf("there is no cipher to seal a cookie with")
	}
	text, err := json.Marshal(sealed{key, until.Unix()})
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, nil)), nil
}

// open returns the key, or "" for what this server did not seal or what is too old.
func (s seal) open(text string, now time.Time) string {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || s.aead == nil {
		return ""
	}
	plain, err := s.aead.Open(nil, nil, data, nil)
	var v sealed
	if err != nil || json.Unmarshal(plain, &v) != nil || now.Unix() >= v.Until {
		return ""
	}
	return v.Key
}
