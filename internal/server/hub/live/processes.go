package live

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
)

// StartProcess starts a process in a session, which goes on when its caller has left, and is saved, paused, resumed and forked with the session. Needs
// auth.SessionsExecute. Problems: process_invalid, program_missing, invalid_path, too_many_processes, processes_absent.
func (m *Manager) StartProcess(ctx context.Context, who auth.Principal, session string, start process.Start) (info process.Info, err error) {
	if err = who.Require(auth.SessionsExecute); err == nil {
		err = m.spareMemory(ctx, session)
	}
	id := ident.New(ident.Process)
	if err == nil {
		err = m.UseSession(ctx, who, session, func(ctx context.Context, l Live) error {
			info, err = l.StartProcess(ctx, id, start)
			return err
		})
	}
	m.work.WriteAudit(ctx, who, "process.start", session, id, err)
	return info, err
}

// RunProcess starts a process as StartProcess does, and yields what it emits from its first byte on, as FollowProcess does. The process goes on when its follower has left. Needs
// auth.SessionsRead, too.
func (m *Manager) RunProcess(ctx context.Context, who auth.Principal, session string, start process.Start) (process.Info, iter.Seq2[process.Event, error], error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return process.Info{}, nil, err
	}
	start.Followed = true
	info, err := m.StartProcess(ctx, who, session, start)
	return info, m.emitted(ctx, who, session, info.ID, 0), err
}

// Processes lists a session's processes that run, and the last that have ended, the oldest first. Needs auth.SessionsRead.
func (m *Manager) Processes(ctx context.Context, who auth.Principal, session string) (all []process.Info, err error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return nil, err
	}
	err = m.PeekSession(ctx, who, session, func(ctx context.Context, l Live) error {
		all, err = l.Processes(ctx)
		return err
	})
	return all, err
}

// Process returns one of them. Needs auth.SessionsRead. Problems: process_not_found.
func (m *Manager) Process(ctx context.Context, who auth.Principal, session, id string) (process.Info, error) {
	all, err := m.Processes(ctx, who, session)
	if err != nil {
		return process.Info{}, err
	}
	for _, p := range all {
		if p.ID == id {
			return p, nil
		}
	}
	return process.Info{}, problem.New(problem.ProcessNotFound, "there is no such process").WithHint("list the processes of the session; of those that have ended the last are kept")
}

// TellProcess writes to the input of a process what r has, and ends the input with end. It waits for as long as the process does not read, until somebody else
// needs the session. Needs auth.SessionsExecute. Problems: process_not_found, process_ended, too_many_processes, session_taken.
func (m *Manager) TellProcess(ctx context.Context, who auth.Principal, session, id string, r io.Reader, end bool) (n int64, err error) {
	if err := who.Require(auth.SessionsExecute); err != nil {
		return 0, err
	}
	err = m.yielding(ctx, who, session, m.AcquireSession, func(ctx context.Context, l Live) error {
		n, err = l.WriteProcess(ctx, id, typing{r, func(keys []byte) { m.echoes.typed(id, keys) }}, end)
		return err
	})
	return n, err
}

// ResizeProcess gives the terminal of a process another size. Needs auth.SessionsExecute. Problems: process_not_found, process_ended, process_invalid.
func (m *Manager) ResizeProcess(ctx context.Context, who auth.Principal, session, id string, size process.Size) error {
	if err := who.Require(auth.SessionsExecute); err != nil {
		return err
	}
	return m.UseSession(ctx, who, session, func(ctx context.Context, l Live) error { return l.ResizeProcess(ctx, id, size) })
}

// SignalProcess sends a signal, by its name or number, to the group of a process, or with all to everything that it has started. Needs auth.SessionsExecute.
// Problems: process_not_found, process_ended, process_invalid.
func (m *Manager) SignalProcess(ctx context.Context, who auth.Principal, session, id, signal string, all bool) error {
	err := who.Require(auth.SessionsExecute)
	if err == nil {
		err = m.UseSession(ctx, who, session, func(ctx context.Context, l Live) error {
			number, err := process.ParseSignal(signal)
			if err != nil {
				return err
			}
			return l.SignalProcess(ctx, id, number, all)
		})
	}
	m.work.WriteAudit(ctx, who, "process.signal", session, id, err)
	return err
}

// FollowProcess yields what a process emits from a position of its output on, the last of it its end. Secrets in it are masked, as Redaction says. It keeps the session in memory, until somebody else needs the
// session. Needs auth.SessionsRead. Problems: process_not_found, session_taken.
func (m *Manager) FollowProcess(ctx context.Context, who auth.Principal, session, id string, from int64) (iter.Seq2[process.Event, error], error) {
	if _, err := m.Process(ctx, who, session, id); err != nil {
		return nil, err
	}
	return m.emitted(ctx, who, session, id, from), nil
}

func (m *Manager) emitted(ctx context.Context, who auth.Principal, session, id string, from int64) iter.Seq2[process.Event, error] {
	return func(yield func(process.Event, error) bool) {
		left := errors.New("the follower has left")
		err := m.yielding(ctx, who, session, m.acquireUntouched, func(ctx context.Context, l Live) error {
			follow := func(ctx context.Context, from int64) iter.Seq2[process.Event, error] {
				return l.FollowProcess(ctx, id, from)
			}
			typed, leave := m.echoes.follow(id)
			defer leave()
			for e, err := range masked(ctx, m.RedactionIn(ctx, who.Project, who.Key, session), from, typed, follow) {
				if err != nil {
					return err
				}
				if !yield(e, nil) {
					return left
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, left) {
			yield(process.Event{}, err)
		}
	}
}

// yieldGrace is for what is about to end by itself.
const yieldGrace = time.Second

// yielding keeps a session in memory while f runs, and ends the context of f when somebody waits to have the session exclusively, as a pause does.
func (m *Manager) yielding(ctx context.Context, who auth.Principal, session string, acquire func(ctx context.Context, project, id string) (*seat, error), f func(ctx context.Context, l Live) error) error {
	s, err := acquire(ctx, who.Project, session)
	if err != nil {
		return err
	}
	taken := problem.New(problem.SessionTaken, "somebody else needs the session, as to pause it").WithHint("follow its processes, or write to them, again when the session is to go on")
	return m.withSession(ctx, s, func(ctx context.Context, l Live) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		wanted := m.wanted(s)
		go func() {
			select {
			case <-wanted:
			case <-ctx.Done():
				return
			}
			select {
			case <-time.After(yieldGrace):
				cancel(taken)
			case <-ctx.Done():
			}
		}()
		err := f(ctx, l)
		if errors.Is(context.Cause(ctx), taken) && err != nil {
			return taken
		}
		return err
	})
}

// wanted returns a channel that is closed when somebody waits to have a session exclusively.
func (m *Manager) wanted(s *seat) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.wantedSignal == nil {
		s.wantedSignal = make(chan struct{})
		if s.exclusiveGate != nil {
			wanted := s.wantedSignal
			close(wanted)
			s.wantedSignal = nil
			return wanted
		}
	}
	return s.wantedSignal
}
