package keeper_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/keeper"
	"cove/internal/machine/sandbox"
)

// fakeSandbox is a sandbox whose guest greets with the number of its connection and then sends back what it gets, until it gets a line "end".
type fakeSandbox struct {
	done  chan struct{}
	cause error
	once  sync.Once
	dials atomic.Int32
	open  atomic.Int32
	most  atomic.Int32
	saved atomic.Value
	stale atomic.Int32 // so many connections are severed before they are dialed
}

func newFakeSandbox() *fakeSandbox { return &fakeSandbox{done: make(chan struct{})} }

func (b *fakeSandbox) ID() string             { return "sbx-1" }
func (b *fakeSandbox) Layout() sandbox.Layout { return sandbox.NewLayout("/workspace", "/tmp", nil) }
func (b *fakeSandbox) Done() <-chan struct{}  { return b.done }
func (b *fakeSandbox) Cause() error           { return b.cause }

func (b *fakeSandbox) end(cause error) {
	b.once.Do(func() {
		b.cause = cause
		close(b.done)
	})
}

func (b *fakeSandbox) Stop(context.Context) error {
	b.end(nil)
	return nil
}

// severed is what a checkpoint leaves of a connection: its other end is gone, what that said is still there.
func severed() (io.ReadWriteCloser, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	near, far := os.NewFile(uintptr(fds[0]), "near"), os.NewFile(uintptr(fds[1]), "far")
	defer near.Close()
	fmt.Fprintln(far, "guest of the past")
	far.Close()
	return net.FileConn(near)
}

func (b *fakeSandbox) Dial(context.Context) (io.ReadWriteCloser, error) {
	if b.stale.Add(-1) >= 0 {
		return severed()
	}
	near, far := net.Pipe()
	n := b.dials.Add(1)
	b.most.Store(max(b.most.Load(), b.open.Add(1)))
	go func() {
		defer far.Close()
		fmt.Fprintf(far, "guest %d\n", n)
		in := bufio.NewReader(far)
		for {
			line, err := in.ReadString('\n')
			if err != nil || line == "end\n" {
				return
			}
			if _, err := io.WriteString(far, line); err != nil {
				return
			}
		}
	}()
	return &guest{Conn: near, fakeSandbox: b}, nil
}

type guest struct {
	net.Conn
	fakeSandbox *fakeSandbox
	once        sync.Once
}

func (g *guest) Close() error {
	g.once.Do(func() { g.fakeSandbox.open.Add(-1) })
	return g.Conn.Close()
}

func (b *fakeSandbox) Checkpoint(_ context.Context, dir string, keep bool) (sandbox.Checkpoint, error) {
	if b.open.Load() > 0 {
		return sandbox.Checkpoint{}, errors.New("the guest is connected")
	}
	if dir == "/full" {
		return sandbox.Checkpoint{}, problem.Received(problem.Exhausted, "disk_full", "there is no room").WithHint("make some")
	}
	b.saved.Store(fmt.Sprint(dir, " ", keep))
	if dir == "/elsewhere" {
		return sandbox.CheckpointNamed("one", 1), nil
	}
	return sandbox.CheckpointIn(dir), nil
}

type kept struct {
	*fakeSandbox
	*keeper.Server
	dir     string
	flushed atomic.Int32
	refuse  error
	ended   chan struct{} // receives when the keeper is to end
}

// keep keeps a sandbox until the test ends.
func keep(t *testing.T, dir string) *kept {
	t.Helper()
	place, err := keeper.Occupy(dir)
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{fakeSandbox: newFakeSandbox(), dir: dir, ended: make(chan struct{}, 8)}
	end := func(context.Context) error {
		if k.refuse == nil {
			k.ended <- struct{}{}
		}
		return k.refuse
	}
	k.Server = keeper.Serve(place, keeper.Options{Sandbox: k.fakeSandbox, Identity: "me", Pause: end, Stop: end,
		Flush: func(context.Context) error { k.flushed.Add(1); return k.refuse }})
	t.Cleanup(func() { _ = k.Close() })
	return k
}

func connect(t *testing.T, dir string) *keeper.Remote {
	t.Helper()
	r, err := keeper.Connect(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Release)
	return r
}

func says(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	if line, err := r.ReadString('\n'); err != nil || line != want+"\n" {
		t.Errorf("the guest says %q, %v; want %q", line, err, want)
	}
}

func code(err error) string {
	if err == nil {
		return ""
	}
	return problem.Of(err).Code
}

