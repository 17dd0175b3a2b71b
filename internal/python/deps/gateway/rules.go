package gateway

import (
	"fmt"
	"strings"
	"time"

	"cove/internal/python/deps/require"
)

// Rules say which files of an index may be used. The zero value lets everything pass that is a wheel and has a hash.
type Rules struct {
	MinAge    time.Duration // since a file's upload; files without a time are withheld when this is set, but see Undated
	AgeExempt []string      // projects (PEP 503, or a prefix and *) that MinAge does not hold for
	Deny      []string      // projects, or name==version; with * at the end as a prefix
	Allow     []string      // when not empty, only these projects
	Sources   bool          // let source distributions pass too
	// Known says of a project whether its source distributions pass although Sources is false, once they have been on their index for KnownAge; nil: none do.
	Known    func(project string) bool
	KnownAge time.Duration
	MaxFile  int64 // bytes; 0 means no limit

	// Undated lets files pass although MinAge is set, when their index gives no time for any file of the project, as many mirrors do. Files that have
	// appeared since the project was first looked up are still withheld until they have been there for MinAge.
	Undated bool
}

// normalized returns the rules with names as PEP 503 spells them.
func (r Rules) normalized() Rules {
	names := func(patterns []string) []string {
		var out []string
		for _, p := range patterns {
			name, version, pinned := strings.Cut(strings.ReplaceAll(p, " ", ""), "==")
			prefix, star := strings.CutSuffix(name, "*")
			name = squash(prefix)
			if star {
				name += "*"
			}
			if pinned {
				name += "==" + version
			}
			out = append(out, name)
		}
		return out
	}
	r.AgeExempt, r.Deny, r.Allow = names(r.AgeExempt), names(r.Deny), names(r.Allow)
	return r
}

// squash spells a name or a part of one as PEP 503 does. Other than a name, a part may end in a separator.
func squash(part string) string {
	const letter = "x"
	return strings.TrimSuffix(require.Normalize(part+letter), letter)
}

// project returns why a project may not be used at all, a clause, or "".
func (r Rules) project(name string) string {
	for _, p := range r.Deny {
		if !strings.Contains(p, "==") && matches(p, name) {
			return "it is on the list of packages that are never installed"
		}
	}
	if len(r.Allow) == 0 {
		return ""
	}
	for _, p := range r.Allow {
		if matches(p, name) {
			return ""
		}
	}
	return "it is not on the list of packages that may be installed"
}

func matches(pattern, name string) bool {
	if prefix, star := strings.CutSuffix(pattern, "*"); star {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// file returns why a file may not be used, a clause, or "". undated says that no file of the project has a time.
func (r Rules) file(project string, f *candidate, undated bool, now time.Time) string {
	switch {
	case f.conflicting:
		return "the index lists it twice, with different hashes"
	case f.SHA256 == "":
		return "the index gives no SHA-256 for it"
	case !f.Wheel && !r.Sources && !r.knownSource(project, f, now):
		return "it is a source distribution"
	case r.MaxFile > 0 && f.Size > r.MaxFile:
		return fmt.Sprintf("it has %s, and the limit is %s", amount(f.Size), amount(r.MaxFile))
	case r.deniedVersion(project, f.Version):
		return "its version is on the list of those that are never installed"
	case r.MinAge <= 0 || f.from.trusted() || r.exempt(project):
		return ""
	}
	return r.tooYoung(f, undated, now)
}

// knownSource says whether a source distribution passes because it is known and old. What no time is known of is not old.
func (r Rules) knownSource(project string, f *candidate, now time.Time) bool {
	return r.Known != nil && !f.Uploaded.IsZero() && now.Sub(f.Uploaded) >= r.KnownAge && r.Known(project)
}

func (r Rules) tooYoung(f *candidate, undated bool, now time.Time) string {
	old := ", and files have to be " + span(r.MinAge) + " old"
	switch {
	case !f.Uploaded.IsZero():
		if age := now.Sub(f.Uploaded); age < r.MinAge {
			return "it was uploaded " + span(age) + " ago" + old
		}
	case !undated || !r.Undated:
		return "the index does not say when it was uploaded" + old
	case !f.entry.seen.IsZero():
		if age := now.Sub(f.entry.seen); age < r.MinAge {
			return "it appeared on the index " + span(age) + " ago" + old
		}
	}
	return ""
}

func (r Rules) exempt(project string) bool {
	for _, p := range r.AgeExempt {
		if matches(p, project) {
			return true
		}
	}
	return false
}

func (r Rules) deniedVersion(project, version string) bool {
	for _, p := range r.Deny {
		name, denied, pinned := strings.Cut(p, "==")
		if !pinned || !matches(name, project) {
			continue
		}
		if prefix, star := strings.CutSuffix(denied, "*"); star && strings.HasPrefix(version, prefix) {
			return true
		}
		if denied == version || require.Compare(denied, version) == 0 {
			return true
		}
	}
	return false
}

// span says a duration as people do, in its largest unit.
func span(d time.Duration) string {
	units := []struct {
		name string
		unit time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}}
	for _, u := range units {
		if n := d / u.unit; n == 1 {
			return "1 " + u.name
		} else if n > 1 {
			return fmt.Sprintf("%d %ss", n, u.name)
		}
	}
	return "less than a minute"
}

// amount says a size as people do.
func amount(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
