package ondisk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/snapshot"
	"cove/internal/python/kernel"
	"cove/internal/sessions/ondisk"
)

// fakeSandbox is a sandbox that was left by a fake: it runs each line that its connection brings, and answers with all that ran in it. "die" ends
// it, "full" fills the disk until "empty".
type fakeSandbox struct {
	mu    sync.Mutex
	ran   []string
	full  bool
	done  chan struct{}
	cause error
	once  sync.Once
}

func newFakeSandbox(ran []string) *fakeSandbox {
	return &fakeSandbox{ran: ran, done: make(chan struct{})}
}

func (b *fakeSandbox) ID() string             { return "sbx-fake" }
func (b *fakeSandbox) Layout() sandbox.Layout { return sandbox.NewLayout("/w", "/t", nil) }
func (b *fakeSandbox) Done() <-chan struct{}  { return b.done }
func (b *fakeSandbox) Cause() error           { return b.cause }

func (b *fakeSandbox) end(cause error) {
	b.once.Do(func() {
		b.cause = cause
		close(b.done)
	})
}

func (b *fakeSandbox) Stop(context.Context) error {
	b.end(nil)
	return nil
}

func (b *fakeSandbox) Dial(context.Context) (io.ReadWriteCloser, error) {
	near, far := net.Pipe()
	go func() {
		<-b.done
		far.Close()
	}()
	go b.serve(far)
	return near, nil
}

func (b *fakeSandbox) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewScanner(conn)
	for in.Scan() {
		code := in.Text()
		b.mu.Lock()
		switch code {
		case "die":
			b.end(problem.New(problem.SessionOOM, "it used too much memory"))
		case "full", "empty":
			b.full = code == "full"
		}
		if code != "" {
			b.ran = append(b.ran, code)
		}
		text, _ := json.Marshal(b.ran)
		b.mu.Unlock()
		if code == "die" {
			return
		}
		if _, err := conn.Write(append(text, '\n')); err != nil {
			return
		}
	}
}

func (b *fakeSandbox) Checkpoint(_ context.Context, dir string, keep bool) (sandbox.Checkpoint, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full {
		return sandbox.Checkpoint{}, &os.PathError{Op: "write", Path: "pages.img", Err: unix.ENOSPC}
	}
	text, err := json.Marshal(b.ran)
	if err != nil {
		return sandbox.Checkpoint{}, err
	}
	if !keep {
		b.end(nil)
	}
	return sandbox.CheckpointIn(dir), os.WriteFile(filepath.Join(dir, "state"), text, 0o600)
}

// joined is a session in memory whose sandbox another process keeps.
type joined struct {
	*fake
	sb     sandbox.Sandbox
	stream io.ReadWriteCloser
	in     *bufio.Reader
}

func (m *machine) join(ctx context.Context, running sandbox.Sandbox, _ *snapshot.Snapshot) (ondisk.Live, error) {
	if m.refuses != nil {
		return nil, m.refuses
	}
	stream, err := running.Dial(ctx)
	if err != nil {
		return nil, err
	}
	j := &joined{fake: &fake{closed: make(chan struct{}), lost: make(chan struct{})}, sb: running, stream: stream, in: bufio.NewReader(stream)}
	m.last = j.fake
	return j, j.say("")
}

func (j *joined) say(code string) error {
	if _, err := fmt.Fprintln(j.stream, code); err != nil {
		return err
	}
	line, err := j.in.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, &j.ran)
}

func (j *joined) Execute(_ context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		done := kernel.Done{Outcome: kernel.OutcomeOK}
		if err := j.say(req.Code); err != nil {
			<-j.sb.Done()
			done = kernel.Done{Outcome: kernel.OutcomeSandboxDied, Lost: kernel.LostSession}
		}
		yield(done, nil)
	}
}

func (j *joined) Save(ctx context.Context, dir string, keep bool) (sandbox.Checkpoint, error) {
	j.stream.Close()
	saved, failed := j.sb.(sandbox.Checkpointer).Checkpoint(ctx, dir, keep)
	var err error
	if j.stream, err = j.sb.Dial(ctx); err == nil {
		j.in = bufio.NewReader(j.stream)
	}
	return saved, errors.Join(failed, err)
}

func (j *joined) Lost() <-chan struct{} { return j.sb.Done() }

func (j *joined) Leave(context.Context) (sandbox.Sandbox, error) {
	return j.sb, j.stream.Close()
}

func (j *joined) Close(ctx context.Context) error {
	return errors.Join(j.stream.Close(), j.sb.Stop(ctx))
}

// keeping is a keeper in this process.
type keeping struct {
	end   context.CancelFunc // as a signal does
	ended chan struct{}
	err   error
}

// bring brings the session lab into memory.
func bring(t *testing.T, store ondisk.Store, idle, saveAfter time.Duration) *keeping {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	k := &keeping{end: cancel, ended: make(chan struct{})}
	ready := make(chan struct{})
	o := ondisk.KeepOptions{Options: (&machine{}).options(), Idle: idle, SaveAfter: saveAfter, Ready: func([]string) { close(ready) }}
	go func() {
		defer close(k.ended)
		k.err = store.Keep(ctx, "lab", o)
	}()
	t.Cleanup(func() {
		cancel()
		<-k.ended
	})
	select {
	case <-ready:
	case <-k.ended:
		t.Fatalf("keep: %v", k.err)
	}
	return k
}

// wait waits for the keeper's end.
func (k *keeping) wait(t *testing.T) {
	t.Helper()
	<-k.ended
	if k.err != nil {
		t.Errorf("the keeper ended with %v", k.err)
	}
}

// keepInProcess is a keeper that a test can kill.
func keepInProcess(dir, name string) int {
	err := ondisk.Store{Dir: dir}.Keep(context.Background(), name, ondisk.KeepOptions{
		Options: (&machine{}).options(), Ready: func([]string) { fmt.Println("ready") },
	})
	if err != nil {
		fmt.Println(problem.Of(err).Code)
		return 1
	}
	return 0
}
