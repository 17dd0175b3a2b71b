package ondisk_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/snapshot"
	"cove/internal/machine/workspace"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
	"cove/internal/sessions/ondisk"
)

// fake is a session in memory whose state is the list of what ran in it. Some codes are special: "die" loses the
// sandbox, "crash" the kernel, "block" runs until it is stopped, "stubborn" until the session is closed, "full" fills the disk until "empty".
type fake struct {
	image   string
	ran     []string
	full    bool
	started chan string // receives each code that begins
	closed  chan struct{}
	closes  int
	mu      sync.Mutex // held while the last event is told, as by a session
	lost    chan struct{}
	kernels map[string]int
	touched bool
	silent  bool   // its sandbox died, and nobody was told
	cramped bool   // its workspace takes no files
	saved   func() // called when its files are written; may be nil
	refill  func(context.Context, ondisk.Changes) error
}

func (f *fake) Root(from sandbox.Checkpoint, _ map[string]int) { f.image, _ = from.HostFolder() }

func (f *fake) Refill(refill func(context.Context, ondisk.Changes) error) { f.refill = refill }

func (f *fake) Write(_ context.Context, path string, r io.Reader) (workspace.Entry, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return workspace.Entry{}, err
	}
	if string(text) == "refuse" || f.cramped {
		return workspace.Entry{}, problem.New(problem.WorkspaceFull, "the workspace is full")
	}
	f.ran = append(f.ran, path+"="+string(text))
	return workspace.Entry{Path: path, Size: int64(len(text))}, nil
}

func (f *fake) Move(_ context.Context, from, to string) error {
	f.ran = append(f.ran, from+">"+to)
	return nil
}

func (f *fake) Remove(_ context.Context, path string, _ bool) error {
	f.ran = append(f.ran, "-"+path)
	return nil
}

func (f *fake) MakeFolder(_ context.Context, path string) error {
	f.ran = append(f.ran, path+"/")
	return nil
}

func (f *fake) KernelPIDs() map[string]int { return f.kernels }
func (f *fake) Touched() bool              { return f.touched }

func (f *fake) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		done := kernel.Done{Outcome: kernel.OutcomeOK}
		if f.silent {
			f.silent = false
			if !yield(kernel.Rollback{Reason: "its sandbox was lost"}, nil) {
				return
			}
		}
		if f.started != nil {
			f.started <- req.Code
		}
		last := func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			yield(done, nil)
		}
		switch req.Code {
		case "die":
			done = kernel.Done{Outcome: kernel.OutcomeSandboxDied, Lost: kernel.LostSession}
			f.die()
			f.silent = false
			last()
			return
		case "crash":
			f.ran = nil
			done = kernel.Done{Outcome: kernel.OutcomeDied, Lost: kernel.LostKernel}
			last()
			return
		case "block":
			<-ctx.Done()
			done.Outcome = kernel.OutcomeInterrupted
		case "stubborn":
			<-f.closed
		case "full", "empty":
			f.full = req.Code == "full"
		}
		f.ran = append(f.ran, req.Code)
		last()
	}
}

// die replaces the sandbox by one that has what was saved, as a session does.
func (f *fake) die() {
	close(f.lost)
	f.silent = true
	f.lost = make(chan struct{})
	_ = f.load()
	if f.refill != nil {
		_ = f.refill(context.Background(), f)
	}
}

func (f *fake) Lost() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

func (f *fake) load() error {
	f.ran = nil
	if f.image == "" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(f.image, "state"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &f.ran); err != nil {
		return err
	}
	if had, err := os.ReadFile(filepath.Join(f.image, "pages.img")); err == nil && !bytes.Equal(had, f.memory()) {
		return errors.New("its memory is not what was saved")
	}
	return nil
}

// memory is what the session has in memory: a page for each code that ran, and others that never change.
func (f *fake) memory() []byte {
	const size, count = 4096, 80
	all := make([]byte, size*count)
	for page := range count {
		what := fmt.Sprint("page ", page)
		if page < len(f.ran) {
			what = f.ran[page]
		}
		copy(all[page*size:], what)
	}
	return all
}

