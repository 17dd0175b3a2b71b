package live

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/hub/meter"
	"cove/internal/server/hub/record"
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
func (m *Manager) Run(ctx context.Context) error {
	var all sync.WaitGroup
	all.Go(func() { m.saveUnsaved(ctx) })
	all.Go(func() { m.relievePressure(ctx) })
	all.Go(func() { m.recoverEvery(ctx) })
	all.Go(func() { m.hooks.AskEvery(ctx) })
	all.Go(func() {
		m.CallEvery(ctx, pauseEvery, func() {
			m.chargeAll(ctx)
			m.pauseIdle(ctx)
		})
	})
	if m.library.HasVolumes() {
		all.Go(func() { m.CallEvery(ctx, measureEvery, func() { m.library.MeasureVolumes(ctx, m.volumesInMemory()) }) })
	}
	all.Go(func() { m.CallEvery(ctx, sweepEvery, func() { m.sweepOld(ctx) }) })
	all.Wait()
	return nil
}

// CallEvery calls do again and again, one call at a time, until ctx or the hub ends.
func (m *Manager) CallEvery(ctx context.Context, pause time.Duration, do func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			do()
		case <-m.work.Ended.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// pauseIdle pauses the sessions that were unused for their idle time, and those that have used much processor time since their last use.
func (m *Manager) pauseIdle(ctx context.Context) {
	if m.CanSave() {
		m.evictUnused(ctx, func(s *seat) bool {
			return !m.draining && (meter.IsFull(m.work.Now().Sub(s.used), s.idle) || s.behind >= mostBehind && s.used.Equal(s.behindOf))
		})
	}
}

// evictUnused evicts the unused sessions for which fits is true, several at the same time, until none is left. Each can be used until its own eviction begins.
// fits is called with mu held.
func (m *Manager) evictUnused(ctx context.Context, fits func(*seat) bool) {
	next := func() *seat {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, s := range m.seats {
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
				_ = m.evictSeat(ctx, s, nil) // its record and the log say what went wrong
			}
		})
	}
	all.Wait()
}

// sweepOld deletes sessions, files and uploads that have expired, and corrects records that could not be written while the store did not answer.
func (m *Manager) sweepOld(ctx context.Context) {
	living := []record.SessionState{record.SessionActive, record.SessionPaused, record.SessionLost}
	expired, err := m.work.Store.SessionsWhere(ctx, record.Where{States: living, ExpiredBy: m.work.Now(), Reach: m.work.HomeID(), Free: true, By: m.work.OwnerID()}, sweepBatch)
	if err != nil {
		m.work.Log.WarnContext(ctx, "expired sessions were not looked for", "error", err)
		return
	}
	for _, row := range expired {
		err := m.DeleteSessionRow(ctx, row.Project, row.ID)
		if err != nil && problem.Of(err).Kind != problem.NotFound {
			m.work.Log.WarnContext(ctx, "an expired session was not deleted", "session", row.ID, "error", err)
		}
	}
	m.reconcileRecords(ctx)
	if err := m.o.Sessions.Sweep(); err != nil {
		m.work.Log.WarnContext(ctx, "the files of deleted sessions were not removed", "error", err)
	}
	if err := m.library.SweepFiles(ctx); err != nil {
		m.work.Log.WarnContext(ctx, "expired files were not deleted", "error", err)
	}
	if err := m.library.SweepUploads(ctx); err != nil {
		m.work.Log.WarnContext(ctx, "expired uploads were not removed", "error", err)
	}
}

// volumesInMemory returns the projects and the ids of the volumes that sessions in memory have.
func (m *Manager) volumesInMemory() map[[2]string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[[2]string]bool{}
	for _, s := range m.seats {
		for _, m := range s.volumes {
			all[[2]string{s.project, m.Volume}] = true
		}
	}
	return all
}

// reconcileRecords corrects the records of sessions that are called active and are not in memory.
func (m *Manager) reconcileRecords(ctx context.Context) {
	rows, err := m.work.Store.SessionsWhere(ctx, record.Where{
		States: []record.SessionState{record.SessionActive}, UsedUntil: m.work.Now().Add(-sweepEvery), InMemory: true, By: m.work.OwnerID(),
	}, everything)
	if err != nil {
		return
	}
	for _, row := range rows {
		if _, err := m.exclusively(row.Project, row.ID, func() error { return m.correctRecord(ctx, row) }); err != nil {
			m.work.Log.WarnContext(ctx, "the record of a session was not corrected", "session", row.ID, "error", err)
		}
	}
}

