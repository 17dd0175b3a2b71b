package require

import (
	"fmt"
	"slices"
	"strings"
)

// clause is one comparison of a specifier.
type clause struct {
	operator string
	version  string // as written; with .* at its end when wildcard
	wildcard bool
}

// operators are those of PEP 440, such that none is preceded by a beginning of itself.
var operators = []string{"===", "~=", "==", "!=", "<=", ">=", "<", ">"}

// parseSpecifier reads a specifier without parentheses. why is not "" when it is none.
func parseSpecifier(text string) (clauses []clause, why string) {
	if len(text) > longestSpecifier {
		return nil, fmt.Sprintf("its versions are longer than %d characters", longestSpecifier)
	}
	if strings.TrimSpace(text) == "" {
		return nil, ""
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		c, why := parseClause(part)
		if why != "" {
			return nil, why
		}
		clauses = append(clauses, c)
	}
	if len(clauses) == 0 {
		return nil, "there is a comma without versions"
	}
	return clauses, ""
}

func parseClause(text string) (c clause, why string) {
	at := slices.IndexFunc(operators, func(o string) bool { return strings.HasPrefix(text, o) })
	if at < 0 {
		if strings.HasPrefix(text, "=") {
			return clause{}, "a version is fixed with two equals signs, =="
		}
		return clause{}, fmt.Sprintf("%q does not begin with one of ==, !=, >=, <=, >, <, ~= and ===", shortened(text))
	}
	c.operator = operators[at]
	c.version = strings.TrimSpace(strings.TrimPrefix(text, c.operator))
	bare, wildcard := strings.CutSuffix(c.version, ".*")
	c.wildcard = wildcard && c.operator != "==="
	if c.operator == "===" {
		bare = c.version
		if _, foreign := split(bare, alphanumeric+".!+-_*"); foreign != "" || bare == "" {
			return clause{}, fmt.Sprintf("%q is not a version", shortened(c.version))
		}
		return c, ""
	}
	v, known := parseVersion(bare)
	switch {
	case !known:
		return clause{}, fmt.Sprintf("%q is not a version", shortened(c.version))
	case c.wildcard && c.operator != "==" && c.operator != "!=":
		return clause{}, "only == and != can be followed by a version that ends in .*"
	case c.wildcard && v.String() != v.BaseVersion():
		return clause{}, "a version that ends in .* consists of numbers alone"
	case v.Local() != "" && c.operator != "==" && c.operator != "!=":
		return clause{}, "only ==, != and === can be followed by a version with a local part (+)"
	case c.operator == "~=" && len(v.release()) < 2:
		return clause{}, "~= needs a version of two numbers at least"
	}
	return c, ""
}

func joined(clauses []clause) string {
	parts := make([]string, len(clauses))
	for i, c := range clauses {
		parts[i] = c.operator + c.version
	}
	return strings.Join(parts, ",")
}

// Allows says whether version satisfies the specifier; the marker plays no part in it. Pre-releases are versions like any other
// here: to prefer releases is up to who chooses. A version that PEP 440 does not know satisfies none but "".
func (r Requirement) Allows(version string) bool {
	clauses, why := parseSpecifier(r.Specifier)
	if why != "" {
		return false
	}
	if len(clauses) == 0 {
		return true
	}
	v, known := parseVersion(version)
	if !known {
		return false
	}
	return !slices.ContainsFunc(clauses, func(c clause) bool { return !c.allows(v) })
}

// Pin returns the version of a specifier that allows one release alone: ==1.2 or ===1.2, without a wildcard.
func (r Requirement) Pin() (version string, ok bool) {
	clauses, why := parseSpecifier(r.Specifier)
	if why != "" {
		return "", false
	}
	at := slices.IndexFunc(clauses, func(c clause) bool { return c.operator == "===" || c.operator == "==" && !c.wildcard })
	if at < 0 {
		return "", false
	}
	if version = clauses[at].version; len(clauses) > 1 && !r.Allows(version) {
		return "", false
	}
	return version, true
}

func (c clause) allows(v version) bool {
	if c.operator == "===" {
		return strings.EqualFold(v.Original(), c.version) || strings.EqualFold(v.String(), c.version)
	}
	bare := strings.TrimSuffix(c.version, ".*")
	s, known := parseVersion(bare)
	if !known {
		return false
	}
	switch c.operator {
	case "==":
		return c.equal(v, s)
	case "!=":
		return !c.equal(v, s)
	case "~=":
		return v.public().compare(s) >= 0 && v.hasPrefix(s.epoch(), s.release()[:len(s.release())-1])
	case ">=":
		return v.public().compare(s) >= 0
	case "<=":
		return v.public().compare(s) <= 0
	case "<":
		if !s.IsPreRelease() { // its own pre-releases are not below it
			s, _ = parseVersion(s.String() + ".dev0")
		}
		return v.compare(s) < 0
	default:
		return v.public().compare(s) > 0 && (s.IsPostRelease() || !v.IsPostRelease() || v.withoutPost().compare(s) != 0)
	}
}

func (c clause) equal(v, s version) bool {
	if c.wildcard {
		return v.hasPrefix(s.epoch(), s.release())
	}
	if s.Local() == "" {
		v = v.public()
	}
	return v.compare(s) == 0
}
