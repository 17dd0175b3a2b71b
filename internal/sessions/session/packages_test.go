package session_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/python/deps"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
	"cove/internal/sessions/session"
)

// shelf is a session.Packages with a few modules that are files, and what a test wants of it.
type shelf struct {
	dir     string
	modules map[string]string // source by name
	replace []string          // modules of the environment that it has, which take a new interpreter once they are imported
	fail    error
	hold    chan struct{} // Provide waits for it

	mu    sync.Mutex
	asked [][]string
}

// newShelf has modules as layers of their own. Sandboxed code of another uid passes through its folder.
func newShelf(t *testing.T, modules map[string]string) *shelf {
	t.Helper()
	dir := t.TempDir()
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		_ = os.Chmod(at, 0o711)
	}
	for name, source := range modules {
		folder := filepath.Join(dir, "layer-"+name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name+".py"), []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &shelf{dir: dir, modules: modules}
}

func (s *shelf) Mount() sandbox.Mount {
	return sandbox.Mount{Source: sandbox.HostFolder(s.dir), Target: layer.MountPoint}
}

func (s *shelf) Provided(state installation.State) func(string) bool {
	return func(root string) bool {
		return slices.Contains([]string{"sys", "os", "time", "math"}, root) || state.Packages[root] != ""
	}
}

func (s *shelf) Provide(ctx context.Context, r deps.Request, told func(installation.Progress)) (installation.Provision, error) {
	var asked []string
	for _, i := range r.Report.Imports {
		if !i.Optional && slices.Contains(r.Missing, i.Module) {
			asked = append(asked, i.Module)
		}
	}
	for _, a := range r.Report.Asked {
		asked = append(asked, a.Name)
	}
	s.mu.Lock()
	s.asked = append(s.asked, asked)
	s.mu.Unlock()
	if s.hold != nil {
		told(installation.Progress{Phase: "resolve"})
		select {
		case <-s.hold:
		case <-ctx.Done():
			return installation.Provision{}, problem.New(problem.GivenUp, "canceled")
		}
	}
	if s.fail != nil {
		return installation.Provision{}, s.fail
	}
	return s.give(asked, r.State, r.Pristine), nil
}

func (s *shelf) give(asked []string, state installation.State, pristine bool) installation.Provision {
	p := installation.Provision{State: state}
	for _, name := range asked {
		if _, ok := s.modules[name]; !ok {
			p.Refused = append(p.Refused, installation.Refusal{Name: name, Code: "package_unknown", Reason: "unknown"})
			continue
		}
		p.Layer = "layer-" + name
		p.Installed = append(p.Installed, installation.Package{Name: name, Version: "1", Asked: true})
		p.State.Layers = append([]string{p.Layer}, p.State.Layers...)
		p.State.Packages = map[string]string{name: "1"}
		if slices.Contains(s.replace, name) {
			p.First, p.State.First = true, append([]string{p.Layer}, p.State.First...)
			p.Restart = name + " is imported already"
		}
	}
	if p.Restart != "" && !pristine {
		p.Layer, p.State = "", state
	}
	return p
}

func (s *shelf) Module(_ context.Context, module string, _ []string, state installation.State, _ func(installation.Progress)) (installation.Provision, error) {
	if s.fail != nil {
		return installation.Provision{}, s.fail
	}
	return s.give([]string{module}, state, false), nil
}

func (s *shelf) Install(_ context.Context, asked []require.Requirement, state installation.State, _ func(installation.Progress)) (installation.Provision, error) {
	var names []string
	for _, r := range asked {
		names = append(names, r.Name)
	}
	p := s.give(names, state, true)
	p.Restart = ""
	return p, s.fail
}

