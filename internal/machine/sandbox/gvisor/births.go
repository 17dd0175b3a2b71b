package gvisor

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// birthThreads is how many sandboxes can be created at once.
const birthThreads = 4

// births are the threads from which sandboxes are started: they have lost the capabilities that no sandbox's process needs.
type births chan birth

type birth struct {
	cpus int
	f    func() error
	err  chan<- error
}

func newBirths() births {
	b := make(births)
	for range birthThreads {
		go func() {
			runtime.LockOSThread()
			trimBoundingSet()
			for one := range b {
				one.err <- onCPUs(one.cpus, one.f)
			}
		}()
	}
	return b
}

// call calls f on such a thread, kept to n of the machine's processors unless n is 0, as are then the processes that f starts.
func (b births) call(n int, f func() error) error {
	err := make(chan error)
	b <- birth{n, f, err}
	return <-err
}

// trimBoundingSet takes from this thread, and from what it starts, all capabilities but those that a sentry and a gofer work with
// or set themselves up with. They do the same and more later on, but for the whole set, capability by capability on
// all their threads, which takes 15 ms; without CAP_SETPCAP they leave that out.
func trimBoundingSet() {
	needed := map[uintptr]bool{
		unix.CAP_CHOWN: true, unix.CAP_DAC_OVERRIDE: true, unix.CAP_DAC_READ_SEARCH: true, unix.CAP_FOWNER: true, unix.CAP_FSETID: true,
		unix.CAP_SYS_ADMIN: true, unix.CAP_SYS_CHROOT: true, unix.CAP_SYS_PTRACE: true,
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if !needed[c] {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // a capability that this kernel does not know
		}
	}
}

// onCPUs calls f with this thread kept to n of the machine's processors.
func onCPUs(n int, f func() error) error {
	var all, some unix.CPUSet
	if n <= 0 || unix.SchedGetaffinity(0, &all) != nil {
		return f()
	}
	for cpu := 0; cpu < 1024 && some.Count() < n; cpu++ {
		if all.IsSet(cpu) {
			some.Set(cpu)
		}
	}
	_ = unix.SchedSetaffinity(0, &some)
	defer func() { _ = unix.SchedSetaffinity(0, &all) }()
	return f()
}
