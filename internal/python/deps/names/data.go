package names

import (
	_ "embed" // the tables lie in the binary
	"strings"
	"sync"

	"cove/internal/python/deps/require"
)

//go:embed data/table.txt
var tableText lines

//go:embed data/projects.txt
var projectsText lines

var (
	tableStarts    = sync.OnceValue(func() *starts { return startsOf(tableText) })
	projectsStarts = sync.OnceValue(func() *starts { return startsOf(projectsText) })
)

//go:embed data/stdlib.txt
var stdlibText lines

//go:embed data/overrides.txt
var overridesText string

//go:embed data/never.txt
var neverText string

//go:embed data/families.txt
var familiesText string

//go:embed data/interchangeable.txt
var interchangeableText string

//go:embed data/companions.txt
var companionsText string

// override is an answer by hand.
type override struct {
	distributions []string // best first; none means that nothing is to be installed for it
	extras        []string
	specifier     string // of the first
	note          string
}

type family struct {
	root   string // of the modules: "google"
	prefix string // of the distributions: "google"
	owned  bool   // whether one distribution has the root for its own
}

// entries yields the lines of a text kept by hand, split at tabs, without comments.
func entries(text string) [][]string {
	var out [][]string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, strings.Split(line, "\t"))
		}
	}
	return out
}

var overrides = sync.OnceValue(func() map[string]override {
	out := map[string]override{}
	for _, fields := range entries(overridesText) {
		var o override
		if len(fields) > 2 {
			o.note = fields[2]
		}
		for i, word := range strings.Fields(fields[1]) {
			name := word
			if at := strings.IndexAny(word, "<>=!~"); at >= 0 {
				name, o.specifier = word[:at], word[at:]
			}
			name, extras, _ := strings.Cut(strings.TrimSuffix(name, "]"), "[")
			if i == 0 && extras != "" {
				o.extras = strings.Split(extras, ",")
			}
			if name != "-" {
				o.distributions = append(o.distributions, name)
			}
		}
		out[fields[0]] = o
	}
	return out
})

// never maps modules to what to do instead. A "= hint" line stands before the names that it is for.
var never = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	hint := ""
	for _, fields := range entries(neverText) {
		if h, ok := strings.CutPrefix(fields[0], "= "); ok {
			hint = h
			continue
		}
		if len(fields) > 1 {
			out[fields[0]] = fields[1]
			continue
		}
		for _, name := range strings.Fields(fields[0]) {
			out[name] = hint
		}
	}
	return out
})

var families = sync.OnceValue(func() []family {
	var out []family
	for _, fields := range entries(familiesText) {
		out = append(out, family{root: fields[0], prefix: fields[1], owned: len(fields) > 2 && fields[2] == "owned"})
	}
	return out
})

var companions = sync.OnceValue(func() map[string][]require.Requirement {
	out := map[string][]require.Requirement{}
	for _, fields := range entries(companionsText) {
		for _, text := range strings.Fields(fields[1]) {
			if r, err := require.Parse(text); err == nil {
				out[fields[0]] = append(out[fields[0]], r)
			}
		}
	}
	return out
})

var interchangeable = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{}
	for _, fields := range entries(interchangeableText) {
		group := strings.Fields(fields[0])
		for _, name := range group {
			out[name] = group
		}
	}
	return out
})
