package live

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"cove/internal/core/memory"
	"cove/internal/core/problem"
	"cove/internal/sessions/ondisk"
)

// Memory runs out slowly, when sessions use more of it than when they were loaded, or at once, when code takes all that it may. Against the first the hub
// evicts unused sessions, those first that have held most memory for longest; against the second it begins code only while memory is left for it. When the system kills a
// sandbox all the same, its execution ends as out of memory.
const (
	pressureEvery = 500 * time.Millisecond
	// justUsed is how long a session must have been unused before it is evicted because other sessions need memory.
	justUsed = 2 * time.Second
	// gaugeLife is how long a measurement of the machine's memory is used.
	gaugeLife = 50 * time.Millisecond
	// pressurePoll is how often the memory is measured while code waits for it.
	pressurePoll = 100 * time.Millisecond
)

// gauge measures the machine's memory.
type gauge struct {
	look func() (memory.Room, error)

	mu   sync.Mutex
	at   time.Time
	room memory.Room
	err  error
}

// read returns the available memory; ok is false where it cannot be measured, and then nothing is refused.
func (g *gauge) read() (room memory.Room, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.at) >= gaugeLife {
		g.room, g.err = g.look()
		g.at = time.Now()
	}
	return g.room, g.err == nil
}

// scarce says whether less than want bytes are available, as a share of what is.
func (g *gauge) scarce(want func(memory.Room) int64) bool {
	room, ok := g.read()
	return ok && room.Available < want(room)
}

// forSession is how much memory must be available to load another session.
func (m *Manager) forSession(r memory.Room) int64 { return m.o.SessionMemory + r.Least() }

// relievePressure keeps some memory available until ctx ends.
func (m *Manager) relievePressure(ctx context.Context) {
	m.CallEvery(ctx, pressureEvery, func() {
		for m.gauge.scarce(memory.Room.Growth) && m.makeRoom(ctx, "") {
			m.gauge.forget()
		}
	})
}

// forget makes the next read measure again.
func (g *gauge) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at = time.Time{}
}

// makeRoom frees memory: it ends a session of the pool, or evicts a session that nobody uses, but not the one that needs the memory. It returns false when there
// is neither.
func (m *Manager) makeRoom(ctx context.Context, but string) bool {
	if m.o.Shed != nil && m.o.Shed() {
		return true
	}
	if !m.CanSave() {
		return false
	}
	s := m.beginCostliestEviction(but)
	if s == nil {
		return false
	}
	m.work.Log.LogAttrs(ctx, slog.LevelInfo, "a session makes room in memory", slog.String("session", s.id))
	_ = m.evictSeat(ctx, s, nil) // the session's record and the log have the error
	return !m.stayedInMemory(s)
}

// beginCostliestEviction begins to evict the session with the largest product of the memory that it takes and the time for which nobody has used it, and returns it. nil: all
// sessions are in use, or were a moment ago.
func (m *Manager) beginCostliestEviction(but string) *seat {
	type idle struct {
		seat *seat
		live Live
		cost float64
	}
	var all []idle
	m.mu.Lock()
	for _, s := range m.seats {
		if unused := m.work.Now().Sub(s.used); s.id != but && s.free() && unused >= justUsed {
			all = append(all, idle{s, s.Live, unused.Seconds()})
		}
	}
	m.mu.Unlock()
	for i := range all { // without mu: the system is asked about each
		memory := m.o.SessionMemory
		if w, ok := all[i].live.(ondisk.Weigher); ok {
			memory = cmp.Or(w.Memory(), memory)
		}
		all[i].cost *= float64(memory)
	}
	slices.SortFunc(all, func(a, b idle) int { return cmp.Compare(b.cost, a.cost) })
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range all {
		if i.seat.free() && m.work.Now().Sub(i.seat.used) >= justUsed {
			i.seat.beginEviction()
			return i.seat
		}
	}
	return nil
}

// spareMemory makes sure that memory is available for code that is about to begin in a session; while other code runs, there has to be some for that too. When
// nothing can be freed it waits a little, and refuses the code only when hardly any memory is left at all.
func (m *Manager) spareMemory(ctx context.Context, session string) error {
	m.mu.Lock()
	begun := int64(len(m.executions) + 1)
	m.mu.Unlock()
	wanted := func(r memory.Room) int64 { return min(begun*r.Growth(), r.Total/2) }
	until := time.Now().Add(roomPatience)
	for m.gauge.scarce(wanted) {
		if m.makeRoom(ctx, session) {
			m.gauge.forget()
			continue
		}
		if !m.gauge.scarce(func(r memory.Room) int64 { return r.Growth() / 2 }) {
			return nil
		}
		if time.Now().After(until) {
			break
		}
		select {
		case <-time.After(pressurePoll):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if m.gauge.scarce(memory.Room.Least) {
		return serverMemory()
	}
	return nil
}

func serverMemory() *problem.Error {
	return exhausted(problem.ServerMemory, "the server's memory is used up").
		WithHint("try again in a moment; sessions that nobody uses are saved and make room")
}
