package live

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/machine/image"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
	"cove/internal/server/hub/work"
	"cove/internal/sessions/ondisk"
)

// touchEvery is the precision of Session.Used in the store while a session is in memory.
const touchEvery = 15 * time.Second

// seat is a session in memory, or one that is being loaded or evicted.
type seat struct {
	id, project, key string
	ctx              context.Context // ends when the session is deleted
	cancel           context.CancelCauseFunc
	left             chan struct{} // closed when the seat is removed
	created          bool          // the session is being created
	attached         bool          // the session belongs to its caller, see AttachSession: the hub does not save, pause or evict it
	cpus             float64       // as the session has
	volumes          []record.VolumeMount
	tally            tally

	// Guarded by Hub.mu.
	name             *ondisk.LeasedSession
	Live             Live
	lost             <-chan struct{}
	granted          bool // the session counts for the limits
	moving           chan struct{}
	failed           error // why the session could not be loaded
	outbound         outbound
	users            int
	waiters          int           // how many callers wait for moving to be closed, to acquire the session then
	exclusiveWaiters int           // how many callers wait to have the session exclusively
	exclusiveGate    chan struct{} // closed when exclusiveWaiters becomes 0; later callers wait for that; nil while it is 0
	wantedSignal     chan struct{} // closed when somebody begins to wait to have the session exclusively; nil while nothing waits for that
	unusedSignal     chan struct{} // closed when the session has no users and no waiters; nil while nothing waits for that
	idle             time.Duration
	used             time.Time
	touched          time.Time // the store's value of used; zero until the first use
	ran              int       // executions of the session, also those that the store does not count yet
	lines            map[string]*line
	// rollback is what the session lost, as Session.Rollback.
	rollback *record.Rollback
	unsaved  time.Time     // since when the session has unsaved changes, as far as the saver has seen; zero: it has none
	saveFrom time.Time     // the saver leaves the session alone until then
	behind   time.Duration // processor time that it has used since its last use, at behindOf
	behindOf time.Time
}

func newSeat(s record.Session) *seat {
	seat := &seat{
		id: s.ID, project: s.Project, key: s.Key, left: make(chan struct{}), moving: make(chan struct{}),
		cpus: s.CPUs, volumes: s.Volumes, idle: s.Idle, used: s.Used, lines: map[string]*line{}, rollback: s.Rollback,
	}
	seat.ctx, seat.cancel = context.WithCancelCause(context.Background())
	return seat
}

// EndCause returns why a session that is in use is about to end, or nil. The contexts of its users end a moment later.
func (m *Manager) EndCause(session string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.seats[session]; s != nil {
		return context.Cause(s.ctx)
	}
	return nil
}

// SessionGone is the problem of a session that was deleted.
func SessionGone() error {
	return problem.New(problem.SessionNotFound, "there is no such session").WithHint("it may have been deleted, or have expired; make a new one")
}

func drained() error {
	return problem.New(problem.Draining, "the server is about to stop").WithHint("try again in a moment")
}

// UseSession loads a session, from its snapshot where it is paused or lost, and keeps it in memory while f runs. The context of f ends when the session is
// deleted, and when a drain stops waiting.
func (m *Manager) UseSession(ctx context.Context, who auth.Principal, session string, f func(ctx context.Context, l Live) error) error {
	s, err := m.AcquireSession(ctx, who.Project, session)
	if err != nil {
		return err
	}
	return m.withSession(ctx, s, f)
}

// PeekSession is use for an f that changes nothing in the session.
func (m *Manager) PeekSession(ctx context.Context, who auth.Principal, session string, f func(ctx context.Context, l Live) error) error {
	s, err := m.acquireUntouched(ctx, who.Project, session)
	if err != nil {
		return err
	}
	return m.withSession(ctx, s, f)
}

func (m *Manager) withSession(ctx context.Context, s *seat, f func(ctx context.Context, l Live) error) error {
	return m.LendSession(ctx, &Lease{Seat: s}, func(ctx context.Context) error { return f(ctx, s.Live) })
}

// Lease is a session that is in use. Its user may give it back for a while; seat is nil then.
type Lease struct{ Seat *seat }

