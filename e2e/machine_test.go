package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/http/client"
	"cove/internal/machine/process"
	"cove/internal/testkit/testneeds"
)

// TestProgramsInASession runs programs in a session from the command line: with pipes, in the background, with signals, and over commands that save it.
func TestProgramsInASession(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	sessions := t.TempDir()
	begin := func(stdin string, args ...string) *command {
		c := newCommand(t, append([]string{"session"}, args...)...)
		c.setenv("COVE_SESSIONS="+sessions, "TERM=dumb")
		c.cmd.Stdin = strings.NewReader(stdin)
		return c
	}
	run := func(stdin string, args ...string) result {
		t.Helper()
		return begin(stdin, args...).run()
	}
	r := run("a\nb\n", "exec", "lab", "-e", "WHO=me", "-w", "/tmp", "--", "bash", "-c", "wc -l; echo $WHO in $PWD; echo oops >&2; exit 7")
	r.ended(t, 7)
	if r.stdout != "2\nme in /tmp\n" || !strings.Contains(r.stderr, "oops\n") {
		t.Errorf("it said %q and %q", r.stdout, r.stderr)
	}
	run("", "exec", "lab", "--", "no-such-program").complained(t, "there is no program")
	run("", "exec", "lab").complained(t, "say what to run")
	run("", "exec", "lab", "-w", "missing", "--", "ls").complained(t, `is not a folder`)
	run("", "shell", "lab").complained(t, "this needs a terminal")
	run("", "ps", "other").complained(t, "there is no session")

	// In the background, over commands that save the session in between.
	r = run("", "exec", "lab", "--detach", "--label", "counter", "--", "bash", "-c", "for i in {1..100000}; do echo $i; sleep 0.02; done")
	r.ended(t, 0)
	id := strings.TrimSpace(r.stdout)
	rows := func() (all []struct {
		ID, State, Label string
		Written          int64 `json:"output_bytes"`
		Exit             *struct{ Signal string }
	}) {
		t.Helper()
		r := run("", "ps", "lab", "--json")
		r.ended(t, 0)
		if err := json.Unmarshal([]byte(r.stdout), &all); err != nil {
			t.Fatalf("%v in %s", err, r.stdout)
		}
		return all
	}
	first := rows()
	if last := first[len(first)-1]; last.ID != id || last.State != "running" || last.Label != "counter" {
		t.Errorf("got %+v", last)
	}
	for deadline := time.Now().Add(patience); ; { // it runs while a command has the session in memory
		if r = run("", "logs", "lab", "counter"); strings.HasPrefix(r.stdout, "1\n2\n") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it wrote %.100q", r.stdout)
		}
	}
	following := begin("", "logs", "lab", id, "--follow")
	following.start()
	following.stdout.until(t, "\n20\n")
	_ = following.cmd.Process.Signal(os.Interrupt) // leaves it running
	following.wait().ended(t, 130)
	run("", "kill", "lab", "counter", "--signal", "KILL", "--all").ended(t, 0)
	if last := rows()[len(first)-1]; last.State != "ended" || last.Exit.Signal != "SIGKILL" || last.Written < first[len(first)-1].Written {
		t.Errorf("got %+v", last)
	}
	if r = run("", "ps", "lab"); !strings.Contains(r.stdout, "SIGKILL") || !strings.Contains(r.stdout, "counter") {
		t.Errorf("the table is\n%s", r.stdout)
	}
	run("", "kill", "lab", "nothing").complained(t, "no process")
	run("", "kill", "lab", "counter", "--signal", "NONE").complained(t, "there is no signal")

	// Ctrl-C is the program's first, and a time limit is its own.
	c := begin("", "exec", "lab", "--", "python", "-c", "import time\nprint('on', flush=True)\ntry: time.sleep(1000)\nexcept KeyboardInterrupt: print('stopped')")
	c.start()
	c.stdout.until(t, "on\n")
	_ = c.cmd.Process.Signal(os.Interrupt)
	if r := c.wait(); r.code != 0 || r.stdout != "on\nstopped\n" {
		t.Errorf("it ended with %d after %q", r.code, r.stdout)
	}
	r = run("", "exec", "lab", "--timeout", "1s", "--", "sleep", "1000")
	r.ended(t, 137)
	r.told(t, "its time was over")
}

