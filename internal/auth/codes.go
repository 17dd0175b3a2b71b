package auth

import "crypto/rand"

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
