package cli_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"cove/internal/cli"
	"cove/internal/config"
	"cove/internal/hub"
	"cove/internal/problem"
	"cove/internal/pyenv"
)

// TestCausesAreInWords has what Go's packages say of an error reach the user: without their words, and with what to do.
func TestCausesAreInWords(t *testing.T) {
	t.Parallel()
	full := &fs.PathError{Op: "write", Path: "/data/layers/tmp/7/wheel.whl", Err: syscall.ENOSPC}
	for want, err := range map[string]error{
		"cove: cannot use the folder /x: permission denied\n  choose a place that you may read and write": problem.New(problem.OutUnusable, "cannot use the folder /x").
			WithCause(&fs.PathError{Op: "stat", Path: "/x", Err: syscall.EACCES}),
		"cove: find the tools: /x: read-only file system\n  choose a place that can be written to\n":                                         fmt.Errorf("find the tools: %w", &fs.PathError{Op: "open", Path: "/x", Err: syscall.EROFS}),
		"cove: there is not enough free disk space at /data\n  have 2.5 GB free there\n":                                                     problem.New(problem.DiskFull, "there is not enough free disk space at /data").WithHint("have 2.5 GB free there").WithCause(full),
		"cove: there is no room left on the disk: (make it: /data/layers/tmp/7/wheel.whl: no space left on device)\n  make room on the disk": fmt.Errorf("make it: %w", full),
	} {
		r := run(t, &scripted{}, func(_ string, p *cli.Program) {
			p.Open = func(context.Context, config.Config, io.Writer) (hub.Live, error) { return nil, err }
		}, "run", "-c", "1")
		if r.code != 125 || !strings.HasPrefix(r.err, want) {
			t.Errorf("exit code %d:\n%s\nwant\n%s", r.code, r.err, want)
		}
	}
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
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), room) {
			t.Errorf("%s does not say %s", name, room)
		}
	}
	if hint := pyenv.RoomHint(pyenv.Standard); !strings.Contains(hint, room) || !strings.Contains(hint, "COVE_HOME") || !strings.Contains(hint, "--packages minimal") {
		t.Errorf("the hint is %q", hint)
	}
}
