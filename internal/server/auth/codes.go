package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
)

// RandomCode returns a code that nobody guesses, and its hash, which alone is to be kept.
func RandomCode() (code, hash string) {
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:]) // never fails
	code = base32Text(secret[:])
	return code, codeID(code)
}

// CodeHash returns the hash of what RandomCode returned; ok is false for what cannot be a code.
func CodeHash(code string) (hash string, ok bool) {
	return codeID(code), secretText(code)
}

// DerivedCode returns a code in the form of RandomCode's that only who has the secret can find, for a name. It need not be kept.
func DerivedCode(secret []byte, name string) string {
	sum := hmac.New(sha256.New, secret)
	_, _ = sum.Write([]byte("code\x00" + name)) // never fails
	return base32Text(sum.Sum(nil)[:secretBytes])
}
