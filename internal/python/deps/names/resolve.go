package names

import (
	"fmt"
	"slices"
	"strings"

	"cove/internal/python/deps/require"
)

const (
	longestName     = 200 // bytes; nothing longer is a module's or a distribution's name
	deepestKey      = 6   // parts of a dotted name that are looked at
	mostSuggestions = 5
)

// Resolve says what module (dotted; a longer path finds a more exact answer) means for that Python ("3.11").
func Resolve(module, python string) Answer {
	if !importable(module) {
		return nothing(module, "this is not a module's name", "check the spelling")
	}
	parts := strings.Split(module, ".")
	root := parts[0]
	if a, ok := refused(module, parts); ok {
		return a
	}
	if IsStandard(root, python) {
		return Answer{Module: module, Key: root, Status: Standard, Reason: ByStdlib, Explanation: root + " is part of Python's standard library"}
	}
	for n := min(len(parts), deepestKey); n > 0; n-- {
		if a, ok := known(module, parts[:n]); ok {
			return a
		}
	}
	if Rank(root) == 0 {
		if a, ok := fromOtherPython(module, root); ok {
			return a
		}
		if a, ok := namedAfterPath(module, parts); ok {
			return a
		}
	}
	return sameName(module, root)
}

// namedAfterPath finds the known project a-b for a.b.c when nothing is known about a: a family of its own.
func namedAfterPath(module string, parts []string) (Answer, bool) {
	for n := min(len(parts), deepestKey); n > 1; n-- {
		wanted := require.Normalize(strings.Join(parts[:n], "-"))
		if Rank(wanted) > 0 {
			key := strings.Join(parts[:n], ".")
			return found(module, key, ByPattern, []string{wanted}, "nothing provides "+parts[0]+" by itself; "+key+" is the name of the project "+wanted), true
		}
	}
	return Answer{}, false
}

// known looks for a dotted prefix in the overrides, in the table and among the families.
func known(module string, parts []string) (Answer, bool) {
	key := strings.Join(parts, ".")
	shared, owned := Namespace(key)
	if o, ok := overrides()[key]; ok && (module == key || !shared || owned || len(o.distributions) == 0) {
		if len(o.distributions) == 0 {
			return nothing(module, "no project is installed for "+key, o.note), true
		}
		a := found(module, key, ByOverride, o.distributions, key+" is provided by "+o.distributions[0]+", by a rule kept by hand")
		a.Extras, a.Specifier, a.Hint = o.extras, o.specifier, o.note
		return a, true
	}
	if row, ok := tableText.get(key); ok {
		dists := spelledOut(key, row)
		if dists[0] == ambiguous {
			return undecided(module, key, dists[1:]), true
		}
		return found(module, key, ByTable, dists, key+" is provided by "+dists[0]), true
	}
	if dists := inFamily(parts); len(dists) > 0 {
		return found(module, key, ByPattern, dists, "modules named like "+key+" are provided by projects named like "+dists[0]), true
	}
	return Answer{}, false
}

const ambiguous = "?" // stands before the candidates of a module that several projects have for their own

// spelledOut returns the distributions of a row of the table, in which "=" is the one that is named like the module.
func spelledOut(key, row string) []string {
	dists := strings.Fields(row)
	for i, d := range dists {
		if d == "=" {
			dists[i] = require.Normalize(key)
		}
	}
	return dists
}

// undecided is the answer about a module that several unlike projects provide, none of them much more popular than the next.
func undecided(module, key string, dists []string) Answer {
	a := found(module, key, ByTable, dists, "several projects provide "+key+": "+strings.Join(dists, ", "))
	a.Status, a.Distribution = Unknown, ""
	a.Hint = "say which one is meant, for instance with %pip install " + dists[0]
	return a
}

func found(module, key string, reason Reason, dists []string, explanation string) Answer {
	a := Answer{Module: module, Key: key, Status: Found, Distribution: dists[0], Reason: reason, Explanation: explanation}
	for _, d := range dists {
		a.Candidates = append(a.Candidates, Candidate{Distribution: d, Rank: Rank(d)})
	}
	return a
}

// inFamily returns the known projects of a family that are named like the dotted path.
func inFamily(parts []string) []string {
	key := strings.Join(parts, ".")
	for _, f := range families() {
		rest, ok := strings.CutPrefix(key, f.root+".")
		if !ok {
			continue
		}
		for _, path := range []string{rest, withoutVersion(rest)} {
			if out := f.named(path); len(out) > 0 {
				return out
			}
		}
	}
	return nil
}

// named returns the known projects that are named like a path below the family's root, the one with the same separators first.
func (f family) named(path string) []string {
	wanted := f.prefix + "-" + require.Normalize(path)
	var out []string
	for name := range alike(compact(wanted)) {
		switch {
		case name == wanted:
			out = slices.Insert(out, 0, name)
		case strings.HasPrefix(name, f.prefix):
			out = append(out, name)
		}
	}
	return out
}

// withoutVersion drops what a generated client adds to its module's name: speech_v1p1beta1 is speech.
func withoutVersion(path string) string {
	if i := strings.LastIndex(path, "_v"); i > 0 && i+2 < len(path) && path[i+2] >= '0' && path[i+2] <= '9' {
		return path[:i]
	}
	return path
}

// sameName is the last resort: the project of the very name.
func sameName(module, root string) Answer {
	shared, owned := Namespace(root)
	switch {
	case shared && !owned:
		return nothing(module, root+" is a namespace that many projects share", "import what is needed by its full name, such as "+root+".something, or name the project to install")
	case strings.HasPrefix(root, "_"):
		return nothing(module, "no project is known to provide "+root, "private modules come with another package; install that one")
	}
	dist := require.Normalize(root)
	if !projectName(dist) {
		return nothing(module, "no project can have the name "+root, "check the spelling")
	}
	rank := Rank(dist)
	explanation := fmt.Sprintf("no table knows %s; there is a popular project of that name", root)
	if rank == 0 {
		explanation = fmt.Sprintf("no table knows %s; only a project of that very name could be meant", root)
	}
	a := found(module, root, BySameName, []string{dist}, explanation)
	if rank == 0 {
		a.Suggestions = suggestions(root)
	}
	return a
}

func nothing(module, explanation, hint string) Answer {
	a := Answer{Module: module, Status: Unknown, Reason: ByNothing, Explanation: explanation, Hint: hint}
	if root, _, _ := strings.Cut(module, "."); importable(root) {
		a.Suggestions = suggestions(root)
	}
	return a
}

func suggestions(root string) []string {
	var out []string
	for key := range tableText.near(root, tableStarts()) {
		if !strings.Contains(key, ".") && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return popularity(a) - popularity(b) })
	return out[:min(len(out), mostSuggestions)]
}

// popularity is the rank of a module's first distribution.
func popularity(module string) int {
	row, _ := tableText.get(module)
	for _, dist := range spelledOut(module, row) {
		if rank := Rank(dist); rank > 0 {
			return rank
		}
	}
	return Rank(module)
}

// importable says whether a name can stand in an import statement.
func importable(module string) bool {
	if module == "" || len(module) > longestName {
		return false
	}
	for part := range strings.SplitSeq(module, ".") {
		if !identifier(part) {
			return false
		}
	}
	return true
}

// projectName says whether an index takes a normalized name: ASCII that begins and ends with a letter or a digit.
func projectName(dist string) bool {
	return plain(strings.ReplaceAll(dist, "-", "")) && !strings.HasPrefix(dist, "-") && !strings.HasSuffix(dist, "-")
}

func identifier(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127 && r != '\uFFFD'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
