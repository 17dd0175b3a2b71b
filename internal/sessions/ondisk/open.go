package ondisk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/core/seal"
	"cove/internal/machine/keeper"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/snapshot"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
	"cove/internal/sessions/session"
)

// Runner runs code.
type Runner interface {
	Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error]
	Python() (version string, packages map[string]string)
	// May returns what code may do beyond its sandbox's own files: the rules by which it may connect to other machines, nil where it reaches nothing, and whether it may become root,
	// with sudo, and change the system.
	May() (reach []string, root bool)
	IsComplete(ctx context.Context, name, code string) (string, error)
	Complete(ctx context.Context, name, code string, cursor int) (matches []string, start, end int, err error)
	// Installed returns what was installed for the session until now.
	Installed() installation.State
}

// Workspace is a session's files.
type Workspace interface {
	Files(ctx context.Context) ([]kernel.File, error)
	ReadFile(ctx context.Context, path string, limit int64) ([]byte, error)
	// PutFile copies the host's file to a workspace path. The host's file must stay while the session lives: a session that loses its sandbox puts it
	// into the next one.
	PutFile(ctx context.Context, path, host string) error
	Fetch(ctx context.Context, path string, w io.Writer) error
}

// Live is a session in memory; *session.Live is one.
type Live interface {
	Runner
	Workspace
	// Save writes the session to files in folder, an empty folder, or where its engine keeps checkpoints, and returns what it has written. Without keep the session is closed afterwards.
	Save(ctx context.Context, folder string, keep bool) (sandbox.Checkpoint, error)
	// Lost is closed when the present sandbox ends by itself. The next call that needs a sandbox starts another one.
	Lost() <-chan struct{}
	// Leave waits until no code runs, or until ctx ends, releases the sandbox without ending it, and returns it. Afterwards the session is closed.
	Leave(ctx context.Context) (sandbox.Sandbox, error)
	// Close ends the session and its sandbox. It may be called twice, and while code runs.
	Close(ctx context.Context) error
}

// KernelKeeper is a Live whose kernels have names, and that clients change in other ways than by executions too.
type KernelKeeper interface {
	// KernelPIDs returns the process ids of the session's kernels by name, also after it was saved or left.
	KernelPIDs() map[string]int
	// Touched says whether something other than an execution has changed the session since it was last saved.
	Touched() bool
}

// Restarter is a Live that starts another sandbox by itself after it has lost one.
type Restarter interface {
	// Root sets what the next sandbox starts from: the checkpoint of a snapshot, with the process ids of the kernels in it by name.
	Root(from sandbox.Checkpoint, kernels map[string]int)
	// Refill has refill put the missing files into the workspace of the next sandbox, before anything else uses it.
	Refill(refill func(ctx context.Context, t Changes) error)
}

// Parker is a Live whose executions can be parked; see kernel.Request.Park.
type Parker interface {
	// Resume goes on with an execution whose events have ended with p.
	Resume(ctx context.Context, p kernel.Parked) iter.Seq2[kernel.Event, error]
}

// VariableTaker is a Live that can restore the variables of another sandbox; see session.TakeVariables.
type VariableTaker interface {
	TakeVariables(ctx context.Context, path string) (session.Taken, error)
}

// Meter is a Live that knows the processor time that it has used.
type Meter interface {
	// CPU returns the processor time since the session was opened, and false when it cannot be read.
	CPU() (time.Duration, bool)
}

// Weigher is a Live that knows how much memory it takes.
type Weigher interface {
	// Memory returns the memory that only this session takes, in bytes; 0 when it is not known.
	Memory() int64
}

