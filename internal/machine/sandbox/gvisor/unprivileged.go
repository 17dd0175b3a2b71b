package gvisor

import (
	"errors"
	"fmt"
	"os"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Where cove is root, the processes of a sandbox are not: each sandbox has a user of the host for itself, who owns nothing but the socket of its guest and its lifeline, and in whose
// user namespace its sentry and its gofer are. So code that gets out of a sentry can neither read what is root's nor touch another sandbox's processes.

// The users that sandboxes have: systemd lists 1879048192 to 2147483647 as used by nobody (https://systemd.io/UIDS-GIDS/).
const (
	firstUser = 0x7000_0000
	userCount = 0x1000_0000
)

// usersWithheld returns why sandboxes cannot have such users; "" means that they can.
func usersWithheld(exe string) string {
	if os.Geteuid() != 0 {
		return "cove is not root"
	}
	root, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil { // see ownRoot.find
		return "the kernel is older than 5.6, or refuses openat2"
	}
	_ = unix.Close(root)
	if !hasUsers(readTrimmed("/proc/self/uid_map")) || !hasUsers(readTrimmed("/proc/self/gid_map")) {
		return fmt.Sprintf("the container that cove is in does not have the users %d to %d", firstUser, firstUser+userCount-1)
	}
	if info, err := os.Stat(exe); err != nil || info.Mode()&0o001 == 0 {
		return exe + " may not be run by other users (chmod o+rx)"
	}
	return ""
}

// WhyRoot implements sandbox.UserGiver.
func (e *Engine) WhyRoot() string {
	if e.prepare() != nil || os.Geteuid() != 0 {
		return ""
	}
	return e.withheld
}

// hasUsers says whether a user namespace with that map (user_namespaces(7)) has all users of sandboxes.
func hasUsers(idMap string) bool {
	for line := range strings.Lines(idMap) {
		var inside, outside, count uint64
		if _, err := fmt.Sscan(line, &inside, &outside, &count); err == nil && inside <= firstUser && inside+count >= firstUser+userCount {
			return true
		}
	}
	return false
}

// assignUser returns the user for a sandbox. Folders that are there at the same time have different numbers, so their sandboxes have different users, unless a file
// system has more than 2^28 files.
func (in *instance) assignUser() (int, error) {
	var st unix.Stat_t
	if err := unix.Stat(in.Path, &st); err != nil {
		return 0, fmt.Errorf("look at the sandbox's folder: %w", err)
	}
	return firstUser + int(st.Ino%userCount), nil
}

// handOver lets the sandbox's user at what its processes open by name. The folder remains root's, and closed to all other users.
func (in *instance) handOver(user int) error {
	return errors.Join(
		os.Chown(in.Path, 0, user),
		os.Chmod(in.Path, 0o710), //nolint:gosec // the user passes through it
		os.Chown(in.Join(memoryName), 0, user),
		os.Chmod(in.Join(memoryName), 0o640), //nolint:gosec // the sentry reads it
		os.Chown(in.Join(lifelineName), user, user),
		os.Chown(in.Join("socket"), user, user),
		os.Chown(in.Join("socket", socketName), user, user),
	)
}

// putInNamespace has the processes of a container be the host's user in a user namespace of their own, in which that user is root. It is no part of the bundle, with which
// a checkpoint is compared: that is good for any user.
// owner is the user of the host to whom what sandboxed code makes in volumes belongs; 0: it has none.
func putInNamespace(spec *specs.Spec, user, owner int) {
	only := []specs.LinuxIDMapping{{ContainerID: 0, HostID: uint32(user), Size: 1}} //nolint:gosec // below 2^31
	if owner != 0 {
		only = append(only, specs.LinuxIDMapping{ContainerID: sandboxUser, HostID: uint32(owner), Size: 1}) //nolint:gosec // a user's number
	}
	spec.Linux.Namespaces = append(spec.Linux.Namespaces, specs.LinuxNamespace{Type: specs.UserNamespace})
	spec.Linux.UIDMappings, spec.Linux.GIDMappings = only, only
}
