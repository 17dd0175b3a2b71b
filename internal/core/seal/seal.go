// Package seal encrypts what cove keeps on a disk. An operator's key (see Keys) wraps data keys, which are kept beside the data in a Ring; a Sealer has the data keys and
// seals with them. So another operator's key costs writing a few lines anew, whatever there is of data.
//
// Everything that is sealed has a key of its own, which HKDF-SHA256 makes of the data key and 32 random bytes, so that no nonce is ever used twice, however much is sealed.
// With it AES-256-GCM encrypts chunks of 64 KiB, whose nonces count them and mark the last one (STREAM): chunks can be read by themselves, and none can be left out, added, moved or cut off.
//
//	"cove-sealed1" | number of the data key, 4 bytes | salt, 32 bytes | chunk and its tag of 16 bytes | ...
//
// Lengths can be seen, and that something is sealed. Names, times and numbers of what is sealed are up to those who keep it.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"

	"cove/internal/core/problem"
)

const (
	magic     = "cove-sealed1"
	saltBytes = 32
	headBytes = len(magic) + 4 + saltBytes
	tagBytes  = 16
	keyBytes  = 32
	// chunkBytes is how much of a stream is encrypted at once, and read at the least.
	chunkBytes = 64 << 10
)

// Sealer seals and opens. A nil Sealer is that nothing is encrypted: it passes everything on as it is. It is safe for concurrent use.
type Sealer struct {
	first  uint32 // the oldest data key, which what has to stay the same is derived from
	writes uint32 // the one that seals
	keys   map[uint32][]byte
}

// damaged returns the problem of sealed data that is not what was sealed, or not by a data key of the sealer: code "sealed_damaged".
func damaged(what string) error {
	return problem.New(problem.SealedDamaged, "encrypted data cannot be read: "+what).
		WithHint("it was changed on the disk, or belongs to another installation; put it back from a backup")
}

// cipherFor returns the cipher of one sealed thing.
func (b *Sealer) cipherFor(key uint32, salt []byte, purpose string) (cipher.AEAD, error) {
	data, ok := b.keys[key]
	if !ok {
		return nil, damaged("it needs a data key that is not here")
	}
	own, err := hkdf.Key(sha256.New, data, salt, "cove "+purpose, keyBytes)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(own)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// newHead begins a sealed thing.
func (b *Sealer) newHead() []byte {
	head := make([]byte, headBytes)
	copy(head, magic)
	binary.BigEndian.PutUint32(head[len(magic):], b.writes)
	_, _ = rand.Read(head[headBytes-saltBytes:]) // never fails
	return head
}

// readHead returns the cipher of what begins with head.
func (b *Sealer) readHead(head []byte, purpose string) (cipher.AEAD, error) {
	if !isHead(head) {
		return nil, damaged("it is not sealed")
	}
	return b.cipherFor(binary.BigEndian.Uint32(head[len(magic):]), head[headBytes-saltBytes:headBytes], purpose)
}

func isHead(head []byte) bool { return len(head) >= headBytes && string(head[:len(magic)]) == magic }

// nonce is that of a chunk of a stream.
func nonce(chunk int64, last bool) []byte {
	n := make([]byte, 12)
	binary.BigEndian.PutUint64(n[3:], uint64(chunk)) //nolint:gosec // it counts from 0
	if last {
		n[11] = 1
	}
	return n
}

// Seal encrypts a value for a purpose, which Open has to be told again. It makes 64 bytes more of it.
func (b *Sealer) Seal(purpose string, plain []byte) []byte {
	if b == nil {
		return plain
	}
	out := b.newHead()
	c, err := b.readHead(out, "value "+purpose)
	if err != nil {
		panic(err) // the sealer has the key that it writes with, and AES takes 32 bytes
	}
	return c.Seal(out, nonce(0, true), plain, nil)
}

// Open decrypts what Seal made. Problems: sealed_damaged.
func (b *Sealer) Open(purpose string, sealed []byte) ([]byte, error) {
	if b == nil {
		return sealed, nil
	}
	c, err := b.readHead(sealed, "value "+purpose)
	if err != nil {
		return nil, err
	}
	plain, err := c.Open(nil, nonce(0, true), sealed[headBytes:], nil)
	if err != nil {
		return nil, damaged("it is not what was sealed")
	}
	return plain, nil
}

// textMark begins a text that is sealed: the magic as base64, whose length needs no filling up.
var textMark = base64.RawStdEncoding.EncodeToString([]byte(magic))

// SealText is Seal for a text, and makes one of it. The empty text stays empty.
func (b *Sealer) SealText(purpose, plain string) string {
	if b == nil || plain == "" {
		return plain
	}
	return base64.RawStdEncoding.EncodeToString(b.Seal(purpose, []byte(plain)))
}

// OpenText decrypts what SealText made.
func (b *Sealer) OpenText(purpose, sealed string) (string, error) {
	if b == nil || sealed == "" {
		return sealed, nil
	}
	if !strings.HasPrefix(sealed, textMark) {
		return "", damaged("it is not sealed")
	}
	raw, err := base64.RawStdEncoding.DecodeString(sealed)
	if err != nil {
		return "", damaged("it is not what was sealed")
	}
	plain, err := b.Open(purpose, raw)
	return string(plain), err
}

// Sum is a keyed hash of 32 bytes, which is the same for the same text for as long as there is the sealer's ring, and says nothing of the text to who has not its key.
func (b *Sealer) Sum(purpose, text string) []byte {
	return NewSummer(b, purpose)([]byte(text))
}

// NewSummer returns a function that returns keyed hashes, as Sum. The function is for one goroutine. Of a nil sealer it is SHA-256.
func NewSummer(b *Sealer, purpose string) func([]byte) []byte {
	if b == nil {
		return func(text []byte) []byte { s := sha256.Sum256(text); return s[:] }
	}
	h := hmac.New(sha256.New, b.Derive("sum "+purpose))
	return func(text []byte) []byte {
		h.Reset()
		_, _ = h.Write(text)
		return h.Sum(nil)
	}
}

// Derive returns a key of 32 bytes for a purpose, always the same.
func (b *Sealer) Derive(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, b.keys[b.first], nil, "cove fixed "+purpose, keyBytes)
	if err != nil {
		panic(err) // the length is one that HKDF can make
	}
	return key
}

// SealFixed is SealText whose result is the same for the same text, so that it can be looked up: it tells who reads it which texts are the same, and nothing else of short ones
// either. (The salt is a keyed hash of the text, as in SIV.)
func (b *Sealer) SealFixed(purpose, plain string) string {
	if b == nil || plain == "" {
		return plain
	}
	out := make([]byte, headBytes)
	copy(out, magic)
	binary.BigEndian.PutUint32(out[len(magic):], b.first)
	copy(out[headBytes-saltBytes:], b.Sum("fixed "+purpose, plain))
	c, err := b.readHead(out, "value "+purpose)
	if err != nil {
		panic(err) // as in Seal
	}
	return base64.RawStdEncoding.EncodeToString(c.Seal(out, nonce(0, true), []byte(plain), nil))
}

// errClosed is what a writer says after Close.
var errClosed = errors.New("write to what is sealed already")
