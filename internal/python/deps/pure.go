package deps

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cove/internal/core/durable"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/require"
)

// Bounds of looking into a source distribution. One that is larger is taken as pure: it is built, and what comes of it is looked at.
const (
	largestLooked = 32 << 20 // bytes, as it comes
	mostUnpacked  = 1 << 30  // bytes that are read of it
	mostEntries   = 100_000
)

// compiled are the ends of names of files that a compiler has to do with.
var compiled = []string{".c", ".cc", ".cpp", ".cxx", ".cu", ".pyx", ".pxd", ".rs", ".go", ".f", ".f90", ".m", ".mm", ".swg", "Cargo.toml", "CMakeLists.txt", "meson.build"}

// pure says whether the newest source distribution that a requirement allows has nothing to compile, as far as the names of its files tell. The answer is kept.
func (i *Installer) pure(ctx context.Context, g *gateway.Gateway, w want, project gateway.Project) (bool, error) {
	var newest *gateway.File
	for n, f := range project.Files {
		if !f.Wheel && f.Withheld == "" && w.Allows(f.Version) && (newest == nil || require.Compare(f.Version, newest.Version) > 0) {
			newest = &project.Files[n]
		}
	}
	if newest == nil {
		return false, nil
	}
	if newest.Size > largestLooked {
		return true, nil
	}
	kept := filepath.Join(i.dir, "pure", newest.SHA256)
	if text, err := os.ReadFile(kept); err == nil {
		return string(text) == "yes", nil
	}
	var whole bytes.Buffer
	if err := g.Fetch(ctx, w.Name, newest.Name, newest.SHA256, &limited{&whole, largestLooked}, nil); err != nil {
		return false, err
	}
	answer := "yes"
	if !pureArchive(newest.Name, whole.Bytes()) {
		answer = "no"
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		return false, unwritable(filepath.Dir(kept), err)
	}
	return answer == "yes", durable.Replace(kept, 0o600, strings.NewReader(answer))
}

// limited takes a bounded number of bytes.
type limited struct {
	to   io.Writer
	left int64
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, errors.New("the source distribution is larger than its index says")
	}
	return l.to.Write(p)
}

// pureArchive looks at the names in an archive; one that cannot be read is not pure. The archive is hostile.
func pureArchive(name string, content []byte) bool {
	if strings.HasSuffix(name, ".zip") {
		z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		return err == nil && len(z.File) <= mostEntries && !slices.ContainsFunc(z.File, func(f *zip.File) bool { return compiles(f.Name) })
	}
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return false
	}
	all := tar.NewReader(io.LimitReader(z, mostUnpacked))
	for range mostEntries {
		h, err := all.Next()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		if compiles(h.Name) {
			return false
		}
	}
	return false
}

// compiles says whether a file is there to be compiled; what tests and documentation have is not.
func compiles(name string) bool {
	folders := strings.Split(path.Dir(name), "/")
	if slices.ContainsFunc(folders, func(f string) bool {
		return f == "tests" || f == "test" || f == "docs" || f == "doc" || f == "examples"
	}) {
		return false
	}
	base := path.Base(name)
	return slices.ContainsFunc(compiled, func(end string) bool {
		return base == end || strings.HasPrefix(end, ".") && strings.HasSuffix(base, end)
	})
}
