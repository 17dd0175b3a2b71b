package pyenv

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
)

// findUV returns the path of a uv that is new enough: from the PATH, from an earlier
// download, or fetched now with the pip of the Python in use.
func (b *builder) findUV(ctx context.Context) (string, error) {
	path, err := presentUV(ctx, b.tools)
	if path != "" || err != nil {
		return path, err
	}
	if b.wheels != "" {
		err = b.unpackUV()
	} else {
		err = b.fetchUV(ctx)
	}
	if err != nil {
		return "", err
	}
	return ownUV(b.tools), nil
}

func ownUV(tools string) string { return filepath.Join(tools, "uv", "bin", "uv") }

// presentUV returns the path of a uv that is there and new enough, or "".
func presentUV(ctx context.Context, tools string) (string, error) {
	for _, path := range append(onPath("uv"), ownUV(tools)) {
		out, err := exec.CommandContext(ctx, path, "--version").Output()
		if err == nil && newEnough(string(out)) {
			return path, nil
		}
	}
	if ctx.Err() != nil {
		return "", canceled(ctx)
	}
	return "", nil
}

// UV returns the path of a uv: from the PATH, from an earlier download below the data folder, or fetched now, which progress is told of. Processes that
// need it at the same time fetch it once.
//
// Problems: python_not_found, uv_not_found, disk_full, package_index_unreachable, package_unavailable, package_hash_mismatch, data_folder_unusable, canceled.
func UV(ctx context.Context, data string, progress io.Writer) (string, error) {
	if progress == nil {
		progress = io.Discard
	}
	tools := filepath.Join(data, "tools")
	path, err := presentUV(ctx, tools)
	if path != "" || err != nil {
		return path, err
	}
	r, err := newRecipe(Minimal)
	if err != nil {
		return "", err
	}
	python, err := FindPython(ctx, Minimal, "")
	if err != nil {
		return "", err
	}
	s := shelf{dir: filepath.Join(data, "pyenv"), recipe: r}
	if err := s.make(data); err != nil {
		return "", err
	}
	lock, err := s.lock(ctx, progress)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	b := builder{shelf: s, python: python, tools: tools, lock: lock, progress: progress}
	return b.findUV(ctx)
}

// newEnough reads the answer of uv --version, "uv 0.5.1 (...)". Since 0.5 uv has every option that we use.
func newEnough(answer string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(answer, "uv %d.%d", &major, &minor); n != 2 {
		return false
	}
	return major > 0 || minor >= 5
}