func (f *fake) Save(_ context.Context, dir string, keep bool) (saved sandbox.Checkpoint, err error) {
	if f.full {
		return saved, &os.PathError{Op: "write", Path: "pages.img", Err: unix.ENOSPC}
	}
	if f.closes > 0 {
		return saved, errors.New("the sandbox is gone")
	}
	if !keep {
		f.closes++
	}
	text, err := json.Marshal(f.ran)
	if err != nil {
		return saved, err
	}
	if f.saved != nil {
		defer f.saved()
	}
	return sandbox.CheckpointIn(dir), errors.Join(os.WriteFile(filepath.Join(dir, "state"), text, 0o600), os.WriteFile(filepath.Join(dir, "pages.img"), f.memory(), 0o600))
}

func (f *fake) Leave(context.Context) (sandbox.Sandbox, error) {
	f.closes++
	return newFakeSandbox(f.ran), nil
}

func (f *fake) PutFile(_ context.Context, path, _ string) error {
	f.ran = append(f.ran, "put "+path)
	return nil
}

func (f *fake) Close(context.Context) error {
	if f.closes++; f.closes == 1 {
		close(f.closed)
	}
	return nil
}

func (f *fake) May() ([]string, bool)                                      { return nil, false }
func (f *fake) Python() (string, map[string]string)                        { return "3.11.7", nil }
func (f *fake) IsComplete(context.Context, string, string) (string, error) { return "complete", nil }
func (f *fake) Installed() installation.State                              { return installation.State{} }
func (f *fake) Files(context.Context) ([]kernel.File, error)               { return nil, nil }
func (f *fake) ReadFile(context.Context, string, int64) ([]byte, error)    { return nil, nil }
func (f *fake) Fetch(context.Context, string, io.Writer) error             { return nil }
func (f *fake) Complete(context.Context, string, string, int) (m []string, a, b int, err error) {
	return
}

// machine is what the fakes run on. Its zero value is the machine that most tests use.
type machine struct {
	engine  string // its release
	refuses error  // Start's error
	started chan string
	last    *fake
	reseeds []bool
	kernels map[string]int // of the last Base
}

func (m *machine) prepare(_ context.Context, b ondisk.Base) (*ondisk.Ground, error) {
	if b.Environment == "" {
		b.Environment = b.Packages + "-1"
	}
	m.kernels = b.Kernels
	if b.Environment == "gone-1" && m.engine == "later" {
		return nil, problem.Received(problem.Unavailable, "environment_missing", "its Python environment gone-1 is not there any more")
	}
	return &ondisk.Ground{
		Key:    snapshot.Key{Engine: "fake " + m.engine, Environment: b.Environment, Guest: "1", Limits: b.Limits.Limits},
		Python: "3.11.7",
		Start: func(_ context.Context, from *snapshot.Snapshot, reseed bool) (ondisk.Live, error) {
			if m.refuses != nil {
				return nil, m.refuses
			}
			m.reseeds = append(m.reseeds, reseed)
			m.last = &fake{started: m.started, closed: make(chan struct{}), lost: make(chan struct{})}
			if from != nil {
				m.last.image, _ = from.Checkpoint().HostFolder()
			}
			return m.last, m.last.load()
		},
		Join: m.join,
	}, nil
}

func (m *machine) options() ondisk.Options {
	return ondisk.Options{
		Prepare: m.prepare, Command: "cove run", Depth: 3,
		Base: ondisk.Base{Engine: "gvisor", Packages: "standard", Limits: ondisk.LimitsOf(sandbox.Limits{})},
	}
}

func execute(t *testing.T, s *ondisk.LeasedSession, codes ...string) kernel.Done {
	t.Helper()
	var done kernel.Done
	for _, code := range codes {
		for ev, err := range s.Execute(t.Context(), kernel.Request{Code: code}) {
			if err != nil {
				t.Fatalf("%s: %v", code, err)
			}
			done, _ = ev.(kernel.Done)
		}
	}
	return done
}