// TestShellOfASession works in a shell in a session as a person does.
func TestShellOfASession(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	sessions := t.TempDir()
	c := newTerminal(t, "session", "shell", "lab", "-e", `PS1=ready-\#> `)
	c.setenv("COVE_SESSIONS=" + sessions)
	c.begin(t)
	c.types(t, "ready-1> ", "stty size; echo a-$((1+1))\r")
	c.types(t, "a-2", "python -c \"print('in-' + str(40 + 2)); import time; time.sleep(1000)\"\r")
	if !strings.Contains(c.shown.String(), "24 200") {
		t.Errorf("it shows %q", c.shown.String())
	}
	c.types(t, "in-42", "\x03")
	c.types(t, "KeyboardInterrupt", "echo b-$((1+2))\r")
	c.shown.until(t, "ready-4> ") // before each prompt the shell asks for the terminal's size and gives it back (set_winsize of GNU readline)
	raw, err := c.control.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 111})
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	c.types(t, "b-3", "while [ \"$(stty size)\" != '33 111' ]; do sleep 0.1; done; echo c-$((2+2))\r")
	c.types(t, "c-4", "python -m pdb -c 'p 6*7' -c q -m this\r")
	c.types(t, "42", "q\rsh -c 'echo d-$((2+3)); exec cat'\r")
	c.types(t, "d-5", "\x1a")
	c.types(t, "Stopped", "kill -9 %1; exit 4\r")
	c.types(t, "exit", "exit 4\r")
	c.left(t, 4)
}

// hear follows a process of a server until enough says that it is enough, or to its end.
func hear(ctx context.Context, c *client.Client, session, id string, from int64, enough func(said string) bool) (said string, next int64, exit *process.Exit, err error) {
	for e, err := range c.FollowProcess(ctx, session, id, from) {
		if err != nil {
			return said, next, nil, err
		}
		said, next, exit = said+string(e.Data), e.Next(), e.Exit
		if enough != nil && enough(said) {
			break
		}
	}
	return said, next, exit, nil
}

