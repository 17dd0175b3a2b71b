package guest

import (
	"strings"
	"testing"
	"unicode/utf8"

	"cove/internal/machine/wire"
)

func TestGlobs(t *testing.T) {
	t.Parallel()
	for pattern, c := range map[string]struct{ yes, no []string }{
		"*.py":     {[]string{"a.py", ".py", "a\nb.py"}, []string{"a.pyc", "d/a.py", "apy"}},
		"**/*.py":  {[]string{"a.py", "d/a.py", "d/e/a.py"}, []string{"a.txt"}},
		"src/**":   {[]string{"src/a", "src/a/b"}, []string{"src", "xsrc/a"}},
		"[!a-c]?":  {[]string{"d1"}, []string{"a1", "d", "/1"}},
		"a.b(c)+[": {[]string{"a.b(c)+["}, []string{"axb(c)+["}},
		"größe-😀":  {[]string{"größe-😀"}, nil},
	} {
		re, err := glob(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		for _, name := range c.yes {
			if !re.MatchString(name) {
				t.Errorf("%s does not match %q", pattern, name)
			}
		}
		for _, name := range c.no {
			if re.MatchString(name) {
				t.Errorf("%s matches %q", pattern, name)
			}
		}
	}
}

// FuzzGlob makes patterns of any text: what has no sign of its own matches itself alone.
func FuzzGlob(f *testing.F) {
	for _, seed := range []string{"*.py", "[a-", "[]", "[!", "**", "a\\b", "\xff", "[[:alpha:]]", "[z-a]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		re, err := glob(pattern)
		if err == nil && !strings.ContainsAny(pattern, "*?[") && utf8.ValidString(pattern) && (!re.MatchString(pattern) || re.MatchString(pattern+"x")) {
			t.Errorf("%q does not match itself alone", pattern)
		}
		if m, err := newMatcher(wire.FileSpec{Text: pattern, Regular: true}); err == nil && pattern != "" {
			if _, _, err := m.replace([]byte("some text"), "$1"); err != nil {
				t.Error(err)
			}
		}
	})
}