// Ground is what a session runs on, once Prepare has found it.
type Ground struct {
	Key    snapshot.Key // with the id of the environment
	Python string       // its version
	// Start makes the session, from a snapshot that fits Key or from the beginning when from is nil. With reseed the random
	// generators get new seeds.
	Start func(ctx context.Context, from *snapshot.Snapshot, reseed bool) (Live, error)
	// Join makes the session from a sandbox that runs already and that another session has left. When the sandbox is lost, the next one starts from from. After
	// an error the sandbox is unchanged; one with code "kernel_lost" means that the interpreter had to be killed.
	Join func(ctx context.Context, running sandbox.Sandbox, from *snapshot.Snapshot) (Live, error)

	// Sealer seals what the session's folder has of its changes; nil: it is not sealed.
	Sealer *seal.Sealer
	// Made is the cove of this process, which makes its snapshots.
	Made snapshot.Maker
	// Keep stores a copy of this cove, which can read its snapshots when they do not fit a later one; nil stores none. It is cheap when the copy exists already.
	Keep func() error
	// Kept returns the path and the size of a stored cove that can restore snapshots with that key; "" where there is none.
	Kept func(key snapshot.Key) (path string, size int64)
	// Salvage calls use with the files of a snapshot that does not fit Key, as tar that ends with a global header (see session.Salvage). nil: they cannot be read.
	Salvage func(ctx context.Context, from *snapshot.Snapshot, use func(archive io.Reader) error) error
	// Accepts says whether this cove can talk to a guest and a driver that have this as their Key.Guest; nil: only to those of Key.
	Accepts func(guest string) bool
}

// Prepare finds what b names: the engine, the environment. Package app has the real one.
type Prepare func(ctx context.Context, b Base) (*Ground, error)

// Options are how a session is opened.
type Options struct {
	Prepare Prepare
	// Base is what a new session is made of.
	Base Base
	// Packages, Memory and CPUs were asked for by the user; zero values were not. An existing session takes over Memory and
	// CPUs and refuses other Packages than its own.
	Packages string
	Memory   int64
	CPUs     float64
	// Root refuses an existing session that has no root.
	Root bool
	// Existing refuses to make a session.
	Existing bool
	// Trial refuses to change a session by opening it: one that does not fit is not carried over.
	Trial bool
	// Undoable has a snapshot made before each execution. Of these, and of what is kept by Mark, the newest Depth are kept, within Room bytes; 0 is no limit of the room.
	Undoable bool
	Depth    int
	Room     int64
	// Parked are the executions of this process's that wait in kernels of the session, by the kernels' names; see session.Options.
	Parked map[string]string
	// Command names this process in messages to others that need the session meanwhile, such as "cove run".
	Command string
	// Served is what Record.Served of a new session says.
	Served bool
	// Swept says that the caller calls Sweep itself. A sweep takes the longer the more sessions there are.
	Swept bool

	keeping bool // the session is opened to be kept in memory
}

// Open acquires the session name, or makes it, and loads it. The caller closes it, also when the context has ended. Codes of problems: session_name,
// session_unknown, session_in_use, session_broken, session_packages, session_engine, snapshot_*, and those of Prepare and Start.
func (s Store) Open(ctx context.Context, name string, o Options) (*LeasedSession, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if !o.Swept {
		if err := s.Sweep(); err != nil {
			return nil, err
		}
	}
	var notices []string
	for {
		l, rec, created, err := s.acquireOrCreate(ctx, name, o)
		if err != nil {
			return nil, err
		}
		sess := &LeasedSession{name: name, dir: l.dir, lease: l, opts: o, rec: rec, notices: notices, busy: semaphore.NewWeighted(everything)}
		if err = sess.load(ctx); err == nil {
			return sess, nil
		}
		if sess.kept != nil {
			sess.kept.Release()
		}
		if created {
			return nil, errors.Join(err, s.discard(l))
		}
		l.release()
		if !errors.Is(err, errOtherLimits) {
			return nil, err
		}
		if err := keeper.Pause(ctx, sess.dir); err != nil && !keeper.Gone(err) {
			return nil, fmt.Errorf("pause session %s for other limits: %w", name, err)
		}
		notices = []string{fmt.Sprintf("session %s was paused to change its limits, and is no longer kept in memory; `cove session resume %s` does that again", name, name)}
	}
}

