package hub

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cove/internal/named"
	"cove/internal/problem"
)

// The rhythm of Run.
const (
	pauseEvery  = 5 * time.Second
	sweepEvery  = time.Minute
	sweepBatch  = 100
	pauseAtOnce = 4
	// interruptPatience is how long what a drain has interrupted may take to end and to be stored.
	interruptPatience = 30 * time.Second
	pingPatience      = 5 * time.Second
)

// Run pauses, deletes and sweeps until ctx ends. Call it once.
func (h *Hub) Run(ctx context.Context) error {
	pauses, sweeps := time.NewTicker(pauseEvery), time.NewTicker(sweepEvery)
	defer pauses.Stop()
	defer sweeps.Stop()
	for {
		select {
		case <-pauses.C:
			h.pauseIdle(ctx)
		case <-sweeps.C:
			h.sweep(ctx)
		case <-h.ended.Done():
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// pauseIdle pauses the sessions that nobody has used for as long as their owners said.
func (h *Hub) pauseIdle(ctx context.Context) {
	now := h.now()
	h.mu.Lock()
	var idle []*seat
	for _, s := range h.seats {
		if h.saves() && now.Sub(s.used) >= s.idle && !h.draining && s.claim() {
			idle = append(idle, s)
		}
	}
	h.mu.Unlock()
	h.departAll(ctx, idle)
}

// departAll takes claimed sessions out of memory, some at once.
func (h *Hub) departAll(ctx context.Context, seats []*seat) {
	var all sync.WaitGroup
	room := make(chan struct{}, pauseAtOnce)
	for _, s := range seats {
		room <- struct{}{}
		all.Go(func() {
			_ = h.depart(ctx, s, nil) // its record and the log say what went wrong
			<-room
		})
	}
	all.Wait()
}

// sweep deletes sessions and files whose life is over, and puts right what the store was not told of when it was away.
func (h *Hub) sweep(ctx context.Context) {
	living := []SessionState{SessionActive, SessionPaused, SessionLost}
	expired, err := h.o.Store.SessionsWhere(ctx, Where{States: living, ExpiredBy: h.now()}, sweepBatch)
	if err != nil {
		h.log.WarnContext(ctx, "sessions whose life is over were not looked for", "error", err)
		return
	}
	for _, row := range expired {
		err := h.deleteSession(ctx, row.Project, row.ID)
		if err != nil && problem.Of(err).Kind != problem.NotFound {
			h.log.WarnContext(ctx, "a session whose life is over was not deleted", "session", row.ID, "error", err)
		}
	}
	h.reconcile(ctx)
	if err := h.sweepFiles(ctx); err != nil {
		h.log.WarnContext(ctx, "files whose life is over were not deleted", "error", err)
	}
}

// reconcile corrects records that call a session active which is not in memory.
func (h *Hub) reconcile(ctx context.Context) {
	rows, err := h.o.Store.SessionsWhere(ctx, Where{States: []SessionState{SessionActive}, UsedUntil: h.now().Add(-sweepEvery)}, everything)
	if err != nil {
		return
	}
	for _, row := range rows {
		if _, err := h.alone(row.ID, func() error { return h.correct(ctx, row) }); err != nil {
			h.log.WarnContext(ctx, "the record of a session was not corrected", "session", row.ID, "error", err)
		}
	}
}

// correct writes what the disk says of a session. Nobody brings it into memory meanwhile.
func (h *Hub) correct(ctx context.Context, row Session) error {
	info, err := h.o.Sessions.Show(ctx, row.ID)
	if err != nil && problem.Of(err).Code != "session_unknown" {
		return err
	}
	if err == nil && info.State == named.Running {
		return nil
	}
	state, reason := found(row, info, err == nil)
	_, err = h.o.Store.UpdateSession(ctx, row.Project, row.ID, func(s *Session) error {
		if s.State == SessionActive {
			s.State, s.Reason = state, reason
		}
		return nil
	})
	return err
}

// Drain refuses new work (problem.Unavailable, code "draining"), lets running work end until ctx ends, interrupts the rest and pauses every
// session. Nothing can be done with the hub afterwards.
func (h *Hub) Drain(ctx context.Context) error {
	h.mu.Lock()
	h.draining = true
	busy, sessions := h.busy, len(h.seats)
	h.mu.Unlock()
	began := time.Now()
	h.log.LogAttrs(ctx, slog.LevelInfo, "draining", slog.Int("work", busy), slog.Int("sessions", sessions))
	var idle sync.WaitGroup
	working, worked := context.WithCancel(ctx)
	idle.Go(func() { h.departIdle(working) }) // while the others work
	h.settle(ctx)
	worked()
	h.interrupt(errDraining)
	ctx = context.WithoutCancel(ctx)
	patience, cancel := context.WithTimeout(ctx, interruptPatience)
	defer cancel()
	h.settle(patience)
	h.departEveryone(patience)
	idle.Wait()
	h.end()
	h.all.Wait()
	last, cancel := context.WithTimeout(ctx, savePatience)
	defer cancel()
	h.departEveryone(last) // what was still held then
	h.all.Wait()
	h.log.LogAttrs(ctx, slog.LevelInfo, "drained", slog.Float64("seconds", time.Since(began).Seconds()))
	return nil
}

var errDraining = drained()

// settle waits until no work runs.
func (h *Hub) settle(ctx context.Context) {
	for {
		h.mu.Lock()
		busy, freed := h.busy, h.freed
		h.mu.Unlock()
		if busy == 0 {
			return
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return
		}
	}
}

// departIdle takes out of memory what nobody uses, until ctx ends. What a turn still needs comes back, at the price of a resume.
func (h *Hub) departIdle(ctx context.Context) {
	for ctx.Err() == nil {
		h.mu.Lock()
		var free []*seat
		for _, s := range h.seats {
			if s.claim() {
				free = append(free, s)
			}
		}
		freed := h.freed
		h.mu.Unlock()
		if len(free) > 0 {
			h.departAll(ctx, free)
			continue
		}
		select {
		case <-freed:
		case <-ctx.Done():
		}
	}
}

// departEveryone takes all sessions out of memory, waiting for those that are still used until ctx ends.
func (h *Hub) departEveryone(ctx context.Context) {
	for {
		h.mu.Lock()
		var free []*seat
		for _, s := range h.seats {
			if s.claim() {
				free = append(free, s)
			}
		}
		left, freed := len(h.seats), h.freed
		h.mu.Unlock()
		if left == 0 {
			return
		}
		if len(free) > 0 {
			h.departAll(ctx, free)
			continue
		}
		select {
		case <-freed:
		case <-ctx.Done():
			h.log.ErrorContext(ctx, "sessions are still in use at the end of a drain; what happened in them is lost", "sessions", left)
			return
		}
	}
}

// Ready says whether the hub can serve; nil means that it can.
func (h *Hub) Ready(ctx context.Context) error {
	h.mu.Lock()
	draining := h.draining
	h.mu.Unlock()
	if draining {
		return drained()
	}
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	if err := h.o.Store.Ping(ctx); err != nil {
		return err
	}
	if h.owing.Load() > 0 {
		return unstored()
	}
	return nil
}

func unstored() error {
	return problem.New(problem.Unavailable, "database_unavailable", "the database has not taken all records yet").WithHint("try again in a moment")
}
