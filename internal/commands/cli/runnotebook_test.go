package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/commands/cli"
	"cove/internal/python/kernel"
)

const sheet = `{"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"name": "python3", "language": "python", "display_name": "x"}, "own": [1.50]}, "cells": [
 {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# title\n"]},
 {"cell_type": "code", "id": "b", "metadata": {}, "execution_count": 9, "outputs": [{"output_type": "stream", "name": "stdout", "text": "old"}], "source": ["x = 1\n", "x"]},
 {"cell_type": "code", "id": "c", "metadata": {}, "execution_count": 9, "outputs": [{"output_type": "stream", "name": "stdout", "text": "old"}], "source": "1/0"},
 {"cell_type": "code", "id": "d", "metadata": {}, "execution_count": 9, "outputs": [{"output_type": "stream", "name": "stdout", "text": "old"}], "source": "print(2)"}]}`

func TestRunNotebook(t *testing.T) {
	t.Parallel()
	zero := []kernel.Event{kernel.Error{Name: "ZeroDivisionError", Value: "division by zero"}, kernel.Done{Outcome: kernel.OutcomeError, ExitCode: 1}}
	for name, c := range map[string]struct {
		text string
		code int
		ran  int
		out  string
	}{
		"stops":    {sheet, 1, 2, "1\n"},
		"expected": {strings.Replace(sheet, `"id": "c", "metadata": {}`, `"id": "c", "metadata": {"tags": ["raises-exception"]}`, 1), 0, 3, "1\n2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scripted{inTurn: [][]kernel.Event{
				{kernel.Result{Count: 1, Data: kernel.Bundle{"text/plain": "1"}}, ok()}, zero, {kernel.Stream{Name: "stdout", Data: []byte("2\n")}, ok()},
			}}
			r := run(t, s, func(dir string, _ *cli.Program) {
				_ = os.WriteFile(filepath.Join(dir, "s.ipynb"), []byte(c.text), 0o600)
			}, "run", "$DIR/s.ipynb")
			if r.code != c.code || r.out != c.out || s.executed != c.ran {
				t.Errorf("exit code %d, want %d; stdout %q, stderr %q; %d cells ran", r.code, c.code, r.out, r.err, s.executed)
			}
			text, _ := os.ReadFile(filepath.Join(r.dir, "out", "s.ipynb"))
			var made struct {
				Metadata map[string]any `json:"metadata"`
				Cells    []struct {
					Count   *int             `json:"execution_count"`
					Outputs []map[string]any `json:"outputs"`
				} `json:"cells"`
			}
			if err := json.Unmarshal(text, &made); err != nil || len(made.Cells) != 4 || made.Metadata["own"] == nil || strings.Contains(string(text), "old") {
				t.Fatalf("the notebook is %s: %v", text, err)
			}
			for at, kinds := range []string{"", "execute_result", "error", map[bool]string{true: "stream", false: ""}[c.ran == 3]} {
				got := ""
				for _, o := range made.Cells[at].Outputs {
					got += o["output_type"].(string)
				}
				if got != kinds || (kinds != "") != (made.Cells[at].Count != nil) {
					t.Errorf("cell %d has %q, want %q", at, got, kinds)
				}
			}
			if original, _ := os.ReadFile(filepath.Join(r.dir, "s.ipynb")); string(original) != c.text {
				t.Error("the notebook itself was changed")
			}
		})
	}
}

func TestNotebooksThatAreNone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1": "not a Jupyter notebook", `{"nbformat": 5, "cells": []}`: "format 5", `{"nbformat": 3, "worksheets": []}`: "no cell with code", `{"nbformat": 4, "cells": []}`: "no cell with code", `{"nbformat": 4, "cells": [{"cell_type": 1}]}`: "cell 1",
		`{"nbformat": 4, "metadata": {"kernelspec": {"language": "R"}}, "cells": []}`: "cove runs Python",
	} {
		r := run(t, &scripted{}, func(dir string, _ *cli.Program) { _ = os.WriteFile(filepath.Join(dir, "s.ipynb"), []byte(text), 0o600) }, "run", "$DIR/s.ipynb")
		if r.code != 125 || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit code %d, %q", text, r.code, r.err)
		}
	}
}

// TestRunNotebookTo has a notebook run to its end, and written to where the user says.
func TestRunNotebookTo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		code int
		told string
		made string // the file with what came of it
	}{
		"all, into itself":  {[]string{"$DIR/s.ipynb", "--all", "--inplace"}, 1, "1 of 3 cells failed: 2", "s.ipynb"},
		"into a file":       {[]string{"$DIR/s.ipynb", "--all", "-o", "$DIR/made.ipynb"}, 1, "made.ipynb", "made.ipynb"},
		"into a folder":     {[]string{"$DIR/s.ipynb", "--all", "-o", "$DIR/folder.ipynb"}, 1, "", "folder.ipynb/s.ipynb"},
		"both":              {[]string{"$DIR/s.ipynb", "--inplace", "-o", "$DIR/made.ipynb"}, 125, "give one of them", ""},
		"no folder":         {[]string{"$DIR/s.ipynb", "-o", "$DIR/none/made.ipynb"}, 125, "there is no folder", ""},
		"no notebook":       {[]string{"$DIR/a.py", "--all"}, 125, "are for notebooks", ""},
		"not to be written": {[]string{"$DIR/s.ipynb", "--all", "-o", "/proc/made.ipynb"}, 1, "/proc/made.ipynb", "out/s.ipynb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scripted{inTurn: [][]kernel.Event{
				{kernel.Result{Count: 1, Data: kernel.Bundle{"text/plain": "1"}}, ok()},
				{kernel.Error{Name: "ZeroDivisionError", Value: "division by zero"}, kernel.Done{Outcome: kernel.OutcomeError, ExitCode: 1}},
				{kernel.Stream{Name: "stdout", Data: []byte("2\n")}, ok()},
			}}
			r := run(t, s, func(dir string, _ *cli.Program) {
				_ = os.WriteFile(filepath.Join(dir, "s.ipynb"), []byte(sheet), 0o640)
				_ = os.WriteFile(filepath.Join(dir, "a.py"), []byte("1"), 0o600)
				_ = os.Mkdir(filepath.Join(dir, "folder.ipynb"), 0o700)
			}, append([]string{"run"}, c.args...)...)
			if r.code != c.code || !strings.Contains(r.err, c.told) {
				t.Errorf("exit code %d, want %d; stdout %q, stderr %q", r.code, c.code, r.out, r.err)
			}
			if c.made == "" {
				return
			}
			text, err := os.ReadFile(filepath.Join(r.dir, c.made))
			if err != nil || strings.Contains(string(text), "old") || !strings.Contains(string(text), "ZeroDivisionError") || !strings.Contains(string(text), `"2\n"`) {
				t.Errorf("the notebook is %s, %v", text, err)
			}
			if _, err := os.Stat(filepath.Join(r.dir, "out", "s.ipynb")); (err == nil) != (c.made == "out/s.ipynb") {
				t.Errorf("the out folder: %v", err)
			}
			if info, err := os.Stat(filepath.Join(r.dir, "s.ipynb")); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("%v, %v", info, err)
			}
		})
	}
}
