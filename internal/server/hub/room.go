package hub

import (
	"context"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/hub/meter"
	"cove/internal/sessions/pool"
)

// room waits until there is room in memory for a seat's session and reserves it. Unused sessions are evicted for that, the one longest unused first.
func (h *Hub) room(ctx context.Context, s *seat) error {
	limits, err := h.Meter.Quotas(ctx, s.project, s.key)
	if err != nil {
		return err
	}
	patience := time.NewTimer(roomPatience)
	defer patience.Stop()
	for {
		short := h.gauge.scarce(h.forSession)
		h.mu.Lock()
		scope, full := h.full(s, limits)
		if full == nil && short {
			scope, full = func(*seat) bool { return true }, serverMemory()
		}
		if full == nil {
			s.granted = true
			h.mu.Unlock()
			return nil
		}
		victim := h.unused(s, scope)
		freed := h.freed
		if victim != nil {
			victim.beginEviction()
		}
		h.mu.Unlock()
		if victim != nil {
			_ = h.evict(ctx, victim, nil) // the session's record has the error
			h.gauge.forget()
			if h.stayed(victim) {
				return exhausted(problem.ServerDiskFull, "the memory is full, and the disk has no room to pause another session").
					WithHint("the operator has to free space on the disk; deleting sessions frees space too")
			}
			continue
		}
		select {
		case <-freed:
		case <-time.After(pressurePoll): // the end of a shortage of memory closes no channel
		case <-patience.C:
			return full
		case <-s.ctx.Done():
			return sessionGone()
		case <-ctx.Done():
			return drained()
		}
	}
}

// stayed says whether a session that was to be evicted is still in memory.
func (h *Hub) stayed(s *seat) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return s.live != nil
}

// full returns the problem of the limit that the session would exceed, and which sessions could be evicted to make room. The caller holds mu.
func (h *Hub) full(s *seat, limits meter.Allowance) (scope func(*seat) bool, err *problem.Error) {
	var all, project, key int
	for _, other := range h.seats {
		if !other.granted {
			continue
		}
		all++
		if other.project == s.project {
			project++
			if s.key != "" && other.key == s.key {
				key++
			}
		}
	}
	switch {
	case s.key != "" && meter.IsFull(key, limits.Key.Sessions):
		return func(o *seat) bool { return o.project == s.project && o.key == s.key }, exhausted(problem.QuotaSessions, "this key uses as many sessions as it may have")
	case meter.IsFull(project, limits.Project.Sessions):
		return func(o *seat) bool { return o.project == s.project }, exhausted(problem.QuotaSessions, "the project uses as many sessions as it may have")
	case meter.IsFull(all, h.capacity):
		return func(*seat) bool { return true }, exhausted(problem.TooManySessions, "as many sessions are in use as the server can hold")
	}
	return nil, nil
}

// unused returns the session in scope that was unused for longest, or nil. The caller holds mu.
func (h *Hub) unused(s *seat, scope func(*seat) bool) *seat {
	var found *seat
	for _, other := range h.seats {
		if !h.saves() || other == s || !other.free() || !scope(other) {
			continue
		}
		if found == nil || other.used.Before(found.used) {
			found = other
		}
	}
	return found
}

// saves says whether the engine can save sessions. A session that cannot be saved is never evicted for its memory alone.
func (h *Hub) saves() bool { return !h.o.Unsaved }

func (h *Hub) unsavable() error {
	return problem.New(problem.PauseUnsupported, "the engine "+h.o.Base.Engine+" cannot save sessions, so they cannot be paused, forked or undone").
		WithHint("the operator has to set the server's engine to gvisor")
}

// roomPatience is how long a session waits for room in memory, before the caller has to try again.
const roomPatience = 5 * time.Second

// SessionMemory is about what an idle session of the standard environment takes that has no memory in common with others, in bytes.
const SessionMemory = 120 << 20

// capacity returns how many sessions may be in memory: want, or, where want is no limit, as many of cost bytes each as fit into three quarters of the memory that is available now.
func capacity(want int, cost int64) int {
	if want > 0 {
		return want
	}
	n, err := pool.SizeFor(1<<16, cost/3) // which takes a quarter
	if err != nil {
		return 8
	}
	return n
}

func exhausted(code problem.ExhaustedCode, message string) *problem.Error {
	return problem.New(code, message).WithHint("try again in a moment")
}