// LendSession runs f with the session of a lease, and ends the lease after it.
func (m *Manager) LendSession(ctx context.Context, l *Lease, f func(ctx context.Context) error) error {
	defer func() { m.EndLease(l) }()
	s := l.Seat
	ctx, cancel := context.WithCancelCause(holding(ctx, s))
	defer cancel(nil)
	for _, end := range []context.Context{s.ctx, m.working} {
		defer context.AfterFunc(end, func() { cancel(context.Cause(end)) })()
	}
	return f(ctx)
}

// EndLease gives the session of a lease back.
func (m *Manager) EndLease(l *Lease) {
	if l.Seat != nil {
		m.releaseSeat(l.Seat)
		l.Seat = nil
	}
}

// AcquireSession loads a session and keeps it in memory until release is called.
func (m *Manager) AcquireSession(ctx context.Context, project, id string) (*seat, error) { //nolint:revive // turns keep the seat in a Lease, and know its Live alone
	s, err := m.acquireUntouched(ctx, project, id)
	if err != nil {
		return nil, err
	}
	if err := m.recordUse(ctx, s, false); err != nil {
		m.releaseSeat(s)
		return nil, err
	}
	return s, nil
}

// acquireUntouched is acquire for a caller that changes nothing in the session: no time of use is recorded, which recovery after a crash goes by.
func (m *Manager) acquireUntouched(ctx context.Context, project, id string) (*seat, error) {
	return m.awaitSeat(ctx, project, id, func() (*seat, <-chan struct{}, error) { return m.tryAcquire(ctx, project, id) })
}

// awaitSeat repeats try until it has acquired the session. A session that was loaded for this caller is not evicted before.
func (m *Manager) awaitSeat(ctx context.Context, project, id string, try func() (*seat, <-chan struct{}, error)) (*seat, error) {
	var awaited *seat
	defer func() { m.stopWaiting(awaited) }()
	for {
		if err := m.yieldToExclusive(ctx, project, id, awaited); err != nil {
			return nil, err
		}
		s, wait, err := try()
		if err != nil || wait == nil {
			return s, err
		}
		m.stopWaiting(awaited)
		awaited = s
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, leftEarly(ctx)
		}
		m.mu.Lock()
		err = s.failed
		m.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

func leftEarly(ctx context.Context) error {
	return problem.New(problem.GivenUp, "the client disconnected before the session was ready").WithCause(context.Cause(ctx))
}

// holdingKey marks the contexts of callers that have acquired a session.
type holdingKey struct{}

func holding(ctx context.Context, s *seat) context.Context {
	return context.WithValue(ctx, holdingKey{}, s)
}

// yieldToExclusive waits while others wait to have a session exclusively, as a pause does: otherwise callers that come later would keep it in use for ever. A caller
// that has acquired the session does not wait, because the others wait for that caller, nor does one that waited for the session to be loaded.
func (m *Manager) yieldToExclusive(ctx context.Context, project, id string, awaited *seat) error {
	for {
		m.mu.Lock()
		s := m.seats[id]
		if s == nil || s.exclusiveGate == nil || s == awaited || s.project != project || m.draining || s.ctx.Err() != nil || ctx.Value(holdingKey{}) == s {
			m.mu.Unlock()
			return nil
		}
		door := s.exclusiveGate
		m.mu.Unlock()
		select {
		case <-door:
		case <-s.ctx.Done():
		case <-ctx.Done():
			return leftEarly(ctx)
		}
	}
}

// announceExclusive makes later callers wait until withdrawExclusive was called as often. The caller holds mu.
func (s *seat) announceExclusive() {
	if s.exclusiveWaiters++; s.exclusiveGate == nil {
		s.exclusiveGate = make(chan struct{})
	}
	if s.wantedSignal != nil {
		close(s.wantedSignal)
		s.wantedSignal = nil
	}
}

// withdrawExclusive undoes one announceExclusive. The caller holds mu.
func (s *seat) withdrawExclusive() {
	if s.exclusiveWaiters--; s.exclusiveWaiters == 0 {
		close(s.exclusiveGate)
		s.exclusiveGate = nil
	}
}

// stopWaiting ends the wait for a seat.
func (m *Manager) stopWaiting(s *seat) {
	if s == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.waiters--
	m.noteUnused(s)
}

// noteUnused wakes the callers that wait for a session to be unused, when it is, and evicts a session whose sandbox has died. The caller holds mu.
func (m *Manager) noteUnused(s *seat) {
	if s.attached {
		m.signalRoom() // DetachSession may wait for that
		return
	}
	if !s.free() {
		return
	}
	if s.unusedSignal != nil {
		close(s.unusedSignal)
		s.unusedSignal = nil
	}
	m.signalRoom()
	if work.IsClosed(s.lost) {
		m.work.RunInBackground(func(ctx context.Context) { m.evictDead(ctx, s) })
	}
}

// tryAcquire acquires a session that is in memory, or returns the channel to wait for while the session is loaded or evicted. It begins to load a session that is
// not in memory.
func (m *Manager) tryAcquire(ctx context.Context, project, id string) (*seat, <-chan struct{}, error) {
	if s, wait, err := m.tryAcquireSeat(ctx, project, id, nil, false); s != nil || err != nil {
		return s, wait, err
	}
	row, err := m.work.Store.Session(ctx, project, id)
	if problem.Is(err, problem.NotFound) || err == nil && row.State == record.SessionDeleted {
		return nil, nil, SessionGone() // the same words as for another project's session in memory
	}
	if err != nil {
		return nil, nil, err
	}
	abandoned, err := m.work.CheckHere(ctx, row)
	if abandoned {
		row, err = m.settleAbandoned(ctx, row)
	}
	if err != nil {
		return nil, nil, err
	}
	return m.tryAcquireSeat(ctx, project, id, &row, false)
}

// tryAcquireSeat is tryAcquire with what the memory knows: without a row it returns nil for a session that is not in memory, with a row it begins to load it.
func (m *Manager) tryAcquireSeat(ctx context.Context, project, id string, row *record.Session, born bool) (*seat, <-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.seats[id]
	switch {
	case m.draining && !isWork(ctx):
		return nil, nil, drained()
	case s == nil && row == nil:
		return nil, nil, nil
	case s == nil:
		s = newSeat(*row)
		s.created = born
		m.seats[id] = s
		m.readmit(s)
		m.work.RunInBackground(func(ended context.Context) { m.loadSession(telemetry.Carry(ended, ctx), s, *row) })
		s.waiters++
		return s, s.moving, nil
	case s.project != project:
		return nil, nil, SessionGone() // before anything by which other callers could find the session
	case s.moving != nil:
		s.waiters++
		return s, s.moving, nil
	case s.ctx.Err() != nil:
		return nil, nil, SessionGone()
	}
	s.users++
	s.used = m.work.Now()
	return s, nil, nil
}

// releaseSeat undoes one acquire.
func (m *Manager) releaseSeat(s *seat) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.users--
	s.used = m.work.Now()
	m.noteUnused(s)
}

