package librechat

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"strings"

	"cove/internal/core/ident"
)

// LibreChat's page downloads what has an id of exactly 21 letters, digits, - and _: 126 bits. An id of ours has 128, of which the first two are 0 until the year 4199: they are
// those of the milliseconds of its making. So each has one such id and can be had back from it.

const idLength = 21

// letters are those of ids of ours, in the order of their values.
const letters = "0123456789abcdefghjkmnpqrstvwxyz"

func idEncoding() *base32.Encoding { return base32.NewEncoding(letters).WithPadding(base32.NoPadding) }

// foreign returns LibreChat's id for one of ours.
func foreign(id string) string {
	raw, err := idEncoding().DecodeString(ident.Body(id))
	if err != nil || len(raw) != 16 || raw[0]>>6 != 0 {
		return ""
	}
	return packed(raw)
}

// packed writes the last 126 of 128 bits as 21 characters.
func packed(raw []byte) string {
	shifted := make([]byte, len(raw)+1) // 126 bits from the first on
	for i, b := range raw {
		shifted[i] |= b << 2
		if i > 0 {
			shifted[i-1] |= b >> 6
		}
	}
	return base64.RawURLEncoding.EncodeToString(shifted[:16])[:idLength]
}

// own returns the id of ours that LibreChat's stands for, and whether it has the form of one.
func own(kind, id string) (string, bool) {
	if len(id) != idLength {
		return "", false
	}
	shifted, err := base64.RawURLEncoding.DecodeString(id + "A")
	if err != nil || len(shifted) != 16 || strings.ContainsAny(id, "\r\n") {
		return "", false
	}
	raw := make([]byte, 16)
	for i, b := range shifted {
		raw[i] |= b >> 2
		if i+1 < len(raw) {
			raw[i+1] |= b << 6
		}
	}
	out := kind + "_" + idEncoding().EncodeToString(raw)
	return out, ident.Valid(kind, out)
}

// objectID is the id of a file of a session: that of its path.
func objectID(storage, path string) string {
	sum := sha256.Sum256([]byte(storage + "\x00" + path))
	return packed(sum[:16])
}

// newID is the id of files that are uploaded together.
func newID() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:])
	return packed(raw[:])
}
