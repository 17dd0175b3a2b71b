package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"cove/internal/auth"
	"cove/internal/ident"
	"cove/internal/kernel"
	"cove/internal/problem"
	"cove/internal/transcript"
)

// recordPatience is how long a caller in this process, who has heard everything, waits for the record of its end.
const recordPatience = 10 * time.Second

// Attachment says which session a caller in this process brings.
type Attachment struct {
	ID       string // ident.Session; that of one that was attached before has its record go on
	Name     string // for people; "" is fine
	Packages string // the set; "": the base's
	Memory   int64  // bytes; 0: the base's
	CPUs     float64
}

// AttachSession makes a session usable that the caller opened, keeps and closes: executions and turns run in it as in any other, but the hub does not
// save, pause or evict it. Needs auth.SessionsWrite. DetachSession has to be called before the caller closes it.
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

// attachedRow writes the record of a session that a caller brings.
func (h *Hub) attachedRow(ctx context.Context, who auth.Principal, a Attachment) (Session, error) {
	row := h.newRow(who, NewSession{Name: a.Name, Packages: a.Packages, Memory: a.Memory, CPUs: a.CPUs})
	row.ID = a.ID
	there, err := h.o.Store.UpdateSession(ctx, who.Project, a.ID, func(s *Session) error {
		s.State, s.Reason, s.Used, s.Expires, s.Home, s.Owner = SessionActive, "", row.Used, row.Expires, row.Home, row.Owner
		return nil
	})
	if problem.Is(err, problem.NotFound) {
		return row, h.o.Store.AddSession(ctx, row)
	}
	return there, err
}

// attached says whether a session in memory is its caller's.
func (h *Hub) attached(session string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seats[session]
	return s != nil && s.attached
}

// DetachSession ends the use of a session that was attached: what runs in it is interrupted and waited for until ctx ends. Then end closes the session, in
// any case, and says what it is from now on, and why. Needs auth.SessionsWrite.
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
	return h.persist(ctx, func(ctx context.Context) error {
		_, err := h.o.Store.UpdateSession(ctx, s.project, s.id, func(row *Session) error {
			row.State, row.Reason, row.Used, row.Executions, row.Owner = state, reason, used, ran, ""
			return nil
		})
		return err
	})
}

// RunExecution runs code for a caller in this process, who hears each event at once: emit is called with one after the other, a kernel.Done last. An error
// of emit interrupts the code, as the end of ctx does. The execution is recorded as others are; Limits.Stream bounds its events. The error is emit's, or
// what the session said instead of a Done. Needs auth.SessionsExecute. Problems: those of StartExecution.
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
	log := h.openLog(e.ID)
	defer h.closeLog(log)
	var unheard error
	hear := func(event Event) error {
		if unheard == nil {
			unheard = emit(event)
		}
		return unheard
	}
	e, err = h.perform(work, t, e, req, func(_ context.Context, event Event) error {
		if body, err := transcript.Event(event); err == nil {
			log.offer(body, e.ID, 0)
		}
		return hear(event)
	}, func(e *Execution, done kernel.Done, failed error) error {
		recording, cancel := h.recording(true)
		defer cancel()
		if err := h.conclude(recording, log, e, done); err != nil {
			h.log.ErrorContext(work, "the end of an execution was not recorded", "execution", e.ID, "error", err)
		}
		if failed == nil {
			_ = hear(done) // the caller knows how the code ended, whatever the record says
		}
		return nil
	})
	return e, cmp.Or(unheard, err)
}

// recording is the context of storing an end: it is stored however long that takes, or for a caller that has heard it within some seconds.
func (h *Hub) recording(heard bool) (context.Context, context.CancelFunc) {
	if heard {
		return context.WithTimeout(h.ended, recordPatience)
	}
	return h.ended, func() {}
}

// RunTurn is StartTurn for a caller in this process, who hears each event at once: hear is called with one after the other, an interpreter.Answer last. An
// error of hear stops the turn, as the end of ctx does. RunTurn returns when the turn has ended; the error says why there is no answer. Hidden and Once
// have no meaning here.
func (h *Hub) RunTurn(ctx context.Context, who auth.Principal, n NewTurn, hear func(TurnEvent) error) (Turn, error) {
	if err := mayStart(who, n); err != nil {
		return Turn{}, err
	}
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

// Recorded yields what is recorded of a turn or an execution (its id) until now, and does not wait for more. Needs auth.ConversationsRead for a turn and
// auth.SessionsRead for an execution.
func (h *Hub) Recorded(ctx context.Context, who auth.Principal, id string) (Follower[json.RawMessage], error) {
	stream, execution, err := h.streamOf(ctx, who, id)
	if err != nil {
		return nil, err
	}
	return func(yield func(Numbered[json.RawMessage], error) bool) {
		for after := int64(0); ; {
			events, err := h.o.Store.Events(ctx, stream, execution, after, batchEvents)
			if err != nil {
				yield(Numbered[json.RawMessage]{}, err)
				return
			}
			for _, e := range events {
				n := Numbered[json.RawMessage]{Seq: e.Seq, At: e.At, Gap: isGap(e)}
				if !n.Gap {
					n.Event = e.Body
				}
				if !yield(n, nil) {
					return
				}
			}
			if after = lastOf(events, after); len(events) == 0 {
				return
			}
		}
	}, nil
}

// streamOf says in which stream the events of a turn or an execution are, and of which execution they are there; "" of all.
func (h *Hub) streamOf(ctx context.Context, who auth.Principal, id string) (stream, execution string, err error) {
	if ident.Valid(ident.Turn, id) {
		_, err = h.Turn(ctx, who, id)
		return id, "", err
	}
	e, err := h.Execution(ctx, who, id)
	return cmp.Or(e.Turn, e.ID), e.ID, err
}
