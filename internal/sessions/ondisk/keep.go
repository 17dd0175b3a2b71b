package ondisk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/keeper"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/snapshot"
)

const (
	// defaultSaveAfter is how long a session in memory must be unused before it is saved in the background.
	defaultSaveAfter = 10 * time.Second
	// retryAfter is how long a keeper waits before it repeats what failed, leasePoll before it asks for the lease again, and folderPoll before it checks again
	// that the session still exists.
	retryAfter = time.Minute
	leasePoll  = 50 * time.Millisecond
	folderPoll = 30 * time.Second
	// clientGrace bounds how long a client's connection may last after it gave up the lease.
	clientGrace = 10 * time.Second
)

// KeepOptions say how a session is kept in memory.
type KeepOptions struct {
	// Options say how the session is opened. It must exist.
	Options
	// Idle is how long the session may be unused before it is paused; 0: for ever.
	Idle time.Duration
	// SaveAfter is how long the session must be unused before it is saved in the background; 0: 10 seconds.
	SaveAfter time.Duration
	// Ready is called once when the session is in memory, with what the user should be told.
	Ready func(notices []string)
	// Log receives what happens when no command is there to be told; nil: it is dropped.
	Log *slog.Logger
}

// watcher keeps one session in memory.
type watcher struct {
	name    string
	dir     string
	since   time.Time // when it became the keeper; identifies its record
	opts    KeepOptions
	ground  *Ground
	sandbox sandbox.Checkpointer
	place   *keeper.Place
	server  *keeper.Server

	paused  chan *lease   // receives the lease after the session was saved, when this process is to end
	stopped chan struct{} // closed when the sandbox was ended on request
	stop    sync.Once
	saving  sync.Mutex // held while the session is saved
	over    bool       // guarded by saving: it is paused

	dirty   bool      // it was used since the last save, or may have been
	blocked time.Time // no save is tried before
}

