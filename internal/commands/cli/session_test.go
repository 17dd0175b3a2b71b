package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/llm/model"
	"cove/internal/llm/model/choose"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/snapshot"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
	"cove/internal/sessions/ondisk"
)

// kept is a scripted session that can be saved: what is saved is the code that ran, a line each.
type kept struct {
	scripted
	ran    []string
	unsave error         // Save's error
	code   chan struct{} // closed when code runs, which then waits to be stopped
}

func (k *kept) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	k.ran = append(k.ran, req.Code)
	return func(yield func(kernel.Event, error) bool) {
		if k.code != nil {
			close(k.code)
			k.code = nil
			<-ctx.Done()
		}
		for e, err := range k.scripted.Execute(ctx, req) {
			if !yield(e, err) {
				return
			}
		}
	}
}

func (k *kept) Save(_ context.Context, dir string, _ bool) (sandbox.Checkpoint, error) {
	if k.unsave != nil {
		return sandbox.Checkpoint{}, k.unsave
	}
	return sandbox.CheckpointIn(dir), os.WriteFile(filepath.Join(dir, "state"), []byte(strings.Join(k.ran, "\n")), 0o600)
}

func (k *kept) Close(context.Context) error {
	k.closed = true
	return nil
}

func (k *kept) Leave(context.Context) (sandbox.Sandbox, error) {
	return &keptBox{k: k, done: make(chan struct{})}, nil
}

// keptBox is the sandbox of a kept session that another process keeps; nothing is said through its connections.
type keptBox struct {
	k    *kept
	done chan struct{}
	once sync.Once
}

func (b *keptBox) ID() string             { return "sbx" }
func (b *keptBox) Layout() sandbox.Layout { return sandbox.NewLayout("/w", "/t", nil) }
func (b *keptBox) Done() <-chan struct{}  { return b.done }
func (b *keptBox) Cause() error           { return nil }
func (b *keptBox) Stop(context.Context) error {
	b.once.Do(func() { close(b.done) })
	return nil
}

func (b *keptBox) Dial(context.Context) (io.ReadWriteCloser, error) {
	near, _ := net.Pipe()
	return near, nil
}

func (b *keptBox) Checkpoint(ctx context.Context, dir string, keep bool) (sandbox.Checkpoint, error) {
	return b.k.Save(ctx, dir, keep)
}

func (k *kept) Installed() installation.State                              { return installation.State{} }
func (k *kept) Lost() <-chan struct{}                                      { return nil }
func (k *kept) IsComplete(context.Context, string, string) (string, error) { return "complete", nil }
func (k *kept) Complete(context.Context, string, string, int) (m []string, from, to int, err error) {
	return
}

// lab is a data folder that outlives a command.
type lab struct {
	data  string
	limit ondisk.Limits
	live  func() *kept // what the next session is
	last  *kept

	keeper   chan os.Signal
	launched []string
	log      string
}

func newLab(t *testing.T, events ...kernel.Event) *lab {
	t.Helper()
	if events == nil {
		events = []kernel.Event{ok()}
	}
	return &lab{data: t.TempDir(), live: func() *kept { return &kept{scripted: scripted{events: events}} }}
}

func (l *lab) prepare(config.Config, io.Writer) ondisk.Prepare {
	return func(_ context.Context, b ondisk.Base) (*ondisk.Ground, error) {
		l.limit = b.Limits
		if b.Environment == "" {
			b.Environment = b.Packages + "-1"
		}
		return &ondisk.Ground{
			Key: snapshot.Key{Engine: "e", Environment: b.Environment, Limits: b.Limits.Limits}, Python: "3.11.7",
			Start: func(_ context.Context, from *snapshot.Snapshot, _ bool) (ondisk.Live, error) {
				l.last = l.live()
				l.last.put = map[string]string{}
				if from == nil {
					return l.last, nil
				}
				folder, err := sandbox.HostFolderOf(from.Checkpoint())
				if err != nil {
					return nil, err
				}
				text, err := os.ReadFile(filepath.Join(folder, "state"))
				l.last.ran = strings.Split(string(text), "\n")
				return l.last, err
			},
			Join: func(context.Context, sandbox.Sandbox, *snapshot.Snapshot) (ondisk.Live, error) { return l.last, nil },
		}, nil
	}
}

