package named

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cove/internal/keeper"
	"cove/internal/problem"
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
