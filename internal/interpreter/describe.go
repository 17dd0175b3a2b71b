package interpreter

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"cove/internal/kernel"
)

//go:embed describe.py
var describeSource string

// Bounds of reading binary tables.
const (
	describeTime   = 20 * time.Second
	describeOutput = 64 << 10 // bytes
	describeSize   = 50 << 20 // bytes of one file
	tableColumns   = 40
	tableSheets    = 10
	cellChars      = 60
)

// table is what describe.py reports about one file. It comes from the sandbox and is hostile.
type table struct {
	Path   string  `json:"path"`
	Error  string  `json:"error"`
	Sheets []sheet `json:"sheets"`
}

type sheet struct {
	Name    string   `json:"name"`
	Rows    int64    `json:"rows"`
	Columns []string `json:"columns"`
	Types   []string `json:"types"`
	Head    [][]any  `json:"head"`
}

func isTable(name string) bool {
	switch extension(name) {
	case ".xlsx", ".xlsm", ".xls", ".parquet":
		return true
	}
	return false
}

// describe reads binary tables by code in the session whose events are not yielded, and returns a description of each by path. The turn goes on when that
// fails, except when the context has ended.
func (t *turn) describe(ctx context.Context, files []kernel.File) (map[string]string, error) {
	var paths []string
	for _, f := range files {
		if isTable(f.Path) && f.Size > 0 && f.Size <= describeSize {
			paths = append(paths, f.Path)
		}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(paths)
	if err != nil {
		return nil, fmt.Errorf("describe tables: %w", err)
	}
	// JSON text of a JSON text is a Python string literal, whatever the names hold.
	literal, err := json.Marshal(string(list))
	if err != nil {
		return nil, fmt.Errorf("describe tables: %w", err)
	}
	code := strings.ReplaceAll(describeSource, `"COVE_PATHS"`, string(literal))
	request := kernel.Request{Code: code, Mode: kernel.Cell, Timeout: t.deadline.left(time.Second, describeTime), OutputLimit: describeOutput}
	var printed strings.Builder
	for event, err := range t.session.Execute(ctx, request) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			break
		}
		if s, ok := event.(kernel.Stream); ok && s.Name == "stdout" && printed.Len() < 2*describeOutput {
			printed.Write(s.Data)
		}
		if err := t.tellLoss(event); err != nil {
			return nil, err
		}
	}
	return tableHeads(printed.String()), ctx.Err()
}

// tellLoss tells the user and the model what the session has lost before or by an execution whose events are not yielded.
func (t *turn) tellLoss(event kernel.Event) error {
	lost := ""
	switch e := event.(type) {
	case kernel.Rollback:
		lost = e.String()
	case kernel.Done:
		switch e.Lost {
		case kernel.LostKernel:
			lost = "The Python session ended while cove read the files, and was started anew: variables and imports are lost."
		case kernel.LostSession:
			lost = "The sandbox was lost while cove read the files: everything since the last save is lost."
		}
	}
	if lost == "" {
		return nil
	}
	t.spec.Rolledback = strings.TrimSpace(t.spec.Rolledback + " " + lost)
	return t.emit(Notice{lost})
}

// tableHeads reads the lines that describe.py prints, one JSON object each.
func tableHeads(printed string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(printed) {
		var found table
		if json.Unmarshal([]byte(line), &found) != nil {
			continue
		}
		if found.Error != "" {
			out[found.Path] = ", could not be read: " + flatten(cutEnd(found.Error, 200))
			continue
		}
		var b strings.Builder
		for n, s := range found.Sheets {
			if n == tableSheets {
				fmt.Fprintf(&b, "\n  and %d more sheets", len(found.Sheets)-n)
				break
			}
			b.WriteString("\n" + indent(s.head()))
		}
		out[found.Path] = ":" + b.String()
	}
	return out
}

func (s sheet) head() string {
	var b strings.Builder
	if s.Name != "" {
		fmt.Fprintf(&b, "sheet %q: ", cutEnd(s.Name, cellChars))
	}
	rows := "unknown number of rows"
	if s.Rows >= 0 {
		rows = grouped(s.Rows) + " rows"
	}
	columnsWord := "columns"
	if len(s.Columns) == 1 {
		columnsWord = "column"
	}
	fmt.Fprintf(&b, "%s, %d %s", rows, len(s.Columns), columnsWord)
	var columns []string
	for n, name := range s.Columns {
		if n == tableColumns {
			columns = append(columns, "…")
			break
		}
		name = flatten(cutEnd(name, cellChars))
		if n < len(s.Types) && s.Types[n] != "" {
			name += " (" + flatten(cutEnd(s.Types[n], cellChars)) + ")"
		}
		columns = append(columns, name)
	}
	if len(columns) > 0 {
		b.WriteString(": " + strings.Join(columns, ", "))
	}
	for n, row := range s.Head {
		if n == 3 {
			break
		}
		var cells []string
		for at, cell := range row {
			if at == tableColumns {
				cells = append(cells, "…")
				break
			}
			cells = append(cells, flatten(cutEnd(fmt.Sprint(cell), cellChars)))
		}
		b.WriteString("\n| " + strings.Join(cells, " | ") + " |")
	}
	return b.String()
}

// flatten puts text on one line.
func flatten(text string) string { return strings.Join(strings.Fields(text), " ") }
