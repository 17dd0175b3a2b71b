package hub_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/memory"
	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/llm/loop"
	"cove/internal/llm/tool"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/snapshot"
	"cove/internal/machine/workspace"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/ownership"
	"cove/internal/server/store"
	"cove/internal/server/stream"
	"cove/internal/server/transcript"
	"cove/internal/sessions/ondisk"
)

// toy is a session in memory whose code is lines of words: "say WORD", "count N" (N numbers, an event each), "flood N" (events of 10 kB), "call TOOL", "wait GATE", "input PROMPT" and "getpass PROMPT" (and say the answer),
// "stubborn GATE" (which no interrupt ends), "die", "file PATH", "ask TOOL" (and say its answer, which may come much later), "remember WORD", "recall", "hold N" (MiB). Its state is what was remembered.
type toy struct {
	hub.Tree
	hub.Programs
	hub.PortDialer
	files  guestlink.Files
	m      *toys
	saved  []string // what it was started from
	mu     sync.Mutex
	lost   chan struct{}
	words  []string
	silent bool // its sandbox died, and nobody was told
	held   int64

	refill func(context.Context, ondisk.Changes) error
}

func (y *toy) Root(from sandbox.Checkpoint, _ map[string]int) {
	words, err := unshelve(from)
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.saved = words; err != nil {
		y.saved = []string{"the checkpoint cannot be read"}
	}
}

// shelf is where the machines of all tests keep their checkpoints, by names: nothing of one is in a folder that cove knows.
var shelf sync.Map

// shelve makes a checkpoint.
func shelve(words []string) sandbox.Checkpoint {
	name := ident.New("toy")
	shelf.Store(name, slices.Clone(words))
	return sandbox.CheckpointNamed(name, 100)
}

func unshelve(from sandbox.Checkpoint) ([]string, error) {
	name, _, _ := from.Named()
	words, ok := shelf.Load(name)
	if !ok {
		return nil, fmt.Errorf("there is no checkpoint %q", name)
	}
	return slices.Clone(words.([]string)), nil
}

func (y *toy) Refill(refill func(context.Context, ondisk.Changes) error) { y.refill = refill }

func (y *toy) Write(ctx context.Context, path string, r io.Reader) (workspace.Entry, error) {
	if y.Tree != nil {
		return y.Tree.Write(ctx, path, r)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return workspace.Entry{}, err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.words = append(y.words, path+"="+string(text))
	return workspace.Entry{Path: path, Size: int64(len(text))}, nil
}

func (y *toy) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		y.m.enter()
		defer y.m.leave()
		if y.unheard() && !yield(kernel.Rollback{Reason: "its sandbox was lost"}, nil) {
			return
		}
		if y.m.losesSandbox.Swap(false) {
			req.Code = "die"
		}
		whole := ctx
		if req.Timeout > 0 {
			var cancel func()
			ctx, cancel = context.WithTimeout(ctx, req.Timeout)
			defer cancel()
		}
		y.run(ctx, whole, req, yield)
	}
}

// run runs the lines of a request's code.
func (y *toy) run(ctx, whole context.Context, req kernel.Request, yield func(kernel.Event, error) bool) {
	done := kernel.Done{Outcome: kernel.OutcomeOK, Wall: time.Second}
	asked := 0
	for line, rest, more := strings.Cut(req.Code, "\n"); ; line, rest, more = strings.Cut(rest, "\n") {
		verb, word, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "file":
			if !yield(kernel.File{Path: word, Size: 1, Created: true}, nil) {
				return
			}
		case "ask":
			req.Code = rest
			y.ask(ctx, req, word)
			y.await(ctx, whole, yield)
			return
		case "call":
			if req.Tools != nil && req.Tools.Set.Asks(word) {
				req.Tools.Asking(1)
				if !yield(kernel.CallAsks{Number: 1, Name: word, Arguments: "{}"}, nil) {
					return
				}
				if late := y.m.callsLate.Load(); late != nil {
					<-*late
				}
			}
			verb, word = "say", called(ctx, req.Tools, word)
		case "input", "getpass":
			asked++
			var ok bool
			if word, ok = lineFor(ctx, req.Inputs, kernel.InputRequest{Number: asked, Prompt: word, Password: verb == "getpass"}, yield); !ok {
				return
			}
			verb = "say"
		}
		if !y.do(ctx, verb, word, &done, func(text string) bool { return yield(kernel.Stream{Name: "stdout", Data: []byte(text)}, nil) }) {
			return
		}
		if done.Outcome != kernel.OutcomeOK || !more {
			break
		}
	}
	if done.Outcome == kernel.OutcomeInterrupted && whole.Err() == nil {
		done.Outcome, done.Message = kernel.OutcomeTimeout, "timeout"
	}
	yield(done, nil)
}

