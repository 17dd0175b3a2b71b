package eval

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cove/internal/core/problem"
)

// Bounds of the files that tasks are read from.
const (
	largestSource = 512 << 20 // bytes, unpacked
	longestRow    = 32 << 20  // bytes
	mostTasks     = 100_000
)

// Format is how a file writes tasks down.
type Format string

// The formats.
const (
	HumanEval    Format = "humaneval"
	BigCodeBench Format = "bigcodebench"
	ODEX         Format = "odex"
	DABench      Format = "dabench"
	DSEval       Format = "dseval"
	Own          Format = "tasks" // the user's: tasks.yaml
)

// LoadOptions say how files are read. The zero value finds everything out.
type LoadOptions struct {
	Format Format // "": each file's is recognized
	Labels string // of DABench: the file with the right answers; "": beside the questions, "labels" in place of "questions" in its name
	Data   string // of DABench and DSEval: the folder of the files that questions are about; "": where the format has it
}

// Load reads tasks from files, and from folders of DSEval. Problems: eval_format, eval_empty, input_unreadable.
func Load(paths []string, o LoadOptions) (Set, error) {
	var set Set
	names, seen := []string{}, map[string]string{}
	for _, given := range paths {
		files, err := filesAt(given)
		if err != nil {
			return set, err
		}
		names = append(names, nameOf(given))
		for _, path := range files {
			tasks, source, notices, err := loadFile(path, o)
			if err != nil {
				return set, err
			}
			set.Sources, set.Notices = append(set.Sources, source), append(set.Notices, notices...)
			for _, t := range tasks {
				if other, twice := seen[t.ID]; twice {
					return set, formatProblem(path, "the id "+t.ID+" is there already, in "+other)
				}
				seen[t.ID] = path
				set.Tasks = append(set.Tasks, t)
			}
		}
	}
	if len(set.Tasks) == 0 {
		return set, problem.New(problem.EvalEmpty, "the files have no task")
	}
	if len(set.Tasks) > mostTasks {
		return set, problem.New(problem.EvalFormat, fmt.Sprintf("there are %d tasks; a run has at most %d", len(set.Tasks), mostTasks))
	}
	set.Name = strings.Join(names, "+")
	return set, nil
}

