package require

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	pep440 "github.com/aquasecurity/go-pep440-version"
)

const longestVersion = 200

// version is one of PEP 440. The library's reading and ordering are used; its specifiers are not, because they compare prefixes
// wrongly where the numbers of parts differ, and take ~=2.2a1 to be ==2.2.*.
type version struct{ pep440.Version }

var localSeparators = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[-_]`) })

func parseVersion(text string) (version, bool) {
	text = strings.TrimSpace(text)
	if len(text) > longestVersion || strings.ContainsFunc(text, func(c rune) bool { return c > '~' }) {
		return version{}, false
	}
	// The library takes 1+a-1 and 1+a.1 to be different.
	if public, local, has := strings.Cut(text, "+"); has {
		text = public + "+" + localSeparators().ReplaceAllString(local, ".")
	}
	v, err := pep440.Parse(text)
	return version{v}, err == nil
}

// Compare orders versions as PEP 440 does; what it does not know comes first, in the order of its characters.
func Compare(a, b string) int {
	x, xKnown := parseVersion(a)
	y, yKnown := parseVersion(b)
	switch {
	case xKnown && yKnown:
		return x.compare(y)
	case xKnown:
		return 1
	case yKnown:
		return -1
	}
	return cmp.Compare(a, b)
}

func (v version) compare(other version) int { return v.Compare(other.Version) }

// public is the version without its local part.
func (v version) public() version {
	if v.Local() == "" {
		return v
	}
	p, _ := parseVersion(v.Public())
	return p
}

// withoutPost is the version that a post-release follows.
func (v version) withoutPost() version {
	before, _, _ := strings.Cut(v.Public(), ".post")
	w, _ := parseVersion(before)
	return w
}

func (v version) epoch() string {
	if epoch, _, has := strings.Cut(v.BaseVersion(), "!"); has {
		return epoch
	}
	return "0"
}

func (v version) release() []string {
	base := v.BaseVersion()
	if _, after, has := strings.Cut(base, "!"); has {
		base = after
	}
	return strings.Split(base, ".")
}

// hasPrefix says whether the version's release begins with the given numbers, where missing ones are zeros.
func (v version) hasPrefix(epoch string, release []string) bool {
	own := v.release()
	for len(own) < len(release) {
		own = append(own, "0")
	}
	return v.epoch() == epoch && slices.Equal(own[:len(release)], release)
}
