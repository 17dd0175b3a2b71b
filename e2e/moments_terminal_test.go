package e2e_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

// seated is a command that somebody sits before, with what was typed ahead.
type seated struct {
	args  []string
	keys  string
	talks bool   // it asks for another line until it is told to end
	kept  string // what its terminal shows once the variable kept is in the session lab
}

var seats = map[string]seated{
	"repl": {
		args: []string{"repl", "--session", "lab"}, talks: true, kept: "In [2]: ",
		keys: "kept = 6007\rimport time; time.sleep(0.4); open('made.txt', 'w').write('made')\rfor i in range(10**6): pass\r\r'a' * 5\rinput('name? ')\r",
	},
	"chat": {args: []string{"chat", "-o", "out"}, keys: "How many?\rAnd now?\r", talks: true},
	"ask":  {args: []string{"ask", "-o", "out", "How many?"}, keys: "abc\r"},
	"run":  {args: []string{"run", "-o", "out", "-c", "import time\nopen('made.txt', 'w').write('made')\nfor i in range(30): print(i, flush=True); time.sleep(0.05)"}, keys: "abc\r"},
}

// stops are the ways to stop a command from where somebody sits.
var stops = []string{"Ctrl-C", "Ctrl-D", "SIGTERM", "a closed terminal"}

// TestStoppedAtMoments stops what people sit before at random moments, with keys typed ahead. Nothing hangs, the terminal is as it was before, nothing runs on, and a variable of a session
// whose cell had ended is there afterwards.
func TestStoppedAtMoments(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	server := modeltest.NewServer()
	t.Cleanup(server.Close)
	server.Decide(func(n int, _ modeltest.Request) modeltest.Turn {
		turn := modeltest.Run("import time; time.sleep(0.3); open('made.txt', 'w').write('made'); print(6007)")
		if n%2 == 1 {
			turn = modeltest.Say("There ", "are ", "6007", " of ", "them.")
		}
		turn.Delay = 20 * time.Millisecond
		return turn
	})
	names := []string{"repl", "chat", "ask", "run"}
	for round := range cycles(t, 8, 200) {
		name, stop := names[round%len(names)], stops[rand.N(len(stops))]
		after := rand.N(4 * time.Second)
		t.Run(fmt.Sprintf("%d %s, %s after %v", round, name, stop, after.Round(time.Millisecond)), func(t *testing.T) {
			seat := seats[name]
			c := newTerminal(t, seat.args...)
			c.setenv("TERM=xterm", "COVE_MODEL=openai/scripted", "OPENAI_BASE_URL="+server.OpenAIURL(), "OPENAI_API_KEY="+secret)
			c.stoppedAt(t, seat, stop, after)
		})
	}
}

// stoppedAt starts the command, types ahead, stops it after a time, and looks at what it has left.
func (c *onTerminal) stoppedAt(t *testing.T, seat seated, stop string, after time.Duration) {
	t.Helper()
	before := c.settings(t)
	c.begin(t)
	if _, err := c.control.WriteString(seat.keys); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.cmd.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(after):
	}
	acknowledged := seat.kept != "" && strings.Contains(c.shown.String(), seat.kept)
	c.stopWith(t, seat, stop, ended)
	code := c.cmd.ProcessState.ExitCode()
	if by, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && by.Signaled() {
		code = 128 + int(by.Signal()) // it had not begun to listen to signals, and a shell says the same
	}
	if allowed := []int{0, 129, 130, 143}; !slices.Contains(allowed, code) {
		t.Errorf("exit code %d", code)
	}
	if stop != "a closed terminal" {
		if now := c.settings(t); now != before {
			t.Errorf("the terminal has other settings: %+v, before %+v", now, before)
		}
		if shown := c.shown.String(); strings.LastIndex(shown, "\x1b[?2004h") > strings.LastIndex(shown, "\x1b[?2004l") || strings.LastIndex(shown, "\x1b[?25l") > strings.LastIndex(shown, "\x1b[?25h") {
			t.Error("the terminal marks pastes, or hides the cursor")
		}
	}
	if acknowledged {
		look := newCommand(t, "run", "--session", "lab", "-c", "print(kept)")
		look.cmd.Env = c.cmd.Env
		var said bytes.Buffer
		look.cmd.Stdout, look.cmd.Stderr = &said, &said
		if err := look.cmd.Run(); err != nil || !strings.Contains(said.String(), "6007\n") {
			t.Errorf("the variable is lost: %v, %s", err, &said)
		}
	}
	c.clear(t)
	if t.Failed() {
		t.Logf("the terminal shows:\n%s", c.shown.String())
	}
}

// stopWith stops the command and waits for its end. What talks goes on after Ctrl-C, and an end of the input may be read by code that asks for a line, so both are followed by another end of the input.
func (c *onTerminal) stopWith(t *testing.T, seat seated, stop string, ended <-chan struct{}) {
	t.Helper()
	var keys string
	switch stop {
	case "Ctrl-C":
		keys = "\x03"
	case "Ctrl-D":
		keys = "\x04"
	case "SIGTERM":
		_ = syscall.Kill(c.cmd.Process.Pid, syscall.SIGTERM) // it may have ended
	default:
		_ = c.control.Close()
	}
	_, _ = c.control.WriteString(keys)
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for began := time.Now(); ; {
		select {
		case <-ended:
			return
		case <-again.C:
		}
		if keys != "" && seat.talks {
			_, _ = c.control.WriteString("\x03\x04")
		}
		if time.Since(began) > patience {
			t.Errorf("it hangs; the terminal shows:\n%s", c.shown.String())
			_ = c.cmd.Process.Signal(syscall.SIGABRT)
			<-ended
			return
		}
	}
}

// settings are those of the terminal.
func (c *onTerminal) settings(t *testing.T) (now unix.Termios) {
	t.Helper()
	raw, err := c.control.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	controlled := raw.Control(func(fd uintptr) {
		var read *unix.Termios
		if read, err = unix.IoctlGetTermios(int(fd), unix.TCGETS); err == nil {
			now = *read
		}
	})
	if controlled != nil || err != nil {
		t.Fatal(controlled, err)
	}
	return now
}

// clear removes the sessions of the command, and waits until nothing runs for it any more.
func (c *onTerminal) clear(t *testing.T) {
	t.Helper()
	rm := newCommand(t, "session", "rm", "--all")
	rm.cmd.Env = c.cmd.Env
	if err := rm.cmd.Run(); err != nil {
		t.Errorf("session rm: %v: %s", err, rm.stderr.String())
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		left, _ := os.ReadDir(filepath.Join(c.runtime, "gvisor"))
		left = slices.DeleteFunc(left, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") })
		running := processes(t, c.runtime)
		if len(left)+len(running) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left: folders %v, processes %q", left, running)
		}
	}
}
