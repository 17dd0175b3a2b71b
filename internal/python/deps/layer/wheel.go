package layer

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cove/internal/python/deps/require"
)

const (
	treeName     = "tree"
	filesName    = "files.txt"
	contentsName = "wheel.json"
)

// contents is what is known about an unpacked wheel.
type contents struct {
	Wheel
	Files    int      `json:"files"`    // without what was compiled
	Unpacked int64    `json:"unpacked"` // bytes, without what was compiled
	Roots    []string `json:"roots"`    // root modules
	Stripped []string `json:"stripped,omitempty"`
	Format   int      `json:"format,omitempty"` // see unpackedFormat
}

// unpackedFormat numbers what is unpacked of a wheel; since 2, programs are.
const unpackedFormat = 2

// outdated says that something was unpacked when programs were left out, and that it may have some.
func outdated(format int, stripped []string) bool {
	return format < unpackedFormat && slices.ContainsFunc(stripped, func(s string) bool { return strings.Contains(s, ".data/scripts (") })
}

// entry is a file of an unpacked wheel.
type entry struct {
	path     string
	sum      string // SHA-256, base64
	size     int64
	compiled int64 // bytes of the bytecode beside it; 0 for none
	stub     bool  // an __init__.py with nothing of its own: empty, or the declaration of a namespace
}

// wheelKey names an unpacked wheel.
func wheelKey(w Wheel, tag string) string { return w.SHA256 + "-" + tag }

func isWheelKey(key string) bool {
	sum, tag, ok := strings.Cut(key, "-")
	return ok && len(sum) == 64 && isHex(sum) && asTag(strings.TrimPrefix(tag, "cp")) == tag
}

// known returns what is known about a wheel that has been unpacked, or nil where it has not.
func (s *Store) known(key string) *contents {
	text, err := os.ReadFile(filepath.Join(s.wheelPath(key), contentsName))
	if err != nil {
		return nil
	}
	var c contents
	if json.Unmarshal(text, &c) != nil || outdated(c.Format, c.Stripped) {
		return nil
	}
	return &c
}

// noteWheel notes that an unpacked wheel is in use.
func (s *Store) noteWheel(key string) {
	path := filepath.Join(s.wheelPath(key), contentsName)
	if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > useGrain {
		touch(path)
	}
}

// writeWheel writes what is known about the wheel in dir.
func writeWheel(dir string, c contents, files []entry) error {
	f, err := os.OpenFile(filepath.Join(dir, filesName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	for _, e := range files {
		mark := "-"
		if e.stub {
			mark = "s"
		}
		fmt.Fprintf(out, "%s %d %d %s %s\n", e.sum, e.size, e.compiled, mark, e.path)
	}
	if err := errors.Join(out.Flush(), f.Close()); err != nil {
		return err
	}
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, contentsName), append(text, '\n'), 0o600)
}

// files reads the list of a wheel's files. Paths have no line ends in them, see badName.
func (s *Store) files(key string) ([]entry, error) {
	text, err := os.ReadFile(filepath.Join(s.wheelPath(key), filesName))
	if err != nil {
		return nil, err
	}
	all := make([]entry, 0, len(text)/100)
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 5)
		if len(fields) != 5 {
			return nil, fmt.Errorf("the list of files of %s is damaged", key)
		}
		size, errSize := strconv.ParseInt(fields[1], 10, 64)
		compiled, errCompiled := strconv.ParseInt(fields[2], 10, 64)
		if err := errors.Join(errSize, errCompiled); err != nil {
			return nil, err
		}
		all = append(all, entry{path: fields[4], sum: fields[0], size: size, compiled: compiled, stub: fields[3] == "s"})
	}
	return all, nil
}

// sameWheel says that what was unpacked under a hash is what a closure calls it: the hash alone decides what is installed, and the name has been
// checked against the wheel's metadata only for the caller that asked first.
func sameWheel(a, b Wheel) bool {
	return require.Normalize(a.Name) == b.Name && sameVersion(a.Version, b.Version)
}
