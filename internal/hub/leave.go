package hub

import (
	"context"
	"log/slog"
	"time"

	"cove/internal/named"
	"cove/internal/problem"
	"cove/internal/telemetry"
)

// The patience with a session that is saved, and with a store that is to be told.
const (
	savePatience = 2 * time.Minute
	tellPatience = 30 * time.Second
	lastPatience = 2 * time.Second // at the end of a drain
)

// claim makes the caller the one who takes a session out of memory, when nobody uses it. The caller holds mu.
func (s *seat) claim() bool {
	if !s.free() {
		return false
	}
	s.turning = make(chan struct{})
	return true
}

// free says that nobody uses a session, waits for it, or brings it in or out. The caller holds mu.
func (s *seat) free() bool {
	return s.live != nil && !s.attached && s.turning == nil && s.holds == 0 && s.wanted == 0
}

// depart takes a claimed session out of memory and saves it. then runs while nobody else can touch the session, if it was saved. What cannot be saved,
// as on a full disk, stays in memory unless the hub drains.
func (h *Hub) depart(ctx context.Context, s *seat, then func() error) error {
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), savePatience)
	defer cancel()
	began := time.Now()
	h.charge(saving, s)
	pausing, over := telemetry.Step(saving, telemetry.StagePause, slog.String("session", s.id))
	stays, err := h.give(pausing, s)
	over(err)
	if stays {
		h.log.WarnContext(ctx, "a session stays in memory because it cannot be saved", "session", s.id, "error", err)
		h.unclaim(s)
		return foreign(err)
	}
	state, reason := SessionPaused, ""
	if err != nil {
		h.log.WarnContext(ctx, "a session was not saved", "session", s.id, "error", err)
		told, _ := problem.Public(err)
		state, reason = SessionLost, told.Message
	}
	h.told(saving, s, state, reason)
	h.sessionSeen(ctx, string(state), s.id, s.project, slog.Float64("seconds", time.Since(began).Seconds()))
	if err == nil && then != nil {
		err = then()
	}
	h.mu.Lock()
	turning := s.turning
	s.turning, s.live = nil, nil
	h.vacate(s)
	h.mu.Unlock()
	close(turning)
	return foreign(err)
}

// give saves and closes a session. stays says that it could do neither.
func (h *Hub) give(ctx context.Context, s *seat) (stays bool, err error) {
	h.mu.Lock()
	last := h.draining
	h.mu.Unlock()
	if last {
		return false, s.name.Close(ctx)
	}
	return s.name.Pause(ctx)
}

// unclaim is the end of a claim that changed nothing. It counts as a use, so that the others' turn comes before the session is tried again.
func (h *Hub) unclaim(s *seat) {
	h.mu.Lock()
	turning := s.turning
	s.turning, s.used = nil, h.now()
	h.leftAlone(s)
	h.mu.Unlock()
	close(turning)
}

// told writes what a session is that has left the memory. Where the store does not answer for long, Run or the next start puts it right.
func (h *Hub) told(ctx context.Context, s *seat, state SessionState, reason string) {
	var disk int64
	var head named.Entry
	if info, err := h.o.Sessions.Show(ctx, s.id); err == nil && info.Head.Snapshot != "" {
		disk, head = info.Disk, info.Head
	}
	patience := tellPatience
	if h.ended.Err() != nil || h.givenUp() {
		patience = lastPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := h.persist(ctx, func(ctx context.Context) error {
		why := reason
		if closed(s.lost) {
			why = lostSandbox
		}
		r, err := h.lostWith(ctx, s, state, head.Saved, why)
		if err != nil {
			return err
		}
		_, err = h.o.Store.UpdateSession(ctx, s.project, s.id, func(row *Session) error {
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
		h.log.ErrorContext(ctx, "the state of a session was not written", "session", s.id, "state", state, "error", err)
	}
}

// lostWith finds out what a session lost that leaves the memory as lost.
func (h *Hub) lostWith(ctx context.Context, s *seat, state SessionState, to time.Time, reason string) (*Rollback, error) {
	if state != SessionLost {
		return nil, nil
	}
	row, err := h.o.Store.Session(ctx, s.project, s.id)
	if err != nil {
		return nil, err
	}
	return h.rollback(ctx, row, to, reason)
}

// bury gives up a session whose sandbox has died, if nobody uses it.
func (h *Hub) bury(ctx context.Context, s *seat) {
	h.mu.Lock()
	mine := s.claim()
	h.mu.Unlock()
	if mine {
		_ = h.depart(ctx, s, nil) // the record says it
	}
}

// pause takes a session out of memory as soon as those have let it go who use it now. then runs before anybody can bring it back.
func (h *Hub) pause(ctx context.Context, project, id string, then func() error) error {
	var stood *seat
	sit := func() { // the caller holds mu
		if stood != nil {
			stood.unstand()
			stood = nil
		}
	}
	for {
		h.mu.Lock()
		s := h.seats[id]
		if s == nil {
			sit()
			h.mu.Unlock()
			if alone, err := h.alone(project, id, then); alone {
				return err
			}
			continue
		}
		wait := (<-chan struct{})(s.turning)
		claimed := s.claim()
		sit()
		if claimed {
			h.mu.Unlock()
			return h.depart(ctx, s, then)
		}
		if wait == nil {
			wait = s.unheld()
		}
		s.stand()
		stood = s
		h.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			h.mu.Lock()
			sit()
			h.mu.Unlock()
			return problem.New(problem.Timeout, "session_busy", "the session is in use").WithHint("wait until its code has ended, or interrupt it").WithCause(context.Cause(ctx))
		}
	}
}

// unheld is closed as soon as nobody uses the session. The caller holds mu.
func (s *seat) unheld() <-chan struct{} {
	if s.quiet == nil {
		s.quiet = make(chan struct{})
	}
	return s.quiet
}

// alone runs then while nobody can bring the session into memory, unless it is there.
func (h *Hub) alone(project, id string, then func() error) (alone bool, err error) {
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
	turning := s.turning
	s.turning = nil
	h.vacate(s)
	h.mu.Unlock()
	close(turning)
	return true, err
}

// destroy ends a session that the store calls deleted: what runs in it is interrupted, and its files are removed.
func (h *Hub) destroy(ctx context.Context, id string) error {
	h.mu.Lock()
	s := h.seats[id]
	if s != nil {
		s.doom(sessionGone())
		for _, t := range h.tasks {
			if t.session == id {
				t.stop(sessionGone())
			}
		}
	}
	h.mu.Unlock()
	err := h.pauseWithout(ctx, id)
	if err != nil {
		return err
	}
	if err := h.o.Sessions.Remove(ctx, id, command); err != nil && problem.Of(err).Code != "session_unknown" {
		return foreign(err)
	}
	return nil
}

// pauseWithout takes a doomed session out of memory without saving it.
func (h *Hub) pauseWithout(ctx context.Context, id string) error {
	for {
		h.mu.Lock()
		s := h.seats[id]
		if s == nil {
			h.mu.Unlock()
			return nil
		}
		wait := (<-chan struct{})(s.turning)
		if s.claim() {
			turning := s.turning
			h.mu.Unlock()
			h.charge(ctx, s)
			err := s.name.Discard(context.WithoutCancel(ctx))
			h.mu.Lock()
			s.turning, s.live = nil, nil
			h.vacate(s)
			h.mu.Unlock()
			close(turning)
			if err != nil {
				h.log.WarnContext(ctx, "a deleted session did not end well", "session", id, "error", err)
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
