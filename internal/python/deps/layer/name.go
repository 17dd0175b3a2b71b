package layer

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	pep440 "github.com/aquasecurity/go-pep440-version"

	"cove/internal/core/problem"
	"cove/internal/python/deps/require"
)

const (
	secretSize = 32
	nameLength = 40 // hex digits
	// format is part of every name; it changes when what is made of the same wheels changes.
	format = "cove layer 1"
	// formatInstead is that of a closure whose layer is there under its first name without the programs of its wheels: sessions may have that one in use.
	formatInstead = "cove layer 2"
)

// openSecret returns the store's secret. Of processes that make one at the same time, one wins.
func openSecret(dir string) ([]byte, error) {
	path := filepath.Join(dir, "secret")
	for {
		secret, err := os.ReadFile(path)
		if err == nil && len(secret) != secretSize {
			return nil, fmt.Errorf("%s is damaged: remove it, and every installed package is made again", path)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return secret, err
		}
		if err := makeSecret(path); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
}

func makeSecret(path string) error {
	f, err := os.CreateTemp(filepath.Join(filepath.Dir(path), "work"), "secret-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	secret := make([]byte, secretSize)
	if _, err := rand.Read(secret); err != nil {
		return errors.Join(err, f.Close())
	}
	if _, err := f.Write(secret); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}

// nameOf returns the name of a closure's layer.
func (s *Store) nameOf(tag string, wheels []Wheel) string {
	name := s.nameIn(format, tag, wheels)
	if m, _, err := s.read(name); err == nil && outdated(m.Format, m.Stripped) {
		return s.nameIn(formatInstead, tag, wheels)
	}
	return name
}

func (s *Store) nameIn(format, tag string, wheels []Wheel) string {
	hashes := make([]string, len(wheels))
	for i, w := range wheels {
		hashes[i] = w.SHA256
	}
	slices.Sort(hashes)
	h := hmac.New(sha256.New, s.secret)
	fmt.Fprintf(h, "%s\n%s\n%s\n", format, tag, strings.Join(hashes, "\n"))
	return hex.EncodeToString(h.Sum(nil))[:nameLength]
}

func isName(name string) bool { return len(name) == nameLength && isHex(name) }

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// checkClosure says what is wrong with a closure. It decides what may become part of a path.
func checkClosure(c Closure) error {
	if len(c.Wheels) == 0 {
		return problem.New(problem.ClosureInvalid, "there is nothing to install")
	}
	names := make(map[string]bool, len(c.Wheels))
	for _, w := range c.Wheels {
		switch {
		case len(w.SHA256) != 64 || !isHex(w.SHA256):
			return invalidWheel(w, "its SHA-256 hash is not known")
		case names[w.Name]:
			return problem.New(problem.ClosureInvalid, fmt.Sprintf("two versions of %s are to be installed together", w.Name))
		case w.Name == "" || require.Normalize(w.Name) != w.Name:
			return invalidWheel(w, "the name of its distribution is not in normal form")
		}
		names[w.Name] = true
		stem, ok := strings.CutSuffix(w.File, ".whl")
		parts := strings.Split(stem, "-")
		if !ok || len(parts) != 5 && len(parts) != 6 || strings.ContainsAny(w.File, "/\\\x00") {
			return invalidWheel(w, "its file name is not that of a wheel")
		}
		if require.Normalize(parts[0]) != w.Name || !sameVersion(parts[1], w.Version) {
			return invalidWheel(w, "its file name is that of another distribution or version")
		}
	}
	return nil
}

// sameVersion compares two versions, of which either can be spelled as in a file name.
func sameVersion(a, b string) bool {
	a, b = strings.ReplaceAll(a, "_", "-"), strings.ReplaceAll(b, "_", "-")
	if a == b {
		return true
	}
	x, errX := pep440.Parse(a)
	y, errY := pep440.Parse(b)
	return errX == nil && errY == nil && x.Equal(y)
}

func invalidWheel(w Wheel, reason string) *problem.Error {
	return problem.New(problem.WheelInvalid, fmt.Sprintf("%s %s cannot be installed: %s (%q)", w.Name, w.Version, reason, w.File)).
		WithHint("ask for another version of it, and tell its authors")
}