// called is the answer of a tool.
func called(ctx context.Context, tools *kernel.Tools, name string) string {
	if tools == nil {
		return "there are no tools"
	}
	out := "the tool did not answer"
	tools.Call(ctx, []tool.Call{{Number: 1, Name: name, Arguments: []byte("{}")}}, func(_ int, r tool.Result) {
		out = cmp.Or(r.Err, string(r.Value))
	})
	return out
}

func (y *toy) do(ctx context.Context, verb, word string, done *kernel.Done, say func(string) bool) bool {
	n, _ := strconv.Atoi(word)
	switch verb {
	case "say":
		return say(word)
	case "count":
		for i := range n {
			if !say(strconv.Itoa(i)) {
				return false
			}
		}
	case "flood":
		for i := range n {
			if !say(fmt.Sprintf("%d %s", i, strings.Repeat("x", 10_000))) {
				return false
			}
		}
	case "wait":
		select {
		case <-y.m.gate(word):
		case <-ctx.Done():
			done.Outcome, done.ExitCode, done.Message = kernel.OutcomeInterrupted, 1, "interrupted"
		}
	case "fail":
		done.Outcome, done.ExitCode = kernel.OutcomeError, 1
	case "stubborn":
		<-y.m.gate(word)
	case "die":
		y.die()
		y.unheard()
		done.Outcome, done.Lost, done.Message = kernel.OutcomeSandboxDied, kernel.LostSession, "the sandbox died"
	case "remember":
		y.mu.Lock()
		y.words = append(y.words, word)
		y.mu.Unlock()
	case "hold":
		y.mu.Lock()
		y.held = int64(n) << 20
		y.mu.Unlock()
	case "recall":
		y.mu.Lock()
		text := strings.Join(y.words, " ")
		y.mu.Unlock()
		return say(text)
	}
	return true
}

// Tell finds nothing in files, and a sandbox that dies meanwhile.
func (y *toy) Tell(context.Context, []string) ([]workspace.Told, error) {
	if y.m.losesSandbox.Swap(false) {
		y.die()
		return nil, errors.New("the sandbox is gone")
	}
	return nil, nil
}

// die loses the sandbox; the next one is as the first was.
func (y *toy) die() {
	y.mu.Lock()
	close(y.lost)
	y.lost, y.words, y.silent = make(chan struct{}), slices.Clone(y.saved), true
	y.mu.Unlock()
	if y.refill != nil {
		_ = y.refill(context.Background(), y)
	}
}

// unheard says, once, that the sandbox has died without anybody having been told.
func (y *toy) unheard() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	was := y.silent
	y.silent = false
	return was
}

