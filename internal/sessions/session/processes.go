package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/machine/sandbox"
)

const (
	// mostAttached is how many follow processes of a session or write to them at a time: each takes a channel of the link, which has a bounded number for everything.
	mostAttached = 32
	// writeGrace is how long a save waits for a write to a process; one that takes longer goes on beside it, for the process may never read.
	writeGrace = time.Second
	// followsInVain is how often a follower connects again without having got anything.
	followsInVain = 8
)

// StartProcess starts a process beside the session's kernels, under an id that its caller chooses. It belongs to the session: it goes on when its caller has left,
// and is saved and restored with the session. Problems: process_invalid, program_missing, invalid_path, too_many_processes, processes_absent.
func (s *Live) StartProcess(ctx context.Context, id string, start process.Start) (info process.Info, err error) {
	if err := start.Check(); err != nil {
		return info, err
	}
	err = s.reached(ctx, func(l *guestlink.Link) error {
		s.mu.Lock()
		sb := s.sandbox
		s.mu.Unlock()
		if sb == nil {
			return problem.New(problem.SessionLost, "the sandbox of the session has ended")
		}
		env, dir := s.environment(sb.Layout()), start.Dir
		s.mu.Lock()
		packages := s.paths(s.installed)
		s.mu.Unlock()
		maps.Copy(env, packages.Variables())
		if i := s.opts.Env.Image; i != nil && dir == "" {
			dir = i.Dir
		}
		if dir != "" && !path.IsAbs(dir) {
			dir = path.Join(sb.Layout().Workspace, dir)
		}
		info, err = l.StartProcess(ctx, guestlink.ToStart(id, start, start.Environment(env), dir, s.opts.Limits.Memory))
		if err == nil {
			s.touched.Store(true)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.expectProcess(l, id)
		}
		return err
	})
	return info, err
}

// Processes lists the session's processes that run, and the last that have ended, the oldest first.
func (s *Live) Processes(ctx context.Context) (all []process.Info, err error) {
	err = s.reached(ctx, func(l *guestlink.Link) error {
		all, err = l.Processes(ctx)
		return err
	})
	return all, err
}

// ResizeProcess gives the terminal of a process another size. Problems: process_not_found, process_ended, invalid_request where it has no terminal.
func (s *Live) ResizeProcess(ctx context.Context, id string, size process.Size) error {
	if err := size.Check(); err != nil {
		return err
	}
	return s.reached(ctx, func(l *guestlink.Link) error { return l.ResizeProcess(ctx, id, size) })
}

// SignalProcess sends a signal to the group of a process, or with all to everything that it has started, also what it has left behind. Problems: process_not_found,
// process_ended.
func (s *Live) SignalProcess(ctx context.Context, id string, signal syscall.Signal, all bool) error {
	return s.reached(ctx, func(l *guestlink.Link) error {
		s.touched.Store(true)
		return l.SignalProcess(ctx, id, int(signal), all)
	})
}

// WriteProcess writes to the input of a process what r has, and ends the input with end. It waits for as long as the process does not read. A session that is saved
// meanwhile waits a moment for that; then writing fails, with a problem of code session_taken, and how much was written is not known.
func (s *Live) WriteProcess(ctx context.Context, id string, r io.Reader, end bool) (n int64, err error) {
	leave, err := s.attachProcess()
	if err != nil {
		return 0, err
	}
	defer leave()
	over, err := s.share(ctx)
	if err != nil {
		return 0, err
	}
	once := sync.OnceFunc(over)
	defer once()
	defer time.AfterFunc(writeGrace, once).Stop()
	l, sb, err := s.connected(ctx)
	if err != nil {
		return 0, err
	}
	s.touched.Store(true)
	n, err = l.WriteProcess(ctx, id, r, end)
	if err != nil && ctx.Err() == nil && guestlink.Cut(err) && !ended(sb.Done()) {
		err = problem.New(problem.SessionTaken, "the session was saved while the process did not read; how much it was given is not known").WithCause(err)
	}
	return n, explain(sb, err)
}

// FollowProcess yields what a process emits from a position on, the last of it its end. It does not keep the session from being saved, and goes on after that. It
// ends with ctx, and with a problem when the sandbox is lost. Problems: process_not_found, too_many_processes.
func (s *Live) FollowProcess(ctx context.Context, id string, from int64) iter.Seq2[process.Event, error] {
	return func(yield func(process.Event, error) bool) {
		leave, err := s.attachProcess()
		if err != nil {
			yield(process.Event{}, err)
			return
		}
		defer leave()
		var first sandbox.Sandbox
		for vain := 0; ; vain++ {
			l, sb, err := s.connected(ctx)
			if err == nil && first != nil && sb != first {
				err = problem.New(problem.SessionLost, "the sandbox of the session has ended, and the process with it").WithCause(first.Cause())
			}
			if err != nil {
				yield(process.Event{}, err)
				return
			}
			first = sb
			for e, failed := range l.FollowProcess(ctx, id, from) {
				if err = failed; err != nil {
					break
				}
				from, vain = e.Next(), 0
				if !yield(e, nil) || e.Kind == process.Ended {
					return
				}
			}
			if ctx.Err() != nil || !guestlink.Cut(err) || vain >= followsInVain {
				yield(process.Event{}, errors.Join(ctx.Err(), explain(sb, err)))
				return
			}
			awaitEnd(l.Done(), breakGrace)
		}
	}
}

// attachProcess counts somebody who follows a process or writes to one, until leave is called.
func (s *Live) attachProcess() (leave func(), err error) {
	leave = func() { s.attached.Add(-1) }
	if s.attached.Add(1) > mostAttached {
		leave()
		return nil, problem.New(problem.TooManyProcesses, fmt.Sprintf("%d clients follow processes of the session or write to them, which is the most at a time", mostAttached)).
			WithHint("stop following one that is not needed any more")
	}
	return leave, nil
}

// expectProcesses notes which processes run in the sandbox that the session has just connected to. The caller holds mu.
func (s *Live) expectProcesses() {
	s.processes.Store(new(atomic.Int32))
	for _, id := range s.link.Running() {
		s.expectProcess(s.link, id)
	}
}

// expectProcess notes that a process runs, until it has ended. The caller holds mu.
func (s *Live) expectProcess(l *guestlink.Link, id string) {
	running := s.processes.Load()
	if l != s.link || running == nil {
		return
	}
	running.Add(1)
	go func() {
		if err := l.AwaitProcess(context.Background(), id); err == nil {
			s.touched.Store(true) // what it did last is to be saved
		}
		running.Add(-1)
	}()
}
