package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cove/internal/machine/image/imagetest"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/python/pyenv"
	"cove/internal/testkit/testneeds"
)

// inImage is a command that runs code in an image. What follows the code are further arguments.
func inImage(t *testing.T, reference, code string, more ...string) *command {
	t.Helper()
	return newCommand(t, append([]string{"run", "-q", "--image", reference, "-c", code}, more...)...)
}

// ends runs a command that ends with a code, and returns what it wrote.
func ends(t *testing.T, c *command, code int) result {
	t.Helper()
	r := c.run()
	r.ended(t, code)
	return r
}

// removeImage removes what a test has unpacked.
func removeImage(t *testing.T, reference string) {
	t.Helper()
	t.Cleanup(func() { // a test's context has ended by now
		rm := exec.Command(sandboxtest.Binary(t), "image", "rm", "--force", reference)
		if out, err := rm.CombinedOutput(); err != nil && !strings.Contains(string(out), "there is no image") {
			t.Errorf("remove the image: %v: %s", err, out)
		}
	})
}

// TestImageWithoutPython runs code in an image with a shell alone: in cove's Python, whose programs are the image's.
func TestImageWithoutPython(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	reference := imagetest.Layout(t, imagetest.Contents{
		Programs: map[string]string{"/bin/sh": "/bin/sh", "/usr/bin/cat": "/bin/cat"}, Files: map[string]string{"/app/mark": "from the image\n"},
		Config: v1.Config{Env: []string{"PATH=/usr/bin:/bin", "GREETING=hello", "PYTHONPATH=/nowhere", "HOME=/app"}, WorkingDir: "/app"},
	})
	removeImage(t, reference)
	const code = `import os, subprocess, sys, multiprocessing as mp
print(os.getcwd(), os.environ["GREETING"], os.environ["HOME"], os.path.exists("/usr/bin/python3"), sys.prefix)
print(subprocess.getoutput("cat /app/mark; echo $0; ls / 2>&1"))
print(subprocess.run([sys.executable, "-c", "import IPython; print(len([1]))"], capture_output=True, text=True).stdout, end="")
print(mp.get_context("spawn").Pool(1).map(abs, [-7]))
`
	const want = "/home/user hello /home/user False /opt/cove/python\nfrom the image\n/bin/sh\n/bin/sh: 1: ls: not found\n1\n[7]\n"
	if got := ends(t, inImage(t, reference, code), 0).stdout; got != want {
		t.Errorf("it says %q, not %q", got, want)
	}
	// A session stays in its image, and another one is refused.
	sessions := t.TempDir()
	in := func(code string, more ...string) *command {
		c := newCommand(t, append([]string{"run", "-q", "--session", "lab", "-c", code}, more...)...)
		c.setenv("COVE_SESSIONS=" + sessions)
		return c
	}
	ends(t, in("x = 42", "--image", reference), 0)
	if got := ends(t, in("print(x, open('/app/mark').read())"), 0).stdout; got != "42 from the image\n\n" {
		t.Errorf("the session says %q", got)
	}
	other := imagetest.Layout(t, imagetest.Contents{Files: map[string]string{"/another": ""}})
	removeImage(t, other)
	if got := ends(t, in("1", "--image", other), 125).stderr; !strings.Contains(got, "did not begin from this image") {
		t.Errorf("another image: %q", got)
	}
	rm := newCommand(t, "image", "rm", reference)
	rm.setenv("COVE_SESSIONS=" + sessions)
	if got := ends(t, rm, 125).stderr; !strings.Contains(got, "a saved session needs the image") {
		t.Errorf("removing it: %q", got)
	}
	ls := ends(t, newCommand(t, "image", "ls", "--json"), 0).stdout
	var rows []struct {
		References []string
		Python     string
	}
	if err := json.Unmarshal([]byte(ls), &rows); err != nil || !strings.Contains(ls, strings.TrimPrefix(reference, "oci:")) {
		t.Errorf("they are listed as %s, %v", ls, err)
	}
	if got := ends(t, newCommand(t, "run", "--engine", "local", "-q", "--image", reference, "-c", "1"), 125).stderr; !strings.Contains(got, "nothing in it can begin from an image") {
		t.Errorf("in the engine local: %q", got)
	}
}

// pythonImage is an image with a Python of this machine, and a module of its own.
func pythonImage(t *testing.T) string {
	t.Helper()
	env := testneeds.Environment(t, pyenv.Minimal)
	short := env.Version[:strings.LastIndexByte(env.Version, '.')]
	library, program := filepath.Join(env.Base, "lib", "python"+short), filepath.Join(env.Base, "bin", "python"+short)
	if _, err := os.Stat(filepath.Join(library, "os.py")); err != nil {
		t.Fatal(err)
	}
	return imagetest.Layout(t, imagetest.Contents{
		Programs: map[string]string{"/bin/sh": "/bin/sh", program: program}, Folders: map[string]string{library: library},
		Files:  map[string]string{library + "/mine.py": "value = 42\n", library + "/decorator.py": "mine = True\n"},
		Links:  map[string]string{filepath.Join(env.Base, "bin", "python3"): "python" + short},
		Config: v1.Config{Env: []string{"PATH=" + filepath.Join(env.Base, "bin") + ":/bin"}},
	})
}

// TestImageWithPython runs code in an image's own Python: with its modules, without those of cove's kernel in what it starts.
func TestImageWithPython(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	reference := pythonImage(t)
	removeImage(t, reference)
	const code = `import mine, os, subprocess, sys
print(os.environ.get("MPLBACKEND"), subprocess.getoutput("python3 -c 'import os; print(os.environ.get(\"MPLBACKEND\"))'"))
print(mine.value, sys.executable == sys._base_executable, sys.path[-1] != "", "COVE_KERNEL_PACKAGES" in os.environ)
print(subprocess.getoutput("python3 -c 'import mine; print(mine.value)'; python3 -c 'import IPython' 2>&1 | grep -c ModuleNotFoundError || true"))
get_ipython() is not None
`
	if got, want := ends(t, inImage(t, reference, code), 0).stdout, "None None\n42 True True False\n42\n/bin/sh: 1: grep: not found\nTrue\n"; got != want {
		t.Errorf("it says %q, not %q", got, want)
	}
	if c := ends(t, inImage(t, reference, "import six_is_not_there"), 1); !strings.Contains(c.stderr, "No module named 'six_is_not_there'") {
		t.Errorf("what is not there: %q", c.stderr)
	}
}

// TestImageInDocker has both kinds of images in containers.
func TestImageInDocker(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	host := sandboxtest.Docker(t)
	bare := imagetest.Layout(t, imagetest.Contents{Files: map[string]string{"/mark": "from the image"}})
	removeImage(t, bare)
	python := pythonImage(t)
	removeImage(t, python)
	for reference, want := range map[string]string{bare: "from the image user False", python: "none user True"} {
		const code = "import os, pwd\nprint(open('/mark').read() if os.path.exists('/mark') else 'none', pwd.getpwuid(os.getuid()).pw_name, os.path.exists('/bin/sh'))"
		c := inImage(t, reference, code, "--engine", "docker")
		c.setenv("DOCKER_HOST="+host, "COVE_DOCKER_RUNTIME=runc")
		if got := strings.TrimSpace(ends(t, c, 0).stdout); got != want {
			t.Errorf("it says %q, not %q", got, want)
		}
	}
}
