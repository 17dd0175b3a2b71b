package gvisor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// serverGroup is where cove's own processes are in a group that it was given: on version 2 a group that gives controllers away has no processes itself.
const serverGroup = "server"

// delegated returns the cgroup of version 2 that a service manager has given to this process, an ordinary user's, to divide (systemd: Delegate=), or "".
// Source: https://systemd.io/CGROUP_DELEGATION/
func delegated() string {
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	return delegatedBelow(cgroupRoot, string(membership))
}

// delegatedBelow does so for a mount of version 2 and what /proc/PID/cgroup says: "0::/system.slice/cove.service".
func delegatedBelow(root, membership string) string {
	for line := range strings.Lines(membership) {
		path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !ok || strings.HasPrefix(path, "/..") { // of another version, or not below what this process sees
			continue
		}
		own := filepath.Join(root, path)
		if filepath.Base(own) == serverGroup && divisible(filepath.Dir(own)) {
			return filepath.Dir(own)
		}
		if divisible(own) {
			return own
		}
	}
	return ""
}

// divisible says whether this user may make groups in a group, move processes between them, and limit what they take.
func divisible(dir string) bool {
	for _, path := range []string{dir, filepath.Join(dir, "cgroup.procs"), filepath.Join(dir, "cgroup.subtree_control")} {
		if unix.Access(path, unix.W_OK) != nil {
			return false
		}
	}
	controllers := strings.Fields(readTrimmed(filepath.Join(dir, "cgroup.controllers")))
	return slices.Contains(controllers, "cpu") && slices.Contains(controllers, "memory") && slices.Contains(controllers, "pids")
}

// divide moves the processes of a group, which have to be cove's own, out of the way of the groups that it is going to have.
func divide(top string) error {
	procs := filepath.Join(top, "cgroup.procs")
	for range 100 { // what a process starts while it is moved is found by looking again
		members := strings.Fields(readTrimmed(procs))
		if len(members) == 0 {
			return nil
		}
		own := processTree(os.Getpid())
		for _, member := range members {
			pid, err := strconv.Atoi(member)
			if err != nil || !slices.Contains(own, pid) && !errors.Is(unix.Kill(pid, 0), unix.ESRCH) { // one that has ended meanwhile is nobody's
				return errors.New("process " + member + " in " + top + " is not one of cove's")
			}
		}
		if err := os.MkdirAll(filepath.Join(top, serverGroup), 0o755); err != nil {
			return err
		}
		for _, member := range members {
			if err := os.WriteFile(filepath.Join(top, serverGroup, "cgroup.procs"), []byte(member), 0o600); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return errors.New("the processes in " + top + " do not come to an end")
}
