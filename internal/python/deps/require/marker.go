package require

import (
	"slices"
	"strings"
)

// deepestMarker is how many parentheses may be open at once in a marker.
const deepestMarker = 20

// markerVariables are those of PEP 508, and extras and dependency_groups of later ones.
var markerVariables = []string{
	"python_version", "python_full_version", "os_name", "sys_platform", "platform_release", "platform_system", "platform_version",
	"platform_machine", "platform_python_implementation", "implementation_name", "implementation_version", "extra", "extras", "dependency_groups",
}

// markerReader takes a marker apart; what is left of it is rest.
type markerReader struct{ rest string }

// markerFault says why text is no marker, or "".
func markerFault(text string) string {
	m := &markerReader{rest: text}
	if !m.any(0) || m.rest != "" {
		return `the text after the semicolon is not a marker such as python_version >= "3.10"`
	}
	return ""
}

func (m *markerReader) any(depth int) bool {
	for {
		if !m.all(depth) {
			return false
		}
		if !m.word("or") {
			return true
		}
	}
}

func (m *markerReader) all(depth int) bool {
	for {
		if !m.one(depth) {
			return false
		}
		if !m.word("and") {
			return true
		}
	}
}

func (m *markerReader) one(depth int) bool {
	if m.token("(") {
		return depth < deepestMarker && m.any(depth+1) && m.token(")")
	}
	return m.value() && m.operator() && m.value()
}

func (m *markerReader) operator() bool {
	if m.word("in") {
		return true
	}
	if m.word("not") {
		return m.word("in")
	}
	return slices.ContainsFunc(operators, m.token)
}

func (m *markerReader) value() bool {
	for _, quote := range []string{`"`, `'`} {
		if m.token(quote) {
			content, rest, closed := strings.Cut(m.rest, quote)
			m.rest = strings.TrimLeft(rest, " ")
			// A line of requirements that has these is read differently from tool to tool.
			return closed && !strings.ContainsAny(content, "\\#;`")
		}
	}
	return slices.ContainsFunc(markerVariables, m.word)
}

func (m *markerReader) token(t string) bool {
	rest, ok := strings.CutPrefix(m.rest, t)
	if !ok {
		return false
	}
	if m.rest = rest; t != `"` && t != `'` {
		m.rest = strings.TrimLeft(rest, " ")
	}
	return true
}

func (m *markerReader) word(w string) bool {
	head, rest := split(m.rest, alphanumeric+"_")
	if head != w {
		return false
	}
	m.rest = strings.TrimLeft(rest, " ")
	return true
}
