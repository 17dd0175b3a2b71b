package openai

import (
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"cove/internal/http/protocol"
)

// seal makes what clients keep for this server and bring back: text that they can neither read nor change, nor another project use. Every project
// has a key of its own, made of the server's secret.
type seal struct{ secret []byte }

// sealVersion is the beginning of every sealed text.
const sealVersion = "cove1."

func newSeal(secret []byte) seal { return seal{protocol.Secret(secret)} }

func (s seal) of(project string) (cipher.AEAD, error) {
	return protocol.Cipher(s.secret, "compacted conversations of "+project)
}

func (s seal) close(project string, v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	aead, err := s.of(project)
	if err != nil {
		return "", err
	}
	return sealVersion + base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, text, []byte(sealVersion))), nil
}

// open says of everything that this server did not seal for the project the same.
func (s seal) open(project, sealed string, v any) error {
	aead, err := s.of(project)
	if err != nil {
		return err
	}
	encoded, found := strings.CutPrefix(sealed, sealVersion)
	data, err := base64.RawURLEncoding.DecodeString(encoded)
	if !found || err != nil {
		return errSeal
	}
	text, err := aead.Open(nil, nil, data, []byte(sealVersion))
	if err != nil || json.Unmarshal(text, v) != nil {
		return errSeal
	}
	return nil
}

var errSeal = errors.New("not sealed by this server for this project")
