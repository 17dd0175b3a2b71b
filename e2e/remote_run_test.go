package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"cove/internal/testkit/testneeds"
)

// TestRunOnAServer runs programs on a server as on this machine: with arguments, files, figures, exit codes and Ctrl-C.
func TestRunOnAServer(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t))
	begin := func(args ...string) *command {
		c := newCommand(t, append([]string{"run"}, args...)...)
		c.setenv("COVE_SERVER="+s.base, "COVE_KEY="+s.key)
		return c
	}
	c := begin("report.py", "-f", "sales.csv", "-e", "YEAR=2025", "--", "--fast", "größe")
	c.file("sales.csv", "a,b\n1,2\n")
	c.file("report.py", `import os, sys
print(__name__, sys.argv, os.environ["YEAR"], open("sales.csv").read().count("\n"))
print("to the side", file=sys.stderr)
import matplotlib.pyplot as plt
plt.plot([1, 2]); plt.show()
open("result.txt", "w").write("done")
sys.exit(3)
`)
	r := c.run()
	if r.code != 3 || r.stdout != "__main__ ['report.py', '--fast', 'größe'] 2025 2\n" || !strings.Contains(r.stderr, "to the side") {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{"cove-out/result.txt", "cove-out/figure-1.png"} {
		if text, err := os.ReadFile(c.path(name)); err != nil || len(text) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	var list struct{ Items []any }
	if s.must(http.MethodGet, "/api/v1/sessions", nil, &list); len(list.Items) != 0 {
		t.Errorf("%d sessions are left", len(list.Items))
	}

	begin("--session", "lab", "-c", "x = 41").run().ended(t, 0)
	r = begin("--session", "lab", "-q", "-c", "x + 1").run()
	if r.ended(t, 0); r.stdout != "42\n" {
		t.Errorf("in a session: %+v", r)
	}
	r = begin("--session", "lab", "--restart", "-c", "x").run()
	if r.code != 1 || !strings.Contains(r.stderr, "NameError") {
		t.Errorf("after a new interpreter: %+v", r)
	}
	r = begin("--json", "-c", "print('a'); 1/0").run()
	kinds := ""
	for line := range strings.Lines(r.stdout) {
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		kinds += e.Type + " "
	}
	if r.code != 1 || !strings.Contains(kinds, "stream error ") || !strings.HasSuffix(kinds, "done ") {
		t.Errorf("as JSON: %s, %+v", kinds, r)
	}
	r = begin("-c", "input('name? ')").run()
	if r.code != 1 || !strings.Contains(r.stderr, "EOFError") {
		t.Errorf("input(): %+v", r)
	}

	c = begin("-c", "import time\nprint('runs', flush=True)\ntime.sleep(1000)")
	c.start()
	c.stdout.until(t, "runs")
	_ = c.cmd.Process.Signal(os.Interrupt)
	if r := c.wait(); r.code != 130 {
		t.Errorf("Ctrl-C: %+v", r)
	}
	r = begin("--timeout", "1s", "-c", "import time; time.sleep(1000)").run()
	if r.code != 124 {
		t.Errorf("timeout: %+v", r)
	}
	for what, args := range map[string][]string{"--engine is for this machine": {"--engine", "local", "-c", "1"}, "no network": {"--allow-net", "example.com", "-c", "1"}, "nothing to run": {}} {
		if r := begin(args...).run(); r.code == 0 || !strings.Contains(r.stderr, what) {
			t.Errorf("%s: %+v", what, r)
		}
	}
	c = newCommand(t, "run", "-c", "1")
	c.setenv("COVE_SERVER=http://127.0.0.1:9", "COVE_KEY="+s.key)
	if r := c.run(); r.code != 125 || !strings.Contains(r.stderr, "127.0.0.1:9") {
		t.Errorf("no server: %+v", r)
	}
	if s.must(http.MethodGet, "/api/v1/sessions", nil, &list); len(list.Items) != 1 {
		t.Errorf("%d sessions are left, and not the one with a name", len(list.Items))
	}
}

// TestReplOnAServer enters cells that run on a server: names are kept, errors do not end it, files come, and a session without a name is gone afterwards.
func TestReplOnAServer(t *testing.T) {
	t.Parallel()
	s := startServer(t, "", testKey(t), "COVE_PACKAGES=minimal")
	repl := func(input string, args ...string) (*command, result) {
		c := newCommand(t, append([]string{"repl", "--server", s.base}, args...)...)
		c.setenv("COVE_KEY=" + s.key)
		c.cmd.Stdin = strings.NewReader(input)
		c.file("in.csv", "a\n1\n")
		return c, c.run()
	}
	c, r := repl("x = 41\nx + 1\n1 / 0\nfor i in range(2):\n    print('row', i)\n\nopen('a.txt', 'w').write(open('in.csv').read())\n", "-f", "in.csv")
	text, err := os.ReadFile(c.path("cove-out/a.txt"))
	if r.ended(t, 0); !strings.Contains(r.stdout, "42\n") || !strings.Contains(r.stdout, "row 0\nrow 1\n") || !strings.Contains(r.stderr, "ZeroDivisionError") || !strings.Contains(r.stderr, s.base) || err != nil || string(text) != "a\n1\n" {
		t.Errorf("%+v, %q, %v", r, text, err)
	}
	var list struct{ Items []struct{ Name string } }
	if s.must(http.MethodGet, "/api/v1/sessions", nil, &list); len(list.Items) != 0 {
		t.Errorf("%d sessions are left", len(list.Items))
	}
	_, r = repl("y = 7\n", "--session", "lab")
	r.ended(t, 0)
	if _, r = repl("y\n", "--session", "lab", "-q"); r.stdout != "7\n" {
		t.Errorf("in a session: %+v", r)
	}
	if _, r = repl("1\n", "--undoable", "--session", "lab"); r.code == 0 || !strings.Contains(r.stderr, "--undoable is for this machine only") {
		t.Errorf("a flag of this machine's: %+v", r)
	}
}
