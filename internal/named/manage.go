package named

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"cove/internal/problem"
	"cove/internal/snapshot"
)

// Pause says that the session is paused already, which it is whenever nobody uses it; otherwise the error names its user.
func (s Store) Pause(name, command string) (Info, error) {
	l, _, err := s.claim(name, command)
	if err != nil {
		return Info{}, err
	}
	l.release()
	return s.look(name)
}

// Fork makes the session to, which goes on from where from is. They share no more than the room on the disk.
func (s Store) Fork(ctx context.Context, from, to, command string) (Info, error) {
	if err := CheckName(to); err != nil {
		return Info{}, err
	}
	if err := s.Sweep(); err != nil {
		return Info{}, err
	}
	source, rec, err := s.claim(from, command)
	if err != nil {
		return Info{}, err
	}
	defer source.release()
	if _, err := os.Lstat(s.path(to)); err == nil {
		return Info{}, exists(to)
	}
	made, _, err := s.create(to, command, func(dir string) (Record, error) {
		fork := newRecord(to, rec.Base)
		fork.Python, fork.Executions, fork.Head = rec.Python, rec.Executions, rec.Head
		if rec.Head.Snapshot == "" {
			return fork, nil
		}
		snap, err := snapshot.Open(ctx, snapshotPath(source.dir, rec.Head))
		if err != nil {
			return fork, err
		}
		fork.Head.Snapshot, fork.Head.Reseed = id("snp_"), true
		_, err = snap.Clone(ctx, snapshotPath(dir, fork.Head), fork.Head.Snapshot)
		return fork, err
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

// Undo makes the newest snapshot that can be returned to the head. The former head is deleted.
func (s Store) Undo(name, command string) (Info, error) {
	l, rec, err := s.claim(name, command)
	if err != nil {
		return Info{}, err
	}
	former := rec.Head
	n := len(rec.Undo)
	if n == 0 {
		l.release()
		return Info{}, problem.New(problem.Invalid, "nothing_to_undo", "session "+name+" has no earlier snapshot to return to").
			WithHint("one is kept from before each execution that is run with --undoable")
	}
	rec.Head, rec.Undo = rec.Undo[n-1], rec.Undo[:n-1]
	rec.Executions, rec.Running, rec.Used = rec.Head.Executions, nil, time.Now()
	err = rec.write(l.dir)
	if err == nil && former.Snapshot != "" {
		_ = snapshot.Remove(snapshotPath(l.dir, former)) // the next command tries again
	}
	l.release()
	if err != nil {
		return Info{}, err
	}
	return s.look(name)
}

// Remove deletes the session with all its snapshots; a broken one too.
func (s Store) Remove(name, command string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	l, err := acquire(s.path(name), name, command)
	if err != nil {
		return err
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
