package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/code/advice"
	"cove/internal/testkit/testneeds"
)

// What cove check did on the programs of internal/code/advice/testdata/faults when it was last improved. It may do better: change the numbers then.
const (
	leastHits       = 58 // faults that were found
	mostMisses      = 0  // faults that were not found
	mostFalseAlarms = 0  // findings where there is no fault, notes among them
)

// faultMark finds what a line of those programs should be told of.
var faultMark = regexp.MustCompile(`# fault: ([\w-]+(?:, [\w-]+)*)`)

type ruleAt struct {
	line int
	rule string
}

type checked struct {
	Files []advice.Report `json:"files"`
}

// check runs cove check in the standard environment and returns what it printed as JSON.
func check(t *testing.T, code int, args ...string) (c *command, found checked) {
	t.Helper()
	c = newCommand(t, append([]string{"check", "--json"}, args...)...)
	c.setenv("COVE_PACKAGES=standard")
	r := c.run()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\nstdout: %s\nstderr: %s", r.code, code, r.stdout, r.stderr)
	}
	if err := json.Unmarshal([]byte(r.stdout), &found); err != nil {
		t.Fatalf("%v\n%s", err, r.stdout)
	}
	return c, found
}

// TestKnownFaults counts which faults of 20 programs cove check finds, and what it finds that is none.
func TestKnownFaults(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	names, err := filepath.Glob("../internal/code/advice/testdata/faults/*.py")
	if err != nil || len(names) != 20 {
		t.Fatalf("%d programs, %v; want 20", len(names), err)
	}
	for i, name := range names {
		if names[i], err = filepath.Abs(name); err != nil {
			t.Fatal(err)
		}
	}
	_, found := check(t, 1, names...)
	if len(found.Files) != len(names) {
		t.Fatalf("%d reports of %d files", len(found.Files), len(names))
	}
	hits, misses, falseAlarms := 0, 0, 0
	for i, r := range found.Files {
		if len(r.Notes) > 0 {
			t.Errorf("%s: %q", r.File, r.Notes)
		}
		wanted := faultsOf(t, names[i])
		for _, f := range r.Findings {
			at := ruleAt{f.Line, f.Rule}
			if !wanted[at] {
				falseAlarms++
				t.Logf("false alarm: %s:%d %s: %s", filepath.Base(r.File), f.Line, f.Rule, f.Message)
				continue
			}
			hits++
			delete(wanted, at)
		}
		for at := range wanted {
			misses++
			t.Logf("missed: %s:%d %s", filepath.Base(r.File), at.line, at.rule)
		}
	}
	t.Logf("%d hits, %d misses, %d false alarms", hits, misses, falseAlarms)
	if hits < leastHits || misses > mostMisses || falseAlarms > mostFalseAlarms {
		t.Errorf("%d hits, %d misses, %d false alarms; at worst %d, %d, %d", hits, misses, falseAlarms, leastHits, mostMisses, mostFalseAlarms)
	}
}

func faultsOf(t *testing.T, name string) map[ruleAt]bool {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	out := map[ruleAt]bool{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if m := faultMark.FindStringSubmatch(line); m != nil {
			for _, rule := range strings.Split(m[1], ", ") {
				out[ruleAt{n, rule}] = true
			}
		}
	}
	return out
}

// TestSlowFormsAreSlow runs every slow form beside the faster one: same results, and less time.
func TestSlowFormsAreSlow(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	c := newCommand(t, "check", "--measure", "--json")
	c.setenv("COVE_PACKAGES=standard")
	r := c.run()
	var out struct{ Measured []advice.Measured }
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil || r.code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", r.code, err, r.stdout, r.stderr)
	}
	var rules []string
	for _, m := range out.Measured {
		rules = append(rules, m.Rule)
		if m.Ratio() < 1.5 {
			t.Errorf("%s: the faster form is %.2f times as fast", m.Rule, m.Ratio())
		}
	}
	if !slices.Equal(rules, advice.SlowForms()) {
		t.Errorf("measured %q, want %q", rules, advice.SlowForms())
	}
}

const slowAndBig = `import sys


def slow(n):
    total = 0
    for i in range(n):
        total += i % 7
    return total


def big():
    blocks = [bytes(1000) for _ in range(60_000)]
    return len(blocks)


print(slow(12_000_000), big(), sys.argv[1:])
sys.exit(3)
`

