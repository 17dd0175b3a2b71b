package gvisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// remote is the engine's end of a warden.
type remote struct {
	calls  *rpc.Client
	stderr tail
	done   chan struct{} // closed when the warden has ended
}

// startWarden starts a warden with runsc's flags.
func startWarden(exe string, flags []string) (*remote, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("connect to a warden: %w", err)
	}
	mine, theirs := os.NewFile(uintptr(fds[0]), "warden"), os.NewFile(uintptr(fds[1]), "engine")
	defer func() { _, _ = mine.Close(), theirs.Close() }()
	conn, err := net.FileConn(mine)
	if err != nil {
		return nil, fmt.Errorf("connect to a warden: %w", err)
	}
	w := &remote{done: make(chan struct{})}
	cmd := exec.Command(exe)
	cmd.Args = append(append([]string{"runsc"}, flags...), wardenCommand)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stderr = &w.stderr
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = processAttributes()
	if err := w.run(cmd); err != nil {
		_ = conn.Close()
		return nil, startProblem(err)
	}
	w.calls = rpc.NewClient(conn)
	return w, nil
}

// run starts the warden from a goroutine that keeps its OS thread for as long as the warden lives, because the
// kernel kills a process with such attributes when the thread that started it ends.
func (w *remote) run(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(w.done)
		}
	}()
	return <-started
}

// call makes one call and waits for its end, or for ctx's; then the call goes on without anyone.
func (w *remote) call(ctx context.Context, method string, args, reply any) error {
	call := w.calls.Go("Warden."+method, args, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if errors.Is(call.Error, rpc.ErrShutdown) || call.Error != nil && ended(w.done) {
		return fmt.Errorf("the process that keeps the sandboxes has ended: %s", strings.TrimSpace(w.stderr.String()))
	}
	return call.Error
}

func (w *remote) close() {
	_ = w.calls.Close()
	<-w.done
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
