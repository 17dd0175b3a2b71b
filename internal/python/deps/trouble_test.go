package deps_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/python/deps"
	"cove/internal/python/deps/indextest"
	"cove/internal/python/pyenv"
	"cove/internal/python/pyindex"
	"cove/internal/testkit/testneeds"
)

func TestTenAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "cowsay", Require: []string{"humanize"}, Padding: 100_000}, indextest.Wheel{Name: "humanize"})
	arrived, release := w.index.Hold("/files/cowsay-1.0-py3-none-any.whl")
	var together sync.WaitGroup
	layers := make([]string, 10)
	made := make([]bool, 10)
	for n := range layers {
		i := w.installer() // each as its own process would have it
		together.Go(func() {
			p, err := i.Provide(t.Context(), code("cowsay"), nil)
			if err != nil {
				t.Errorf("%+v", err)
			}
			layers[n], made[n] = p.Layer, !p.Cached
		})
	}
	<-arrived
	release()
	together.Wait()
	for _, name := range layers {
		if name == "" || name != layers[0] {
			t.Errorf("layers %v", layers)
		}
	}
	for _, path := range []string{"/simple/cowsay/", "/simple/humanize/"} {
		if n := w.index.Requests(path); n != 1 {
			t.Errorf("%s was asked for %d times", path, n)
		}
	}
	for _, file := range []string{"cowsay-1.0-py3-none-any.whl", "humanize-1.0-py3-none-any.whl"} {
		if n := w.index.Downloads(file); n != 1 {
			t.Errorf("%s was downloaded %d times", file, n)
		}
	}
	if entries := layersOf(t, w); entries != 1 {
		t.Errorf("%d layers were made", entries)
	}
}

// layersOf counts what sandboxes see.
func layersOf(t *testing.T, w *world) int {
	t.Helper()
	entries, err := os.ReadDir(w.installer().Store().Folder())
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestIndexTroubles(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	page, file := "/simple/cowsay/", "/files/cowsay-1.0-py3-none-any.whl"
	tests := []struct {
		name    string
		path    string
		trouble indextest.Trouble
		code    string // how it begins; $ is its end
	}{
		{"no answer", page, indextest.SlowHeaders, "resolve_timeout$"},
		{"page stalls", page, indextest.StalledBody, "resolve_timeout$"},
		{"page is cut", page, indextest.Truncated, "index_"},
		{"page is nonsense", page, indextest.Malformed, "index_malformed$"},
		{"server fails", page, indextest.ServerError, "index_unreachable$"},
		{"wants a password", page, indextest.Denied, "index_denied$"},
		{"dependency's page fails", "/simple/humanize/", indextest.ServerError, "index_unreachable$"},
		{"file stalls", file, indextest.StalledBody, "resolve_timeout$"},
		{"file is damaged", file, indextest.Corrupt, "package_hash_mismatch$"},
		{"file is gone", file, indextest.Missing, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.index.Add(indextest.Wheel{Name: "cowsay", Require: []string{"humanize"}, Padding: 300_000}, indextest.Wheel{Name: "humanize"})
			w.index.Misbehave(tt.path, tt.trouble, 0)
			// Short only where the time has to pass: a busy machine may need it to find out anything else.
			if w.options.Policy.Timeout = time.Minute; strings.HasPrefix(tt.code, "resolve_timeout") {
				w.options.Policy.Timeout = 3 * time.Second
			}
			p, err := w.installer().Provide(t.Context(), code("cowsay"), nil)
			e := problem.Of(err)
			if e == nil || e.Hint == "" || e.Code == "internal" || !strings.HasPrefix(e.Code+"$", tt.code) {
				t.Fatalf("got %v", err)
			}
			if p.Layer != "" || layersOf(t, w) != 0 || len(p.State.Layers) != 0 {
				t.Errorf("something was made: %+v", p)
			}
			w.index.Behave("")
			w.options.Policy.Timeout = time.Minute
			if p := w.provide(code("cowsay")); brought(p) != "cowsay 1.0, humanize 1.0" {
				t.Errorf("afterwards: %+v", p)
			}
		})
	}
}

func TestLyingIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "cowsay", Listed: indextest.Listed{Hash: strings.Repeat("ab", 32)}})
	_, err := w.installer().Provide(t.Context(), code("cowsay"), nil)
	if e := problem.Of(err); e == nil || e.Code != "package_hash_mismatch" || layersOf(t, w) != 0 {
		t.Errorf("got %v", err)
	}
}

func TestAbsentIndexAndWhatIsRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "cowsay"}, indextest.Wheel{Name: "zzold-project"}, indextest.Wheel{Name: "zzold-project", Version: "2.0"})
	before := w.provide(code("cowsay", "zzold_project"))
	w.index.Close()

	if p := w.provide(code("cowsay", "zzold_project")); !p.Cached || p.Layer != before.Layer || len(p.Notes) != 0 {
		t.Errorf("a known answer: %+v", p)
	}
	_, err := w.installer().Provide(t.Context(), code("emoji"), nil)
	if e := problem.Of(err); e == nil || e.Code != "index_unreachable" {
		t.Errorf("an unknown one: %v", err)
	}

	// Old answers do when there are no new ones, and the user hears of it.
	aged := 0
	err = filepath.WalkDir(filepath.Join(w.options.Data, "packages"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Base(filepath.Dir(path)) == "looks" {
			err = os.Chtimes(path, ago(9*day), ago(9*day))
		}
		if err == nil && filepath.Base(filepath.Dir(path)) == "plans" && strings.HasSuffix(path, ".json") {
			text, readErr := os.ReadFile(path)
			at := strings.Index(string(text), `"made":"`) + len(`"made":"`)
			old := string(text[:at]) + "2021-05-06" + string(text[at+len("2021-05-06"):])
			aged++
			err = errors.Join(readErr, os.WriteFile(path, []byte(old), 0o600))
		}
		return err
	})
	if err != nil || aged != 1 {
		t.Fatalf("%d plans, %v", aged, err)
	}
	w.forgetPages()
	p := w.provide(code("cowsay", "zzold_project"))
	if p.Layer != before.Layer || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "2021-05-06") {
		t.Errorf("an old answer: %+v", p)
	}
	w.options.Policy.Offline = true
	if p := w.provide(code("cowsay", "zzold_project")); p.Layer != before.Layer || len(p.Notes) != 0 {
		t.Errorf("offline: %+v", p)
	}
	_, err = w.installer().Provide(t.Context(), code("emoji"), nil)
	if e := problem.Of(err); e == nil || e.Code != "index_offline" {
		t.Errorf("offline, an unknown one: %v", err)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/simple/cowsay/", "/files/cowsay-1.0-py3-none-any.whl"} {
		w := newWorld(t)
		w.index.Add(indextest.Wheel{Name: "cowsay"})
		arrived, release := w.index.Hold(path)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-arrived
			cancel()
		}()
		_, err := w.installer().Provide(ctx, code("cowsay"), nil)
		if e := problem.Of(err); e == nil || e.Code != "canceled" || layersOf(t, w) != 0 {
			t.Errorf("%s: got %v", path, err)
		}
		release()
		if p := w.provide(code("cowsay")); brought(p) != "cowsay 1.0" {
			t.Errorf("%s: afterwards: %+v", path, p)
		}
	}
}

// The variables that make a test process an installer, to be killed.
const childData, childIndex, childDir, childKey = "PYDEPS_TEST_DATA", "PYDEPS_TEST_INDEX", "PYDEPS_TEST_ENV", "PYDEPS_TEST_KEY"

func TestMain(m *testing.M) {
	if os.Getenv(childData) == "" {
		os.Exit(m.Run())
	}
	have, err := testneeds.Ensure(pyenv.Minimal)
	if err != nil {
		panic(err)
	}
	env := *have
	env.Dir, env.Key, env.Packages = os.Getenv(childDir), os.Getenv(childKey), map[string]string{}
	i, err := deps.New(deps.Options{Data: os.Getenv(childData), Env: &env, Policy: deps.PolicyOf(config.Default(os.Getenv)),
		UV: func(context.Context) (string, error) { return testneeds.EnsureUV() },
		Sources: func(context.Context, string) ([]pyindex.Source, pyindex.Access, error) {
			return []pyindex.Source{{Name: "test", URL: os.Getenv(childIndex)}}, pyindex.Access{}, nil
		}})
	if err != nil {
		panic(err)
	}
	_, _ = i.Provide(context.Background(), code("cowsay"), nil)
	os.Exit(0)
}

func TestKilled(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "cowsay", Require: []string{"humanize"}}, indextest.Wheel{Name: "humanize"})
	for _, path := range []string{"/simple/humanize/", "/files/humanize-1.0-py3-none-any.whl"} {
		arrived, release := w.index.Hold(path)
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childData+"="+w.options.Data, childIndex+"="+w.index.URL, childDir+"="+w.env.Dir, childKey+"="+w.env.Key)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-arrived
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		release()
		if n := layersOf(t, w); n != 0 {
			t.Errorf("%s: %d layers were left", path, n)
		}
	}
	p := w.provide(code("cowsay"))
	if out, err := w.imports(w.installer(), p.State, "import cowsay, humanize; print(1)"); err != nil || out != "1" {
		t.Errorf("afterwards: %s, %v", out, err)
	}
}
