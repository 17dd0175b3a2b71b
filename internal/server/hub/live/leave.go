package live

import (
	"context"
	"log/slog"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
	"cove/internal/server/hub/work"
	"cove/internal/sessions/ondisk"
)

// How long to wait until a session is saved, and until the store has recorded that.
const (
	savePatience = 2 * time.Minute
	TellPatience = 30 * time.Second
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
	return s.Live != nil && !s.attached && s.moving == nil && s.users == 0 && s.waiters == 0
}

// evictSeat saves a session and takes it out of memory, after beginEviction. If the session was saved, then runs before anything else can use it. A session that
// cannot be saved, as on a full disk, stays in memory unless the hub drains.
func (m *Manager) evictSeat(ctx context.Context, s *seat, then func() error) error {
	saving, cancel := context.WithDeadline(context.WithoutCancel(ctx), m.saveEnds())
	defer cancel()
	began := time.Now()
	m.chargeSession(saving, s)
	pausing, over := telemetry.Step(saving, telemetry.StagePause, slog.String("session", s.id))
	stays, err := m.saveAndClose(pausing, s)
	over(err)
	if stays {
		m.work.Log.WarnContext(ctx, "a session stays in memory because it cannot be saved", "session", s.id, "error", err)
		m.abortEviction(s)
		return WithoutCommands(err)
	}
	state, reason := record.SessionPaused, ""
	if err != nil {
		m.work.Log.WarnContext(ctx, "a session was not saved", "session", s.id, "error", err)
		told, _ := problem.Public(err)
		state, reason = record.SessionLost, told.Message
	}
	m.recordEviction(context.WithoutCancel(ctx), s, state, reason) // the time to save may be over
	if state == record.SessionLost {
		m.LoseParked(s.id, lostWaiting(reason))
	}
	m.sessionSeen(ctx, string(state), s.id, s.project, slog.Float64("seconds", time.Since(began).Seconds()))
	if err == nil && then != nil {
		err = then()
	}
	m.mu.Lock()
	moving := s.moving
	s.moving, s.Live = nil, nil
	m.removeSeat(s)
	m.mu.Unlock()
	close(moving)
	return WithoutCommands(err)
}

// saveEnds is until when a session may be saved that is taken out of memory now.
func (m *Manager) saveEnds() time.Time {
	end := time.Now().Add(savePatience)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.saveBy.IsZero() && m.saveBy.Before(end) {
		return m.saveBy
	}
	return end
}

// saveAndClose saves and closes a session. stays says that neither was possible.
func (m *Manager) saveAndClose(ctx context.Context, s *seat) (stays bool, err error) {
	m.mu.Lock()
	last := m.draining
	m.mu.Unlock()
	if last {
		return false, s.name.Close(ctx)
	}
	return s.name.Pause(ctx)
}

// abortEviction undoes beginEviction. It counts as a use of the session, so that the other sessions are tried before this one is tried again.
func (m *Manager) abortEviction(s *seat) {
	m.mu.Lock()
	moving := s.moving
	s.moving, s.used = nil, m.work.Now()
	m.noteUnused(s)
	m.mu.Unlock()
	close(moving)
}

