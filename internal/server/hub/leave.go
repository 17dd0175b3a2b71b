package hub

import (
	"context"
	"log/slog"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/server/auth"
	"cove/internal/server/hub/work"
	"cove/internal/sessions/ondisk"
)

// How long to wait until a session is saved, and until the store has recorded that.
const (
	savePatience = 2 * time.Minute
	tellPatience = 30 * time.Second
	lastPatience = 2 * time.Second // at the end of a drain
)

// beginEviction gives the caller the right to evict an unused session, and says whether it got it. The caller holds mu.
func (s *seat) beginEviction() bool {
	if !s.free() {
		return false
	}
	s.moving = make(chan struct{})
	return true
}

// free says that a session in memory has no users and no waiters, and is not being loaded or evicted. The caller holds mu.
func (s *seat) free() bool {
	return s.live != nil && !s.attached && s.moving == nil && s.users == 0 && s.waiters == 0
}

// evict saves a session and takes it out of memory, after beginEviction. If the session was saved, then runs before anything else can use it. A session that
// cannot be saved, as on a full disk, stays in memory unless the hub drains.
func (h *Hub) evict(ctx context.Context, s *seat, then func() error) error {
	saving, cancel := context.WithDeadline(context.WithoutCancel(ctx), h.saveEnds())
	defer cancel()
	began := time.Now()
	h.charge(saving, s)
	pausing, over := telemetry.Step(saving, telemetry.StagePause, slog.String("session", s.id))
	stays, err := h.saveAndClose(pausing, s)
	over(err)
	if stays {
		h.work.Log.WarnContext(ctx, "a session stays in memory because it cannot be saved", "session", s.id, "error", err)
		h.abortEviction(s)
		return withoutCommands(err)
	}
	state, reason := SessionPaused, ""
	if err != nil {
		h.work.Log.WarnContext(ctx, "a session was not saved", "session", s.id, "error", err)
		told, _ := problem.Public(err)
		state, reason = SessionLost, told.Message
	}
	h.recordEviction(context.WithoutCancel(ctx), s, state, reason) // the time to save may be over
	if state == SessionLost {
		h.loseParked(s.id, lostWaiting(reason))
	}
	h.sessionSeen(ctx, string(state), s.id, s.project, slog.Float64("seconds", time.Since(began).Seconds()))
	if err == nil && then != nil {
		err = then()
	}
	h.mu.Lock()
	moving := s.moving
	s.moving, s.live = nil, nil
	h.removeSeat(s)
	h.mu.Unlock()
	close(moving)
	return withoutCommands(err)
}

// saveEnds is until when a session may be saved that is taken out of memory now.
func (h *Hub) saveEnds() time.Time {
	end := time.Now().Add(savePatience)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.saveBy.IsZero() && h.saveBy.Before(end) {
		return h.saveBy
	}
	return end
}

// saveAndClose saves and closes a session. stays says that neither was possible.
func (h *Hub) saveAndClose(ctx context.Context, s *seat) (stays bool, err error) {
	h.mu.Lock()
	last := h.draining
	h.mu.Unlock()
	if last {
		return false, s.name.Close(ctx)
	}
	return s.name.Pause(ctx)
}

// abortEviction undoes beginEviction. It counts as a use of the session, so that the other sessions are tried before this one is tried again.
func (h *Hub) abortEviction(s *seat) {
	h.mu.Lock()
	moving := s.moving
	s.moving, s.used = nil, h.work.Now()
	h.noteUnused(s)
	h.mu.Unlock()
	close(moving)
}

