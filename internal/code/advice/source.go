package advice

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/python/oldnotebook"
)

// Bounds of what is looked at.
const (
	MaxNotebook = 64 << 20 // bytes of a notebook with its outputs
	MaxSource   = 1 << 20  // bytes of the code that is looked at
	maxCells    = 10_000
)

// Source is the code of one file.
type Source struct {
	Name     string // of the file, as the caller knows it
	Text     string // Python; of a notebook the cells, one after the other
	Notebook bool

	cells []int // of a notebook: the line of the text that comes before each cell
}

// marker begins each cell of a notebook in Source.Text; editors know it as the beginning of a cell.
const marker = "# %%"

// ReadSource makes a source of a file's content. A name that ends in .ipynb is a notebook's. Problems: code_too_big, input_unreadable, notebook_invalid.
func ReadSource(name string, content []byte) (Source, error) {
	s := Source{Name: name, Text: string(content)}
	if strings.EqualFold(path.Ext(name), ".ipynb") {
		if err := s.join(content); err != nil {
			return s, err
		}
	}
	s.Text = strings.TrimPrefix(s.Text, "\ufeff")
	s.Text = newlines(s.Text)
	return s, s.check()
}

// newlines gives a text the ends of lines that Python gives it.
func newlines(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// check says what is wrong with the text as a whole.
func (s *Source) check() error {
	if len(s.Text) > MaxSource {
		return problem.New(problem.CodeTooBig, fmt.Sprintf("%s has more than %d KiB of code, the most that is checked", s.Name, MaxSource>>10)).WithHint("split it into modules, and check these")
	}
	if !utf8.ValidString(s.Text) || strings.Contains(s.Text, "\x00") {
		return problem.New(problem.InputUnreadable, s.Name+" is not a text in UTF-8").WithHint("save it as UTF-8; a notebook's name ends in .ipynb")
	}
	return nil
}

// join puts the cells with code of a notebook after one another. The format is nbformat's: version 4, to which older ones are brought, has cells, whose source is a text or a list of lines;
// see https://nbformat.readthedocs.io/en/latest/format_description.html.
func (s *Source) join(content []byte) error {
	var nb struct {
		Format int `json:"nbformat"`
		Cells  []struct {
			Type   string          `json:"cell_type"`
			Source json.RawMessage `json:"source"`
		} `json:"cells"`
	}
	invalid := func(why string) error {
		return problem.New(problem.NotebookInvalid, s.Name+" is not a notebook that can be read: "+why).WithHint("save it anew with Jupyter, or give a file with Python code")
	}
	if err := json.Unmarshal(oldnotebook.UpgradeText(content), &nb); err != nil {
		return invalid("it is not the JSON of one")
	}
	if nb.Format != 4 {
		return invalid(fmt.Sprintf("its format has version %d, and 2, 3 and 4 are known", nb.Format))
	}
	if len(nb.Cells) > maxCells {
		return invalid(fmt.Sprintf("it has more than %d cells", maxCells))
	}
	var cells []string
	for _, c := range nb.Cells {
		if c.Type != "code" {
			continue
		}
		text, err := cellText(c.Source)
		if err != nil {
			return invalid("a cell has no text")
		}
		cells = append(cells, text)
	}
	s.lay(cells)
	return nil
}

// Cells makes a source of cells that one interpreter runs one after the other, as those of a notebook. Problems: as of ReadSource.
func Cells(name string, cells []string) (Source, error) {
	s := Source{Name: name}
	s.lay(cells)
	return s, s.check()
}

// lay puts cells after one another.
func (s *Source) lay(cells []string) {
	var b strings.Builder
	line := 0
	s.Notebook, s.cells = true, nil
	for _, text := range cells {
		line++
		s.cells = append(s.cells, line)
		text = asPython(text)
		b.WriteString(marker + "\n" + text)
		line += strings.Count(text, "\n")
	}
	s.Text = b.String()
}

// asPython returns a cell as it stands in Source.Text behind its marker.
func asPython(cell string) string {
	return strings.TrimRight(withoutMagics(newlines(cell)), "\n") + "\n"
}

// recent returns the last cells: as many as are looked at together, and always the very last.
func recent(cells []string) []string {
	size := 0
	for i, cell := range slices.Backward(cells) {
		if size += len(marker) + 1 + len(asPython(cell)); size > MaxSource {
			return cells[min(i+1, len(cells)-1):]
		}
	}
	return cells
}

func cellText(source json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(source, &text) == nil {
		return text, nil
	}
	var lines []string
	err := json.Unmarshal(source, &lines)
	return strings.Join(lines, ""), err
}

// magic finds what IPython has beside Python: commands and their line, and a name with question marks.
var magic = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\s*)((?:[%!]|\?)[^=\s%].*|[\w.]+\s*\?{1,2}\s*)$`)
})

// pythonCells are cell magics whose cell is Python.
var pythonCells = []string{"%%time", "%%timeit", "%%capture", "%%prun"}

// withoutMagics makes Python of a cell, line for line. A cell in another language becomes comments.
func withoutMagics(text string) string {
	lines := strings.Split(text, "\n")
	if first := strings.Fields(lines[0]); len(first) > 0 && strings.HasPrefix(first[0], "%%") {
		foreign := !slices.Contains(pythonCells, first[0])
		for i := range lines {
			if i == 0 || foreign {
				lines[i] = "# " + lines[i]
			}
		}
		if foreign {
			return strings.Join(lines, "\n")
		}
	}
	for i, line := range lines {
		if m := magic().FindStringSubmatch(line); m != nil {
			lines[i] = m[1] + "pass  # " + m[2]
		}
	}
	return strings.Join(lines, "\n")
}

// place says which cell and line of it a line of the text is. In a program the cell is 0.
func (s *Source) place(line int) (cell, within int) {
	line = min(max(line, 1), max(1, strings.Count(s.Text, "\n")+1))
	if len(s.cells) == 0 {
		return 0, line
	}
	n, _ := slices.BinarySearch(s.cells, line+1) // the cells that begin at the line or before it
	n = max(n, 1)
	return n, max(1, line-s.cells[n-1])
}

// noqa finds the comment that silences findings of a line, all of them or those with the rules after it; linters of Python have it in common.
var noqa = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)#\s*noqa(?::\s*([\w-]+(?:[,\s]+[\w-]+)*))?`)
})

