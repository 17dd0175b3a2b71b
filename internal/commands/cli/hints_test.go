package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/python/kernel"
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
	if err := os.Mkdir(filepath.Join(work, ".ssh"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".env", ".ssh/id_rsa"} {
		if err := os.WriteFile(filepath.Join(work, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for value, want := range map[string]string{
		"[Errno 2] No such file or directory: 'sales.csv'":                                "sales.csv is on this machine and not in the sandbox: add -f sales.csv",
		"[Errno 2] No such file or directory: './sales.csv'":                              "add -f ./sales.csv",
		"[Errno 2] No such file or directory: 'the data/x.csv'":                           "add -f 'the data/x.csv', and open x.csv",
		"[Errno 2] No such file or directory: 'the data'":                                 "add -f 'the data'",
		"[Errno 2] No such file or directory: '" + filepath.Join(work, "sales.csv") + "'": "add -f " + filepath.Join(work, "sales.csv") + ", and open sales.csv",
		"No such file or directory (os error 2): sales.csv":                               "add -f sales.csv", // Polars
		`IO Error: No files found that match the pattern "sales.csv"`:                     "add -f sales.csv", // DuckDB
		"[Errno 2] No such file or directory: 'none.csv'":                                 "",
		"[Errno 2] No such file or directory: '../above.csv'":                             "", // it could be anything of the user's
		"[Errno 2] No such file or directory: '/etc/passwd'":                              "",
		"[Errno 2] No such file or directory: '.env'":                                     "",
		"[Errno 2] No such file or directory: '.ssh/id_rsa'":                              "",
		"[Errno 2] No such file or directory: 'the data/../.ssh/id_rsa'":                  "",
		"[Errno 2] No such file or directory: 'sales.csv\x1b[0m'":                         "",
		"[Errno 2] No such file or directory: ''":                                         "",
		"another exception about sales.csv":                                               "",
	} {
		r := run(t, &scripted{events: failing("FileNotFoundError", value)}, nil, "run", "-c", "x")
		_, hint, said := strings.Cut(r.err, "Hint: ")
		if said != (want != "") || !strings.Contains(hint, want) {
			t.Errorf("%q: %q", value, r.err)
		}
	}
	lie := failing("Exception", "No such file or directory: 'sales.csv'")
	if r := run(t, &scripted{events: lie}, nil, "run", "-c", "x"); strings.Contains(r.err, "Hint") {
		t.Errorf("of another exception: %s", r.err)
	}
	missing := failing("FileNotFoundError", "[Errno 2] No such file or directory: 'sales.csv'")
	if r := run(t, &scripted{events: missing}, nil, "run", "--json", "-c", "x"); strings.Contains(r.out+r.err, "on this machine") {
		t.Errorf("a program is told of files of this machine: %s", r.out)
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