func (l *lab) do(t *testing.T, setup func(p *cli.Program), args ...string) result {
	t.Helper()
	return run(t, &scripted{}, func(_ string, p *cli.Program) {
		p.Config.Folders.Data, p.Prepare, p.Launch = l.data, l.prepare, l.launch(t)
		if setup != nil {
			setup(p)
		}
	}, args...)
}

// launch runs a keeper in this process. It ends with the test.
func (l *lab) launch(t *testing.T) func(context.Context, []string, string) ([]string, error) {
	return func(_ context.Context, args []string, log string) (notices []string, err error) {
		if l.keeper != nil {
			return nil, errors.New("there is one")
		}
		signals, told, ended := make(chan os.Signal, 1), make(chan error, 1), make(chan struct{})
		l.keeper = signals
		go func() {
			defer close(ended)
			l.do(t, func(p *cli.Program) {
				p.Signals, p.Launch = signals, nil
				p.Report = func(said []string, err error) {
					notices = said
					told <- err
				}
			}, args...)
		}()
		t.Cleanup(func() {
			signals <- syscall.SIGTERM
			<-ended
		})
		l.launched, l.log = args, log
		return notices, <-told
	}
}

// must runs a command that must succeed.
func (l *lab) must(t *testing.T, args ...string) result {
	t.Helper()
	r := l.do(t, nil, args...)
	if r.code != 0 {
		t.Fatalf("%q: exit code %d, stderr %q", args, r.code, r.err)
	}
	return r
}

func (l *lab) has(t *testing.T, want ...string) {
	t.Helper()
	l.must(t, "session", "resume", "--check", "lab")
	if got := strings.Join(l.last.ran, ","); got != strings.Join(want, ",") {
		t.Errorf("the session has %q, want %q", got, want)
	}
}

func TestASessionGoesOn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.must(t, "run", "--session", "lab", "-c", "a")
	l.must(t, "run", "--session", "lab", "--undoable", "-c", "b")
	r := l.do(t, func(p *cli.Program) { p.In = strings.NewReader("c\nexit()\n") }, "repl", "--session", "lab", "--undoable")
	if r.code != 0 || !strings.Contains(r.err, "keeps session lab") {
		t.Errorf("exit code %d, stderr %q", r.code, r.err)
	}
	l.has(t, "a", "b", "c")
	if out := l.must(t, "session", "undo", "lab").out; !regexp.MustCompile(`^session lab is as it was at .* \(after 2 executions\); undos left: 1\n$`).MatchString(out) {
		t.Errorf("undo says %q", out)
	}
	l.has(t, "a", "b")
	l.must(t, "session", "fork", "lab", "lab2")
	l.must(t, "run", "--session", "lab2", "-c", "d")
	l.has(t, "a", "b")
	if out := l.must(t, "session", "pause", "lab").out; out != "session lab is paused already: it is files and no process\n" {
		t.Errorf("pause says %q", out)
	}
}

func TestASessionInMemory(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.must(t, "run", "--session", "lab", "-c", "a")
	if out := l.must(t, "session", "resume", "lab", "--for", "2h", "--cpus", "1.5").out; out != "session lab is in memory; it is paused again after 2h without use, or by `cove session pause lab`\n" {
		t.Errorf("resume says %q", out)
	}
	if got := strings.Join(l.launched, " "); got != "session keep lab --for 2h --engine gvisor --cpus 1.5" || l.log != filepath.Join(l.data, "sessions", "lab", "keeper.log") {
		t.Errorf("launched %q with log %s", got, l.log)
	}
	in := l.last
	l.must(t, "run", "--session", "lab", "-c", "b")
	if l.last != in || strings.Join(in.ran, ",") != "a,b" {
		t.Errorf("it ran elsewhere: %q", in.ran)
	}
	r := l.must(t, "session", "resume", "lab", "--json")
	var again struct {
		State    string
		Resumed  bool
		InMemory struct {
			Idle    float64 `json:"idle_seconds"`
			Unsaved bool
		} `json:"in_memory"`
	}
	if err := json.Unmarshal([]byte(r.out), &again); err != nil || again.Resumed || again.State != "running" || again.InMemory.Idle != 7200 || !again.InMemory.Unsaved {
		t.Errorf("resumed again: %v, %s", err, r.out)
	}
	if out := l.must(t, "session", "resume", "lab").out; !strings.HasPrefix(out, "session lab is in memory already; it is paused again after 2h") {
		t.Errorf("resumed again: %q", out)
	}
	if r := l.must(t, "session", "resume", "lab", "--for", "3h"); !strings.Contains(r.out, "after 2h") || !strings.Contains(r.err, "`cove session pause lab` comes first") {
		t.Errorf("resumed again for longer: %q, %q", r.out, r.err)
	}
	shown := l.must(t, "session", "show", "lab").out
	for _, want := range []string{"state         running", "in memory     since ", "paused when   after 2h without use", "not saved     1 executions"} {
		if !strings.Contains(shown, want) {
			t.Errorf("show lacks %q:\n%s", want, shown)
		}
	}
	if out := l.must(t, "session", "pause", "lab").out; !strings.HasPrefix(out, "session lab is paused; that took ") {
		t.Errorf("pause says %q", out)
	}
	l.has(t, "a", "b")
	if r := l.do(t, nil, "session", "resume", "none"); r.code != 125 || !strings.Contains(r.err, "there is no session none") {
		t.Errorf("exit code %d, stderr %q", r.code, r.err)
	}
}

