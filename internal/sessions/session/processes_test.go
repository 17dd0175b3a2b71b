package session_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/machine/sandbox"
	"cove/internal/sessions/session"
	"cove/internal/testkit/testneeds"
)

// begin starts a process in a session.
func begin(t *testing.T, s *session.Live, start process.Start) process.Info {
	t.Helper()
	info, err := s.StartProcess(t.Context(), ident.New(ident.Process), start)
	if err != nil {
		t.Fatalf("start %v: %v", start.Command(), err)
	}
	return info
}

// heard is what a process has emitted.
type heard struct {
	out, err, terminal strings.Builder
	gaps               int
	exit               *process.Exit
	next               int64
}

// follow follows a process to its end, or until enough says that it has heard enough.
func follow(t *testing.T, s *session.Live, id string, from int64, enough func(h *heard) bool) *heard {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	h := &heard{}
	var failed error // told below, where the line is the caller's
	for e, err := range s.FollowProcess(ctx, id, from) {
		if failed = err; err != nil {
			break
		}
		switch e.Kind {
		case process.Stdout:
			h.out.Write(e.Data)
		case process.Stderr:
			h.err.Write(e.Data)
		case process.Terminal:
			h.terminal.Write(e.Data)
		case process.Gap:
			h.gaps++
		case process.Ended:
			h.exit = e.Exit
		}
		h.next = e.Next()
		if enough != nil && enough(h) {
			break
		}
	}
	if failed != nil {
		t.Fatalf("follow: %v, after %q %q %q", failed, h.out.String(), h.err.String(), h.terminal.String())
	}
	return h
}

// tell writes to the input of a process.
func tell(t *testing.T, s *session.Live, id, text string, end bool) {
	t.Helper()
	if _, err := s.WriteProcess(t.Context(), id, strings.NewReader(text), end); err != nil {
		t.Fatalf("write %q: %v", text, err)
	}
}

// has waits for a text in what a process says.
func has(text string) func(*heard) bool {
	return func(h *heard) bool { return strings.Contains(h.out.String()+h.terminal.String(), text) }
}

