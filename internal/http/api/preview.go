package api

import (
	"context"
	"net/http"

	"cove/internal/core/problem"
	"cove/internal/machine/workspace"
	"cove/internal/server/auth"
)

// Preview is what a file holds, as a program in the sandbox says.
type Preview struct {
	Path      string          `json:"path"`
	Size      int64           `json:"size" doc:"Bytes"`
	Kind      string          `json:"kind" enum:"table,text,image,pdf,notebook,archive,binary"`
	Encoding  string          `json:"encoding,omitempty" example:"gb18030" doc:"Of a text, or a table as text"`
	Separator string          `json:"separator,omitempty" doc:"Of a table as text"`
	Text      string          `json:"text,omitempty" doc:"Of a text the first 64 KiB, of a PDF the first page"`
	Truncated bool            `json:"truncated,omitempty" doc:"There is more of the text"`
	Table     *PreviewTable   `json:"table,omitempty"`
	Sheets    []string        `json:"sheets,omitempty" doc:"Of a workbook"`
	Sheet     string          `json:"sheet,omitempty" doc:"That the table is of"`
	Cells     []NotebookCell  `json:"cells,omitempty" doc:"Of a notebook"`
	Entries   []ArchiveEntry  `json:"entries,omitempty" doc:"Of an archive"`
	More      int64           `json:"more,omitempty" doc:"Cells or entries beside those; -1 when nobody has counted them"`
	Type      string          `json:"type,omitempty" example:"image/png" doc:"Of an image; of a database sqlite"`
	Width     int64           `json:"width,omitempty"`
	Height    int64           `json:"height,omitempty"`
	Pages     *int64          `json:"pages,omitempty" doc:"Of a PDF; missing where the session cannot read PDFs"`
	Tables    []DatabaseTable `json:"tables,omitempty" doc:"Of a database"`
	Hex       string          `json:"hex,omitempty" doc:"The first 256 bytes of a file that is nothing else"`
}

// PreviewTable is a piece of a table in a file.
type PreviewTable struct {
	Columns     []Column `json:"columns"`
	MoreColumns int64    `json:"more_columns" doc:"How many there are beside them"`
	Total       *int64   `json:"total,omitempty" doc:"Rows of the whole table; missing when they were not counted"`
	Offset      int64    `json:"offset" doc:"Of the first row here"`
	Index       []string `json:"index"`
	IndexName   string   `json:"index_name"`
	Rows        [][]any  `json:"rows" doc:"Cells: null where a value is missing, booleans, numbers or texts"`
}

// NotebookCell is a cell of a notebook.
type NotebookCell struct {
	Kind    string   `json:"kind" example:"code"`
	Source  string   `json:"source"`
	Outputs []string `json:"outputs" doc:"As text"`
}

// ArchiveEntry is a file in an archive.
type ArchiveEntry struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Folder bool   `json:"folder"`
}

// DatabaseTable is a table of a database.
type DatabaseTable struct {
	Name    string   `json:"name"`
	Columns []Column `json:"columns"`
	Rows    *int64   `json:"rows,omitempty" doc:"Missing when they were not counted"`
}

func columnsOf(all []workspace.PreviewColumn) []Column {
	return each(all, func(c workspace.PreviewColumn) Column { return Column(c) })
}

func previewOf(e workspace.Entry, p workspace.Preview) Preview {
	out := Preview{Path: e.Path, Size: e.Size, Kind: p.Kind, Encoding: p.Encoding, Separator: p.Separator, Text: p.Text, Truncated: p.Truncated, Sheets: p.Sheets, Sheet: p.Sheet,
		More: p.More, Type: p.Type, Width: p.Width, Height: p.Height, Pages: p.Pages, Hex: p.Hex,
		Cells: each(p.Cells, func(c workspace.PreviewCell) NotebookCell {
			return NotebookCell{Kind: c.Kind, Source: c.Source, Outputs: append([]string{}, c.Outputs...)}
		}),
		Entries: each(p.Entries, func(e workspace.PreviewEntry) ArchiveEntry { return ArchiveEntry(e) }),
		Tables: each(p.Tables, func(t workspace.PreviewSchema) DatabaseTable {
			return DatabaseTable{Name: t.Name, Columns: columnsOf(t.Columns), Rows: t.Rows}
		}),
	}
	if t := p.Table; t != nil {
		out.Table = &PreviewTable{Columns: columnsOf(t.Columns), MoreColumns: t.MoreColumns, Total: t.Total, Offset: t.Offset, Index: t.Index, Rows: t.Rows}
	}
	return out
}

type previewFile struct {
	TreeQuery
	Sheet  string `query:"sheet" maxLength:"200" doc:"Of a workbook; the first when left out"`
	Offset int    `query:"offset" minimum:"0" doc:"The first row of a table"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"100" doc:"Rows of a table"`
}

func (s *server) addPreview() {
	add(s, operation{id: "tree.preview", method: http.MethodGet, path: "/sessions/{session}/preview", tag: "session files", action: auth.FilesRead, summary: "Preview a file",
		about: "A piece of a CSV, XLSX or Parquet file as a table, whose first row names the columns; the beginning of a text; what is in a notebook, an archive or an SQLite database; size and text of a PDF's first page; an image's type and size. " +
			"A process in the sandbox reads the file, also while code runs, within 10 seconds and 1 GiB. Whatever it says comes from the sandbox: do not trust it.",
		errors: append([]problem.Code{problem.NotShown}, treeProblems...), example: `curl -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/preview?path=data/sales.csv&limit=20"`},
		func(ctx context.Context, who auth.Principal, in *previewFile) (Preview, error) {
			e, p, err := s.o.Hub.Preview(ctx, who, in.Session, workspace.Look{Path: in.Path, Sheet: in.Sheet, Offset: in.Offset, Limit: in.Limit})
			return previewOf(e, p), err
		})
}
