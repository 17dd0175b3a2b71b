package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strings"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
)

// Pattern matches the text of a key, which is cove_ID_SECRET_CHECK, such as
//
//	cove_06f1k3t3y4m0v8s2k5r7w9x1z4_0v8s2k5r7w9x1z406f1k3t3y4m0v8s2k_3t3y4m0
//
// in Crockford's base 32. ID is the body of the key's id, by which its record is found; SECRET is 160 random bits, of which only the SHA-256
// is kept: so many bits need no slow hash. CHECK is the CRC-32 of all before it: a scanner of repositories can tell keys from what only
// looks like them, and a mistyped key is refused without a look into the database. Pattern is for such scanners.
const Pattern = `\bcove_[0-9a-hjkmnp-tv-z]{26}_[0-9a-hjkmnp-tv-z]{32}_[0-9a-hjkmnp-tv-z]{7}\b`

const (
	secretBytes  = 20
	secretLength = 32
	checkLength  = 7
	textLength   = len("cove_") + 26 + 1 + secretLength + 1 + checkLength
)

func base32Text(b []byte) string {
	return base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding).EncodeToString(b)
}

// NewText returns the text of a key that nobody has yet, as an operator sets one before the server's first start.
func NewText() string {
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:]) // never fails
	return textOf(ident.New(ident.Key), base32Text(secret[:]))
}

func textOf(id, secret string) string {
	text := "cove_" + ident.Body(id) + "_" + secret
	return text + "_" + check(text)
}

func check(text string) string {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(text)))
	return base32Text(sum[:])
}

// hexPrefix begins a key in the form that E2B's clients of 2026 demand: all its bytes in hexadecimal digits.
const hexPrefix = "e2b_"

// HexText returns the text of a key in that form, which is the same key. Problems: key_malformed.
func HexText(text string) (string, error) {
	if _, _, err := ParseText(text); err != nil {
		return "", err
	}
	return hexPrefix + hex.EncodeToString([]byte(strings.TrimPrefix(text, "cove_"))), nil
}

// IsKey says whether a text is meant to be a key, right or wrong, and no access token of another server.
func IsKey(text string) bool {
	return strings.HasPrefix(text, "cove_") || strings.HasPrefix(text, hexPrefix)
}

// ParseText returns the id of the key and the hash of its secret. It knows the form alone: whether there is such a key is not its matter.
func ParseText(text string) (id string, hash [sha256.Size]byte, err error) {
	refused := problem.New(problem.KeyMalformed, "this is not the text of a key, or a part of it is missing").
		WithHint("copy the whole key: cove_, three parts and underscores between them")
	if digits, ok := strings.CutPrefix(text, hexPrefix); ok && len(digits) == 2*(textLength-len("cove_")) {
		plain, err := hex.DecodeString(digits)
		if err != nil {
			return "", hash, refused
		}
		text = "cove_" + string(plain)
	}
	if len(text) != textLength {
		return "", hash, refused
	}
	body, ok := strings.CutPrefix(text[:textLength-checkLength-1], "cove_")
	if !ok || text[textLength-checkLength-1] != '_' || check("cove_"+body) != text[textLength-checkLength:] {
		return "", hash, refused
	}
	name, secret, ok := strings.Cut(body, "_")
	id = ident.Key + "_" + name
	if !ok || !ident.Valid(ident.Key, id) || len(secret) != secretLength || strings.Trim(secret, "0123456789abcdefghjkmnpqrstvwxyz") != "" {
		return "", hash, refused
	}
	return id, sha256.Sum256([]byte(secret)), nil
}
