package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cove/internal/http/api"
	"cove/internal/testkit/testneeds"
)

// systemHome is a data folder of a test's own, in which system packages are asked for.
func systemHome(t *testing.T) (home string) {
	t.Helper()
	cfg, err := testneeds.Config()
	if err != nil {
		t.Fatal(err)
	}
	home = emptyHome(t, cfg)
	for above := home; above != os.TempDir() && above != "/"; above = filepath.Dir(above) { // sandboxes of other users pass through
		if err := os.Chmod(above, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

func withSystem(t *testing.T, home, packages string, args ...string) *command {
	t.Helper()
	c := newCommand(t, args...)
	c.bound = 3 * patience
	c.setenv("COVE_HOME="+home, "COVE_SESSIONS="+filepath.Join(home, "sessions"), "COVE_PACKAGES_SYSTEM="+packages)
	return c
}

// layersOf are the layers of system packages, whole and unfinished ones.
func layersOf(t *testing.T, home string) []string {
	return slices.DeleteFunc(folders(t, filepath.Join(home, "system")), func(n string) bool { return n == ".lock" })
}

// drawn uses programs of the packages by the libraries that start them, and by themselves.
const drawn = `import subprocess, graphviz, pdf2image, os
print(graphviz.Source("digraph{a->b}").render(format="png"), open("Source.gv.png", "rb").read(4))
subprocess.run(["dot", "-Tpdf", "-o", "g.pdf", "Source.gv"], check=True)
print(len(pdf2image.convert_from_path("g.pdf")), os.getuid() > 0)
print(subprocess.getoutput("dot -V"), subprocess.getoutput("touch /usr/bin/x; ls -d /usr/bin/env"))`

// TestSystemPackages has apt install packages once for all sandboxes: for two commands at once, for later ones, for sessions with a root and for those that were saved.
func TestSystemPackages(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	const packages = "graphviz poppler-utils"
	home := systemHome(t)
	withSystem(t, home, "", "run", "--session", "before", "-c", "import shutil; x = 1").run().ended(t, 0)
	results := make([]result, 2)
	var both sync.WaitGroup
	for i := range results {
		both.Go(func() { results[i] = withSystem(t, home, packages, "run", "-c", drawn).run() })
	}
	both.Wait()
	installed := 0
	for _, r := range results {
		if r.code != 0 || !strings.HasPrefix(r.stdout, "Source.gv.png b'\\x89PNG'\n1 True\ndot - graphviz version") || !strings.Contains(r.stdout, "Permission denied\n/usr/bin/env") {
			t.Errorf("%+v", r)
		}
		installed += strings.Count(r.stderr, "Installing system packages")
	}
	if installed != 1 {
		t.Errorf("the packages were installed %d times: %+v", installed, results)
	}
	if layers := layersOf(t, home); len(layers) != 1 {
		t.Errorf("there are the layers %q", layers)
	}
	r := withSystem(t, home, packages, "run", "--session", "lab", "-c", "import shutil; x = shutil.which('dot'); x").run()
	if r.stdout != "'/usr/bin/dot'\n" || strings.Contains(r.stderr, "Installing") {
		t.Errorf("a session: %+v", r)
	}
	// A session goes on with what it began with.
	for session, want := range map[string]string{"lab": "('/usr/bin/dot', '/usr/bin/dot')\n", "before": "(1, None)\n"} {
		for _, asked := range []string{"", packages} {
			if r := withSystem(t, home, asked, "run", "--session", session, "-c", "(x, shutil.which('dot'))").run(); r.stdout != want {
				t.Errorf("%s, with %q asked for: %+v", session, asked, r)
			}
		}
	}
	r = withSystem(t, home, packages, "session", "exec", "box", "--root", "--", "sh", "-c", "dpkg -s graphviz | grep Status; dot -V; echo x >/usr/bin/new && ls /usr/bin/new").run()
	if r.code != 0 || !strings.Contains(r.stdout, "install ok installed") || !strings.Contains(r.stdout, "/usr/bin/new") {
		t.Errorf("a session with a root: %+v", r)
	}
	if r = withSystem(t, home, packages, "doctor").run(); !strings.Contains(r.stdout, "every sandbox has graphviz, poppler-utils") {
		t.Errorf("the doctor: %+v", r)
	}
	s := startServer(t, "", testKey(t), "COVE_HOME="+home, "COVE_PACKAGES_SYSTEM="+packages)
	var made api.Session
	s.must(http.MethodPost, "/api/v1/sessions", map[string]any{}, &made)
	for range 2 {
		if got := s.says(made.ID, "import shutil; print(shutil.which('dot'))"); got != "/usr/bin/dot\n" {
			t.Errorf("a session of a server has %q", got)
		}
		s.must(http.MethodPost, "/api/v1/sessions/"+made.ID+"/pause", nil, nil)
	}
	if r = withSystem(t, home, "", "run", "-c", "import shutil; shutil.which('dot')").run(); strings.Contains(r.stdout, "/usr/bin/dot") {
		t.Errorf("without the setting: %+v", r)
	}
}

// TestSystemPackageUnknown has a command and a server end with the name of a package that there is not, and leave nothing behind.
func TestSystemPackageUnknown(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	home := systemHome(t)
	for _, args := range [][]string{{"run", "-c", "1"}, {"serve", "--listen", "127.0.0.1:0"}} {
		r := withSystem(t, home, "graphviz, no-such-package-here", args...).run()
		if r.code == 0 || r.stdout != "" && args[0] == "run" || !strings.Contains(r.stderr, "there is no system package no-such-package-here") || !strings.Contains(r.stderr, "packages.system") {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if layers := layersOf(t, home); len(layers) > 0 {
		t.Errorf("left are %q", layers)
	}
	if r := withSystem(t, home, "-oDebug=1", "run", "-c", "1").run(); r.code == 0 || !strings.Contains(r.stderr, "is no name of a Debian package") {
		t.Errorf("an option: %+v", r)
	}
}

// TestSystemPackagesRenewed has a session go on with its files and variables beside the present packages, when those that it was saved with were installed beside other libraries of the machine.
func TestSystemPackagesRenewed(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	const packages = "cowsay"
	home := systemHome(t)
	withSystem(t, home, packages, "run", "--session", "lab", "-c", "x = 41; _ = open('kept', 'w').write('kept')").run().ended(t, 0)
	layers := layersOf(t, home)
	if len(layers) != 1 {
		t.Fatalf("there are the layers %q", layers)
	}
	// The layer becomes one that was made on the machine as it was, which is named otherwise.
	former := strings.Repeat("f", len(layers[0]))
	if err := os.Rename(filepath.Join(home, "system", layers[0]), filepath.Join(home, "system", former)); err != nil {
		t.Fatal(err)
	}
	changed := 0
	for _, pattern := range []string{"sessions/lab/session.json", "sessions/lab/snapshots/*/manifest.json", "system/" + former + "/layer.json"} {
		found, err := filepath.Glob(filepath.Join(home, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			said := strings.ReplaceAll(strings.ReplaceAll(string(text), layers[0], former), `"libraries": "`, `"libraries": "other `)
			if err := os.WriteFile(path, []byte(said), 0o600); err != nil {
				t.Fatal(err)
			}
			changed++
		}
	}
	if changed != 3 {
		t.Fatalf("%d files say which layer it is", changed)
	}
	r := withSystem(t, home, packages, "run", "--session", "lab", "-c", "import os; (x + 1, open('kept').read(), os.path.exists('/usr/games/cowsay'))").run()
	if r.code != 0 || r.stdout != "(42, 'kept', True)\n" || !strings.Contains(r.stderr, "starts anew with its 1 files") {
		t.Errorf("%+v", r)
	}
	if again := layersOf(t, home); len(again) != 2 {
		t.Errorf("there are the layers %q", again)
	}
	if r := withSystem(t, home, packages, "run", "--session", "lab", "-c", "x").run(); r.stdout != "41\n" || strings.Contains(r.stderr, "anew") {
		t.Errorf("later: %+v", r)
	}
}
