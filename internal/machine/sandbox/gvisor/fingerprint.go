package gvisor

import (
	"bufio"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"cove/internal/machine/sandbox"
)

// stateFormat is to be counted up when code of ours that runs in the sentry changes what is in a checkpoint, or what restoring one takes,
// in a way that shows neither in the flags nor in the bundle. A variable, because tests have the linker make another release of it.
var stateFormat = "1"

// Fingerprint identifies what a checkpoint of this engine depends on: gVisor's release, with the flags and the bundle that it gets; the processor's
// features, which libraries have looked at when they were loaded; and the system's libraries, which are mapped into the processes of a checkpoint but not
// part of it. The build of cove is not in it: gVisor writes the names of types and fields, not addresses, and the guest is a file of its own.
func (e *Engine) Fingerprint() (string, error) {
	if err := e.prepare(); err != nil {
		return "", err
	}
	runtime, err := e.Runtime()
	if err != nil {
		return "", err
	}
	shape, err := shape()
	if err != nil {
		return "", err
	}
	cpu, err := cpuFeatures()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("gvisor-%s-%s-%s", digest(runtime, shape, stateFormat), cpu, systemLibraries()), nil
}

const gvisorModule = "gvisor.dev/gvisor"

// Runtime names the release of gVisor that is part of the executable.
func (e *Engine) Runtime() (string, error) {
	if err := e.prepare(); err != nil {
		return "", err
	}
	info, err := buildinfo.ReadFile(e.exe)
	if err != nil {
		return "", fmt.Errorf("read what %s is made of: %w", e.exe, err)
	}
	for _, m := range info.Deps {
		if m.Path != gvisorModule {
			continue
		}
		version := m.Version
		if r := m.Replace; r != nil {
			version += " replaced by " + r.Path + " " + r.Version
			if r.Version == "" { // a folder, which can be anything
				build, err := buildID(e.exe)
				return "gVisor " + version + build, err
			}
		}
		return "gVisor " + version, nil
	}
	return "", fmt.Errorf("%s does not say which release of gVisor it has", e.exe)
}

// Build identifies the executable.
func (e *Engine) Build() (string, error) {
	if err := e.prepare(); err != nil {
		return "", err
	}
	return buildID(e.exe)
}

// shape is what gVisor gets from us and compares when it restores: the flags, and the bundle but for the host's paths and what depends on a Spec.
func shape() (string, error) {
	in := &instance{&sandbox.Folder{ID: "shape", Path: "/"}}
	all := strings.Join(New(Options{}).flags(), " ")
	for _, system := range []int64{0, 1} {
		made := sandbox.Spec{Limits: sandbox.Limits{System: system}}
		b, err := newBundle(nil, "/shared", made)
		if err != nil {
			return "", err
		}
		spec := b.spec(in, "/", "guest", made)
		for k := range spec.Mounts {
			spec.Mounts[k].Source = ""
		}
		text, err := json.Marshal(spec)
		if err != nil {
			return "", err
		}
		all += string(text)
	}
	return all, nil
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// buildID is a digest of the id that Go's linker puts into every executable; builds that differ in anything differ in it.
func buildID(exe string) (string, error) {
	f, err := elf.Open(exe)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", exe, err)
	}
	defer func() { _ = f.Close() }()
	note := f.Section(".note.go.buildid")
	if note == nil {
		return "", fmt.Errorf("%s has no Go build id", exe)
	}
	id, err := note.Data()
	if err != nil {
		return "", fmt.Errorf("read the build id of %s: %w", exe, err)
	}
	return digest(string(id)), nil
}

// cpuFeatures is a digest of what the first processor can do.
func cpuFeatures() (string, error) {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(io.LimitReader(f, 1<<20)); s.Scan(); {
		key, value, _ := strings.Cut(s.Text(), ":")
		if key = strings.TrimSpace(key); key == "flags" || key == "Features" {
			features := strings.Fields(value)
			slices.Sort(features)
			return digest(append(features, runtime.GOARCH)...), nil
		}
	}
	return "", fmt.Errorf("/proc/cpuinfo names no processor features")
}

// systemLibraries is a digest of the linker's cache, which every installation of a library writes anew, and of the C library.
func systemLibraries() string {
	cache, _ := os.ReadFile("/etc/ld.so.cache")
	parts := []string{string(cache)}
	for _, pattern := range []string{"/lib/*/libc.so.6", "/lib64/libc.so.6", "/lib/ld-*.so*", "/lib64/ld-*.so*"} {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		for _, path := range found {
			if info, err := os.Stat(path); err == nil {
				parts = append(parts, fmt.Sprint(path, info.Size(), info.ModTime().UnixNano()))
			}
		}
	}
	return digest(parts...)
}
