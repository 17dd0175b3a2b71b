package ident

import (
	"encoding/hex"
	"strings"
)

// UUID returns an id as clients write it that know UUIDs alone: the same 128 bits, "0123abcd-0123-4567-89ab-0123456789ab". It is "" for what is no id.
func UUID(id string) string {
	bits, err := encoding.DecodeString(Body(id))
	if err != nil || len(bits) != 16 {
		return ""
	}
	digits := hex.EncodeToString(bits)
	return strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
}

// FromUUID returns the id of kind that UUID wrote so, and whether uuid has that form.
func FromUUID(kind, uuid string) (string, bool) {
	bits, err := hex.DecodeString(strings.ReplaceAll(uuid, "-", ""))
	if err != nil || len(bits) != 16 {
		return "", false
	}
	id := kind + "_" + encoding.EncodeToString(bits)
	return id, UUID(id) == uuid
}
