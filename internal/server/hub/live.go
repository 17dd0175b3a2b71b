package hub

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/machine/image"
	"cove/internal/server/auth"
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
	volumes          []VolumeMount
	tally            tally

	// Guarded by Hub.mu.
	name             *ondisk.LeasedSession
	live             Live
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
	rollback *Rollback
	unsaved  time.Time     // since when the session has unsaved changes, as far as the saver has seen; zero: it has none
	saveFrom time.Time     // the saver leaves the session alone until then
	behind   time.Duration // processor time that it has used since its last use, at behindOf
	behindOf time.Time
}

func newSeat(s Session) *seat {
	seat := &seat{
		id: s.ID, project: s.Project, key: s.Key, left: make(chan struct{}), moving: make(chan struct{}),
		cpus: s.CPUs, volumes: s.Volumes, idle: s.Idle, used: s.Used, lines: map[string]*line{}, rollback: s.Rollback,
	}
	seat.ctx, seat.cancel = context.WithCancelCause(context.Background())
	return seat
}

// endCause returns why a session that is in use is about to end, or nil. The contexts of its users end a moment later.
func (h *Hub) endCause(session string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.seats[session]; s != nil {
		return context.Cause(s.ctx)
	}
	return nil
}

func sessionGone() error {
	return problem.New(problem.SessionNotFound, "there is no such session").WithHint("it may have been deleted, or have expired; make a new one")
}

func drained() error {
	return problem.New(problem.Draining, "the server is about to stop").WithHint("try again in a moment")
}

// use loads a session, from its snapshot where it is paused or lost, and keeps it in memory while f runs. The context of f ends when the session is
// deleted, and when a drain stops waiting.
func (h *Hub) use(ctx context.Context, who auth.Principal, session string, f func(ctx context.Context, l Live) error) error {
	s, err := h.acquire(ctx, who.Project, session)
	if err != nil {
		return err
	}
	return h.with(ctx, s, f)
}

// peek is use for an f that changes nothing in the session.
func (h *Hub) peek(ctx context.Context, who auth.Principal, session string, f func(ctx context.Context, l Live) error) error {
	s, err := h.acquireUntouched(ctx, who.Project, session)
	if err != nil {
		return err
	}
	return h.with(ctx, s, f)
}

func (h *Hub) with(ctx context.Context, s *seat, f func(ctx context.Context, l Live) error) error {
	return h.lend(ctx, &lease{seat: s}, func(ctx context.Context) error { return f(ctx, s.live) })
}

// lease is a session that is in use. Its user may give it back for a while; seat is nil then.
type lease struct{ seat *seat }

func (h *Hub) lend(ctx context.Context, l *lease, f func(ctx context.Context) error) error {
	defer func() { h.endLease(l) }()
	s := l.seat
	ctx, cancel := context.WithCancelCause(holding(ctx, s))
	defer cancel(nil)
	for _, end := range []context.Context{s.ctx, h.working} {
		defer context.AfterFunc(end, func() { cancel(context.Cause(end)) })()
	}
	return f(ctx)
}

func (h *Hub) endLease(l *lease) {
	if l.seat != nil {
		h.release(l.seat)
		l.seat = nil
	}
}

// acquire loads a session and keeps it in memory until release is called.
func (h *Hub) acquire(ctx context.Context, project, id string) (*seat, error) {
	s, err := h.acquireUntouched(ctx, project, id)
	if err != nil {
		return nil, err
	}
	if err := h.touch(ctx, s, false); err != nil {
		h.release(s)
		return nil, err
	}
	return s, nil
}

// acquireUntouched is acquire for a caller that changes nothing in the session: no time of use is recorded, which recovery after a crash goes by.
func (h *Hub) acquireUntouched(ctx context.Context, project, id string) (*seat, error) {
	return h.await(ctx, project, id, func() (*seat, <-chan struct{}, error) { return h.tryAcquire(ctx, project, id) })
}

