package build_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/sandbox/local"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/python/deps"
	"cove/internal/python/deps/build"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/indextest"
	"cove/internal/python/deps/layer"
	"cove/internal/python/deps/require"
	"cove/internal/python/installation"
	"cove/internal/python/pyenv"
	"cove/internal/python/pyindex"
	"cove/internal/testkit/testneeds"
)

// world is a fake index, a gateway to it, and a builder with real sandboxes.
type world struct {
	t       *testing.T
	index   *indextest.Index
	env     *pyenv.Environment
	rules   gateway.Rules
	options build.Options
	dir     string // where built wheels go
	told    []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	env, uv := testneeds.Environment(t, pyenv.Minimal), testneeds.FindUV(t)
	state := t.TempDir()
	t.Cleanup(func() {
		if left, err := filepath.Glob(filepath.Join(state, "build-*")); err != nil || len(left) > 0 {
			t.Errorf("left of sandboxes is %v (%v)", left, err)
		}
	})
	return &world{
		t: t, index: indextest.New(t), env: env, rules: gateway.Rules{Sources: true}, dir: t.TempDir(),
		options: build.Options{
			Engine: gvisor.New(gvisor.Options{State: state, Executable: sandboxtest.Binary(t)}), Data: t.TempDir(),
			Limits: sandbox.Limits{Memory: 1 << 30, Workspace: 1 << 30}, UV: func(context.Context) (string, error) { return uv, nil },
		},
	}
}