func open(t *testing.T, store ondisk.Store, name string, o ondisk.Options) *ondisk.LeasedSession {
	t.Helper()
	s, err := store.Open(t.Context(), name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// use is one command: it opens, runs and closes, and returns what had run in the session before and the notices.
func use(t *testing.T, store ondisk.Store, name string, o ondisk.Options, codes ...string) (before, notices []string) {
	t.Helper()
	m := &machine{}
	if o.Prepare == nil {
		undoable := o.Undoable
		o = m.options()
		o.Undoable = undoable
	} else {
		inner := o.Prepare
		o.Prepare = func(ctx context.Context, b ondisk.Base) (*ondisk.Ground, error) {
			g, err := inner(ctx, b)
			if err != nil {
				return nil, err
			}
			start := g.Start
			g.Start = func(ctx context.Context, from *snapshot.Snapshot, reseed bool) (ondisk.Live, error) {
				l, err := start(ctx, from, reseed)
				m.last, _ = l.(*fake)
				return l, err
			}
			return g, nil
		}
	}
	s := open(t, store, name, o)
	before = slices.Clone(m.last.ran)
	notices = s.Notices()
	execute(t, s, codes...)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return before, notices
}

func ran(t *testing.T, store ondisk.Store, name string) string {
	t.Helper()
	before, _ := use(t, store, name, ondisk.Options{})
	return strings.Join(before, " ")
}

// fails checks an error's code and words.
func fails(t *testing.T, err error, code, says string) {
	t.Helper()
	p := problem.Of(err)
	if err == nil || p.Code != code || !strings.Contains(err.Error()+"\n"+p.Hint, says) {
		hint := ""
		if p != nil {
			hint = p.Hint
		}
		t.Errorf("got %v (hint %q), want code %s and %q", err, hint, code, says)
	}
}

// TestMain plays another cove process when a test asks for it: it opens the session, runs the codes, says so, and closes it
// when its standard input ends.
func TestMain(m *testing.M) {
	if dir := os.Getenv("NAMED_TEST_STORE"); dir != "" {
		os.Exit(other(dir))
	}
	os.Exit(m.Run())
}

func other(dir string) int {
	ma := &machine{}
	o := ma.options()
	name, codes := os.Args[1], os.Args[2:]
	if len(codes) > 0 && codes[0] == "--keep" {
		return keepInProcess(dir, name)
	}
	if len(codes) > 0 && codes[0] == "--undoable" {
		o.Undoable, codes = true, codes[1:]
	}
	s, err := ondisk.Store{Dir: dir}.Open(context.Background(), name, o)
	if err != nil {
		fmt.Println(problem.Of(err).Code)
		return 1
	}
	for _, code := range codes {
		if path, text, ok := strings.Cut(code, "="); ok && !strings.Contains(code, " ") {
			if _, err := s.Write(context.Background(), path, strings.NewReader(text)); err != nil {
				fmt.Println(err)
				return 1
			}
			continue
		}
		if code == "checkpoint" {
			if err := s.Checkpoint(context.Background()); err != nil {
				fmt.Println(err)
				return 1
			}
			continue
		}
		for _, err := range s.Execute(context.Background(), kernel.Request{Code: code}) {
			if err != nil {
				fmt.Println(err)
				return 1
			}
		}
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Close(context.Background()); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// process is another process that owns a session.
type process struct {
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Reader
}

// spawn starts another process and returns it with the first line that it said.
func spawn(t *testing.T, store ondisk.Store, args ...string) (*process, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "NAMED_TEST_STORE="+store.Dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(p.kill)
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return p, strings.TrimSpace(line)
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *process) finish(t *testing.T) {
	t.Helper()
	p.in.Close()
	rest, _ := io.ReadAll(p.out)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the other process: %v, %s", err, rest)
	}
}