// TestProfileByLine finds the line that takes the time and the one that takes the memory, and says how the program ended. A profile consists of samples: a machine on which nothing
// else gets its turn has been seen to take two of a program, both of one line; and the profiler, which is another project's, has been seen to end in another way than the program.
// Either is logged, and the profile made again.
func TestProfileByLine(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	name := filepath.Join(t.TempDir(), "work.py")
	if err := os.WriteFile(name, []byte(slowAndBig), 0o644); err != nil {
		t.Fatal(err)
	}
	for attempt := 1; ; attempt++ {
		f := profileOf(t, name)
		p := f.Profile
		if p == nil {
			t.Fatalf("no profile; notes %q", f.Notes)
		}
		loop, block := 0.0, int64(0)
		for _, l := range p.Lines {
			switch l.Line {
			case 6, 7:
				loop += l.Seconds()
			case 12:
				block = l.Peak
			}
		}
		wrong := ""
		switch {
		case p.Exit == nil:
			wrong = "no exit code"
		case *p.Exit != 3 || !strings.Contains(p.Output, "['--year', '2025']"):
			wrong = fmt.Sprintf("exit code %d, output %q", *p.Exit, p.Output)
		case loop < p.Seconds/4:
			wrong = fmt.Sprintf("the loop took %.2f s of %.2f s: %+v", loop, p.Seconds, p.Lines)
		}
		if wrong != "" && attempt < 4 {
			t.Logf("attempt %d: %s; notes %q", attempt, wrong, f.Notes)
			continue
		}
		if wrong != "" {
			t.Errorf("%s; notes %q", wrong, f.Notes)
		}
		if block < 40<<20 || block > 200<<20 || p.Peak < 40<<20 {
			t.Errorf("the list took %d bytes, the program %d; it is 60 MB large", block, p.Peak)
		}
		return
	}
}

func profileOf(t *testing.T, name string) advice.Report {
	t.Helper()
	c := newCommand(t, "check", "--json", "--profile", "--fail-on", "never", name, "--", "--year", "2025")
	c.setenv("COVE_PACKAGES=standard")
	r := c.run()
	var found checked
	if err := json.Unmarshal([]byte(r.stdout), &found); err != nil || r.code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", r.code, err, r.stdout, r.stderr)
	}
	return found.Files[0]
}

// TestBenchmark measures a program at three sizes, plots its growth, and puts two programs with the same output beside each other. What follows from times is tested where times are given
// (package advice): those of this machine depend on what else it does.
func TestBenchmark(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	c := newCommand(t, "check", "--json", "--bench", "--runs", "3", "--sizes", "1000,2000,6000", "-o", "growth.png", "square.py")
	c.bound = 4 * patience // what it measures is work, which other tests slow down
	c.setenv("COVE_PACKAGES=standard")
	c.file("square.py", "import sys\nn = int(sys.argv[1])\nprint(sum(1 for i in range(n) for j in range(n) if i < j))\n")
	r := c.run()
	var b advice.Benchmark
	if err := json.Unmarshal([]byte(r.stdout), &b); err != nil || r.code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", r.code, err, r.stdout, r.stderr)
	}
	if len(b.Timed) != 3 || b.Start <= 0 {
		t.Errorf("timed %+v, start %v", b.Timed, b.Start)
	}
	for i, size := range []int{1000, 2000, 6000} {
		if one := b.Timed[min(i, len(b.Timed)-1)]; one.Size != size || len(one.Values) != 3 || one.Best <= 0 || one.Memory <= 0 {
			t.Errorf("size %d: %+v", size, one)
		}
	}
	if png, err := os.ReadFile(c.path("growth.png")); err != nil || !bytes.HasPrefix(png, []byte("\x89PNG")) {
		t.Errorf("plot: %v", err)
	}

	c = newCommand(t, "check", "--json", "--bench", "--runs", "3", "--against", "new.py", "old.py")
	c.bound = 2 * patience
	c.setenv("COVE_PACKAGES=standard")
	c.file("old.py", "total = 0\nfor i in range(4_000_000):\n    total += i\nprint(total)\n")
	c.file("new.py", "n = 4_000_000\nprint(n * (n - 1) // 2)\n")
	r = c.run()
	b = advice.Benchmark{}
	if err := json.Unmarshal([]byte(r.stdout), &b); err != nil || r.code != 0 || len(b.Timed) != 2 {
		t.Fatalf("exit code %d, %v\n%s%s", r.code, err, r.stdout, r.stderr)
	}
	if a := b.Timed[1].Against; a == nil || !a.Same || a.Ratio <= 0 || b.Timed[1].Program != "new.py" {
		t.Errorf("compared: %+v", b.Timed)
	}

	// Each size comes to the program, as an argument and in its environment; what prints something else is said to differ.
	c = newCommand(t, "check", "--bench", "--runs", "1", "--sizes", "7,11,13", "sized.py")
	c.setenv("COVE_PACKAGES=standard")
	c.file("sized.py", "import os, sys\nsys.exit(f'reached {sys.argv[1]} {os.environ[\"N\"]}' if sys.argv[1] != '7' else 0)\n")
	if r = c.run(); r.code == 0 || !strings.Contains(r.stderr, "sized.py with size 11") || !strings.Contains(r.stderr, "reached 11 11") {
		t.Errorf("a program that fails with its second size: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	c = newCommand(t, "check", "--json", "--bench", "--runs", "1", "--against", "two.py", "one.py")
	c.setenv("COVE_PACKAGES=standard")
	c.file("one.py", "print(1)\n")
	c.file("two.py", "print(2)\n")
	r = c.run()
	b = advice.Benchmark{}
	if err := json.Unmarshal([]byte(r.stdout), &b); err != nil || len(b.Timed) != 2 || b.Timed[1].Against == nil || b.Timed[1].Against.Same {
		t.Errorf("programs that print something else: exit code %d, %v\n%s%s", r.code, err, r.stdout, r.stderr)
	}
}

const shopAPI = `"""A shop."""
from flask import Flask

app = Flask(__name__)
LIMIT: int = 10


@app.get("/items/<int:number>")
def item(number: int) -> dict:
    """Describe an item.

    Args:
        number: Its number | from 1.

    Returns:
        Its name and price.
    """
    return {"number": number}


def _hidden():
    pass
`

// TestReferenceAndOpenAPI writes both documents of a module.
func TestReferenceAndOpenAPI(t *testing.T) {
	t.Parallel()
	c := newCommand(t, "check", "--docs", "-o", "api.md", "shop.py")
	c.setenv("COVE_PACKAGES=standard")
	c.file("shop.py", shopAPI)
	r := c.run()
	text, err := os.ReadFile(c.path("api.md"))
	if r.code != 0 || err != nil {
		t.Fatalf("exit code %d, %v\n%s", r.code, err, r.stderr)
	}
	for _, want := range []string{"# shop\n\nA shop.", "item(number: int) -> dict", "| `number` | `int` | Its number \\| from 1. |", "| `dict` | Its name and price. |", "| `LIMIT` | `int` | `10` |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in the reference:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "_hidden") {
		t.Errorf("a private function is in the reference:\n%s", text)
	}

	c = newCommand(t, "check", "--openapi", "shop.py")
	c.setenv("COVE_PACKAGES=standard")
	c.file("shop.py", shopAPI)
	r = c.run()
	var document struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			Summary    string
			Parameters []struct {
				Name   string
				Schema map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &document); err != nil || r.code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", r.code, err, r.stdout, r.stderr)
	}
	get := document.Paths["/items/{number}"]["get"]
	if document.OpenAPI != "3.1.0" || get.Summary != "Describe an item." || len(get.Parameters) != 1 || get.Parameters[0].Schema["type"] != "integer" {
		t.Errorf("%s", r.stdout)
	}
}

