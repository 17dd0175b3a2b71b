// Package e2e_test runs the built cove the way a user does, with scripts in testdata. It needs what cove needs: a
// Python, and the package index when the environment is not built yet.
package e2e_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"cove/internal/llm/model/modeltest"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/python/deps/indextest"
	"cove/internal/python/pyenv"
	"cove/internal/testkit/testneeds"
)

func TestMain(m *testing.M) {
	if err := os.Setenv("COVE_LANG", "en"); err != nil { // whatever this machine's locale
		panic(err)
	}
	testneeds.Main(m, testneeds.Sandboxes)
}

// TestScripts types commands, as the scripts in testdata have them.
func TestScripts(t *testing.T) {
	scripts(t, "testdata")
}

// TestScriptsWhole types those of which each takes long.
func TestScriptsWhole(t *testing.T) {
	testneeds.FullTier(t)
	scripts(t, filepath.Join("testdata", "full"))
}

func scripts(t *testing.T, dir string) {
	t.Helper()
	cfg, err := testneeds.Config()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pyenv.Ensure(context.Background(), pyenv.Options{Data: cfg.Folders.Data, Set: pyenv.Standard, Python: cfg.Packages.Python, Progress: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	bin := link(t)
	example, err := filepath.Abs("../examples/sales")
	if err != nil {
		t.Fatal(err)
	}
	index := newIndex(t)
	testscript.RunT(scriptT{t}, testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			e.Setenv("COVE_HOME", cfg.Folders.Data)
			e.Setenv("COVE_RUNTIME", cfg.Folders.Runtime)
			e.Setenv("COVE_CONFIG", "")
			e.Setenv("COVE_DATABASE", filepath.Join(e.WorkDir, "cove.db"))
			e.Setenv("COVE_SERVER_FOLDER", filepath.Join(e.WorkDir, "server"))
			e.Setenv("COVE_SESSIONS", filepath.Join(e.WorkDir, "sessions"))
			e.Values["server"] = &scriptServer{}
			e.Setenv("EXAMPLE", example)
			e.Setenv("INDEX", index.URL)
			e.Setenv("OLLAMA_HOST", "127.0.0.1:1") // whatever runs on this machine is no part of the tests
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "model": startModel, "serve": serveScript},
	})
}

// scriptT is a script's test, which waits for a slot.
type scriptT struct{ *testing.T }

func (t scriptT) Run(name string, script func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { script(scriptT{t}) })
}

func (t scriptT) Parallel() {
	t.T.Parallel()
	testneeds.Asked(t.T, testneeds.Sandboxes)
}

func (t scriptT) Verbose() bool { return testing.Verbose() }

// newIndex is a package index with a few small packages under names that cove knows.
func newIndex(t *testing.T) *indextest.Index {
	index := indextest.New(t)
	cow := func(version string) indextest.Wheel {
		return indextest.Wheel{Name: "cowsay", Version: version, Files: map[string]string{"cowsay/__init__.py": "def say(): return 'moo " + version + "'\n"}}
	}
	index.Add(cow("5.0"), cow("6.1"),
		indextest.Wheel{Name: "opencv-python-headless", Version: "5.0", Files: map[string]string{"cv2/__init__.py": "__version__ = '5.0'\n"}},
		indextest.Wheel{Name: "humanize", Version: "4.0", Require: []string{"cowsay<6"}},
		indextest.Wheel{Name: "six", Version: "9.0", Files: map[string]string{"six.py": "__version__ = '9.0'\n"}},
		indextest.Sdist{Name: "docopt", Version: "1.0"}, indextest.Sdist{Name: "hnswlib", Version: "1.0", Extra: map[string]string{"hnswlib/space.cpp": ""}})
	return index
}

// link puts the real binary into a folder of its own under the name that users call it by.
func link(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program, err := sandboxtest.Built()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(dir, "cove")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// exits runs a command and checks its exit code: exits 124 cove run ...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGS]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// startModel serves a script of model turns and points cove at it: model openai|anthropic FILE
func startModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: model openai|anthropic FILE")
	}
	script, err := modeltest.LoadScript(ts.MkAbs(args[1]))
	ts.Check(err)
	server := modeltest.Serve(script)
	ts.Defer(server.Close)
	switch args[0] {
	case "openai":
		ts.Setenv("OPENAI_BASE_URL", server.OpenAIURL())
		ts.Setenv("OPENAI_API_KEY", "sk-test")
	case "anthropic":
		ts.Setenv("ANTHROPIC_BASE_URL", server.AnthropicURL())
		ts.Setenv("ANTHROPIC_API_KEY", "sk-test")
	default:
		ts.Fatalf("no such provider: %s", args[0])
	}
	ts.Setenv("COVE_MODEL", args[0]+"/scripted")
}
