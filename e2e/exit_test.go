package e2e_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"cove/internal/testkit/testneeds"
)

// TestRunEnds runs code that ends in each way that cove tells apart; the exit code and, with --json, the last line say which.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for _, test := range []struct {
		name, code string
		args       []string
		exit       int
		outcome    string
		stderr     string
		json       bool // try it with --json too
	}{
		{"well", "print('out')", nil, 0, "ok", "", true},
		{"with its own code", "import sys; sys.exit(7)", nil, 7, "error", "", false},
		{"with a message", "import sys; sys.exit('no data')", nil, 1, "error", "no data", false},
		{"with an exception", "def f():\n    1/0\nf()", nil, 1, "error", "ZeroDivisionError: division by zero", true},
		{"late", "import time\ntime.sleep(600)", []string{"--timeout", "1s"}, 124, "timeout", "1s", true},
		{"late in C", "sum(range(10**15))", []string{"--timeout", "1s"}, 124, "timeout", "1s", false},
		{"out of memory", "bomb = []\nwhile True: bomb.append(bytearray(1 << 20))", []string{"--memory", "256MiB"}, 137, "out_of_memory", "memory", true},
		{"killed", "import os; os.kill(os.getpid(), 9)", nil, 137, "kernel_died", "SIGKILL", true},
	} {
		for _, json := range []bool{false, true} {
			if json && !test.json {
				continue // another way to the same line
			}
			name := test.name
			if json {
				name += " as json"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				args := append([]string{"run", "-c", test.code}, test.args...)
				if json {
					args = append(args, "--json")
				}
				r := newCommand(t, args...).run()
				r.ended(t, test.exit)
				if json {
					documented(t, r.stdout)
					lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
					if last := lines[len(lines)-1]; !strings.HasPrefix(last, `{"type":"done",`) || !strings.Contains(last, `"outcome":"`+test.outcome+`"`) {
						t.Errorf("the last line is %s, want the outcome %s", last, test.outcome)
					}
					return
				}
				if test.stderr == "" && r.stderr != "" {
					t.Errorf("stderr is %q", r.stderr)
				}
				r.told(t, test.stderr)
			})
		}
	}
}

// TestRunRefuses gives cove what it cannot use: nothing is run, and one complaint says why.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		env  string
		says string
	}{
		{args: []string{"run"}, says: "there is nothing to run"},
		{args: []string{"run", "-c", "1", "prog.py"}, says: "not both"},
		{args: []string{"run", "nothere.py"}, says: "nothere.py does not exist"},
		{args: []string{"run", "-c", "1", "--nothere"}, says: "unknown flag --nothere"},
		{args: []string{"run", "-c", "1", "--memory", "lots"}, says: `"lots" is not a size`},
		{args: []string{"run", "-c", "1", "--timeout", "soon"}, says: "soon"},
		{args: []string{"ask", "--max-steps", "0", "Hello?"}, says: "--max-steps must be at least 1"},
		{args: []string{"ask", "--model", "nothere/x", "Hello?"}, says: `no provider "nothere"`},
		{args: []string{"ask", "--model", "openai/x", "Hello?"}, says: "needs a key and OPENAI_API_KEY is not set"},
		{args: []string{"ask", "--model", "openai/x", "Hello?"}, env: "OPENAI_BASE_URL=nonsense", says: "not an address of a model service"},
	} {
		t.Run(strings.Join(test.args, " ")+test.env, func(t *testing.T) {
			t.Parallel()
			c := newCommand(t, test.args...)
			c.file("prog.py", "print('ran')")
			c.setenv(test.env)
			r := c.run()
			r.ended(t, 125)
			r.complained(t, test.says)
			if r.stdout != "" {
				t.Errorf("stdout is %q", r.stdout)
			}
		})
	}
}

// TestRunIntoClosedPipe reads one line of output without end and goes away, as head does.
func TestRunIntoClosedPipe(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"--quiet", "--json"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			c := newCommand(t, "run", "--timeout", "0", form, "-c", "while True: print('x' * 1000)")
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			c.cmd.Stdout = writer
			c.start()
			_ = writer.Close()
			line, err := bufio.NewReader(reader).ReadString('\n')
			if err != nil || !strings.Contains(line, "xxxx") {
				t.Errorf("the first line is %q, %v", line, err)
			}
			_ = reader.Close()
			r := c.wait()
			r.ended(t, 141)
			if r.stderr != "" {
				t.Errorf("stderr is %q", r.stderr)
			}
		})
	}
}

// TestRunReadsInput answers input() from standard input.
func TestRunReadsInput(t *testing.T) {
	t.Parallel()
	c := newCommand(t, "run", "-c", "print(int(input('n? ')) + int(input()))")
	c.cmd.Stdin = strings.NewReader("40\n2\n")
	r := c.run()
	r.ended(t, 0)
	if r.stdout != "n? 42\n" {
		t.Errorf("stdout is %q", r.stdout)
	}
}