func TestAKeeperThatDoesNotStart(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.must(t, "run", "--session", "lab", "-c", "a")
	for name, err := range map[string]error{"here": nil, "there": errors.New("no processes left")} {
		r := l.do(t, func(p *cli.Program) {
			if err != nil {
				p.Launch = func(context.Context, []string, string) ([]string, error) { return nil, err }
			}
		}, "session", "resume", "lab", "--packages", "minimal")
		want := "was made with --packages standard"
		if err != nil {
			want = err.Error()
		}
		if r.code != 125 || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit code %d, stderr %q; want %q", name, r.code, r.err, want)
		}
	}
	l.has(t, "a")
}

func TestAskInASession(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	file := filepath.Join(t.TempDir(), "recording")
	if err := os.WriteFile(file, []byte(recording), 0o600); err != nil {
		t.Fatal(err)
	}
	r := l.do(t, func(p *cli.Program) {
		p.NewModel = func(c choose.Choice) (model.Model, error) { return model.OpenReplay(c.Name, 0) }
	}, "ask", "--session", "lab", "--model", "replay:"+file, "what?")
	if r.code != 0 {
		t.Fatal(r.err)
	}
	l.has(t, "6*7")
}

func TestTheListOfSessions(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if r := l.must(t, "session", "ls"); r.out != "" || !strings.Contains(r.err, "there are no sessions") {
		t.Errorf("stdout %q, stderr %q", r.out, r.err)
	}
	if r := l.must(t, "session", "ls", "--json"); r.out != "[]\n" {
		t.Errorf("no sessions as JSON: %q", r.out)
	}
	l.must(t, "run", "--session", "a", "-c", "1")
	l.must(t, "run", "--session", "a-longer-name", "-c", "1")
	l.must(t, "run", "--session", "torn", "-c", "1")
	if err := os.WriteFile(filepath.Join(l.data, "sessions", "torn", "session.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := l.must(t, "session", "ls")
	rows := strings.Split(r.out, "\n")
	if len(rows) != 5 || !strings.HasPrefix(rows[0], "NAME           STATE   LAST USED         SIZE") || !regexp.MustCompile(`(?m)^a-longer-name  paused  \d{4}-\d\d-\d\d \d\d:\d\d  \S+ KiB +1 +3\.11\.7 standard$`).MatchString(r.out) {
		t.Errorf("the table is\n%s", r.out)
	}
	if !strings.Contains(r.err, "session torn is broken: session.json is not whole") {
		t.Errorf("stderr %q", r.err)
	}
	var all []struct {
		Name, State, Reason string
		Executions          int
		Disk                int64 `json:"disk_bytes"`
	}
	if err := json.Unmarshal([]byte(l.must(t, "session", "ls", "--json").out), &all); err != nil || len(all) != 3 {
		t.Fatalf("%v, %+v", err, all)
	}
	for _, s := range all {
		if s.Name != "torn" && (s.State != "paused" || s.Executions != 1 || s.Disk == 0) || s.Name == "torn" && s.Reason == "" {
			t.Errorf("%+v", s)
		}
	}
	shown := l.must(t, "session", "show", "a").out
	for _, want := range []string{"state         paused", "python        3.11.7 standard-1", "memory        2.0 GiB", "snapshot      snp_", "folder        " + l.data} {
		if !strings.Contains(shown, want) {
			t.Errorf("show lacks %q:\n%s", want, shown)
		}
	}
	if r := l.must(t, "session", "show", "a", "--json"); !strings.Contains(r.out, `"state": "paused"`) || !strings.Contains(r.out, `"memory_bytes": 2147483648`) {
		t.Errorf("show --json: %s", r.out)
	}
	if r := l.do(t, nil, "session", "rm", "a", "none", "torn"); r.code != 125 || !strings.Contains(r.err, "there is no session none") {
		t.Errorf("rm: exit code %d, stderr %q", r.code, r.err)
	}
	if r := l.must(t, "session", "rm", "--all", "--json"); r.out != "{\n  \"removed\": [\n    \"a-longer-name\"\n  ]\n}\n" {
		t.Errorf("rm --all --json: %q", r.out)
	}
}

func TestMistakesWithSessions(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.must(t, "run", "--session", "lab", "--memory", "1G", "-c", "a")
	started := l.last
	for want, args := range map[string][]string{
		"cannot be the name of a session":             {"run", "--session", "a/b", "-c", "x"},
		"the engine local cannot save a session":      {"run", "--session", "lab", "--engine", "local", "-c", "x"},
		"--undoable needs a session with a name":      {"run", "--undoable", "-c", "x"},
		"was made with --packages standard":           {"run", "--session", "lab", "--packages", "minimal", "-c", "x"},
		"there is no session none":                    {"session", "resume", "none"},
		"there is a session lab already":              {"session", "fork", "lab", "lab"},
		"has no earlier snapshot to return to":        {"session", "undo", "lab"},
		"give the names of sessions, or --all":        {"session", "rm"},
		"names of sessions, or --all":                 {"session", "rm", "lab", "--all"},
		"expected one of":                             {"session"},
		"memory must be at least 128MiB":              {"run", "--session", "lab", "--memory", "0", "-c", "x"},
		"cpus must be a number of cores from 0.01 on": {"repl", "--session", "lab", "--cpus", "0"},
		"the engine local cannot save a session: ":    {"session", "resume", "none", "--check", "--engine", "local"},
	} {
		r := l.do(t, nil, args...)
		if r.code != 125 || !strings.Contains(r.err, strings.TrimSuffix(want, ": ")) {
			t.Errorf("%q: exit code %d, stderr %q; want 125 and %q", args, r.code, r.err, want)
		}
	}
	if l.last != started {
		t.Error("a sandbox was started")
	}
	if r := l.do(t, nil, "session", "undo", "lab", "--json"); !strings.Contains(r.out, `"code":"nothing_to_undo"`) {
		t.Errorf("a failure with --json: %q", r.out)
	}
	l.must(t, "run", "--session", "lab", "-c", "b")
	if l.limit.Memory != 1<<30 || l.limit.CPUs != 2 {
		t.Errorf("the limits of the session are forgotten: %+v", l.limit)
	}
	l.must(t, "run", "--session", "lab", "--packages", "standard", "--memory", "3G", "--cpus", "1", "-c", "b")
	if l.limit.Memory != 3<<30 || l.limit.CPUs != 1 {
		t.Errorf("the new limits do not count: %+v", l.limit)
	}
}

func TestASaveThatFailsIsSaid(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.must(t, "run", "--session", "lab", "-c", "a")
	good := l.live
	l.live = func() *kept {
		k := good()
		k.unsave = errors.New("no space left on device")
		return k
	}
	r := l.do(t, nil, "run", "--session", "lab", "--json", "-c", "b")
	if r.code != 125 || !strings.Contains(r.err, "cove: session lab was not saved: there is no room left on the disk") || !strings.Contains(r.err, "; the session is as it was at ") {
		t.Errorf("exit code %d, stderr %q", r.code, r.err)
	}
	if !strings.Contains(r.out, `"outcome":"ok"`) || !strings.Contains(r.out, `"code":"session_unsaved"`) {
		t.Errorf("stdout %q", r.out)
	}
	if !l.last.closed {
		t.Error("the sandbox was left running")
	}
	if r := l.do(t, func(p *cli.Program) { p.In = strings.NewReader("c\n") }, "repl", "--session", "lab", "-q"); r.code != 125 || !strings.Contains(r.err, "was not saved") {
		t.Errorf("repl: exit code %d, stderr %q", r.code, r.err)
	}
	l.live = good
	l.has(t, "a")
	if shown := l.must(t, "session", "show", "lab").out; !strings.Contains(shown, "was not saved") {
		t.Errorf("show does not tell of it:\n%s", shown)
	}
}

func TestALostSandboxKeepsItsExitCode(t *testing.T) {
	t.Parallel()
	l := newLab(t, kernel.Done{Outcome: kernel.OutcomeMemory, ExitCode: 137, Lost: kernel.LostSession, Message: "out of memory"})
	r := l.do(t, nil, "run", "--session", "lab", "-c", "a")
	if r.code != 137 || !strings.Contains(r.err, "cove: session lab was not saved: its sandbox was lost; it starts anew\n") {
		t.Errorf("exit code %d, stderr %q", r.code, r.err)
	}
}

func TestNoticesOfSessions(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.must(t, "run", "--session", "lab", "-c", "a")
	path := filepath.Join(l.data, "sessions", "lab", "session.json")
	for _, quiet := range []bool{true, false} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		dead := strings.Replace(string(text), `"version"`, `"running": {"pid": 4711, "command": "cove run", "since": "2026-01-02T03:04:05Z"}, "version"`, 1)
		if err := os.WriteFile(path, []byte(dead), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"run", "--session", "lab", "-c", "b"}
		if quiet {
			args = append(args, "-q")
		}
		r := l.must(t, args...)
		if said := strings.Contains(r.err, "cove: the last command (process 4711, 2026-01-02 "); said == quiet {
			t.Errorf("quiet %v: stderr %q", quiet, r.err)
		}
	}
}

func TestCtrlCSavesTheSession(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		signals []os.Signal
		code    int
	}{
		"once": {[]os.Signal{os.Interrupt}, 130}, "twice": {[]os.Signal{os.Interrupt, os.Interrupt}, 130}, "ended": {[]os.Signal{syscall.SIGTERM}, 143},
	} {
		l := newLab(t, done(kernel.OutcomeInterrupted))
		plain := l.live
		running := make(chan struct{})
		l.live = func() *kept {
			k := plain()
			k.code = running
			return k
		}
		r := l.do(t, func(p *cli.Program) {
			signals := make(chan os.Signal, 2)
			p.Signals = signals
			go func() {
				<-running
				for _, s := range test.signals {
					signals <- s
				}
			}()
		}, "run", "--session", "lab", "-c", "a")
		if r.code != test.code || strings.Contains(r.err, "not saved") {
			t.Errorf("%s: exit code %d, stderr %q; want %d", name, r.code, r.err, test.code)
		}
		l.live = plain
		l.has(t, "a")
	}
}