func (w *world) gateway() *gateway.Gateway {
	w.t.Helper()
	g, err := gateway.New(gateway.Options{Cache: w.t.TempDir(), Sources: []pyindex.Source{{Name: "test", URL: w.index.URL}}, Rules: w.rules})
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

func (w *world) resolution(asked ...string) deps.Resolution {
	w.t.Helper()
	var r deps.Resolution
	for _, text := range asked {
		one, err := require.Parse(strings.TrimPrefix(text, "!"))
		if err != nil {
			w.t.Fatal(err)
		}
		if strings.HasPrefix(text, "!") {
			r.Constraints = append(r.Constraints, one)
		} else {
			r.Requirements = append(r.Requirements, one)
		}
	}
	return r
}

// build asks for requirements; those that begin with ! are constraints.
func (w *world) build(asked ...string) (map[string]layer.Wheel, error) {
	w.t.Helper()
	wheels, err := build.New(w.options).Build(w.t.Context(), w.gateway(), w.env, w.resolution(asked...), w.dir, func(p installation.Progress) {
		text := p.Phase
		for _, one := range p.Packages {
			text += " " + one.Name + " " + one.Version
		}
		w.told = append(w.told, text)
	})
	out := map[string]layer.Wheel{}
	for _, wheel := range wheels {
		out[wheel.Name] = wheel
	}
	return out, err
}

// fails asks for a requirement that cannot be built, and returns the problem with all that it says.
func (w *world) fails(code string, asked ...string) string {
	w.t.Helper()
	wheels, err := w.build(asked...)
	if err == nil {
		w.t.Fatalf("built was %v", wheels)
	}
	p := problem.Of(err)
	if p.Code != code || p.Hint == "" {
		w.t.Errorf("the problem is %s (hint %q), want %s: %v", p.Code, p.Hint, code, err)
	}
	left, readErr := os.ReadDir(w.dir)
	if readErr != nil || len(left) > 0 {
		w.t.Errorf("left behind are %v (%v)", left, readErr)
	}
	return err.Error() + "\n" + p.Hint
}

// run imports what was built on the host, as a layer would show it.
func (w *world) run(wheels map[string]layer.Wheel, code string) string {
	w.t.Helper()
	folder := w.t.TempDir()
	for _, wheel := range wheels {
		path := filepath.Join(w.dir, wheel.File)
		content, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // it is the index's own
		}
		if err != nil {
			w.t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		if hex.EncodeToString(sum[:]) != wheel.SHA256 || int64(len(content)) != wheel.Size {
			w.t.Errorf("%s has %d bytes with the hash %x, not %+v", path, len(content), sum, wheel)
		}
		if out, err := exec.CommandContext(w.t.Context(), w.env.Python, "-I", "-m", "zipfile", "-e", path, folder).CombinedOutput(); err != nil {
			w.t.Fatalf("%v\n%s", err, out)
		}
	}
	out, err := exec.CommandContext(w.t.Context(), w.env.Python, "-I", "-c", "import sys; sys.path.insert(0, sys.argv[1])\n"+code, folder).CombinedOutput()
	if err != nil {
		w.t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestBuilds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(
		indextest.Sdist{Name: "Pure-Thing", Version: "1.2", Require: []string{"milk>=2", "deep"}, Build: []string{"buildhelp"}, Script: "import buildhelp\nopen('src/made.py', 'w').write('by = ' + repr(buildhelp.__version__))"},
		indextest.Sdist{Name: "deep", Version: "0.1.post1", Require: []string{"ipython"}},
		indextest.Wheel{Name: "milk", Version: "2.1"},
		indextest.Wheel{Name: "milk", Version: "2.1", Tag: "cp311-cp311-win_amd64"},
		indextest.Wheel{Name: "buildhelp", Version: "7"},
		indextest.Wheel{Name: "ipython", Version: w.env.Packages["ipython"]},
		// Newer than what has wheels, and so not worth building.
		indextest.Sdist{Name: "milk", Version: "3"},
	)
	wheels, err := w.build("pure-thing", "milk", "!ipython=="+w.env.Packages["ipython"])
	if err != nil {
		t.Fatalf("%+v", err)
	}
	var got []string
	for name, wheel := range wheels {
		got = append(got, name+" "+wheel.Version+" "+wheel.File)
	}
	slices.Sort(got)
	want := "deep 0.1.post1 deep-0.1.post1-py3-none-any.whl, milk 2.1 milk-2.1-py3-none-any.whl, pure-thing 1.2 Pure_Thing-1.2-py3-none-any.whl"
	if strings.Join(got, ", ") != want {
		t.Errorf("the closure is\n%s, want\n%s", strings.Join(got, ", "), want)
	}
	if out := w.run(wheels, "import pure_thing, made, deep; print(pure_thing.__version__, made.by, deep.__version__)"); out != "1.2 7 0.1.post1" {
		t.Errorf("built was %s", out)
	}
	if !slices.Equal(w.told, []string{"resolve", "build deep 0.1.post1", "build pure-thing 1.2"}) {
		t.Errorf("told was %q", w.told)
	}
	if n := w.index.Downloads("milk-3.tar.gz"); n > 1 {
		t.Errorf("what has wheels was fetched to be built, %d times", n)
	}
}

// extension is a source distribution with a module in C. Its script names the wheel's tag.
func extension() indextest.Sdist {
	return indextest.Sdist{Name: "fast-moo", Version: "2.0", Files: map[string]string{"moo/__init__.py": "from moo._moo import moo\n"},
		Extra: map[string]string{"moo.c": `#include <Python.h>
static PyObject *moo(PyObject *self, PyObject *args) { return PyUnicode_FromString("moo from C"); }
static PyMethodDef methods[] = {{"moo", moo, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_moo", "", -1, methods};
PyMODINIT_FUNC PyInit__moo(void) { return PyModule_Create(&module); }
`},
		Script: `
import platform, subprocess, sys, sysconfig
suffix = sysconfig.get_config_var("EXT_SUFFIX")
subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-I" + sysconfig.get_path("include"), "moo.c", "-o", "src/moo/_moo" + suffix], check=True)
python = "cp%d%d" % sys.version_info[:2]
tag = python + "-" + python + "-linux_" + platform.machine()
`}
}

// TestBuildsC compiles C where the machine can; where it cannot, the problem has to say what is missing.
func TestBuildsC(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(extension())
	_, lookErr := exec.LookPath("/usr/bin/gcc")
	headers, globErr := filepath.Glob(filepath.Join(w.env.Base, "include", "python3*", "Python.h"))
	if lookErr != nil || globErr != nil || len(headers) == 0 {
		said := w.fails("build_failed", "fast-moo")
		if !strings.Contains(said, "on this machine") {
			t.Errorf("without a compiler or headers it is said:\n%s", said)
		}
		return
	}
	wheels, err := w.build("fast-moo")
	if err != nil {
		t.Fatalf("%+v", err)
	}
	if out := w.run(wheels, "import moo; print(moo.moo())"); out != "moo from C" {
		t.Errorf("built was %s: %+v", out, wheels)
	}
}

// TestReachesTheIndexAlone runs code in a build that tries what a sandbox with a network could.
func TestReachesTheIndexAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.index.Add(indextest.Wheel{Name: "denied"}, indextest.Wheel{Name: "milk"})
	w.rules.Deny = []string{"denied"}
	host := strings.TrimSuffix(strings.TrimPrefix(w.index.URL, "http://"), "/simple/")
	script := fmt.Sprintf(`
import os, socket, urllib.error, urllib.request
host = %q
def get(url, proxied=True):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(None if proxied else {}))
    try:
        with opener.open(url, timeout=20) as answer:
            return str(answer.status) + " " + str(b"milk" in answer.read())
    except urllib.error.HTTPError as e:
        return str(e.code)
    except Exception as e:
        return type(e).__name__
def tunnel():
    address = os.environ["HTTP_PROXY"].rpartition("/")[2].split(":")
    with socket.create_connection((address[0], int(address[1])), timeout=20) as s:
        s.sendall(b"CONNECT " + host.encode() + b" HTTP/1.1\r\nHost: " + host.encode() + b"\r\n\r\n")
        return s.recv(100).split(b" ")[1].decode()
index = os.environ["UV_DEFAULT_INDEX"]
found = [
    "index " + get(index + "milk/"),
    "denied " + get(index + "denied/"),
    "through the proxy " + get("http://" + host + "/simple/milk/"),
    "metadata " + get("http://169.254.169.254/latest/"),
    "straight " + get("http://" + host + "/simple/milk/", proxied=False),
    "outside " + get("http://1.1.1.1/", proxied=False),
    "tunnel " + tunnel(),
    "root " + str(os.getuid() == 0),
    "home " + str(os.path.exists(%q)),
]
open("src/found.py", "w").write("found = " + repr(found))
`, host, w.dir)
	w.index.Add(indextest.Sdist{Name: "curious", Script: script})
	wheels, err := w.build("curious")
	if err != nil {
		t.Fatalf("%+v", err)
	}
	for line := range strings.Lines(w.run(wheels, "import found; print(*found.found, sep='\\n')")) {
		what, got := strings.TrimSpace(line), ""
		at := strings.LastIndex(what, " ")
		if strings.HasPrefix(what, "index ") {
			at = strings.Index(what, " ")
		}
		what, got = what[:at], what[at+1:]
		switch want := map[string]string{
			"index": "200 True", "straight": "URLError", "outside": "URLError", "root": "False", "home": "False",
		}[what]; {
		case want != "":
			if got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		case !strings.HasPrefix(got, "4") && got != "502":
			t.Errorf("%s: %s, want to be refused", what, got)
		}
	}
	if n := w.index.Requests("/simple/denied/"); n > 0 {
		t.Errorf("a denied project was asked for %d times", n)
	}
}

func TestHostileBuilds(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for name, test := range map[string]struct {
		sdist indextest.Sdist
		want  string
	}{
		"another name":    {indextest.Sdist{Name: "x", Script: "name = 'numpy'"}, "declares name numpy"},
		"another version": {indextest.Sdist{Name: "x", Script: "version = '9.9'"}, "declares version 9.9"},
		"another machine": {indextest.Sdist{Name: "x", Script: "tag = 'cp311-cp311-win_amd64'"}, "does not fit"},
		"an odd name":     {indextest.Sdist{Name: "x", Script: "tag = 'py3-none-a~b'"}, "invalid filename"},
		"a failure":       {indextest.Sdist{Name: "x", Script: "import sys; sys.exit('\\x1b[31mno luck\\x07 today')"}, "no luck today"},
		"no compiler":     {indextest.Sdist{Name: "x", Script: "import subprocess; raise FileNotFoundError(2, 'No such file or directory', 'gcc')"}, "install gcc"},
		"much to say":     {indextest.Sdist{Name: "x", Script: "import sys\nfor i in range(60000): print('\\x1b]0;owned\\x07\\u202e' + 'x' * 20)\nsys.exit('the end')"}, "could not be built"},
		"two wheels": {indextest.Sdist{Name: "x", Script: "import os\nfor p in ('/home/user/out',):\n    os.makedirs(p, exist_ok=True); open(p + '/x-1.0-py2-none-any.whl', 'w').write('')"},
			"2 wheels"},
		"a link": {indextest.Sdist{Name: "x", Script: `
import os
os.makedirs('/home/user/out', exist_ok=True)
os.symlink('/etc/passwd', '/home/user/out/x-1.0-py3-none-any.whl')
`}, "could not be"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.index.Add(test.sdist)
			said := w.fails("build_failed", "x")
			if !strings.Contains(said, test.want) || strings.ContainsAny(said, "\x1b\x07\u202e") || len(said) > 20_000 {
				t.Errorf("it is said, without %q:\n%s", test.want, said)
			}
		})
	}
}

