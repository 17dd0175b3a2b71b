package indextest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Sdist describes a source distribution, which brings its own build backend: building it needs nothing but Python.
type Sdist struct {
	Listed
	Name    string
	Version string            // "" is 1.0
	Require []string          // Requires-Dist of the wheel
	Build   []string          // what the build itself requires
	Files   map[string]string // of the wheel, by path; nil as for Wheel
	Extra   map[string]string // more files of the archive, by path below its folder, such as C sources
	// Script is Python that the backend runs before it packs the wheel, in the archive's folder, where src/ becomes the wheel. It may set the variables
	// name, version and tag of the wheel.
	Script string
	// Metadata is Python that the backend runs when it is asked for the metadata alone; it may set name and version, too.
	Metadata string
}

//go:embed backend.py
var backend string

// Filename is the archive's.
func (s Sdist) Filename() string {
	s = s.filled()
	return escaped(s.Name) + "-" + s.Version + ".tar.gz"
}

// Bytes makes the archive.
func (s Sdist) Bytes() []byte {
	s = s.filled()
	folder := escaped(s.Name) + "-" + s.Version + "/"
	quoted := make([]string, len(s.Build))
	for i, r := range s.Build {
		quoted[i] = fmt.Sprintf("%q", r)
	}
	files := map[string]string{
		"PKG-INFO":           string(metadata(s.Name, s.Version, s.RequiresPython, s.Require, nil)),
		"pyproject.toml":     fmt.Sprintf("[build-system]\nrequires = [%s]\nbuild-backend = \"backend\"\nbackend-path = [\"backend\"]\n", strings.Join(quoted, ", ")),
		"backend/backend.py": backend,
		"script.py":          s.Script,
		"metadata.py":        s.Metadata,
	}
	for name, content := range s.Files {
		files["src/"+name] = content
	}
	maps.Copy(files, s.Extra)
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	var err error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: folder + name, Mode: 0o644, Size: int64(len(files[name])), ModTime: epoch, Format: tar.FormatPAX}
		if err == nil {
			err = archive.WriteHeader(header)
		}
		if err == nil {
			_, err = archive.Write([]byte(files[name]))
		}
	}
	if err == nil {
		err = archive.Close()
	}
	if err == nil {
		err = compressed.Close()
	}
	if err != nil {
		panic(err) // nothing fails in memory
	}
	return out.Bytes()
}

func (s Sdist) listing() listing {
	s = s.filled()
	return listing{Listed: s.Listed, project: s.Name, version: s.Version}
}

func (s Sdist) filled() Sdist {
	if s.Version == "" {
		s.Version = "1.0"
	}
	if s.Files == nil {
		s.Files = map[string]string{module(s.Name) + "/__init__.py": fmt.Sprintf("__version__ = %q\n", s.Version)}
	}
	return s
}