func TestAFailedStartIsNoSession(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	r := l.do(t, func(p *cli.Program) {
		p.Prepare = func(config.Config, io.Writer) ondisk.Prepare {
			return func(context.Context, ondisk.Base) (*ondisk.Ground, error) { return nil, errors.New("no Python") }
		}
	}, "run", "--session", "lab", "-c", "a")
	if r.code != 125 || !strings.Contains(r.err, "cove: no Python") {
		t.Errorf("exit code %d, stderr %q", r.code, r.err)
	}
	if out := l.must(t, "session", "ls", "--json").out; out != "[]\n" {
		t.Errorf("there is %s", out)
	}
}

func TestHelpOfSessions(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for want, args := range map[string][]string{
		"What survives:":         {"session", "--help"},
		"cove session undo lab":  {"session", "undo", "--help"},
		"--session=NAME":         {"run", "--help"},
		"(default: 2GiB)":        {"ask", "--help"},
		"cove session rm --all":  {"session", "rm", "--help"},
		"(default: 15m)":         {"session", "resume", "--help"},
		"The session to go on f": {"session", "fork", "--help"},
	} {
		if out := l.must(t, args...).out; !strings.Contains(out, want) {
			t.Errorf("%q lacks %q:\n%s", args, want, out)
		}
	}
}
