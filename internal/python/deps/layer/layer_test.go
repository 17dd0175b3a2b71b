package layer_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/internal/python/deps/layer"
	"cove/internal/testkit/testneeds"
)

func TestLayer(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, filepath.Join(t.TempDir(), "packages"), layer.Limits{})
	menu := dist("Menu_Card", "menu/__init__.py", "from spam import eggs\ndish = 'menu with ' + eggs\n", "menu/tests/test_it.py", "pass\n", "menu/bad.py", "no python\n",
		"Menu_Card-1.0.data/purelib/extra.py", "x = 1\n", "Menu_Card-1.0.data/scripts/menu", "#!python\n", "Menu_Card-1.0.data/scripts/cook", "\x7fELF and more", "fast.cpython-311-x86_64-linux-gnu.so", "no ELF\n", "ns/part/mod.py", "y = 2\n")
	menu.files = append(menu.files, file{name: "menu/run.sh", text: "#!/bin/sh\n", header: func(h *zipHeader) { h.SetMode(0o4777) }})
	spam := dist("spam", "spam.py", "eggs = 'eggs'\n", "ns/other.py", "z = 3\n", "spam/not_a_folder_of_spam.txt", "a folder beside the module\n")
	c := closure(t, x.add(t, menu), x.add(t, spam))
	if _, ok := s.Find(c); ok {
		t.Fatal("found before it was made")
	}
	l := ensure(t, s, c, x)
	if len(l.Name) < 32 {
		t.Errorf("the name %q is short", l.Name)
	}
	if want := []string{"extra", "fast", "menu", "ns", "spam"}; !slices.Equal(l.Modules, want) {
		t.Errorf("modules %q, want %q", l.Modules, want)
	}
	if d := cmp.Diff(map[string][]string{"extra": {"menu-card"}, "fast": {"menu-card"}, "menu": {"menu-card"}, "ns": {"menu-card", "spam"}, "spam": {"spam"}}, l.Owners); d != "" {
		t.Error(d)
	}
	if want := []string{"menu-card: files of Menu_Card-1.0.data/scripts (1)"}; !slices.Equal(l.Stripped, want) {
		t.Errorf("stripped %q, want %q", l.Stripped, want)
	}
	dir := filepath.Join(s.Folder(), l.Name)
	for name, mode := range map[string]fs.FileMode{".": 0o755 | fs.ModeDir, "menu": 0o755 | fs.ModeDir, "menu/__init__.py": 0o444, "menu/run.sh": 0o555, "bin/cook": 0o555, "extra.py": 0o444,
		"menu/__pycache__": 0o755 | fs.ModeDir} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v; want mode %v", name, info.Mode(), err, mode)
		}
	}
	if got := names(t, filepath.Join(dir, "menu/__pycache__")); len(got) != 1 || !strings.HasPrefix(got[0], "__init__.cpython-3") {
		t.Errorf("compiled %q, want one file", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "menu/tests/__pycache__")); err == nil {
		t.Error("tests were compiled")
	}
	// The bytecode is used, and without a look at the source: it is gone.
	code := `import sys, os; sys.path.append(sys.argv[1]); sys.dont_write_bytecode = True
import menu, ns.part.mod, ns.other, importlib.metadata
print(menu.dish, menu.__cached__ == menu.__spec__.cached, os.path.exists(menu.__cached__), menu.f() if hasattr(menu, "f") else ns.other.z, importlib.metadata.version("menu-card"))
print(open(menu.__cached__, "rb").read()[4:8] == b"\1\0\0\0", compile("1", "x", "eval").co_filename, menu.__loader__.get_code("menu").co_filename == menu.__file__)`
	out, err := exec.Command(c.Python, "-I", "-c", code, dir).CombinedOutput()
	if want := "menu with eggs True True 3 1.0\nTrue x True\n"; err != nil || string(out) != want {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}

	found, ok := s.Find(c)
	slices.Reverse(c.Wheels)
	again, ok2 := s.Find(c)
	got, err := s.Get(l.Name)
	if !ok || !ok2 || err != nil {
		t.Fatal("a layer that was made is not found")
	}
	for _, other := range []*layer.Layer{found, again, got} {
		if d := cmp.Diff(l, other); d != "" {
			t.Error(d)
		}
	}
	if got := names(t, filepath.Join(filepath.Dir(s.Folder()), "work")); len(got) > 0 {
		t.Errorf("left in work: %q", got)
	}
	if info, err := os.Stat(s.Folder()); err != nil || info.Mode().Perm() != 0o711 {
		t.Errorf("layers: %v, %v", info.Mode(), err)
	}
	if other := open(t, filepath.Dir(s.Folder()), layer.Limits{}); func() bool { _, ok := other.Find(c); return !ok }() {
		t.Error("not found by another opening of the store")
	}
}

