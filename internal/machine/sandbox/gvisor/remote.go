package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// remote is the engine's end of a warden.
type remote struct {
	calls   *rpc.Client
	process *os.Process
	stderr  tail
	done    chan struct{} // closed when the warden has ended

	// The engine's mu guards these.
	using   int // sandboxes; it ends with the last
	created int // sandboxes, ever

	busy sync.RWMutex // is held for reading by each call
}

// startWarden starts a warden with runsc's flags. With ownRoot, its sandboxes may have users of their own.
func startWarden(exe string, flags []string, ownRoot bool) (*remote, error) {
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
	cmd.Args = append(append([]string{"runsc"}, flags...), wardenCommand, fmt.Sprintf("--%s=%t", ownRootFlag, ownRoot))
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = processAttributes(ownRoot)
	// Not a pipe of cmd's own: its sandboxes have the other end too, and outlive it.
	said, says, err := os.Pipe()
	if err == nil {
		cmd.Stderr = says
		err = cmd.Start()
		_ = says.Close()
	}
	if err != nil {
		_ = conn.Close()
		if said != nil {
			_ = said.Close()
		}
		return nil, startProblem(err)
	}
	go func() {
		_, _ = io.Copy(&w.stderr, said)
		_ = said.Close()
	}()
	go func() {
		_ = cmd.Wait()
		close(w.done)
	}()
	w.calls, w.process = rpc.NewClient(conn), cmd.Process
	return w, nil
}

// call makes one call and waits for its end, or for ctx's; then the call goes on without anyone.
func (w *remote) call(ctx context.Context, method string, args, reply any) error {
	w.busy.RLock()
	call := w.calls.Go("Warden."+method, args, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		w.busy.RUnlock()
	case <-ctx.Done():
		go func() {
			<-call.Done
			w.busy.RUnlock()
		}()
		return context.Cause(ctx)
	}
	if call.Error == nil {
		return nil
	}
	if told := rpc.ServerError(""); errors.As(call.Error, &told) {
		return call.Error
	}
	return &wardenGone{unsent: !errors.Is(call.Error, io.ErrUnexpectedEOF), said: strings.TrimSpace(w.stderr.String())}
}

// wardenGone is the error of a call whose warden has ended.
type wardenGone struct {
	unsent bool // it never came to the call
	said   string
}

func (e *wardenGone) Error() string {
	return "the process that drives the sandboxes has ended: " + e.said
}

func (w *remote) close() {
	_ = w.calls.Close()
	<-w.done
}

// leave ends the warden when none of its calls is under way, and not its sandboxes: another warden takes them over.
func (w *remote) leave() {
	w.busy.Lock()
	defer w.busy.Unlock()
	_ = w.process.Kill() // it would end them when it is told to end
	<-w.done
	_ = w.calls.Close()
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
