package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/python/notebook"
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

// argumentsOfNotebooks are what sys.argv has in the cells of a notebook after the program's name, as Jupyter's kernel has them: some notebooks look at them.
var argumentsOfNotebooks = []string{"-f", "/tmp/kernel.json"}

// aim finds out where the notebook goes with what came of it. usual is the out folder where none is asked for.
func (c *runCmd) aim(usual string) error {
	info, err := os.Stat(c.Out)
	named := isNotebook(c.Out) && (err != nil || !info.IsDir())
	switch {
	case c.Inplace && named:
		return problem.New(problem.Usage, "--inplace and -o FILE.ipynb both say where the notebook is written").WithHint("give one of them")
	case c.Inplace:
		c.target, err = filepath.EvalSymlinks(c.Program)
		return err
	case named:
		c.target, c.Out = c.Out, usual
		if info, err := os.Stat(filepath.Dir(c.target)); err != nil || !info.IsDir() {
			return problem.New(problem.FileUnwritable, "there is no folder "+oneLine(filepath.Dir(c.target))+" for "+oneLine(filepath.Base(c.target)))
		}
	}
	return nil
}

// program runs what the command is about: a program, or the cells of a notebook one after the other, up to the first that fails.
func (c *runCmd) program(i *interruption, v *runView, s runner, req kernel.Request) error {
	if c.cells == nil {
		return v.execute(i, s, req)
	}
	c.cells.Clear()
	var failed []int
	var first kernel.Done
	for n, cell := range c.cells.Cells {
		v.what = fmt.Sprintf("running cell %d of %d", n+1, len(c.cells.Cells))
		v.cell, v.last = &notebook.Cell{Code: cell.Code}, kernel.Error{}
		req.Code = cell.Code
		if err := v.execute(i, s, req); err != nil {
			if c.target == "" {
				v.out.document(filepath.Base(c.Program), c.cells.Write)
			}
			return err
		}
		if err := c.cells.Ran(cell, *v.cell, n+1); err != nil {
			return err
		}
		req.Restart = false
		if !v.wentWrong(cell) {
			v.done.Outcome, v.done.ExitCode = kernel.OutcomeOK, 0 // the error was expected
			continue
		}
		if failed = append(failed, n+1); len(failed) == 1 {
			first = v.done
		}
		if !c.All || v.done.Outcome != kernel.OutcomeError || v.broken {
			break
		}
	}
	c.tellFailed(v, failed)
	if len(failed) > 0 {
		v.done = first
	}
	c.keep(v.out)
	return nil
}

// wentWrong says whether a cell that ran failed, other than it says itself.
func (v *runView) wentWrong(cell notebook.ProgramCell) bool {
	failed := v.done.Outcome != kernel.OutcomeOK
	return failed && (!cell.Fails || v.done.Outcome != kernel.OutcomeError) || v.done.ExitCode != 0 && !failed || v.broken
}

// tellFailed says which cells failed, for people.
func (c *runCmd) tellFailed(v *runView, failed []int) {
	switch {
	case v.quiet || len(failed) == 0 || v.done.Outcome != kernel.OutcomeError && !c.All:
	case c.All:
		notef(v.p.Err, "%d of %d cells failed: %s", len(failed), len(c.cells.Cells), strings.Trim(strings.ReplaceAll(fmt.Sprint(failed), " ", ", "), "[]"))
	default:
		notef(v.p.Err, "cell %d of %d failed; the cells after it were not run", failed[0], len(c.cells.Cells))
	}
}

// keep writes the notebook.
func (c *runCmd) keep(out *outFolder) {
	if info, err := os.Stat(c.Program); err == nil {
		out.inputs = append(out.inputs, info) // the notebook itself stays as it is, but for --inplace
	}
	if c.target != "" {
		mode := os.FileMode(0o666)
		if info, err := os.Stat(c.target); err == nil {
			mode = info.Mode().Perm()
		}
		size, err := writeWhole(c.target, mode, c.cells.Write)
		if err == nil {
			out.remember(saved{Path: c.target, Size: size, From: "file"})
			return
		}
		out.lose(c.target, err) // and what came of it is kept in the out folder
	}
	out.document(filepath.Base(c.Program), c.cells.Write)
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