func TestHugeWheel(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	w := newWorld(t)
	w.options.Largest = 1 << 20
	w.index.Add(indextest.Sdist{Name: "x", Script: "import os\nopen('src/big.bin', 'wb').write(os.urandom(3 << 20))"})
	if said := w.fails("build_failed", "x"); !strings.Contains(said, "larger than 1 MiB") {
		t.Errorf("it is said:\n%s", said)
	}
	w.index.Add(indextest.Sdist{Name: "y", Extra: map[string]string{"big.bin": string(indextest.Wheel{Name: "y", Padding: 2 << 20}.Bytes())}})
	w.rules.MaxFile = 0
	if said := w.fails("build_failed", "y"); !strings.Contains(said, "larger than 1 MiB") {
		t.Errorf("it is said:\n%s", said)
	}
}

// TestNeverEnds is in the hands of the test's clock alone: a build that did not end would hold it up for ever.
func TestNeverEnds(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for name, sdist := range map[string]indextest.Sdist{
		"build":    {Name: "x", Script: "import threading; threading.Event().wait()"},
		"metadata": {Name: "x", Metadata: "import threading; threading.Event().wait()"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.options.Timeout = 6 * time.Second
			w.index.Add(sdist)
			w.fails("build_timeout", "x")
		})
	}
}

