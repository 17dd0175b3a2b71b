// Command enginetable has the suites that every engine passes tell what one engine gives on this machine, and writes that into the table of docs/engines.md as
// one column. What the other columns tell stays: each says when and on what it was seen.
//
//	go run ./internal/packaging/enginetable -engine docker -column "podman, runc" -on "Podman 4.3.1"
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"cove/internal/machine/sandbox/sandboxtest"
)

const (
	recordPath = "docs/engines.json"
	pagePath   = "docs/engines.md"
	begin, end = "<!-- made by `make engines` -->\n", "<!-- to here -->\n"
)

// Column is what one engine gave where it was seen.
type Column struct {
	Name      string            `json:"name"`
	On        string            `json:"on"`   // what it ran on
	Seen      string            `json:"seen"` // the date
	Gives     map[string]string `json:"gives"`
	Contract  Count             `json:"contract"`
	Behaviour Count             `json:"behaviour"`
}

// Count is how the tests of a suite ended.
type Count struct {
	Passed  int      `json:"passed"`
	Failed  []string `json:"failed,omitempty"`
	LeftOut int      `json:"left_out,omitempty"` // which this machine has not what it takes for
}

func (c Count) String() string {
	if c.Passed == 0 && len(c.Failed) == 0 {
		return "not run"
	}
	said := fmt.Sprintf("%d of %d", c.Passed, c.Passed+len(c.Failed))
	if len(c.Failed) > 0 {
		said += "; not: " + strings.Join(c.Failed, ", ")
	}
	if c.LeftOut > 0 {
		said += fmt.Sprintf("; %d left out", c.LeftOut)
	}
	return said
}

func main() {
	engine := flag.String("engine", "", "gvisor, docker or local")
	column := flag.String("column", "", "the `name` of the table's column; without it the table is written from what is recorded")
	on := flag.String("on", "", "what the engine runs on: versions, of the daemon for one")
	behaviour := flag.Bool("behaviour", true, "run the suite of sessions as well, which takes some minutes")
	flag.Parse()
	if err := run(*engine, Column{Name: *column, On: *on, Seen: time.Now().UTC().Format(time.DateOnly)}, *behaviour); err != nil {
		fmt.Fprintln(os.Stderr, "enginetable:", err)
		os.Exit(1)
	}
}

func run(engine string, c Column, behaviour bool) error {
	if c.Name != "" && !slices.Contains([]string{"gvisor", "docker", "local"}, engine) {
		return fmt.Errorf("-engine is %q; a column is made with gvisor, docker or local", engine)
	}
	columns, err := recorded(recordPath)
	if err != nil {
		return err
	}
	if c.Name != "" {
		i := slices.IndexFunc(columns, func(old Column) bool { return old.Name == c.Name })
		if i < 0 {
			columns, i = append(columns, c), len(columns)
		}
		seen := columns[i].Gives
		if c.Behaviour = columns[i].Behaviour; behaviour {
			if c.Behaviour, seen, err = behave(engine); err != nil {
				return err
			}
		}
		c.Contract, c.Gives, err = test("./internal/machine/sandbox/"+engine, "^TestContract$", regexp.MustCompile(`^TestContract/(.*)$`))
		if err != nil {
			return err
		}
		for what, how := range seen { // of sessions; what the contract has is newer
			if _, is := c.Gives[what]; !is {
				c.Gives[what] = how
			}
		}
		columns[i] = c
		text, err := json.MarshalIndent(columns, "", "\t")
		if err != nil {
			return err
		}
		if err := os.WriteFile(recordPath, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	page, err := os.ReadFile(pagePath)
	if err != nil {
		return err
	}
	made, err := Place(string(page), columns)
	if err != nil {
		return err
	}
	return os.WriteFile(pagePath, []byte(made), 0o644)
}

func recorded(path string) (columns []Column, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &columns)
	}
	return columns, err
}

