package gvisor

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
)

// processAttributes start the warden in an empty network namespace; as an ordinary user in a user namespace in which that user is root, which is all the
// privilege gVisor needs.
func processAttributes(ownRoot bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{
		// A Ctrl-C on the terminal is for cove, which decides what becomes of the sandbox.
		Setpgid:    true,
		Cloneflags: syscall.CLONE_NEWNET,
	}
	if ownRoot {
		a.Cloneflags |= syscall.CLONE_NEWNS
	}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
	}
	return a
}

func startProblem(err error) error {
	if os.Geteuid() != 0 && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL)) {
		return userNamespaceProblem(err)
	}
	return outOfFiles(fmt.Errorf("start runsc: %w", err))
}

// fewestFiles is how many files a process has to be allowed to open: the gofer has one for each file that programs inside have open or have looked at, and the sentry moves its own above 253. With fewer,
// sandboxes begin to start, and their programs find some of their files and not others.
const fewestFiles = 1024

// checkFiles refuses a limit of open files that sandboxes cannot start under.
func checkFiles() error {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Max >= fewestFiles {
		return nil
	}
	return problem.New(problem.DescriptorsShort, fmt.Sprintf("a process may open %d files here, and sandboxes need %d", limit.Max, fewestFiles)).
		WithHint(fmt.Sprintf("raise the limit of open files: ulimit -n %d, or LimitNOFILE of a systemd service", 64*fewestFiles))
}

// outOfFiles says in an error that this process, or the machine, has as many files open as it may.
func outOfFiles(err error) error {
	if err == nil || !strings.Contains(err.Error(), unix.EMFILE.Error()) { // which may come from the warden, as text
		return err
	}
	return problem.New(problem.DescriptorsShort, "no sandbox can be started: as many files are open as may be").WithCause(err).
		WithHint("raise the limit of open files (ulimit -n, or LimitNOFILE of a systemd service), or have fewer sessions in memory")
}

func userNamespaceProblem(err error) error {
	hint := "allow user namespaces (as root: sysctl -w user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1) or run cove as root"
	if readTrimmed("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
		hint = "give cove a profile of AppArmor, which `cove doctor` prints, or run cove as root"
	}
	return problem.New(problem.UserNamespaces, "this machine does not let an ordinary user make user namespaces, which the gvisor engine needs").
		WithHint(hint).WithCause(err)
}

func checkUserNamespaces() error {
	if readTrimmed("/proc/sys/user/max_user_namespaces") == "0" || readTrimmed("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
		return userNamespaceProblem(errors.New("they are switched off"))
	}
	return nil
}

// checkMount refuses a folder for running sandboxes from whose disk nothing may be executed. gVisor mounts it again without that flag, which in a user namespace the kernel does not allow.
func checkMount(folder string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(folder, &fs); err != nil {
		return fmt.Errorf("look at the disk of %s: %w", folder, err)
	}
	if fs.Flags&unix.ST_NOEXEC == 0 {
		return nil
	}
	return problem.New(problem.RuntimeFolder, "nothing may be executed from the disk of the folder for running sandboxes, "+folder+", so no sandbox starts there").
		WithHint("mount it with the option exec (docker run --tmpfs DIR:exec), or set COVE_RUNTIME to a folder elsewhere")
}

func readTrimmed(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}

// requireStatic refuses a dynamically linked binary: gVisor starts it in an empty root, where it would find no
// libraries and die without a word.
func requireStatic(exe string) error {
	f, err := elf.Open(exe)
	if err != nil {
		return fmt.Errorf("read %s: %w", exe, err)
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return problem.New(problem.DynamicBinary, exe+" is dynamically linked, which the gvisor engine cannot use").
				WithHint("build cove with CGO_ENABLED=0 (make build)")
		}
	}
	return nil
}

// cpus is how many CPUs the sandbox's processes must be bound to, because no cgroup limits them; 0 means none.
func (s *running) cpus() int {
	n := int(math.Ceil(s.spec.Limits.CPUs))
	if s.cgroup != nil || n >= runtime.NumCPU() {
		return 0
	}
	return max(n, 1)
}

// watchProcess returns a channel that is closed when the process pid has ended, reaped or not.
func watchProcess(pid int) (<-chan struct{}, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	exit := make(chan struct{})
	go func() {
		defer close(exit)
		defer func() { _ = f.Close() }()
		_ = conn.Read(func(fd uintptr) bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
		})
	}()
	return exit, nil
}

// reap takes the exit status of a process that has ended, if that is for us to do: where cove is PID 1, what a dead warden started is its child.
func reap(pid int) { _, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) }

// processTree lists pids and everything below them.
func processTree(pids ...int) []int {
	all := append([]int(nil), pids...)
	for i := 0; i < len(all); i++ {
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", all[i]))
		for _, t := range tasks {
			for _, c := range strings.Fields(readTrimmed(fmt.Sprintf("/proc/%d/task/%s/children", all[i], t.Name()))) {
				if pid, err := strconv.Atoi(c); err == nil {
					all = append(all, pid)
				}
			}
		}
	}
	return all
}

// heldMemory returns the bytes that a sandbox holds and cannot be made to drop.
func (s *running) heldMemory() int64 {
	return statusBytes(s.sentry, "RssAnon:") + s.memoryFile.size(s.sentry)
}

// Memory implements sandbox.Weigher.
func (s *running) Memory() int64 {
	if ended(s.done) {
		return 0
	}
	return s.heldMemory()
}

// memoryFile is the file in memory that has all that code and tmpfs have. Most of its pages are mapped by the code's processes alone, so what the sentry has
// resident of it says little. Every request that is about a session asks for its size, and a sentry has hundreds of files open: where it was is remembered.
type memoryFile struct{ path atomic.Pointer[string] }

// size returns the bytes in the memory file of a sentry.
func (f *memoryFile) size(sentry int) int64 {
	if path := f.path.Load(); path != nil {
		if n, ok := sizeOfMemoryFile(*path); ok {
			return n
		}
	}
	dir := fmt.Sprintf("/proc/%d/fd", sentry)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if n, ok := sizeOfMemoryFile(path); ok {
			f.path.Store(&path)
			return n
		}
	}
	return statusBytes(sentry, "RssShmem:")
}

// sizeOfMemoryFile returns the bytes in a memory file, unless something else is at the path.
func sizeOfMemoryFile(path string) (bytes int64, ok bool) {
	if target, err := os.Readlink(path); err != nil || !strings.HasPrefix(target, "/memfd:runsc-memory") {
		return 0, false
	}
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0, false
	}
	return st.Blocks * 512, true
}

// statusBytes returns an amount of memory that a process's status names.
func statusBytes(pid int, key string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, key); ok {
			kib, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}
