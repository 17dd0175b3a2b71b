package gvisor

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// clockTick is the unit of the processor times in /proc/PID/stat. Linux shows 100 of them in a second whatever it counts in.
const clockTick = 10 * time.Millisecond

// CPU returns the processor time that the sandbox has used: the code, and gVisor on its behalf.
func (s *running) CPU() (time.Duration, error) {
	if s.cgroup != nil {
		if d, err := s.cgroup.cpu(); err == nil {
			return d, nil
		} // else this machine does not count for cgroups, or the group is gone
	}
	if ended(s.done) {
		return 0, fmt.Errorf("the sandbox %s has ended", s.ID())
	}
	return s.spent.read(s.sentry, s.gofer), nil
}

// cpu returns the processor time of all that was ever in the group.
func (g *group) cpu() (time.Duration, error) {
	text, err := os.ReadFile(g.cpuFile)
	if err != nil {
		return 0, err
	}
	number, unit := string(text), time.Nanosecond
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "usage_usec "); ok { // version 2 says more than this
			number, unit = v, time.Microsecond
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", g.cpuFile, err)
	}
	return time.Duration(n) * unit, nil
}

// odometer adds up what process trees say, which is less than before when a process has ended that nobody waited for.
type odometer struct {
	mu          sync.Mutex
	last, total time.Duration
}

func (o *odometer) read(pids ...int) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	var now time.Duration
	for _, pid := range processTree(pids...) {
		now += processTime(pid)
	}
	o.total += max(now-o.last, 0)
	o.last = now
	return o.total
}

// processTime returns the processor time of a process and of those of its children that it has waited for.
func processTime(pid int) (total time.Duration) {
	text := readTrimmed(fmt.Sprintf("/proc/%d/stat", pid))
	// The name, in parentheses, may contain anything. After it come the state and ten numbers, and then four times.
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const first, behind = 11, 15
	if len(fields) < behind {
		return 0 // it is gone
	}
	for _, f := range fields[first:behind] {
		n, _ := strconv.ParseInt(f, 10, 64)
		total += time.Duration(n) * clockTick
	}
	return total
}
