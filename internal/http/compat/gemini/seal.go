package gemini

import (
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"

	"cove/internal/http/protocol"
)

// sealed makes what a client brings back of the server's: it can neither read nor change it.
type sealed struct{ aead cipher.AEAD }

var errSeal = errors.New("not sealed by this server")

// newSealed makes a key of the server's secret. Without one, what is sealed holds until the process ends.
func newSealed(secret []byte) sealed {
	aead, err := protocol.Cipher(protocol.Secret(secret), "uploads of Gemini's clients")
	if err != nil {
		return sealed{}
	}
	return sealed{aead}
}

func (s sealed) close(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil || s.aead == nil {
		return "", errors.Join(err, errSeal)
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, nil)), nil
}

func (s sealed) open(text string, v any) error {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || s.aead == nil {
		return errSeal
	}
	plain, err := s.aead.Open(nil, nil, data, nil)
	if err != nil || json.Unmarshal(plain, v) != nil {
		return errSeal
	}
	return nil
}
