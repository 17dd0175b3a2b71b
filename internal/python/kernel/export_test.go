package kernel

import "time"

// Patience is how long the step of the interrupt ladder waits for what /proc/loadavg says.
func Patience(step int, loadavg string, cpus int) time.Duration {
	return ladder[step].prolonged(loadavg, cpus)
}