// TestCheckNotebook gives findings their cells, in a notebook with commands of IPython and a cell in another language.
func TestCheckNotebook(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	name := filepath.Join(t.TempDir(), "sales.ipynb")
	nb := `{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
	 {"cell_type": "markdown", "source": "# Sales"},
	 {"cell_type": "code", "source": ["%pip install cowsay\n", "import pandas as pd\n", "df = pd.read_csv('a.csv')"]},
	 {"cell_type": "code", "source": "%%bash\nfor f in *; do echo $f; done"},
	 {"cell_type": "code", "source": "total = 0\nfor _, row in df.iterrows():\n    total += row['a']\ntotal\n"},
	 {"cell_type": "code", "source": "print(totl)\ndf?"}]}`
	if err := os.WriteFile(name, []byte(nb), 0o644); err != nil {
		t.Fatal(err)
	}
	_, found := check(t, 1, name)
	var got []string
	for _, f := range found.Files[0].Findings {
		got = append(got, strings.Join([]string{string(rune('0' + f.Cell)), string(rune('0' + f.Line)), f.Rule}, " "))
	}
	if want := []string{"3 2 slow-iterrows", "4 1 F821"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q; notes %q", got, want, found.Files[0].Notes)
	}
}

// TestCheckWithoutTools looks for what needs no package where none may be installed, and says what it left out.
func TestCheckWithoutTools(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	name := filepath.Join(t.TempDir(), "queue.py")
	if err := os.WriteFile(name, []byte("queue = [1]\nwhile queue:\n    print(queue.pop(0), missing)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, found := check(t, 1, "--no-install", name)
	r := found.Files[0]
	if len(r.Findings) != 1 || r.Findings[0].Rule != "slow-list-front" || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "ruff could not be installed") {
		t.Errorf("findings %+v, notes %q", r.Findings, r.Notes)
	}
}

// TestEndlessProgramIsProfiled stops a program that does not end, and tells what it was doing. Of a program that hardly got its turn there are no samples; it is given more time then.
func TestEndlessProgramIsProfiled(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	name := filepath.Join(t.TempDir(), "random.py") // a name that tools import
	if err := os.WriteFile(name, []byte("n = 0\nwhile True:\n    n = sum(range(1000))\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for limit := 6 * time.Second; ; limit *= 2 {
		_, found := check(t, 0, "--profile", "--timeout", limit.String(), name)
		r := found.Files[0]
		if r.Profile == nil || r.Profile.Exit != nil || len(r.Notes) == 0 || !strings.Contains(r.Notes[0], "was stopped after") {
			t.Fatalf("profile %+v, notes %q", r.Profile, r.Notes)
		}
		if len(r.Profile.Lines) > 0 {
			if r.Profile.Lines[0].Line != 3 {
				t.Errorf("lines %+v", r.Profile.Lines)
			}
			return
		}
		if limit > 20*time.Second {
			t.Fatalf("no lines after %s; notes %q", limit, r.Notes)
		}
		t.Logf("no lines after %s; notes %q", limit, r.Notes)
	}
}
