package bench_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
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
	"cove/internal/python/kernel"
	"cove/internal/python/pyenv"
	"cove/internal/testkit/testneeds"
	"cove/tools/bench"
)

// fakeCove is cove with interpreters that know the benchmark's few programs, and with state that can be saved.
type fakeCove struct {
	t     *testing.T
	wrong bool // answers are wrong

	mu   sync.Mutex
	live int
	peak int

	installs int
}

type fakeSession struct {
	cove *fakeCove
	vars map[string]string
	once sync.Once
}

func (c *fakeCove) open(vars map[string]string) (bench.CoveSession, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live++
	c.peak = max(c.peak, c.live)
	return &fakeSession{cove: c, vars: maps.Clone(vars)}, nil
}

func (c *fakeCove) Open(context.Context) (bench.CoveSession, error) {
	return c.open(map[string]string{})
}
func (c *fakeCove) Claim(context.Context) (bench.CoveSession, error) {
	return c.open(map[string]string{})
}
func (c *fakeCove) Install(_ context.Context, _ string, r bench.Readiness, have bool) (bench.CoveSession, error) {
	if have != (r == bench.Installed && c.installs%3 == 0) {
		c.t.Errorf("request %d for a package is %s, %v", c.installs, r, have)
	}
	c.installs++
	return c.open(map[string]string{})
}
func (c *fakeCove) Fill(context.Context) error { return nil }
func (c *fakeCove) Resume(_ context.Context, dir string) (bench.CoveSession, error) {
	x, err := os.ReadFile(filepath.Join(dir, "x"))
	if err != nil {
		return nil, err
	}
	return c.open(map[string]string{"x": string(x)})
}

func (s *fakeSession) Execute(_ context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		lines := strings.Split(req.Code, "\n")
		for _, line := range lines {
			if name, value, ok := strings.Cut(line, " = "); ok && name == "x" {
				s.vars["x"] = value
			}
		}
		text := map[string]string{"1+1": "2", "len(sqlalchemy.__version__) > 0": "True", "x": s.vars["x"], "x+1": map[string]string{"41": "42"}[s.vars["x"]]}[lines[len(lines)-1]]
		if s.cove.wrong {
			text = "3"
		}
		if strings.Contains(req.Code, "print(line)") {
			yield(kernel.Stream{Name: "stdout", Data: make([]byte, 10_000_000)}, nil)
		} else {
			yield(kernel.Result{Data: kernel.Bundle{"text/plain": text}}, nil)
		}
		yield(kernel.Done{Outcome: kernel.OutcomeOK}, nil)
	}
}

func (s *fakeSession) Save(ctx context.Context, dir string, keep bool) (sandbox.Checkpoint, error) {
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return sandbox.Checkpoint{}, errors.New("the folder is not empty")
	}
	if !keep {
		defer func() { _ = s.Close(ctx) }()
	}
	return sandbox.CheckpointIn(dir), os.WriteFile(filepath.Join(dir, "x"), []byte(s.vars["x"]), 0o644)
}

func (s *fakeSession) Close(context.Context) error {
	s.once.Do(func() {
		s.cove.mu.Lock()
		defer s.cove.mu.Unlock()
		s.cove.live--
	})
	return nil
}

func python(t *testing.T) *pyenv.Environment {
	t.Helper()
	path := testneeds.FindPython(t).Path
	return &pyenv.Environment{Python: path, Version: "3.0", Set: pyenv.Minimal, Packages: map[string]string{"numpy": "9"}}
}

