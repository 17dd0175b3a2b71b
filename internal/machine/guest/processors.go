package guest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// mostProcessors is how many processors a mask of the kernel's may name here.
const mostProcessors = 8192

// The files that name the processors. Programs count by them, too: glibc by the first (getconf, and std::thread::hardware_concurrency, which DuckDB and Arrow ask), Node by the second.
const (
	onlineFile = "/sys/devices/system/cpu/online"
	infoFile   = "/proc/cpuinfo"
)

// namedProcessors is what stands in the place of these files: files of the guest's own, which it can write.
type namedProcessors struct {
	online, info string   // paths; "" where nothing could be mounted
	each         [][]byte // what is said of each processor that there is
}

// coverProcessors mounts files over those that name the processors, of which gVisor makes the content once, for as many as the machine has. It takes the capability to mount, which the guest has
// when it starts in that engine, and gives up here, before it starts anything.
func (g *guest) coverProcessors() error {
	if !inGVisor() {
		return nil
	}
	content, err := os.ReadFile(infoFile)
	if err != nil {
		return err
	}
	own := filepath.Join(g.run, "processors")
	n := namedProcessors{filepath.Join(own, "online"), coverOfInfo(g.run), bytes.SplitAfter(bytes.TrimSuffix(content, []byte("\n\n")), []byte("\n\n"))}
	if err := os.MkdirAll(own, 0o755); err != nil { //nolint:gosec // code reads what is in it
		return err
	}
	if err := n.write(len(n.each)); err != nil {
		return err
	}
	err = errors.Join(syscall.Mount(n.online, onlineFile, "", syscall.MS_BIND, ""), syscall.Mount(n.info, infoFile, "", syscall.MS_BIND, ""))
	if errors.Is(err, syscall.EPERM) {
		return nil // gVisor under Docker
	}
	if err != nil {
		return fmt.Errorf("mount what names the processors: %w", err)
	}
	g.named = n
	return giveUpMounting()
}

// coverOfInfo is the path of the file in the place of infoFile, below the folder of the guest's own files.
func coverOfInfo(run string) string { return filepath.Join(run, "processors", "cpuinfo") }

// write has the files name the first processors, as many as are given. Others are as if they had been switched off.
func (n *namedProcessors) write(processors int) error {
	processors = min(processors, len(n.each))
	if n.online == "" || processors == 0 {
		return nil
	}
	online := "0\n"
	if processors > 1 {
		online = fmt.Sprintf("0-%d\n", processors-1)
	}
	return errors.Join(os.WriteFile(n.online, []byte(online), 0o644), os.WriteFile(n.info, bytes.Join(n.each[:processors], nil), 0o644)) //nolint:gosec // code reads them
}

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
	_ = g.named.write(processors) // a full /run: the mask is what most programs go by
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