func TestEachUseIsAConnection(t *testing.T) {
	t.Parallel()
	// Longer than a socket's address may be.
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	k := keep(t, dir)
	r := connect(t, dir)
	if r.ID() != "sbx-1" || r.Identity() != "me" || r.Layout().Workspace != "/workspace" || r.Layout().Path("/opt") != "/opt" {
		t.Errorf("the sandbox is %s %s %+v", r.ID(), r.Identity(), r.Layout())
	}
	for n := 1; n <= 3; n++ {
		stream, err := r.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(stream)
		says(t, in, fmt.Sprintf("guest %d", n))
		fmt.Fprintln(stream, "hello")
		says(t, in, "hello")
		if _, now := k.Used(); !now {
			t.Error("it is said not to be used")
		}
		if n == 2 { // the guest ends
			fmt.Fprintln(stream, "end")
			if _, err := in.ReadString('\n'); !errors.Is(err, io.EOF) {
				t.Errorf("after the guest's end: %v", err)
			}
		}
		stream.Close()
	}
	for _, want := range []sandbox.Checkpoint{sandbox.CheckpointNamed("one", 1), sandbox.CheckpointIn("/somewhere")} {
		folder, ok := want.HostFolder()
		if !ok {
			folder = "/elsewhere"
		}
		if saved, err := r.Checkpoint(t.Context(), folder, true); err != nil || saved != want {
			t.Errorf("saved %v in %s: %v", saved, folder, err)
		}
	}
	if k.saved.Load() != "/somewhere true" || k.most.Load() != 1 {
		t.Errorf("saved %v, %d connections at once", k.saved.Load(), k.most.Load())
	}
	if _, err := r.Checkpoint(t.Context(), "/full", true); code(err) != "disk_full" || problem.Of(err).Hint != "make some" {
		t.Errorf("on a full disk: %v", err)
	}
	if _, err := r.Checkpoint(t.Context(), "here", true); code(err) != "keeper_request" {
		t.Errorf("a relative folder: %v", err)
	}
	<-k.Moved()
	if _, now := k.Used(); now {
		t.Error("it is still said to be used")
	}
	info, err := os.Stat(filepath.Join(dir, "keeper.sock"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
}

func TestSeveredConnectionsAreNoUse(t *testing.T) {
	t.Parallel()
	k := keep(t, t.TempDir())
	k.stale.Store(12)
	stream, err := connect(t, k.dir).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	says(t, bufio.NewReader(stream), "guest 1")
}

// TestManyUses has many clients use the sandbox, some of which give up: one at a time has the guest.
func TestManyUses(t *testing.T) {
	t.Parallel()
	k := keep(t, t.TempDir())
	r := connect(t, k.dir)
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if n%3 == 0 {
				cancel()
			}
			stream, err := r.Dial(ctx)
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			defer stream.Close()
			line, err := bufio.NewReader(stream).ReadString('\n')
			if err != nil || !strings.HasPrefix(line, "guest ") {
				t.Errorf("%q, %v", line, err)
			}
		})
	}
	all.Wait()
	if k.most.Load() != 1 {
		t.Errorf("%d had the guest at once", k.most.Load())
	}
}

func TestManyBytes(t *testing.T) {
	t.Parallel()
	k := keep(t, t.TempDir())
	stream, err := connect(t, k.dir).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	in := bufio.NewReader(stream)
	says(t, in, "guest 1")
	line := strings.Repeat("x", 1<<20)
	go func() {
		for range 8 {
			fmt.Fprintln(stream, line)
		}
	}()
	for range 8 {
		says(t, in, line)
	}
}

func TestTheEndOfASandboxIsSaid(t *testing.T) {
	t.Parallel()
	k := keep(t, t.TempDir())
	r := connect(t, k.dir)
	k.end(problem.New(problem.SessionOOM, "too much memory"))
	<-r.Done()
	if code(r.Cause()) != "session_oom" {
		t.Errorf("the cause is %v", r.Cause())
	}
	k = keep(t, t.TempDir())
	r = connect(t, k.dir)
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	<-r.Done()
	if !keeper.Gone(r.Cause()) {
		t.Errorf("the cause is %v", r.Cause())
	}
	if _, err := r.Dial(t.Context()); !keeper.Gone(err) {
		t.Errorf("dialed after the end: %v", err)
	}
	if err := r.Stop(t.Context()); err != nil {
		t.Errorf("stopped after the end: %v", err)
	}
}

