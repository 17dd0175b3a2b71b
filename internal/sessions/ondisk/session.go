package ondisk

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"cove/internal/core/problem"
	"cove/internal/machine/keeper"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/snapshot"
	"cove/internal/python/kernel"
)

// longestReason bounds what messages quote of an engine's error, in bytes.
const longestReason = 300

// LeasedSession is a session on the disk whose lease this process holds, loaded into memory. It is used like the Live that it embeds; Close saves it.
type LeasedSession struct {
	Live
	name   string
	dir    string
	lease  *lease
	ground *Ground
	opts   Options
	kept   *keeper.Remote // the sandbox, where another process keeps it
	// busy is acquired in part by executions, and as a whole by executions that can be undone and by what makes a snapshot.
	busy *semaphore.Weighted
	// renewal is what Renewed returns.
	renewal string

	mu      sync.Mutex // guards what follows
	rec     Record
	notices []string
	at      state
	carried *snapshot.Maker // the maker of a head that did not fit, when the session was started anew from it and is not saved since
	ended   <-chan struct{} // closed when the sandbox ends that has the unsaved changes

	changing sync.Mutex // one change to the workspace at a time
	noting   sync.Mutex // guards journal; no other lock is acquired under it
	journal  *journal

	closing sync.Once
	closed  error
}

// ID identifies the session, also among earlier and later ones of the same name.
func (s *LeasedSession) ID() string { return s.rec.ID }

// Name is the session's name.
func (s *LeasedSession) Name() string { return s.name }

// Notices returns what the user should be told and has not been told yet, a sentence each.
func (s *LeasedSession) Notices() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.notices
	s.notices = nil
	return n
}

func (s *LeasedSession) notice(text string) { s.noticeKept(text, text) }

// noticeKept is notice with another text for the record.
func (s *LeasedSession) noticeKept(text, kept string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notices = append(s.notices, text)
	s.rec.Notice = &Notice{Time: time.Now(), Text: kept}
}

// Execute runs code as Live does. With Undoable, a snapshot is made first if anything ran since the last one.
func (s *LeasedSession) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		share := int64(1)
		if s.opts.Undoable {
			share = everything
		}
		if s.busy.Acquire(ctx, share) != nil {
			yield(nil, problem.New(problem.GivenUp, "stopped before the code ran"))
			return
		}
		defer s.busy.Release(share)
		if err := s.before(ctx); err != nil {
			yield(nil, err)
			return
		}
		s.follow(s.Live.Execute(ctx, req), yield)
	}
}

// completeRollback adds to a Live's Rollback which saved state the session goes on from, and records that.
func (s *LeasedSession) completeRollback(r kernel.Rollback) kernel.Rollback {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rec.Executions, s.rec.Memory = s.rec.Head.Executions, nil
	r.To = s.rec.Head.Saved
	return r
}

// CPU returns the processor time that the session has used since it was opened, and false when it is not known.
func (s *LeasedSession) CPU() (time.Duration, bool) {
	if l, ok := s.Live.(Meter); ok {
		return l.CPU()
	}
	return 0, false
}

// Memory returns the memory that only this session takes, in bytes; 0 when it is not known.
func (s *LeasedSession) Memory() int64 {
	if l, ok := s.Live.(Weigher); ok {
		return l.Memory()
	}
	return 0
}

// look returns the session's state, after a check whether the sandbox with the unsaved changes has ended. The caller holds mu.
func (s *LeasedSession) look() state {
	select {
	case <-s.ended:
		s.at = s.at.on(sandboxDies)
	default:
	}
	return s.at
}

