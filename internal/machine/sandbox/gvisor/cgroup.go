package gvisor

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/machine/sandbox"
)

// sentryMemory is what the sandbox's cgroup holds beyond the user's limit: the sentry and the gofer, and what greedy code can take on a busy machine
// until the guest, which looks twenty times a second, has ended it. Else the system kills the whole sandbox, files and all.
const sentryMemory = 512 << 20

// backstopTasks bounds host threads. Reaching it kills the sentry, so it is far above what RLIMIT_NPROC allows inside.
const backstopTasks = 16384

// cgroupParent is the cgroup under which every sandbox gets its own.
const cgroupParent = "cove"

// hierarchy makes cgroups of one version. A nil hierarchy means that this user may not make any.
type hierarchy interface {
	name() string
	top() string // the folder that all is below
	// create makes a group. When it fails it may leave some of it behind.
	create(id string, l sandbox.Limits) (*group, error)
	open(id string) *group
}

const cgroupRoot = "/sys/fs/cgroup"

// findCgroups says which kind of cgroups there are. Whether they can be made is seen when a sandbox is started: a trial
// here would leave a group behind when cove is killed in the midst of it, with no folder to tell a sweep. An ordinary user's are in the group that the user was given.
func findCgroups() hierarchy {
	if os.Geteuid() != 0 {
		if top := delegated(); top != "" && divide(top) == nil {
			return cgroupV2{top}
		}
		return nil
	}
	if _, err := os.Stat(cgroupRoot + "/cgroup.controllers"); err == nil {
		return cgroupV2{cgroupRoot}
	}
	if _, err := os.Stat(cgroupRoot + "/memory"); err == nil {
		return cgroupV1{}
	}
	return nil
}

type setting struct{ controller, file, value string }

// group is one sandbox's control group in all the controllers that cove uses: directories, one per controller (v1) or one in all (v2).
type group struct {
	id        string
	top       string   // see hierarchy
	roots     []string // mount points of the controllers
	oomFile   string
	cpuFile   string
	threshold threshold
}

// adopt moves processes into the group. What they start later is born in it; what they start while they are moved is found
// by looking until nothing new is there.
func (g *group) adopt(pids ...int) error {
	moved := map[int]bool{}
	for more := true; more; {
		more = false
		for _, pid := range processTree(pids...) {
			if moved[pid] {
				continue
			}
			moved[pid], more = true, true
			if err := g.move(pid); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("move process %d into its cgroup: %w", pid, err)
			}
		}
	}
	return nil
}

func (g *group) move(pid int) error {
	for _, root := range g.roots {
		err := os.WriteFile(filepath.Join(root, cgroupParent, g.id, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a controller that we do not use has no such group
			return err
		}
	}
	return nil
}

// oomKills is how many processes of the group the kernel killed for memory.
func (g *group) oomKills() int {
	f, err := os.Open(g.oomFile)
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), "oom_kill "); ok {
			n, _ := strconv.Atoi(v)
			return n
		}
	}
	return 0
}

// remove kills what is left in the group and deletes it.
func (g *group) remove() {
	for _, root := range g.roots {
		dir := filepath.Join(root, cgroupParent, g.id)
		// A group can be removed only when its last task is gone, which follows the kill by a moment.
		for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			killTasks(dir)
			if err := os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) || time.Now().After(deadline) {
				break
			}
		}
	}
	// The parent goes with its last group, unless a sandbox is starting somewhere and makes its own in it.
	if unlock, ok := lockParent(g.top, unix.LOCK_EX|unix.LOCK_NB); ok {
		defer unlock()
		for _, root := range g.roots {
			_ = os.Remove(filepath.Join(root, cgroupParent))
		}
	}
}

// groupGrace is how long a group may be empty that nobody has removed: from its making until a sandbox is in it, and from the end of
// that until it is removed.
const groupGrace = time.Minute

// sweepGroups removes groups that were left empty. Those of dead sandboxes go with their folders; this is for the ones whose
// folder somebody has deleted.
func sweepGroups() {
	if os.Geteuid() == 0 {
		sweepGroupsBelow(cgroupRoot, "/*/", "/")
	} else if top := delegated(); top != "" {
		sweepGroupsBelow(top, "/")
	}
}

func sweepGroupsBelow(top string, patterns ...string) {
	var left []string
	for _, pattern := range patterns {
		found, _ := filepath.Glob(top + pattern + cgroupParent + "/*/cgroup.procs")
		for _, procs := range found {
			info, err := os.Stat(filepath.Dir(procs))
			if b, readErr := os.ReadFile(procs); err == nil && readErr == nil && len(b) == 0 && time.Since(info.ModTime()) > groupGrace {
				left = append(left, filepath.Dir(procs))
			}
		}
	}
	if len(left) == 0 {
		return
	}
	if unlock, ok := lockParent(top, unix.LOCK_EX|unix.LOCK_NB); ok {
		defer unlock()
		for _, dir := range left {
			_ = os.Remove(dir) // fails when a process has come in meanwhile
		}
	}
}

