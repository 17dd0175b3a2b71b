package live

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/server/hub/record"
)

// When sessions in memory are saved. A save of a session with 100 MB in use takes some tenths of a second of one processor, and writes as much to the
// disk; so one session spends at most a 25th of its time on it, and the server one in four processors for two thirds of the time.
const (
	saveEvery   = time.Second // how often the saver looks
	saveShare   = 25          // the pause after a session's save, as a multiple of what that save took
	saveLongest = 10 * time.Minute
	saveRetry   = time.Minute      // pause after a save that failed
	saveBusy    = 15 * time.Second // pause after a save that found no gap between executions
	keptBytes   = 256 << 20        // bytes of files in the journal, with which a session is saved at once
)

// saveUnsaved saves sessions that have become idle, and from time to time those in use, until ctx ends. Those longest unsaved come first.
func (m *Manager) saveUnsaved(ctx context.Context) {
	if m.CanSave() {
		m.CallEvery(ctx, saveEvery, func() { m.saveDue(ctx, m.dueSaves()) })
	}
}

// saveDue saves sessions, several at the same time, with a pause after each.
func (m *Manager) saveDue(ctx context.Context, due []*seat) {
	next := make(chan *seat)
	var all sync.WaitGroup
	for range min(len(due), max(1, runtime.NumCPU()/4)) {
		all.Go(func() {
			for s := range next {
				took := m.saveHeld(ctx, s)
				select {
				case <-time.After(took / 2):
				case <-ctx.Done():
				}
			}
		})
	}
	for _, s := range due {
		next <- s
	}
	close(next)
	all.Wait()
}

// dueSaves returns the sessions that are to be saved now.
func (m *Manager) dueSaves() []*seat {
	now := m.work.Now()
	m.mu.Lock()
	seats := make([]*seat, 0, len(m.seats))
	for _, s := range m.seats {
		if s.Live != nil && !s.attached && s.moving == nil && now.After(s.saveFrom) {
			seats = append(seats, s)
		}
	}
	m.mu.Unlock()
	// Without the lock: a session may take a while to answer.
	seats = slices.DeleteFunc(seats, func(s *seat) bool {
		ahead, kept := s.name.Unsaved()
		m.mu.Lock()
		defer m.mu.Unlock()
		if !ahead {
			s.unsaved = time.Time{}
			return true
		}
		if s.unsaved.IsZero() {
			s.unsaved = now
		}
		quiet := s.users == 0 && now.Sub(s.used) >= m.o.Limits.SaveAfter
		return !quiet && now.Sub(s.unsaved) < m.o.Limits.SaveWithin && kept < keptBytes
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.SortFunc(seats, func(a, b *seat) int { return a.unsaved.Compare(b.unsaved) })
	return seats
}

// saveHeld saves a session that stays in memory and returns how long that took.
func (m *Manager) saveHeld(ctx context.Context, s *seat) time.Duration {
	m.mu.Lock()
	if s.Live == nil || s.moving != nil || s.ctx.Err() != nil || s.exclusiveGate != nil {
		m.mu.Unlock()
		return 0
	}
	s.users++ // so that the session is not evicted; this does not count as a use
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		s.users--
		m.noteUnused(s)
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), savePatience)
	defer cancel()
	began, from := time.Now(), m.work.Now()
	ctx, over := telemetry.Step(ctx, telemetry.StageSave, slog.String("session", s.id))
	m.chargeSession(ctx, s)
	err := s.name.Checkpoint(ctx)
	s.tally.skip(s.Live) // the processor time of saving is not charged to the session
	if err == nil {
		err = m.noteSaved(ctx, s, from, false)
	}
	over(err)
	took := time.Since(began)
	again := min(saveShare*took, saveLongest)
	switch {
	case problem.Has(err, problem.SessionBusy):
		again = saveBusy
	case err != nil:
		again = saveRetry
		m.work.Log.WarnContext(ctx, "a session could not be saved; it goes on in memory", "session", s.id, "error", err)
	default:
		m.work.Log.LogAttrs(ctx, slog.LevelDebug, "session saved", slog.String("session", s.id), slog.Float64("seconds", took.Seconds()))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.saveFrom = m.work.Now().Add(again)
	return took
}

// noteSaved records when a session was saved. Uses since the save began, and later ones, are recorded with a later time than that, so that a restart knows
// whether there were any. With used the caller's own use goes on.
func (m *Manager) noteSaved(ctx context.Context, s *seat, began time.Time, used bool) error {
	head := s.name.Head()
	if head.Snapshot == "" {
		return nil
	}
	m.mu.Lock()
	others := used || s.users > 1 || s.used.After(began)
	if others {
		s.used = m.work.Now()
	}
	last, ran := s.used, s.ran
	s.touched, s.unsaved = time.Time{}, time.Time{}
	m.mu.Unlock()
	_, err := m.work.Store.UpdateSession(ctx, s.project, s.id, func(row *record.Session) error {
		if row.State == record.SessionDeleted {
			return SessionGone()
		}
		row.Saved, row.Disk, row.Executions = head.Saved, s.name.Disk(), max(row.Executions, ran)
		if others {
			row.Used = last
		}
		return nil
	})
	return err
}