func TestNamesDifferBetweenStores(t *testing.T) {
	t.Parallel()
	x := newIndex()
	c := closure(t, x.add(t, dist("spam", "spam.py", "")))
	a, b := open(t, t.TempDir(), layer.Limits{}), open(t, t.TempDir(), layer.Limits{})
	if one, other := ensure(t, a, c, x), ensure(t, b, c, x); one.Name == other.Name {
		t.Errorf("two stores call it %s: the name can be known from outside", one.Name)
	}
	info, err := os.Stat(filepath.Join(filepath.Dir(a.Folder()), "secret"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("secret: %v, %v", info.Mode(), err)
	}
}

func TestGetRefusesOtherNames(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), layer.Limits{})
	for _, name := range []string{"", "..", "../layers", strings.Repeat("a", 40), strings.Repeat("../", 14)} {
		if _, err := s.Get(name); problem.Of(err) == nil || problem.Of(err).Code != "layer_missing" {
			t.Errorf("%q gave %v", name, err)
		}
	}
}

func TestOneMakingForAll(t *testing.T) {
	t.Parallel()
	x, dir := newIndex(), t.TempDir()
	c := closure(t, x.add(t, dist("spam", "spam.py", "a = 1\n")), x.add(t, dist("eggs", "eggs.py", "a = 1\n")))
	var made atomic.Int32
	var wait sync.WaitGroup
	found := make([]string, 10)
	for i := range found {
		s := open(t, dir, layer.Limits{})
		wait.Go(func() {
			l, fresh, err := s.Ensure(t.Context(), c, x.fetch, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if fresh {
				made.Add(1)
			}
			found[i] = l.Name
		})
	}
	wait.Wait()
	if made.Load() != 1 {
		t.Errorf("it was made %d times", made.Load())
	}
	for _, w := range c.Wheels {
		if x.fetched[w.SHA256] != 1 {
			t.Errorf("%s was fetched %d times", w.Name, x.fetched[w.SHA256])
		}
	}
	if len(slices.Compact(found)) != 1 {
		t.Errorf("different layers: %q", found)
	}
}

// TestWheelsAreShared has closures with a wheel in common made at the same time.
func TestWheelsAreShared(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
	common := x.add(t, dist("common", "common.py", "a = 1\n"))
	var wait sync.WaitGroup
	var inodes [3]uint64
	for i, name := range []string{"a", "b", "c"} {
		c := closure(t, common, x.add(t, dist(name, name+".py", "")))
		wait.Go(func() {
			l, _, err := s.Ensure(t.Context(), c, x.fetch, nil)
			if err != nil {
				t.Error(err)
				return
			}
			inodes[i] = inode(t, filepath.Join(s.Folder(), l.Name, "common.py"))
		})
	}
	wait.Wait()
	if x.fetched[common.SHA256] != 1 {
		t.Errorf("fetched %d times", x.fetched[common.SHA256])
	}
	if inodes[0] == 0 || inodes[0] != inodes[1] || inodes[1] != inodes[2] {
		t.Errorf("the file is not shared: inodes %v", inodes)
	}
}

func TestSharedFiles(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
	const stub = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)  # namespace\n"
	const more = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\nvalue = 1\n"
	a := dist("aa", "ns/__init__.py", stub, "ns/a.py", "", "LICENSE", "same", "README", "of a", "x/y", "file")
	b := dist("bb", "ns/__init__.py", more, "ns/b.py", "", "LICENSE", "same", "README", "of b", "x", "no folder", "z/z.py", "")
	c := dist("cc", "ns/__init__.py", "", "ns/c.py", "", "z", "no folder either")
	l := ensure(t, s, closure(t, x.add(t, c), x.add(t, b), x.add(t, a)), x)
	got := contents(t, filepath.Join(s.Folder(), l.Name))
	for name, want := range map[string]string{"ns/__init__.py": more, "ns/a.py": "", "ns/b.py": "", "ns/c.py": "", "LICENSE": "same", "README": "of a", "x/y": "file", "z/z.py": ""} {
		if text, ok := got[name]; !ok || text != want {
			t.Errorf("%s is %q, %v; want %q", name, text, ok, want)
		}
	}
	if want := []string{"README: that of bb was left out", "x: that of bb was left out", "z: that of cc was left out"}; !slices.Equal(l.Conflicts, want) {
		t.Errorf("conflicts %q, want %q", l.Conflicts, want)
	}
}

