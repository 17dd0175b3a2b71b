package testneeds

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	spareLook = 2 * time.Second
	spareIdle = 0.6 // processors
)

// spare has a slot more than usual while a processor has nothing to do: tests that have the others wait then, for a timeout or for something's end.
type spare struct {
	looked     time.Time
	idle, all  uint64 // ticks of all processors, of /proc/stat
	processors float64
}

// slots returns how many slots there are beyond those of the processors. It looks every two seconds, and at first knows of none.
func (s *spare) slots() int {
	if now := time.Now(); now.Sub(s.looked) >= spareLook {
		text, err := os.ReadFile("/proc/stat")
		if err != nil {
			text = nil
		}
		s.see(string(text), now)
	}
	if s.processors >= spareIdle {
		return 1
	}
	return 0
}

// see notes how many processors had nothing to do since it last saw, unless that was long ago.
func (s *spare) see(stat string, now time.Time) {
	idle, all, ok := ticks(stat)
	s.processors = 0
	if ok && all > s.all && idle > s.idle && now.Sub(s.looked) < 2*spareLook {
		s.processors = float64(idle-s.idle) / float64(all-s.all) * float64(runtime.NumCPU())
	}
	s.looked, s.idle, s.all = now, idle, all
}

// ticks returns how long processors had nothing to do, and how long there have been any, from the first line of /proc/stat (proc_stat(5)): "cpu", then user, nice, system, idle, iowait, ...
func ticks(stat string) (idle, all uint64, ok bool) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[0] != "cpu" {
		return 0, 0, false
	}
	for i, field := range fields[1:min(len(fields), 9)] { // what guests take is in user and nice
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, 0, false
		}
		all += n
		if i == 3 {
			idle = n
		}
	}
	return idle, all, true
}