func (s Store) acquireOrCreate(ctx context.Context, name string, o Options) (l *lease, rec Record, created bool, err error) {
	for {
		l, rec, err = s.acquire(ctx, name, o.Command)
		if !problem.Has(err, problem.SessionUnknown) || o.Existing {
			return l, rec, false, err
		}
		l, rec, err = s.create(name, o.Command, func(string) (Record, error) { return newRecord(name, o), nil })
		if !errors.Is(err, fs.ErrExist) {
			return l, rec, true, err
		}
	}
}

func newRecord(name string, o Options) Record {
	now := time.Now()
	return Record{Version: recordVersion, ID: ident.New(ident.Session), Name: name, Created: now, Used: now, Base: o.Base, Served: o.Served}
}

// agree compares what the user asked for with what the session has, and takes over what can be changed.
func (s *LeasedSession) agree() error {
	o, b := s.opts, &s.rec.Base
	if o.Packages != "" && o.Packages != b.Packages {
		return problem.New(problem.SessionPackages,
			fmt.Sprintf("session %s was made with --packages %s, and what it has imported cannot change to %s", s.name, b.Packages, o.Packages)).
			WithHint("leave --packages out, or use another session")
	}
	if o.Base.Engine != b.Engine {
		return problem.New(problem.SessionEngine,
			fmt.Sprintf("session %s was made with the engine %s and cannot go on with %s", s.name, b.Engine, o.Base.Engine)).
			WithHint("use --engine " + b.Engine)
	}
	if o.Root && b.Limits.System == 0 {
		return problem.New(problem.RootAbsent, fmt.Sprintf("session %s was made without a root, and cannot get one", s.name)).WithHint("leave --root out, or use another session")
	}
	if o.Memory != 0 {
		b.Limits.Memory = o.Memory
	}
	if o.CPUs != 0 {
		b.Limits.CPUs = o.CPUs
	}
	return nil
}

// load brings the session into memory. After an error the record on the disk is unchanged.
func (s *LeasedSession) load(ctx context.Context) error {
	before := s.rec
	if err := s.agree(); err != nil {
		return err
	}
	if err := s.reach(ctx); err != nil {
		return err
	}
	if s.kept != nil && s.rec.Limits != before.Limits {
		return errOtherLimits
	}
	if s.kept == nil {
		s.rec.Kernels, s.rec.Parked = s.rec.Head.Kernels, s.opts.Parked
	}
	ground, err := s.opts.Prepare(ctx, s.rec.Base)
	if err != nil {
		return s.stuck(err)
	}
	s.ground = ground
	s.rec.Environment, s.rec.Python = ground.Key.Environment, ground.Python
	head, err := s.head(ctx)
	carrying := s.carriable(err)
	switch {
	case s.kept != nil:
		if err := s.fits(); err != nil {
			return err
		}
		if err != nil { // then the keeper's session goes on as long as it is in memory
			s.at.next = fromFormer
		}
	case err != nil && !carrying:
		return s.stuck(err)
	case s.rec.Running != nil:
		s.notice(s.rec.lossNotice())
	}
	now := time.Now()
	s.rec.Running, s.rec.Used = &Owner{PID: os.Getpid(), Command: s.opts.Command, Since: now}, now
	recorded := make(chan error, 1)
	running := s.rec
	running.remember(func(m *Memory) { m.Unsaved = true }) // in case that this process dies
	go func() { recorded <- running.write(s.dir) }()
	live, err := s.loadLive(ctx, head, carrying)
	if werr := <-recorded; werr != nil || err != nil {
		if live != nil {
			err = errors.Join(err, s.abandon(context.WithoutCancel(ctx), live))
		}
		return errors.Join(s.stuck(err), werr, before.write(s.dir))
	}
	s.Live = live
	if err := s.catchUp(ctx); err != nil {
		return errors.Join(err, s.abandon(context.WithoutCancel(ctx), live), before.write(s.dir))
	}
	s.ended = live.Lost()
	if carrying {
		if err := s.arrive(ctx); err != nil {
			return errors.Join(s.stuck(err), s.abandon(context.WithoutCancel(ctx), live), before.write(s.dir))
		}
	}
	s.tidy()
	return nil
}