func TestProcesses(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		t.Run("ends", func(t *testing.T) {
			for _, c := range []struct {
				start     process.Start
				out, err  string
				code      int
				signal    string
				inputTold string
			}{
				{start: process.Start{Args: []string{"echo", "a b"}}, out: "a b\n"},
				{start: process.Start{Line: "echo x; echo y >&2; exit 3"}, out: "x\n", err: "y\n", code: 3},
				{start: process.Start{Line: "kill -TERM $$"}, signal: "SIGTERM"},
				{start: process.Start{Line: "cat; echo $FOO-$HOME", Env: map[string]string{"FOO": "bar", "HOME": "/x"}}, out: "bar-/x\n"},
				{start: process.Start{Line: "pwd -P; basename $(pwd)", Dir: "/usr"}, out: "/usr\nusr\n"},
				{start: process.Start{Args: []string{"wc", "-c"}, Input: true}, inputTold: strings.Repeat("z", 300_000), out: "300000\n"},
				{start: process.Start{Args: []string{"python", "-c", "import numpy, sys; print(numpy.arange(3).sum(), sys.stdin.isatty())"}}, out: "3 False\n"},
			} {
				p := begin(t, s, c.start)
				if c.inputTold != "" {
					tell(t, s, p.ID, c.inputTold, true)
				}
				h := follow(t, s, p.ID, 0, nil)
				if h.out.String() != c.out || h.err.String() != c.err || h.exit == nil || h.exit.Code != c.code || h.exit.Signal != c.signal || h.exit.Reason != process.ByItself {
					t.Errorf("%v gave %q, %q, %+v", c.start.Command(), h.out.String(), h.err.String(), h.exit)
				}
				again := follow(t, s, p.ID, int64(len(c.out)/2), nil)
				if got := again.out.String() + again.err.String(); len(got) != len(c.out+c.err)-len(c.out)/2 {
					t.Errorf("%v said from the middle on %q", c.start.Command(), got)
				}
			}
		})
		t.Run("refused", func(t *testing.T) {
			for _, c := range []struct {
				start process.Start
				code  problem.Code
			}{
				{process.Start{}, problem.ProcessInvalid},
				{process.Start{Args: []string{"x"}, Line: "x"}, problem.ProcessInvalid},
				{process.Start{Args: []string{"no-such-program"}}, problem.ProgramMissing},
				{process.Start{Args: []string{"/etc"}}, problem.ProgramMissing},
				{process.Start{Args: []string{"true"}, Dir: "missing"}, problem.InvalidPath},
				{process.Start{Args: []string{"true"}, Env: map[string]string{"A B": ""}}, problem.ProcessInvalid},
				{process.Start{Args: []string{"true", "\x00"}}, problem.ProcessInvalid},
				{process.Start{Args: []string{"true"}, Terminal: &process.Size{Columns: 5000, Rows: 1}}, problem.ProcessInvalid},
				{process.Start{Args: []string{"true"}, Timeout: -1}, problem.ProcessInvalid},
				{process.Start{Args: []string{strings.Repeat("x", 200_000)}}, problem.ProcessInvalid},
			} {
				if _, err := s.StartProcess(t.Context(), ident.New(ident.Process), c.start); !problem.Has(err, c.code) {
					t.Errorf("%.100v: %v", c.start, err)
				}
			}
			p := begin(t, s, process.Start{Args: []string{"true"}})
			follow(t, s, p.ID, 0, nil)
			_, err := s.WriteProcess(t.Context(), p.ID, strings.NewReader("x"), false)
			if !problem.Has(err, problem.ProcessEnded) {
				t.Errorf("write: %v", err)
			}
			if err := s.SignalProcess(t.Context(), p.ID, syscall.SIGTERM, false); !problem.Has(err, problem.ProcessEnded) {
				t.Errorf("signal: %v", err)
			}
			if err := s.SignalProcess(t.Context(), ident.New(ident.Process), syscall.SIGTERM, false); !problem.Has(err, problem.ProcessNotFound) {
				t.Errorf("signal: %v", err)
			}
		})
		t.Run("a terminal", func(t *testing.T) { terminals(t, s) })
		t.Run("killed", func(t *testing.T) { killed(t, s) })
		t.Run("much output", func(t *testing.T) { muchOutput(t, s) })
		t.Run("many", func(t *testing.T) { manyProcesses(t, s) })
	})
}

func terminals(t *testing.T, s *session.Live) {
	p := begin(t, s, process.Start{Args: []string{"bash", "--norc", "-i"}, Terminal: &process.Size{Columns: 71, Rows: 17}, Env: map[string]string{"PS1": "ready> "}})
	h := follow(t, s, p.ID, 0, has("ready> "))
	tell(t, s, p.ID, "stty size; tty; test -t 0 && test -t 1 && test -t 2 && echo it-$TERM\n", false)
	// The shell asks for the terminal's size and gives it back before each prompt (set_winsize of GNU readline): with another one meanwhile that would be undone.
	h = follow(t, s, p.ID, h.next, func(h *heard) bool {
		_, after, said := strings.Cut(h.terminal.String(), "it-xterm")
		return said && strings.Contains(after, "ready> ")
	})
	if got := h.terminal.String(); !strings.Contains(got, "17 71") || !strings.Contains(got, "/dev/pts/") {
		t.Errorf("the terminal says %q", got)
	}
	if err := s.ResizeProcess(t.Context(), p.ID, process.Size{Columns: 100, Rows: 30}); err != nil {
		t.Error(err)
	}
	tell(t, s, p.ID, "stty size; sh -c 'echo in-$((1+1)); exec cat'\n", false)
	if h = follow(t, s, p.ID, h.next, has("in-2")); !strings.Contains(h.terminal.String(), "30 100") {
		t.Errorf("with another size the terminal says %q", h.terminal.String())
	}
	repeats := func(text string) { // gVisor can lose a key's signal to a program that is just taking another's place
		tell(t, s, p.ID, text+"\n", false)
		h = follow(t, s, p.ID, h.next, has(text+"\r\n"+text+"\r\n"))
	}
	repeats("first")
	tell(t, s, p.ID, "\x03", false) // Ctrl-C, for cat alone; what was typed before it is thrown away
	h = follow(t, s, p.ID, h.next, has("ready> "))
	tell(t, s, p.ID, "echo a-$((1+1)); sh -c 'echo in-$((1+2)); exec cat'\n", false)
	h = follow(t, s, p.ID, h.next, has("in-3"))
	repeats("second")
	tell(t, s, p.ID, "\x1a", false) // Ctrl-Z
	h = follow(t, s, p.ID, h.next, has("Stopped"))
	tell(t, s, p.ID, "kill -9 %1; exit 5\n", false)
	_, _ = s.WriteProcess(t.Context(), p.ID, strings.NewReader("exit 5\n"), false) // where the shell does not know yet that the job is gone; else it has ended
	h = follow(t, s, p.ID, h.next, nil)
	if h.exit == nil || h.exit.Code != 5 {
		t.Errorf("it ended with %+v after %q", h.exit, h.terminal.String())
	}
	p = begin(t, s, process.Start{Args: []string{"cat"}, Terminal: &process.Size{Columns: 80, Rows: 24}})
	tell(t, s, p.ID, "x\n", false)
	tell(t, s, p.ID, "", true)
	if h := follow(t, s, p.ID, 0, nil); h.terminal.String() != "x\r\nx\r\n" || h.exit.Code != 0 {
		t.Errorf("cat said %q and ended with %+v", h.terminal.String(), h.exit)
	}
}

