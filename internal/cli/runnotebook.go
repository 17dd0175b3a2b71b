package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"cove/internal/kernel"
	"cove/internal/notebook"
	"cove/internal/problem"
)

// maxNotebook bounds a notebook's text, with what came of earlier runs.
const maxNotebook = 100 << 20

// isNotebook says whether a program is run cell by cell.
func isNotebook(program string) bool { return strings.EqualFold(filepath.Ext(program), ".ipynb") }

// readNotebook reads the notebook that is to be run.
func readNotebook(name string) (*notebook.Program, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxNotebook+1))
	if err != nil {
		return nil, unreadable(name, err)
	}
	if len(text) > maxNotebook {
		return nil, problem.New(problem.CodeTooBig, oneLine(name)+" is longer than "+humanSize(maxNotebook)+", the most that cove runs as one notebook")
	}
	n, err := notebook.ReadProgram(text)
	if err != nil {
		return nil, problem.Of(err).WithHint("`cove run` runs .ipynb files as notebooks; a program of another name is run as it is")
	}
	if len(n.Cells) == 0 {
		return nil, problem.New(problem.Usage, oneLine(name)+" has no cell with code")
	}
	return n, nil
}

// program runs what the command is about: a program, or the cells of a notebook one after the other, up to the first that fails.
func (c *runCmd) program(i *interruption, v *runView, s runner, req kernel.Request) error {
	if c.cells == nil {
		return v.execute(i, s, req)
	}
	c.cells.Clear()
	for n, cell := range c.cells.Cells {
		v.what = fmt.Sprintf("running cell %d of %d", n+1, len(c.cells.Cells))
		v.cell, v.last = &notebook.Cell{Code: cell.Code}, kernel.Error{}
		req.Code = cell.Code
		if err := v.execute(i, s, req); err != nil {
			return err
		}
		if err := c.cells.Ran(cell, *v.cell, n+1); err != nil {
			return err
		}
		req.Restart = false
		if failed := v.done.Outcome != kernel.OutcomeOK; failed && (!cell.Fails || v.done.Outcome != kernel.OutcomeError) || v.done.ExitCode != 0 && !failed || v.broken {
			if !v.quiet && v.done.Outcome == kernel.OutcomeError {
				notef(v.p.Err, "cell %d of %d failed; the cells behind it were not run", n+1, len(c.cells.Cells))
			}
			break
		}
		v.done.Outcome, v.done.ExitCode = kernel.OutcomeOK, 0 // the error was expected
	}
	if info, err := os.Stat(c.Program); err == nil {
		v.out.inputs = append(v.out.inputs, info) // the notebook itself stays as it is
	}
	v.out.document(filepath.Base(c.Program), c.cells.Write)
	return nil
}

// document saves a file of cove's own making.
func (o *outFolder) document(asked string, fill func(io.Writer) error) {
	name, err := o.free(asked)
	var size int64
	if err == nil {
		size, err = o.write(name, fill)
	}
	if err != nil {
		o.lose(asked, err)
		return
	}
	o.remember(saved{Path: filepath.Join(o.dir, name), Size: size, From: "file"})
}
