package gvisor

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"cove/internal/machine/sandbox"
)

// instance is a sandbox's directory on the host. It holds the OCI bundle, the socket directory, runsc's own state
// and the file behind the workspace.
type instance struct{ *sandbox.Folder }

func createInstance(state, id string) (*instance, error) {
	f, err := sandbox.CreateFolder(state, id)
	if err != nil {
		return nil, err
	}
	for _, d := range []string{"socket", "workspace", "runsc"} {
		if err := os.Mkdir(f.Join(d), 0o700); err != nil {
			return nil, errors.Join(err, f.Remove())
		}
	}
	return &instance{f}, nil
}

// listen opens the socket that the guest connects to. It goes through /proc/self/fd because
// a socket path is limited to 107 bytes and data folders are not.
func (in *instance) listen() (*net.UnixListener, error) {
	dir, err := os.Open(in.Join("socket"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	name := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketName)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open the guest's socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	return l, nil
}

// killAll kills the processes that belong to a dead instance: those that name its directory on their command line.
func killAll(in *instance) {
	for pid, cmdline := range runscProcesses() {
		if strings.Contains(cmdline, in.Path+"/") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// killOrphans kills the processes of sandboxes in the folder state whose own folder is gone, as after somebody has deleted it. Those of a dead owner end by
// themselves, and with their folder.
func killOrphans(state string) {
	for pid, cmdline := range runscProcesses() {
		_, root, _ := strings.Cut(cmdline, "\x00--root=")
		below, ok := strings.CutPrefix(strings.TrimPrefix(root, hostFolder), state+"/") // the warden may have a root of its own
		if !ok {
			continue
		}
		id, _, _ := strings.Cut(below, "/")
		// A process is born after its folder and dies before it.
		if _, err := os.Lstat(filepath.Join(state, id)); errors.Is(err, fs.ErrNotExist) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// namesIn lists what a folder of the kernel's has. filepath.Glob would list each folder in it as well, of which a machine has hundreds.
func namesIn(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	names, _ := f.Readdirnames(-1) // what was read before an error counts
	return names
}

// runscProcesses returns the command lines of the machine's runsc processes, arguments ended by NUL, by process id.
func runscProcesses() map[int]string {
	found := map[int]string{}
	for _, name := range namesIn("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if b, err := os.ReadFile(filepath.Join("/proc", name, "cmdline")); err == nil && strings.HasPrefix(string(b), "runsc") {
			found[pid] = string(b)
		}
	}
	return found
}
