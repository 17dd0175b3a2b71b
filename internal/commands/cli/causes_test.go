package cli_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/python/pyenv"
	"cove/internal/server/hub"
)

// TestCausesAreInWords has what Go's packages say of an error reach the user: without their words, and with what to do.
func TestCausesAreInWords(t *testing.T) {
	t.Parallel()
	full := &fs.PathError{Op: "write", Path: "/data/layers/tmp/7/wheel.whl", Err: syscall.ENOSPC}
	for want, err := range map[string]error{
		"cove: cannot use the folder /x: permission denied\n  choose a place that you may read and write": problem.New(problem.OutUnusable, "cannot use the folder /x").
			WithCause(&fs.PathError{Op: "stat", Path: "/x", Err: syscall.EACCES}),
		"cove: find the tools: /x: read-only file system\n  choose a place that can be written to\n":                                        fmt.Errorf("find the tools: %w", &fs.PathError{Op: "open", Path: "/x", Err: syscall.EROFS}),
		"cove: there is not enough free disk space at /data\n  have 2.5 GB free there\n":                                                    problem.New(problem.DiskFull, "there is not enough free disk space at /data").WithHint("have 2.5 GB free there").WithCause(full),
		"cove: there is no room left on the disk (make it: /data/layers/tmp/7/wheel.whl: no space left on device)\n  make room on the disk": fmt.Errorf("make it: %w", full),
	} {
		r := run(t, &scripted{}, func(_ string, p *cli.Program) {
			p.Open = func(context.Context, config.Config, io.Writer) (hub.Live, error) { return nil, err }
		}, "run", "-c", "1")
		if r.code != 125 || !strings.HasPrefix(r.err, want) {
			t.Errorf("exit code %d:\n%s\nwant\n%s", r.code, r.err, want)
		}
	}
}

// TestPlacesAreOfFiles wants no other place to be advised where it was a port, a socket or a device that was not permitted.
func TestPlacesAreOfFiles(t *testing.T) {
	t.Parallel()
	denied := os.NewSyscallError("bind", syscall.EACCES)
	for name, test := range map[string]struct {
		err    error
		advise bool
	}{
		"a file":          {&fs.PathError{Op: "open", Path: "/x/no", Err: syscall.EACCES}, true},
		"a folder":        {&fs.PathError{Op: "mkdir", Path: "/", Err: syscall.EACCES}, true},
		"renaming":        {&os.LinkError{Op: "rename", Old: "/x/a", New: "/x/b", Err: syscall.EPERM}, true},
		"a port":          {&net.OpError{Op: "listen", Net: "tcp", Err: denied}, false},
		"a socket":        {&net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)}, false},
		"a device":        {&fs.PathError{Op: "open", Path: "/dev/kvm", Err: syscall.EACCES}, false},
		"no file at all":  {fmt.Errorf("make namespaces: %w", syscall.EPERM), false},
		"a socket's path": {&fs.PathError{Op: "chmod", Path: socketIn(t), Err: syscall.EPERM}, false},
	} {
		r := run(t, &scripted{}, func(_ string, p *cli.Program) {
			p.Open = func(context.Context, config.Config, io.Writer) (hub.Live, error) { return nil, test.err }
		}, "run", "-c", "1")
		if advised := strings.Contains(r.err, "choose a place"); advised != test.advise || r.code != 125 {
			t.Errorf("%s: exit code %d: %s", name, r.code, r.err)
		}
	}
}

// socketIn is the path of a socket of the test's own.
func socketIn(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return path
}

// TestOutFoldersThatCannotBeUsed wants to know why, and what to do, without the names of files that nobody has seen.
func TestOutFoldersThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		r := run(t, made(ok()), nil, "run", "-c", "x", "-o", "/proc/x/y")
		if r.code != 125 || !strings.Contains(r.err, "no such file or directory") || strings.Contains(r.err, "mkdir") || !strings.Contains(r.err, "choose another folder with --out") {
			t.Errorf("exit code %d: %s", r.code, r.err)
		}
		return
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{dir, dir + "/x"} {
		r := run(t, made(ok()), nil, "run", "-c", "x", "-o", out)
		if r.code != 125 || !strings.Contains(r.err, "permission denied") || strings.Contains(r.err, "mkdir") || strings.Contains(r.err, "partial") || !strings.Contains(r.err, "choose another folder with --out") {
			t.Errorf("exit code %d: %s", r.code, r.err)
		}
	}
}

// TestTheRoomThatIsNeeded wants one size wherever it is told how much disk the Python environment needs.
func TestTheRoomThatIsNeeded(t *testing.T) {
	t.Parallel()
	_, room := pyenv.Room(pyenv.Standard)
	for _, name := range []string{"README.md", "README.zh-CN.md"} {
		text, err := os.ReadFile("../../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), room) {
			t.Errorf("%s does not say %s", name, room)
		}
	}
	cfg := config.Default(func(string) string { return "" })
	cfg.Folders.Data = t.TempDir()
	if got, want := cli.RoomDetail(cfg, 1_200_000_000), cfg.Folders.Data+", 1.2 GB free: the standard environment needs "+room; got != want {
		t.Errorf("the doctor says %q, want %q", got, want)
	}
	if hint := pyenv.RoomHint(pyenv.Standard); !strings.Contains(hint, room) || !strings.Contains(hint, "COVE_HOME") || !strings.Contains(hint, "--packages minimal") {
		t.Errorf("the hint is %q", hint)
	}
}
