package guest

import (
	"fmt"
	"syscall"
	"unsafe"
)

// The kinds of namespaces, as flags of clone(2) and, with the last, of unshare(2). In a user namespace of its own, code would have every capability.
const (
	newNamespaces = syscall.CLONE_NEWNS | cloneNewCgroup | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET
	newTime       = 0x80 // in clone(2), part of the signal at the end

	cloneNewCgroup = 0x02000000
)

const (
	prSetNoNewPrivileges = 38
	prSetSeccomp         = 22
	seccompFilter        = 2

	verdictAllow = 0x7fff0000
	verdictErrno = 0x00050000

	// Where seccomp_data has what is looked at; see seccomp(2). Of an argument, the lower half.
	atNumber         = 0
	atArchitecture   = 4
	atFirstArgument  = 16
	atSecondArgument = 24

	guestPID = 1
	setSig   = 10 // F_SETSIG of fcntl(2)
)

// confine takes from the calling thread, and from all that it starts, the way to namespaces of their own. clone3 has its flags where a filter cannot look;
// the C library goes on with clone where there is no clone3. Most other system calls cost nothing more: gVisor remembers what the filter says of them.
//
// It also keeps the guest from being ended or stopped, which the sandbox's root, having its user, could do: gVisor does not protect PID 1 as Linux does. Refused are signals to it by each call that takes
// a process, the way to a descriptor of it, its limits (RLIMIT_CPU ends a process), the choice of the signal for ready descriptors, whose receiver can be any process, and tkill, which takes one of the
// guest's threads without saying whose it is. The C library sends signals to threads by tgkill.
func confine() error {
	allow := statement(syscall.BPF_RET|syscall.BPF_K, verdictAllow)
	refuse := statement(syscall.BPF_RET|syscall.BPF_K, verdictErrno|uint32(syscall.EPERM))
	absent := statement(syscall.BPF_RET|syscall.BPF_K, verdictErrno|uint32(syscall.ENOSYS))
	load := func(at uint32) syscall.SockFilter {
		return statement(syscall.BPF_LD|syscall.BPF_W|syscall.BPF_ABS, at)
	}
	isnt := func(value uint32, otherwise uint8) syscall.SockFilter {
		return syscall.SockFilter{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jf: otherwise, K: value}
	}
	hasAny := func(bits uint32, otherwise uint8) syscall.SockFilter {
		return syscall.SockFilter{Code: syscall.BPF_JMP | syscall.BPF_JSET | syscall.BPF_K, Jf: otherwise, K: bits}
	}
	program := []syscall.SockFilter{
		load(atArchitecture), isnt(architecture, 1), {Code: syscall.BPF_JMP | syscall.BPF_JA, K: 1}, absent,
		load(atNumber),
		isnt(syscall.SYS_CLONE, 4), load(atFirstArgument), hasAny(newNamespaces, 1), refuse, allow,
		isnt(syscall.SYS_UNSHARE, 4), load(atFirstArgument), hasAny(newNamespaces|newTime, 1), refuse, allow,
		isnt(numberSetns, 1), refuse,
		isnt(numberClone3, 1), absent,
		isnt(syscall.SYS_TKILL, 1), refuse,
		isnt(syscall.SYS_FCNTL, 4), load(atSecondArgument), isnt(setSig, 1), refuse, allow,
	}
	for _, number := range []uint32{syscall.SYS_KILL, syscall.SYS_TGKILL, syscall.SYS_RT_SIGQUEUEINFO, numberTgSigqueueinfo, numberPidfdOpen, numberPrlimit} {
		program = append(program, isnt(number, 4), load(atFirstArgument), isnt(guestPID, 1), refuse, allow)
	}
	program = append(program, allow)
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivileges, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("give up new privileges: %w", errno)
	}
	all := syscall.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetSeccomp, seccompFilter, uintptr(unsafe.Pointer(&all))); errno != 0 {
		return fmt.Errorf("forbid namespaces: %w", errno)
	}
	return nil
}

func statement(code uint16, value uint32) syscall.SockFilter {
	return syscall.SockFilter{Code: code, K: value}
}