// fetchUV installs uv below the tools folder. The caller holds the lock.
func (b *builder) fetchUV(ctx context.Context) error {
	b.say("Fetching uv, the installer (about 25 MB).")
	if err := os.MkdirAll(b.tools, 0o755); err != nil {
		return fmt.Errorf("make tools folder: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(b.tools, tmpPrefix+"*"))
	if err != nil {
		return fmt.Errorf("look for leftovers: %w", err)
	}
	for _, path := range left {
		_ = os.RemoveAll(path) // a leftover costs space, not correctness
	}
	tmp, err := os.MkdirTemp(b.tools, tmpPrefix)
	if err != nil {
		return fmt.Errorf("make tools folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	lock := filepath.Join(tmp, "uv.txt")
	if err := os.WriteFile(lock, asset("locks/uv.txt"), 0o644); err != nil {
		return fmt.Errorf("write the lock of uv: %w", err)
	}
	python, err := b.pythonWithPip(ctx, tmp)
	if err != nil {
		return err
	}
	target := filepath.Join(tmp, "uv")
	_, err = b.run(ctx, command{
		name: python,
		args: []string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-script-location", "--no-input",
			"--no-compile", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--target", target, "--requirement", lock},
		env: append(os.Environ(), "PIP_ROOT_USER_ACTION=ignore", "PIP_USER=0", "PYTHONPATH="),
	})
	if err != nil {
		return err
	}
	final := filepath.Join(b.tools, "uv")
	if err := os.RemoveAll(final); err != nil {
		return fmt.Errorf("replace uv: %w", err)
	}
	if err := os.Chmod(target, 0o755); err != nil {
		return fmt.Errorf("install uv: %w", err)
	}
	if err := os.Rename(target, final); err != nil {
		return fmt.Errorf("install uv: %w", err)
	}
	return nil
}

// pythonWithPip returns a Python that has pip: the one in use, or a throw-away virtual environment of it below tmp.
func (b *builder) pythonWithPip(ctx context.Context, tmp string) (string, error) {
	if exec.CommandContext(ctx, b.python.Path, "-m", "pip", "--version").Run() == nil {
		return b.python.Path, nil
	}
	dir := filepath.Join(tmp, "venv")
	out, err := exec.CommandContext(ctx, b.python.Path, "-m", "venv", dir).CombinedOutput()
	if err != nil {
		if ctx.Err() != nil {
			return "", canceled(ctx)
		}
		return "", problem.New(problem.UVNotFound, "there is no uv on the PATH, and the Python at "+b.python.Path+" has no pip to fetch it with").
			WithHint("install uv, or pip for this Python (Debian, Ubuntu: apt install python3-venv)").
			WithCause(fmt.Errorf("python -m venv: %w: %s", err, lastLines(string(out), 3)))
	}
	return filepath.Join(dir, "bin", "python"), nil
}

// command is a program to run to its end.
type command struct {
	name   string
	args   []string
	env    []string
	dir    string
	follow func(line string) // told each line of stderr as it appears; may be nil
}

// run runs c and returns its stdout. The program ends with this process, however that
// ends; until then it holds the shelf's lock too, so that nobody clears away what it
// still writes to. A failure is a problem that its stderr explains.
func (b *builder) run(ctx context.Context, c command) (string, error) {
	var stdout bytes.Buffer
	stderr := &lines{follow: c.follow}
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.env, c.dir, &stdout, stderr
	cmd.ExtraFiles = []*os.File{b.lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second

	// The parent-death signal is tied to the thread that starts the child, so that thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if err == nil {
		return stdout.String(), nil
	}
	if ctx.Err() != nil {
		return "", canceled(ctx)
	}
	return "", b.explain(filepath.Base(c.name), err, stderr.text.String())
}

// explain turns the stderr of a failed installation into a problem.
func (b *builder) explain(name string, err error, stderr string) error {
	cause := fmt.Errorf("%s: %w\n%s", name, err, lastLines(stderr, 12))
	low := strings.ToLower(stderr)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(low, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("no space left", "os error 28", "disk quota exceeded"):
		return diskFull(b.shelf.dir, b.shelf.recipe.set).WithCause(cause)
	case has("hash mismatch", "do not match the hashes", "these packages do not match"):
		return problem.New(problem.PackageHashMismatch, "a downloaded package is not the one that cove was built for (its hash differs)").
			WithHint("the package index or a proxy may be serving something else: use another index, or clear the cache with `uv cache clean`, and run again").WithCause(cause)
	case has("certificate", "invalid peer", "unknownissuer"):
		return problem.New(problem.PackageIndexUnreachable, "the package index could not be trusted (certificate)").
			WithHint("if your network has its own certificate authority, set SSL_CERT_FILE to its certificates, and run again").WithCause(cause)
	case has("error sending request", "failed to fetch", "request failed", "dns error", "connection", "timed out", "network", "401 ", "403 ",
		"407 ", "newconnectionerror", "temporary failure", "failed to download", "nameresolution", "unreachable"):
		return problem.New(problem.PackageIndexUnreachable, "the package index could not be reached").
			WithHint("check the network; behind a proxy set HTTPS_PROXY; to use a mirror set UV_DEFAULT_INDEX (or pip's index-url); then run again. Without a network: cove bundle install FILE").WithCause(cause)
	case has("no solution found", "no matching distribution", "not found in the package registry", "no usable wheels", "no matching platform"):
		return problem.New(problem.PackageUnavailable, "the package index does not have a package that cove needs").
			WithHint("use a complete and current index (UV_DEFAULT_INDEX or pip's index-url), or another Python (COVE_PYTHON), and run again").WithCause(cause)
	}
	return problem.New(problem.EnvironmentBuildFailed, "the Python environment could not be built").
		WithHint("no incomplete files were kept: put right what the lines from " + name + " say, and run the command again").WithCause(cause)
}

func diskFull(dir string, set Set) *problem.Error {
	return problem.New(problem.DiskFull, "there is not enough free disk space at "+dir+" for the "+string(set)+" environment").WithHint(RoomHint(set))
}

// RoomHint says what to do where the environment of a set has no room.
func RoomHint(set Set) string {
	_, room := Room(set)
	if set == Minimal {
		return fmt.Sprintf("have %s free there, or set COVE_HOME to a folder on a larger disk", room)
	}
	return fmt.Sprintf("have %s free there, set COVE_HOME to a folder on a larger disk, or use --packages minimal", room)
}

func lastLines(text string, n int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
