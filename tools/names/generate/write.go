package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"cove/internal/python/deps/require"
	"cove/tools/names/wheelfiles"
)

// writeTable writes "module<TAB>distribution distribution ..." lines, sorted by bytes. A distribution whose normalized name is the module's is written as "=".
func writeTable(folder string, modules map[string][]string) error {
	lines := make([]string, 0, len(modules))
	for m, dists := range modules {
		if len(dists) == 0 {
			continue
		}
		short := make([]string, len(dists))
		for i, d := range dists {
			short[i] = d
			if d == require.Normalize(m) {
				short[i] = "="
			}
		}
		lines = append(lines, m+"\t"+strings.Join(short, " "))
	}
	return writeLines(filepath.Join(folder, "table.txt"), lines)
}

// writeProjects writes "compact name<TAB>rank<TAB>name" lines, sorted by bytes; the name is left out when it equals its compact form.
func writeProjects(folder string, p *projects) error {
	lines := make([]string, 0, len(p.order))
	for _, dist := range p.order {
		line := fmt.Sprintf("%s\t%d", wheelfiles.Compact(dist), p.rank[dist])
		if wheelfiles.Compact(dist) != dist {
			line += "\t" + dist
		}
		lines = append(lines, line)
	}
	return writeLines(filepath.Join(folder, "projects.txt"), lines)
}

// writeLines sorts by the part before the tab, so that a search by that part finds its way, and renames a finished file into place.
func writeLines(name string, lines []string) error {
	sort.Slice(lines, func(i, j int) bool {
		a, restA, _ := strings.Cut(lines[i], "\t")
		b, restB, _ := strings.Cut(lines[j], "\t")
		if a != b {
			return a < b
		}
		return restA < restB
	})
	if err := os.WriteFile(name+".new", []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
