package seal

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"cove/internal/core/problem"
)

const keyPrefix = "cove-encryption-key-"

// Key is an operator's key. It encrypts data keys, and nothing else.
type Key struct {
	ID     string // what may be said of it: the beginning of a hash
	secret []byte
}

// Keys are the keys that an operator gives. The first one wraps; the others are there to read what they have wrapped.
type Keys []Key

// NewKey returns a new key as a text.
func NewKey() string {
	secret := make([]byte, keyBytes)
	_, _ = rand.Read(secret) // never fails
	return keyPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret))
}

// ParseKeys reads keys, a line each. Empty lines do not count, nor lines that begin with #. Problems: encryption_key_invalid.
func ParseKeys(text string) (Keys, error) {
	var keys Keys
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		written, ok := strings.CutPrefix(line, keyPrefix)
		secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(written))
		if !ok || err != nil || len(secret) != keyBytes {
			return nil, problem.New(problem.EncryptionKeyInvalid, "the encryption key is not one of cove's").
				WithHint("`cove encryption key new FILE` makes one; a file may have several, a line each, of which the first one writes")
		}
		sum := sha256.Sum256(append([]byte("cove encryption key id "), secret...))
		keys = append(keys, Key{ID: "ek_" + hex.EncodeToString(sum[:5]), secret: secret})
	}
	return keys, nil
}

// IDs are the names of the keys, for people.
func (k Keys) IDs() string {
	names := make([]string, len(k))
	for i, key := range k {
		names[i] = key.ID
	}
	return strings.Join(names, ", ")
}

func (k Keys) find(id string) (Key, bool) {
	i := slices.IndexFunc(k, func(key Key) bool { return key.ID == id })
	if i < 0 {
		return Key{}, false
	}
	return k[i], true
}

// Ring is the data keys of one place, wrapped. It is kept there, and is no secret.
type Ring struct {
	Version int       `json:"version"`
	Keys    []Wrapped `json:"keys"` // the last one seals
	// Unfinished says that what was there before the ring is still being encrypted.
	Unfinished bool `json:"unfinished,omitempty"`
}

// Wrapped is a data key.
type Wrapped struct {
	Number uint32    `json:"number"`
	Made   time.Time `json:"made"`
	Under  string    `json:"under"`   // the ID of the operator's key
	Sealed []byte    `json:"wrapped"` // the data key, sealed with that
}

const ringVersion = 1

// NewRing makes a ring with one data key.
func NewRing(k Keys) Ring {
	r := Ring{Version: ringVersion}
	r.Add(k)
	return r
}

// Add adds a data key, which seals from now on. What the others have sealed stays readable.
func (r *Ring) Add(k Keys) {
	data, number := make([]byte, keyBytes), make([]byte, 4)
	_, _ = rand.Read(data) // never fails
	_, _ = rand.Read(number)
	w := Wrapped{Number: binary.BigEndian.Uint32(number), Made: time.Now().UTC().Truncate(time.Second)}
	w.wrap(k[0], data)
	r.Keys = append(r.Keys, w)
}

// sealer is what an operator's key wraps with.
func (k Key) sealer() *Sealer { return &Sealer{keys: map[uint32][]byte{0: k.secret}} }

func (w *Wrapped) purpose() string { return fmt.Sprintf("data key %d", w.Number) }

func (w *Wrapped) wrap(k Key, data []byte) {
	w.Under, w.Sealed = k.ID, k.sealer().Seal(w.purpose(), data)
}

// ParseRing reads a ring that Text has written. Problems: encryption_ring_damaged.
func ParseRing(text []byte, place string) (Ring, error) {
	var r Ring
	if err := json.Unmarshal(text, &r); err != nil || len(r.Keys) == 0 {
		return r, ringDamaged(place)
	}
	if r.Version != ringVersion {
		return r, problem.New(problem.EncryptionRingDamaged, fmt.Sprintf("the data keys of %s have form %d, and this cove knows %d", place, r.Version, ringVersion)).
			WithHint("use the cove that wrote them, or a newer one")
	}
	return r, nil
}

func ringDamaged(place string) error {
	return problem.New(problem.EncryptionRingDamaged, "the data keys of "+place+" are damaged, without which what is encrypted there cannot be read").
		WithHint("put them back from a backup; nothing was changed")
}

// Text is the ring as it is kept.
func (r Ring) Text() []byte {
	text, _ := json.MarshalIndent(r, "", "  ") // strings, numbers and times
	return append(text, '\n')
}

// Open unwraps the data keys of a place, which errors name. Problems: encryption_key_missing, which names the key that is needed, encryption_ring_damaged.
func (r Ring) Open(k Keys, place string) (*Sealer, error) {
	b := &Sealer{keys: map[uint32][]byte{}, first: r.Keys[0].Number, writes: r.Keys[len(r.Keys)-1].Number}
	for _, w := range r.Keys {
		key, ok := k.find(w.Under)
		if !ok {
			return nil, missingKey(k, w.Under, place)
		}
		data, err := key.sealer().Open(w.purpose(), w.Sealed)
		if err != nil || len(data) != keyBytes {
			return nil, ringDamaged(place)
		}
		b.keys[w.Number] = data
	}
	return b, nil
}

func missingKey(k Keys, id, place string) error {
	have := "no encryption key is set"
	if len(k) > 0 {
		have = "the keys that are set are " + k.IDs()
	}
	return problem.New(problem.EncryptionKeyMissing, fmt.Sprintf("what %s has is encrypted with the key %s; %s", place, id, have)).
		WithHint("set COVE_ENCRYPTION_KEY_FILE (encryption.key_file) to the file with that key; without it the data cannot be read by anybody. Nothing was changed")
}

// Rewrap wraps the data keys with the first of the operator's keys, and says whether that changed any.
func (r Ring) Rewrap(k Keys, place string) (next Ring, changed bool, err error) {
	b, err := r.Open(k, place)
	if err != nil {
		return r, false, err
	}
	next = r
	next.Keys = slices.Clone(r.Keys)
	for i := range next.Keys {
		w := &next.Keys[i]
		if w.Under != k[0].ID {
			w.wrap(k[0], b.keys[w.Number])
			changed = true
		}
	}
	return next, changed, nil
}
