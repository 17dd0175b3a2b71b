package gvisor

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// instance is a sandbox's directory on the host. It holds the OCI bundle, the socket directory, runsc's own state
// and the file behind the workspace. An exclusive lock on "owner" says that the owner lives; the kernel
// gives the lock up when it dies, however it dies.
type instance struct {
	id    string
	dir   string
	owner *os.File
}

func (in *instance) path(elem ...string) string {
	return filepath.Join(append([]string{in.dir}, elem...)...)
}

func validID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	return strings.IndexFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) < 0
}

func newID(prefix string) string {
	b := make([]byte, 8)
	_, _ = rand.Read(b)
	return prefix + "-" + hex.EncodeToString(b)
}

func createInstance(state, id string) (*instance, error) {
	in := &instance{id: id, dir: filepath.Join(state, id)}
	if err := os.Mkdir(in.dir, 0o700); err != nil {
		return nil, err
	}
	owner, err := os.OpenFile(in.path("owner"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(owner.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, owner.Close())
	}
	in.owner = owner
	for _, d := range []string{"rootfs", "socket", "workspace", "runsc"} {
		if err := os.Mkdir(in.path(d), 0o700); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// adoptDead takes over an instance directory whose owner is gone. A directory so young that its owner may not have
// locked it yet is left alone.
func adoptDead(dir string) (*instance, bool) {
	const youth = 10 * time.Second
	id := filepath.Base(dir)
	if !validID(id) {
		return nil, false
	}
	owner, err := os.OpenFile(filepath.Join(dir, "owner"), os.O_RDWR, 0)
	if err != nil {
		fi, statErr := os.Stat(dir)
		if statErr != nil || !fi.IsDir() || time.Since(fi.ModTime()) < youth {
			return nil, false
		}
		return &instance{id: id, dir: dir}, true
	}
	if unix.Flock(int(owner.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		_ = owner.Close()
		return nil, false
	}
	return &instance{id: id, dir: dir, owner: owner}, true
}

func (in *instance) remove() error {
	err := os.RemoveAll(in.dir)
	if in.owner != nil {
		_ = in.owner.Close()
	}
	if err != nil {
		return fmt.Errorf("remove sandbox %s: %w", in.id, err)
	}
	return nil
}

// listen opens the socket that the guest connects to. It goes through /proc/self/fd because
// a socket path is limited to 107 bytes and data folders are not.
func (in *instance) listen() (*net.UnixListener, error) {
	dir, err := os.Open(in.path("socket"))
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
		if err != nil || !strings.HasPrefix(string(b), "runsc") || !strings.Contains(string(b), in.dir+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
