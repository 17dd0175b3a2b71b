package kernel

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// patience returns how long to wait for something that takes at most grace on an idle machine: grace times the number of runnable processes per processor,
// because a sandbox gets that much less processor time.
func (r rung) patience() time.Duration {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return r.grace
	}
	return r.prolonged(string(text), runtime.NumCPU())
}

// prolonged is patience for a content of /proc/loadavg: three averages, and how many processes are runnable now.
func (r rung) prolonged(loadavg string, cpus int) time.Duration {
	var lately, before, longBefore float64
	var running int
	if n, _ := fmt.Sscanf(loadavg, "%f %f %f %d/", &lately, &before, &longBefore, &running); n < 4 {
		return r.grace
	}
	crowd := max(lately, float64(running)) / float64(cpus)
	return time.Duration(float64(r.grace) * min(max(crowd, 1), r.most))
}
