package session

import (
	"time"

	"cove/internal/machine/sandbox"
)

// meter is what the session's sandboxes have used. Guarded by Live.mu.
type meter struct {
	before time.Duration // by sandboxes that have ended
	seen   time.Duration // by the present sandbox, when it was last read
}

// read returns the processor time of all sandboxes together, and false when sb cannot measure its own.
func (m *meter) read(sb sandbox.Sandbox) (time.Duration, bool) {
	counts, ok := sb.(sandbox.Meter)
	if !ok {
		return 0, false
	}
	now, err := counts.CPU()
	if err != nil {
		return 0, false
	}
	m.seen = max(m.seen, now)
	return m.before + m.seen, true
}

// next adds the processor time of sb, which another sandbox will replace.
func (m *meter) next(sb sandbox.Sandbox) {
	_, _ = m.read(sb)
	m.before, m.seen = m.before+m.seen, 0
}

// Memory returns the memory that only the session's sandbox takes, in bytes, and 0 when it is not known, as while the session is being changed.
func (s *Live) Memory() int64 {
	if !s.mu.TryLock() { // a caller that chooses among sessions does not wait for one of them
		return 0
	}
	defer s.mu.Unlock()
	if w, ok := s.sandbox.(sandbox.Weigher); ok {
		return w.Memory()
	}
	return 0
}

// CPU returns the processor time that the session's sandboxes have used so far, their starts included, and false when it is not
// known, as with engines that do not measure it. It never becomes less.
func (s *Live) CPU() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meter.read(s.sandbox)
}
