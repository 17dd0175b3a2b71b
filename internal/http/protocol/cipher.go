package protocol

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
)

// Secret returns the server's secret, or, where it has none, one that lasts as long as the process.
func Secret(secret []byte) []byte {
	if len(secret) > 0 {
		return secret
	}
	secret = make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// Cipher seals what clients keep for this server and bring back. Its key is made of the server's secret for one purpose: what is sealed for another purpose does not open. The nonce is part of what it seals.
func Cipher(secret []byte, purpose string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "cove: "+purpose, 32)
	if err != nil {
		return nil, fmt.Errorf("make a key for %s: %w", purpose, err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make a key for %s: %w", purpose, err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}