// recordEviction records the state of a session that was taken out of memory. If the store does not answer for long, Run or the next start records it.
func (m *Manager) recordEviction(ctx context.Context, s *seat, state record.SessionState, reason string) {
	var disk int64
	var head ondisk.Entry
	if info, err := m.o.Sessions.Show(ctx, s.id); err == nil && info.Head.Snapshot != "" {
		disk, head = info.Disk, info.Head
	}
	patience := TellPatience
	if m.work.Ended.Err() != nil || m.work.DrainedLongEnough() {
		patience = lastPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := m.work.WriteUntilStored(ctx, func(ctx context.Context) error {
		why := reason
		if work.IsClosed(s.lost) {
			why = lostSandbox
		}
		r, err := m.rollbackOf(ctx, s, state, head.Saved, why)
		if err != nil {
			return err
		}
		_, err = m.work.Store.UpdateSession(ctx, s.project, s.id, func(row *record.Session) error {
			if row.State == record.SessionDeleted {
				return SessionGone()
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
		m.work.Log.ErrorContext(ctx, "the state of a session was not written", "session", s.id, "state", state, "error", err)
	}
}

// rollbackOf finds out what was lost with a session that is evicted as lost.
func (m *Manager) rollbackOf(ctx context.Context, s *seat, state record.SessionState, to time.Time, reason string) (*record.Rollback, error) {
	if state != record.SessionLost {
		return nil, nil
	}
	row, err := m.work.Store.Session(ctx, s.project, s.id)
	if err != nil {
		return nil, err
	}
	return m.FindRollback(ctx, row, to, reason)
}

// evictDead evicts a session whose sandbox has died, if the session is unused.
func (m *Manager) evictDead(ctx context.Context, s *seat) {
	m.mu.Lock()
	mine := s.beginEviction()
	m.mu.Unlock()
	if mine {
		_ = m.evictSeat(ctx, s, nil) // the session's record has the reason
	}
}

// toSave returns a session of this home that the caller may change and that can be saved.
func (m *Manager) toSave(ctx context.Context, who auth.Principal, id string) (record.Session, error) {
	if err := who.Require(auth.SessionsWrite); err != nil {
		return record.Session{}, err
	}
	row, err := m.FindSession(ctx, who, id)
	if err == nil && !m.CanSave() {
		err = m.unsavable()
	}
	if err == nil {
		_, err = m.work.CheckHere(ctx, row)
	}
	return row, err
}

// PauseWhenUnused evicts a session as soon as its present users have released it. then runs before anything can load the session again.
func (m *Manager) PauseWhenUnused(ctx context.Context, project, id string, then func() error) error {
	var announced *seat
	withdraw := func() { // the caller holds mu
		if announced != nil {
			announced.withdrawExclusive()
			announced = nil
		}
	}
	for {
		m.mu.Lock()
		s := m.seats[id]
		if s == nil {
			withdraw()
			m.mu.Unlock()
			if alone, err := m.exclusively(project, id, then); alone {
				return err
			}
			continue
		}
		wait := (<-chan struct{})(s.moving)
		claimed := s.beginEviction()
		withdraw()
		if claimed {
			m.mu.Unlock()
			return m.evictSeat(ctx, s, then)
		}
		if wait == nil {
			wait = s.unheld()
		}
		s.announceExclusive()
		announced = s
		m.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			m.mu.Lock()
			withdraw()
			m.mu.Unlock()
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
func (m *Manager) exclusively(project, id string, then func() error) (alone bool, err error) {
	if then == nil {
		return true, nil
	}
	s := newSeat(record.Session{ID: id, Project: project})
	m.mu.Lock()
	if m.seats[id] != nil {
		m.mu.Unlock()
		return false, nil
	}
	m.seats[id] = s
	m.mu.Unlock()
	err = then()
	m.mu.Lock()
	moving := s.moving
	s.moving = nil
	m.removeSeat(s)
	m.mu.Unlock()
	close(moving)
	return true, err
}

// destroySession ends a session that the store calls deleted: what runs in it is interrupted, and its files are removed.
func (m *Manager) destroySession(ctx context.Context, id string) error {
	m.mu.Lock()
	s := m.seats[id]
	if s != nil {
		s.cancel(SessionGone())
	}
	m.stopIn(id, "", SessionGone())
	m.mu.Unlock()
	err := m.discardSeat(ctx, id)
	if err != nil {
		return err
	}
	if err := m.o.Sessions.Remove(ctx, id, m.o.Command); err != nil && !problem.Has(err, problem.SessionUnknown) {
		return WithoutCommands(err)
	}
	return nil
}

// discardSeat takes a deleted session out of memory without saving it.
func (m *Manager) discardSeat(ctx context.Context, id string) error {
	for {
		m.mu.Lock()
		s := m.seats[id]
		if s == nil {
			m.mu.Unlock()
			return nil
		}
		wait := (<-chan struct{})(s.moving)
		if s.beginEviction() {
			moving := s.moving
			m.mu.Unlock()
			m.chargeSession(ctx, s)
			err := s.name.Discard(context.WithoutCancel(ctx))
			m.mu.Lock()
			s.moving, s.Live = nil, nil
			m.removeSeat(s)
			m.mu.Unlock()
			close(moving)
			if err != nil {
				m.work.Log.WarnContext(ctx, "a deleted session could not be ended", "session", id, "error", err)
			}
			return nil
		}
		if wait == nil {
			wait = s.unheld()
		}
		m.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