func killed(t *testing.T, s *session.Live) {
	alive := func(mark string) int {
		h := follow(t, s, begin(t, s, process.Start{Line: "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -c '^sleep " + mark + "'; done | grep -c 1"}).ID, 0, nil)
		n := 0
		_, _ = fmt.Sscan(h.out.String(), &n)
		return n
	}
	// A child, a grandchild in a session of its own, and one that two forks have left behind.
	p := begin(t, s, process.Start{Line: "sleep 7001 & setsid sleep 7001 & (setsid sleep 7001 &) ; echo on; wait"})
	follow(t, s, p.ID, 0, has("on"))
	for deadline := time.Now().Add(time.Minute); alive("7001") != 3; {
		if time.Now().After(deadline) {
			t.Fatalf("%d of 3 run", alive("7001"))
		}
	}
	if err := s.SignalProcess(t.Context(), p.ID, syscall.SIGKILL, true); err != nil {
		t.Fatal(err)
	}
	if h := follow(t, s, p.ID, 0, nil); h.exit.Signal != "SIGKILL" {
		t.Errorf("it ended with %+v", h.exit)
	}
	if n := alive("7001"); n != 0 {
		t.Errorf("%d are left", n)
	}
	// What is left behind goes on when the process has ended, until all is killed.
	p = begin(t, s, process.Start{Line: "setsid sleep 7002 >/dev/null & sleep 0.1"})
	follow(t, s, p.ID, 0, nil)
	if n := alive("7002"); n != 1 {
		t.Errorf("%d run", n)
	}
	if err := s.SignalProcess(t.Context(), p.ID, syscall.SIGKILL, true); err != nil {
		t.Fatal(err)
	}
	if n := alive("7002"); n != 0 {
		t.Errorf("%d are left", n)
	}
	for limit := 300 * time.Millisecond; ; limit *= 2 { // until it is long enough for a shell to begin on this machine
		p = begin(t, s, process.Start{Line: "setsid sleep 7003 & echo begun; wait", Timeout: limit})
		h := follow(t, s, p.ID, 0, nil)
		if h.exit.Reason != process.ForTime || h.exit.Signal != "SIGKILL" {
			t.Fatalf("it ended with %+v after %q", h.exit, h.out.String())
		}
		if h.out.String() == "begun\n" {
			break
		}
	}
	if n := alive("7003"); n != 0 {
		t.Errorf("%d are left", n)
	}
}