// supplied starts a session that installs from a shelf; it ends with the test.
func supplied(t *testing.T, e sandbox.Engine, p session.Packages, image sandbox.Checkpoint) *session.Live {
	t.Helper()
	s, err := session.Open(t.Context(), session.Options{Engine: e, Env: standard(t), Packages: p, Checkpoint: image})
	if err != nil {
		t.Fatalf("open: %+v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestMissingModules(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := supplied(t, e, newShelf(t, map[string]string{"moo": "def say(): return 'moo'", "late": "x = 'late'", "taken": "x = 'not own'", "written": ""}), sandbox.Checkpoint{})
		runRows(t, s, []row{
			{"imported", []cell{code("import moo\nmoo.say()", "installed moo\nresult 'moo'\nok"), code("moo.say()", "result 'moo'\nok")}},
			{"asked for once", []cell{code("import moo, os, sys", "ok")}},
			{"unknown", []cell{codeLike("import nowhere_to_be_found", "refused nowhere_to_be_found\n(refused nowhere_to_be_found\n)?error ModuleNotFoundError: No module named 'nowhere_to_be_found'\nerror 1")}},
			{"own module elsewhere", []cell{
				code("import os, sys\nos.makedirs('lib')\nopen('lib/taken.py', 'w').write('x = \"own\"')", "result 9\ncreated lib/taken.py 9\nok"),
				code("open('written.py', 'w').write('x = 1')\nimport written\nwritten.x", "result 1\ncreated written.py 5\nok"),
				code("sys.path.append('lib')\nimport taken\ntaken.x", "result 'own'\nok"),
			}},
			{"not Python", []cell{codeLike("import never_to_be_looked_up\nif :", "error SyntaxError: .*\nerror 1")}},
			{"optional", []cell{code("try:\n    import ujson_or_so as json\nexcept ImportError:\n    import json\njson.dumps(1)", "result '1'\nok")}},
			{"while it runs", []cell{code("name = 'la' + 'te'\nprint('before')\nx = __import__(name).x\nx", "stdout \"before\\n\"\ninstalled late\nresult 'late'\nok")}},
			{"in a program", []cell{script("p.py", "import moo\nprint(moo.say())", "stdout \"moo\\n\"\nok")}},
			{"child", []cell{code("import subprocess\nsubprocess.run([sys.executable, '-c', 'import moo; print(moo.say())'], capture_output=True, text=True).stdout", "result 'moo\\n'\nok")}},
			{"after the kernel died", []cell{
				codeLike("import os\nos._exit(3)", "kernel_died 3 lost=kernel"),
				code("import moo\nmoo.say()", "result 'moo'\nok"),
			}},
		})
	})
}

func TestInstallationFails(t *testing.T) {
	t.Parallel()
	p := newShelf(t, nil)
	p.fail = problem.New(problem.IndexUnreachable, "the index cannot be reached")
	s := supplied(t, newGVisor(t), p, sandbox.Checkpoint{})
	runCell(t, s, codeLike("print(1)\nimport far_away", "not installed: index_unreachable\nstdout \"1\\\\n\"\n(not installed: index_unreachable\n)?error ModuleNotFoundError: .*\nerror 1"))
}

// TestRestart takes a new interpreter where that is needed, by itself as long as nothing is lost by it.
func TestRestart(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		p := newShelf(t, map[string]string{"six": "__version__ = 'ours'"})
		p.replace = []string{"six"}
		s := supplied(t, e, p, sandbox.Checkpoint{})
		const use = "# requirements: six\nimport six\nsix.__version__"
		runCell(t, s, code(use, "installed six, restarted\nresult 'ours'\nok"))
		s = supplied(t, e, p, sandbox.Checkpoint{})
		runCell(t, s, code("x = 1", "ok"))
		r := runCell(t, s, code(use, "installed six\nneeds_restart 1"))
		if !strings.Contains(r.done.Message, "nothing was run") || !strings.Contains(r.done.Message, "six is imported already") {
			t.Errorf("it says %q", r.done.Message)
		}
		runCell(t, s, code("x", "result 1\nok"))
		runCell(t, s, code("%restart\n"+use, "installed six, restarted\nresult 'ours'\nok"))
		runCell(t, s, codeLike("x", "error NameError: .*\nerror 1"))
	})
}

// TestLayersOutlastSessions saves a session that has imported from a layer, and goes on with a copy.
func TestLayersOutlastSessions(t *testing.T) {
	t.Parallel()
	e, p := newGVisor(t), newShelf(t, map[string]string{"moo": "x = 'moo'", "late": "x = 'late'"})
	s := supplied(t, e, p, sandbox.Checkpoint{})
	runCell(t, s, code("import moo\nmoo.x", "installed moo\nresult 'moo'\nok"))
	installed := s.Installed()
	if !slices.Equal(installed.Layers, []string{"layer-moo"}) {
		t.Errorf("it was given %+v", installed)
	}
	image := save(t, s, true)
	runCell(t, s, code("import late\nlate.x + moo.x", "installed late\nresult 'latemoo'\nok"))
	for range 2 {
		other := supplied(t, e, p, image)
		runCell(t, other, code("import importlib\nimportlib.reload(moo).x", "result 'moo'\nok"))
		runCell(t, other, code("import late\nlate.x", "installed late\nresult 'late'\nok"))
	}
}