// Keep loads the session name and keeps it in memory for the commands that come, until it is paused, removed, or unused for too long, or ctx ends; then it is
// saved. While no command uses the session, Keep does not hold its lease. Keep runs in a process of its own, whose end is the end of the sandbox. A session
// that is in memory already is a problem with code "session_in_memory".
func (s Store) Keep(ctx context.Context, name string, o KeepOptions) error {
	o.Existing, o.Undoable, o.keeping, o.Command = true, false, true, Keeping
	if o.SaveAfter == 0 {
		o.SaveAfter = defaultSaveAfter
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	sess, err := s.Open(ctx, name, o.Options)
	if err != nil {
		return err
	}
	w, err := sess.hand(ctx, o)
	if err != nil {
		return errors.Join(err, sess.Discard(context.WithoutCancel(ctx)))
	}
	sess.lease.release()
	o.Ready(sess.Notices())
	return w.run(ctx)
}

// hand gives the session's sandbox to a watcher. The lease stays held.
func (s *LeasedSession) hand(ctx context.Context, o KeepOptions) (*watcher, error) {
	place, err := keeper.Occupy(s.dir)
	if err != nil {
		return nil, err
	}
	left, err := s.Leave(ctx)
	if err != nil {
		return nil, errors.Join(err, place.Leave())
	}
	sb, ok := left.(sandbox.Checkpointer)
	if !ok {
		return nil, errors.Join(errors.New("the sandbox cannot be saved"), left.Stop(context.WithoutCancel(ctx)), place.Leave())
	}
	w := &watcher{name: s.name, dir: s.dir, since: time.Now(), opts: o, ground: s.ground, sandbox: sb, place: place,
		paused: make(chan *lease, 1), stopped: make(chan struct{})}
	rec := s.rec
	rec.Kernels = s.kernels()
	rec.Running, rec.Memory = nil, &Memory{PID: os.Getpid(), Since: w.since, Idle: o.Idle.Seconds()}
	if err := rec.write(s.dir); err != nil {
		return nil, errors.Join(err, sb.Stop(context.WithoutCancel(ctx)), place.Leave())
	}
	w.server = keeper.Serve(place, keeper.Options{Sandbox: sb, Identity: identity(w.ground.Key), Flush: w.flush, Pause: w.pause, Stop: w.end})
	return w, nil
}

func (w *watcher) run(ctx context.Context) error {
	ending, over := false, ctx.Done()
	for {
		timer := time.NewTimer(w.next(ending))
		select {
		case <-over:
			ending, over = true, nil
			w.blocked = time.Time{}
		case <-w.server.Moved():
			w.dirty = true
		case l := <-w.paused:
			return w.leave(l)
		case <-w.sandbox.Done():
			return w.sandboxEnded()
		case <-timer.C:
		}
		timer.Stop()
		if !w.place.Stands() {
			w.opts.Log.Info("the session is gone", "session", w.name)
			return errors.Join(w.end(context.WithoutCancel(ctx)), w.leave(nil))
		}
		err := w.due(context.WithoutCancel(ctx), ending)
		if problem.Has(err, problem.SessionForeign) {
			return errors.Join(w.end(context.WithoutCancel(ctx)), w.leave(nil))
		}
		if err != nil {
			w.opts.Log.Error("not saved", "session", w.name, "error", err)
			w.blocked = time.Now().Add(retryAfter)
		}
	}
}

// next returns how long it is until something may be due.
func (w *watcher) next(ending bool) time.Duration {
	last, now := w.server.Used()
	wait := folderPoll
	switch {
	case ending:
		return leasePoll
	case now:
		return wait
	case w.dirty:
		wait = min(wait, w.opts.SaveAfter-time.Since(last))
	}
	if w.opts.Idle > 0 {
		wait = min(wait, w.opts.Idle-time.Since(last))
	}
	return max(wait, leasePoll, time.Until(w.blocked))
}

// due pauses or saves the session when it is time for that.
func (w *watcher) due(ctx context.Context, ending bool) error {
	last, now := w.server.Used()
	switch idle := time.Since(last); {
	case ending:
		err := w.pause(ctx)
		if err != nil && !problem.Has(err, problem.SessionInUse) {
			return w.giveUp(ctx, err)
		}
		return nil
	case now || time.Now().Before(w.blocked):
		return nil
	case w.opts.Idle > 0 && idle >= w.opts.Idle:
		return unlessInUse(w.pause(ctx))
	case w.dirty && idle >= w.opts.SaveAfter:
		err := w.flush(ctx)
		w.dirty = err != nil
		return unlessInUse(err)
	}
	return nil
}

func unlessInUse(err error) error {
	if problem.Has(err, problem.SessionInUse) {
		return nil
	}
	return err
}

// acquire takes the lease and reads the record, unless another process keeps the session now.
func (w *watcher) acquire() (*lease, Record, error) {
	l, err := tryAcquire(w.dir, w.name, Keeping)
	if err != nil {
		return nil, Record{}, err
	}
	rec, err := readRecord(w.dir, w.name)
	if err == nil && (rec.Memory == nil || !rec.Memory.Since.Equal(w.since) || rec.Memory.Ended != "") {
		err = problem.New(problem.SessionForeign, "session "+w.name+" is not this process's any more")
	}
	if err != nil {
		l.release()
		return nil, rec, err
	}
	return l, rec, nil
}

// flush saves the session and goes on.
func (w *watcher) flush(ctx context.Context) error {
	w.saving.Lock()
	defer w.saving.Unlock()
	if w.over {
		return nil
	}
	l, rec, err := w.acquire()
	if err != nil {
		return err
	}
	defer l.release()
	if rec, err = w.save(ctx, rec); err != nil {
		return w.recordFailure(rec, err)
	}
	return nil
}

// pause saves the session and has run end, with the lease.
func (w *watcher) pause(ctx context.Context) error {
	w.saving.Lock()
	defer w.saving.Unlock()
	if w.over {
		return nil
	}
	l, rec, err := w.acquire()
	if err != nil {
		return err
	}
	rec, err = w.save(ctx, rec)
	if err != nil {
		err = w.recordFailure(rec, err)
	} else {
		if left := rec.Memory.Left; left != nil {
			rec.Notice = &Notice{Time: time.Now(), Text: left.interrupted(w.name)}
		}
		rec.Memory = nil
		err = rec.write(w.dir)
	}
	if err != nil {
		l.release()
		return err
	}
	w.over = true
	w.paused <- l
	return nil
}

// save makes a snapshot and makes it the head, if the session has changed; it returns the record that it has written.
func (w *watcher) save(ctx context.Context, rec Record) (Record, error) {
	if !rec.unsaved() {
		return rec, nil
	}
	bounded, cancel := context.WithTimeout(ctx, clientGrace)
	defer cancel()
	include, err := w.server.Exclude(bounded)
	if err != nil {
		return rec, err
	}
	defer include()
	if w.ground.Keep != nil {
		if err := w.ground.Keep(); err != nil {
			w.opts.Log.Warn("this version of cove could not be stored, which other versions may need to read its sessions", "error", err)
		}
	}
	entry := Entry{Snapshot: id("snp_"), Saved: time.Now(), Executions: rec.Executions, Kernels: rec.Kernels}
	snap, err := snapshot.Create(ctx, snapshotPath(w.dir, entry), snapshot.Manifest{ID: entry.Snapshot, Created: entry.Saved, Key: w.ground.Key, Made: w.ground.Made},
		func(ctx context.Context, folder string) (sandbox.Checkpoint, error) {
			return w.sandbox.Checkpoint(ctx, folder, true)
		})
	if err != nil {
		return rec, err
	}
	entry.hold(snap)
	next, dropped := rec.advance(entry, rec.Memory.Pinned)
	if left := rec.Running; left != nil {
		next.Running = nil
		next.remember(func(m *Memory) { m.Left = left })
	}
	if err := next.write(w.dir); err != nil {
		return rec, errors.Join(err, snapshot.Remove(snap.Dir))
	}
	discard(w.dir, dropped)
	_ = next.pack(ctx, w.dir, w.opts.Room, func(points []Entry) error { // what cannot be packed takes more room
		packed := next
		packed.Undo = points
		err := packed.write(w.dir)
		if err == nil {
			next = packed
		}
		return err
	})
	return next, nil
}

// recordFailure writes into the record, if that is still possible, that the session could not be saved.
func (w *watcher) recordFailure(rec Record, err error) error {
	rec.Notice = &Notice{Time: time.Now(), Text: fmt.Sprintf("session %s is in memory and could not be saved: %s", w.name, brief(problem.Of(err).Error()))}
	if werr := rec.write(w.dir); werr != nil {
		w.opts.Log.Error("the failure could not be recorded", "session", w.name, "error", werr)
	}
	return err
}

// giveUp has run end although the session could not be saved.
func (w *watcher) giveUp(ctx context.Context, why error) error {
	w.opts.Log.Error("the session is lost", "session", w.name, "error", why)
	if l, rec, err := w.acquire(); err == nil {
		w.recordEnd(rec, "its process was told to end and could not save the session ("+brief(problem.Of(why).Error())+")")
		l.release()
	}
	return w.end(ctx)
}

// recordEnd records why the session is not in memory any more, for the next command to say.
func (w *watcher) recordEnd(rec Record, ended string) {
	rec.remember(func(m *Memory) { m.Ended = ended })
	if err := rec.write(w.dir); err != nil {
		w.opts.Log.Error("the end could not be recorded", "session", w.name, "error", err)
	}
}

// end ends the sandbox, and has run end.
func (w *watcher) end(ctx context.Context) error {
	w.stop.Do(func() { close(w.stopped) })
	return w.sandbox.Stop(ctx)
}

// sandboxEnded ends the keeper after the sandbox has ended. A command that uses the session notices that end itself; otherwise the record says so.
func (w *watcher) sandboxEnded() error {
	select {
	case <-w.stopped:
		w.opts.Log.Info("ended on request, without saving", "session", w.name)
		return w.leave(nil)
	default:
	}
	why := "its sandbox ended"
	if cause := w.sandbox.Cause(); cause != nil {
		why = brief(problem.Of(cause).Error())
	}
	w.opts.Log.Error("the sandbox ended", "session", w.name, "cause", why)
	if l, rec, err := w.acquire(); err == nil {
		w.recordEnd(rec, "lost its sandbox: "+why)
		return w.leave(l)
	}
	return w.leave(nil)
}

// leave ends what remains: the sandbox, the socket, and last the lease.
func (w *watcher) leave(l *lease) error {
	err := w.sandbox.Stop(context.Background())
	if cerr := w.server.Close(); cerr != nil {
		err = errors.Join(err, cerr)
	}
	if l != nil {
		l.release()
	}
	return err
}
