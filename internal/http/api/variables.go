package api

import (
	"context"
	"net/http"
	"strconv"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
)

// VariableList are the variables of a kernel.
type VariableList struct {
	Items []Variable `json:"items" doc:"The newest last"`
	More  int64      `json:"more" doc:"How many there are beside them"`
}

// Variable is one variable of a kernel, as the code in the sandbox says.
type Variable struct {
	Name    string  `json:"name" example:"df"`
	Type    string  `json:"type" example:"pandas.DataFrame"`
	Shape   []int64 `json:"shape,omitempty" doc:"Of arrays and tables"`
	Length  *int64  `json:"length,omitempty" doc:"Of containers and texts"`
	Bytes   *int64  `json:"bytes,omitempty" doc:"Memory that it takes; of containers without what is in them"`
	Preview string  `json:"preview,omitempty"`
	Table   bool    `json:"table,omitempty" doc:"It can be read as a table"`
}

// Table is a piece of a table.
type Table struct {
	Columns     []Column `json:"columns"`
	MoreColumns int64    `json:"more_columns" doc:"How many there are beside them"`
	Total       int64    `json:"total" doc:"Rows of the whole table"`
	Matching    int64    `json:"matching" doc:"Rows with the filter's text"`
	Offset      int64    `json:"offset" doc:"Of the first row here, among those that match"`
	Index       []string `json:"index"`
	IndexName   string   `json:"index_name"`
	Rows        [][]any  `json:"rows" doc:"Cells: null where a value is missing, booleans, numbers or texts"`
}

// Column is a column of a table.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type" example:"float64"`
}

// Profile describes a column of a table. What does not apply to its type is missing.
type Profile struct {
	Name     string        `json:"name"`
	Type     string        `json:"type"`
	Rows     int64         `json:"rows"`
	LookedAt int64         `json:"looked_at" doc:"Rows, from the first on, that the rest is about"`
	Missing  int64         `json:"missing"`
	Distinct int64         `json:"distinct"`
	Min      any           `json:"min,omitempty"`
	Max      any           `json:"max,omitempty"`
	Mean     *float64      `json:"mean,omitempty"`
	Median   *float64      `json:"median,omitempty"`
	Bars     []int64       `json:"bars,omitempty" doc:"Of a histogram"`
	Edges    []float64     `json:"edges,omitempty" doc:"Between the bars, and at the ends"`
	Common   []CommonValue `json:"common,omitempty" doc:"What comes most often"`
}

// CommonValue is a value that comes often in a column.
type CommonValue struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
}

func tableOf(t kernel.Table) Table {
	return Table{Columns: each(t.Columns, func(c kernel.Column) Column { return Column(c) }), MoreColumns: t.MoreColumns, Total: t.Total, Matching: t.Matching, Offset: t.Offset,
		Index: t.Index, IndexName: t.IndexName, Rows: t.Rows}
}

func profileOf(p kernel.Profile) Profile {
	return Profile{Name: p.Name, Type: p.Type, Rows: p.Rows, LookedAt: p.LookedAt, Missing: p.Missing, Distinct: p.Distinct, Min: p.Min, Max: p.Max, Mean: p.Mean, Median: p.Median,
		Bars: p.Bars, Edges: p.Edges, Common: each(p.Common, func(c kernel.Common) CommonValue { return CommonValue(c) })}
}

type (
	// TablePath names a table in an address.
	TablePath struct {
		KernelPath
		Table string `path:"table" maxLength:"200" doc:"A variable's name, or the name under which a table was shown" example:"df"`
	}
	readTable struct {
		TablePath
		Offset     int    `query:"offset" minimum:"0"`
		Limit      int    `query:"limit" minimum:"1" maximum:"500" default:"100"`
		Sort       string `query:"sort" pattern:"^(index|[0-9]{1,6})$" doc:"The number of the column to sort by, from 0, or index. As the table is when left out"`
		Descending bool   `query:"descending"`
		Filter     string `query:"filter" maxLength:"200" doc:"A text that a cell of each row has, in any case"`
	}
	readProfile struct {
		TablePath
		Column int `path:"column" minimum:"0" doc:"Its number, from 0"`
	}
)

// column is the number of the column to sort by, as the kernel takes it.
func (t *readTable) column() *int {
	n := -1
	switch {
	case t.Sort == "":
		return nil
	case t.Sort != "index":
		n, _ = strconv.Atoi(t.Sort) // what else it may be is checked
	}
	return &n
}

func (s *server) addVariables() {
	const tag, kernelAt = "kernels", "/sessions/{session}/kernels/{kernel}"
	errors := []problem.Code{problem.SessionNotFound, problem.KernelNotFound, problem.SessionBusy, problem.VariableUnknown, problem.NotATable}
	add(s, operation{id: "variable.list", method: http.MethodGet, path: kernelAt + "/variables", tag: tag, action: auth.SessionsRead, summary: "List a kernel's variables",
		about: "Without modules, functions and classes. No code of the session's runs for it: what values of its own classes are is told by their type alone.", errors: errors[:3],
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/kernels/main/variables`},
		func(ctx context.Context, who auth.Principal, in *KernelPath) (VariableList, error) {
			out, err := s.o.Hub.Variables(ctx, who, in.Session, in.Kernel)
			return VariableList{Items: each(out.Items, func(v kernel.Variable) Variable { return Variable(v) }), More: out.More}, err
		})
	add(s, operation{id: "table.read", method: http.MethodGet, path: kernelAt + "/tables/{table}", tag: tag, action: auth.SessionsRead, summary: "Read a piece of a table",
		about: "Of a DataFrame, a Series, or an array of one or two dimensions. Sorting and filtering happen in the kernel and change nothing there.", errors: errors,
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/executions -d '{"code":"import numpy; df = numpy.eye(9)"}'
curl -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/kernels/main/tables/df?limit=20&sort=0"`},
		func(ctx context.Context, who auth.Principal, in *readTable) (Table, error) {
			out, err := s.o.Hub.Table(ctx, who, in.Session, in.Kernel, kernel.TableQuery{Name: in.Table, Offset: in.Offset, Limit: in.Limit, Sort: in.column(), Descending: in.Descending, Filter: in.Filter})
			return tableOf(out), err
		})
	add(s, operation{id: "table.profile", method: http.MethodGet, path: kernelAt + "/tables/{table}/columns/{column}", tag: tag, action: auth.SessionsRead, summary: "Describe a column of a table",
		about: "Missing and distinct values, smallest and largest, a histogram of numbers, and what comes most often of the rest.", errors: errors,
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/kernels/main/tables/df/columns/0`},
		func(ctx context.Context, who auth.Principal, in *readProfile) (Profile, error) {
			out, err := s.o.Hub.Profile(ctx, who, in.Session, in.Kernel, in.Table, in.Column)
			return profileOf(out), err
		})
}
