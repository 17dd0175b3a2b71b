// Package names says which distribution provides a module: a table made from wheels' own file lists and from public tables,
// overrides by hand, patterns for families of packages, and what must never be installed. README.md says where the data comes from.
package names

import "cove/internal/python/deps/require"

// Status says what became of a name.
type Status string

// The statuses.
const (
	Standard Status = "stdlib"  // part of that Python; nothing to install
	Found    Status = "found"   // Distribution provides it
	Refused  Status = "refused" // must not be installed by that name; Hint says what to do instead
	Unknown  Status = "unknown" // nothing is known to provide it; Suggestions may help
)

// Reason says where an answer comes from.
type Reason string

// The reasons.
const (
	ByStdlib   Reason = "stdlib"
	ByOverride Reason = "override"
	ByTable    Reason = "table"
	ByPattern  Reason = "pattern"
	BySameName Reason = "same_name" // a guess: policy has to look at the project first
	ByNever    Reason = "never_install"
	ByNothing  Reason = "nothing"
)

// Answer is what a module's name means.
type Answer struct {
	Module       string      `json:"module"`                 // as asked
	Key          string      `json:"key,omitempty"`          // the dotted prefix of Module that decided
	Status       Status      `json:"status"`                 //
	Distribution string      `json:"distribution,omitempty"` // normalized; of Found
	Extras       []string    `json:"extras,omitempty"`       // to ask for with it
	Specifier    string      `json:"specifier,omitempty"`    // versions that have the module, PEP 440; "" is all
	Candidates   []Candidate `json:"candidates,omitempty"`   // best first; the first is Distribution; of Unknown: those between which nothing decides
	Reason       Reason      `json:"reason"`                 //
	Explanation  string      `json:"explanation"`            // one sentence for people
	Hint         string      `json:"hint,omitempty"`         // the next step, of Refused and Unknown; of Found a remark, if there is one
	Suggestions  []string    `json:"suggestions,omitempty"`  // modules with similar names, of Unknown and of same-named projects outside of the list
}

// Candidate is a distribution that provides a module.
type Candidate struct {
	Distribution string `json:"distribution"`
	Rank         int    `json:"rank,omitempty"` // by downloads, 1 is the most; 0 is outside the list
}

// Interchangeable returns the distributions that provide the same module in different builds (opencv-python, opencv-python-headless, ...), that one
// included; nil when there are none. Any of them satisfies an import.
func Interchangeable(distribution string) []string {
	return append([]string(nil), interchangeable()[require.Normalize(distribution)]...)
}

// Companions returns requirements of which one has to be fulfilled where a distribution is imported, though it does not say so itself; nil when there are none. The first is the one to
// install when none is.
func Companions(distribution string) []require.Requirement {
	return append([]require.Requirement(nil), companions()[require.Normalize(distribution)]...)
}

// Namespace says whether a dotted name is a namespace that several distributions share, and whether one of them has the name for its own all the same.
func Namespace(dotted string) (shared, owned bool) {
	for _, f := range families() {
		if f.root == dotted {
			return true, f.owned
		}
	}
	return false, false
}
