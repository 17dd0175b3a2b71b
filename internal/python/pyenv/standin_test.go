package pyenv_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/python/pyenv"
)

// testStandIn runs what programs run of pip.
func testStandIn(t *testing.T, e *pyenv.Environment) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.txt": "# what is needed\nipython>=1  # a comment\ntraitlets \\\n  >= 5 --hash=sha256:00\n--only-binary :all:\n-r more.txt\n",
		"more.txt": "pygments\n",
		"bad.txt":  "ipython\nabsent-one\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bin, ipython := filepath.Join(e.Dir, "bin"), e.Packages["ipython"]
	for _, c := range []struct {
		args string // with @ for the environment's bin
		code int
		out  string // must be in what is printed, each line of it
	}{
		{"@pip install ipython", 0, "Requirement already satisfied: ipython in \n(" + ipython + ")"},
		{"@pip3 install -U --no-cache-dir --index-url elsewhere IPython[notebook]>=1,!=2.* traitlets", 0, "satisfied: IPython[notebook]>=1,!=2.* in\nsatisfied: traitlets in"},
		{"@python -m pip -q install ipython", 0, ""},
		{"@pip install -q ipython", 0, ""},
		{"@pip install --upgrade pip", 0, "already satisfied: pip"},
		{"@pip install ipython absent-one", 1, "already satisfied: ipython\nNo matching distribution found for absent-one\n%pip install NAME"},
		{"@pip install ipython<2", 1, "ipython is installed as " + ipython + ", which is not ipython<2\nimport the package"},
		{"@pip install -r good.txt", 0, "ipython>=1\ntraitlets\npygments"},
		{"@pip install -rgood.txt --requirement=more.txt", 0, "pygments"},
		{"@pip install -r bad.txt", 1, "found for absent-one"},
		{"@pip install -r nowhere.txt", 1, "Could not open requirements file\nnowhere.txt"},
		{"@pip install git+ssh://host/x.git", 1, "only packages of the index"},
		{"@pip install -e .", 1, "only packages of the index"},
		{"@pip install ./x-1-py3-none-any.whl", 1, "only packages of the index"},
		{"@pip install a_b==", 1, "Invalid requirement"},
		{"@pip install", 1, "at least one requirement"},
		{"@pip list", 0, "Package\nVersion\nipython\n" + ipython},
		{"@pip list --format=json", 0, `{"name": "ipython", "version": "` + ipython + `"}`},
		{"@pip list --format freeze", 0, "ipython==" + ipython},
		{"@pip list --outdated", 1, "not known inside the sandbox"},
		{"@pip freeze", 0, "ipython==" + ipython},
		{"@pip show IPython", 0, "Name: ipython\nVersion: " + ipython + "\nSummary: \nRequires: \ntraitlets\nRequired-by: "},
		{"@pip show traitlets", 0, "Required-by: ipython"},
		{"@pip show absent-one", 1, "Package(s) not found: absent-one"},
		{"@pip --version", 0, "pip \n(python 3."},
		{"@pip help", 0, "Usage: pip"},
		{"@pip", 0, "Usage: pip"},
		{"@pip uninstall -y ipython", 1, "'uninstall' is not available here"},
		{"@pip download ipython", 1, "'download' is not available here"},
		{"@uv pip install --system ipython", 0, "already satisfied: ipython"},
		{"@uv add ipython", 0, "already satisfied: ipython"},
		{"@uv --version", 0, "+cove"},
		{"@uv sync", 1, "'uv sync' is not available here"},
	} {
		fields := strings.Fields(strings.ReplaceAll(c.args, "@", bin+"/"))
		cmd := exec.Command(fields[0], fields[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code || err != nil && code < 0 {
			t.Errorf("%s: exit status %d, want %d: %s", c.args, code, c.code, out)
		}
		if c.out == "" && len(out) > 0 {
			t.Errorf("%s printed %s", c.args, out)
		}
		for line := range strings.SplitSeq(c.out, "\n") {
			if !strings.Contains(string(out), line) {
				t.Errorf("%s printed %s, without %q", c.args, out, line)
			}
		}
	}
	code := `import pip, pip._internal; print(pip.main(["-q", "install", "ipython"]), pip._internal.main(["install", "-q", "x-y-z"]), pip.__version__ > "25")`
	if out := python(t, e.Python, code); !strings.HasSuffix(out, "0 1 True") {
		t.Errorf("called from a program: %s", out)
	}
	if out, err := exec.Command("/bin/sh", "-c", bin+"/pip list | head -n 1").CombinedOutput(); err != nil || strings.Contains(string(out), "Traceback") {
		t.Errorf("into a pipe that closes: %v, %s", err, out)
	}
	if e.Packages["pip"] != "" {
		t.Error("the stand-in counts as a distribution")
	}
}

// testVersions compares versions.
func testVersions(t *testing.T, e *pyenv.Environment) {
	for _, c := range []struct{ version, yes, no string }{
		{"1.9.0", "<2 >=1.9 ==1.9 ~=1.8 >1.8.9,<1.10 !=1.8.* ==1.* <=1.9.0 ===1.9.0", ">=1.10 >1.9 ~=1.8.1 ==1.90 !=1.9 ==1.9.1.* <1.9"},
		{"2.0.0rc1", ">=1.9 <2.0.1 >=2.0.0rc0 ==2.*", ">=2 <2.0.0"},
		{"2.0.post1", ">=2 <3 ~=2.0", "<2 >2"},
		{"10.0", ">9 ==10 !=1.* ~=10.0", "<9 ==1.*"},
		{"1!2.0", ">3", "<3"},
		{"1.0+cu12", "==1.0 ~=1.0", "!=1.0"},
		{"2024.1", ">=2023.4,<2025", "(<2024)"},
	} {
		code := `import sys; from pip.requirement import Requirement
print(*[s for s in sys.stdin.read().split() if Requirement("x " + s).allows("` + c.version + `")])`
		cmd := exec.Command(e.Python, "-I", "-c", code)
		cmd.Stdin = strings.NewReader(c.yes + " " + c.no)
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != strings.TrimSpace(c.yes) {
			t.Errorf("%s satisfies %s, not %s (%v)", c.version, got, c.yes, err)
		}
	}
}

// testLayers starts Pythons as a kernel's children, with folders that try to do more than provide packages.
func testLayers(t *testing.T, e *pyenv.Environment) {
	first, last := t.TempDir(), t.TempDir()
	for _, dir := range []string{first, last} {
		for name, text := range map[string]string{
			"traitlets.py": "", "added.py": "", "evil.pth": "import os; os._exit(9)", "json.py": "raise SystemExit(8)",
			"sitecustomize.py": "raise SystemExit(7)", "usercustomize.py": "raise SystemExit(6)", "site.py": "raise SystemExit(5)",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	code := `import os, sys, site, json, traitlets, added
print(os.path.dirname(traitlets.__file__) == sys.argv[1], os.path.dirname(added.__file__) in sys.argv[1:3])
print(sys.path.index(sys.argv[2]) - len(sys.path) if sys.argv[2] in sys.path else None, site.execsitecustomize.__name__, "cove_layers" in sys.modules)`
	for _, c := range []struct{ first, last, want string }{
		{"", last, "False True\n-1 execsitecustomize True"},
		{first, "", "True True\nNone execsitecustomize True"},
		{first, last, "True True\n-1 execsitecustomize True"},
		{first, "relative:" + last + "::" + last, "True True\n-2 execsitecustomize True"},
	} {
		cmd := exec.Command(e.Python, "-c", code, first, last)
		cmd.Env = []string{"COVE_LAYERS_FIRST=" + c.first, "COVE_LAYERS=" + c.last}
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("with %q and %q: %v\n%s\nwant\n%s", c.first, c.last, err, got, c.want)
		}
	}
	if out := python(t, e.Python, "import sys; print([m for m in sys.modules if 'cove' in m])"); out != "[]" {
		t.Errorf("without packages a Python loads %s", out)
	}
	venv := filepath.Join(t.TempDir(), "venv")
	cmd := exec.Command(e.Python, "-m", "venv", "--without-pip", venv)
	cmd.Env = []string{"COVE_LAYERS_FIRST=" + first, "COVE_LAYERS=" + last}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("make a virtual environment: %v %s", err, out)
	}
}
