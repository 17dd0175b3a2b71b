package hub

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/hub/meter"
	"cove/internal/server/ownership"
	"cove/internal/sessions/ondisk"
)

// The rhythm of Run.
const (
	pauseEvery  = 5 * time.Second
	sweepEvery  = time.Minute
	sweepBatch  = 100
	pauseAtOnce = 4
	// interruptPatience is how long work that a drain has interrupted may take to end and to be stored.
	interruptPatience = 30 * time.Second
	// lastSaves is how long a drain saves sessions after that, all of them together: what has not been saved by then is closed as it is.
	lastSaves    = 3 * time.Minute
	pingPatience = 5 * time.Second
)

// measureEvery is how often volumes in use are counted.
const measureEvery = 20 * time.Second

// Run saves, pauses, deletes and sweeps until ctx ends. Call it once.
func (h *Hub) Run(ctx context.Context) error {
	var all sync.WaitGroup
	all.Go(func() { h.saveUnsaved(ctx) })
	all.Go(func() { h.relieve(ctx) })
	all.Go(func() { h.recoverEvery(ctx) })
	all.Go(func() { h.askEvery(ctx) })
	all.Go(func() {
		h.every(ctx, pauseEvery, func() {
			h.chargeAll(ctx)
			h.pauseIdle(ctx)
		})
	})
	if h.o.Volumes != nil {
		all.Go(func() { h.every(ctx, measureEvery, func() { h.MeasureVolumes(ctx, h.volumesInMemory()) }) })
	}
	all.Go(func() { h.every(ctx, sweepEvery, func() { h.sweep(ctx) }) })
	all.Wait()
	return nil
}

