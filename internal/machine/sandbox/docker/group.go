package docker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// group is a container's control group, as far as this process sees it. A nil one is not seen.
type group struct {
	memory, cpu string // folders; for version 2 the same one
	unified     bool
	kills       atomic.Int64 // the last count that was read: the group goes with its container
}

// groupOf finds the group of the process pid; see cgroups(7).
func groupOf(pid int) *group {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil
	}
	g := &group{}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || strings.Contains(parts[2], "..") { // another name space's, which is not to be found here
			continue
		}
		for _, controller := range strings.Split(parts[1], ",") {
			switch controller {
			case "memory":
				g.memory = filepath.Join("/sys/fs/cgroup/memory", parts[2])
			case "cpuacct":
				g.cpu = filepath.Join("/sys/fs/cgroup/cpuacct", parts[2])
			case "":
				if g.memory == "" {
					g.unified, g.memory = true, filepath.Join("/sys/fs/cgroup", parts[2])
				}
			}
		}
	}
	if g.cpu != "" {
		g.unified = false
	}
	if g.unified {
		g.cpu = g.memory
	}
	if _, err := os.Stat(g.memory); err != nil {
		return nil
	}
	return g
}

// number returns the number after a word in one of the group's files; with "" the file is the number.
func number(path, word string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		value, found := strings.CutPrefix(strings.TrimSpace(line), word)
		if !found || word != "" && !strings.HasPrefix(value, " ") {
			continue
		}
		return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	}
	return 0, fmt.Errorf("%s has no %s", path, word)
}

// CPU implements sandbox.Meter.
func (s *running) CPU() (time.Duration, error) {
	switch {
	case s.group == nil:
		return 0, errors.New("the container's control group is not seen from here")
	case s.group.unified:
		n, err := number(filepath.Join(s.group.cpu, "cpu.stat"), "usage_usec")
		return time.Duration(n) * time.Microsecond, err
	}
	n, err := number(filepath.Join(s.group.cpu, "cpuacct.usage"), "")
	return time.Duration(n), err
}

// Memory implements sandbox.Weigher: what its processes and its files in memory take.
func (s *running) Memory() int64 {
	if s.group == nil || ended(s.done) {
		return 0
	}
	words := []string{"total_rss", "total_shmem"}
	if s.group.unified {
		words = []string{"anon", "shmem"}
	}
	var sum int64
	for _, w := range words {
		n, _ := number(filepath.Join(s.group.memory, "memory.stat"), w)
		sum += n
	}
	return sum
}

// Shortages implements sandbox.MemoryReporter.
func (s *running) Shortages() int64 {
	if s.group == nil {
		return 0
	}
	file := "memory.oom_control"
	if s.group.unified {
		file = "memory.events"
	}
	if n, err := number(filepath.Join(s.group.memory, file), "oom_kill"); err == nil {
		s.group.kills.Store(n)
	}
	return s.group.kills.Load()
}

// WaitsForMemory implements sandbox.MemoryReporter: at its limit, a container's processes are killed and do not wait.
func (s *running) WaitsForMemory() bool { return false }
