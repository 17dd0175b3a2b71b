package layer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The ELF format as in elf(5), and of it only what the dynamic loader needs to know. debug/elf is not made for hostile files.

const (
	elfHeader  = 64
	elfProgram = 56
	mostParts  = 256     // program headers
	mostTags   = 1 << 12 // entries of the dynamic section
	longestLib = 256

	typeLoad    = 1
	typeDynamic = 2
	tagNeeded   = 1
	tagStrings  = 5
	tagName     = 14
)

// libraries returns the shared libraries that the files below tree are linked with, and those that they are.
func libraries(tree string, files []entry) (needs, provides []string, err error) {
	need, have := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		base := path.Base(f.path)
		if !strings.HasSuffix(base, ".so") && !strings.Contains(base, ".so.") {
			continue
		}
		file, err := os.Open(filepath.Join(tree, f.path))
		if err != nil {
			return nil, nil, err
		}
		linked, name, ok := readDynamic(file)
		file.Close()
		if !ok {
			continue
		}
		have[base] = true
		if name != "" {
			have[name] = true
		}
		for _, l := range linked {
			need[l] = true
		}
	}
	return sorted(need), sorted(have), nil
}

func sorted(set map[string]bool) []string {
	var all []string
	for s := range set {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

// machine is this machine's number in ELF files.
func machine() uint16 {
	if runtime.GOARCH == "arm64" {
		return 183
	}
	return 62
}

// readDynamic returns what a shared library is linked with and its own name. ok is false for what is no library for this machine.
func readDynamic(r io.ReaderAt) (needed []string, name string, ok bool) {
	le := binary.LittleEndian
	var h [elfHeader]byte
	if _, err := r.ReadAt(h[:], 0); err != nil || string(h[:6]) != "\x7fELF\x02\x01" || le.Uint16(h[18:]) != machine() || le.Uint16(h[54:]) != elfProgram {
		return nil, "", false
	}
	parts := make([]byte, min(int(le.Uint16(h[56:])), mostParts)*elfProgram)
	if _, err := r.ReadAt(parts, int64(le.Uint64(h[32:]))); err != nil && !errors.Is(err, io.EOF) {
		return nil, "", false
	}
	var dynamic []byte
	for p := range slices.Chunk(parts, elfProgram) {
		if le.Uint32(p) == typeDynamic {
			dynamic = make([]byte, min(le.Uint64(p[32:])/16, mostTags)*16)
			if _, err := r.ReadAt(dynamic, int64(le.Uint64(p[8:]))); err != nil {
				return nil, "", false
			}
		}
	}
	var names []uint64
	table, own, named := uint64(0), uint64(0), false
	for d := range slices.Chunk(dynamic, 16) {
		switch value := le.Uint64(d[8:]); le.Uint64(d) {
		case tagNeeded:
			names = append(names, value)
		case tagStrings:
			table = value
		case tagName:
			own, named = value, true
		}
	}
	base := fileOffset(parts, table)
	for _, n := range names {
		if s := readString(r, base+int64(n)); s != "" {
			needed = append(needed, s)
		}
	}
	if named {
		name = readString(r, base+int64(own))
	}
	return needed, name, dynamic != nil
}

// fileOffset returns where in the file that is which is loaded at an address.
func fileOffset(parts []byte, address uint64) int64 {
	le := binary.LittleEndian
	for p := range slices.Chunk(parts, elfProgram) {
		start, size := le.Uint64(p[16:]), le.Uint64(p[32:])
		if le.Uint32(p) == typeLoad && address >= start && address-start < size {
			return int64(le.Uint64(p[8:]) + address - start)
		}
	}
	return -1
}

func readString(r io.ReaderAt, at int64) string {
	buf := make([]byte, longestLib)
	if at < 0 {
		return ""
	}
	n, _ := r.ReadAt(buf, at) // it may end before the buffer does
	s, _, ok := bytes.Cut(buf[:n], []byte{0})
	if !ok || badName(string(s)) != "" {
		return ""
	}
	return string(s)
}

// missing returns the libraries that neither the closure nor this machine has.
func missing(wheels []*contents) []string {
	have := map[string]bool{}
	for _, w := range wheels {
		for _, p := range w.Provides {
			have[p] = true
		}
	}
	var lost []string
	var host func(string) bool
	for _, w := range wheels {
		for _, need := range w.Needs {
			if have[path.Base(need)] || strings.HasPrefix(need, "libpython3") { // the interpreter brings it
				continue
			}
			if host == nil {
				host = hostLibraries()
			}
			if !host(need) && !slices.Contains(lost, need) {
				lost = append(lost, need)
			}
		}
	}
	slices.Sort(lost)
	return lost
}

// hostLibraries returns a function that says whether the loader of this machine, and so that of a sandbox, finds a library.
func hostLibraries() func(name string) bool {
	cache := readLoaderCache("/etc/ld.so.cache")
	return func(name string) bool {
		if cache[name] {
			return true
		}
		for _, dir := range []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"} {
			if _, err := os.Stat(filepath.Join(dir, filepath.Base(name))); err == nil {
				return true
			}
		}
		return false
	}
}

// readLoaderCache returns the names in ld.so.cache, in the form that glibc has written since 2.2 (sysdeps/generic/dl-cache.h there).
func readLoaderCache(file string) map[string]bool {
	names := map[string]bool{}
	text, err := os.ReadFile(file)
	if err != nil {
		return names
	}
	at := bytes.Index(text, []byte("glibc-ld.so.cache1.1"))
	if at < 0 || len(text)-at < 48 {
		return names
	}
	text = text[at:]
	le := binary.LittleEndian
	kind := uint32(0x0300) // x86-64, glibc
	if runtime.GOARCH == "arm64" {
		kind = 0x0a00
	}
	for i := range int(le.Uint32(text[20:])) {
		e := 48 + 24*i
		if e+24 > len(text) {
			break
		}
		key := le.Uint32(text[e+4:])
		if le.Uint32(text[e:])&0xff00 != kind || uint64(key) >= uint64(len(text)) {
			continue
		}
		if name, _, ok := bytes.Cut(text[key:min(len(text), int(key)+longestLib)], []byte{0}); ok {
			names[string(name)] = true
		}
	}
	return names
}