// await repeats try until it has acquired the session. A session that was loaded for this caller is not evicted before.
func (h *Hub) await(ctx context.Context, project, id string, try func() (*seat, <-chan struct{}, error)) (*seat, error) {
	var awaited *seat
	defer func() { h.stopWaiting(awaited) }()
	for {
		if err := h.yieldToExclusive(ctx, project, id, awaited); err != nil {
			return nil, err
		}
		s, wait, err := try()
		if err != nil || wait == nil {
			return s, err
		}
		h.stopWaiting(awaited)
		awaited = s
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, leftEarly(ctx)
		}
		h.mu.Lock()
		err = s.failed
		h.mu.Unlock()
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
func (h *Hub) yieldToExclusive(ctx context.Context, project, id string, awaited *seat) error {
	for {
		h.mu.Lock()
		s := h.seats[id]
		if s == nil || s.exclusiveGate == nil || s == awaited || s.project != project || h.draining || s.ctx.Err() != nil || ctx.Value(holdingKey{}) == s {
			h.mu.Unlock()
			return nil
		}
		door := s.exclusiveGate
		h.mu.Unlock()
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
func (h *Hub) stopWaiting(s *seat) {
	if s == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.waiters--
	h.noteUnused(s)
}

// noteUnused wakes the callers that wait for a session to be unused, when it is, and evicts a session whose sandbox has died. The caller holds mu.
func (h *Hub) noteUnused(s *seat) {
	if s.attached {
		h.signalRoom() // DetachSession may wait for that
		return
	}
	if !s.free() {
		return
	}
	if s.unusedSignal != nil {
		close(s.unusedSignal)
		s.unusedSignal = nil
	}
	h.signalRoom()
	if work.IsClosed(s.lost) {
		h.work.RunInBackground(func(ctx context.Context) { h.evictDead(ctx, s) })
	}
}

// tryAcquire acquires a session that is in memory, or returns the channel to wait for while the session is loaded or evicted. It begins to load a session that is
// not in memory.
func (h *Hub) tryAcquire(ctx context.Context, project, id string) (*seat, <-chan struct{}, error) {
	if s, wait, err := h.tryAcquireSeat(ctx, project, id, nil, false); s != nil || err != nil {
		return s, wait, err
	}
	row, err := h.work.Store.Session(ctx, project, id)
	if problem.Is(err, problem.NotFound) || err == nil && row.State == SessionDeleted {
		return nil, nil, sessionGone() // the same words as for another project's session in memory
	}
	if err != nil {
		return nil, nil, err
	}
	abandoned, err := h.work.CheckHere(ctx, row)
	if abandoned {
		row, err = h.settleAbandoned(ctx, row)
	}
	if err != nil {
		return nil, nil, err
	}
	return h.tryAcquireSeat(ctx, project, id, &row, false)
}

// tryAcquireSeat is tryAcquire with what the memory knows: without a row it returns nil for a session that is not in memory, with a row it begins to load it.
func (h *Hub) tryAcquireSeat(ctx context.Context, project, id string, row *Session, born bool) (*seat, <-chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seats[id]
	switch {
	case h.draining && !isWork(ctx):
		return nil, nil, drained()
	case s == nil && row == nil:
		return nil, nil, nil
	case s == nil:
		s = newSeat(*row)
		s.created = born
		h.seats[id] = s
		h.readmit(s)
		h.work.RunInBackground(func(ended context.Context) { h.load(telemetry.Carry(ended, ctx), s, *row) })
		s.waiters++
		return s, s.moving, nil
	case s.project != project:
		return nil, nil, sessionGone() // before anything by which other callers could find the session
	case s.moving != nil:
		s.waiters++
		return s, s.moving, nil
	case s.ctx.Err() != nil:
		return nil, nil, sessionGone()
	}
	s.users++
	s.used = h.work.Now()
	return s, nil, nil
}

// release undoes one acquire.
func (h *Hub) release(s *seat) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.users--
	s.used = h.work.Now()
	h.noteUnused(s)
}

// signalRoom wakes the callers that wait for room in memory. The caller holds mu.
func (h *Hub) signalRoom() {
	close(h.freed)
	h.freed = make(chan struct{})
}

// touch records when the session was used: at its first use since it was loaded, which recovery after a crash goes by, and then every touchEvery.
func (h *Hub) touch(ctx context.Context, s *seat, always bool) error {
	h.mu.Lock()
	if !always && !s.touched.IsZero() && s.used.Sub(s.touched) < touchEvery {
		h.mu.Unlock()
		return nil
	}
	used, ran := s.used, s.ran
	h.mu.Unlock()
	_, err := h.work.Store.UpdateSession(ctx, s.project, s.id, func(row *Session) error {
		if row.State == SessionDeleted {
			return sessionGone()
		}
		row.Used, row.Executions = used, max(row.Executions, ran) // not an increment: a write without an answer may have succeeded, and is repeated
		return nil
	})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.touched = used
	return nil
}

// load brings the session of a seat into memory, or removes the seat.
func (h *Hub) load(ctx context.Context, s *seat, row Session) {
	began := time.Now()
	err := h.room(ctx, s)
	telemetry.Observe(ctx, telemetry.Stages, time.Since(began), telemetry.StageRoom)
	if err == nil {
		err = h.open(ctx, s, row)
	}
	h.mu.Lock()
	moving := s.moving
	s.moving, s.failed, s.used = nil, err, h.work.Now()
	if err != nil {
		h.removeSeat(s)
	}
	h.noteUnused(s) // the caller that wanted the session may have gone
	h.mu.Unlock()
	close(moving)
	if err == nil {
		h.work.RunInBackground(func(ctx context.Context) { h.watch(ctx, s) })
	}
	if err == nil && !s.created {
		h.sessionSeen(ctx, sessionResumed, s.id, s.project, slog.Float64("seconds", time.Since(began).Seconds()))
	}
}

// removeSeat forgets a seat. The caller holds mu.
func (h *Hub) removeSeat(s *seat) {
	delete(h.seats, s.id)
	s.granted = false
	close(s.left)
	h.signalRoom()
}

func (h *Hub) open(ctx context.Context, s *seat, row Session) (err error) {
	stage := telemetry.StageResume
	if s.created {
		stage = telemetry.StageClaim
	}
	ctx, over := telemetry.Step(ctx, stage, slog.String("session", s.id))
	defer func() { over(err) }()
	base := h.o.Base
	if row.Packages != "" && row.Packages != base.Packages {
		base.Packages, base.Environment = row.Packages, ""
	}
	if row.Image != nil {
		base.Environment = image.Key(base.Environment, row.Image.Digest)
	}
	base.Limits.System, base.Volumes = row.System, row.VolumesOf()
	options := ondisk.Options{Prepare: h.o.Prepare, Base: base, Memory: row.Memory, CPUs: row.CPUs, Command: h.o.Command, Served: true, Swept: true, Existing: !s.created, Parked: h.parkedIn(s.id),
		Depth: h.o.Limits.Points, Room: h.o.Limits.PointRoom}
	name, err := h.o.Sessions.Open(ctx, s.id, options)
	if problem.Has(err, problem.SessionUnknown) && !s.created {
		if err = h.noteVanished(ctx, s, row); err == nil {
			options.Existing = false
			name, err = h.o.Sessions.Open(ctx, s.id, options)
		}
	}
	if err != nil {
		return withoutCommands(err)
	}
	live, err := LiveOf(name)
	if why := name.Renewed(); err == nil && why != "" {
		err = h.noteRenewed(ctx, s, why)
	}
	if err == nil && !s.created {
		row, err = h.become(ctx, s, SessionActive, "")
	}
	if err != nil {
		err = errors.Join(err, name.Discard(ctx))
		if problem.Has(err, problem.SessionNotFound) { // the session was deleted meanwhile, and Open has made it anew
			err = errors.Join(err, h.o.Sessions.Remove(ctx, s.id, h.o.Command))
		}
		return err
	}
	if row.Network != nil {
		if err := h.giveNetwork(ctx, row, live, &s.outbound, true); err != nil {
			return errors.Join(err, name.Discard(ctx))
		}
	}
	s.tally.skip(live)
	h.mu.Lock()
	defer h.mu.Unlock()
	s.name, s.live, s.lost, s.ran = name, live, name.Lost(), row.Executions
	return nil
}

// withoutCommands replaces hints that name commands by hints for clients of a server.
func withoutCommands(err error) error {
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

// become records the state of a session.
func (h *Hub) become(ctx context.Context, s *seat, state SessionState, reason string) (Session, error) {
	return h.work.Store.UpdateSession(ctx, s.project, s.id, func(row *Session) error {
		if row.State == SessionDeleted {
			return sessionGone()
		}
		row.State, row.Reason, row.Home, row.Owner = state, reason, h.work.HomeID(), h.work.OwnerID()
		return nil
	})
}

// watch evicts a session whose sandbox dies while the session is unused.
func (h *Hub) watch(ctx context.Context, s *seat) {
	select {
	case <-s.lost:
		h.evictDead(ctx, s)
	case <-s.left:
	case <-ctx.Done():
	}
}