func muchOutput(t *testing.T, s *session.Live) {
	const size = 20 << 20
	// Nothing is lost while somebody reads, also when the stream changes all the time.
	p := begin(t, s, process.Start{Line: fmt.Sprintf("echo -n ready; read; head -c %d /dev/zero; for i in {1..20000}; do echo -n o; echo -n e >&2; done", size), Input: true})
	got, ready := make(chan *heard), make(chan bool)
	go func() {
		tellReady := sync.OnceFunc(func() { close(ready) })
		got <- follow(t, s, p.ID, 0, func(*heard) bool { tellReady(); return false })
	}()
	<-ready
	tell(t, s, p.ID, "go\n", false)
	if h := <-got; h.out.Len() != len("ready")+size+20000 || h.err.Len() != 20000 || h.gaps != 0 {
		t.Errorf("%d and %d bytes came, and %d gaps", h.out.Len(), h.err.Len(), h.gaps)
	}
	// Of what nobody reads, the last is kept.
	p = begin(t, s, process.Start{Line: "head -c 5000000 /dev/zero; echo the end"})
	for deadline := time.Now().Add(time.Minute); ; {
		all, err := s.Processes(t.Context())
		i := slices.IndexFunc(all, func(i process.Info) bool { return i.ID == p.ID })
		if err != nil || i < 0 || time.Now().After(deadline) {
			t.Fatalf("%v, %v", err, all)
		}
		if all[i].Exit != nil {
			if all[i].Written != 5000008 || all[i].Kept < 3_900_000 {
				t.Errorf("got %+v", all[i])
			}
			break
		}
	}
	if h := follow(t, s, p.ID, 0, nil); h.gaps != 1 || !strings.HasSuffix(h.out.String(), "the end\n") || h.out.Len() < 900_000 {
		t.Errorf("%d bytes and %d gaps came", h.out.Len(), h.gaps)
	}
}

func manyProcesses(t *testing.T, s *session.Live) {
	var ids []string
	for {
		p, err := s.StartProcess(t.Context(), ident.New(ident.Process), process.Start{Args: []string{"sleep", "8001"}})
		if problem.Has(err, problem.TooManyProcesses) {
			break
		}
		if err != nil || len(ids) > 64 {
			t.Fatalf("%d run: %v", len(ids), err)
		}
		ids = append(ids, p.ID)
	}
	for _, id := range ids {
		if err := s.SignalProcess(t.Context(), id, syscall.SIGKILL, false); err != nil {
			t.Error(err)
		}
		if h := follow(t, s, id, 0, nil); h.exit.Signal != "SIGKILL" {
			t.Errorf("it ended with %+v", h.exit)
		}
	}
	if all, err := s.Processes(t.Context()); err != nil || len(all) != 32 {
		t.Errorf("%d are known, %v", len(all), err)
	}
}

// TestProcessesAreSaved saves a session whose processes run, goes on, and restores it twice.
func TestProcessesAreSaved(t *testing.T) {
	t.Parallel()
	e := newGVisor(t)
	s := open(t, e, sandbox.Limits{})
	counter := begin(t, s, process.Start{Line: "while read n; do echo got $n; done", Input: true})
	shell := begin(t, s, process.Start{Args: []string{"bash", "--norc"}, Terminal: &process.Size{Columns: 80, Rows: 24}, Env: map[string]string{"PS1": "> "}})
	tell(t, s, counter.ID, "1\n", false)
	from := follow(t, s, counter.ID, 0, has("got 1")).next
	following := make(chan *heard)
	go func() { following <- follow(t, s, counter.ID, from, has("got 2")) }()
	image := save(t, s, true)
	tell(t, s, counter.ID, "2\n", false)
	if h := <-following; h.out.String() != "got 2\n" {
		t.Errorf("the follower heard %q", h.out.String())
	}
	if !s.Touched() {
		t.Error("a session whose process runs has nothing to save")
	}
	final := save(t, s, false)
	if s.Touched() {
		t.Error("a session that was saved has something to save")
	}
	for _, c := range []struct {
		image sandbox.Checkpoint
		said  string
	}{{image, "got 1\n"}, {final, "got 1\ngot 2\n"}} {
		again := reopen(t, e, c.image, false)
		tell(t, again, counter.ID, "3\n", true)
		if h := follow(t, again, counter.ID, 0, nil); h.out.String() != c.said+"got 3\n" || h.exit.Code != 0 {
			t.Errorf("after a restore it said %q", h.out.String())
		}
		tell(t, again, shell.ID, "x=5; echo $((x+1))-$x; exit\n", false)
		if h := follow(t, again, shell.ID, 0, nil); !strings.Contains(h.terminal.String(), "6-5") {
			t.Errorf("after a restore the shell said %q", h.terminal.String())
		}
	}
}