func TestNothingStartsItself(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
	d := dist("evil", "evil.py", "ok = 1\n", "evil.pth", "import os\n", "EVIL.PTH", "import os\n", "sitecustomize.py", "x", "SiteCustomize.py", "x", "usercustomize/__init__.py", "x",
		"sitecustomize.cpython-311-x86_64-linux-gnu.so", "x", "usercustomize.so", "x", "evil-1.0.data/purelib/late.pth", "import os\n", "evil-1.0.data/platlib/sitecustomize.py", "x",
		"boot.start", "x", "evil/weights.pth", "kept", "evil/sitecustomize.py", "kept")
	d.files = append(d.files, file{name: "evil.pyc", text: "code", record: "-"}, file{name: "__pycache__/evil.cpython-311.pyc", text: "code"}, file{name: "evil/__PyCache__/x", text: "code"})
	l := ensure(t, s, closure(t, x.add(t, d)), x)
	got := contents(t, filepath.Join(s.Folder(), l.Name))
	for name := range got {
		if strings.HasPrefix(name, "evil-1.0.dist-info/") {
			delete(got, name)
		}
	}
	if d := cmp.Diff(map[string]string{"evil.py": "ok = 1\n", "evil/weights.pth": "kept", "evil/sitecustomize.py": "kept"}, got); d != "" {
		t.Error(d)
	}
	if len(l.Stripped) != 11 {
		t.Errorf("stripped %d: %q", len(l.Stripped), l.Stripped)
	}
	for _, name := range names(t, filepath.Join(s.Folder(), l.Name, "__pycache__")) {
		text, err := os.ReadFile(filepath.Join(s.Folder(), l.Name, "__pycache__", name))
		if err != nil || string(text) == "code" {
			t.Errorf("%s is the wheel's own: %v", name, err)
		}
	}
}

// TestHostileSource compiles what harms a compiler.
func TestHostileSource(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
	ran := filepath.Join(t.TempDir(), "ran")
	l := ensure(t, s, closure(t, x.add(t, dist("evil",
		"a_runs.py", "open("+"'"+ran+"', 'w')\n",
		"b_deep.py", "x = "+strings.Repeat("(", 90000)+strings.Repeat(")", 90000)+"\n",
		"c_deeper.py", "x = "+strings.Repeat("-", 300000)+"1\n",
		"d_nul.py", "x = '\x00'\n",
		"e_coding.py", "# -*- coding: no_such -*-\nx = 1\n",
		"f_big.py", "x = 9 ** 9 ** 9\ny = 'a' * (1 << 40)\n",
		"g_fine.py", "x = 1\n",
	))), x)
	if _, err := os.Stat(ran); err == nil {
		t.Error("source was run")
	}
	compiled := strings.Join(names(t, filepath.Join(s.Folder(), l.Name, "__pycache__")), " ")
	if !strings.Contains(compiled, "a_runs.") || !strings.Contains(compiled, "g_fine.") {
		t.Errorf("only %q were compiled", compiled)
	}
}

