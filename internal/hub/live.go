package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cove/internal/auth"
	"cove/internal/named"
	"cove/internal/problem"
	"cove/internal/telemetry"
)

// touchEvery is how exact Session.Used is in the store while a session is in memory.
const touchEvery = 15 * time.Second

// command is what another process is told that wants a session of the server's.
const command = "cove serve"

// seat is a session in memory, or on its way there or out.
type seat struct {
	id, project, key string
	ctx              context.Context // ends when the session is deleted
	doom             context.CancelCauseFunc
	left             chan struct{} // closed when the seat is given up
	born             bool          // the session is just being made
	attached         bool          // it is the caller's, see AttachSession: it is not saved, paused or evicted here
	cpus             float64       // as the session has
	tally            tally

	// Guarded by Hub.mu.
	name    *named.Session
	live    Live
	lost    <-chan struct{}
	granted bool // counts for the limits
	turning chan struct{}
	failed  error // why it could not be brought in
	holds   int
	wanted  int           // who waits for turning's end to hold it
	whole   int           // who waits to have the session alone
	door    chan struct{} // closed when whole becomes 0: who comes later waits for that; nil while it is 0
	quiet   chan struct{} // closed when nobody holds or wants it any more; nil while nobody waits for that
	idle    time.Duration
	used    time.Time
	touched time.Time // what the store says of used; zero until the first use
	ran     int       // executions of the session, also those that the store does not count yet
	lines   map[string]*line
	// rollback is what the session lost, as Session.Rollback.
	rollback *Rollback
	unsaved  time.Time     // since when it is ahead of what is saved, as the saver found; zero: it is not
	saveFrom time.Time     // not to be saved before, but when it is paused
	behind   time.Duration // processor time that it has used since behindOf, when it was last used
	behindOf time.Time
}

func newSeat(s Session) *seat {
	seat := &seat{
		id: s.ID, project: s.Project, key: s.Key, left: make(chan struct{}), turning: make(chan struct{}),
		cpus: s.CPUs, idle: s.Idle, used: s.Used, lines: map[string]*line{}, rollback: s.Rollback,
	}
	seat.ctx, seat.doom = context.WithCancelCause(context.Background())
	return seat
}

// doomed says why a session that is used is about to end, or returns nil. The contexts of its users hear of it a moment later.
func (h *Hub) doomed(session string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.seats[session]; s != nil {
		return context.Cause(s.ctx)
	}
	return nil
}

func sessionGone() error {
	return problem.New(problem.NotFound, "session_not_found", "there is no such session").WithHint("it may have been deleted, or have expired; make a new one")
}

func drained() error {
	return problem.New(problem.Unavailable, "draining", "the server is about to stop").WithHint("try again in a moment")
}

// use brings a session into memory, from its snapshot where it is paused or lost, and keeps it there while f runs. It ends f's context when the
// session is deleted, and when a drain loses its patience.
func (h *Hub) use(ctx context.Context, who auth.Principal, session string, f func(ctx context.Context, l Live) error) error {
	s, err := h.hold(ctx, who.Project, session)
	if err != nil {
		return err
	}
	return h.with(ctx, s, f)
}

// peek is use for what changes nothing in the session.
func (h *Hub) peek(ctx context.Context, who auth.Principal, session string, f func(ctx context.Context, l Live) error) error {
	s, err := h.see(ctx, who.Project, session)
	if err != nil {
		return err
	}
	return h.with(ctx, s, f)
}

func (h *Hub) with(ctx context.Context, s *seat, f func(ctx context.Context, l Live) error) error {
	defer h.release(s)
	ctx, cancel := context.WithCancelCause(holding(ctx, s))
	defer cancel(nil)
	for _, end := range []context.Context{s.ctx, h.working} {
		defer context.AfterFunc(end, func() { cancel(context.Cause(end)) })()
	}
	return f(ctx, s.live)
}

// hold is use without an end: release must be called.
func (h *Hub) hold(ctx context.Context, project, id string) (*seat, error) {
	s, err := h.see(ctx, project, id)
	if err != nil {
		return nil, err
	}
	if err := h.touch(ctx, s, false); err != nil {
		h.release(s)
		return nil, err
	}
	return s, nil
}

// see is hold for what changes nothing in the session; a restart after a crash need not know of that.
func (h *Hub) see(ctx context.Context, project, id string) (*seat, error) {
	return h.await(ctx, project, id, func() (*seat, <-chan struct{}, error) { return h.sit(ctx, project, id) })
}

