package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

// What is stopped; each marks when it is in the midst of it.
const (
	sleeping = "import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '4711'])\nprint('under way', flush=True)\ntime.sleep(600)"
	deaf     = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('under way', flush=True)\nwhile True: time.sleep(1)"
)

// signals are Ctrl-C of a terminal, which goes to the whole group, and the request to end, which goes to cove alone.
func signals(t *testing.T, test func(t *testing.T, stop func(*command), code int)) {
	t.Run("Ctrl-C", func(t *testing.T) {
		t.Parallel()
		test(t, func(c *command) { kill(t, -c.cmd.Process.Pid, syscall.SIGINT) }, 130)
	})
	t.Run("SIGTERM", func(t *testing.T) {
		t.Parallel()
		test(t, func(c *command) { kill(t, c.cmd.Process.Pid, syscall.SIGTERM) }, 143)
	})
}

func kill(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Errorf("%v to %d: %v", s, pid, err)
	}
}

// TestStopAskWhileModelAnswers stops cove while the model is silent, and while it talks without end. Both models would
// go on for longer than the test waits.
func TestStopAskWhileModelAnswers(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for name, turn := range map[string]modeltest.Turn{
		"silent":  {Fault: modeltest.Fault{HangBeforeHeaders: true}},
		"talking": {Text: strings.Split(strings.Repeat("bla ", 1<<16), " "), Delay: 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			signals(t, func(t *testing.T, stop func(*command), code int) {
				c, server := asking(t, "openai/scripted", nil, "Talk.")
				asked := make(chan struct{})
				server.Decide(func(int, modeltest.Request) modeltest.Turn {
					close(asked)
					return turn
				})
				c.start()
				if name == "talking" {
					c.stderr.until(t, "blabla")
				} else {
					<-asked
				}
				stop(c)
				r := c.wait()
				r.ended(t, code)
				if r.stdout != "" {
					t.Errorf("stdout is %q", r.stdout)
				}
			})
		})
	}
}

// TestStopAskWhileCodeRuns stops cove while what the model wrote sleeps.
func TestStopAskWhileCodeRuns(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	signals(t, func(t *testing.T, stop func(*command), code int) {
		c, server := asking(t, "anthropic/scripted", []modeltest.Turn{modeltest.Run(sleeping), modeltest.Say("Slept.")}, "Sleep.")
		c.start()
		c.stderr.until(t, "| under way")
		stop(c)
		r := c.wait()
		r.ended(t, code)
		if len(server.Requests()) != 1 || r.stdout != "" {
			t.Errorf("the model was asked %d times, stdout is %q", len(server.Requests()), r.stdout)
		}
	})
}

// TestStopRun stops code that would run on; code that does not listen is ended by the second Ctrl-C.
func TestStopRun(t *testing.T) {
	t.Parallel()
	signals(t, func(t *testing.T, stop func(*command), code int) {
		c := newCommand(t, "run", "--timeout", "0", "-c", sleeping)
		c.start()
		c.stdout.until(t, "under way")
		stop(c)
		c.wait().ended(t, code)
	})
	t.Run("deaf code", func(t *testing.T) {
		t.Parallel()
		c := newCommand(t, "run", "--timeout", "0", "-c", deaf)
		c.start()
		c.stdout.until(t, "under way")
		kill(t, -c.cmd.Process.Pid, syscall.SIGINT)
		again := time.AfterFunc(200*time.Millisecond, func() { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGINT) })
		defer again.Stop()
		c.wait().ended(t, 130)
	})
	t.Run("json", func(t *testing.T) {
		t.Parallel()
		c := newCommand(t, "run", "--json", "-c", sleeping)
		c.start()
		c.stdout.until(t, "under way")
		kill(t, -c.cmd.Process.Pid, syscall.SIGINT)
		r := c.wait()
		r.ended(t, 130)
		documented(t, r.stdout)
		if lines := strings.Split(strings.TrimSpace(r.stdout), "\n"); !strings.Contains(lines[len(lines)-1], `"outcome":"interrupted"`) {
			t.Errorf("the last line is %s", lines[len(lines)-1])
		}
	})
}

// TestStopAskWhileItReads stops cove while it waits for piped data that does not come.
func TestStopAskWhileItReads(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Close() }()
	c, server := asking(t, "openai/scripted", nil, "What is in it?")
	c.cmd.Stdin = reader
	c.setenv("TMPDIR=" + c.cmd.Dir)
	c.start()
	_ = reader.Close()
	// Its temporary file shows that cove has begun to read.
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); !matches(t, c.path("cove-stdin-*")) && time.Since(began) < patience; {
		<-tick.C
	}
	kill(t, -c.cmd.Process.Pid, syscall.SIGINT)
	c.wait().ended(t, 130)
	if len(server.Requests()) != 0 || matches(t, c.path("cove-stdin-*")) {
		t.Error("the model was asked, or the temporary file stayed")
	}
}

func matches(t *testing.T, pattern string) bool {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return len(found) > 0
}

// TestStopRunAtAnyMoment stops cove while it starts, and later. Before it listens to signals, one ends it as any program.
func TestStopRunAtAnyMoment(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for n := range 8 {
		c := newCommand(t, "run", "-c", sleeping)
		c.start()
		stop := time.AfterFunc(time.Duration(n)*120*time.Millisecond, func() { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGINT) })
		r := c.wait()
		stop.Stop()
		if s, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || r.code != 130 && s.Signal() != syscall.SIGINT {
			t.Errorf("exit code %d: %s", r.code, r.stderr)
		}
		if strings.Contains(r.stderr, "goroutine") {
			t.Errorf("it fell: %s", r.stderr)
		}
	}
}