// behave runs the tests of sessions that run on every engine, on one.
func behave(engine string) (count Count, gives map[string]string, err error) {
	files, err := filepath.Glob("internal/sessions/session/*_test.go")
	if err != nil {
		return count, nil, err
	}
	each := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n(?:.*\n)?\tonEachEngine\(`)
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return count, nil, err
		}
		for _, m := range each.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return test("./internal/sessions/session", "^("+strings.Join(names, "|")+")$/^"+engine+"$", regexp.MustCompile(`^(\w+)/`+engine+`$`))
}

// test runs tests of a package and counts those whose names match part, under the name that its group has. What a test says that the engine gives counts when it passes.
func test(pkg, run string, part *regexp.Regexp) (count Count, gives map[string]string, err error) {
	cmd := exec.Command("go", "test", "-json", "-count=1", "-timeout=30m", "-run", run, pkg)
	cmd.Env = append(os.Environ(), "COVE_SOAK=full") // what takes its time in containers, too
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return count, nil, err
	}
	count, gives, err = Collect(out, part, os.Stderr)
	_ = cmd.Wait() // what failed is counted
	if err == nil && count.Passed+len(count.Failed)+count.LeftOut == 0 {
		err = fmt.Errorf("no test of %s ran; COVE_TEST=there asks for those that need more than Go", pkg)
	}
	return count, gives, err
}

// Collect reads what go test -json says, and tells of each test that counts as it ends. One that began and did not end, as when time was over, has failed.
func Collect(events io.Reader, part *regexp.Regexp, progress io.Writer) (count Count, gives map[string]string, err error) {
	gives = map[string]string{}
	said, begun := map[string]map[string]string{}, map[string]bool{}
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		if e.Action == "build-output" {
			_, _ = io.WriteString(progress, e.Output)
		}
		m := part.FindStringSubmatch(e.Test)
		if m == nil {
			continue
		}
		name := strings.ReplaceAll(m[1], "_", " ")
		switch e.Action {
		case "run":
			begun[name] = true
			continue
		case "output":
			if _, text, ok := strings.Cut(e.Output, sandboxtest.GivesMark); ok {
				if said[name] == nil {
					said[name] = map[string]string{}
				}
				what, how, _ := strings.Cut(strings.TrimSpace(text), ": ")
				said[name][what] = how
			}
			continue
		case "pass":
			count.Passed++
			for what, how := range said[name] {
				gives[what] = how
			}
		case "fail":
			count.Failed = append(count.Failed, name)
		case "skip":
			count.LeftOut++
		default:
			continue
		}
		delete(begun, name)
		_, _ = fmt.Fprintf(progress, "%s: %s\n", e.Action, name)
	}
	count.Failed = slices.AppendSeq(count.Failed, maps.Keys(begun))
	slices.Sort(count.Failed)
	return count, gives, lines.Err()
}

// Place puts the table of columns between its marks in a page.
func Place(page string, columns []Column) (string, error) {
	before, rest, ok := strings.Cut(page, begin)
	_, after, also := strings.Cut(rest, end)
	if !ok || !also {
		return "", fmt.Errorf("%s has no place for the table: %q and %q", pagePath, begin, end)
	}
	return before + begin + "\n" + Table(columns) + "\n" + end + after, nil
}

// Table is the columns in Markdown.
func Table(columns []Column) string {
	var rows []string
	for _, c := range columns {
		for what := range c.Gives {
			rows = append(rows, what)
		}
	}
	slices.Sort(rows)
	rows = slices.Compact(rows)
	var b strings.Builder
	line := func(title string, cell func(Column) string) {
		b.WriteString("| " + title)
		for _, c := range columns {
			b.WriteString(" | " + cell(c))
		}
		b.WriteString(" |\n")
	}
	line("", func(c Column) string { return c.Name })
	b.WriteString("|---" + strings.Repeat("|---", len(columns)) + "|\n")
	for _, what := range rows {
		line(what, func(c Column) string {
			if how := c.Gives[what]; how != "" {
				return how
			}
			return "not seen"
		})
	}
	line("contract", func(c Column) string { return c.Contract.String() })
	line("behaviour", func(c Column) string { return c.Behaviour.String() })
	line("on", func(c Column) string { return c.On })
	line("seen", func(c Column) string { return c.Seen })
	return b.String()
}
