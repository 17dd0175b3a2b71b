package session

import (
	"time"

	"cove/internal/sandbox"
)

// meter is what the session's sandboxes have used. Guarded by Session.mu.
type meter struct {
	before time.Duration // by those that are gone
	seen   time.Duration // by the one that is there, when it was last read
}

// read returns the processor time of all sandboxes together, and false when box cannot tell its own.
func (m *meter) read(box sandbox.Sandbox) (time.Duration, bool) {
	counts, ok := box.(sandbox.Meter)
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

// next takes leave of box, which another one will replace.
func (m *meter) next(box sandbox.Sandbox) {
	_, _ = m.read(box)
	m.before, m.seen = m.before+m.seen, 0
}

// CPU returns the processor time that the session's sandboxes have used so far, their starts included, and false when it is not
// known, as with engines that do not measure it. It never becomes less.
func (s *Session) CPU() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meter.read(s.box)
}
