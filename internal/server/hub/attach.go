package hub

import (
	"cmp"
	"context"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
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
func (h *Hub) AttachSession(ctx context.Context, who auth.Principal, a Attachment, live Live) (Session, error) {
	if err := who.Require(auth.SessionsWrite); err != nil {
		return Session{}, err
	}
	row, err := h.attachedRow(ctx, who, a)
	if err != nil {
		return Session{}, err
	}
	s := newSeat(row)
	s.attached, s.live, s.ran, s.touched, s.moving = true, live, row.Executions, row.Used, nil
	s.tally.skip(live)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.draining:
		return Session{}, drained()
	case h.seats[row.ID] != nil:
		return Session{}, problem.New(problem.SessionAttached, "the session is in memory already")
	}
	h.seats[row.ID] = s
	return row, nil
}

// attachedRow writes the record of a session that is about to be attached: a new one, or the one that its id has.
func (h *Hub) attachedRow(ctx context.Context, who auth.Principal, a Attachment) (Session, error) {
	row := h.newRow(who, NewSession{Name: a.Name, Packages: a.Packages, Memory: a.Memory, CPUs: a.CPUs})
	row.ID = a.ID
	there, err := h.work.Store.UpdateSession(ctx, who.Project, a.ID, func(s *Session) error {
		s.State, s.Reason, s.Used, s.Expires, s.Home, s.Owner = SessionActive, "", row.Used, row.Expires, row.Home, row.Owner
		return nil
	})
	if problem.Is(err, problem.NotFound) {
		return row, h.work.Store.AddSession(ctx, row)
	}
	return there, err
}

// attached says whether a session in memory is an attached one.
func (h *Hub) attached(session string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seats[session]
	return s != nil && s.attached
}

// DetachSession undoes AttachSession. It interrupts what runs in the session and waits for that until ctx ends. Then it calls end, which closes the session and
// returns the session's state and the reason for it; end is called exactly once, also when DetachSession returns an error. Needs auth.SessionsWrite. Problems:
// session_not_found, session_busy when ctx ended first.
func (h *Hub) DetachSession(ctx context.Context, who auth.Principal, id string, end func() (SessionState, string)) error {
	if err := who.Require(auth.SessionsWrite); err != nil {
		end()
		return err
	}
	h.mu.Lock()
	s := h.seats[id]
	if s == nil || !s.attached || s.project != who.Project {
		h.mu.Unlock()
		end()
		return sessionGone()
	}
	s.cancel(sessionGone())
	for s.users > 0 {
		freed := h.freed
		h.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			end()
			return problem.New(problem.SessionBusy, "the session is in use").WithCause(context.Cause(ctx))
		}
		h.mu.Lock()
	}
	h.removeSeat(s)
	used, ran := s.used, s.ran
	h.mu.Unlock()
	state, reason := end()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordPatience)
	defer cancel()
	return h.work.WriteUntilStored(ctx, func(ctx context.Context) error {
		_, err := h.work.Store.UpdateSession(ctx, s.project, s.id, func(row *Session) error {
			row.State, row.Reason, row.Used, row.Executions, row.Owner = state, reason, used, ran, ""
			return nil
		})
		return err
	})
}

// RunExecution runs code for a caller in this process and returns when the code has ended. It calls emit for each event at once, one call after the other, and a
// kernel.Done comes last. An error of emit interrupts the code, as the end of ctx does, and is returned. The execution is recorded as others are, with the events that
// Limits.Stream has room for. Where the session returned an error instead of a Done, that is the error. Needs auth.SessionsExecute. Problems: those of StartExecution.
func (h *Hub) RunExecution(ctx context.Context, who auth.Principal, session string, req kernel.Request, emit func(Event) error) (Execution, error) {
	if err := who.Require(auth.SessionsExecute); err != nil {
		return Execution{}, err
	}
	work, end, err := h.begin(ctx)
	if err != nil {
		return Execution{}, err
	}
	defer end()
	s, err := h.acquire(ctx, who.Project, session)
	if err != nil {
		return Execution{}, err
	}
	defer h.release(s)
	e, t, err := h.admit(work, Execution{Project: who.Project, User: who.User, Key: who.Key, Session: session, Kernel: req.Kernel, Code: req.Code})
	if err != nil {
		return e, err
	}
	defer context.AfterFunc(ctx, func() { t.stop(errStopped) })()
	events := h.streams.Open(e.ID)
	defer events.Close()
	var unheard error
	hear := func(event Event) error {
		if unheard == nil {
			unheard = emit(event)
		}
		return unheard
	}
	e, err = h.perform(work, t, e, req, func(_ context.Context, event Event) error {
		if body, err := transcript.Event(event); err == nil {
			events.Offer(stream.Origin{Part: e.ID}, body)
		}
		return hear(event)
	}, func(e *Execution, done kernel.Done, failed error) error {
		recording, cancel := h.recording(true)
		defer cancel()
		if err := h.conclude(recording, events, e, done); err != nil {
			h.work.Log.ErrorContext(work, "the end of an execution was not recorded", "execution", e.ID, "error", err)
		}
		if failed == nil {
			_ = hear(done) // the caller learns how the code ended also where that was not recorded
		}
		return nil
	})
	return e, cmp.Or(unheard, err)
}

// recording returns the context in which an end is recorded. That may take as long as the hub exists; where a caller in this process was given the end, it takes
// recordPatience at most.
func (h *Hub) recording(heard bool) (context.Context, context.CancelFunc) {
	if heard {
		return context.WithTimeout(h.work.Ended, recordPatience)
	}
	return h.work.Ended, func() {}
}

// RunTurn is StartTurn for a caller in this process. It calls hear for each event at once, one call after the other, and an loop.Answer comes last. An error
// of hear stops the turn, as the end of ctx does. RunTurn returns when the turn has ended; the error says why there is no answer. NewTurn.Hidden and NewTurn.Once
// are ignored.
func (h *Hub) RunTurn(ctx context.Context, who auth.Principal, n NewTurn, hear func(TurnEvent) error) (Turn, error) {
	if err := mayStart(who, n); err != nil {
		return Turn{}, err
	}
	n.Heard = true
	p, err := h.plan(ctx, who, n)
	if err != nil {
		return Turn{}, err
	}
	p.hear = hear
	running := h.beginTurn(p)
	defer context.AfterFunc(ctx, func() { running.stop(canceledTurn()) })()
	t, answer, err := h.runTurn(p, running)
	if err == nil {
		err = hear(answer)
	}
	return t, err
}
