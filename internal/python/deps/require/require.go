// Package require reads and writes requirements: a project's name, extras and a version specifier, as PEP 503, PEP 508 and
// PEP 440 have them. URLs and paths are no requirements here.
package require

import (
	"fmt"
	"slices"
	"strings"

	"cove/internal/core/problem"
)

const (
	longestRequirement = 2000 // characters, with its marker
	longestName        = 200
	longestSpecifier   = 500
	mostExtras         = 50
	mostRequirements   = 2000 // of one ParseAll, and words of one ParsePip
	longestFile        = 1 << 20
)

// Requirement is one project that is asked for. Its zero value is none.
type Requirement struct {
	Name      string   // normalized, PEP 503
	Extras    []string // normalized, sorted
	Specifier string   // PEP 440, e.g. ">=1.2,<2"; "" means any version
	Marker    string   // PEP 508 environment marker, not evaluated; "" means always
}

// Normalize returns a project's name in the spelling of PEP 503: lower case, with one hyphen for each run of hyphens, dots and
// underscores. It does not say whether the name is a valid one.
func Normalize(name string) string {
	var b strings.Builder
	run := false
	for _, c := range strings.ToLower(name) {
		separator := c == '-' || c == '_' || c == '.'
		switch {
		case !separator:
			b.WriteRune(c)
		case !run:
			b.WriteByte('-')
		}
		run = separator
	}
	return b.String()
}

// Parse reads one requirement. Problems: requirement_invalid; requirement_not_allowed for URLs, paths and VCS.
func Parse(text string) (Requirement, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return Requirement{}, invalid(text, "it is empty")
	case len(text) > longestRequirement:
		return Requirement{}, invalid(text, fmt.Sprintf("it is longer than %d characters", longestRequirement))
	case strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\t' || c > '~' }):
		return Requirement{}, invalid(text, "it has characters other than printable ASCII")
	}
	if place(text) {
		return Requirement{}, notAllowed(text)
	}
	name, rest := split(text, alphanumeric+"-_.")
	if why := nameFault(name); why != "" {
		return Requirement{}, invalid(text, why)
	}
	r := Requirement{Name: Normalize(name)}
	rest = strings.TrimLeft(rest, " \t")
	var err error
	if strings.HasPrefix(rest, "[") {
		if r.Extras, rest, err = parseExtras(text, rest); err != nil {
			return Requirement{}, err
		}
	}
	if strings.HasPrefix(rest, "@") {
		return Requirement{}, notAllowed(text)
	}
	specifier, marker, marked := strings.Cut(rest, ";")
	specifier = strings.TrimSpace(specifier)
	if inner, open := strings.CutPrefix(specifier, "("); open {
		closed := false
		if specifier, closed = strings.CutSuffix(inner, ")"); !closed {
			return Requirement{}, invalid(text, "a parenthesis is not closed")
		}
	}
	clauses, why := parseSpecifier(specifier)
	if why != "" {
		return Requirement{}, invalid(text, why)
	}
	r.Specifier = joined(clauses)
	if !marked {
		return r, nil
	}
	r.Marker = strings.TrimSpace(strings.ReplaceAll(marker, "\t", " "))
	if why := markerFault(r.Marker); why != "" {
		return Requirement{}, invalid(text, why)
	}
	return r, nil
}

func nameFault(name string) string {
	switch {
	case name == "":
		return "it does not begin with the name of a project"
	case len(name) > longestName:
		return fmt.Sprintf("its name is longer than %d characters", longestName)
	case strings.Trim(name, "-_.") != name:
		return "the name of a project begins and ends with a letter or digit"
	}
	return ""
}

