package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"cove/internal/machine/wire"
)

// sharedMemory is a folder whose files are memory, which ends with what uses it.
const sharedMemory = "/dev/shm"

// rebootPatience is how long processes may take to end that were killed.
const rebootPatience = 30 * time.Second

// reboot ends everything that the guest has started. Files stay, but for those in sharedMemory.
func (g *guest) reboot(ch *wire.Channel) error {
	g.procs.killDescendants()
	for began := time.Now(); len(descendants(os.Getpid())) > 0; g.procs.killDescendants() {
		if time.Since(began) > rebootPatience { // what waits for a disk cannot be killed
			return errors.New("processes do not end")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if g.user != 0 { // else it is the host's
		// What is the user's, and what root has left in folders of its own.
		empty := func() error { return removeAllIn(sharedMemory) }
		if err := g.asUser(empty); err != nil {
			if err = empty(); err != nil {
				return err
			}
		}
	}
	answer(ch, wire.Response{}, nil)
	return nil
}

func removeAllIn(folder string) error {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, e.Name())))
	}
	return err
}

// newProc mounts /proc anew, and with it what the kernel makes once for each such file system: the id of the boot. The host has a program of its own do that, with a capability that the guest does
// not have, while nothing else runs in the sandbox.
func newProc(run string) int {
	err := syscall.Unmount("/proc", syscall.MNT_DETACH)
	if err == nil {
		err = syscall.Mount("proc", "/proc", "proc", 0, "dentry_cache_limit=1000")
	}
	if err == nil {
		err = syscall.Mount(coverOfInfo(run), infoFile, "", syscall.MS_BIND, "")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cove-guest: mount /proc:", err)
		return 1
	}
	return 0
}