func (y *toy) Save(ctx context.Context, _ string, _ bool) (sandbox.Checkpoint, error) {
	y.m.mu.Lock()
	shut, full := y.m.shut, y.m.full
	y.m.mu.Unlock()
	if full {
		return sandbox.Checkpoint{}, syscall.ENOSPC
	}
	if shut != nil {
		select {
		case <-shut:
		case <-ctx.Done():
			return sandbox.Checkpoint{}, context.Cause(ctx)
		}
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	return shelve(y.words), nil
}

func (y *toy) Lost() <-chan struct{} {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.lost
}
func (y *toy) Leave(context.Context) (sandbox.Sandbox, error) { return nil, errors.New("not here") }
func (y *toy) Close(context.Context) error                    { return nil }
func (y *toy) May() ([]string, bool)                          { return nil, false }
func (y *toy) UseFiles(_ context.Context, _ bool, use func(guestlink.Files) error) error {
	return use(y.files)
}
func (y *toy) WatchFiles(_ context.Context, path string, _ bool, began func()) iter.Seq2[filesystem.Event, error] {
	return func(yield func(filesystem.Event, error) bool) {
		if path == "none" {
			yield(filesystem.Event{}, problem.New(problem.FileNotFound, "there is no none"))
			return
		}
		began()
		_ = yield(filesystem.Event{Kind: filesystem.Created, Path: "a"}, nil) && yield(filesystem.Event{Kind: filesystem.Ended}, nil)
	}
}

func (y *toy) SetNetwork(context.Context, guestlink.Network) error        { return nil }
func (y *toy) Python() (string, map[string]string)                        { return "3.11.7", nil }
func (y *toy) IsComplete(context.Context, string, string) (string, error) { return "complete", nil }
func (y *toy) Installed() installation.State                              { return installation.State{} }
func (y *toy) Files(context.Context) ([]kernel.File, error)               { return y.m.files, nil }
func (y *toy) ReadFile(context.Context, string, int64) ([]byte, error)    { return nil, nil }
func (y *toy) PutFile(context.Context, string, string) error              { return nil }
func (y *toy) Fetch(context.Context, string, io.Writer) error             { return nil }
func (y *toy) Complete(context.Context, string, string, int) (m []string, a, b int, err error) {
	return nil, 0, 0, nil
}
func (y *toy) Memory() int64 {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.held
}

func (y *toy) CPU() (time.Duration, bool) {
	y.m.mu.Lock()
	defer y.m.mu.Unlock()
	return y.m.burned, y.m.measures
}
func (y *toy) StartKernel(context.Context, string) error                          { return nil }
func (y *toy) Reboot(context.Context) error                                       { return nil }
func (y *toy) RestartKernel(context.Context, string) error                        { return nil }
func (y *toy) StopKernel(context.Context, string) error                           { return nil }
func (y *toy) KernelNames() []string                                              { return []string{"main", "other"} }
func (y *toy) Variables(context.Context, string) (v kernel.Variables, err error)  { return v, nil }
func (y *toy) Widgets(context.Context, string) (w kernel.WidgetStates, err error) { return w, nil }
func (y *toy) Table(context.Context, string, kernel.TableQuery) (t kernel.Table, err error) {
	return t, nil
}
func (y *toy) Profile(context.Context, string, string, int) (p kernel.Profile, err error) {
	return p, nil
}
func (y *toy) Describe(context.Context, string, string, int) (string, error) { return "", nil }
func (y *toy) Preview(context.Context, workspace.Look) (p workspace.Preview, err error) {
	return p, nil
}
func (y *toy) List(context.Context, string) ([]workspace.Entry, bool, error) {
	return nil, false, nil
}
func (y *toy) Install(context.Context, []require.Requirement, func(installation.Progress)) (installation.Provision, error) {
	return installation.Provision{}, nil
}

// toys is the machine that they run on.
type toys struct {
	asks         asks
	mu           sync.Mutex
	gates        map[string]chan struct{}
	running      int
	most         int
	starts       int
	last         *toy
	refuse       error
	shut         chan struct{}                 // what is saved waits for it to be closed
	full         bool                          // the disk has no room for what is saved
	files        []kernel.File                 // what every workspace has
	losesSandbox atomic.Bool                   // what runs next loses its sandbox
	callsLate    atomic.Pointer[chan struct{}] // a call that asks begins to wait when it is closed

	burned   time.Duration // processor time
	measures bool          // it is known
}

// fill fills the disk, or makes room.
func (m *toys) fill(full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full = full
}

// burn uses processor time, and says whether that is known from now on.
func (m *toys) burn(d time.Duration, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.burned, m.measures = m.burned+d, known
}

func (m *toys) enter() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running++
	m.most = max(m.most, m.running)
}

func (m *toys) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running--
}

// atWork is how many executions run.
func (m *toys) atWork() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running
}

// gate is closed when open was called with its name.
func (m *toys) gate(name string) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gates == nil {
		m.gates = map[string]chan struct{}{}
	}
	if m.gates[name] == nil {
		m.gates[name] = make(chan struct{})
	}
	return m.gates[name]
}

func (m *toys) open(name string) { close(m.gate(name)) }

func (m *toys) prepare(_ context.Context, b ondisk.Base) (*ondisk.Ground, error) {
	return &ondisk.Ground{
		Key:    snapshot.Key{Engine: "toys", Environment: "one", Guest: "1", Limits: b.Limits.Limits},
		Python: "3.11.7",
		Start: func(_ context.Context, from *snapshot.Snapshot, _ bool) (ondisk.Live, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.refuse != nil {
				return nil, m.refuse
			}
			m.starts++
			y := &toy{m: m, lost: make(chan struct{})}
			m.last = y
			if from == nil {
				return y, nil
			}
			var err error
			y.words, err = unshelve(from.Checkpoint())
			y.saved = slices.Clone(y.words)
			return y, err
		},
	}, nil
}

// life is a hub with its store and its machine.
type life struct {
	t     *testing.T
	dir   string
	store *store.Store
	toys  *toys
	own   *ownership.Owner
	// shared is the folder of a database that is not in dir.
	shared string
	*hub.Hub
}

// emptyDatabase is the content of a database that has no rows. It is made once: every migration takes its time on the disk.
var emptyDatabase = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "hub-test-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "cove.db")
	s, err := store.Open(context.Background(), store.Options{Database: file})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// openStore opens the database in dir, which is a new one where none is there.
func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	file := filepath.Join(dir, "cove.db")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		empty, err := emptyDatabase()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, empty, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(t.Context(), store.Options{Database: file})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newLife(t *testing.T, change func(*hub.Options)) *life {
	t.Helper()
	dir := t.TempDir()
	return lifeIn(t, dir, openStore(t, dir), change)
}

