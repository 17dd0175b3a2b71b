package hub

import (
	"math"
	"runtime"
	"sync"
	"time"
)

// measured is a Live that knows the processor time that it has used.
type measured interface {
	// CPU returns the processor time since the session's beginning, and false when it cannot be read.
	CPU() (time.Duration, bool)
}

// tally divides the processor time of a session among the executions that run in it. Who has used it cannot be seen from outside: what is used
// while several run is divided evenly, so that no second is charged twice. What is used while none runs is nobody's.
type tally struct {
	mu      sync.Mutex
	last    time.Duration
	blind   bool // last is not known
	running map[*share]struct{}
}

// share is one execution's part.
type share struct {
	used    time.Duration
	unknown bool // the time could not be read while it ran
}

// read charges what was used since the last time. The caller holds mu.
func (y *tally) read(l Live) {
	var now time.Duration
	m, ok := l.(measured)
	if ok {
		now, ok = m.CPU()
	}
	for s := range y.running {
		if s.unknown = s.unknown || !ok; !y.blind {
			s.used += max(now-y.last, 0) / time.Duration(len(y.running))
		}
	}
	y.last, y.blind = now, !ok
}

func (y *tally) enter(l Live) *share {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.read(l)
	s := &share{unknown: y.blind}
	if y.running == nil {
		y.running = map[*share]struct{}{}
	}
	y.running[s] = struct{}{}
	return s
}

func (y *tally) leave(l Live, s *share) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.read(l)
	delete(y.running, s)
}

// metered measures the processor time of the execution that begins. ended returns it, at most what the session's processors can do in the
// time that the execution took, or 0 when it is not known.
func (h *Hub) metered(t *task) (ended func(wall time.Duration) time.Duration) {
	h.mu.Lock()
	s := h.seats[t.session]
	live := s.live
	h.mu.Unlock()
	part := s.tally.enter(live)
	return func(wall time.Duration) time.Duration {
		s.tally.leave(live, part)
		if part.unknown {
			return 0
		}
		processors := math.Ceil(s.cpus)
		if processors <= 0 {
			processors = float64(runtime.NumCPU())
		}
		most := time.Duration(float64(wall) * processors * 1.1) // clocks differ
		return min(max(part.used, time.Microsecond), most)      // 0 would say that it is not known
	}
}
