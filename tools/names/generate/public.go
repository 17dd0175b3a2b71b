package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cove/internal/python/deps/require"
)

// readProjects reads the list of the most downloaded projects (hugovk/top-pypi-packages, top-pypi-packages.json).
func readProjects(name string) (*projects, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("the list of projects: %w", err)
	}
	var list struct {
		Updated string `json:"last_update"`
		Rows    []struct {
			Downloads int64  `json:"download_count"`
			Project   string `json:"project"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("the list of projects in %s: %w", name, err)
	}
	out := &projects{rank: map[string]int{}, downloads: map[string]int64{}, updated: list.Updated}
	for _, row := range list.Rows {
		dist := require.Normalize(row.Project)
		if out.rank[dist] == 0 {
			out.order = append(out.order, dist)
			out.rank[dist] = len(out.order)
			out.downloads[dist] = row.Downloads
		}
	}
	return out, nil
}

// dump prints pigar's database as "distribution<TAB>module" lines. Python reads it: a SQLite library would be a heavy guest here.
const dump = `
import sqlite3, sys
db = sqlite3.connect("file:" + sys.argv[1] + "?mode=ro", uri=True)
db.text_factory = lambda b: b.decode("utf-8", "replace")
query = "select d.name, m.name from top_level_module_names m join distributions d on d.id = m.distribution_id"
for dist, module in db.execute(query):
    if module and "\t" not in module and "\n" not in module:
        print(dist, module, sep="\t")
`

// readPigar reads the database that the project pigar (damnever/pigar) publishes in its wheel.
func readPigar(name string, c *claims) error {
	if _, err := os.Stat(name); err != nil {
		return err
	}
	out, err := exec.Command("python3", "-c", dump, name).Output()
	if err != nil {
		return fmt.Errorf("pigar's database in %s: %w", name, err)
	}
	return eachLine(bytes.NewReader(out), func(line string) error {
		dist, module, _ := strings.Cut(line, "\t")
		// Wheels made on Windows were listed by path.
		module, _, _ = strings.Cut(strings.ReplaceAll(module, `\`, "/"), "/")
		module, _, _ = strings.Cut(module, ".")
		if module != "None" && !strings.HasPrefix(module, "__") {
			c.add(fromPigar, dist, module)
		}
		return nil
	})
}

// readUPM reads replit/upm's internal/backends/python/pkgs.json: one JSON object per line.
func readUPM(name string, c *claims) error {
	return inFile(name, func(line string) error {
		var row struct {
			Name     string   `json:"name"`
			Modules  []string `json:"modules"`
			Requires []string `json:"requires_dist"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			return err
		}
		for _, r := range row.Requires {
			c.requires(row.Name, r)
		}
		for _, m := range row.Modules {
			c.add(fromUPM, row.Name, m)
		}
		return nil
	})
}

// readConda reads the mapping of conda-forge (regro/cf-graph-countyfair) as the project depfinder publishes it in its wheel.
func readConda(name string, c *claims) error {
	var module string
	return inFile(name, func(line string) error {
		key, value, _ := strings.Cut(strings.TrimLeft(line, "- "), ": ")
		value = strings.Trim(value, `'"`)
		switch key {
		case "import_name":
			module = value
		case "pypi_name":
			c.add(fromConda, value, module)
		}
		return nil
	})
}

// readPairs reads "module<separator>distribution" lines, or the other way round.
func readPairs(from source, separator string, distFirst bool) func(string, *claims) error {
	return func(name string, c *claims) error {
		return inFile(name, func(line string) error {
			module, dist, ok := strings.Cut(line, separator)
			if !ok {
				return nil
			}
			if distFirst {
				module, dist = dist, module
			}
			c.add(from, dist, strings.TrimSuffix(module, ".pyi"))
			return nil
		})
	}
}

func inFile(name string, use func(line string) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := eachLine(f, use); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return nil
}

func eachLine(r io.Reader, use func(line string) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" {
			if err := use(line); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}
