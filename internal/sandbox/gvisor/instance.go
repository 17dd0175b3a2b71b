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

	"cove/internal/sandbox"
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
		_, root, ok := strings.Cut(cmdline, "\x00--root="+state+"/")
		if !ok {
			continue
		}
		id, _, _ := strings.Cut(root, "/")
		// A process is born after its folder and dies before it.
		if _, err := os.Lstat(filepath.Join(state, id)); errors.Is(err, fs.ErrNotExist) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// runscProcesses returns the command lines of the machine's runsc processes, arguments ended by NUL, by process id.
func runscProcesses() map[int]string {
	found := map[int]string{}
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil || !strings.HasPrefix(string(b), "runsc") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil {
			found[pid] = string(b)
		}
	}
	return found
}