// TestProcessesOfAServer follows processes over pause, fork, and the death of the server.
func TestProcessesOfAServer(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	s := startServer(t, dir, testKey(t))
	c := client.New(s.base, s.key)
	defer c.Close()
	session := s.session()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tell := func(session, id, text string, end bool) {
		t.Helper()
		n, err := c.WriteProcess(ctx, session, id, strings.NewReader(text), end)
		must(err)
		if n != int64(len(text)) {
			t.Errorf("%d bytes were taken", n)
		}
	}
	echo, err := c.StartProcess(ctx, session, process.Start{Line: "while read n; do echo got $n; done; echo over", Input: true, Label: "echo"})
	must(err)
	tell(session, echo.ID, "1\n", false)
	_, next, _, err := hear(ctx, c, session, echo.ID, 0, func(said string) bool { return said == "got 1\n" })
	must(err)

	// Several follow, from different points, over a pause, which ends their following in words.
	ends := make(chan error, 2)
	for _, from := range []int64{0, next} {
		following := make(chan bool)
		go func() {
			_, _, _, err := hear(ctx, c, session, echo.ID, from, func(string) bool {
				following <- true
				return false
			})
			ends <- err
		}()
		if from == 0 {
			<-following
		}
	}
	silent, err := c.StartProcess(ctx, session, process.Start{Line: "sleep 1000", Input: true})
	must(err)
	writing := make(chan error)
	go func() {
		_, err := c.WriteProcess(ctx, session, silent.ID, strings.NewReader(strings.Repeat("x", 1<<20)), false)
		writing <- err
	}()
	time.Sleep(100 * time.Millisecond) // it is the same when it comes later
	_, err = c.PauseSession(ctx, session)
	must(err)
	for range 2 {
		if err := <-ends; !problem.Has(err, problem.SessionTaken) {
			t.Errorf("a follower of a session that was paused heard %v", err)
		}
	}
	if err := <-writing; !problem.Has(err, problem.SessionTaken) {
		t.Errorf("a writer of a session that was paused heard %v", err)
	}

	// It goes on in the session and in a fork, each by itself.
	fork, err := c.ForkSession(ctx, session, api.NewSession{Name: "fork"})
	must(err)
	tell(fork.ID, echo.ID, "2\n", true)
	said, _, exit, err := hear(ctx, c, fork.ID, echo.ID, 0, nil)
	must(err)
	if said != "got 1\ngot 2\nover\n" || exit.Code != 0 {
		t.Errorf("in the fork it said %q", said)
	}
	tell(session, echo.ID, "3\n", false)
	_, next, _, err = hear(ctx, c, session, echo.ID, next, func(said string) bool { return said == "got 3\n" })
	must(err)
	all, err := c.Processes(ctx, session)
	must(err)
	if i := slices.IndexFunc(all, func(p process.Info) bool { return p.ID == echo.ID }); i < 0 || all[i].Exit != nil || all[i].Label != "echo" || all[i].Written != next {
		t.Errorf("got %+v", all)
	}

	// What was saved before the server died goes on under the next one.
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		row, err := c.Session(ctx, session)
		must(err)
		if row.Saved != nil && row.Saved.After(row.Used) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the session is not saved")
		}
	}
	s.kill()
	again := startServer(t, dir, s.key)
	c = client.New(again.base, s.key)
	defer c.Close()
	tell(session, echo.ID, "4\n", false)
	said, _, _, err = hear(ctx, c, session, echo.ID, next, func(said string) bool { return strings.Contains(said, "got 4") })
	must(err)
	if said != "got 4\n" {
		t.Errorf("under the next server it said %q", said)
	}

	// The command line, and what is refused.
	run := func(stdin string, args ...string) result {
		t.Helper()
		cmd := newCommand(t, append([]string{"session"}, args...)...)
		cmd.setenv("COVE_SERVER="+again.base, "COVE_KEY="+s.key)
		cmd.cmd.Stdin = strings.NewReader(stdin)
		return cmd.run()
	}
	r := run("z", "exec", "made-here", "--", "bash", "-c", "wc -c; exit 9")
	if r.ended(t, 9); r.stdout != "1\n" {
		t.Errorf("it said %q", r.stdout)
	}
	key := "AKIA" + "0123456789ABCDEF"
	if r := run(key, "exec", "made-here", "--", "bash", "-c", "cat; sleep 0.2; echo; echo "+key+" >&2"); r.stdout != strings.Repeat("*", len(key))+"\n" || r.stderr != strings.Repeat("*", len(key))+"\n" {
		t.Errorf("of a key it said %q and %q", r.stdout, r.stderr)
	}
	run("", "kill", session, "echo", "--all").ended(t, 0)
	run("", "ps", "nobody").complained(t, "has no session")
	if _, _, exit, err := hear(ctx, c, session, echo.ID, 0, nil); err != nil || exit.Signal != "SIGTERM" {
		t.Errorf("it ended with %+v, %v", exit, err)
	}
	if _, err := c.WriteProcess(ctx, session, echo.ID, strings.NewReader("x"), false); !problem.Has(err, problem.ProcessEnded) {
		t.Errorf("writing to what has ended: %v", err)
	}
	if _, _, _, err := hear(ctx, c, session, "prc_00000000000000000000000001", 0, nil); !problem.Has(err, problem.ProcessNotFound) {
		t.Errorf("following nothing: %v", err)
	}
	if err := c.SignalProcess(ctx, session, silent.ID, "9", false); err != nil {
		t.Error(err)
	}
}

// TestShellOnAServer works in a shell of a session on a server, leaves it by closing the terminal, and goes on with it from another.
func TestShellOnAServer(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t))
	shell := func(args ...string) *onTerminal {
		c := newTerminal(t, append([]string{"session", "shell", "lab"}, args...)...)
		c.setenv("COVE_SERVER="+s.base, "COVE_KEY="+s.key)
		c.begin(t)
		return c
	}
	c := shell("-e", "PS1=ready> ", "--label", "mine")
	c.types(t, "ready> ", "kept=$((40+1)); echo a-$kept\r")
	c.shown.until(t, "a-41")
	_ = c.cmd.Process.Signal(syscall.SIGHUP)
	_ = c.wait()
	c = shell("--attach", "mine")
	c.types(t, "a-41", "echo b-$((kept+1)); exit 3\r")
	c.left(t, 3)
	if !strings.Contains(c.shown.String(), "b-42") {
		t.Errorf("it shows %q", c.shown.String())
	}
}