// TestLeaverEndsTheInstallation has the consumer of an execution go while packages are being installed.
func TestLeaverEndsTheInstallation(t *testing.T) {
	t.Parallel()
	p := newShelf(t, map[string]string{"moo": ""})
	p.hold = make(chan struct{})
	s := supplied(t, newGVisor(t), p, sandbox.Checkpoint{})
	for ev, err := range s.Execute(t.Context(), kernel.Request{Code: "import moo\nx = 1"}) {
		if i, ok := ev.(kernel.Install); err != nil || !ok || i.Progress == nil {
			t.Fatalf("got %v, %v", ev, err)
		}
		break
	}
	close(p.hold)
	runCell(t, s, codeLike("x", "error NameError: .*\nerror 1"))
}

// TestCanceledInstallation interrupts an execution while packages are being installed: nothing runs.
func TestCanceledInstallation(t *testing.T) {
	t.Parallel()
	p := newShelf(t, map[string]string{"moo": ""})
	p.hold = make(chan struct{})
	s := supplied(t, newGVisor(t), p, sandbox.Checkpoint{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for ev, err := range s.Execute(ctx, kernel.Request{Code: "import moo\nx = 1"}) {
		last = err
		if i, ok := ev.(kernel.Install); ok && i.Progress != nil {
			cancel()
		}
	}
	if p := problem.Of(last); p == nil || p.Kind != problem.Canceled {
		t.Errorf("it ended with %v", last)
	}
	p.hold = nil
	runCell(t, s, codeLike("x", "error NameError: .*\nerror 1"))
}

// TestNothingOfTheSandboxReachesOthers tries from inside to change what the next session imports.
func TestNothingOfTheSandboxReachesOthers(t *testing.T) {
	t.Parallel()
	p := newShelf(t, map[string]string{"moo": "x = 'honest'"})
	for _, name := range []string{"json.py", "sitecustomize.py", "usercustomize.py"} {
		if err := os.WriteFile(filepath.Join(p.dir, "layer-moo", name), []byte("raise SystemExit('shadowed')"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(p.dir, "layer-moo", "evil.pth"), []byte("import os; os.environ['EVIL'] = '1'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	e := gvisor.New(gvisor.Options{State: t.TempDir(), Executable: sandboxtest.Binary(t)})
	s := supplied(t, e, p, sandbox.Checkpoint{})
	const attack = `import moo, os, sys, json
found = []
layer = os.path.dirname(moo.__file__)
def attempt(name, action):
    try:
        action(); found.append(name)
    except OSError:
        pass
attempt("write", lambda: open(moo.__file__, "w"))
attempt("append", lambda: open(moo.__file__, "ab"))
attempt("create", lambda: open(layer + "/other.py", "w"))
attempt("bytecode", lambda: os.makedirs(layer + "/__pycache__"))
attempt("rename", lambda: os.rename(moo.__file__, layer + "/other.py"))
attempt("remove", lambda: os.remove(moo.__file__))
attempt("mode", lambda: os.chmod(moo.__file__, 0o777))
attempt("link", lambda: os.link(moo.__file__, layer + "/linked.py"))
attempt("list", lambda: os.listdir(os.path.dirname(layer)))
attempt("new layer", lambda: os.mkdir(os.path.dirname(layer) + "/layer-mine"))
attempt("remount", lambda: (_ for _ in ()).throw(OSError()) if os.system("mount -o remount,rw " + os.path.dirname(layer) + " 2>/dev/null") else None)
found += [n for n in ("EVIL",) if n in os.environ]
import subprocess
found.append(subprocess.run([sys.executable, "-c", "import os, json, moo; print(os.environ.get('EVIL', ''), end='')"], capture_output=True, text=True).stdout)
found, "python3" in json.__file__`
	runCell(t, s, code(attack, "installed moo\nresult ([''], True)\nok"))
	runCell(t, supplied(t, e, p, sandbox.Checkpoint{}), code("import moo\nmoo.x", "installed moo\nresult 'honest'\nok"))
	left, err := os.ReadDir(filepath.Join(p.dir, "layer-moo"))
	if err != nil || len(left) != 5 {
		t.Errorf("the layer has %v, %v", left, err)
	}
}
