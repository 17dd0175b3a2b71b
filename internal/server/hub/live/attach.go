package live

import (
	"cmp"
	"context"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
	"cove/internal/server/stream"
	"cove/internal/server/transcript"
)

// recordPatience is how long a caller in this process that was given every event waits until the end is recorded.
const recordPatience = 10 * time.Second

// Attachment describes a session that a caller in this process has opened.
type Attachment struct {
	ID       string // ident.Session; a session that was attached before keeps its record when it is attached under the same id
	Name     string // for people; "" is fine
	Packages string // the set; "": the base's
	Memory   int64  // bytes; 0: the base's
	CPUs     float64
}

// AttachSession has the hub run executions and turns in a session that the caller opened and closes. The hub does not save, pause or evict an attached session. The
// caller calls DetachSession to close it. Needs auth.SessionsWrite. Problems: draining, session_attached.
func (m *Manager) AttachSession(ctx context.Context, who auth.Principal, a Attachment, live Live) (record.Session, error) {
	if err := who.Require(auth.SessionsWrite); err != nil {
		return record.Session{}, err
	}
	row, err := m.attachedRow(ctx, who, a)
	if err != nil {
		return record.Session{}, err
	}
	s := newSeat(row)
	s.attached, s.Live, s.ran, s.touched, s.moving = true, live, row.Executions, row.Used, nil
	s.tally.skip(live)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.draining:
		return record.Session{}, drained()
	case m.seats[row.ID] != nil:
		return record.Session{}, problem.New(problem.SessionAttached, "the session is in memory already")
	}
	m.seats[row.ID] = s
	return row, nil
}

// attachedRow writes the record of a session that is about to be attached: a new one, or the one that its id has.
func (m *Manager) attachedRow(ctx context.Context, who auth.Principal, a Attachment) (record.Session, error) {
	row := m.newRow(who, NewSession{Name: a.Name, Packages: a.Packages, Memory: a.Memory, CPUs: a.CPUs})
	row.ID = a.ID
	there, err := m.work.Store.UpdateSession(ctx, who.Project, a.ID, func(s *record.Session) error {
		s.State, s.Reason, s.Used, s.Expires, s.Home, s.Owner = record.SessionActive, "", row.Used, row.Expires, row.Home, row.Owner
		return nil
	})
	if problem.Is(err, problem.NotFound) {
		return row, m.work.Store.AddSession(ctx, row)
	}
	return there, err
}

// isAttached says whether a session in memory is an attached one.
func (m *Manager) isAttached(session string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.seats[session]
	return s != nil && s.attached
}

// DetachSession undoes AttachSession. It interrupts what runs in the session and waits for that until ctx ends. Then it calls end, which closes the session and
// returns the session's state and the reason for it; end is called exactly once, also when DetachSession returns an error. Needs auth.SessionsWrite. Problems:
// session_not_found, session_busy when ctx ended first.
func (m *Manager) DetachSession(ctx context.Context, who auth.Principal, id string, end func() (record.SessionState, string)) error {
	if err := who.Require(auth.SessionsWrite); err != nil {
		end()
		return err
	}
	m.mu.Lock()
	s := m.seats[id]
	if s == nil || !s.attached || s.project != who.Project {
		m.mu.Unlock()
		end()
		return SessionGone()
	}
	s.cancel(SessionGone())
	for s.users > 0 {
		freed := m.freed
		m.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			end()
			return problem.New(problem.SessionBusy, "the session is in use").WithCause(context.Cause(ctx))
		}
		m.mu.Lock()
	}
	m.removeSeat(s)
	used, ran := s.used, s.ran
	m.mu.Unlock()
	state, reason := end()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordPatience)
	defer cancel()
	return m.work.WriteUntilStored(ctx, func(ctx context.Context) error {
		_, err := m.work.Store.UpdateSession(ctx, s.project, s.id, func(row *record.Session) error {
			row.State, row.Reason, row.Used, row.Executions, row.Owner = state, reason, used, ran, ""
			return nil
		})
		return err
	})
}

// RunExecution runs code for a caller in this process and returns when the code has ended. It calls emit for each event at once, one call after the other, and a
// kernel.Done comes last. An error of emit interrupts the code, as the end of ctx does, and is returned. The execution is recorded as others are, with the events that
// Limits.Stream has room for. Where the session returned an error instead of a Done, that is the error. Needs auth.SessionsExecute. Problems: those of StartExecution.
func (m *Manager) RunExecution(ctx context.Context, who auth.Principal, session string, req kernel.Request, emit func(record.Event) error) (record.Execution, error) {
	if err := who.Require(auth.SessionsExecute); err != nil {
		return record.Execution{}, err
	}
	work, end, err := m.BeginWork(ctx)
	if err != nil {
		return record.Execution{}, err
	}
	defer end()
	s, err := m.AcquireSession(ctx, who.Project, session)
	if err != nil {
		return record.Execution{}, err
	}
	defer m.releaseSeat(s)
	e, t, err := m.admitExecution(work, record.Execution{Project: who.Project, User: who.User, Key: who.Key, Session: session, Kernel: req.Kernel, Code: req.Code})
	if err != nil {
		return e, err
	}
	defer context.AfterFunc(ctx, func() { t.stop(errStopped) })()
	events := m.Streams.Open(e.ID)
	defer events.Close()
	var unheard error
	hear := func(event record.Event) error {
		if unheard == nil {
			unheard = emit(event)
		}
		return unheard
	}
	e, err = m.performExecution(work, t, e, req, func(_ context.Context, event record.Event) error {
		if body, err := transcript.Event(event); err == nil {
			events.Offer(stream.Origin{Part: e.ID}, body)
		}
		return hear(event)
	}, func(e *record.Execution, done kernel.Done, failed error) error {
		recording, cancel := m.RecordingContext(true)
		defer cancel()
		if err := m.concludeExecution(recording, events, e, done); err != nil {
			m.work.Log.ErrorContext(work, "the end of an execution was not recorded", "execution", e.ID, "error", err)
		}
		if failed == nil {
			_ = hear(done) // the caller learns how the code ended also where that was not recorded
		}
		return nil
	})
	return e, cmp.Or(unheard, err)
}

// RecordingContext returns the context in which an end is recorded. That may take as long as the hub exists; where a caller in this process was given the end, it takes
// recordPatience at most.
func (m *Manager) RecordingContext(heard bool) (context.Context, context.CancelFunc) {
	if heard {
		return context.WithTimeout(m.work.Ended, recordPatience)
	}
	return m.work.Ended, func() {}
}