// lockParent locks the parent cgroup for all of the machine's cove processes: shared while groups are made in it, exclusively to
// remove it.
func lockParent(top string, how int) (unlock func(), ok bool) {
	dir, err := os.Open(top)
	if err != nil {
		return nil, false
	}
	if err := unix.Flock(int(dir.Fd()), how); err != nil {
		_ = dir.Close()
		return nil, false
	}
	return func() { _ = dir.Close() }, true
}

func killTasks(dir string) {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return
	}
	for _, f := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	}
}

func (g *group) set(dir string, s setting) error {
	if err := os.WriteFile(filepath.Join(dir, s.file), []byte(s.value), 0o600); err != nil {
		return fmt.Errorf("limit %s: %w", s.file, err)
	}
	return nil
}

// cgroupV1 has a tree per controller.
type cgroupV1 struct{}

func (cgroupV1) name() string { return "cgroup v1" }

func (cgroupV1) top() string { return cgroupRoot }

func (cgroupV1) open(id string) *group {
	roots := []string{cgroupRoot + "/memory", cgroupRoot + "/cpu", cgroupRoot + "/pids", cgroupRoot + "/cpuacct"}
	return &group{
		id: id, top: cgroupRoot, roots: roots,
		oomFile:   filepath.Join(cgroupRoot, "memory", cgroupParent, id, "memory.oom_control"),
		cpuFile:   filepath.Join(cgroupRoot, "cpuacct", cgroupParent, id, "cpuacct.usage"),
		threshold: thresholdV1(filepath.Join(cgroupRoot, "memory", cgroupParent, id)),
	}
}

func (h cgroupV1) create(id string, l sandbox.Limits) (*group, error) {
	g := h.open(id)
	for _, s := range []setting{
		{"memory", "memory.limit_in_bytes", strconv.FormatInt(l.Memory+sentryMemory, 10)},
		{"cpu", "cpu.cfs_period_us", "100000"},
		{"cpu", "cpu.cfs_quota_us", strconv.Itoa(int(l.CPUs * 100000))},
		{"pids", "pids.max", strconv.Itoa(backstopTasks)},
	} {
		dir := filepath.Join(cgroupRoot, s.controller, cgroupParent, id)
		err := os.MkdirAll(dir, 0o755)
		if err == nil {
			err = g.set(dir, s)
		}
		if err != nil {
			return nil, err
		}
	}
	// It limits nothing, so a machine without it will do. Often it is the same place as cpu.
	if _, err := os.Stat(cgroupRoot + "/cpuacct/cpuacct.usage"); err == nil {
		_ = os.MkdirAll(filepath.Dir(g.cpuFile), 0o755)
	}
	return g, nil
}

// cgroupV2 has one tree, which is mounted at root.
type cgroupV2 struct{ root string }

func (cgroupV2) name() string { return "cgroup v2" }

func (h cgroupV2) top() string { return h.root }

func (h cgroupV2) open(id string) *group {
	dir := filepath.Join(h.root, cgroupParent, id)
	return &group{
		id: id, top: h.root, roots: []string{h.root},
		oomFile:   filepath.Join(dir, "memory.events"),
		cpuFile:   filepath.Join(dir, "cpu.stat"),
		threshold: thresholdV2(dir),
	}
}

func (h cgroupV2) create(id string, l sandbox.Limits) (*group, error) {
	g := h.open(id)
	parent := filepath.Join(h.root, cgroupParent)
	dir := filepath.Join(parent, id)
	err := os.MkdirAll(dir, 0o755)
	for _, p := range []string{h.root, parent} {
		if err == nil {
			err = g.set(p, setting{file: "cgroup.subtree_control", value: "+cpu +memory +pids"})
		}
	}
	for _, s := range []setting{
		{"", "memory.high", slowFrom(l.Memory)},
		{"", "memory.max", strconv.FormatInt(l.Memory+sentryMemory+reserveMemory, 10)},
		{"", "cpu.max", strconv.Itoa(int(l.CPUs*100000)) + " 100000"},
		{"", "pids.max", strconv.Itoa(backstopTasks)},
	} {
		if err == nil {
			err = g.set(dir, s)
		}
	}
	if err != nil {
		return nil, err
	}
	// Not every kernel has them: swap accounting, and killing the group as one.
	_ = g.set(dir, setting{file: "memory.swap.max", value: "0"})
	_ = g.set(dir, setting{file: "memory.oom.group", value: "1"})
	return g, nil
}