func parseExtras(text, rest string) (extras []string, after string, err error) {
	inner, after, closed := strings.Cut(rest[1:], "]")
	if !closed {
		return nil, "", invalid(text, "a bracket is not closed")
	}
	after = strings.TrimLeft(after, " \t")
	if strings.TrimSpace(inner) == "" {
		return nil, after, nil
	}
	for extra := range strings.SplitSeq(inner, ",") {
		extra = strings.TrimSpace(extra)
		if _, foreign := split(extra, alphanumeric+"-_."); foreign != "" || nameFault(extra) != "" {
			return nil, "", invalid(text, "the name of an extra consists of letters, digits, hyphens, dots and underscores")
		}
		extras = append(extras, Normalize(extra))
	}
	slices.Sort(extras)
	extras = slices.Compact(extras)
	if len(extras) > mostExtras {
		return nil, "", invalid(text, fmt.Sprintf("it has more than %d extras", mostExtras))
	}
	return extras, after, nil
}

// ParseAll reads requirements, one a line, with comments and blank lines, as pip's files have them. Options (lines with -) are
// a problem of code requirement_not_allowed.
func ParseAll(text string) ([]Requirement, error) {
	if len(text) > longestFile {
		return nil, problem.New(problem.RequirementInvalid, fmt.Sprintf("a list of requirements is longer than %d bytes", longestFile))
	}
	var out []Requirement
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(uncommented(line))
		if line == "" {
			continue
		}
		if strings.HasPrefix(line, "-") || strings.Contains(line, " --") {
			return nil, problem.New(problem.RequirementNotAllowed, fmt.Sprintf("options are not allowed among requirements: %s", shortened(line))).
				WithHint("list projects alone, one a line")
		}
		r, err := Parse(line)
		if err != nil {
			return nil, err
		}
		if out = append(out, r); len(out) > mostRequirements {
			return nil, problem.New(problem.RequirementInvalid, fmt.Sprintf("there are more than %d requirements", mostRequirements))
		}
	}
	return out, nil
}

// uncommented cuts a comment off, which begins at a # that begins the line or follows white space.
func uncommented(line string) string {
	for i, c := range line {
		if c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return line[:i]
		}
	}
	return line
}

// String writes the requirement, one line, such that Parse reads it again.
func (r Requirement) String() string {
	var b strings.Builder
	b.WriteString(r.Name)
	if len(r.Extras) > 0 {
		b.WriteString("[" + strings.Join(r.Extras, ",") + "]")
	}
	b.WriteString(r.Specifier)
	if r.Marker != "" {
		b.WriteString(" ; " + r.Marker)
	}
	return b.String()
}

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// split cuts text after the longest beginning that consists of the given characters.
func split(text, characters string) (head, rest string) {
	rest = strings.TrimLeft(text, characters)
	return text[:len(text)-len(rest)], rest
}

// place says whether text names a file, a folder or a URL, as pip tells them from names.
func place(text string) bool {
	head, _, _ := strings.Cut(text, ";")
	head = strings.TrimSpace(head)
	lower := strings.ToLower(head)
	switch {
	case strings.ContainsAny(head, `/\`), strings.HasPrefix(head, "."), strings.HasPrefix(head, "~") && !strings.HasPrefix(head, "~="):
		return true
	case strings.HasPrefix(lower, "git+"), strings.HasPrefix(lower, "hg+"), strings.HasPrefix(lower, "svn+"), strings.HasPrefix(lower, "bzr+"), strings.HasPrefix(lower, "file:"):
		return true
	}
	return slices.ContainsFunc([]string{".whl", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip"}, func(ending string) bool {
		return strings.HasSuffix(lower, ending)
	})
}

func invalid(text, why string) error {
	return problem.New(problem.RequirementInvalid, fmt.Sprintf("%q is not a requirement: %s", shortened(text), why)).
		WithHint(`write a project's name and, if need be, versions: numpy, "numpy>=1.26,<3"`)
}

func notAllowed(text string) error {
	return problem.New(problem.RequirementNotAllowed, fmt.Sprintf("%q is not allowed: packages come from the package index alone, not from URLs, paths or repositories", shortened(text))).
		WithHint("ask for the project by its name")
}

func shortened(text string) string {
	const most = 120
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