// lifeIn is the next life of what is in dir.
func lifeIn(t *testing.T, dir string, s *store.Store, change func(*hub.Options)) *life {
	t.Helper()
	return lifeOf(t, dir, s, ownership.Options{Alone: true, Command: "cove serve"}, change)
}

// lifeOf is the life of a process in dir.
func lifeOf(t *testing.T, dir string, s *store.Store, who ownership.Options, change func(*hub.Options)) *life {
	t.Helper()
	who.Store, who.Folder = s, dir
	own, err := ownership.Register(t.Context(), who)
	if err != nil {
		t.Fatal(err)
	}
	l := &life{t: t, dir: dir, store: s, toys: &toys{}, own: own}
	o := hub.Options{
		Store: s.By(own.ID, own.Fenced), Owner: own, Sessions: ondisk.Store{Dir: filepath.Join(dir, "sessions")}, Prepare: l.toys.prepare, Audit: s, Contents: filepath.Join(dir, "blobs"),
		Base:   ondisk.Base{Engine: "toys", Packages: "standard", Limits: ondisk.LimitsOf(sandbox.Limits{})},
		Limits: hub.DefaultLimits(), Turns: loop.DefaultLimits(),
		Room: func() (memory.Room, error) { return memory.Room{Total: 64 << 30, Available: 48 << 30}, nil }, // whatever else this machine does
	}
	if change != nil {
		change(&o)
	}

	if l.Hub, err = hub.New(o); err != nil {
		t.Fatal(err)
	}
	if err := l.Recover(telemetry.With(t.Context(), o.Telemetry)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := l.Drain(ctx); err != nil {
			t.Error(err)
		}
		if err := own.Release(context.Background()); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func someone(project string) auth.Principal {
	return auth.Principal{User: ident.New(ident.User), Project: project, Key: ident.New(ident.Key), Role: auth.Member}
}

func (l *life) session(who auth.Principal) hub.Session {
	l.t.Helper()
	s, err := l.CreateSession(l.t.Context(), who, hub.NewSession{})
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

func (l *life) start(who auth.Principal, session, code string) hub.Execution {
	l.t.Helper()
	e, err := l.StartExecution(l.t.Context(), who, hub.NewExecution{Session: session, Code: code})
	if err != nil {
		l.t.Fatal(err)
	}
	return e
}

// Follow is the hub's with the events parsed.
func (l *life) Follow(ctx context.Context, who auth.Principal, id string, after int64) (hub.Follower[kernel.Event], error) {
	f, err := l.Hub.Follow(ctx, who, id, after)
	return stream.Read(f, transcript.ParseEvent), err
}

// FollowTurn is the hub's with the events parsed.
func (l *life) FollowTurn(ctx context.Context, who auth.Principal, id string, after int64) (hub.Follower[loop.Event], error) {
	f, err := l.Hub.FollowTurn(ctx, who, id, after)
	return stream.Read(f, transcript.ParseTurnEvent), err
}

// wait follows an execution to its end and returns what it printed and how it ended.
func (l *life) wait(who auth.Principal, id string) (printed []string, done kernel.Done) {
	l.t.Helper()
	f, err := l.Follow(l.t.Context(), who, id, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	ends := 0
	for n, err := range f {
		if err != nil {
			l.t.Fatal(err)
		}
		switch e := n.Event.(type) {
		case kernel.Stream:
			printed = append(printed, string(e.Data))
		case kernel.Done:
			done = e
			ends++
		}
	}
	if ends != 1 {
		l.t.Errorf("execution %s ended %d times", id, ends)
	}
	return printed, done
}

// run has code run to its end.
func (l *life) run(who auth.Principal, session, code string) ([]string, kernel.Done) {
	l.t.Helper()
	return l.wait(who, l.start(who, session, code).ID)
}

func (l *life) state(who auth.Principal, id string) hub.SessionState {
	l.t.Helper()
	s, err := l.Session(l.t.Context(), who, id)
	if err != nil {
		l.t.Fatal(err)
	}
	return s.State
}

// began waits until an execution has emitted something.
func (l *life) began(who auth.Principal, id string) {
	l.t.Helper()
	f, err := l.Follow(l.t.Context(), who, id, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, err := range f {
		if err != nil {
			l.t.Fatal(err)
		}
		return
	}
}

func fails(t *testing.T, err error, code string) {
	t.Helper()
	if p := problem.Of(err); p == nil || p.Code != code {
		t.Errorf("got %v, want a problem with code %s", err, code)
	}
}

func sorted(s []string) []string { s = slices.Clone(s); slices.Sort(s); return s }
