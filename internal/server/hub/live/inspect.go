package live

import (
	"context"
	"time"
)

// What Run does now and then, each for itself, and what is in memory: for those who do not wait until Run does it, as tests.

// SaveUnsaved is what Run does every second.
func (m *Manager) SaveUnsaved(ctx context.Context) { m.saveDue(ctx, m.dueSaves()) }

// HurrySaves has sessions saved again before it is their time.
func (m *Manager) HurrySaves() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.seats {
		s.saveFrom = time.Time{}
	}
}

// InMemory returns how many sessions are in memory.
func (m *Manager) InMemory() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.seats {
		if s.Live != nil {
			n++
		}
	}
	return n
}

// LookAgain has the hub look at the memory anew.
func (m *Manager) LookAgain() { m.gauge.forget() }

// PauseIdle is what Run does every five seconds.
func (m *Manager) PauseIdle(ctx context.Context) {
	m.chargeAll(ctx)
	m.pauseIdle(ctx)
}

// RecoverAbandoned is what Run does every five seconds.
func (m *Manager) RecoverAbandoned(ctx context.Context) error { return m.recoverAbandoned(ctx) }

// Sweep is what Run does every minute.
func (m *Manager) Sweep(ctx context.Context) { m.sweepOld(ctx) }

// Tail is how much of a stream that runs is in memory, in bytes.
func (m *Manager) Tail(id string) int {
	size, _ := m.Streams.Held(id)
	return size
}

// Stored is the number of the last event of a stream that runs which the store has.
func (m *Manager) Stored(id string) int64 {
	_, stored := m.Streams.Held(id)
	return stored
}

// Waiting is how many executions wait for a slot.
func (m *Manager) Waiting() int {
	m.slots.mu.Lock()
	defer m.slots.mu.Unlock()
	n := 0
	for _, w := range m.slots.waiting {
		n += len(w)
	}
	return n
}

// Free says whether nobody uses a session in memory.
func (m *Manager) Free(session string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.seats[session]
	return s != nil && s.free()
}