// await repeats sit until it has a hold of the session. What was brought in for it stays there until it has.
func (h *Hub) await(ctx context.Context, project, id string, sit func() (*seat, <-chan struct{}, error)) (*seat, error) {
	var awaited *seat
	defer func() { h.unwant(awaited) }()
	for {
		if err := h.pass(ctx, project, id, awaited); err != nil {
			return nil, err
		}
		s, wait, err := sit()
		if err != nil || wait == nil {
			return s, err
		}
		h.unwant(awaited)
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
	return problem.New(problem.Canceled, "canceled", "the caller went away before the session was ready").WithCause(context.Cause(ctx))
}

// holdingKey marks the contexts of who holds a session already.
type holdingKey struct{}

func holding(ctx context.Context, s *seat) context.Context {
	return context.WithValue(ctx, holdingKey{}, s)
}

// pass waits while others wait to have a session in memory alone, as for a pause: without that, who comes later would keep it in use for ever. Who
// holds the session is let pass, since they wait for him, and so is who waited for it to be brought in.
func (h *Hub) pass(ctx context.Context, project, id string, awaited *seat) error {
	for {
		h.mu.Lock()
		s := h.seats[id]
		if s == nil || s.door == nil || s == awaited || s.project != project || h.draining || s.ctx.Err() != nil || ctx.Value(holdingKey{}) == s {
			h.mu.Unlock()
			return nil
		}
		door := s.door
		h.mu.Unlock()
		select {
		case <-door:
		case <-s.ctx.Done():
		case <-ctx.Done():
			return leftEarly(ctx)
		}
	}
}

// stand has who comes later wait until unstand was called as often. The caller holds mu.
func (s *seat) stand() {
	if s.whole++; s.door == nil {
		s.door = make(chan struct{})
	}
}

// unstand is the end of stand. The caller holds mu.
func (s *seat) unstand() {
	if s.whole--; s.whole == 0 {
		close(s.door)
		s.door = nil
	}
}

// unwant ends a wait for a seat.
func (h *Hub) unwant(s *seat) {
	if s == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.wanted--
	h.leftAlone(s)
}

// leftAlone tells who waits for that when a session has become free, and gives it up where its sandbox has died. The caller holds mu.
func (h *Hub) leftAlone(s *seat) {
	if s.attached {
		h.stir() // DetachSession may wait for that
		return
	}
	if !s.free() {
		return
	}
	if s.quiet != nil {
		close(s.quiet)
		s.quiet = nil
	}
	h.stir()
	if closed(s.lost) {
		h.spawn(func(ctx context.Context) { h.bury(ctx, s) })
	}
}

// sit takes a hold of a session in memory, or returns what to wait for: another's bringing it in or out, or its own.
func (h *Hub) sit(ctx context.Context, project, id string) (*seat, <-chan struct{}, error) {
	if s, wait, err := h.sitDown(ctx, project, id, nil, false); s != nil || err != nil {
		return s, wait, err
	}
	row, err := h.o.Store.Session(ctx, project, id)
	if problem.Is(err, problem.NotFound) || err == nil && row.State == SessionDeleted {
		return nil, nil, sessionGone() // in the words that another project's session in memory gets
	}
	if err != nil {
		return nil, nil, err
	}
	abandoned, err := h.here(ctx, row)
	if abandoned {
		row, err = h.settleAbandoned(ctx, row)
	}
	if err != nil {
		return nil, nil, err
	}
	return h.sitDown(ctx, project, id, &row, false)
}

// sitDown is sit for a session in memory. With a row it begins to bring it there, and without one it returns nil where it is not.
func (h *Hub) sitDown(ctx context.Context, project, id string, row *Session, born bool) (*seat, <-chan struct{}, error) {
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
		s.born = born
		h.seats[id] = s
		h.spawn(func(ended context.Context) { h.bring(telemetry.Carry(ended, ctx), s, *row) })
		s.wanted++
		return s, s.turning, nil
	case s.project != project:
		return nil, nil, sessionGone() // before anything that would tell others that it is there
	case s.turning != nil:
		s.wanted++
		return s, s.turning, nil
	case s.ctx.Err() != nil:
		return nil, nil, sessionGone()
	}
	s.holds++
	s.used = h.now()
	return s, nil, nil
}

// release ends a hold.
func (h *Hub) release(s *seat) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.holds--
	s.used = h.now()
	h.leftAlone(s)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// stir tells who waits for room that there may be some. The caller holds mu.
func (h *Hub) stir() {
	close(h.freed)
	h.freed = make(chan struct{})
}

