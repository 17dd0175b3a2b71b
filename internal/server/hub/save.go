package hub

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
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
func (h *Hub) saveUnsaved(ctx context.Context) {
	if h.saves() {
		h.every(ctx, saveEvery, func() { h.saveDue(ctx, h.due()) })
	}
}

// saveDue saves sessions, several at the same time, with a pause after each.
func (h *Hub) saveDue(ctx context.Context, due []*seat) {
	next := make(chan *seat)
	var all sync.WaitGroup
	for range min(len(due), max(1, runtime.NumCPU()/4)) {
		all.Go(func() {
			for s := range next {
				took := h.saveHeld(ctx, s)
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

// due returns the sessions that are to be saved now.
func (h *Hub) due() []*seat {
	now := h.work.Now()
	h.mu.Lock()
	seats := make([]*seat, 0, len(h.seats))
	for _, s := range h.seats {
		if s.live != nil && !s.attached && s.moving == nil && now.After(s.saveFrom) {
			seats = append(seats, s)
		}
	}
	h.mu.Unlock()
	// Without the lock: a session may take a while to answer.
	seats = slices.DeleteFunc(seats, func(s *seat) bool {
		ahead, kept := s.name.Unsaved()
		h.mu.Lock()
		defer h.mu.Unlock()
		if !ahead {
			s.unsaved = time.Time{}
			return true
		}
		if s.unsaved.IsZero() {
			s.unsaved = now
		}
		quiet := s.users == 0 && now.Sub(s.used) >= h.o.Limits.SaveAfter
		return !quiet && now.Sub(s.unsaved) < h.o.Limits.SaveWithin && kept < keptBytes
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortFunc(seats, func(a, b *seat) int { return a.unsaved.Compare(b.unsaved) })
	return seats
}

// saveHeld saves a session that stays in memory and returns how long that took.
func (h *Hub) saveHeld(ctx context.Context, s *seat) time.Duration {
	h.mu.Lock()
	if s.live == nil || s.moving != nil || s.ctx.Err() != nil || s.exclusiveGate != nil {
		h.mu.Unlock()
		return 0
	}
	s.users++ // so that the session is not evicted; this does not count as a use
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		s.users--
		h.noteUnused(s)
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), savePatience)
	defer cancel()
	began, from := time.Now(), h.work.Now()
	ctx, over := telemetry.Step(ctx, telemetry.StageSave, slog.String("session", s.id))
	h.charge(ctx, s)
	err := s.name.Checkpoint(ctx)
	s.tally.skip(s.live) // the processor time of saving is not charged to the session
	if err == nil {
		err = h.noteSaved(ctx, s, from, false)
	}
	over(err)
	took := time.Since(began)
	again := min(saveShare*took, saveLongest)
	switch {
	case problem.Has(err, problem.SessionBusy):
		again = saveBusy
	case err != nil:
		again = saveRetry
		h.work.Log.WarnContext(ctx, "a session could not be saved; it goes on in memory", "session", s.id, "error", err)
	default:
		h.work.Log.LogAttrs(ctx, slog.LevelDebug, "session saved", slog.String("session", s.id), slog.Float64("seconds", took.Seconds()))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.saveFrom = h.work.Now().Add(again)
	return took
}

// noteSaved records when a session was saved. Uses since the save began, and later ones, are recorded with a later time than that, so that a restart knows
// whether there were any. With used the caller's own use goes on.
func (h *Hub) noteSaved(ctx context.Context, s *seat, began time.Time, used bool) error {
	head := s.name.Head()
	if head.Snapshot == "" {
		return nil
	}
	h.mu.Lock()
	others := used || s.users > 1 || s.used.After(began)
	if others {
		s.used = h.work.Now()
	}
	last, ran := s.used, s.ran
	s.touched, s.unsaved = time.Time{}, time.Time{}
	h.mu.Unlock()
	_, err := h.work.Store.UpdateSession(ctx, s.project, s.id, func(row *Session) error {
		if row.State == SessionDeleted {
			return sessionGone()
		}
		row.Saved, row.Disk, row.Executions = head.Saved, s.name.Disk(), max(row.Executions, ran)
		if others {
			row.Used = last
		}
		return nil
	})
	return err
}
