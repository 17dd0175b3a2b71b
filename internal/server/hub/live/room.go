package live

import (
	"context"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/hub/meter"
	"cove/internal/sessions/pool"
)

// reserveMemory waits until there is room in memory for a seat's session and reserves it. Unused sessions are evicted for that, the one longest unused first.
func (m *Manager) reserveMemory(ctx context.Context, s *seat) error {
	limits, err := m.meter.Quotas(ctx, s.project, s.key)
	if err != nil {
		return err
	}
	patience := time.NewTimer(roomPatience)
	defer patience.Stop()
	for {
		short := m.gauge.scarce(m.forSession)
		m.mu.Lock()
		scope, full := m.findFullLimit(s, limits)
		if full == nil && short {
			scope, full = func(*seat) bool { return true }, serverMemory()
		}
		if full == nil {
			s.granted = true
			m.mu.Unlock()
			return nil
		}
		victim := m.longestUnused(s, scope)
		freed := m.freed
		if victim != nil {
			victim.beginEviction()
		}
		m.mu.Unlock()
		if victim != nil {
			_ = m.evictSeat(ctx, victim, nil) // the session's record has the error
			m.gauge.forget()
			if m.stayedInMemory(victim) {
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
			return SessionGone()
		case <-ctx.Done():
			return drained()
		}
	}
}

// stayedInMemory says whether a session that was to be evicted is still in memory.
func (m *Manager) stayedInMemory(s *seat) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return s.Live != nil
}

// findFullLimit returns the problem of the limit that the session would exceed, and which sessions could be evicted to make room. The caller holds mu.
func (m *Manager) findFullLimit(s *seat, limits meter.Allowance) (scope func(*seat) bool, err *problem.Error) {
	var all, project, key int
	for _, other := range m.seats {
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
	case meter.IsFull(all, m.capacity):
		return func(*seat) bool { return true }, exhausted(problem.TooManySessions, "as many sessions are in use as the server can hold")
	}
	return nil, nil
}

// longestUnused returns the session in scope that was unused for longest, or nil. The caller holds mu.
func (m *Manager) longestUnused(s *seat, scope func(*seat) bool) *seat {
	var found *seat
	for _, other := range m.seats {
		if !m.CanSave() || other == s || !other.free() || !scope(other) {
			continue
		}
		if found == nil || other.used.Before(found.used) {
			found = other
		}
	}
	return found
}

// CanSave says whether the engine can save sessions. A session that cannot be saved is never evicted for its memory alone.
func (m *Manager) CanSave() bool { return !m.o.Unsaved }

func (m *Manager) unsavable() error {
	return problem.New(problem.PauseUnsupported, "the engine "+m.o.Base.Engine+" cannot save sessions, so they cannot be paused, forked or undone").
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
