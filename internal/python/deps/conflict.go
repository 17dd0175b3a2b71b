package deps

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cove/internal/python/deps/require"
)

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// mentions says whether uv's words speak of a project.
func mentions(words, name string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(words, func(r rune) bool { return strings.ContainsRune(" ,[]<>=!~;()`'", r) }), func(word string) bool {
		return require.Normalize(strings.TrimRight(word, ".")) == name
	})
}

// speaksOfWheels says whether uv gave as its reason that something has no wheel.
func speaksOfWheels(words string) bool {
	return strings.Contains(words, "no wheels") || strings.Contains(words, "no usable wheels") || strings.Contains(words, "no compatible wheels")
}

// What uv says of projects without anything to install.
var (
	noWheels = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`([A-Za-z0-9][A-Za-z0-9._-]*?)(?:==\S+)? has no (?:usable |compatible )?wheels`)
	})
	noVersions = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`there (?:are|is) no versions? of ([A-Za-z0-9][A-Za-z0-9._-]*?)(?:[<>=!~\[][^ ]*)?(?: |,|$)`)
	})
)

// shorten keeps of a long explanation what a person needs.
func shorten(words string) string {
	const limit = 400
	if at := strings.Index(words, " And because you require"); at > 0 {
		words = words[:at]
	}
	words = strings.TrimSuffix(strings.TrimRight(words, "."), ", we can conclude that your requirements are unsatisfiable")
	words = strings.TrimPrefix(words, "Because ")
	if len(words) <= limit {
		return words
	}
	cut := strings.LastIndexByte(words[:limit], ' ')
	return words[:max(cut, 0)] + " ..."
}

// needs finds in uv's words who needs which versions of what, as in "foo==1.0 depends on numpy<2 and" or "all versions of foo depend on numpy>=1,<2".
var needs = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?(?:[<>=!~][^\s]*)? depends? on ([A-Za-z0-9][A-Za-z0-9._-]*?)(?:\[[^\]]*\])?((?:,?[<>=!~]=?=?[0-9A-Za-z.*+!]+)+)`)
})

// demand returns who needs which other versions of something that is fixed.
func demand(words string, fixed map[string]string) (name, spec, who string) {
	for _, m := range needs().FindAllStringSubmatch(words, -1) {
		needed := require.Normalize(m[2])
		version, there := fixed[needed]
		spec := strings.TrimRight(m[3], ".")
		if there && !(require.Requirement{Name: needed, Specifier: spec}).Allows(version) {
			return needed, spec, m[1]
		}
	}
	return "", "", ""
}

// required finds what uv was asked for itself, as in "you require numpy<2".
var required = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`you require ([A-Za-z0-9][A-Za-z0-9._-]*?)((?:,?[<>=!~]=?=?[0-9A-Za-z.*+!]+)+)`)
})

// conflictOf says in words which imported distributions stand in the way of what is asked for.
func conflictOf(words string, loaded, solved map[string]string, asked []string) string {
	if name, spec, who := demand(words, loaded); name != "" {
		return fmt.Sprintf("%s %s is imported, and %s needs %s%s", name, loaded[name], who, name, spec)
	}
	for _, m := range required().FindAllStringSubmatch(words, -1) {
		name := require.Normalize(m[1])
		if version, there := loaded[name]; there && !(require.Requirement{Name: name, Specifier: m[2]}).Allows(version) {
			return fmt.Sprintf("%s %s is imported, and %s%s is asked for", name, version, name, m[2])
		}
	}
	var clauses []string
	for _, name := range sortedKeys(loaded) {
		if version, there := solved[name]; there && version != loaded[name] {
			clauses = append(clauses, fmt.Sprintf("%s %s is imported, and %s takes %s", name, loaded[name], strings.Join(asked, ", "), version))
		}
	}
	if len(clauses) > 0 {
		return strings.Join(clauses, "; ")
	}
	return fmt.Sprintf("%s does not work together with the packages that are imported", strings.Join(asked, ", "))
}

// strained names the environment's packages that were made for other versions than those which replace the environment's.
func (i *Installer) strained(versions map[string]string) []string {
	base := i.options.Env.Packages
	changed := map[string]string{}
	for name, version := range versions {
		if old, there := base[name]; there && old != version {
			changed[name] = version
		}
	}
	if len(changed) == 0 {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(i.options.Env.Dir, "lib", "python"+i.python, "site-packages", "*.dist-info", "METADATA"))
	if err != nil {
		return nil
	}
	var notes []string
	for _, file := range files {
		name := require.Normalize(cmp.Or(firstPart(filepath.Base(filepath.Dir(file))), "x"))
		if _, replaced := changed[name]; replaced {
			continue
		}
		for _, r := range requirementsOf(file) {
			if version, is := changed[r.Name]; is && r.Marker == "" && !r.Allows(version) {
				notes = append(notes, fmt.Sprintf("%s is now %s, but %s, which is part of the environment, needs %s%s and may not work", r.Name, version, name, r.Name, r.Specifier))
			}
		}
	}
	return notes
}

func firstPart(folder string) string {
	name, _, _ := strings.Cut(folder, "-")
	return name
}

// requirementsOf reads the dependencies of an installed distribution.
func requirementsOf(metadata string) []require.Requirement {
	f, err := os.Open(metadata)
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []require.Requirement
	lines := bufio.NewScanner(f)
	for lines.Scan() && lines.Text() != "" {
		if text, ok := strings.CutPrefix(lines.Text(), "Requires-Dist: "); ok {
			if r, err := require.Parse(text); err == nil {
				out = append(out, r)
			}
		}
	}
	return out
}
