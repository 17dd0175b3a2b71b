package cli

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"cove/internal/core/lang"
	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
)

// noSuchFile finds the name in the messages of Python, PyArrow and Polars, and DuckDB about a file that is not there.
var noSuchFile = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:No such file or directory: ['"]|No files found that match the pattern ")([^'"\n]+)['"]|No such file or directory \(os error 2\)[^:\n]*: ([^\n]+)`)
})

// notFound are the exceptions of Python, DuckDB and Polars about a file that is not there.
var notFound = []string{"FileNotFoundError", "IOException"}

// missingFileHint says what to add when an exception is about a file that the sandbox does not have and this machine has, in the folder in which the command was given or below it; "" for others. What the
// exception says is the code's, which may be hostile: no more is looked at than whether there is such a file, and a hidden one, as keys and settings are, is never proposed.
func missingFileHint(e kernel.Error) string {
	const longest = 400 // bytes
	if !slices.Contains(notFound, e.Name[strings.LastIndexByte(e.Name, '.')+1:]) {
		return ""
	}
	found := noSuchFile().FindStringSubmatch(e.Value[:min(len(e.Value), 4<<10)])
	if found == nil {
		return ""
	}
	name := strings.TrimSpace(found[1] + found[2])
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '\\' }
	if name == "" || len(name) > longest || strings.IndexFunc(name, odd) >= 0 {
		return ""
	}
	whole, err := filepath.Abs(name)
	here, wrong := os.Getwd()
	if err != nil || wrong != nil || !isBelow(here, whole) || isHidden(here, whole) {
		return ""
	}
	if info, err := os.Stat(whole); err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		return ""
	}
	if base := filepath.Base(whole); filepath.Clean(name) != base {
		return lang.Sprintf("%s is on this machine and not in the sandbox: add -f %s, and open %s", name, quoted(name), base)
	}
	return lang.Sprintf("%s is on this machine and not in the sandbox: add -f %s", name, quoted(name))
}

// isHidden says whether a path below a folder has a part there that begins with a dot.
func isHidden(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err != nil || slices.ContainsFunc(strings.Split(filepath.ToSlash(rel), "/"), func(part string) bool { return strings.HasPrefix(part, ".") })
}

// isBelow says whether a path is in a folder or below it.
func isBelow(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// withLocalHint returns an exception with what this machine knows about it.
func withLocalHint(e kernel.Error) kernel.Error {
	if e.Hint == "" {
		e.Hint = missingFileHint(e)
	}
	return e
}

// encodingHint returns how the files are encoded that an exception may be about, where the session is one of this machine.
func encodingHint(ctx context.Context, s runner, e kernel.Error) string {
	describer, ok := s.(loop.Describer)
	if !ok || e.Hint != "" || e.Name != "UnicodeDecodeError" {
		return ""
	}
	return loop.EncodingHint(ctx, describer, e)
}
