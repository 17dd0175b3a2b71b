package gvisor

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"cove/internal/problem"
)

// processAttributes start runsc so that it dies with its owner; as an ordinary user in a user namespace in which that
// user is root, which is all the privilege gVisor needs.
func processAttributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		// A Ctrl-C on the terminal is for cove, which decides what becomes of the sandbox.
		Setpgid: true,
	}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		a.Cloneflags = syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
	}
	return a
}

func startProblem(err error) error {
	if os.Geteuid() != 0 && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL)) {
		return userNamespaceProblem(err)
	}
	return fmt.Errorf("start runsc: %w", err)
}

func userNamespaceProblem(err error) error {
	hint := "allow user namespaces (as root: sysctl -w user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1) or run cove as root"
	if readTrimmed("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
		hint = "as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or run cove as root"
	}
	return problem.New(problem.Unavailable, "user_namespaces", "this machine does not let an ordinary user make user namespaces, which the gvisor engine needs").
		WithHint(hint).WithCause(err)
}

func checkUserNamespaces() error {
	if readTrimmed("/proc/sys/user/max_user_namespaces") == "0" || readTrimmed("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
		return userNamespaceProblem(errors.New("they are switched off"))
	}
	return nil
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
			return problem.New(problem.Unavailable, "dynamic_binary", exe+" is dynamically linked, which the gvisor engine cannot use").
				WithHint("build cove with CGO_ENABLED=0 (make build)")
		}
	}
	return nil
}

// cpusVariable tells our runsc process how many CPUs to keep to, where no cgroup can.
const cpusVariable = "COVE_RUNSC_CPUS"

func cpuCount(s *box) string {
	if s.cgroup != nil {
		return ""
	}
	n := int(math.Ceil(s.spec.Limits.CPUs))
	if n >= runtime.NumCPU() {
		return ""
	}
	return strconv.Itoa(max(n, 1))
}

// findSentry returns the process id of the sentry below runsc, or 0 while there is none.
func findSentry(runsc int) int {
	children := readTrimmed(fmt.Sprintf("/proc/%d/task/%d/children", runsc, runsc))
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", runsc))
	for _, t := range tasks {
		children += " " + readTrimmed(fmt.Sprintf("/proc/%d/task/%s/children", runsc, t.Name()))
	}
	for _, c := range strings.Fields(children) {
		cmdline, _ := os.ReadFile("/proc/" + c + "/cmdline")
		if strings.HasPrefix(string(cmdline), "runsc-sandbox") {
			pid, _ := strconv.Atoi(c)
			return pid
		}
	}
	return 0
}

// residentMemory returns the bytes of a process that cannot be dropped: anonymous and shared memory, not file pages,
// which are programs and the workspace.
func residentMemory(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	var total int64
	for line := range strings.Lines(string(b)) {
		for _, key := range []string{"RssAnon:", "RssShmem:"} {
			if v, ok := strings.CutPrefix(line, key); ok {
				kib, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
				total += kib << 10
			}
		}
	}
	return total
}