// nameOf is what a file is called in reports.
func nameOf(path string) string {
	name := filepath.Base(filepath.Clean(path))
	for _, end := range []string{".gz", ".jsonl", ".json", ".yaml", ".yml", ".py"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// filesAt is the file itself, or the problem sets of a folder.
func filesAt(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var out []string
	for _, pattern := range []string{"*.py", "tasks.yaml", "tasks.yml"} {
		found, err := filepath.Glob(filepath.Join(globSafe(path), pattern))
		if err != nil {
			return nil, unreadable(path, err)
		}
		out = append(out, slices.DeleteFunc(found, func(f string) bool { return strings.HasPrefix(filepath.Base(f), "_") })...)
	}
	if len(out) == 0 {
		return nil, problem.New(problem.EvalEmpty, "the folder "+path+" has no problem set of DSEval (*.py) and no tasks.yaml").WithHint("name the files with tasks")
	}
	slices.Sort(out)
	return out, nil
}

func globSafe(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func unreadable(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return problem.New(problem.InputUnreadable, path+" does not exist")
	}
	return problem.New(problem.InputUnreadable, path+" cannot be read").WithCause(err)
}

func formatProblem(path, why string) *problem.Error {
	return problem.New(problem.EvalFormat, path+": "+why).WithHint("`cove eval run --help` names the formats; --format names one where it is not recognized")
}

func loadFile(path string, o LoadOptions) ([]Task, Source, []string, error) {
	text, err := readSource(path)
	if err != nil {
		return nil, Source{}, nil, err
	}
	sum := sha256.Sum256(text)
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, Source{}, nil, unreadable(path, err)
	}
	source := Source{Path: abs, Sum: hex.EncodeToString(sum[:]), Format: string(o.Format)}
	f := o.Format
	switch name := strings.TrimSuffix(path, ".gz"); {
	case f != "":
	case strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml"):
		f = Own
	case strings.HasSuffix(name, ".py"):
		f = DSEval
	}
	l := loader{path: path, o: o}
	var tasks []Task
	switch f {
	case Own:
		tasks, err = l.own(text)
	case DSEval:
		tasks, err = l.dseval(string(text))
	default:
		tasks, f, err = l.rows(text, f)
	}
	source.Format = string(f)
	return tasks, source, l.notices, err
}

// loader reads one file.
type loader struct {
	path    string
	o       LoadOptions
	notices []string
}

func (l *loader) wrong(why string, args ...any) error {
	return formatProblem(l.path, fmt.Sprintf(why, args...))
}

// readSource reads a file, unpacking what gzip has packed.
func readSource(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	in := bufio.NewReader(f)
	var from io.Reader = in
	if head, _ := in.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, unreadable(path, err)
		}
		from = unpacked
	}
	text, err := io.ReadAll(io.LimitReader(from, largestSource+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if len(text) > largestSource {
		return nil, formatProblem(path, fmt.Sprintf("it is larger than %d MiB", largestSource>>20))
	}
	return text, nil
}

// row is a line of JSONL, or an element of a JSON list: the fields of all formats that have rows.
type row struct {
	// Of HumanEval, BigCodeBench and ODEX.
	TaskID     json.RawMessage `json:"task_id"` // a text, in ODEX a number
	Prompt     string          `json:"prompt"`
	EntryPoint string          `json:"entry_point"`
	Solution   string          `json:"canonical_solution"`
	Test       json.RawMessage `json:"test"` // a text, in ODEX a list of texts

	CompletePrompt string `json:"complete_prompt"` // of BigCodeBench, as those below
	InstructPrompt string `json:"instruct_prompt"`
	CodePrompt     string `json:"code_prompt"`

	Intent    string  `json:"intent"` // of ODEX, as those below
	Suffix    string  `json:"suffix"`
	TestStart *string `json:"test_start"`

	ID          json.RawMessage `json:"id"` // of DABench, as those below
	Question    string          `json:"question"`
	Constraints string          `json:"constraints"`
	Form        string          `json:"format"`
	FileName    string          `json:"file_name"`
	Answers     [][]string      `json:"common_answers"` // of its labels
}

// format recognizes what a row is of.
func (r row) format() Format {
	switch {
	case r.CompletePrompt != "" || r.InstructPrompt != "":
		return BigCodeBench
	case r.TestStart != nil:
		return ODEX
	case len(r.TaskID) > 0 && len(r.Test) > 0 && hasClasses(scalar(r.Test)):
		return BigCodeBench // as its repository of annotations has it
	case len(r.TaskID) > 0 && len(r.Test) > 0:
		return HumanEval
	case r.Question != "" && r.FileName != "":
		return DABench
	}
	return ""
}

// rows reads JSONL, or a JSON list.
func (l *loader) rows(text []byte, f Format) ([]Task, Format, error) {
	rows, err := l.parse(text)
	if err != nil || len(rows) == 0 {
		return nil, f, err
	}
	if f == "" {
		if f = rows[0].format(); f == "" {
			return nil, f, l.wrong("its first task has the fields of no format that cove knows")
		}
	}
	var tasks []Task
	seen := map[string]int{}
	one := map[Format]func(row) (Task, error){HumanEval: humanEval, BigCodeBench: bigCodeBench, ODEX: odex}[f]
	switch {
	case one != nil:
		for n, r := range rows {
			t, err := one(r)
			if err != nil {
				return nil, f, l.wrong("task %d: %s", n+1, err)
			}
			if seen[t.ID]++; f == ODEX && seen[t.ID] > 1 { // it has several tasks of one question
				t.ID = fmt.Sprintf("%s-%d", t.ID, seen[t.ID])
			}
			tasks = append(tasks, t)
		}
	case f == DABench:
		tasks, err = l.dabench(rows)
	default:
		err = l.wrong("there is no format %q; the formats are humaneval, bigcodebench, odex, dabench, dseval and tasks", f)
	}
	return tasks, f, err
}

func (l *loader) parse(text []byte) ([]row, error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '[' {
		var rows []row
		if err := json.Unmarshal(trimmed, &rows); err != nil {
			return nil, l.wrong("it is not JSON: %s", err)
		}
		return rows, nil
	}
	var rows []row
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, longestRow)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, l.wrong("line %d is not JSON, or not of the format: %s", n, err)
		}
		rows = append(rows, r)
	}
	if err := lines.Err(); err != nil {
		return nil, l.wrong("it cannot be read: %s", err)
	}
	return rows, nil
}

// scalar is the text of a JSON string or number.
func scalar(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(bytes.TrimSpace(raw))
}

// inputFile is a file of a task, with the hash of its content.
func inputFile(host, path string) (File, error) {
	f, err := os.Open(host)
	if err != nil {
		return File{}, unreadable(host, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return File{}, unreadable(host, err)
	}
	if !info.Mode().IsRegular() {
		return File{}, problem.New(problem.InputUnreadable, host+" is not an ordinary file")
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return File{}, unreadable(host, err)
	}
	return File{Host: host, Path: path, Sum: hex.EncodeToString(sum.Sum(nil))}, nil
}

func sortFiles(files []File) {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
}
