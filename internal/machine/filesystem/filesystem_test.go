package filesystem_test

import (
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
)

func TestSymbolicModes(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]filesystem.Entry{
		"-rw-r--r--": {Kind: filesystem.File, Mode: 0o644}, "drwxr-x---": {Kind: filesystem.Folder, Mode: 0o750}, "lrwxrwxrwx": {Kind: filesystem.Link, Mode: 0o777},
		"drwxrwxrwt": {Kind: filesystem.Folder, Mode: 0o1777}, "-rwsr-Sr-T": {Kind: filesystem.File, Mode: 0o7744}, "?---------": {Kind: filesystem.Other},
	} {
		if got := e.Symbolic(); got != want {
			t.Errorf("%o of a %s is %s, not %s", e.Mode, e.Kind, got, want)
		}
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"", "a", "a/../b", "/etc/hosts", "/", "ä b", "./x", "..x"} {
		if err := filesystem.CheckPath(p); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
	for _, p := range []string{"..", "../a", "a/../../b", "a\x00b", "\xff", strings.Repeat("a", 5000)} {
		if err := filesystem.CheckPath(p); !problem.Has(err, problem.InvalidPath) {
			t.Errorf("%.20q: %v", p, err)
		}
	}
	for name, err := range map[string]error{
		"for nothing": filesystem.Search{}.Check(), "for too much": filesystem.Search{Text: strings.Repeat("a", 5000)}.Check(), "in no file": filesystem.Replace{Text: "a"}.Check(),
		"no text": filesystem.Replace{Paths: []string{"a"}}.Check(), "in too many": filesystem.Replace{Text: "a", Paths: make([]string, 2000)}.Check(),
	} {
		if !problem.Has(err, problem.InvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
