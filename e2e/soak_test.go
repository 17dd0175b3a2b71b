package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/python/kernel"
	"cove/internal/python/pyenv"
	"cove/internal/sessions/session"
	"cove/internal/sessions/template"
	"cove/internal/testkit/testneeds"
)

// cycles is how often a soak test does what it does: a few times in a run of all tests, or as COVE_SOAK says (make soak).
func cycles(t *testing.T, few, full int) int {
	switch text := os.Getenv("COVE_SOAK"); text {
	case "":
		return few
	case "full":
		return full
	default:
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("COVE_SOAK: %v", err)
		}
		return n
	}
}

// soaked is what the soak tests start sessions from.
type soaked struct {
	dir     string // everything they leave is here, or in the counts
	engine  *notingEngine
	options session.Options
}

// notingEngine notes the ids of its sandboxes: other tests have sandboxes on the machine, too.
type notingEngine struct {
	*gvisor.Engine
	ids sync.Map
}

func (e *notingEngine) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	e.ids.Store(spec.ID, true)
	return e.Engine.Start(ctx, spec)
}

func (e *notingEngine) Prepare(ctx context.Context, spec sandbox.Spec) (sandbox.Prepared, error) {
	e.ids.Store(spec.ID, true)
	return e.Engine.Prepare(ctx, spec)
}

func newSoaked(t *testing.T) soaked {
	t.Helper()
	cfg, err := testneeds.Config()
	if err != nil {
		t.Fatal(err)
	}
	env, err := pyenv.Ensure(t.Context(), pyenv.Options{Data: cfg.Folders.Data, Set: pyenv.Minimal, Python: cfg.Packages.Python, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	e := &notingEngine{Engine: gvisor.New(gvisor.Options{State: filepath.Join(dir, "run"), Executable: sandboxtest.Binary(t)})}
	s, err := template.Ensure(t.Context(), template.Options{Dir: filepath.Join(dir, "templates"), Engine: e, Env: env, Share: true, Progress: io.Discard})
	if err != nil {
		t.Fatalf("template: %+v", err)
	}
	return soaked{dir: dir, engine: e, options: session.Options{Engine: e, Env: env, Checkpoint: s.Checkpoint(), Reseed: true}}
}

// holdings counts what a leak would add to.
func (s soaked) holdings(t *testing.T) map[string]int {
	t.Helper()
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/cove/*")
	more, _ := filepath.Glob("/sys/fs/cgroup/cove/*")
	ours := 0
	for _, g := range append(groups, more...) {
		if _, ok := s.engine.ids.Load(filepath.Base(g)); ok {
			ours++
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid()))
	living := 0
	for _, c := range children {
		if b, err := os.ReadFile(c); err == nil {
			living += len(strings.Fields(string(b)))
		}
	}
	return map[string]int{
		"open files":       len(folders(t, "/proc/self/fd")),
		"children":         living,
		"processes":        len(processes(t, s.dir)),
		"mounts":           bytes.Count(mounts, []byte(s.dir)),
		"cgroups":          ours,
		"sandbox folders":  len(folders(t, filepath.Join(s.dir, "run"))),
		"template folders": len(folders(t, filepath.Join(s.dir, "templates"))),
	}
}

func (s soaked) open(t *testing.T, image sandbox.Checkpoint, reseed bool) *session.Live {
	t.Helper()
	o := s.options
	o.Checkpoint, o.Reseed = image, reseed
	live, err := session.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("open: %+v", err)
	}
	return live
}

// evaluate runs a cell and returns the value of its last expression.
func evaluate(t *testing.T, s *session.Live, code string) (value string) {
	t.Helper()
	for e, err := range s.Execute(t.Context(), kernel.Request{Code: code}) {
		if err != nil {
			t.Fatalf("%s: %+v", code, err)
		}
		switch e := e.(type) {
		case kernel.Result:
			value, _ = e.Data["text/plain"].(string)
		case kernel.Done:
			if e.Outcome != kernel.OutcomeOK {
				t.Fatalf("%s: %+v", code, e)
			}
		}
	}
	return value
}

// compare lets what has just ended go and then asks for no more holdings than before, when something may have been about to go, too.
func (s soaked) compare(t *testing.T, before map[string]int) {
	t.Helper()
	var now map[string]int
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		now = s.holdings(t)
		if !slices.ContainsFunc(slices.Collect(maps.Keys(now)), func(what string) bool { return now[what] > before[what] }) {
			return
		}
	}
	t.Errorf("held before: %v\nheld after: %v", before, now)
}

// TestSoakCycles creates, uses and deletes sessions. It is not parallel, because it counts what the whole process holds.
func TestSoakCycles(t *testing.T) {
	testneeds.FullTier(t)
	s := newSoaked(t)
	cycle := func(i int) {
		live := s.open(t, s.options.Checkpoint, true)
		if got, want := evaluate(t, live, fmt.Sprintf("%d * 7", i)), strconv.Itoa(i*7); got != want {
			t.Fatalf("cycle %d: %s, want %s", i, got, want)
		}
		if err := live.Close(context.Background()); err != nil {
			t.Fatalf("cycle %d: close: %+v", i, err)
		}
	}
	cycle(0) // what is made once is made
	before := s.holdings(t)
	n := cycles(t, 20, 1000)
	began := time.Now()
	for i := range n {
		cycle(i)
	}
	t.Logf("%d cycles of create, execute and delete, %v each", n, (time.Since(began) / time.Duration(n)).Round(time.Millisecond))
	s.compare(t, before)
}

// TestSoakPauses pauses and resumes one session.
func TestSoakPauses(t *testing.T) {
	testneeds.FullTier(t)
	s := newSoaked(t)
	live := s.open(t, s.options.Checkpoint, true)
	evaluate(t, live, "n = 0; log = open('log', 'w+')")
	var image string
	cycle := func(i int) {
		next := filepath.Join(s.dir, "image-"+strconv.Itoa(i))
		if err := os.Mkdir(next, 0o700); err != nil {
			t.Fatal(err)
		}
		saved, err := live.Save(t.Context(), next, false)
		if err != nil {
			t.Fatalf("cycle %d: pause: %+v", i, err)
		}
		live = s.open(t, saved, false)
		if image != "" {
			if err := os.RemoveAll(image); err != nil {
				t.Fatal(err)
			}
		}
		image = next
		if got, want := evaluate(t, live, "n += 1; _ = log.write('x'); n"), strconv.Itoa(i+1); got != want {
			t.Fatalf("cycle %d: n = %s, want %s", i, got, want)
		}
	}
	cycle(0)
	before := s.holdings(t)
	n := cycles(t, 6, 300)
	began := time.Now()
	for i := range n {
		cycle(i + 1)
	}
	t.Logf("%d cycles of pause and resume, %v each", n, (time.Since(began) / time.Duration(n)).Round(time.Millisecond))
	s.compare(t, before)
	if got, want := evaluate(t, live, "log.flush(); log.seek(0); len(log.read())"), strconv.Itoa(n+1); got != want {
		t.Errorf("the open file has %s characters, want %s", got, want)
	}
	if err := live.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