func TestFetchFails(t *testing.T) {
	t.Parallel()
	x := newIndex()
	d := dist("spam", "spam.py", strings.Repeat("# text\n", 1000))
	w := x.add(t, d)
	unsized := w
	unsized.Size = 0
	text := x.files[w.SHA256]
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	for name, c := range map[string]struct {
		ctx   context.Context
		wheel layer.Wheel
		fetch layer.Fetch
		code  string
	}{
		"its own problem": {fetch: func(context.Context, layer.Wheel, io.Writer, func(int64, int64)) error {
			return problem.New(problem.IndexUnreachable, "the index is away")
		}, code: "index_unreachable"},
		"other bytes":               {fetch: writes(append([]byte("x"), text[1:]...)), code: "package_hash_mismatch"},
		"too few bytes":             {fetch: writes(text[:len(text)-1]), code: "package_hash_mismatch"},
		"too many":                  {fetch: writes(append(slices.Clone(text), 'x')), code: "package_hash_mismatch"},
		"too many, of unknown size": {wheel: unsized, fetch: writes(append(slices.Clone(text), 'x')), code: "package_hash_mismatch"},
		"errors are lost": {fetch: func(_ context.Context, _ layer.Wheel, w io.Writer, _ func(int64, int64)) error {
			_, _ = w.Write(append(slices.Clone(text), 'x'))
			return nil
		}, code: "package_hash_mismatch"},
		"cancelled": {ctx: canceled, fetch: x.fetch, code: "canceled"},
		"full disk": {fetch: func(context.Context, layer.Wheel, io.Writer, func(int64, int64)) error {
			return &os.PathError{Op: "write", Path: "p", Err: noSpace}
		}, code: "disk_full"},
		"no room": {wheel: layer.Wheel{Name: w.Name, Version: w.Version, File: w.File, SHA256: w.SHA256, Size: 1 << 60}, fetch: x.fetch, code: "disk_full"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, t.TempDir(), layer.Limits{})
			if c.ctx == nil {
				c.ctx = t.Context()
			}
			if c.wheel.Name == "" {
				c.wheel = w
			}
			_, _, err := s.Ensure(c.ctx, closure(t, c.wheel), c.fetch, nil)
			if p := problem.Of(err); p == nil || p.Code != c.code || p.Hint == "" && p.Code != "index_unreachable" {
				t.Errorf("got %v, want %s with a hint", err, c.code)
			}
			isEmpty(t, s)
		})
	}
}

func writes(text []byte) layer.Fetch {
	return func(_ context.Context, _ layer.Wheel, w io.Writer, _ func(int64, int64)) error {
		_, err := w.Write(text)
		return err
	}
}