// silences says that the line of a finding, whose place is one of the text, has a comment that silences it.
func (s *Source) silences(f Finding) bool {
	m := noqa().FindStringSubmatch(s.line(f.Line))
	if m == nil {
		return false
	}
	return m[1] == "" || slices.Contains(strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }), f.Rule)
}

// line returns a line of the text without its end, or "".
func (s *Source) line(n int) string {
	at := 1
	for line := range strings.Lines(s.Text) {
		if at == n {
			return strings.TrimRight(line, "\n")
		}
		at++
	}
	return ""
}

// file is the name of the source in the workspace, which is a module's.
func (s *Source) file() string {
	base := filepath.Base(s.Name)
	if s.Notebook {
		base = strings.TrimSuffix(base, path.Ext(base)) + "_notebook.py"
	}
	base = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == '/' {
			return '_'
		}
		return r
	}, base)
	if base == "." || base == ".." || base == "" || len(base) > 200 {
		base = "program.py"
	}
	return base
}

// requirements are the lines of the source that say what it wants installed, in the forms that package deps knows: comments at its beginning, and the
// commands of a notebook.
func (s *Source) requirements() []string {
	var out []string
	head := true
	for line := range strings.Lines(s.Text) {
		line = strings.TrimRight(line, "\n")
		command, isCommand := strings.CutPrefix(line, "pass  # %pip ")
		head = head && (line == "" || strings.HasPrefix(line, "#"))
		switch {
		case isCommand:
			out = append(out, "%pip "+command)
		case head && line != marker && line != "":
			out = append(out, line)
		}
		if len(out) == maxRequirements {
			break
		}
	}
	return out
}

const maxRequirements = 100
