package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"cove/internal/core/problem"
)

// Bounds of what a kernel may say about variables; variables.py keeps to smaller ones.
const (
	mostVariables = 1000
	mostTableRows = 1000
	mostColumns   = 400
	longestCell   = 4000 // bytes
)

// Variable is what a kernel says of one variable. Everything in it comes from the sandbox and is hostile.
type Variable struct {
	Name    string  `json:"name"`
	Type    string  `json:"type"`
	Shape   []int64 `json:"shape,omitempty"`  // of arrays and tables
	Length  *int64  `json:"length,omitempty"` // of containers and texts
	Bytes   *int64  `json:"bytes,omitempty"`
	Preview string  `json:"preview,omitempty"`
	Table   bool    `json:"table,omitempty"` // it can be asked for as a Table
}

// Variables are the variables of a kernel, the newest last. More is how many there are beside them.
type Variables struct {
	Items []Variable `json:"items"`
	More  int64      `json:"more"`
}

// TableQuery says which piece of a table is wanted. Limit is at most 500.
type TableQuery struct {
	Name       string // of a variable, or the name under which a table was shown
	Offset     int
	Limit      int
	Sort       *int // the number of a column, -1 for the index; nil: as the table is
	Descending bool
	Filter     string // a text that one of a row's cells has, in any case
}

// Column is a column of a Table.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Table is a piece of a table. A cell is null, a boolean, a number or a text.
type Table struct {
	Columns     []Column `json:"columns"`
	MoreColumns int64    `json:"more_columns"`
	Total       int64    `json:"total"`    // rows of the whole table
	Matching    int64    `json:"matching"` // rows that have the filter's text
	Offset      int64    `json:"offset"`   // of the first of Rows, among those that match
	Index       []string `json:"index"`
	IndexName   string   `json:"index_name"`
	Rows        [][]any  `json:"rows"`
}

// Profile describes a column of a table. What does not apply to its type is missing.
type Profile struct {
	Name     string    `json:"name"`
	Type     string    `json:"type"`
	Rows     int64     `json:"rows"`
	LookedAt int64     `json:"looked_at"` // rows, from the first on, that the rest is about
	Missing  int64     `json:"missing"`
	Distinct int64     `json:"distinct"`
	Min      any       `json:"min,omitempty"`
	Max      any       `json:"max,omitempty"`
	Mean     *float64  `json:"mean,omitempty"`
	Median   *float64  `json:"median,omitempty"`
	Bars     []int64   `json:"bars,omitempty"`  // of a histogram
	Edges    []float64 `json:"edges,omitempty"` // between them, one more than bars
	Common   []Common  `json:"common,omitempty"`
}

// Common is a value that comes often.
type Common struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

// Variables returns the user's variables, without modules, functions and classes. It waits until the kernel is idle.
func (k *Kernel) Variables(ctx context.Context) (Variables, error) {
	var v Variables
	err := k.look(ctx, map[string]any{"type": "variables"}, "variables_reply", &v)
	v.Items = v.Items[:min(len(v.Items), mostVariables)]
	for i := range v.Items {
		one := &v.Items[i]
		one.Name, one.Type, one.Preview, one.Shape = cut(one.Name), cut(one.Type), cut(one.Preview), one.Shape[:min(len(one.Shape), 64)]
	}
	return v, err
}

// Table returns a piece of a table. It waits until the kernel is idle. Problems: variable_unknown, not_a_table.
func (k *Kernel) Table(ctx context.Context, q TableQuery) (Table, error) {
	var t Table
	err := k.look(ctx, map[string]any{
		"type": "table", "name": q.Name, "offset": q.Offset, "limit": q.Limit, "sort": q.Sort, "descending": q.Descending, "filter": q.Filter,
	}, "table_reply", &t)
	if err == nil && !t.regular() {
		err = errors.New("a table does not have the expected form")
	}
	return t, err
}

// Profile describes one column of a table, by its number. It waits until the kernel is idle. Problems: variable_unknown, not_a_table.
func (k *Kernel) Profile(ctx context.Context, name string, column int) (Profile, error) {
	var p Profile
	err := k.look(ctx, map[string]any{"type": "profile", "name": name, "column": column}, "profile_reply", &p)
	p.Name, p.Type = cut(p.Name), cut(p.Type)
	p.Bars, p.Edges, p.Common = p.Bars[:min(len(p.Bars), 100)], p.Edges[:min(len(p.Edges), 101)], p.Common[:min(len(p.Common), 100)]
	for i := range p.Common {
		p.Common[i].Value = cut(p.Common[i].Value)
	}
	if err == nil && (!scalar(p.Min) || !scalar(p.Max)) {
		err = errors.New("the description of a column does not have the expected form")
	}
	return p, err
}

// look asks a question about variables.
func (k *Kernel) look(ctx context.Context, question map[string]any, reply string, into any) error {
	var said struct {
		Reply       json.RawMessage
		Code, Error string
	}
	if err := k.ask(ctx, question, reply, &said); err != nil {
		return err
	}
	switch said.Code {
	case "":
		return json.Unmarshal(said.Reply, into)
	case "unknown", "gone":
		return problem.New(problem.VariableUnknown, cut(said.Error)).WithHint("run the code again that makes it")
	case "other":
		return problem.New(problem.NotATable, cut(said.Error))
	}
	return problem.New(problem.NotATable, "the variable cannot be shown: "+cut(said.Error))
}

// regular says whether a table's rows have a cell for each column, and no cell is more than a short text. It shortens names.
func (t *Table) regular() bool {
	if len(t.Columns) > mostColumns || len(t.Rows) > mostTableRows || len(t.Index) != len(t.Rows) {
		return false
	}
	for i := range t.Columns {
		t.Columns[i] = Column{cut(t.Columns[i].Name), cut(t.Columns[i].Type)}
	}
	for i, row := range t.Rows {
		t.Index[i] = cut(t.Index[i])
		if len(row) != len(t.Columns) {
			return false
		}
		for _, cell := range row {
			if !scalar(cell) {
				return false
			}
		}
	}
	t.IndexName = cut(t.IndexName)
	return true
}

// scalar says whether a decoded JSON value is no list, no object and no long text.
func scalar(value any) bool {
	switch v := value.(type) {
	case nil, bool, float64:
		return true
	case string:
		return len(v) <= longestCell
	}
	return false
}

func cut(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), longestCell)], "\uFFFD")
}