// recordEviction records the state of a session that was taken out of memory. If the store does not answer for long, Run or the next start records it.
func (h *Hub) recordEviction(ctx context.Context, s *seat, state SessionState, reason string) {
	var disk int64
	var head ondisk.Entry
	if info, err := h.o.Sessions.Show(ctx, s.id); err == nil && info.Head.Snapshot != "" {
		disk, head = info.Disk, info.Head
	}
	patience := tellPatience
	if h.work.Ended.Err() != nil || h.work.DrainedLongEnough() {
		patience = lastPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := h.work.WriteUntilStored(ctx, func(ctx context.Context) error {
		why := reason
		if work.IsClosed(s.lost) {
			why = lostSandbox
		}
		r, err := h.rollbackOf(ctx, s, state, head.Saved, why)
		if err != nil {
			return err
		}
		_, err = h.work.Store.UpdateSession(ctx, s.project, s.id, func(row *Session) error {
			if row.State == SessionDeleted {
				return sessionGone()
			}
			row.State, row.Reason, row.Disk, row.Saved, row.Owner = state, reason, disk, head.Saved, ""
			if r != nil {
				row.Rollback = r
			}
			row.Executions = s.ran
			if !s.touched.IsZero() {
				row.Used = s.used
			}
			return nil
		})
		return err
	})
	if err != nil && problem.Of(err).Kind != problem.NotFound {
		h.work.Log.ErrorContext(ctx, "the state of a session was not written", "session", s.id, "state", state, "error", err)
	}
}

// rollbackOf finds out what was lost with a session that is evicted as lost.
func (h *Hub) rollbackOf(ctx context.Context, s *seat, state SessionState, to time.Time, reason string) (*Rollback, error) {
	if state != SessionLost {
		return nil, nil
	}
	row, err := h.work.Store.Session(ctx, s.project, s.id)
	if err != nil {
		return nil, err
	}
	return h.rollback(ctx, row, to, reason)
}

// evictDead evicts a session whose sandbox has died, if the session is unused.
func (h *Hub) evictDead(ctx context.Context, s *seat) {
	h.mu.Lock()
	mine := s.beginEviction()
	h.mu.Unlock()
	if mine {
		_ = h.evict(ctx, s, nil) // the session's record has the reason
	}
}

// toSave returns a session of this home that the caller may change and that can be saved.
func (h *Hub) toSave(ctx context.Context, who auth.Principal, id string) (Session, error) {
	if err := who.Require(auth.SessionsWrite); err != nil {
		return Session{}, err
	}
	row, err := h.row(ctx, who, id)
	if err == nil && !h.saves() {
		err = h.unsavable()
	}
	if err == nil {
		_, err = h.work.CheckHere(ctx, row)
	}
	return row, err
}

// pause evicts a session as soon as its present users have released it. then runs before anything can load the session again.
func (h *Hub) pause(ctx context.Context, project, id string, then func() error) error {
	var announced *seat
	withdraw := func() { // the caller holds mu
		if announced != nil {
			announced.withdrawExclusive()
			announced = nil
		}
	}
	for {
		h.mu.Lock()
		s := h.seats[id]
		if s == nil {
			withdraw()
			h.mu.Unlock()
			if alone, err := h.exclusively(project, id, then); alone {
				return err
			}
			continue
		}
		wait := (<-chan struct{})(s.moving)
		claimed := s.beginEviction()
		withdraw()
		if claimed {
			h.mu.Unlock()
			return h.evict(ctx, s, then)
		}
		if wait == nil {
			wait = s.unheld()
		}
		s.announceExclusive()
		announced = s
		h.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			h.mu.Lock()
			withdraw()
			h.mu.Unlock()
			return problem.New(problem.SessionBusy, "the session is in use").WithHint("wait until its code has ended, or interrupt it").WithCause(context.Cause(ctx))
		}
	}
}

// unheld returns a channel that is closed as soon as the session is unused. The caller holds mu.
func (s *seat) unheld() <-chan struct{} {
	if s.unusedSignal == nil {
		s.unusedSignal = make(chan struct{})
	}
	return s.unusedSignal
}

// exclusively runs then while nothing can load the session, unless the session is in memory.
func (h *Hub) exclusively(project, id string, then func() error) (alone bool, err error) {
	if then == nil {
		return true, nil
	}
	s := newSeat(Session{ID: id, Project: project})
	h.mu.Lock()
	if h.seats[id] != nil {
		h.mu.Unlock()
		return false, nil
	}
	h.seats[id] = s
	h.mu.Unlock()
	err = then()
	h.mu.Lock()
	moving := s.moving
	s.moving = nil
	h.removeSeat(s)
	h.mu.Unlock()
	close(moving)
	return true, err
}

// destroy ends a session that the store calls deleted: what runs in it is interrupted, and its files are removed.
func (h *Hub) destroy(ctx context.Context, id string) error {
	h.mu.Lock()
	s := h.seats[id]
	if s != nil {
		s.cancel(sessionGone())
	}
	h.stopIn(id, "", sessionGone())
	h.mu.Unlock()
	err := h.discardSeat(ctx, id)
	if err != nil {
		return err
	}
	if err := h.o.Sessions.Remove(ctx, id, h.o.Command); err != nil && !problem.Has(err, problem.SessionUnknown) {
		return withoutCommands(err)
	}
	return nil
}

// discardSeat takes a deleted session out of memory without saving it.
func (h *Hub) discardSeat(ctx context.Context, id string) error {
	for {
		h.mu.Lock()
		s := h.seats[id]
		if s == nil {
			h.mu.Unlock()
			return nil
		}
		wait := (<-chan struct{})(s.moving)
		if s.beginEviction() {
			moving := s.moving
			h.mu.Unlock()
			h.charge(ctx, s)
			err := s.name.Discard(context.WithoutCancel(ctx))
			h.mu.Lock()
			s.moving, s.live = nil, nil
			h.removeSeat(s)
			h.mu.Unlock()
			close(moving)
			if err != nil {
				h.work.Log.WarnContext(ctx, "a deleted session could not be ended", "session", id, "error", err)
			}
			return nil
		}
		if wait == nil {
			wait = s.unheld()
		}
		h.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
