package bench

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// footprint is what the host has and what its processes take.
type footprint struct {
	available int64 // MemAvailable, in bytes
	shares    shares
}

// settled waits until the host's available memory has stopped moving, for six seconds at most, and measures.
func settled(ctx context.Context) footprint {
	const still = 2 << 20
	var low, high int64
	calm := 0
	for range 24 {
		now := memInfo()["MemAvailable"]
		if calm == 0 || now < high-still || now > low+still {
			low, high, calm = now, now, 0
		}
		low, high, calm = min(low, now), max(high, now), calm+1
		if calm >= 6 {
			break
		}
		select {
		case <-ctx.Done():
			return footprint{}
		case <-time.After(250 * time.Millisecond):
		}
	}
	return footprint{available: memInfo()["MemAvailable"], shares: shareOut()}
}

// process is what memory a process takes and who started it.
type process struct {
	parent int
	share  int64 // proportional set size, in bytes
}

// shares are all processes that this one may look at, by their ID.
type shares map[int]process

// shareOut looks at all processes. It takes some time, so a process may be missing that has just ended.
func shareOut() shares {
	all := shares{}
	paths, _ := filepath.Glob("/proc/[0-9]*/smaps_rollup")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		pid, e := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && e == nil {
			all[pid] = process{parent: parentOf(pid), share: kilobytes(string(text))["Pss"]}
		}
	}
	all.countOnce()
	return all
}

// countOnce leaves the share to one of the processes that have one address space together, such as gVisor's helpers that
// run a program's threads: the system tells the whole of it for each of them.
func (s shares) countOnce() {
	equal := map[int64][]int{}
	for pid, p := range s {
		equal[p.share] = append(equal[p.share], pid)
	}
	for _, pids := range equal {
		slices.Sort(pids)
		for i, pid := range pids {
			if slices.ContainsFunc(pids[:i], func(other int) bool { return sameMemory(pid, other) }) {
				s[pid] = process{parent: s[pid].parent}
			}
		}
	}
}

// sameMemory asks kcmp(2), whose KCMP_VM is 1.
func sameMemory(pid, other int) bool {
	const addressSpace = 1
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(pid), uintptr(other), addressSpace, 0, 0, 0)
	return errno == 0 && order == 0
}

// parentOf reads the fourth field of stat; the second one is a name in parentheses that may hold anything.
func parentOf(pid int) int {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(text[max(0, strings.LastIndexByte(string(text), ')')):]), ") ")
	if fields := strings.Fields(rest); len(fields) > 1 {
		n, _ := strconv.Atoi(fields[1])
		return n
	}
	return 0
}

// since is what the processes take that are new since before and were there in between, and what this process and its
// children have grown by. What others do meanwhile is left out as far as that can be told.
func (s shares) since(before, between shares) (bytes int64) {
	for pid, now := range s {
		then, old := before[pid]
		_, lasting := between[pid]
		switch {
		case !old && lasting:
			bytes += now.share
		case old && s.ours(pid):
			bytes += now.share - then.share
		}
	}
	return bytes
}

// ours tells whether a process is this one or comes from it.
func (s shares) ours(pid int) bool {
	for range 32 {
		if pid == os.Getpid() {
			return true
		}
		if pid = s[pid].parent; pid <= 1 {
			return false
		}
	}
	return false
}
