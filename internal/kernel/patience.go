package kernel

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// patience is how long to wait for what takes no longer than the grace on an idle machine: longer by as much as there are more processes that want to run
// than processors, because that is how much less of them a sandbox gets.
func (r rung) patience() time.Duration {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return r.grace
	}
	return r.prolonged(string(text), runtime.NumCPU())
}

// prolonged is patience for what /proc/loadavg says: three averages, and how many processes want to run now.
func (r rung) prolonged(loadavg string, cpus int) time.Duration {
	var lately, before, longBefore float64
	var running int
	if n, _ := fmt.Sscanf(loadavg, "%f %f %f %d/", &lately, &before, &longBefore, &running); n < 4 {
		return r.grace
	}
	crowd := max(lately, float64(running)) / float64(cpus)
	return time.Duration(float64(r.grace) * min(max(crowd, 1), r.most))
}
