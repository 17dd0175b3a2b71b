package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/workspace"
	"cove/internal/python/kernel"
)

// restore starts a sandbox from the checkpoint, in one that waits if there is any.
func (s *Live) restore(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	saver, err := sandbox.SaverOf(s.opts.Engine)
	if err != nil {
		return nil, err
	}
	if s.opts.Prepared != nil {
		if waiting := s.opts.Prepared(ctx, spec); waiting != nil {
			if sb, err := s.restoreInto(ctx, waiting); err == nil || ctx.Err() != nil {
				return sb, err
			}
			// It has ended meanwhile, or has another guest than the checkpoint.
		}
	}
	prepared, err := saver.Prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	return s.restoreInto(ctx, prepared)
}

func (s *Live) restoreInto(ctx context.Context, prepared sandbox.Prepared) (sandbox.Sandbox, error) {
	sb, err := prepared.Restore(ctx, s.opts.Checkpoint)
	if err != nil {
		return nil, errors.Join(err, prepared.Stop(context.WithoutCancel(ctx)))
	}
	return sb, nil
}

// takeOver attaches to the kernels of a sandbox that was saved or left, which have these names, and records the files of its workspace as known. A sandbox
// without a kernel gets one when code is to run.
func (s *Live) takeOver(ctx context.Context, names map[string]int, reseed bool) error {
	if err := s.attach(ctx, names, reseed); err != nil {
		return err
	}
	_, err := s.changes(ctx)
	return err
}

// Save waits until no execution runs and writes the session to files in folder, an empty folder, or where the engine
// keeps checkpoints, and returns what it has written. With keep the session goes on afterwards; without, it is closed
// if saving succeeded. The session's variables, files, threads and child processes are saved; connections out of the sandbox are not.
func (s *Live) Save(ctx context.Context, folder string, keep bool) (saved sandbox.Checkpoint, err error) {
	if _, err := sandbox.SaverOf(s.opts.Engine); err != nil {
		return saved, err
	}
	if err := s.settleDown(ctx, keep); err != nil {
		return saved, fmt.Errorf("save: %w", err)
	}
	defer s.running.Release(everything)
	if err := s.saveable(); err != nil {
		return saved, err
	}
	if _, err := s.main(ctx); err != nil && !errors.Is(err, errParked) {
		return saved, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sandbox == nil || s.closed {
		return saved, lost()
	}
	err = s.detach(ctx)
	s.dropScanner()
	s.endNetwork()
	_ = s.link.Close()
	s.forget()
	if err != nil {
		return saved, errors.Join(fmt.Errorf("save: %w", explain(s.sandbox, err)), s.reconnect(context.WithoutCancel(ctx)))
	}
	saved, err = s.sandbox.(sandbox.Checkpointer).Checkpoint(ctx, folder, keep)
	if err == nil {
		s.touched.Store(false)
	}
	if err == nil && !keep {
		s.closed, s.link, s.sandbox = true, nil, nil
		s.processes.Store(nil)
		return saved, nil
	}
	if err != nil {
		err = explain(s.sandbox, err)
	}
	return saved, errors.Join(err, s.reconnect(context.WithoutCancel(ctx)))
}

// readersGrace is how long the save of a session that goes on afterwards waits for calls that read its files. Other calls of the session are queued behind the
// save meanwhile.
const readersGrace = 2 * time.Second

// settleDown acquires all of running, so that nothing else uses the session.
func (s *Live) settleDown(ctx context.Context, keep bool) error {
	if !keep {
		return s.running.Acquire(ctx, everything)
	}
	if s.connections.Load() > 0 {
		return problem.New(problem.SessionBusy, "the session was not saved, because connections to its ports are open")
	}
	if s.outward.Load().busy() {
		return problem.New(problem.SessionBusy, "the session was not saved, because connections of its programs are in use")
	}
	bounded, cancel := context.WithTimeout(ctx, readersGrace)
	defer cancel()
	if s.running.Acquire(bounded, everything) != nil {
		return problem.New(problem.SessionBusy, "the session was not saved, because it was in use all the time")
	}
	return nil
}

// Refiller is a workspace that is being filled again; see Live.Refill.
type Refiller = interface {
	Write(ctx context.Context, path string, r io.Reader) (workspace.Entry, error)
	Move(ctx context.Context, from, to string) error
	Remove(ctx context.Context, path string, all bool) error
	MakeFolder(ctx context.Context, path string) error
}

// Refill has refill put files into the workspace of the next sandbox, when the session loses the one that it has, before anything else uses it.
func (s *Live) Refill(refill func(ctx context.Context, t Refiller) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refill = refill
}

// Root sets what the session starts from when it loses its sandbox: a checkpoint that Save made of it, and the kernels that KernelPIDs returned then.
func (s *Live) Root(from sandbox.Checkpoint, kernels map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Checkpoint, s.opts.Kernels, s.opts.Reseed = from, kernels, false
	clear(s.inputs) // the checkpoint has these files, with later changes
}

func lost() error {
	return problem.New(problem.SessionLost, "the session cannot be saved: its sandbox has ended")
}

func (s *Live) saveable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sandbox == nil || ended(s.sandbox.Done()) || s.closed {
		return lost()
	}
	return nil
}

