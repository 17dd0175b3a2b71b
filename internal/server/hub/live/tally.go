package live

import (
	"context"
	"math"
	"runtime"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/hub/record"
	"cove/internal/sessions/ondisk"
)

// tally divides the processor time of a session among the executions that run in it. Which of them used it cannot be seen from outside: the time used while
// several run is divided evenly, so that no second is charged twice. Time used while none runs, by threads and processes that code has left behind or by code
// that only claimed to have ended, is charged to the session.
type tally struct {
	mu      sync.Mutex
	last    time.Duration
	blind   bool // last is not known
	running map[*share]struct{}
	between time.Duration // used while none ran, and not returned by take yet
}

// share is one execution's part.
type share struct {
	used    time.Duration
	unknown bool // the time could not be read while it ran
}

// read charges the time used since the last read. The caller holds mu.
func (y *tally) read(l Live) {
	var now time.Duration
	m, ok := l.(ondisk.Meter)
	if ok {
		now, ok = m.CPU()
	}
	for s := range y.running {
		if s.unknown = s.unknown || !ok; !y.blind {
			s.used += max(now-y.last, 0) / time.Duration(len(y.running))
		}
	}
	if len(y.running) == 0 && ok && !y.blind {
		y.between += max(now-y.last, 0)
	}
	y.last, y.blind = now, !ok
}

// skip charges the time used since the last read to nobody: it is for the server's own work.
func (y *tally) skip(l Live) {
	y.mu.Lock()
	defer y.mu.Unlock()
	before := y.between
	y.read(l)
	y.between = before
}

// take returns the time used between executions since take was last called.
func (y *tally) take(l Live) time.Duration {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.read(l)
	took := y.between
	y.between = 0
	return took
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

// metering measures the processor time of an execution that runs, or of its parts between which it is parked.
type metering struct {
	seat    *seat
	live    Live
	part    *share // nil while it is parked
	used    time.Duration
	unknown bool
}

// begin begins to measure, in a session that is held.
func (m *metering) begin(s *seat, live Live) { m.seat, m.live, m.part = s, live, s.tally.enter(live) }

func (m *metering) pause() {
	if m.part == nil {
		return
	}
	m.seat.tally.leave(m.live, m.part)
	m.used, m.unknown, m.part = m.used+m.part.used, m.unknown || m.part.unknown, nil
}

// metered measures the processor time of the execution that begins. ended returns it, at most what the session's processors can do in the
// time that the execution took, or 0 when it is not known.
func (m *Manager) metered(t *liveExecution) (ended func(wall time.Duration) time.Duration) {
	m.mu.Lock()
	s := m.seats[t.session]
	live := s.Live
	m.mu.Unlock()
	measure := &metering{}
	measure.begin(s, live)
	t.meter = measure
	return func(wall time.Duration) time.Duration {
		measure.pause()
		if measure.unknown {
			return 0
		}
		processors := math.Ceil(measure.seat.cpus)
		if processors <= 0 {
			processors = float64(runtime.NumCPU())
		}
		most := time.Duration(float64(wall) * processors * 1.1) // clocks may differ
		return min(max(measure.used, time.Microsecond), most)   // 0 would mean that it could not be measured
	}
}

// mostBehind is how much processor time a session may use after its last use before it is paused, as it would be after its idle time.
const mostBehind = 5 * time.Minute

// chargeAll charges the sessions in memory for what they use between executions. A session that goes on for long, or whose project has no processor time left
// today, is to be paused: then nothing runs in it, and nothing is lost.
func (m *Manager) chargeAll(ctx context.Context) {
	m.mu.Lock()
	seats := make([]*seat, 0, len(m.seats))
	for _, s := range m.seats {
		if s.Live != nil && s.moving == nil {
			seats = append(seats, s)
		}
	}
	m.mu.Unlock()
	for _, s := range seats { // without the lock: a session may take a while to answer
		m.chargeSession(ctx, s)
	}
}

// chargeSession charges a session for what it has used between executions.
func (m *Manager) chargeSession(ctx context.Context, s *seat) {
	m.mu.Lock()
	live := s.Live
	m.mu.Unlock()
	if live == nil {
		return
	}
	used := s.tally.take(live)
	if used < time.Millisecond {
		return
	}
	m.meter.AddUsageOf(s.project, s.key, record.Usage{CPUSeconds: used.Seconds()})
	spent := problem.Of(m.meter.MayRun(ctx, s.project, s.key))
	m.mu.Lock()
	defer m.mu.Unlock()
	if !s.used.Equal(s.behindOf) {
		s.behind, s.behindOf = 0, s.used
	}
	if s.behind += used; problem.Has(spent, problem.QuotaCPU) {
		s.behind = max(s.behind, mostBehind)
	}
}
