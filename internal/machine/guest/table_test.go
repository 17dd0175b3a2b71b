package guest

import (
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A process may end before the reaper first runs; nothing tells of its end again.
func TestReapsWhatEndedBeforeTheReaperRan(t *testing.T) {
	table, err := newTable(false)
	if err != nil {
		t.Fatal(err)
	}
	pid, exit, err := table.start("/bin/true", []string{"true"}, &syscall.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	go table.reap()
	select {
	case status := <-exit:
		if !status.Exited() || status.ExitStatus() != 0 {
			t.Errorf("true ended with %v", status)
		}
	case <-time.After(10 * time.Second):
		t.Error("nobody heard of the end of a process that ended early")
	}
}
