package gvisor

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// closeStrays closes the descriptors that this process was born with and that no flag of its command line names. The warden works for other sandboxes while it starts one, and gVisor
// opens some files, such as an eventfd for each connection, so that a process which is born at that moment has them too: what belongs to another sandbox, under a number that the
// sentry may want for a file of its own.
func closeStrays(args []string) {
	meant := map[int]bool{}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		if !strings.HasSuffix(name, "-fd") && !strings.HasSuffix(name, "-fds") {
			continue
		}
		for _, number := range strings.FieldsFunc(value, func(r rune) bool { return r < '0' || r > '9' }) {
			if fd, err := strconv.Atoi(number); err == nil {
				meant[fd] = true
			}
		}
	}
	for _, name := range namesIn("/proc/self/fd") {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= unix.Stderr || meant[fd] {
			continue
		}
		// What was opened since, by Go's runtime, is not to be inherited by others.
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}