// main makes sure that there is an interpreter in kernel.Main.
func (s *Live) main(ctx context.Context) (*run, error) {
	k, err := s.find(kernel.Main)
	if err != nil {
		return nil, err
	}
	return s.occupy(ctx, k)
}

// Touched says whether something other than an execution has changed the session since it was opened or saved, or may be doing so: a process that runs.
func (s *Live) Touched() bool {
	running := s.processes.Load()
	return s.touched.Load() || running != nil && running.Load() > 0
}

// reconnect goes on with a sandbox after it was saved, or after saving it has failed.
func (s *Live) reconnect(ctx context.Context) error {
	err := s.rejoin(ctx)
	if err != nil && !s.adopted {
		err = errors.Join(err, s.drop())
	}
	return err
}

// Lost is closed when the session's sandbox has ended without Close or Save, as one that ran out of memory. The next
// execution starts another.
func (s *Live) Lost() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sandbox == nil {
		gone := make(chan struct{})
		if !s.closed {
			close(gone)
		}
		return gone
	}
	return s.sandbox.Done()
}

// Trim has the interpreter return unused memory to the system, before the session is saved.
func (s *Live) Trim(ctx context.Context) error {
	return s.asked(ctx, kernel.Main, func(k *kernel.Kernel) error { return k.Trim(ctx) })
}

// Rehearse runs a cell as a user would and discards its effects. The first cell runs slowly: a new interpreter still has to load its code, and a restored
// sandbox its memory.
func (s *Live) Rehearse(ctx context.Context) error {
	return s.RehearseCode(ctx, "print('', end='')\n1 + 1")
}

// RehearseCode is Rehearse with other code.
func (s *Live) RehearseCode(ctx context.Context, code string) error {
	for e, err := range s.Execute(ctx, kernel.Request{Code: code}) {
		if err != nil {
			return fmt.Errorf("rehearse: %w", err)
		}
		if done, ok := e.(kernel.Done); ok && done.Outcome != kernel.OutcomeOK {
			return problem.New(problem.RehearsalFailed, "a new session does not work: "+string(done.Outcome)+" "+done.Message)
		}
	}
	t, err := s.main(ctx)
	if err != nil {
		return err
	}
	if err := t.kernel.Forget(ctx); err != nil {
		return explain(t.sandbox, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.slot.pristine = true
	return nil
}

// RehearseResume does to the interpreter what resuming the session does.
func (s *Live) RehearseResume(ctx context.Context) error {
	return s.asked(ctx, kernel.Main, func(k *kernel.Kernel) error { return k.Renew(ctx) })
}

// direct changes the workspace of a sandbox that no other goroutine uses yet.
type direct struct{ *guestlink.Link }

func (d direct) Write(ctx context.Context, path string, r io.Reader) (workspace.Entry, error) {
	return d.Link.Write(ctx, path, r, putMode)
}

// UseFiles implements ondisk.FileUser.
func (d direct) UseFiles(_ context.Context, _ bool, use func(guestlink.Files) error) error {
	return use(d.Link)
}

func (d direct) Move(ctx context.Context, from, to string) error {
	_, err := d.Link.Move(ctx, from, to)
	return err
}