// every calls do again and again, one call at a time, until ctx or the hub ends.
func (h *Hub) every(ctx context.Context, pause time.Duration, do func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			do()
		case <-h.work.Ended.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// pauseIdle pauses the sessions that were unused for their idle time, and those that have used much processor time since their last use.
func (h *Hub) pauseIdle(ctx context.Context) {
	if h.saves() {
		h.evictUnused(ctx, func(s *seat) bool {
			return !h.draining && (meter.IsFull(h.work.Now().Sub(s.used), s.idle) || s.behind >= mostBehind && s.used.Equal(s.behindOf))
		})
	}
}

// evictUnused evicts the unused sessions for which fits is true, several at the same time, until none is left. Each can be used until its own eviction begins.
// fits is called with mu held.
func (h *Hub) evictUnused(ctx context.Context, fits func(*seat) bool) {
	next := func() *seat {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, s := range h.seats {
			if fits(s) && s.beginEviction() {
				return s
			}
		}
		return nil
	}
	var all sync.WaitGroup
	for range pauseAtOnce {
		all.Go(func() {
			for s := next(); s != nil; s = next() {
				_ = h.evict(ctx, s, nil) // its record and the log say what went wrong
			}
		})
	}
	all.Wait()
}

// sweep deletes sessions, files and uploads that have expired, and corrects records that could not be written while the store did not answer.
func (h *Hub) sweep(ctx context.Context) {
	living := []SessionState{SessionActive, SessionPaused, SessionLost}
	expired, err := h.work.Store.SessionsWhere(ctx, Where{States: living, ExpiredBy: h.work.Now(), Reach: h.work.HomeID(), Free: true, By: h.work.OwnerID()}, sweepBatch)
	if err != nil {
		h.work.Log.WarnContext(ctx, "expired sessions were not looked for", "error", err)
		return
	}
	for _, row := range expired {
		err := h.deleteSession(ctx, row.Project, row.ID)
		if err != nil && problem.Of(err).Kind != problem.NotFound {
			h.work.Log.WarnContext(ctx, "an expired session was not deleted", "session", row.ID, "error", err)
		}
	}
	h.reconcile(ctx)
	if err := h.o.Sessions.Sweep(); err != nil {
		h.work.Log.WarnContext(ctx, "the files of deleted sessions were not removed", "error", err)
	}
	if err := h.SweepFiles(ctx); err != nil {
		h.work.Log.WarnContext(ctx, "expired files were not deleted", "error", err)
	}
	if err := h.SweepUploads(ctx); err != nil {
		h.work.Log.WarnContext(ctx, "expired uploads were not removed", "error", err)
	}
}

// volumesInMemory returns the projects and the ids of the volumes that sessions in memory have.
func (h *Hub) volumesInMemory() map[[2]string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[[2]string]bool{}
	for _, s := range h.seats {
		for _, m := range s.volumes {
			all[[2]string{s.project, m.Volume}] = true
		}
	}
	return all
}

// reconcile corrects the records of sessions that are called active and are not in memory.
func (h *Hub) reconcile(ctx context.Context) {
	rows, err := h.work.Store.SessionsWhere(ctx, Where{
		States: []SessionState{SessionActive}, UsedUntil: h.work.Now().Add(-sweepEvery), InMemory: true, By: h.work.OwnerID(),
	}, everything)
	if err != nil {
		return
	}
	for _, row := range rows {
		if _, err := h.exclusively(row.Project, row.ID, func() error { return h.correct(ctx, row) }); err != nil {
			h.work.Log.WarnContext(ctx, "the record of a session was not corrected", "session", row.ID, "error", err)
		}
	}
}

// correct records a session's state by what the disk has of it. The caller sees to it that nothing loads the session meanwhile.
func (h *Hub) correct(ctx context.Context, row Session) error {
	if h.o.Sessions.Dir == "" {
		return h.giveBack(ctx, row)
	}
	info, err := h.o.Sessions.Show(ctx, row.ID)
	if err != nil && !problem.Has(err, problem.SessionUnknown) {
		return err
	}
	switch alone := h.o.Owner == nil || h.o.Owner.Alone(); {
	case err == nil && info.State == ondisk.Running:
		return nil
	case !alone && !info.Served:
		return h.giveBack(ctx, row)
	}
	return h.settleSession(ctx, row, info, err == nil)
}

// giveBack records that no process has a session which its caller had attached. The caller that attaches it next knows its state.
func (h *Hub) giveBack(ctx context.Context, row Session) error {
	_, err := h.work.Store.UpdateSession(ctx, row.Project, row.ID, func(s *Session) error {
		if s.Owner == row.Owner && s.State != SessionDeleted {
			s.State, s.Reason, s.Owner = SessionPaused, "", ""
		}
		return nil
	})
	return err
}

// Drain refuses new work (problem.Unavailable, code "draining") and pauses every session as soon as it is unused. Work that uses a session may go on until ctx
// ends, and is interrupted then. Drain returns when no session is in memory and no goroutine runs. Where ctx has a deadline, that is some minutes after it at most: sessions that are not saved by then lose what is
// unsaved. Afterwards the hub cannot be used.
func (h *Hub) Drain(ctx context.Context) error {
	began := time.Now()
	h.mu.Lock()
	h.draining = true
	h.work.BeginDrain(began)
	busy, sessions := h.busy, len(h.seats)
	if end, ok := ctx.Deadline(); ok {
		h.saveBy = end.Add(interruptPatience + lastSaves)
	}
	h.mu.Unlock()
	for _, l := range h.turns.waiting("") {
		l.stop(stoppedWaiting())
	}
	for _, d := range h.detachedWhere(func(*detached) bool { return true }) {
		if _, ok := d.claim(); ok {
			d.stop(stoppedWaitingForResults())
		}
	}
	h.calls.stopAll()
	h.inputs.stopAll()
	h.work.Log.LogAttrs(ctx, slog.LevelInfo, "draining", slog.Int("work", busy), slog.Int("sessions", sessions))
	patient := context.WithoutCancel(ctx)
	if h.work.IsFenced() {
		h.interrupt(ownership.ErrLost())
	}
	if !h.empty(ctx) {
		h.interrupt(errDraining)
		h.emptyWithin(patient, interruptPatience)
	}
	h.end(errDraining)
	h.work.Crew.Wait()
	h.streams.Wait()
	h.evictUnused(patient, func(*seat) bool { return true })
	if !h.emptyWithin(patient, savePatience) {
		h.work.Log.ErrorContext(ctx, "sessions are still in use at the end of a drain; their unsaved changes are lost")
	}
	h.work.Crew.Wait()
	h.streams.Wait()
	h.work.Log.LogAttrs(ctx, slog.LevelInfo, "drained", slog.Float64("seconds", time.Since(began).Seconds()))
	return nil
}

var errDraining = drained()

// empty evicts every session as soon as it is unused; a session that a turn still needs is loaded again, which costs a resume. It returns true when no work
// runs and no session is left, and false when ctx ends before.
func (h *Hub) empty(ctx context.Context) bool {
	for {
		h.mu.Lock()
		freed := h.freed
		h.mu.Unlock()
		h.evictUnused(ctx, func(*seat) bool { return ctx.Err() == nil })
		h.mu.Lock()
		empty := h.busy == 0 && len(h.seats) == 0
		h.mu.Unlock()
		if empty {
			return true
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

func (h *Hub) emptyWithin(ctx context.Context, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return h.empty(ctx)
}

// Ready says whether the hub can serve; nil means that it can.
func (h *Hub) Ready(ctx context.Context) error {
	h.mu.Lock()
	draining := h.draining
	h.mu.Unlock()
	if h.work.IsFenced() {
		return ownership.ErrLost()
	}
	if draining {
		return drained()
	}
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	if err := h.work.Store.Ping(ctx); err != nil {
		return err
	}
	if h.o.Unstartable != nil {
		if err := h.o.Unstartable(); err != nil {
			return problem.New(problem.NothingStarts, "no session can start").WithHint("the log of the server says why").WithCause(err)
		}
	}
	return h.work.UnstoredProblem()
}