// touch writes when the session was used: at its first use since it was brought in, which a restart after a crash must know of, and now and then.
func (h *Hub) touch(ctx context.Context, s *seat, always bool) error {
	h.mu.Lock()
	if !always && !s.touched.IsZero() && s.used.Sub(s.touched) < touchEvery {
		h.mu.Unlock()
		return nil
	}
	used, ran := s.used, s.ran
	h.mu.Unlock()
	_, err := h.o.Store.UpdateSession(ctx, s.project, s.id, func(row *Session) error {
		if row.State == SessionDeleted {
			return sessionGone()
		}
		row.Used, row.Executions = used, max(row.Executions, ran) // no increment: whether a write whose answer was lost happened is not known
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

// bring has a seat's session in memory when it returns, or has given the seat up.
func (h *Hub) bring(ctx context.Context, s *seat, row Session) {
	began := time.Now()
	err := h.room(ctx, s)
	telemetry.Observe(ctx, telemetry.Stages, time.Since(began), telemetry.StageRoom)
	if err == nil {
		err = h.open(ctx, s, row)
	}
	h.mu.Lock()
	turning := s.turning
	s.turning, s.failed, s.used = nil, err, h.now()
	if err != nil {
		h.vacate(s)
	}
	h.leftAlone(s) // whoever wanted it may have gone
	h.mu.Unlock()
	close(turning)
	if err == nil {
		h.spawn(func(ctx context.Context) { h.watch(ctx, s) })
	}
	if err == nil && !s.born {
		h.sessionSeen(ctx, sessionResumed, s.id, s.project, slog.Float64("seconds", time.Since(began).Seconds()))
	}
}

// vacate gives a seat up. The caller holds mu.
func (h *Hub) vacate(s *seat) {
	delete(h.seats, s.id)
	s.granted = false
	close(s.left)
	h.stir()
}

func (h *Hub) open(ctx context.Context, s *seat, row Session) (err error) {
	stage := telemetry.StageResume
	if s.born {
		stage = telemetry.StageClaim
	}
	ctx, over := telemetry.Step(ctx, stage, slog.String("session", s.id))
	defer func() { over(err) }()
	base := h.o.Base
	if row.Packages != "" && row.Packages != base.Packages {
		base.Packages, base.Environment = row.Packages, ""
	}
	options := named.Options{Prepare: h.o.Prepare, Base: base, Memory: row.Memory, CPUs: row.CPUs, Command: command, Swept: true, Existing: !s.born}
	name, err := h.o.Sessions.Open(ctx, s.id, options)
	if err != nil && problem.Of(err).Code == "session_unknown" && !s.born {
		if err = h.noteVanished(ctx, s, row); err == nil {
			options.Existing = false
			name, err = h.o.Sessions.Open(ctx, s.id, options)
		}
	}
	if err != nil {
		return foreign(err)
	}
	live, err := LiveOf(name)
	if why := name.Renewed(); err == nil && why != "" {
		err = h.noteRenewed(ctx, s, why)
	}
	if err == nil && !s.born {
		row, err = h.become(ctx, s, SessionActive, "")
	}
	if err != nil {
		err = errors.Join(err, name.Discard(ctx))
		if problem.Of(err).Code == "session_not_found" { // it was deleted meanwhile, and then made anew by Open
			err = errors.Join(err, h.o.Sessions.Remove(ctx, s.id, command))
		}
		return err
	}
	s.tally.skip(live)
	h.mu.Lock()
	defer h.mu.Unlock()
	s.name, s.live, s.lost, s.ran = name, live, name.Lost(), row.Executions
	return nil
}

// foreign takes out of a problem what speaks of the command line.
func foreign(err error) error {
	p := problem.Of(err)
	if p == nil {
		return nil
	}
	if p.Kind == problem.Internal {
		return err
	}
	c := *p
	switch c.Hint = ""; c.Code {
	case "session_broken", "snapshot_damaged", "snapshot_missing":
		c.Hint = "delete the session and make a new one"
	case "snapshot_unfit":
		c.Hint = "nothing was lost; the server was changed since the session was saved, and the operator can have it opened by the cove that saved it"
	case "disk_full":
		c.Hint = "nothing was lost; the operator has to make room on the server's disk"
	}
	return c.WithCause(p.Cause)
}

// become writes the state that a session has now.
func (h *Hub) become(ctx context.Context, s *seat, state SessionState, reason string) (Session, error) {
	return h.o.Store.UpdateSession(ctx, s.project, s.id, func(row *Session) error {
		if row.State == SessionDeleted {
			return sessionGone()
		}
		row.State, row.Reason, row.Home, row.Owner = state, reason, h.home(), h.me()
		return nil
	})
}

// sessionLive is a session in memory whose kernels and packages are those behind the named session.
type sessionLive struct {
	*named.Session
	Kernels
	TreeReader
	Installer
}

// LiveOf returns a named session as a Live.
func LiveOf(s *named.Session) (Live, error) {
	if l, ok := any(s).(Live); ok {
		return l, nil
	}
	inner, ok := s.Live.(Live)
	if !ok {
		return nil, fmt.Errorf("a %T cannot be a server's session", s.Live)
	}
	return sessionLive{Session: s, Kernels: inner, TreeReader: inner, Installer: inner}, nil
}

// watch gives a session up whose sandbox dies while nobody uses it.
func (h *Hub) watch(ctx context.Context, s *seat) {
	select {
	case <-s.lost:
		h.bury(ctx, s)
	case <-s.left:
	case <-ctx.Done():
	}
}
