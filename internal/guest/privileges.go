package guest

import (
	"fmt"
	"syscall"
)

const (
	prSetChildSubreaper = 36
	prCapBsetDrop       = 24
	lastCapability      = 63
)

// dropBoundingSet makes sure that nothing the guest executes can ever gain a capability. The guest keeps those it has.
func dropBoundingSet() error {
	for c := uintptr(0); c <= lastCapability; c++ {
		_, _, errno := syscall.AllThreadsSyscall(syscall.SYS_PRCTL, prCapBsetDrop, c, 0)
		if errno == syscall.EINVAL {
			return nil // beyond the last capability that this kernel knows
		}
		if errno != 0 {
			return fmt.Errorf("drop capability %d: %w", c, errno)
		}
	}
	return nil
}

// becomeSubreaper has orphaned descendants handed to this process, as PID 1 has by nature.
func becomeSubreaper() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return fmt.Errorf("become a subreaper: %w", errno)
	}
	return nil
}
