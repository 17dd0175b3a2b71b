package layer

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"hash"
	"io"
	"path"
	"strings"

	"cove/internal/python/deps/require"
)

const (
	longestMetadata = 8 << 20
	longestRecord   = 64 << 20
)

// record says for each path of a wheel, as in its archive, what the file's hash is: "sha256=...", or "" where there is none.
type record map[string]string

// readRecord reads a RECORD (PyPA, "Recording installed projects"): path, hash, size.
func readRecord(text []byte) (record, error) {
	rows := csv.NewReader(bytes.NewReader(text))
	rows.FieldsPerRecord = -1
	rows.LazyQuotes = true
	rows.ReuseRecord = true
	all := record{}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil || len(row) < 2 {
			return nil, defect("its RECORD cannot be read")
		}
		name := path.Clean(row[0])
		if before, twice := all[name]; twice && before != row[1] {
			return nil, defectf("its RECORD gives two hashes for %q", name)
		}
		all[name] = row[1]
	}
}

// newHash returns the hash and the value that a record's entry wants, or nil when it names none that wheels may use.
func newHash(entry string) (hash.Hash, string) {
	kind, want, _ := strings.Cut(entry, "=")
	want = strings.TrimRight(want, "=")
	switch kind {
	case "sha256":
		return sha256.New(), want
	case "sha384":
		return sha512.New384(), want
	case "sha512":
		return sha512.New(), want
	}
	return nil, ""
}

func encodeHash(h hash.Hash) string { return base64.RawURLEncoding.EncodeToString(h.Sum(nil)) }

// checkMetadata makes sure that a wheel's METADATA is of the distribution that was asked for.
func checkMetadata(text []byte, w Wheel) error {
	var name, version string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case strings.EqualFold(key, "Name") && name == "":
			name = value
		case strings.EqualFold(key, "Version") && version == "":
			version = value
		}
	}
	if require.Normalize(name) != w.Name || !sameVersion(version, w.Version) {
		return defectf("it says that it is %q %q", name, version)
	}
	return nil
}

// checkWheelFile makes sure that a wheel is of a format that is known.
func checkWheelFile(text []byte) error {
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(key, "Wheel-Version") {
			if strings.HasPrefix(strings.TrimSpace(value), "1.") {
				return nil
			}
			return defectf("it is of version %s of the format, which is not known", strings.TrimSpace(value))
		}
	}
	return defect("it does not say of what version of the format it is")
}