// isEmpty makes sure that nothing was left by something that failed.
func isEmpty(t *testing.T, s *layer.Store) {
	t.Helper()
	for _, folder := range []string{"layers", "manifests", "wheels", "work"} {
		if got := names(t, filepath.Join(filepath.Dir(s.Folder()), folder)); len(got) > 0 {
			t.Errorf("left in %s: %q", folder, got)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	x := newIndex()
	big := x.add(t, dist("big", "big.py", strings.Repeat("# text\n", 100000)))
	small := x.add(t, dist("small", "small/a.py", "", "small/b.py", "", "small/c.py", ""))
	unsized := small
	unsized.Size = 0
	for name, c := range map[string]struct {
		limits layer.Limits
		wheels []layer.Wheel
		want   string
	}{
		"wheels":           {layer.Limits{Wheels: 1}, []layer.Wheel{big, small}, "2 distributions, where the limit is 1"},
		"download":         {layer.Limits{Download: 500}, []layer.Wheel{small}, "the biggest: small 1.0"},
		"download unsized": {layer.Limits{Download: 500}, []layer.Wheel{unsized}, "the limit is 0.5 kB"},
		"unpacked":         {layer.Limits{Unpacked: 600000}, []layer.Wheel{small, big}, "unpacked, where the limit is 600.0 kB; the biggest: big 1.0 (700.4 kB), small 1.0 ("},
		"files":            {layer.Limits{Files: 5}, []layer.Wheel{small}, "6 files, where the limit is 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir, c.limits)
			_, _, err := s.Ensure(t.Context(), closure(t, c.wheels...), x.fetch, nil)
			if p := problem.Of(err); p == nil || p.Code != "closure_too_big" || p.Hint == "" || !strings.Contains(p.Message, c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			// The wheels that another limit let in count as well.
			l := ensure(t, open(t, dir, layer.Limits{}), closure(t, c.wheels...), x)
			if _, _, err := s.Ensure(t.Context(), closure(t, append(c.wheels, x.add(t, dist("more", "more.py", "")))...), x.fetch, nil); problem.Of(err) == nil || problem.Of(err).Code != "closure_too_big" {
				t.Errorf("with wheels that are there: %v", err)
			}
			if l.Unpacked == 0 || l.Files == 0 {
				t.Errorf("%d bytes in %d files", l.Unpacked, l.Files)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
	w := x.add(t, dist("spam", "spam.py", "a = 1\n"))
	var phases []string
	var last layer.Progress
	_, _, err := s.Ensure(t.Context(), closure(t, w), x.fetch, func(p layer.Progress) {
		phases = append(phases, p.Phase)
		last = p
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{layer.PhaseDownload, layer.PhaseUnpack, layer.PhaseCompile}; !slices.Equal(slices.Compact(phases), want) {
		t.Errorf("phases %q, want %q", phases, want)
	}
	if last.Received != w.Size || last.Total != w.Size || last.Wheel.Name != "spam" {
		t.Errorf("the last was %+v", last)
	}
}

func TestSameHashOtherName(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
	w := x.add(t, dist("spam", "spam.py", ""))
	ensure(t, s, closure(t, w), x)
	w.Name, w.File = "eggs", "eggs-1.0-py3-none-any.whl"
	_, _, err := s.Ensure(t.Context(), closure(t, w, x.add(t, dist("more", "more.py", ""))), x.fetch, nil)
	if p := problem.Of(err); p == nil || p.Code != "wheel_invalid" {
		t.Errorf("got %v", err)
	}
}

// TestWaiting has one ask for what another is making: it is told, it may give up, and it gets the same.
func TestWaiting(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
	c := closure(t, x.add(t, dist("spam", "spam.py", "")))
	fetching, goOn := make(chan struct{}), make(chan struct{})
	fetch := func(ctx context.Context, w layer.Wheel, out io.Writer, told func(int64, int64)) error {
		close(fetching)
		<-goOn
		return x.fetch(ctx, w, out, told)
	}
	made := make(chan string)
	go func() {
		l, _, err := s.Ensure(context.Background(), c, fetch, nil)
		if err != nil {
			made <- err.Error()
			return
		}
		made <- l.Name
	}()
	<-fetching
	impatient, giveUp := context.WithCancel(t.Context())
	_, _, err := s.Ensure(impatient, c, x.fetch, func(p layer.Progress) {
		if p.Phase == layer.PhaseWait {
			giveUp()
		}
	})
	if p := problem.Of(err); p == nil || p.Code != "canceled" || !errors.Is(err, context.Canceled) {
		t.Errorf("the impatient got %v", err)
	}
	l, fresh, err := s.Ensure(t.Context(), c, x.fetch, func(p layer.Progress) {
		if p.Phase == layer.PhaseWait {
			close(goOn)
		}
	})
	if name := <-made; err != nil || fresh || l.Name != name {
		t.Errorf("the patient got %v, %v, %v; the maker %s", l, fresh, err, name)
	}
}
