package toolserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// wardenName is what this program is called by when it is the warden of a server.
	wardenName = "cove-tool-server"
	// lifeline is the descriptor of a pipe that nothing is ever written to: it ends when the process that started the warden closes it, or is killed.
	lifeline = 3
	// parting is how long a server that has read the end of its input has to end.
	parting = 2 * time.Second
	// sweepPause is waited between looks for processes that were killed and are still there.
	sweepPause = 5 * time.Millisecond
	// notStarted is the exit code of a warden whose server does not start.
	notStarted = 127
)

// IsWarden says whether a command line is meant for Ward.
func IsWarden(argv []string) bool { return len(argv) > 1 && argv[0] == wardenName }

// Ward runs a server, argv[1:], and exits when it has ended. Whatever ends first, the server or the process that started this one, no process that the server started is left: those
// that it leaves become children of this one, which ends them.
func Ward(argv []string) {
	os.Exit(ward(argv[1:]))
}

func ward(command []string) int {
	unix.CloseOnExec(lifeline)
	runtime.LockOSThread() // Pdeathsig is the end of the thread
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "the processes of this server cannot be watched over:", err)
		return notStarted
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, "it does not start:", err)
		return notStarted
	}
	p, err := os.StartProcess(path, command, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "it does not start:", err)
		return notStarted
	}
	// The server alone has its input and output: they end with it.
	_ = os.Stdin.Close()
	_ = os.Stdout.Close()
	var told sync.Once
	end := func() { told.Do(killDescendants) }
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(lifeline, "lifeline"))
		time.Sleep(parting)
		end()
	}()
	code := reapUntil(p.Pid)
	end()
	reapUntil(0)
	return code
}

// reapUntil waits for children until the one with this id has ended, and returns its exit code; 0: until there are none.
func reapUntil(pid int) int {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0
		case got == pid:
			return status.ExitStatus()
		}
	}
}

// killDescendants kills every process below this one. What is killed may have started another meanwhile, so it looks until there is none; those that others reap are there a moment longer.
func killDescendants() {
	for range 1000 {
		found := descendants(os.Getpid())
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(sweepPause)
	}
}

// descendants returns the processes below one that are not dead.
func descendants(root int) (out []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	for next := []int{root}; len(next) > 0; next = next[1:] {
		out = append(out, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return out
}

// parentOf returns the parent of a process that is not dead; see proc_pid_stat(5).
func parentOf(pid int) (int, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	_, behind, _ := strings.Cut(string(text[max(0, strings.LastIndexByte(string(text), ')')):]), " ") // the name may have anything in it
	fields := strings.Fields(behind)
	if len(fields) < 2 || fields[0] == "Z" {
		return 0, false
	}
	parent, err := strconv.Atoi(fields[1])
	return parent, err == nil
}