// startless is an engine that starts nothing.
type startless struct {
	sandbox.Engine
	err error
}

func (s startless) Start(context.Context, sandbox.Spec) (sandbox.Sandbox, error) { return nil, s.err }

func TestSandboxDoesNotStart(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	w := newWorld(t)
	w.index.Add(indextest.Sdist{Name: "x"})
	full := problem.New(problem.DiskFull, "the disk is full").WithHint("make room")
	w.options.Engine = startless{w.options.Engine, full}
	w.fails("disk_full", "x")
}

// watched is an engine that notes when somebody waits for the end of one of its sandboxes.
type watched struct {
	sandbox.Engine
	awaited *atomic.Bool
}

func (w watched) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	sb, err := w.Engine.Start(ctx, spec)
	return watchedSandbox{sb, w.awaited}, err
}

type watchedSandbox struct {
	sandbox.Sandbox
	awaited *atomic.Bool
}

func (s watchedSandbox) Done() <-chan struct{} {
	s.awaited.Store(true)
	return s.Sandbox.Done()
}

// TestCanceled cancels a build while the index keeps uv waiting. The build ends then: it does not wait for its sandbox, which has no reason to end.
func TestCanceled(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	w := newWorld(t)
	var awaited atomic.Bool
	w.options.Engine = watched{w.options.Engine, &awaited}
	w.index.Add(indextest.Sdist{Name: "x"})
	arrived, release := w.index.Hold("/simple/x/")
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		awaited.Store(false) // before, the link may have looked
		cancel()
	}()
	_, err := build.New(w.options).Build(ctx, w.gateway(), w.env, w.resolution("x"), w.dir, nil)
	if err == nil || problem.Of(err).Code != "canceled" {
		t.Errorf("a build that was cancelled: %v", err)
	}
	if awaited.Load() {
		t.Error("a build that was cancelled waited for the end of its sandbox")
	}
}

func TestTroubles(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for name, test := range map[string]struct {
		arrange func(w *world)
		asked   []string
		code    string
	}{
		"unknown":           {func(*world) {}, []string{"nothing-like-it"}, "resolve_failed"},
		"no such version":   {func(*world) {}, []string{"x>=2"}, "resolve_failed"},
		"contradiction":     {func(*world) {}, []string{"x", "!x<1"}, "resolve_failed"},
		"index is down":     {func(w *world) { w.index.Misbehave("/simple/*", indextest.ServerError, 0) }, []string{"x"}, "index_unreachable"},
		"sources withheld":  {func(w *world) { w.rules.Sources = false }, []string{"x"}, "resolve_failed"},
		"wrong metadata":    {func(w *world) { w.index.Add(indextest.Sdist{Name: "x", Metadata: "name = 'numpy'"}) }, []string{"x"}, "resolve_failed"},
		"corrupt source":    {func(w *world) { w.index.Misbehave("/files/*", indextest.Corrupt, 0) }, []string{"x"}, "build_failed"},
		"sandbox of nobody": {func(w *world) { w.options.Engine = local.New(local.Options{}) }, []string{"x"}, "build_unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.index.Add(indextest.Sdist{Name: "x"})
			test.arrange(w)
			w.fails(test.code, test.asked...)
		})
	}
}

// TestMemory is about who is killed: the sandbox's limit may end the build alone or the sandbox as a whole.
func TestMemory(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	w := newWorld(t)
	w.options.Limits.Memory = 256 << 20
	w.index.Add(indextest.Sdist{Name: "x", Script: "x = []\nwhile True: x.append(bytearray(b'x') * (1 << 24))"})
	_, err := w.build("x")
	if p := problem.Of(err); err == nil || p.Code != "session_oom" && (p.Code != "build_failed" || !strings.Contains(p.Hint, "memory")) {
		t.Errorf("a build that takes all memory: %+v", err)
	}
}