func TestEveryRowOfCove(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	cove, data := &fakeCove{t: t}, t.TempDir()
	report, err := bench.Run(t.Context(), bench.Options{Data: data, Env: python(t), Cove: cove, Subjects: []string{"cove"}, Rounds: 2, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, row := range report.Rows {
		for _, result := range row.Results {
			got[row.ID] += result.Stats.N
			if len(result.Errors) > 0 {
				t.Errorf("%s failed: %q", row.ID, result.Errors)
			}
		}
	}
	want := map[string]int{"first": 2, "pool": 2, "roundtrip": 40, "output": 2, "pause": 2, "resume": 2, "save": 2, "paused-size": 2, "fork": 2, "install-layer": 2, "install-wheels": 2,
		"serve": 0, "events": 0, "followers-none": 0, "followers-idle": 0, "process-first": 0, "process-100mb": 0, "process-1gb": 0, "terminal-echo": 0, "port-first": 0, "port-1gb": 0, "network-first": 0, "network-1gb": 0, "create": 0, "create-import": 0, "create-many": 0, "sandbox-first": 0, "sandbox-run": 0, "create-many-import": 0, // of the server, which this is not
		"memory": 1, "memory-pss": 1, "crowd": 20, "crowd-all": 1, "crowd-again": 20, "density": 1, "density-25-memory": 1, "density-25": 25}
	for _, id := range loopIDs() {
		want[id] = 0 // an agent's
	}
	for _, n := range []string{"50", "100", "200", "300", "400"} {
		want["density-"+n], want["density-"+n+"-memory"] = 0, 0 // not for Quick
	}
	if !maps.Equal(got, want) {
		t.Errorf("samples %v, want %v", got, want)
	}
	if cove.live != 0 || cove.peak != 25 {
		t.Errorf("%d sessions are left, at most %d lived at once", cove.live, cove.peak)
	}
	if left, _ := filepath.Glob(filepath.Join(data, "bench", "run-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWrongAnswersAreFailures(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	cove := &fakeCove{t: t, wrong: true}
	report, err := bench.Run(t.Context(), bench.Options{Data: t.TempDir(), Env: python(t), Cove: cove, Subjects: []string{"cove"},
		Rows: []string{"pool", "fork", "crowd"}, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range report.Rows {
		if result := row.Results[0]; result.Stats.N > 0 || len(result.Errors) == 0 {
			t.Errorf("%s took %v and has the errors %q", row.ID, result.Samples, result.Errors)
		}
	}
	if !report.CoveFailed() || cove.live != 0 {
		t.Errorf("cove failed %v, %d sessions are left", report.CoveFailed(), cove.live)
	}
}

func TestARealPeer(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	report, err := bench.Run(t.Context(), bench.Options{Data: t.TempDir(), Env: python(t), Cove: &fakeCove{t: t},
		Subjects: []string{"cove", "python3"}, Rows: []string{"pool", "roundtrip"}, Rounds: 3})
	if err != nil {
		t.Fatal(err)
	}
	peer := report.Rows[0].Results[1]
	if peer.Stats.N != 3 || peer.Stats.Min <= 0 || peer.Ratio <= 0 || len(peer.Errors) > 0 {
		t.Errorf("python3 in the pool row: %+v", peer)
	}
	if why := report.Rows[1].Results[1].Unable; why == "" {
		t.Error("python3 -c has no live session, and the report does not say so")
	}
}

func TestAPeerThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	env := python(t)
	env.Python = filepath.Join(t.TempDir(), "python")
	testneeds.Program(t, env.Python, "#!/bin/sh\necho 'no module named numpy' >&2\nexit 1\n")
	report, err := bench.Run(t.Context(), bench.Options{Data: t.TempDir(), Env: env, Subjects: []string{"python3"}, Rows: []string{"first"}, Rounds: 2})
	if err != nil {
		t.Fatal(err)
	}
	result := report.Rows[0].Results[0]
	if result.Success != 0 || len(result.Errors) != 2 || !strings.Contains(result.Errors[0], "no module named numpy") {
		t.Errorf("%+v", result)
	}
}

func TestUnknownNames(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for name, o := range map[string]bench.Options{
		"bench_unknown_row":     {Rows: []string{"first", "last"}},
		"bench_unknown_subject": {Subjects: []string{"e2b"}},
	} {
		o.Data, o.Env = t.TempDir(), python(t)
		_, err := bench.Run(t.Context(), o)
		if p := problem.Of(err); p == nil || p.Code != name || p.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	data := t.TempDir()
	if err := os.Mkdir(filepath.Join(data, "bench"), 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(data, "bench", ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	_, err = bench.Run(t.Context(), bench.Options{Data: data, Env: python(t)})
	if p := problem.Of(err); p == nil || p.Code != "bench_busy" {
		t.Errorf("got %v", err)
	}
}

func TestWhatAKilledRunLeftIsRemoved(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	data := t.TempDir()
	left := filepath.Join(data, "bench", "run-test-leftover")
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	survivor := exec.Command("sleep", "600")
	survivor.Env = append(os.Environ(), "COVE_BENCH_RUN=test-leftover")
	stranger := exec.Command("sleep", "600")
	stranger.Env = append(os.Environ(), "COVE_BENCH_RUN=test-leftover-2")
	for _, cmd := range []*exec.Cmd{survivor, stranger} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bench.Run(t.Context(), bench.Options{Data: data, Env: python(t), Subjects: []string{"python3"}, Rows: []string{"pause"}}); err != nil {
		t.Fatal(err)
	}
	if err := survivor.Wait(); err == nil {
		t.Error("the process of the earlier run ended by itself")
	}
	if err := stranger.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("a process of another run was killed: %v", err)
	}
	_ = stranger.Process.Kill()
	_ = stranger.Wait()
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the earlier run is still there: %v", err)
	}
}

func TestProgressNamesEachRow(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	var said strings.Builder
	_, err := bench.Run(t.Context(), bench.Options{Data: t.TempDir(), Env: python(t), Cove: &fakeCove{t: t}, Subjects: []string{"cove"},
		Rows: []string{"fork", "pool"}, Rounds: 1, Progress: io.Writer(&said)})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(said.String(), "\n")
	for _, want := range []string{"Preparing cove.", "[1/2] first result from the pool", "[2/2] fork"} {
		if !slices.Contains(lines, want) {
			t.Errorf("progress lacks %q:\n%s", want, said.String())
		}
	}
}
