// Command countfindings counts what package screen finds in the Python files and notebooks of folders, for its hits and its false alarms:
//
//	go run ./tools/countfindings [-each] FOLDER ...
//
// It prints, for each folder, how many programs (files, or cells of notebooks) and how many of the folders in it have a finding, and one of a serious rule, and how often
// each rule was found. It runs nothing of them.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cove/internal/code/screen"
)

// count is what was found in a folder.
type count struct {
	programs, found, serious int
	bytes                    int
	took                     time.Duration
	groups                   map[string]int // the folders in it: 0 nothing, 1 found, 2 serious
	rules                    map[string]int
}

func main() {
	each := flag.Bool("each", false, "print each serious finding")
	flag.Parse()
	for _, root := range flag.Args() {
		c := count{groups: map[string]int{}, rules: map[string]int{}}
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			programs, err := programsIn(path)
			if err != nil {
				return err
			}
			below, _ := filepath.Rel(root, path)
			group, _, _ := strings.Cut(below, string(filepath.Separator))
			for _, code := range programs {
				c.look(group, below, code, *each)
			}
			return nil
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, "countfindings:", err)
			os.Exit(1)
		}
		c.print(root)
	}
}

// programsIn returns the programs of a file: none, itself, or the cells of a notebook.
func programsIn(path string) ([]string, error) {
	extension := filepath.Ext(path)
	if extension != ".py" && extension != ".ipynb" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil || extension == ".py" {
		return []string{string(text)}, err
	}
	var notebook struct {
		Cells []struct {
			Type   string          `json:"cell_type"`
			Source json.RawMessage `json:"source"`
		} `json:"cells"`
	}
	if json.Unmarshal(text, &notebook) != nil {
		return nil, nil
	}
	var programs []string
	for _, cell := range notebook.Cells {
		var whole string
		var lines []string
		if cell.Type != "code" || json.Unmarshal(cell.Source, &whole) != nil && json.Unmarshal(cell.Source, &lines) != nil {
			continue
		}
		programs = append(programs, whole+strings.Join(lines, ""))
	}
	return programs, nil
}

func (c *count) look(group, name, code string, each bool) {
	began := time.Now()
	found := screen.Look(code)
	c.took += time.Since(began)
	c.programs++
	c.bytes += len(code)
	level, seen := 0, map[string]bool{}
	for _, f := range found {
		level = max(level, 1)
		if screen.Serious(f.Rule) {
			level = 2
			if each {
				fmt.Printf("  %s:%d %s: %s\n", name, f.Line, f.Rule, f.What)
			}
		}
		if !seen[f.Rule] {
			seen[f.Rule] = true
			c.rules[f.Rule]++
		}
	}
	if level > 0 {
		c.found++
	}
	if level > 1 {
		c.serious++
	}
	c.groups[group] = max(c.groups[group], level)
}

func (c *count) print(root string) {
	found, serious := 0, 0
	for _, level := range c.groups {
		if level > 0 {
			found++
		}
		if level > 1 {
			serious++
		}
	}
	fmt.Printf("%s: %d programs, %d with a finding, %d with a serious one; of %d folders in it %d and %d; %.1f µs for each, %.0f MB/s\n", root, c.programs, c.found, c.serious,
		len(c.groups), found, serious, float64(c.took.Microseconds())/float64(max(c.programs, 1)), float64(c.bytes)/1e6/max(c.took.Seconds(), 1e-9))
	for _, r := range screen.Rules() {
		if n := c.rules[r.Name]; n > 0 {
			fmt.Printf("  %-18s %d\n", r.Name, n)
		}
	}
}
