package eval

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// A problem set of DSEval is a Python file of cells, which "# %%" begins. A cell that starts with a text between three quotation marks is a question: that text is
// YAML with the question and its validator, and the code below is the reference. Other cells are what the next question takes as given.
//
// Of the validators, cove has the comparison of the last value, and namespace_check without options. A question with another one is not asked: its reference
// becomes what the next question takes as given. namespace_intact is not checked.

// dsevalHead is the YAML of a question.
type dsevalHead struct {
	Question  string            `yaml:"question"`
	Validator map[string]any    `yaml:"validator"`
	Data      map[string]string `yaml:"data"`
	Execution map[string]any    `yaml:"execution"`
}

const (
	dsevalCell = "# %%\n"
	// dsevalResult tells the model where its result is looked for.
	dsevalResult = "\n\nHave the last cell that you run end with the result as its last expression, if there is a result, and give variables the names that are asked for."
)

var dsevalQuestion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\A\s*r?"""((?s).+?)"""\n`) })

func (l *loader) dseval(text string) ([]Task, error) {
	series := strings.TrimSuffix(filepath.Base(l.path), ".py")
	cells := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), dsevalCell)
	var tasks []Task
	var before []string
	needed := map[string]string{}
	for n, cell := range cells[1:] {
		m := dsevalQuestion().FindStringSubmatchIndex(cell)
		if m == nil {
			before = append(before, strings.TrimSpace(cell))
			continue
		}
		var head dsevalHead
		if err := yaml.Unmarshal([]byte(cell[m[2]:m[3]]), &head); err != nil {
			return nil, l.wrong("cell %d: %s", n+1, err)
		}
		maps.Copy(needed, head.Data)
		code := strings.TrimSpace(cell[m[1]:])
		check, ok := head.check()
		if head.Question == "" || code == "" || !ok {
			if !ok {
				l.notices = append(l.notices, fmt.Sprintf("%s: cell %d has a validator that cove does not have, and is not asked", l.path, n+1))
			}
			before = append(before, code)
			continue
		}
		check.Text = code
		tasks = append(tasks, Task{
			ID: fmt.Sprintf("%s/%d", series, len(tasks)+1), Series: series, Prompt: strings.TrimSpace(head.Question) + dsevalResult,
			Before: strings.TrimSpace(strings.Join(before, "\n\n")), Checks: []Check{check}, Reference: code,
		})
		before = nil
	}
	if len(tasks) == 0 {
		return nil, l.wrong("it has no question that cove can ask")
	}
	var err error
	tasks[0].Files, err = l.inputs(series, needed)
	return tasks, err
}

// check is the comparison that a question's validator asks for. ok is false when cove does not have it.
func (h dsevalHead) check() (c Check, ok bool) {
	c = Check{Kind: CheckCompare, Result: true}
	template := h.Validator["template"]
	if template == "empty" || template == "basic" || template == "intact" {
		c.Result = false
	}
	for name, value := range h.Validator {
		options, _ := value.(map[string]any)
		switch name {
		case "template", "namespace_intact", "crash":
		case "result":
			if c.Result = true; value != nil {
				return c, false
			}
		case "namespace_check":
			for variable, how := range options {
				if how != nil {
					return c, false
				}
				c.Names = append(c.Names, variable)
			}
			if options == nil {
				return c, false
			}
		default:
			return c, false
		}
	}
	slices.Sort(c.Names)
	return c, c.Result || len(c.Names) > 0
}

// inputs are the files of a problem set, which its code finds in the folder inputs: those of _inputs/NAME, or of _inputs, beside it.
func (l *loader) inputs(series string, needed map[string]string) ([]File, error) {
	dir := l.o.Data
	for _, name := range []string{filepath.Join("_inputs", series), "_inputs", "inputs"} {
		if at := filepath.Join(filepath.Dir(l.path), name); dir == "" && isFolder(at) {
			dir = at
		}
	}
	var files []File
	if dir != "" {
		err := filepath.WalkDir(dir, func(host string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			rel, err := filepath.Rel(dir, host)
			if err != nil {
				return err
			}
			f, err := inputFile(host, path.Join("inputs", filepath.ToSlash(rel)))
			files = append(files, f)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for name, address := range needed {
		if !slices.ContainsFunc(files, func(f File) bool { return f.Path == path.Join("inputs", name) }) {
			return nil, l.wrong("its file %s is missing; put %s into the folder _inputs beside it", name, address)
		}
	}
	return files, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
