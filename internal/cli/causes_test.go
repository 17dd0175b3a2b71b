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
	"cove/internal/install"
	"cove/internal/kernel"
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

// TestInstallationsAreSaidOnce wants of %pip install alone what cove says: not what pip finds there besides.
func TestInstallationsAreSaidOnce(t *testing.T) {
	t.Parallel()
	pip := func(text string) kernel.Event { return kernel.Stream{Name: "stdout", Data: []byte(text)} }
	both := []kernel.Event{installed(cowsay()), pip("Requirement already satisfied: cowsay in /x (6.1)\nRequirement already satisfied: numpy in /x (2.1)\n"), ok()}
	refused := cowsay()
	refused.Installed, refused.Refused = nil, append(refused.Refused, install.Refusal{Name: "cowsay", Code: "package_unknown", Reason: "there is none"})
	for code, test := range map[string]struct {
		events    []kernel.Event
		out, errs string
	}{
		"%pip install cowsay numpy":              {both, "Requirement already satisfied: numpy in /x (2.1)\n", "installed cowsay 6.1"},
		"!pip install cowsay numpy":              {both, "Requirement already satisfied: numpy in /x (2.1)\n", "installed cowsay 6.1"},
		"print('Requirement already satisfied')": {both, "Requirement already satisfied: cowsay in /x (6.1)\nRequirement already satisfied: numpy in /x (2.1)\n", "installed cowsay 6.1"},
		"%pip install cowsay":                    {[]kernel.Event{installed(refused), kernel.Stream{Name: "stderr", Data: []byte("ERROR: No matching distribution found for cowsay\nand what to do")}, ok()}, "", "there is none"},
	} {
		r := run(t, &scripted{events: test.events}, nil, "run", "-c", code)
		if r.out != test.out || !strings.Contains(r.err, test.errs) || strings.Contains(r.err, "No matching distribution") {
			t.Errorf("%s: %q, %q", code, r.out, r.err)
		}
	}
}
