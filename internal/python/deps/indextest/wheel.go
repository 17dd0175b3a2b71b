package indextest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Wheel describes a wheel. Without Files it has one package of the project's name, with __version__ in it.
type Wheel struct {
	Listed
	Name    string
	Version string              // "" is 1.0
	Tag     string              // "" is py3-none-any
	Build   string              // build tag, "" for none
	Require []string            // Requires-Dist
	Extras  map[string][]string // what extras require
	// Files are by path in the wheel; a path is written as it is, also when no wheel should have it. .pth files are files like any other.
	Files   map[string]string
	Data    map[string]string // by path in the wheel's .data folder: "scripts/x", "data/share/x", "purelib/x.py"
	Links   map[string]string // symbolic links, which no wheel should have, by path
	Scripts map[string]string // console scripts: name to "module:function"
	Padding int               // bytes that cannot be compressed, in a file padding.bin in the package
	Record  string            // RECORD in place of the true one
	Meta    string            // METADATA in place of the true one
	Raw     []byte            // the file in place of all of this
}

// epoch is the time of all files in what is made here, so that it is the same each time.
var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// Filename is the wheel's.
func (w Wheel) Filename() string {
	w = w.filled()
	name := escaped(w.Name) + "-" + escapedVersion(w.Version)
	if w.Build != "" {
		name += "-" + w.Build
	}
	return name + "-" + w.Tag + ".whl"
}

// SHA256 is of Bytes, in hex.
func (w Wheel) SHA256() string {
	sum := sha256.Sum256(w.Bytes())
	return hex.EncodeToString(sum[:])
}

// Bytes makes the wheel, with METADATA, WHEEL and RECORD.
func (w Wheel) Bytes() []byte {
	if w.Raw != nil {
		return w.Raw
	}
	w = w.filled()
	base := escaped(w.Name) + "-" + escapedVersion(w.Version)
	info := base + ".dist-info/"
	files := maps.Clone(w.Files)
	for name, content := range w.Data {
		files[base+".data/"+name] = content
	}
	if w.Padding > 0 {
		files[module(w.Name)+"/padding.bin"] = padding(w.Name, w.Padding)
	}
	files[info+"METADATA"] = string(w.metadata())
	purelib := strings.HasSuffix(w.Tag, "-any")
	files[info+"WHEEL"] = fmt.Sprintf("Wheel-Version: 1.0\nGenerator: indextest\nRoot-Is-Purelib: %v\n%s", purelib, tagLines(w.Tag))
	if len(w.Scripts) > 0 {
		var b strings.Builder
		b.WriteString("[console_scripts]\n")
		for _, name := range slices.Sorted(maps.Keys(w.Scripts)) {
			fmt.Fprintf(&b, "%s = %s\n", name, w.Scripts[name])
		}
		files[info+"entry_points.txt"] = b.String()
	}
	var record strings.Builder
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		pack(archive, name, files[name], 0o644)
		sum := sha256.Sum256([]byte(files[name]))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", quoted(name), base64.RawURLEncoding.EncodeToString(sum[:]), len(files[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(w.Links)) {
		pack(archive, name, w.Links[name], fs.ModeSymlink|0o777)
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	content := record.String()
	if w.Record != "" {
		content = w.Record
	}
	pack(archive, info+"RECORD", content, 0o644)
	if err := archive.Close(); err != nil {
		panic(err) // nothing fails in memory
	}
	return out.Bytes()
}

func (w Wheel) listing() listing {
	w = w.filled()
	return listing{Listed: w.Listed, project: w.Name, version: w.Version, metadata: w.metadata()}
}

func (w Wheel) filled() Wheel {
	if w.Version == "" {
		w.Version = "1.0"
	}
	if w.Tag == "" {
		w.Tag = "py3-none-any"
	}
	if w.Files == nil {
		w.Files = map[string]string{module(w.Name) + "/__init__.py": fmt.Sprintf("__version__ = %q\n", w.Version)}
	}
	return w
}

func (w Wheel) metadata() []byte {
	if w.Meta != "" {
		return []byte(w.Meta)
	}
	return metadata(w.Name, w.Version, w.RequiresPython, w.Require, w.Extras)
}

func metadata(name, version, requiresPython string, requires []string, extras map[string][]string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version)
	if requiresPython != "" {
		fmt.Fprintf(&b, "Requires-Python: %s\n", requiresPython)
	}
	for _, r := range requires {
		fmt.Fprintf(&b, "Requires-Dist: %s\n", r)
	}
	for _, extra := range slices.Sorted(maps.Keys(extras)) {
		fmt.Fprintf(&b, "Provides-Extra: %s\n", extra)
		for _, r := range extras[extra] {
			fmt.Fprintf(&b, "Requires-Dist: %s ; extra == '%s'\n", r, extra)
		}
	}
	return []byte(b.String())
}

// tagLines writes compressed tags out, as WHEEL has them.
func tagLines(tag string) string {
	parts := strings.SplitN(tag, "-", 3)
	if len(parts) != 3 {
		return "Tag: " + tag + "\n"
	}
	var b strings.Builder
	for python := range strings.SplitSeq(parts[0], ".") {
		for abi := range strings.SplitSeq(parts[1], ".") {
			for platform := range strings.SplitSeq(parts[2], ".") {
				fmt.Fprintf(&b, "Tag: %s-%s-%s\n", python, abi, platform)
			}
		}
	}
	return b.String()
}

func pack(archive *zip.Writer, name, content string, mode fs.FileMode) {
	header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: epoch}
	header.SetMode(mode)
	file, err := archive.CreateHeader(header)
	if err == nil {
		_, err = file.Write([]byte(content))
	}
	if err != nil {
		panic(err) // nothing fails in memory
	}
}

// module is the name of the package that a project has unless it is told otherwise.
func module(project string) string {
	return strings.ToLower(strings.NewReplacer("-", "_", ".", "_").Replace(project))
}

func escaped(name string) string { return strings.NewReplacer("-", "_", ".", "_").Replace(name) }

func escapedVersion(version string) string { return strings.ReplaceAll(version, "-", "_") }

func quoted(name string) string {
	if strings.ContainsAny(name, ",\"\n") {
		return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	return name
}

// padding is noise, the same for the same seed.
func padding(seed string, size int) string {
	noise := rand.NewChaCha8(sha256.Sum256([]byte(seed)))
	out := make([]byte, size)
	_, _ = noise.Read(out)
	return string(out)
}
