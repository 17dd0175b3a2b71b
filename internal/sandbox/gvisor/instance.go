package gvisor

import (
	"errors"
	"fmt"
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
	for _, d := range []string{"rootfs", "socket", "workspace", "runsc"} {
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
	procs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range procs {
		b, err := os.ReadFile(p)
		if err != nil || !strings.HasPrefix(string(b), "runsc") || !strings.Contains(string(b), in.Path+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
