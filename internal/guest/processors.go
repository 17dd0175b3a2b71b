package guest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// mostProcessors is how many processors a mask of the kernel's may name here.
const mostProcessors = 8192

// keepTo has every program of the sandbox see as many processors as it has the time of, and start no more threads than that. The mask is inherited: only what runs
// already has to be told, as in a sandbox whose checkpoint sessions with other limits start from, too. It is for gVisor, where such a mask is what programs are told
// and nothing else; on a kernel that others use, too, all sandboxes would crowd on the first processors.
func (g *guest) keepTo(processors int) {
	if processors <= 0 || processors > mostProcessors || !inGVisor() {
		return
	}
	var mask [mostProcessors / 8]byte
	for cpu := range processors {
		mask[cpu/8] |= 1 << (cpu % 8)
	}
	var now [len(mask)]byte
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, uintptr(len(now)), uintptr(unsafe.Pointer(&now)))
	if errno == 0 && now == mask {
		return // as it was when the checkpoint was made; a mask that code has set itself stays
	}
	all, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	var others []int
	for _, folder := range all {
		if id, err := strconv.Atoi(filepath.Base(folder)); err == nil && setAffinity(id, mask[:]) == syscall.EPERM {
			others = append(others, id)
		}
	}
	_ = g.asUser(func() error { // which may change its own, and the guest has no right to change others'
		for _, id := range others {
			_ = setAffinity(id, mask[:]) // one that has ended meanwhile has no need of it
		}
		return nil
	})
}

// setAffinity is sched_setaffinity(2) for a thread.
func setAffinity(id int, mask []byte) syscall.Errno {
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(id), uintptr(len(mask)), uintptr(unsafe.Pointer(&mask[0])))
	return errno
}

func inGVisor() bool {
	version, err := os.ReadFile("/proc/version")
	return err == nil && strings.Contains(string(version), "gvisor")
}