// TestPorts reaches a server of the session, which is saved when nobody is connected to it.
func TestPorts(t *testing.T) {
	t.Parallel()
	s := open(t, newGVisor(t), sandbox.Limits{})
	begin(t, s, process.Start{Args: []string{"python", "-c", "import socketserver\nclass Echo(socketserver.StreamRequestHandler):\n    def handle(self):\n" +
		"        for line in self.rfile: self.wfile.write(line.upper())\nsocketserver.ThreadingTCPServer(('127.0.0.1', 7000), Echo).serve_forever()"}})
	if _, err := s.DialPort(t.Context(), 7001); !problem.Has(err, problem.PortRefused) {
		t.Errorf("where nothing listens: %v", err)
	}
	var conn guestlink.Stream
	for deadline := time.Now().Add(time.Minute); conn == nil; {
		var err error
		if conn, err = s.DialPort(t.Context(), 7000); err != nil && (!problem.Has(err, problem.PortRefused) || time.Now().After(deadline)) {
			t.Fatal(err)
		}
	}
	if ports, err := s.Ports(t.Context()); err != nil || !slices.Contains(ports, process.Port{Number: 7000, Address: "127.0.0.1"}) {
		t.Errorf("the ports are %v, %v", ports, err)
	}
	ask := func(conn guestlink.Stream) {
		t.Helper()
		if _, err := io.WriteString(conn, "one\ntwo\n"); err != nil {
			t.Error(err)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Error(err)
		}
		if got, err := io.ReadAll(conn); err != nil || string(got) != "ONE\nTWO\n" {
			t.Errorf("it answered %q, %v", got, err)
		}
	}
	if _, err := s.Save(t.Context(), t.TempDir(), true); !problem.Has(err, problem.SessionBusy) {
		t.Errorf("saved with a connection that is open: %v", err)
	}
	ask(conn)
	_ = conn.Close()
	_ = conn.Close()
	save(t, s, true)
	again, err := s.DialPort(t.Context(), 7000)
	if err != nil {
		t.Fatal(err)
	}
	ask(again)
	_ = again.Close()
}

// TestProcessesForMemory has a process use up the memory: it is killed, which is said, and the variables of code stay.
func TestProcessesForMemory(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := open(t, newGVisor(t), sandbox.Limits{Memory: 700 << 20})
	runCell(t, s, code("kept = 1", "ok"))
	p := begin(t, s, process.Start{Args: []string{"python", "-c", "import time\nheld = []\nwhile True: held.append(b'x' * (20 << 20)); time.sleep(0.02)"}})
	if h := follow(t, s, p.ID, 0, nil); h.exit.Reason != process.ForMemory || h.exit.Signal != "SIGKILL" {
		t.Errorf("it ended with %+v", h.exit)
	}
	runCell(t, s, code("kept", "result 1\nok"))
}

// TestFollowersAreBounded has as many follow as may, which leaves the session usable.
func TestFollowersAreBounded(t *testing.T) {
	t.Parallel()
	s := open(t, newGVisor(t), sandbox.Limits{})
	p := begin(t, s, process.Start{Line: "echo on; exec sleep 1000"})
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	for range 32 {
		on := make(chan bool)
		following.Go(func() {
			heard := sync.OnceFunc(func() { close(on) })
			for _, err := range s.FollowProcess(ctx, p.ID, 0) {
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				heard()
			}
		})
		<-on
	}
	for _, err := range s.FollowProcess(ctx, p.ID, 0) {
		if !problem.Has(err, problem.TooManyProcesses) {
			t.Errorf("one follower too many: %v", err)
		}
	}
	if _, err := s.WriteProcess(ctx, p.ID, strings.NewReader("x"), false); !problem.Has(err, problem.TooManyProcesses) {
		t.Errorf("one writer too many: %v", err)
	}
	runCell(t, s, code("1 + 1", "result 2\nok"))
	cancel()
	following.Wait()
	if h := follow(t, s, p.ID, 0, has("on")); h.out.String() != "on\n" {
		t.Errorf("it said %q", h.out.String())
	}
}
