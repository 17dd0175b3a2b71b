package app

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
)

const secretBytes = 32

// serverSecret reads the server's secret, or makes one. What was sealed with a secret that is lost cannot be opened any more; nothing else takes it.
func serverSecret(path string) ([]byte, error) {
	secret, err := os.ReadFile(path)
	switch {
	case err == nil && len(secret) == secretBytes:
		return secret, nil
	case err == nil:
		return nil, problem.New(problem.SecretDamaged, "the server's secret has the wrong length: "+path).
			WithHint("put it back from a backup, or remove it: clients then cannot use what the server sealed for them")
	case !errors.Is(err, fs.ErrNotExist):
		return nil, unwritableFolder(path, err)
	}
	secret = make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails
	// The folder's lock is held: nobody else makes one.
	if err := durable.Replace(path, 0o600, bytes.NewReader(secret)); err != nil {
		return nil, unwritableFolder(path, err)
	}
	return secret, nil
}