// signalRoom wakes the callers that wait for room in memory. The caller holds mu.
func (m *Manager) signalRoom() {
	close(m.freed)
	m.freed = make(chan struct{})
}

// recordUse records when the session was used: at its first use since it was loaded, which recovery after a crash goes by, and then every touchEvery.
func (m *Manager) recordUse(ctx context.Context, s *seat, always bool) error {
	m.mu.Lock()
	if !always && !s.touched.IsZero() && s.used.Sub(s.touched) < touchEvery {
		m.mu.Unlock()
		return nil
	}
	used, ran := s.used, s.ran
	m.mu.Unlock()
	_, err := m.work.Store.UpdateSession(ctx, s.project, s.id, func(row *record.Session) error {
		if row.State == record.SessionDeleted {
			return SessionGone()
		}
		row.Used, row.Executions = used, max(row.Executions, ran) // not an increment: a write without an answer may have succeeded, and is repeated
		return nil
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.touched = used
	return nil
}

// loadSession brings the session of a seat into memory, or removes the seat.
func (m *Manager) loadSession(ctx context.Context, s *seat, row record.Session) {
	began := time.Now()
	err := m.reserveMemory(ctx, s)
	telemetry.Observe(ctx, telemetry.Stages, time.Since(began), telemetry.StageRoom)
	if err == nil {
		err = m.openSession(ctx, s, row)
	}
	m.mu.Lock()
	moving := s.moving
	s.moving, s.failed, s.used = nil, err, m.work.Now()
	if err != nil {
		m.removeSeat(s)
	}
	m.noteUnused(s) // the caller that wanted the session may have gone
	m.mu.Unlock()
	close(moving)
	if err == nil {
		m.work.RunInBackground(func(ctx context.Context) { m.watchSandbox(ctx, s) })
	}
	if err == nil && !s.created {
		m.sessionSeen(ctx, sessionResumed, s.id, s.project, slog.Float64("seconds", time.Since(began).Seconds()))
	}
}

// removeSeat forgets a seat. The caller holds mu.
func (m *Manager) removeSeat(s *seat) {
	delete(m.seats, s.id)
	s.granted = false
	close(s.left)
	m.signalRoom()
}

func (m *Manager) openSession(ctx context.Context, s *seat, row record.Session) (err error) {
	stage := telemetry.StageResume
	if s.created {
		stage = telemetry.StageClaim
	}
	ctx, over := telemetry.Step(ctx, stage, slog.String("session", s.id))
	defer func() { over(err) }()
	base := m.o.Base
	if row.Packages != "" && row.Packages != base.Packages {
		base.Packages, base.Environment = row.Packages, ""
	}
	if row.Image != nil {
		base.Environment = image.Key(base.Environment, row.Image.Digest)
	}
	base.Limits.System, base.Volumes = row.System, row.VolumesOf()
	options := ondisk.Options{Prepare: m.o.Prepare, Base: base, Memory: row.Memory, CPUs: row.CPUs, Command: m.o.Command, Served: true, Swept: true, Existing: !s.created, Parked: m.parkedIn(s.id),
		Depth: m.o.Limits.Points, Room: m.o.Limits.PointRoom}
	name, err := m.o.Sessions.Open(ctx, s.id, options)
	if problem.Has(err, problem.SessionUnknown) && !s.created {
		if err = m.noteVanished(ctx, s, row); err == nil {
			options.Existing = false
			name, err = m.o.Sessions.Open(ctx, s.id, options)
		}
	}
	if err != nil {
		return WithoutCommands(err)
	}
	live, err := SessionOf(name)
	if why := name.Renewed(); err == nil && why != "" {
		err = m.noteRenewed(ctx, s, why)
	}
	if err == nil && !s.created {
		row, err = m.recordState(ctx, s, record.SessionActive, "")
	}
	if err != nil {
		err = errors.Join(err, name.Discard(ctx))
		if problem.Has(err, problem.SessionNotFound) { // the session was deleted meanwhile, and Open has made it anew
			err = errors.Join(err, m.o.Sessions.Remove(ctx, s.id, m.o.Command))
		}
		return err
	}
	if row.Network != nil {
		if err := m.giveNetwork(ctx, row, live, &s.outbound, true); err != nil {
			return errors.Join(err, name.Discard(ctx))
		}
	}
	s.tally.skip(live)
	m.mu.Lock()
	defer m.mu.Unlock()
	s.name, s.Live, s.lost, s.ran = name, live, name.Lost(), row.Executions
	return nil
}

// WithoutCommands replaces hints that name commands by hints for clients of a server.
func WithoutCommands(err error) error {
	p := problem.Of(err)
	if p == nil {
		return nil
	}
	if p.Kind == problem.Internal {
		return err
	}
	c := *p
	switch c.Hint = ""; c.Code {
	case string(problem.SessionBroken), string(problem.SnapshotDamaged), string(problem.SnapshotMissing):
		c.Hint = "delete the session and make a new one"
	case string(problem.SnapshotUnfit):
		c.Hint = "nothing was lost; the server was changed since the session was saved, and the operator can open the session with the version of cove that saved it"
	case string(problem.ImageMissing):
		c.Hint = "make a new session, which fetches the image again; the operator has to fetch it for this one"
	case string(problem.DiskFull):
		c.Hint = "nothing was lost; the operator has to make room on the server's disk"
	}
	return c.WithCause(p.Cause)
}

// recordState records the state of a session.
func (m *Manager) recordState(ctx context.Context, s *seat, state record.SessionState, reason string) (record.Session, error) {
	return m.work.Store.UpdateSession(ctx, s.project, s.id, func(row *record.Session) error {
		if row.State == record.SessionDeleted {
			return SessionGone()
		}
		row.State, row.Reason, row.Home, row.Owner = state, reason, m.work.HomeID(), m.work.OwnerID()
		return nil
	})
}

// watchSandbox evicts a session whose sandbox dies while the session is unused.
func (m *Manager) watchSandbox(ctx context.Context, s *seat) {
	select {
	case <-s.lost:
		m.evictDead(ctx, s)
	case <-s.left:
	case <-ctx.Done():
	}
}
