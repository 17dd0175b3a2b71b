package guest

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"cove/internal/machine/wire"
)

const (
	prSetChildSubreaper = 36
	prCapBsetDrop       = 24
	lastCapability      = 63
	capSysAdmin         = 21
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

// capabilities is what capget(2) and capset(2) exchange, in their third version.
type capabilities struct {
	header struct {
		version uint32
		pid     int32
	}
	data [2]struct{ effective, permitted, inheritable uint32 }
}

// read has the capabilities be those of the calling thread.
func (c *capabilities) read() error {
	c.header.version = 0x20080522
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&c.header)), uintptr(unsafe.Pointer(&c.data)), 0); errno != 0 {
		return fmt.Errorf("read the capabilities: %w", errno)
	}
	return nil
}

// giveUpMounting takes the capability to mount from every thread of the guest.
func giveUpMounting() error {
	c := new(capabilities) // all threads read it
	if err := c.read(); err != nil {
		return err
	}
	c.data[0].effective &^= 1 << capSysAdmin
	c.data[0].permitted &^= 1 << capSysAdmin
	c.data[0].inheritable &^= 1 << capSysAdmin
	_, _, errno := syscall.AllThreadsSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&c.header)), uintptr(unsafe.Pointer(&c.data)), 0)
	if errno != 0 {
		return fmt.Errorf("give up the capability to mount: %w", errno)
	}
	return nil
}

// giveNothingOn makes sure that what the calling thread starts has no capability, even as root. What is inheritable is all that is left to root when the bounding set is empty.
func giveNothingOn() error {
	var c capabilities
	if err := c.read(); err != nil {
		return err
	}
	for i := range c.data {
		c.data[i].inheritable = 0
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&c.header)), uintptr(unsafe.Pointer(&c.data)), 0); errno != 0 {
		return fmt.Errorf("give up what is inheritable: %w", errno)
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

// rightsFor returns what calls a function with the rights that an operation on files is to have: those of sandboxed code, or of the sandbox's root.
func (g *guest) rightsFor(spec wire.FileSpec) (as func(f func() error) error, err error) {
	if !spec.Root {
		return g.asUser, nil
	}
	if !g.root {
		return nil, fault{wire.FaultNoRoot, "the session has no root"}
	}
	return func(f func() error) error { return f() }, nil
}

// asUser calls f with the effective user of sandboxed code, without any capability. Credentials belong to a thread, so
// f must not start goroutines that rely on them.
func (g *guest) asUser(f func() error) error {
	if g.user == 0 {
		return f()
	}
	const same = ^uintptr(0)
	become := func(id uintptr) error {
		_, _, errno := syscall.RawSyscall(syscall.SYS_SETRESGID, same, id, same)
		if errno == 0 {
			_, _, errno = syscall.RawSyscall(syscall.SYS_SETRESUID, same, id, same)
		}
		if errno != 0 {
			return fmt.Errorf("change user: %w", errno)
		}
		return nil
	}
	runtime.LockOSThread()
	err := become(uintptr(g.user))
	if err == nil {
		err = f()
	}
	// Back in the other order: the group can be changed only with the capability that the user id brings back.
	_, _, e1 := syscall.RawSyscall(syscall.SYS_SETRESUID, same, 0, same)
	_, _, e2 := syscall.RawSyscall(syscall.SYS_SETRESGID, same, 0, same)
	if e1 != 0 || e2 != 0 {
		// Not unlocked: the runtime ends this thread with its goroutine rather than use it again.
		return errors.Join(err, e1, e2)
	}
	runtime.UnlockOSThread()
	return err
}
