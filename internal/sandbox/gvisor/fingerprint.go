package gvisor

import (
	"bufio"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Fingerprint identifies what a checkpoint of this engine depends on. It has three parts: our executable's build, which is the
// gVisor release and the guest in one; the processor's features, which libraries have looked at when they were loaded;
// and the system's libraries, which are mapped into the processes of a checkpoint but not part of it.
func (e *Engine) Fingerprint() (string, error) {
	if err := e.prepare(); err != nil {
		return "", err
	}
	build, err := buildID(e.exe)
	if err != nil {
		return "", err
	}
	cpu, err := cpuFeatures()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("gvisor-%s-%s-%s", build, cpu, systemLibraries()), nil
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
