package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
)

// readyVariable tells a keeper to which file descriptor it says that it is ready.
const readyVariable = "COVE_KEEPER_READY"

// word is what a keeper reports at the end of its start.
type word struct {
	Fault   *fault   `json:"fault,omitempty"`
	Notices []string `json:"notices,omitempty"`
}

// Launch starts cmd as a keeper in the background, in a session of its own and without a terminal, and waits until it reports (see Reporter); its notices
// are returned. What the keeper writes goes to the file log, which is replaced. When ctx ends first, the keeper is asked to end.
func Launch(ctx context.Context, cmd *exec.Cmd, log string) (notices []string, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out, err := os.OpenFile(log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("start a keeper: %w", err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{w}
	cmd.Env = append(cmd.Environ(), readyVariable+"=3")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// Files that this process has inherited by accident, such as a lock of the calling script's, must not stay open for as long as the keeper runs.
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	err = cmd.Start()
	_, _ = w.Close(), out.Close()
	if err != nil {
		return nil, fmt.Errorf("start a keeper: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	var said word
	if err := json.NewDecoder(bufio.NewReader(io.LimitReader(r, 1<<20))).Decode(&said); err != nil {
		_ = cmd.Wait()
		return nil, died(ctx, cmd, log)
	}
	if said.Fault != nil {
		_ = cmd.Wait()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return said.Notices, said.Fault.err()
	}
	if !stop() { // ctx has ended: the keeper is ready, and was asked to end
		_ = cmd.Wait()
		return nil, ctx.Err()
	}
	return said.Notices, cmd.Process.Release()
}

func died(ctx context.Context, cmd *exec.Cmd, log string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text, _ := os.ReadFile(log)
	last := strings.TrimSpace(string(text[max(0, len(text)-2000):]))
	return problem.New(problem.KeeperFailed, "the process that was to keep the session in memory ended: "+cmd.ProcessState.String()).
		WithCause(errors.New(last))
}

// Reporter returns the function that a keeper calls once to report to its launcher that it is ready, or why it ends. Reporter reads and clears the environment
// variable that says where to; in a process that Launch has not started, the function does nothing.
func Reporter() func(notices []string, err error) {
	fd, err := strconv.Atoi(os.Getenv(readyVariable))
	if err != nil {
		return func([]string, error) {}
	}
	_ = os.Unsetenv(readyVariable)
	syscall.CloseOnExec(fd) // otherwise a program that the keeper starts would have it too, and the launcher would go on waiting
	return func(notices []string, err error) {
		f := os.NewFile(uintptr(fd), "launcher")
		defer f.Close()
		text, jsonErr := json.Marshal(word{Fault: faultOf(err), Notices: notices})
		if jsonErr == nil {
			_, _ = f.Write(text)
		}
	}
}
