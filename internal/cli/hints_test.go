package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/kernel"
)

func failing(name, value string, traceback ...string) []kernel.Event {
	return []kernel.Event{kernel.Error{Name: name, Value: value, Traceback: traceback}, kernel.Done{Outcome: kernel.OutcomeError, ExitCode: 1}}
}

// TestMissingFilesOfThisMachine has code look for files that are on this machine alone: what to add is said of those in the command's folder and in the user's own.
func TestMissingFilesOfThisMachine(t *testing.T) {
	home := t.TempDir()
	work := filepath.Join(home, "work")
	if err := os.MkdirAll(filepath.Join(work, "the data"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"work/sales.csv", "work/the data/x.csv", "above.csv"} {
		if err := os.WriteFile(filepath.Join(home, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	t.Chdir(work)
	whole := filepath.Join(home, "above.csv")
	for value, want := range map[string]string{
		"[Errno 2] No such file or directory: 'sales.csv'":             "sales.csv is on this machine and not in the sandbox: add -f sales.csv",
		"[Errno 2] No such file or directory: './sales.csv'":           "add -f sales.csv",
		"[Errno 2] No such file or directory: 'the data/x.csv'":        "add -f 'the data'",
		"[Errno 2] No such file or directory: '" + whole + "'":         "add -f " + whole + ", and open above.csv",
		"[Errno 2] No such file or directory: '../above.csv'":          "add -f ../above.csv, and open above.csv",
		"No such file or directory (os error 2): sales.csv":            "add -f sales.csv", // Polars
		`IO Error: No files found that match the pattern "sales.csv"`:  "add -f sales.csv", // DuckDB
		"[Errno 2] No such file or directory: 'none.csv'":              "",
		"[Errno 2] No such file or directory: '/etc/passwd'":           "", // of others
		"[Errno 2] No such file or directory: '../../../etc/hostname'": "",
		"[Errno 2] No such file or directory: 'sales.csv\x1b[0m'":      "",
		"[Errno 2] No such file or directory: ''":                      "",
		"another exception about sales.csv":                            "",
	} {
		r := run(t, &scripted{events: failing("FileNotFoundError", value)}, nil, "run", "-c", "x")
		_, hint, said := strings.Cut(r.err, "Hint: ")
		if said != (want != "") || !strings.Contains(hint, want) {
			t.Errorf("%q: %q", value, r.err)
		}
	}
}

// TestEncodingsAreSaid has code fail to read a file of the workspace that is not UTF-8.
func TestEncodingsAreSaid(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{"CSV, not UTF-8: read it with encoding=\"gb18030\"": "Hint: g.csv is not UTF-8: read it with encoding=\"gb18030\".\n", "CSV": ""} {
		s := &scripted{events: failing("UnicodeDecodeError", "'utf-8' codec can't decode byte 0xb6"), told: map[string]string{"g.csv": what}}
		if r := run(t, s, nil, "run", "-c", "x"); !strings.HasSuffix(r.err, want) || strings.Contains(r.err, "Hint") != (want != "") {
			t.Errorf("%s: %q", what, r.err)
		}
	}
}

// TestTracebacksOnTerminals: of a cell, frames of libraries are left out; of a program, of %tb and in a pipe none are.
func TestTracebacksOnTerminals(t *testing.T) {
	t.Parallel()
	trace := []string{"Traceback (most recent call last):", `  File "<cell 1>", line 1, in <module>`, "    read()"}
	for range 4 {
		trace = append(trace, `  File "/opt/lib/python3.11/site-packages/pandas/io.py", line 9, in read`, "    deeper()")
	}
	trace = append(trace, "ValueError: x")
	for code, cut := range map[string]bool{"read()": true, "%tb": false} {
		y, _ := onTerminal(t, 100, &scripted{events: failing("ValueError", "x", trace...)}, nil, "run", "-c", code)
		y.UntilShown("ValueError: x")
		if got := y.Face(); strings.Contains(got, "3 frames left out") != cut {
			t.Errorf("%s:\n%s", code, got)
		}
	}
	if r := run(t, &scripted{events: failing("ValueError", "x", trace...)}, nil, "run", "-c", "read()"); strings.Contains(r.err, "left out") || strings.Count(r.err, "deeper()") != 4 {
		t.Errorf("in a pipe: %s", r.err)
	}
}

// TestWhatIsNoProgram says what to do with data, and with code in place of a file's name.
func TestWhatIsNoProgram(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{"sales 2.CSV": "is data, not a program\n  pass it to the code with -f, as in: cove run -f 'sales 2.CSV' -c CODE", "print(1)": "does not exist\n  give code with -c", "none.py": "none.py does not exist\n"} {
		if r := run(t, &scripted{}, nil, "run", program); r.code != 125 || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit code %d, %s", program, r.code, r.err)
		}
	}
}
