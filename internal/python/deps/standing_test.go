package deps_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/python/deps"
	"cove/internal/python/deps/indextest"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
)

func requirements(t *testing.T, lines ...string) []require.Requirement {
	t.Helper()
	out, err := require.ParseAll(strings.Join(lines, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func find(t *testing.T, dir, data string) *deps.Standing {
	t.Helper()
	s, err := deps.FindStanding(dir, data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *world) begin(s *deps.Standing) installation.Provision {
	w.t.Helper()
	p, err := s.Begin(w.t.Context(), w.installer(), nil)
	if err != nil {
		w.t.Fatalf("%+v", err)
	}
	return p
}

// forgetPages makes what the index said before be asked for again, as it would be later.
func (w *world) forgetPages() {
	w.t.Helper()
	if err := os.RemoveAll(filepath.Join(w.options.Data, "packages", "index")); err != nil {
		w.t.Fatal(err)
	}
}

func TestStanding(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain("numpy", "2.3"))
	w.index.Add(indextest.Wheel{Name: "cowsay", Version: "1.0", Require: []string{"humanize", "numpy"}}, indextest.Wheel{Name: "humanize", Version: "1.0"},
		indextest.Wheel{Name: "emoji", Version: "1.0", Require: []string{"humanize"}}, indextest.Wheel{Name: "emoji", Version: "1.5"})
	project := t.TempDir()
	file, lockFile := filepath.Join(project, deps.StandingFile), filepath.Join(project, deps.LockFile)
	write(t, file, "# what we need\n\nemoji==1.0   # not the new one\n")
	below := filepath.Join(project, "a", "b")
	write(t, filepath.Join(below, "x.py"), "")

	s := find(t, below, w.options.Data)
	if s.Dir != project || !s.Project || len(s.Requirements) != 1 || s.Locked != nil {
		t.Fatalf("found %+v", s)
	}
	if p := w.begin(s); brought(p) != "emoji 1.0, humanize 1.0" || len(p.Notes) != 0 {
		t.Fatalf("without a lock: %+v", p)
	}

	p, err := s.Add(t.Context(), w.installer(), requirements(t, "cowsay", "emoji"), nil)
	if err != nil || brought(p) != "cowsay 1.0, emoji 1.5, humanize 1.0" {
		t.Fatalf("adding: %+v, %v", p, err)
	}
	if got := read(t, file); got != "# what we need\n\nemoji  # not the new one\ncowsay\n" {
		t.Errorf("the list is now %q", got)
	}
	lock := read(t, lockFile)
	for _, want := range []string{"cowsay==1.0 \\\n    --hash=sha256:" + (indextest.Wheel{Name: "cowsay", Version: "1.0", Require: []string{"humanize", "numpy"}}).SHA256(), "numpy==2.3 \\\n", "# environment: Python 3."} {
		if !strings.Contains(lock, want) {
			t.Errorf("the lock lacks %q:\n%s", want, lock)
		}
	}

	// What is locked stays, whatever else appears, and whether the index is there or not.
	w.index.Add(indextest.Wheel{Name: "humanize", Version: "2.0"})
	first := w.begin(find(t, below, w.options.Data))
	if brought(first) != "cowsay 1.0, emoji 1.5, humanize 1.0" || len(first.Notes) != 0 || len(first.State.Layers) != 1 {
		t.Errorf("from the lock: %+v", first)
	}
	asked := w.index.Requests("")
	if again := w.begin(find(t, below, w.options.Data)); !again.Cached || again.Layer != first.Layer || w.index.Requests("") != asked {
		t.Errorf("from the lock again: %+v", again)
	}
	if out, err := w.imports(w.installer(), first.State, "import cowsay, emoji, humanize; print(humanize.__version__)"); err != nil || out != "1.0" {
		t.Errorf("importing: %s, %v", out, err)
	}
	// The session goes on from there.
	r := code("cowsay")
	r.State = first.State
	if p := w.provide(r); !p.Silent() {
		t.Errorf("a session that begins so: %+v", p)
	}

	s = find(t, below, w.options.Data)
	if p, err := s.Remove(t.Context(), w.installer(), []string{"Emoji"}, nil); err != nil || brought(p) != "cowsay 1.0, humanize 1.0" {
		t.Errorf("removing keeps versions: %+v, %v", p, err)
	}
	if got := read(t, file); got != "# what we need\n\ncowsay\n" {
		t.Errorf("the list is now %q", got)
	}
	w.forgetPages()
	if p, err := s.Lock(t.Context(), w.installer(), nil); err != nil || brought(p) != "cowsay 1.0, humanize 2.0" || s.Locked["humanize"] != "2.0" {
		t.Errorf("locking anew: %+v, %v", p, err)
	}
	if _, err := s.Remove(t.Context(), w.installer(), []string{"emoji"}, nil); problem.Of(err) == nil || problem.Of(err).Code != "package_not_listed" {
		t.Errorf("removing what is not there: %v", err)
	}
}

func TestStandingThatDoesNotFit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "cowsay", Version: "1.0"}, indextest.Wheel{Name: "cowsay", Version: "2.0"}, indextest.Wheel{Name: "reqeusts"})
	project := t.TempDir()
	s, err := deps.StandingIn(project)
	if err != nil || !s.Project {
		t.Fatalf("%+v, %v", s, err)
	}
	if p := w.begin(s); !p.Silent() || len(p.State.Layers) != 0 {
		t.Errorf("an empty list: %+v", p)
	}
	if p, err := s.Add(t.Context(), w.installer(), requirements(t, "cowsay<2", "reqeusts"), nil); err != nil || refusals(p) != "package_needs_approval reqeusts" {
		t.Errorf("a slip: %+v, %v", p, err)
	}
	if _, err := os.Stat(filepath.Join(project, deps.StandingFile)); err == nil || len(s.Requirements) != 0 {
		t.Error("a refused addition was written down")
	}
	if _, err := s.Add(t.Context(), w.installer(), requirements(t, "cowsay<2"), nil); err != nil {
		t.Fatal(err)
	}
	lockFile := filepath.Join(project, deps.LockFile)
	lock := read(t, lockFile)

	write(t, lockFile, strings.Replace(lock, "linux", "plan9", 1))
	if p := w.begin(find(t, project, w.options.Data)); brought(p) != "cowsay 1.0" || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "plan9") {
		t.Errorf("for another machine: %+v", p)
	}
	write(t, filepath.Join(project, deps.StandingFile), "cowsay>=2\n")
	write(t, lockFile, lock)
	if p := w.begin(find(t, project, w.options.Data)); brought(p) != "cowsay 2.0" || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "cowsay>=2") {
		t.Errorf("after an edit: %+v", p)
	}
	write(t, filepath.Join(project, deps.StandingFile), "cowsay<2\n")
	write(t, lockFile, strings.Replace(lock, "sha256:", "sha256:"+strings.Repeat("0", 8), 1))
	if _, err := deps.FindStanding(project, w.options.Data); problem.Of(err) == nil || problem.Of(err).Code != "lock_invalid" {
		t.Errorf("a damaged lock: %v", err)
	}
	at := strings.Index(lock, "sha256:") + len("sha256:")
	write(t, lockFile, lock[:at]+strings.Repeat("0", 64)+lock[at+64:])
	if _, err := find(t, project, w.options.Data).Begin(t.Context(), w.installer(), nil); problem.Of(err) == nil || problem.Of(err).Code != "package_hash_mismatch" {
		t.Errorf("another hash: %v", err)
	}
}

func TestStandingWithoutAProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "cowsay"})
	dir := t.TempDir()
	s := find(t, dir, w.options.Data)
	if s.Project || s.Dir != filepath.Join(w.options.Data, "packages") {
		t.Fatalf("found %+v", s)
	}
	if _, err := s.Add(t.Context(), w.installer(), requirements(t, "cowsay"), nil); err != nil {
		t.Fatal(err)
	}
	if p := w.begin(find(t, dir, w.options.Data)); brought(p) != "cowsay 1.0" {
		t.Errorf("got %+v", p)
	}
	write(t, filepath.Join(dir, deps.StandingFile), "git+ssh://x/y\n")
	if _, err := deps.FindStanding(dir, w.options.Data); problem.Of(err) == nil || problem.Of(err).Code != "requirement_not_allowed" || !strings.Contains(problem.Of(err).Message, dir) {
		t.Errorf("got %v", err)
	}
	s.Dir = dir
	list := filepath.Join(dir, deps.StandingFile)
	blamed := problem.Of(s.Blamed(problem.New(problem.PackageUnknown, "the package index has no package named x").WithHint("check the name")))
	if blamed.Code != "package_unknown" || !strings.HasPrefix(blamed.Message, list+" asks for packages that sessions here begin with: the package index") || blamed.Hint != "check the name; or edit "+list {
		t.Errorf("an error about what a list asks for is %+v", blamed)
	}
	if again := s.Blamed(blamed); problem.Of(again).Message != blamed.Message {
		t.Errorf("the list is named twice: %v", again)
	}
}