func TestAPlaceHasOneKeeper(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if keeper.Lives(dir) {
		t.Error("one lives in an empty folder")
	}
	if _, err := keeper.Connect(t.Context(), dir); !keeper.Gone(err) {
		t.Errorf("connected to nobody: %v", err)
	}
	// What a killed keeper leaves.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "keeper.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := keeper.Connect(t.Context(), dir); !keeper.Gone(err) {
		t.Errorf("connected to a dead one: %v", err)
	}
	k := keep(t, dir)
	if !keeper.Lives(dir) {
		t.Error("it is said not to live")
	}
	if _, err := keeper.Occupy(dir); code(err) != "keeper_lives" {
		t.Errorf("a second one: %v", err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if keeper.Lives(dir) {
		t.Error("it lives after its end")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.sock")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestStandsUntilTheFolderIsGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := keeper.Occupy(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Stands() {
		t.Error("it does not stand")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if p.Stands() {
		t.Error("it stands in a folder that is gone")
	}
	if err := p.Leave(); err != nil {
		t.Error(err)
	}
}

func TestPauseAndStopOutlastTheKeeper(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]func(context.Context, string) error{"pause": keeper.Pause, "stop": keeper.Stop} {
		k := keep(t, t.TempDir())
		k.refuse = problem.New(problem.SessionInUse, "somebody uses it")
		if err := last(t.Context(), k.dir); code(err) != "session_in_use" {
			t.Errorf("%s: refused with %v", name, err)
		}
		k.refuse = nil
		over := make(chan error)
		go func() { over <- last(context.Background(), k.dir) }()
		<-k.ended
		select {
		case err := <-over:
			t.Errorf("%s: it did not wait for the end: %v", name, err)
		default:
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		if err := <-over; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	k := keep(t, t.TempDir())
	if err := keeper.Flush(t.Context(), k.dir); err != nil || k.flushed.Load() != 1 {
		t.Errorf("flush: %v, %d", err, k.flushed.Load())
	}
}

// TestStrangeRequests speaks to the keeper as other versions and worse may.
func TestStrangeRequests(t *testing.T) {
	t.Parallel()
	k := keep(t, t.TempDir())
	for request, want := range map[string]string{
		`{"protocol":99,"op":"use"}`:             "keeper_version",
		`{"protocol":99,"op":"watch"}`:           "keeper_version",
		`{"protocol":99,"op":"flush","new":[1]}`: `{}`,
		`{"protocol":1,"op":"dance"}`:            "keeper_request",
		`what?`:                                  "keeper_request",
		strings.Repeat("a", 1<<20):               "",
	} {
		conn, err := net.Dial("unix", filepath.Join(k.dir, "keeper.sock"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintln(conn, request)
		answer, _ := io.ReadAll(conn)
		if !strings.Contains(string(answer), want) {
			t.Errorf("%.40q is answered with %q, want %q", request, answer, want)
		}
		conn.Close()
	}
	silent, err := net.Dial("unix", filepath.Join(k.dir, "keeper.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	connect(t, k.dir) // others are served meanwhile
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

// TestMain plays a keeper that is launched.
func TestMain(m *testing.M) {
	how := os.Getenv("KEEPER_TEST")
	if how == "" {
		os.Exit(m.Run())
	}
	report := keeper.Reporter()
	fmt.Println("how it went")
	switch how {
	case "ready":
		wd, _ := os.Getwd()
		if link, err := os.Readlink("/proc/self/fd/" + os.Args[2]); err == nil && strings.HasSuffix(link, "/lock") {
			fmt.Println("it has " + link)
		}
		report([]string{"in " + wd}, nil)
		// Until a keeper would end: when the folder that it was given is gone.
		for {
			if _, err := os.Stat(os.Args[1]); err != nil {
				os.Exit(0)
			}
			time.Sleep(time.Millisecond)
		}
	case "refuse":
		report(nil, problem.New(problem.SessionInMemory, "it is there already"))
	case "silent":
		time.Sleep(time.Hour) // the test ends it
	}
	os.Exit(3)
}

func TestLaunch(t *testing.T) {
	t.Parallel()
	launch := func(ctx context.Context, how string) ([]string, string, error) {
		dir := t.TempDir()
		log := filepath.Join(dir, "log")
		lock, err := syscall.Open(filepath.Join(dir, "lock"), syscall.O_CREAT|syscall.O_RDWR, 0o600) // passed on to whoever is started
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(lock)
		cmd := exec.Command(os.Args[0], dir, fmt.Sprint(lock))
		cmd.Env = append(os.Environ(), "KEEPER_TEST="+how)
		notices, err := keeper.Launch(ctx, cmd, log)
		text, _ := os.ReadFile(log)
		return notices, string(text), err
	}
	if notices, log, err := launch(t.Context(), "ready"); err != nil || strings.Join(notices, ",") != "in /" || log != "how it went\n" {
		t.Errorf("ready: %q, %q, %v", notices, log, err)
	}
	if _, _, err := launch(t.Context(), "refuse"); code(err) != "session_in_memory" {
		t.Errorf("refused: %v", err)
	}
	if _, _, err := launch(t.Context(), "die"); code(err) != "keeper_failed" || !strings.Contains(err.Error(), "exit status 3: how it went") {
		t.Errorf("died: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, _, err := launch(ctx, "silent"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("given up: %v", err)
	}
}
