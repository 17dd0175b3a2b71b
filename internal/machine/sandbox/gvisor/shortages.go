package gvisor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/memory"
	"cove/internal/machine/sandbox"
)

var _ sandbox.MemoryReporter = (*running)(nil)

// Shortages counts in the sandbox's own control group, or where it has none in cove's. Code runs in processes of the sandbox's, of which the system may pick
// one and leave the rest alive: then a kernel is gone, and only the host knows why.
func (s *running) Shortages() int64 {
	if s.cgroup != nil {
		return int64(s.cgroup.oomKills()) + s.waited.Load()
	}
	return memory.Machine{}.Kills()
}

// WaitsForMemory says whether the host lends the sandbox memory beyond its limit, see holdMemory, or is about to.
func (s *running) WaitsForMemory() bool {
	return s.lending.Load() || s.cgroup != nil && s.cgroup.threshold.waits()
}

// lately is how long a sandbox may take to die of having waited for memory.
const lately = 5 * time.Second

// waitedLately says whether the sandbox waits at its memory limit, or did a moment ago. What the sentry cannot have then may be its end, of which it can say
// nothing.
func (s *running) waitedLately() bool {
	return s.lending.Load() || s.waited.Load() > 0 && time.Since(time.Unix(0, s.fed.Load())) < lately
}

// Held is what the sandboxes of this process use, in bytes, in control groups of their own. Where they have none it is part of what the process's own
// group uses.
func Held() (held int64) {
	for root, file := range map[string]string{cgroupRoot: "memory.current", cgroupRoot + "/memory": "memory.usage_in_bytes"} {
		for _, name := range namesIn(filepath.Join(root, cgroupParent)) {
			group := filepath.Join(root, cgroupParent, name)
			if ours(filepath.Join(group, "cgroup.procs")) {
				held += number(filepath.Join(group, file))
			}
		}
	}
	return held
}

// ancestors is how far a sandbox's process can be from the process that has it started.
const ancestors = 8

// ours says whether the first process of a group descends from this one.
func ours(procs string) bool {
	text, err := os.ReadFile(procs)
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(first)
	for range ancestors {
		if pid <= 1 || pid == os.Getpid() {
			break
		}
		pid = parentOf(pid)
	}
	return pid == os.Getpid()
}

func number(file string) int64 {
	text, _ := os.ReadFile(file)
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}

// parentOf returns a process's parent, or 0 when the process is gone.
func parentOf(pid int) int {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "PPid:"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(v))
			return n
		}
	}
	return 0
}
