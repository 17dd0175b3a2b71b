package gvisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// ownRoot is the root file system of a warden whose sandboxes have users of their own. Such a user comes to no folder below one that is closed to others, as root's home
// is, where cove's folders often are. So the warden has a root that is its own, and shows there what sandboxes see, in folders that are open:
//
//	/h/r            the host's root; /h is closed
//	/s/DEV-INO      a folder of the host, by the number of its device and its own
//	/proc /sys /dev the host's
//	/tmp            where a sentry makes its own, empty root
type ownRoot struct{ mu sync.Mutex }

const (
	closedFolder = "/h"
	hostFolder   = closedFolder + "/r"
	shownFolder  = "/s"
)

// enterOwnRoot makes a root in this process's mount namespace, which is its own, and enters it.
func enterOwnRoot() (*ownRoot, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return nil, fmt.Errorf("keep mounts from the host: %w", err)
	}
	const somewhere = "/proc/fs" // it is in each /proc, and free again after the move
	if err := unix.Mount("root", somewhere, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m"); err != nil {
		return nil, fmt.Errorf("make a root: %w", err)
	}
	err := os.Mkdir(somewhere+closedFolder, 0o700)
	for _, dir := range []string{hostFolder, shownFolder, "/proc", "/sys", "/dev", "/tmp"} {
		err = errors.Join(err, makeOpen(somewhere+dir))
	}
	if err != nil {
		return nil, fmt.Errorf("make a root: %w", err)
	}
	if err := unix.PivotRoot(somewhere, somewhere+hostFolder); err != nil {
		return nil, fmt.Errorf("enter a root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return nil, fmt.Errorf("enter a root: %w", err)
	}
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if err := unix.Mount(hostFolder+dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return nil, fmt.Errorf("show %s: %w", dir, err)
		}
	}
	return &ownRoot{}, nil
}

// makeOpen makes a folder that all may pass through, whatever the umask.
func makeOpen(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // that is what it is for
		return err
	}
	return os.Chmod(dir, 0o755) //nolint:gosec // the same
}

// find returns where a path of the host's is, without symbolic links. For a warden that has the host's root (r is nil) it is the path.
func (r *ownRoot) find(path string) (string, error) {
	if r == nil {
		return path, nil
	}
	root, err := unix.Open(hostFolder, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("find the host's root: %w", err)
	}
	defer func() { _ = unix.Close(root) }()
	fd, err := unix.Openat2(root, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// show returns a path of a folder of the host's to which any user comes; below it, the folder's own rights count.
func (r *ownRoot) show(path string) (string, error) {
	source, err := r.find(path)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var st unix.Stat_t
	if err := unix.Stat(source, &st); err != nil {
		return "", fmt.Errorf("show %s: %w", path, err)
	}
	// A folder that is shown is not gone, even when it is deleted, so no other one gets its number.
	target := fmt.Sprintf("%s/%d-%d", shownFolder, st.Dev, st.Ino)
	if err := makeOpen(target); err != nil {
		if !errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("show %s: %w", path, err)
		}
		var there unix.Stat_t
		if unix.Stat(target, &there) == nil && there.Dev == st.Dev && there.Ino == st.Ino {
			return target, nil
		}
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return "", fmt.Errorf("show %s: %w", path, err)
	}
	return target, nil
}

// showAll has a container find everything that it gets of the host below the root. What is in one of the folders wholes, as the engine's own, is found below that, so that the root does not grow with
// each container. known are paths of what is shown already.
func (r *ownRoot) showAll(spec *specs.Spec, wholes []string, known map[string]string) error {
	moved := func(path string) (string, error) {
		if target, ok := known[path]; ok {
			return target, nil
		}
		for _, whole := range wholes {
			if below, ok := strings.CutPrefix(path, whole+"/"); ok && whole != "" {
				top, err := r.show(whole)
				return filepath.Join(top, below), err
			}
		}
		return r.show(path)
	}
	var err error
	if spec.Root.Path, err = moved(spec.Root.Path); err != nil {
		return err
	}
	for i, m := range spec.Mounts {
		if m.Type != "bind" {
			continue
		}
		if spec.Mounts[i].Source, err = moved(m.Source); err != nil {
			return err
		}
	}
	for key, path := range spec.Annotations {
		if !strings.HasSuffix(key, ".source") {
			continue
		}
		if spec.Annotations[key], err = moved(path); err != nil {
			return err
		}
	}
	return nil
}