// correctRecord records a session's state by what the disk has of it. The caller sees to it that nothing loads the session meanwhile.
func (m *Manager) correctRecord(ctx context.Context, row record.Session) error {
	if m.o.Sessions.Dir == "" {
		return m.giveBack(ctx, row)
	}
	info, err := m.o.Sessions.Show(ctx, row.ID)
	if err != nil && !problem.Has(err, problem.SessionUnknown) {
		return err
	}
	switch alone := m.o.Owner == nil || m.o.Owner.Alone(); {
	case err == nil && info.State == ondisk.Running:
		return nil
	case !alone && !info.Served:
		return m.giveBack(ctx, row)
	}
	return m.settleSession(ctx, row, info, err == nil)
}

// giveBack records that no process has a session which its caller had attached. The caller that attaches it next knows its state.
func (m *Manager) giveBack(ctx context.Context, row record.Session) error {
	_, err := m.work.Store.UpdateSession(ctx, row.Project, row.ID, func(s *record.Session) error {
		if s.Owner == row.Owner && s.State != record.SessionDeleted {
			s.State, s.Reason, s.Owner = record.SessionPaused, "", ""
		}
		return nil
	})
	return err
}

// Drain refuses new work (problem.Unavailable, code "draining") and pauses every session as soon as it is unused. Work that uses a session may go on until ctx
// ends, and is interrupted then. Drain returns when no session is in memory and no goroutine runs. Where ctx has a deadline, that is some minutes after it at most: sessions that are not saved by then lose what is
// unsaved. Afterwards the hub cannot be used.
func (m *Manager) Drain(ctx context.Context) error {
	began := time.Now()
	m.mu.Lock()
	m.draining = true
	m.work.BeginDrain(began)
	busy, sessions := m.busy, len(m.seats)
	if end, ok := ctx.Deadline(); ok {
		m.saveBy = end.Add(interruptPatience + lastSaves)
	}
	m.mu.Unlock()
	m.hooks.StopWaiting()
	for _, d := range m.DetachedWhere(func(*Detached) bool { return true }) {
		if _, ok := d.ClaimResults(); ok {
			d.StopExecution(stoppedWaitingForResults())
		}
	}
	m.calls.stopAll()
	m.inputs.stopAll()
	m.work.Log.LogAttrs(ctx, slog.LevelInfo, "draining", slog.Int("work", busy), slog.Int("sessions", sessions))
	patient := context.WithoutCancel(ctx)
	if m.work.IsFenced() {
		m.interrupt(ownership.ErrLost())
	}
	if !m.emptyMemory(ctx) {
		m.interrupt(errDraining)
		m.emptyWithin(patient, interruptPatience)
	}
	m.end(errDraining)
	m.work.Crew.Wait()
	m.Streams.Wait()
	m.evictUnused(patient, func(*seat) bool { return true })
	if !m.emptyWithin(patient, savePatience) {
		m.work.Log.ErrorContext(ctx, "sessions are still in use at the end of a drain; their unsaved changes are lost")
	}
	m.work.Crew.Wait()
	m.Streams.Wait()
	m.work.Log.LogAttrs(ctx, slog.LevelInfo, "drained", slog.Float64("seconds", time.Since(began).Seconds()))
	return nil
}

var errDraining = drained()

// emptyMemory evicts every session as soon as it is unused; a session that a turn still needs is loaded again, which costs a resume. It returns true when no work
// runs and no session is left, and false when ctx ends before.
func (m *Manager) emptyMemory(ctx context.Context) bool {
	for {
		m.mu.Lock()
		freed := m.freed
		m.mu.Unlock()
		m.evictUnused(ctx, func(*seat) bool { return ctx.Err() == nil })
		m.mu.Lock()
		empty := m.busy == 0 && len(m.seats) == 0
		m.mu.Unlock()
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

func (m *Manager) emptyWithin(ctx context.Context, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return m.emptyMemory(ctx)
}

// Ready says whether the hub can serve; nil means that it can.
func (m *Manager) Ready(ctx context.Context) error {
	m.mu.Lock()
	draining := m.draining
	m.mu.Unlock()
	if m.work.IsFenced() {
		return ownership.ErrLost()
	}
	if draining {
		return drained()
	}
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	if err := m.work.Store.Ping(ctx); err != nil {
		return err
	}
	if m.o.Unstartable != nil {
		if err := m.o.Unstartable(); err != nil {
			return problem.New(problem.NothingStarts, "no session can start").WithHint("the log of the server says why").WithCause(err)
		}
	}
	return m.work.UnstoredProblem()
}