// before prepares the session for an execution.
func (s *LeasedSession) before(ctx context.Context) error {
	s.mu.Lock()
	at, begins := s.look(), codeBegins
	s.mu.Unlock()
	if at.unrecoverable() {
		return s.unsaved("its sandbox was lost", problem.SessionLost)
	}
	if s.opts.Undoable {
		begins = undoBegins
	}
	if s.opts.Undoable && at.codeRan() && at.holds != nowhere {
		if err := s.saveHead(ctx, true); err != nil {
			s.notice("the next execution cannot be undone, because no snapshot could be made: " + problem.Of(err).Error())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.holds == nowhere {
		s.rec.Executions, s.rec.Memory = s.rec.Head.Executions, nil
	}
	s.at = s.at.on(begins)
	return nil
}

func (s *LeasedSession) after(d kernel.Done) {
	ended, installed := s.Lost(), s.Installed()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rec.Executions++
	s.rec.Installed, s.ended = installed, ended
	switch d.Lost {
	case kernel.LostSession:
		s.at = s.at.on(sandboxDies)
	case kernel.LostKernel:
		s.at = s.at.on(kernelDies)
	default:
		s.at = s.at.on(codeEnds)
	}
}

// PutFile copies a host file into the workspace.
func (s *LeasedSession) PutFile(ctx context.Context, path, host string) error {
	if err := s.Live.PutFile(ctx, path, host); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = s.at.on(filesChange)
	return nil
}

// everything is the whole of LeasedSession.busy.
const everything = math.MaxInt64

// ahead says whether the session has unsaved changes. The caller holds mu.
func (s *LeasedSession) ahead() bool {
	l, ok := s.Live.(KernelKeeper)
	return s.at.ahead != nothingAhead || ok && l.Touched()
}

// kernels returns the process ids of the kernels that have names.
func (s *LeasedSession) kernels() map[string]int {
	if l, ok := s.Live.(KernelKeeper); ok {
		return l.KernelPIDs()
	}
	return nil
}

// saveHead makes a snapshot and makes it the head. After an error the head is unchanged; without keep the sandbox may have ended then.
func (s *LeasedSession) saveHead(ctx context.Context, keep bool) error {
	err := s.writeHead(ctx, keep)
	if err == nil {
		s.packPoints(context.WithoutCancel(ctx))
	}
	return err
}

func (s *LeasedSession) writeHead(ctx context.Context, keep bool) (err error) {
	if s.ground.Keep != nil {
		if err := s.ground.Keep(); err != nil {
			s.notice("this version of cove could not be stored, which other versions may need to read its sessions: " + brief(problem.Of(err).Error()))
		}
	}
	entry, ended := Entry{Snapshot: id("snp_"), Saved: time.Now()}, false
	whole := ctx
	if !keep {
		whole = context.WithoutCancel(ctx) // once the sandbox has ended, its files are all that is left of the session: a timeout must not discard them
	}
	snap, err := snapshot.Create(whole, snapshotPath(s.dir, entry),
		snapshot.Manifest{ID: entry.Snapshot, Created: entry.Saved, Key: s.ground.Key, Made: s.ground.Made},
		func(_ context.Context, folder string) (sandbox.Checkpoint, error) {
			saved, err := s.Save(ctx, folder, keep)
			ended = err == nil && !keep
			return saved, err
		})
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if ended && err != nil {
			s.at = s.at.on(sandboxDies)
		}
	}()
	if err != nil {
		return err
	}
	entry.hold(snap)
	entry.Executions, entry.Kernels = s.rec.Executions, s.kernels()
	s.rec.Kernels, s.rec.Installed = entry.Kernels, s.Installed()
	depth := 0
	// The variables of a kernel that died are still in the former head.
	rescue := s.at.holds == inFilesAlone && s.rec.Head.Snapshot != ""
	if s.opts.Undoable || s.rec.Head.Kept || rescue {
		depth = max(1, s.opts.Depth)
	}
	if s.rec.Memory != nil {
		depth = max(depth, s.rec.Memory.Pinned)
	}
	former := s.rec
	former.Head.Made = s.carried
	next, dropped := former.advance(entry, depth)
	if rescue {
		text := s.rescued(s.rec.Head)
		s.notices, next.Notice = append(s.notices, text), &Notice{Time: entry.Saved, Text: text}
	}
	if !keep {
		next.Running, next.Used = nil, time.Now()
	}
	if err := next.write(s.dir); err != nil {
		return errors.Join(err, snapshot.Remove(snap.Dir))
	}
	s.rec, s.carried = next, nil
	if s.root(snap, entry.Kernels) {
		s.at = s.at.on(headSaved)
	} else {
		s.at = s.at.on(headSavedAside)
	}
	s.replaceJournal(entry)
	discard(s.dir, dropped)
	return nil
}

// root sets the snapshot as what Live goes back to when it loses its sandbox. It returns false when Live cannot do that.
func (s *LeasedSession) root(snap *snapshot.Snapshot, kernels map[string]int) bool {
	l, ok := s.Live.(Restarter)
	if ok {
		l.Root(snap.Checkpoint(), kernels)
	}
	return ok
}

// Checkpoint saves the session if it has changed since it was last saved, and goes on with it. It delays executions as little as possible: when they leave no
// gap for seconds, the error is a problem with code "session_busy". After any error the session is unchanged, unless its sandbox is lost.
func (s *LeasedSession) Checkpoint(ctx context.Context) error {
	if err := s.gap(ctx); err != nil {
		return err
	}
	defer s.busy.Release(everything)
	return s.saveChanges(ctx)
}

// saveChanges is Checkpoint for a caller that holds all of busy.
func (s *LeasedSession) saveChanges(ctx context.Context) error {
	s.mu.Lock()
	due := s.ahead() && s.look().holds != nowhere
	s.mu.Unlock()
	if !due {
		return nil
	}
	return s.saveHead(ctx, true)
}

// How long Checkpoint looks for a gap between executions without delaying any, and how long it queues for one after that, which delays those after it.
const (
	gapSearch = time.Second
	gapQueue  = time.Second
	gapPoll   = 10 * time.Millisecond
)

// gap acquires all of busy.
func (s *LeasedSession) gap(ctx context.Context) error {
	for begun := time.Now(); time.Since(begun) < gapSearch; {
		if s.busy.TryAcquire(everything) {
			return nil
		}
		select {
		case <-time.After(gapPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	bounded, cancel := context.WithTimeout(ctx, gapQueue)
	defer cancel()
	if s.busy.Acquire(bounded, everything) != nil {
		return problem.New(problem.SessionBusy, "the session was not saved, because it was in use all the time")
	}
	return nil
}

// Unsaved says whether the session has changed since it was last saved, and how many bytes of files the journal keeps until it is saved.
func (s *LeasedSession) Unsaved() (ahead bool, kept int64) {
	s.noting.Lock()
	if s.journal != nil {
		kept = s.journal.bytes
	}
	s.noting.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ahead() && s.look().holds != nowhere, kept
}

// Head returns when the session was last saved, and the snapshot's size. Both are zero when it never was.
func (s *LeasedSession) Head() Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rec.Head
}

// Disk is what the session's snapshots take, in bytes, but for the little that packed ones have besides their pages.
func (s *LeasedSession) Disk() int64 {
	s.mu.Lock()
	rec := s.rec
	s.mu.Unlock()
	n := rec.Head.Size + snapshot.Occupied(filepath.Join(s.dir, pagesName))
	for _, e := range rec.Undo {
		if !e.Packed {
			n += e.Size
		}
	}
	return n
}

// rescued says how the user can get back the variables of a kernel that died.
func (s *LeasedSession) rescued(from Entry) string {
	return fmt.Sprintf("session %s was saved without the variables that were lost; `cove session undo %s` goes back to %s", s.name, s.name, from)
}

// Close waits for running code to end, saves the session if it has changed, and releases it. A session that a keeper has in memory is left there, and is not
// saved. Ending ctx ends the waiting, and the saving too unless the sandbox has ended for it already. When the session could not be saved the error is a
// problem with code "session_unsaved" or, when that was because its sandbox had died, "session_lost"; the session is then as it was. It is safe to call twice.
func (s *LeasedSession) Close(ctx context.Context) error { return s.finish(ctx, true) }

func (s *LeasedSession) finish(ctx context.Context, save bool) error {
	s.closing.Do(func() {
		s.closed = s.close(ctx, save)
		s.releaseJournal()
		s.lease.release()
	})
	return s.closed
}

// Pause is Close for a session that must not be lost: when saving fails and the sandbox still runs, as on a full disk, open is true and the session can be used on.
func (s *LeasedSession) Pause(ctx context.Context) (open bool, err error) {
	s.mu.Lock()
	due := s.ahead() && s.look().holds != nowhere && !s.inMemory()
	s.mu.Unlock()
	if due {
		if err := s.evict(ctx); err != nil && s.lives() {
			return true, err
		}
	}
	return false, s.Close(ctx)
}

func (s *LeasedSession) lives() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look().holds != nowhere
}

// evict saves the session and ends its sandbox as soon as no code runs.
func (s *LeasedSession) evict(ctx context.Context) error {
	if err := s.busy.Acquire(ctx, everything); err != nil {
		return err
	}
	defer s.busy.Release(everything)
	return s.saveHead(ctx, false)
}

// Discard releases the session without saving it. What has changed in it since the last snapshot is lost, unless a keeper has the session in memory.
func (s *LeasedSession) Discard(ctx context.Context) error {
	s.mu.Lock()
	elsewhere := s.inMemory()
	s.mu.Unlock()
	return s.finish(ctx, elsewhere)
}

func (s *LeasedSession) close(ctx context.Context, save bool) error {
	if left, err := s.release(ctx); left {
		return err
	}
	err := s.saveLast(ctx, save)
	if cerr := s.Live.Close(context.WithoutCancel(ctx)); cerr != nil {
		err = errors.Join(err, cerr)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rec.Running == nil {
		return err // saved, and the record says so
	}
	s.rec.Running, s.rec.Memory, s.rec.Used = nil, nil, time.Now()
	s.rec.Executions = s.rec.Head.Executions
	return errors.Join(err, s.rec.write(s.dir))
}

// saveLast makes the last snapshot, if the session has changed.
func (s *LeasedSession) saveLast(ctx context.Context, save bool) error {
	if s.busy.Acquire(ctx, everything) != nil {
		return s.unsaved("its code did not end in time", problem.SessionUnsaved)
	}
	defer s.busy.Release(everything)
	s.mu.Lock()
	due, lost := s.ahead() && save, s.look().holds == nowhere
	s.mu.Unlock()
	switch {
	case !due:
		return nil
	case lost:
		return s.unsaved("its sandbox was lost", problem.SessionLost)
	}
	err := s.saveHead(ctx, false)
	switch {
	case err == nil:
		return nil
	case problem.Has(err, problem.SessionLost):
		return s.unsaved("its sandbox was lost", problem.SessionLost)
	}
	return s.unsaved(problem.Of(err).Error(), problem.SessionUnsaved).WithHint(problem.Of(err).Hint)
}

// unsaved says why the session was not saved, and what it goes on from.
func (s *LeasedSession) unsaved(why string, code problem.UnavailableCode) *problem.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("session %s was not saved: %s; %s", s.name, brief(why), s.rec.remains())
	s.rec.Notice = &Notice{Time: time.Now(), Text: text}
	return problem.New(code, text)
}

// brief makes one line of bounded length of an engine's error, which may have stack traces in it.
func brief(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	if len(text) > longestReason {
		text = strings.ToValidUTF8(text[:longestReason], "") + "..."
	}
	return text
}
