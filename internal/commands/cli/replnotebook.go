package cli

import (
	"io"
	"path/filepath"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/python/notebook"
)

// mostKept bounds the bytes of output that the REPL keeps for a notebook.
const mostKept = 64 << 20

// notebookCells are the inputs of the REPL with what they showed. The zero value is ready.
type notebookCells struct {
	all  []*notebook.Cell
	left bool // outputs were left out
}

// next begins a cell, which receives its events; where too much is kept already, it gets none.
func (n *notebookCells) next(code string) *notebook.Cell {
	cell := &notebook.Cell{Code: strings.TrimRight(code, "\n")}
	n.all = append(n.all, cell)
	size := 0
	for _, c := range n.all {
		size += sizeOf(c)
	}
	if size > mostKept {
		n.left = true
		return nil
	}
	return cell
}

func sizeOf(c *notebook.Cell) int {
	size := len(c.Code)
	for _, o := range c.Outputs {
		var data kernel.Bundle
		switch {
		case o.Stream != nil:
			size += len(o.Stream.Data)
		case o.Display != nil:
			data = o.Display.Data
		case o.Result != nil:
			data = o.Result.Data
		}
		for _, value := range data {
			if text, ok := value.(string); ok {
				size += len(text)
			}
		}
	}
	return size
}

// notebookName is the file that an input asks to write: `%save FILE.ipynb`, or .md or .py, or `%notebook FILE`. IPython's own %save takes numbers of inputs besides.
func notebookName(code string) (string, bool) {
	words := strings.Fields(code)
	if len(words) != 2 || strings.HasPrefix(words[1], "-") {
		return "", false
	}
	ending := strings.ToLower(filepath.Ext(words[1]))
	if words[0] == "%notebook" || words[0] == "%save" && (ending == ".ipynb" || ending == ".md" || ending == ".py") {
		return words[1], true
	}
	return "", false
}

// saveNotebook writes what was run so far.
func (r *repl) saveNotebook(name string) {
	d := notebook.Document{Title: strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), Turns: []notebook.Turn{{}}}
	for _, c := range r.cells.all {
		d.Turns[0].Blocks = append(d.Turns[0].Blocks, notebook.Block{Cell: c})
	}
	write, name, err := notebookWriter(name)
	if err != nil {
		r.p.report(err)
		return
	}
	if _, err := writeWhole(name, 0o666, func(w io.Writer) error { return write(w, d) }); err != nil {
		r.p.report(err)
		return
	}
	notef(r.p.Err, "%s: %s", oneLine(name), count(len(r.cells.all), "cell"))
	if r.cells.left {
		notef(r.p.Err, "the outputs of the last cells are not in it: %s are kept at most", humanSize(mostKept))
	}
}

// notebookWriter is what writes documents in the format that the name's ending says, and the name with the ending that is usual where it has none.
func notebookWriter(name string) (write func(io.Writer, notebook.Document) error, whole string, err error) {
	ending := filepath.Ext(name)
	switch strings.ToLower(ending) {
	case ".md":
		return notebook.WriteMarkdown, name, nil
	case ".py":
		return notebook.WritePython, name, nil
	case ".ipynb":
		return notebook.WriteIPYNB, name, nil
	case "":
		return notebook.WriteIPYNB, name + ".ipynb", nil
	}
	return nil, "", problem.New(problem.Usage, oneLine(name)+": cove writes notebooks (.ipynb), Markdown (.md) and programs (.py)").
		WithHint("give it one of these endings, for example " + oneLine(strings.TrimSuffix(name, ending)) + ".ipynb")
}
