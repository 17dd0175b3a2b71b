package ondisk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/keeper"
)

// manageAttempts bounds how often an operation begins anew because another process used the session in between.
const manageAttempts = 5

// Pause saves a session that is in memory and takes it out of memory; was says whether it was in memory. Every other session that no process uses is paused
// already. When a process uses the session, the problem names it.
func (s Store) Pause(ctx context.Context, name, command string) (info Info, was bool, err error) {
	for range manageAttempts {
		l, _, err := s.acquire(ctx, name, command)
		if err != nil {
			return Info{}, was, err
		}
		lives := keeper.Lives(l.dir)
		l.release() // the keeper needs it
		if !lives {
			break
		}
		if err := keeper.Pause(ctx, l.dir); err != nil && !keeper.Gone(err) {
			return Info{}, was, fmt.Errorf("pause session %s: %w", name, err)
		} else if err == nil {
			was = true
		}
	}
	info, err = s.look(name)
	return info, was, err
}

// Resume loads a session into memory: launch has a process call Keep and waits until that is ready. fresh says that the session was not in memory before.
func (s Store) Resume(ctx context.Context, name string, launch func(ctx context.Context) error) (info Info, fresh bool, err error) {
	l, _, err := s.acquire(ctx, name, Keeping)
	if err != nil {
		return Info{}, false, err
	}
	lives := keeper.Lives(l.dir)
	l.release()
	if !lives {
		err = launch(ctx)
		fresh = err == nil
	}
	if err != nil && !problem.Has(err, problem.SessionInMemory) {
		return Info{}, false, err
	}
	info, err = s.look(name)
	return info, fresh, err
}

// acquireSaved acquires the lease of a session once the session is saved, so that its head is its present state.
func (s Store) acquireSaved(ctx context.Context, name, command string) (*lease, Record, error) {
	for range manageAttempts {
		l, rec, err := s.acquire(ctx, name, command)
		if err != nil || !rec.unsaved() || !keeper.Lives(l.dir) {
			return l, rec, err
		}
		l.release() // the keeper needs it
		if err := keeper.Flush(ctx, l.dir); err != nil && !keeper.Gone(err) {
			return nil, rec, fmt.Errorf("save session %s: %w", name, err)
		}
	}
	return nil, Record{}, problem.New(problem.SessionInUse, "session "+name+" was in use each time it was tried").WithHint("try again when the other commands have ended")
}

// Fork makes the session to, which goes on from the present state of from, or from one of its points as Return takes them. From then on the two share disk space and nothing else.
func (s Store) Fork(ctx context.Context, from, to, command, point string) (Info, error) {
	if err := CheckName(to); err != nil {
		return Info{}, err
	}
	source, rec, err := s.acquireSaved(ctx, from, command)
	if err != nil {
		return Info{}, err
	}
	defer source.release()
	if _, err := os.Lstat(s.path(to)); err == nil {
		return Info{}, exists(to)
	}
	at, present := rec.Head, true
	if point != "" {
		var place int
		if at, place, err = rec.find(point); err != nil {
			return Info{}, err
		}
		present = place < 0
	}
	made, _, err := s.create(to, command, func(dir string) (Record, error) {
		fork := newRecord(to, Options{Base: rec.Base})
		fork.Python, fork.Executions, fork.Head = rec.Python, at.Executions, at
		fork.Head.Kept, fork.Head.Before, fork.Head.Packed, fork.Head.Room = false, nil, false, 0
		if at.Snapshot != "" {
			fork.Head.Snapshot, fork.Head.Reseed = id("snp_"), true
			if err := rec.whole(ctx, source.dir, at, dir, fork.Head.Snapshot); err != nil {
				return fork, err
			}
		}
		if !present {
			return fork, nil // what clients have changed since is not the point's
		}
		return fork, cloneJournal(source.dir, rec.Head, dir, fork.Head)
	})
	if errors.Is(err, fs.ErrExist) {
		return Info{}, exists(to)
	}
	if err != nil {
		return Info{}, fmt.Errorf("fork session %s: %w", from, err)
	}
	made.release()
	return s.look(to)
}

// Take has the session name go on from the present state of from, another one of the same Base, which stays as it is. The state that name had is kept as a point, the newest of at most
// depth, before which is what begins there, as with Mark; with depth 0 it is not. A session in memory is saved, and paused by that.
func (s Store) Take(ctx context.Context, name, from, command, before string, depth int) (Info, error) {
	if name == from {
		return Info{}, exists(name)
	}
	source, rec, err := s.acquireSaved(ctx, from, command)
	if err != nil {
		return Info{}, err
	}
	defer source.release()
	target, own, err := s.acquireSaved(ctx, name, command)
	if err != nil {
		return Info{}, err
	}
	defer target.release()
	if err := keeper.Stop(ctx, target.dir); err != nil {
		return Info{}, fmt.Errorf("give session %s the state of %s: %w", name, from, err)
	}
	head := rec.Head
	head.Kept, head.Before, head.Packed, head.Room, head.Made = false, nil, false, 0, nil
	if head.Snapshot != "" {
		head.Snapshot, head.Reseed = id("snp_"), true
		if err := rec.whole(ctx, source.dir, rec.Head, target.dir, head.Snapshot); err != nil {
			return Info{}, fmt.Errorf("give session %s the state of %s: %w", name, from, err)
		}
	}
	if err := cloneJournal(source.dir, rec.Head, target.dir, head); err != nil {
		return Info{}, err
	}
	own.Head.begins(before)
	next, dropped := own.advance(head, depth)
	next.Base, next.Python = rec.Base, rec.Python
	next.Executions, next.Running, next.Memory, next.Used = head.Executions, nil, nil, time.Now()
	if err := next.write(target.dir); err != nil {
		return Info{}, err
	}
	discard(target.dir, dropped)
	_ = next.shrink(target.dir) // what is not given back now is given back the next time
	target.release()
	return s.look(name)
}

// Release takes back Options.Served of a session.
func (s Store) Release(ctx context.Context, name, command string) error {
	l, rec, err := s.acquireSaved(ctx, name, command)
	if err != nil {
		return err
	}
	defer l.release()
	rec.Served = false
	return rec.write(l.dir)
}

func (r Record) nothingToUndo() error {
	hint := "a snapshot is kept from before each execution that is run with --undoable"
	if r.unsaved() && r.Head.Snapshot != "" {
		hint += fmt.Sprintf("\nit was last saved at %s; `cove session fork` would save it anew", r.Head)
	}
	return problem.New(problem.NothingToUndo, "session "+r.Name+" has no earlier snapshot to return to").WithHint(hint)
}

// Remove deletes the session with all its snapshots, also one in memory and a broken one.
func (s Store) Remove(ctx context.Context, name, command string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	l, err := acquire(ctx, s.path(name), name, command)
	if err != nil {
		return err
	}
	if err := keeper.Stop(ctx, l.dir); err != nil {
		l.release()
		return fmt.Errorf("remove session %s: %w", name, err)
	}
	return s.discard(l)
}

// discard deletes a session whose lease is held.
func (s Store) discard(l *lease) error {
	defer l.release()
	gone := filepath.Join(s.Dir, id(gonePrefix))
	if err := os.Rename(l.dir, gone); err != nil {
		return unwritable(s.Dir, err)
	}
	if err := os.RemoveAll(gone); err != nil {
		return unwritable(s.Dir, err)
	}
	return nil
}