// loadLive starts the session from its head, or anew with the head's files, or joins it in a keeper's memory.
func (s *LeasedSession) loadLive(ctx context.Context, head *snapshot.Snapshot, carrying bool) (Live, error) {
	switch {
	case s.kept != nil:
		return s.join(ctx, head)
	case carrying:
		return s.carry(ctx, head)
	}
	return s.ground.Start(ctx, head, s.rec.Head.Reseed || head == nil)
}

// head returns the snapshot to go on from, or nil.
func (s *LeasedSession) head(ctx context.Context) (*snapshot.Snapshot, error) {
	if s.rec.Head.Snapshot == "" {
		return nil, nil
	}
	snap, err := snapshot.Open(ctx, snapshotPath(s.dir, s.rec.Head))
	if err != nil {
		return nil, err
	}
	if guest := snap.Manifest.Key.Guest; s.ground.Accepts != nil && s.ground.Accepts(guest) {
		own := *s.ground // other sessions use the template too
		own.Key.Guest = guest
		s.ground = &own
	}
	return snap, snap.Fits(s.ground.Key)
}

// stuck makes a problem of a head that cannot be restored, with what the user can do.
func (s *LeasedSession) stuck(err error) error {
	if err == nil {
		return nil
	}
	p := problem.Of(err)
	if s.rec.Head.Snapshot == "" || p.Kind == problem.Canceled || errors.Is(err, context.Canceled) {
		return err
	}
	hint := p.Hint
	say := func(line string) {
		if hint != "" {
			hint += "\n"
		}
		hint += line
	}
	if n := len(s.rec.Undo); n > 0 && problem.Has(p, problem.SnapshotDamaged, problem.SnapshotMissing) {
		say(fmt.Sprintf("`cove session undo %s` goes back to %s", s.name, s.rec.Undo[n-1]))
	}
	if problem.Has(p, problem.SnapshotUnfit) && s.opts.Trial {
		say("a command that uses the session starts it anew with its files, and keeps its former state for undo")
	} else if problem.Has(p, problem.SnapshotUnfit) {
		say("the session can be used again under the conditions under which it was saved" + s.madeBy())
	}
	say(fmt.Sprintf("nothing was deleted; `cove session rm %s` removes the session", s.name))
	return p.Reworded(fmt.Sprintf("session %s cannot be restored: %s", s.name, p.Error())).WithCause(nil).WithHint(hint)
}

// madeBy says which cove saved the head, where that is known.
func (s *LeasedSession) madeBy() string {
	m, err := snapshot.ReadManifest(snapshotPath(s.dir, s.rec.Head))
	if err != nil {
		return ""
	}
	return ": it was saved by " + m.Made.String()
}

// tidy removes files that the record does not name: they are from owners that died while they saved, or before they wrote the record. No other process works
// here while the lease is held. What cannot be removed now is left to the next command.
func (s *LeasedSession) tidy() {
	if s.journal != nil {
		tidyJournals(s.dir, s.journal)
	}
	dir := filepath.Join(s.dir, snapshotsName)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	wanted := map[string]bool{filepath.Base(snapshotPath(s.dir, s.rec.Head)): true}
	for _, e := range s.rec.Undo {
		wanted[filepath.Base(snapshotPath(s.dir, e))] = true
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case wanted[e.Name()]:
		case strings.HasPrefix(e.Name(), "."):
			_ = os.RemoveAll(path)
		default:
			_ = snapshot.Remove(path)
		}
	}
}

// String returns when that point was.
func (e Entry) String() string {
	if e.Snapshot == "" {
		return "the beginning"
	}
	if e.Made != nil {
		return fmt.Sprintf("%s (after %d executions, by %s)", clock(e.Saved), e.Executions, e.Made)
	}
	return fmt.Sprintf("%s (after %d executions)", clock(e.Saved), e.Executions)
}
