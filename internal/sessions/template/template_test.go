package template_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/machine/snapshot"
	"cove/internal/python/kernel"
	"cove/internal/python/pyenv"
	"cove/internal/sessions/session"
	"cove/internal/sessions/template"
	"cove/internal/testkit/testneeds"
)

// lines is a writer that tests may read while others write.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func options(t *testing.T) (template.Options, *lines) {
	said := &lines{}
	e := gvisor.New(gvisor.Options{State: t.TempDir(), Executable: sandboxtest.Binary(t)})
	return template.Options{Dir: filepath.Join(t.TempDir(), "templates"), Engine: e, Env: testneeds.Environment(t, pyenv.Minimal), Progress: said}, said
}

func ensure(t *testing.T, o template.Options) *snapshot.Snapshot {
	t.Helper()
	s, err := template.Ensure(t.Context(), o)
	if err != nil {
		t.Fatalf("ensure: %+v", err)
	}
	return s
}

// works opens a session from a template and runs something in it.
func works(t *testing.T, o template.Options, s *snapshot.Snapshot) {
	t.Helper()
	live, err := session.Open(t.Context(), session.Options{Engine: o.Engine, Env: o.Env, Checkpoint: s.Checkpoint(), Reseed: true})
	if err != nil {
		t.Fatalf("open: %+v", err)
	}
	defer func() { _ = live.Close(context.Background()) }()
	var result string
	for e, err := range live.Execute(t.Context(), kernel.Request{Code: "[n for n in dir() if n[0] != '_'], 6 * 7"}) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := e.(kernel.Result); ok {
			result, _ = r.Data["text/plain"].(string)
			if r.Count != 1 {
				t.Errorf("the first cell has number %d", r.Count)
			}
		}
	}
	if want := "(['In', 'Out', 'exit', 'get_ipython', 'quit'], 42)"; result != want {
		t.Errorf("got %s, want %s", result, want)
	}
}

func TestIsMadeOnceAndFound(t *testing.T) {
	t.Parallel()
	o, said := options(t)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			if _, err := template.Ensure(t.Context(), o); err != nil {
				t.Errorf("ensure: %+v", err)
			}
		})
	}
	group.Wait()
	if n := strings.Count(said.String(), "Preparing"); n != 1 {
		t.Errorf("made %d times:\n%s", n, said)
	}
	before := said.String()
	works(t, o, ensure(t, o))
	if said.String() != before {
		t.Errorf("a template that is there is not found without a word: %s", said)
	}
}

// TestIsTakenFromAhead: a template that was made in another folder is copied, when it fits and is whole.
func TestIsTakenFromAhead(t *testing.T) {
	t.Parallel()
	ahead, _ := options(t)
	made := ensure(t, ahead)
	o, said := options(t)
	o.Ahead = ahead.Dir
	taken := ensure(t, o)
	if said.String() != "" || filepath.Dir(taken.Dir) != o.Dir {
		t.Errorf("it is in %s, and this was said: %s", taken.Dir, said)
	}
	works(t, o, taken)
	if err := template.Remove(made); err != nil {
		t.Fatal(err)
	}
	works(t, o, ensure(t, o)) // it needs nothing of where it came from

	if err := template.Remove(taken); err != nil {
		t.Fatal(err)
	}
	works(t, o, ensure(t, o))
	if !strings.Contains(said.String(), "Preparing") {
		t.Errorf("it was not made, and this was said: %s", said)
	}
}

func TestIsMadeAgainWhenDamaged(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	o, said := options(t)
	s := ensure(t, o)
	folder, _ := s.Checkpoint().HostFolder()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for name, harm := range map[string]func(path string) error{
		"a changed byte": func(path string) error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			var b [1]byte
			if _, err := f.ReadAt(b[:], 100); err != nil {
				return err
			}
			b[0] ^= 0xff
			_, err = f.WriteAt(b[:], 100)
			return err
		},
		"a torn file":    func(path string) error { return os.Truncate(path, 1000) },
		"a missing file": os.Remove,
	} {
		if err := harm(files[len(files)-1]); err != nil {
			t.Fatal(err)
		}
		told := len(said.String())
		s = ensure(t, o)
		if news := said.String()[told:]; !strings.Contains(news, "is made again") || !strings.Contains(news, filepath.Base(files[len(files)-1])) {
			t.Errorf("%s: said %q", name, news)
		}
	}
	works(t, o, s)
}

func TestFitsItsEnvironmentAndLimits(t *testing.T) {
	t.Parallel()
	o, _ := options(t)
	key := func(change func(*template.Options)) snapshot.Key {
		changed := o
		change(&changed)
		k, err := template.KeyOf(changed)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	same := key(func(*template.Options) {})
	other := *o.Env
	other.Key = "standard-0000"
	for name, change := range map[string]func(*template.Options){
		"environment": func(o *template.Options) { o.Env = &other },
		"workspace":   func(o *template.Options) { o.Limits.Workspace = 1 << 30 },
		"processes":   func(o *template.Options) { o.Limits.Processes = 7 },
	} {
		if key(change) == same {
			t.Errorf("a template for another %s would be used", name)
		}
	}
	if key(func(o *template.Options) { o.Limits = sandbox.Limits{Memory: 1 << 30, CPUs: 1} }) != same {
		t.Error("a template per memory limit would be made")
	}
}

func TestSaysWhenItCannotBeMade(t *testing.T) {
	t.Parallel()
	o, _ := options(t)
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Dir = filepath.Join(blocked, "templates")
	if _, err := template.Ensure(t.Context(), o); problem.Of(err) == nil || problem.Of(err).Code != "data_folder_unusable" {
		t.Errorf("got %v", err)
	}
}
