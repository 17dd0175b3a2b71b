package workspace

import (
	"encoding/json"
	"errors"
	"strings"
)

// Look says what of a file is wanted.
type Look struct {
	Path   string
	Sheet  string // of a workbook; "" is the first
	Offset int    // rows of a table
	Limit  int
}

// Preview is what a file holds, as a program in the sandbox says. Everything in it is hostile.
type Preview struct {
	Kind      string          `json:"kind"` // table, text, image, pdf, notebook, archive or binary
	Encoding  string          `json:"encoding"`
	Separator string          `json:"separator"`
	Text      string          `json:"text"`
	Truncated bool            `json:"truncated"`
	Hex       string          `json:"hex"`
	Type      string          `json:"type"` // of an image, or sqlite
	Width     int64           `json:"width"`
	Height    int64           `json:"height"`
	Pages     *int64          `json:"pages"`
	Table     *PreviewTable   `json:"table"`
	Sheets    []string        `json:"sheets"`
	Sheet     string          `json:"sheet"`
	Cells     []PreviewCell   `json:"cells"`
	Entries   []PreviewEntry  `json:"entries"`
	Tables    []PreviewSchema `json:"tables"`
	More      int64           `json:"more"` // entries or cells beside those; -1: nobody has counted them
	Error     string          `json:"error"`
}

// PreviewColumn is a column of a table.
type PreviewColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// PreviewTable is a piece of a table. A cell is null, a boolean, a number or a text.
type PreviewTable struct {
	Columns     []PreviewColumn `json:"columns"`
	MoreColumns int64           `json:"more_columns"`
	Total       *int64          `json:"total"` // nil: nobody has counted the rows
	Offset      int64           `json:"offset"`
	Index       []string        `json:"index"`
	Rows        [][]any         `json:"rows"`
}

// PreviewCell is a cell of a notebook.
type PreviewCell struct {
	Kind    string   `json:"kind"`
	Source  string   `json:"source"`
	Outputs []string `json:"outputs"`
}

// PreviewEntry is a file in an archive.
type PreviewEntry struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Folder bool   `json:"folder"`
}

// PreviewSchema is a table of a database.
type PreviewSchema struct {
	Name    string          `json:"name"`
	Columns []PreviewColumn `json:"columns"`
	Rows    *int64          `json:"rows"` // nil: nobody has counted them
}

// Bounds of what a preview may hold; the program that makes it keeps to smaller ones.
const (
	// LargestPreview is the length of a preview as JSON.
	LargestPreview = 4 << 20
	mostRows       = 500
	mostColumns    = 400
	mostParts      = 2000
	longestCell    = 4000
)

var errPreview = errors.New("a preview does not have the expected form")

// ReadPreview reads what the program in the sandbox has written.
func ReadPreview(text []byte) (Preview, error) {
	var p Preview
	if len(text) > LargestPreview {
		return Preview{}, errPreview
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return Preview{}, err
	}
	switch p.Kind {
	case "table", "text", "image", "pdf", "notebook", "archive", "binary":
	default:
		if p.Error == "" {
			return Preview{}, errPreview
		}
	}
	few := len(p.Sheets) <= mostParts && len(p.Cells) <= mostParts && len(p.Entries) <= mostParts && len(p.Tables) <= mostParts
	if !few || p.Table != nil && !p.Table.regular() || (p.Kind == "table") != (p.Table != nil) && p.Error == "" {
		return Preview{}, errPreview
	}
	p.Error = strings.ToValidUTF8(p.Error[:min(len(p.Error), 500)], "\uFFFD")
	return p, nil
}

// regular says whether a table's rows have a cell for each column, and no cell is more than a short text.
func (t *PreviewTable) regular() bool {
	if len(t.Columns) > mostColumns || len(t.Rows) > mostRows || len(t.Index) != len(t.Rows) {
		return false
	}
	for _, row := range t.Rows {
		if len(row) != len(t.Columns) {
			return false
		}
		for _, cell := range row {
			switch v := cell.(type) {
			case nil, bool, float64:
			case string:
				if len(v) > longestCell {
					return false
				}
			default:
				return false
			}
		}
	}
	return true
}
