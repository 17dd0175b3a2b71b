package hub

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cove/internal/memory"
	"cove/internal/problem"
)

// Memory runs out slowly, as sessions take more of it than they cost when they were let in, or at once, as code that has begun takes all it may. Against
// the first the hub saves sessions that nobody uses and takes them out of memory, those first that were not used for longest; against the second it
// begins code only where some is left for it to take. What the system kills all the same is told as out of memory.
const (
	pressureEvery = 500 * time.Millisecond
	// justUsed is how long a session must not have been used before others' need of memory takes it out.
	justUsed = 2 * time.Second
	// gaugeLife is how long a look at the machine's memory is believed.
	gaugeLife = 50 * time.Millisecond
	// pressurePoll is how often code that waits for memory looks again.
	pressurePoll = 100 * time.Millisecond
)

// gauge looks at the machine's memory.
type gauge struct {
	look func() (memory.Room, error)

	mu   sync.Mutex
	at   time.Time
	room memory.Room
	err  error
}

// read returns what there is; ok is false where that cannot be known, and everything is let in.
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

// forSession is what must be available for another session.
func forSession(r memory.Room) int64 { return sessionCost + r.Least() }

// relieve keeps some memory available until ctx ends.
func (h *Hub) relieve(ctx context.Context) {
	h.every(ctx, pressureEvery, func() {
		for h.gauge.scarce(memory.Room.Growth) && h.evictOldest(ctx, "") {
			h.gauge.forget()
		}
	})
}

// forget has the next read look anew.
func (g *gauge) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at = time.Time{}
}

// evictOldest gives memory back: what is kept ready and nobody has claimed, or the session that nobody has used for longest; never the one that needs it. It
// returns false when there is nothing to give.
func (h *Hub) evictOldest(ctx context.Context, but string) bool {
	if h.o.Shed != nil && h.o.Shed() {
		return true
	}
	if !h.saves() {
		return false
	}
	h.mu.Lock()
	var oldest *seat
	for _, s := range h.seats {
		if s.id != but && s.free() && h.now().Sub(s.used) >= justUsed && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	if oldest != nil {
		oldest.beginEviction()
	}
	h.mu.Unlock()
	if oldest == nil {
		return false
	}
	h.log.LogAttrs(ctx, slog.LevelInfo, "a session makes room in memory", slog.String("session", oldest.id))
	_ = h.evict(ctx, oldest, nil) // its record and the log say what went wrong
	return !h.stayed(oldest)
}

// spare sees to it that there is memory for code to take that is about to begin in a session. While other code runs there has to be some for that too.
// Where nothing can be given back it waits a little, and refuses only when hardly any memory is left at all.
func (h *Hub) spare(ctx context.Context, session string) error {
	h.mu.Lock()
	begun := int64(len(h.executions) + 1)
	h.mu.Unlock()
	wanted := func(r memory.Room) int64 { return min(begun*r.Growth(), r.Total/2) }
	until := time.Now().Add(roomPatience)
	for h.gauge.scarce(wanted) {
		if h.evictOldest(ctx, session) {
			h.gauge.forget()
			continue
		}
		if !h.gauge.scarce(func(r memory.Room) int64 { return r.Growth() / 2 }) {
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
	if h.gauge.scarce(memory.Room.Least) {
		return serverMemory()
	}
	return nil
}

func serverMemory() *problem.Error {
	return exhausted(problem.ServerMemory, "the server's memory is used up").
		WithHint("try again in a moment; sessions that nobody uses are saved and make room")
}
