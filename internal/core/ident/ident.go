// Package ident makes typed ids: a prefix that says what the thing is, and 26 characters that sort by the time of making.
package ident

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"
)

// The kinds of things that have ids. The text is the prefix.
const (
	Session      = "ses"
	Kernel       = "krn"
	Execution    = "exe"
	Conversation = "cnv"
	Turn         = "trn"
	Question     = "qst"
	File         = "fil"
	User         = "usr"
	Project      = "prj"
	Key          = "key"
	Browser      = "brw"
	Invitation   = "inv"
	Process      = "prc"
	Share        = "shr"
	Link         = "lnk"
	Upload       = "upl"
	Volume       = "vol"
	Audit        = "aud"
	Request      = "req"
	Owner        = "own"
	Home         = "hom"
)

// bodyLength is the number of characters after the prefix: 48 bits of milliseconds and 80 random bits in Crockford's base 32.
const bodyLength = 26

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

var encoding = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)

// New returns an id such as "ses_06f1k3t3y4m0v8s2k5r7w9x1z4".
func New(kind string) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16)
	_, _ = rand.Read(b[6:])
	return kind + "_" + encoding.EncodeToString(b[:])
}

// Valid says whether id has the form of an id of that kind.
func Valid(kind, id string) bool {
	body, ok := strings.CutPrefix(id, kind+"_")
	// A decoder would pass over line breaks.
	return ok && len(body) == bodyLength && strings.Trim(body, alphabet) == ""
}

// Body returns what follows the prefix: foreign protocols show the same thing under a prefix of their own.
func Body(id string) string {
	_, body, _ := strings.Cut(id, "_")
	return body
}

// As returns the id of kind for a foreign one that was made from it ("cntr_x" becomes "ses_x"), and whether it has the form.
func As(kind, foreign string) (string, bool) {
	id := kind + "_" + Body(foreign)
	return id, Valid(kind, id)
}
