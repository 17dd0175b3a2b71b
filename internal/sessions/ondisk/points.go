package ondisk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/keeper"
	"cove/internal/machine/pagestore"
	"cove/internal/machine/snapshot"
)

// A point is an entry of a record's Undo: something that the session was, and can be again. Points are packed as soon as they are not the head any more: they have
// most of their pages in common, which are in a folder of the session.
const (
	pagesName  = "pages"
	mostBefore = 100 // what one point names, the newest
)

// Point names the entry among those of its session.
func (e Entry) Point() string {
	if e.Snapshot == "" {
		return beginning
	}
	return e.Snapshot
}

// begins notes what begins at an entry.
func (e *Entry) begins(before string) {
	if before != "" && !slices.Contains(e.Before, before) {
		names := append(slices.Clone(e.Before), before)
		e.Before = names[max(0, len(names)-mostBefore):]
	}
}

// Mark keeps the session's present state as a point that Return goes back to, and notes what begins there. It saves the session first when that has changed, as
// Checkpoint does, with the same errors.
func (s *LeasedSession) Mark(ctx context.Context, before string) error {
	if err := s.gap(ctx); err != nil {
		return err
	}
	defer s.busy.Release(everything)
	if err := s.saveChanges(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.rec
	next.Head.Kept = true
	next.Head.begins(before)
	if err := next.write(s.dir); err != nil {
		return err
	}
	s.rec = next
	return nil
}

// packPoints packs what can be packed. What cannot be stays as it is, and takes more room. The caller holds all of busy, so that the points stay as they are meanwhile.
func (s *LeasedSession) packPoints(ctx context.Context) {
	s.mu.Lock()
	rec := s.rec
	s.mu.Unlock()
	_ = rec.pack(ctx, s.dir, s.opts.Room, func(points []Entry) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		next := s.rec
		next.Undo = points
		err := next.write(s.dir)
		if err == nil {
			s.rec = next
		}
		return err
	})
}

// packable says whether a point could take less room.
func (e Entry) packable() bool {
	return e.Snapshot != "" && !e.Packed && e.Made == nil && e.Elsewhere == 0
}

// pack packs the points that are not, and drops the oldest ones, but never the newest, when together they take more than most bytes (0: no limit). When that changes the points,
// record writes down which there are now. The caller has the session's lease.
func (r Record) pack(ctx context.Context, dir string, most int64, record func(points []Entry) error) error {
	if !slices.ContainsFunc(r.Undo, Entry.packable) {
		return nil
	}
	store, lists, err := r.openPages(dir)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	next, done := r, []Entry{}
	next.Undo = slices.Clone(r.Undo)
	for i, e := range next.Undo {
		if !e.packable() {
			continue
		}
		packed, list, err := packEntry(ctx, dir, e, store)
		if ctx.Err() != nil {
			return err
		}
		if err == nil { // else it stays as it is
			next.Undo[i], done = packed, append(done, e)
			lists[e.Snapshot] = list
		}
	}
	for oldest := 0; most > 0 && oldest < len(next.Undo)-1 && next.taken(store) > most; {
		e := next.Undo[oldest]
		if e.Made != nil || e.Snapshot == "" {
			oldest++
			continue
		}
		next.Undo, done = slices.Delete(next.Undo, oldest, oldest+1), append(done, e)
		gone := lists[e.Snapshot]
		delete(lists, e.Snapshot)
		store.Drop(gone, flat(lists))
	}
	if len(done) > 0 {
		if err := record(next.Undo); err != nil {
			return err
		}
		discard(dir, done)
	}
	return store.Shrink() // what is not given back now is given back the next time
}

// shrink gives back the pages that no point needs any more.
func (r Record) shrink(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, pagesName)); err != nil {
		return nil // nothing was ever packed
	}
	store, _, err := r.openPages(dir)
	if err != nil {
		return err
	}
	return errors.Join(store.Shrink(), store.Close())
}

// taken is what the points take on the disk, in bytes, but for the ways back and the little that each has besides its pages.
func (r Record) taken(store *pagestore.Store) int64 {
	n := store.Room()
	for _, e := range r.Undo {
		switch {
		case e.packable():
			n += e.Size
		case e.Room >= e.Size: // it is sealed, and has no page in common with anything
			n += e.Room
		}
	}
	return n
}

// packEntry makes the packed snapshot of a point.
func packEntry(ctx context.Context, dir string, e Entry, store *pagestore.Store) (Entry, []pagestore.List, error) {
	snap, err := snapshot.Open(ctx, snapshotPath(dir, e))
	if err != nil {
		return e, nil, err
	}
	before := store.Room()
	e.Packed = true
	to := snapshotPath(dir, e)
	if err := errors.Join(snapshot.Remove(to), snap.Pack(ctx, to, store)); err != nil {
		return e, nil, err
	}
	e.Room = store.Room() - before + snapshot.Occupied(to)
	list, err := snapshot.PagesOf(to)
	return e, list, err
}

// openPages opens the pages of the session's points. The lists are by snapshot; that of a damaged one is missing.
func (r Record) openPages(dir string) (*pagestore.Store, map[string][]pagestore.List, error) {
	lists := map[string][]pagestore.List{}
	for _, e := range r.Undo {
		if e.Packed {
			if list, err := snapshot.PagesOf(snapshotPath(dir, e)); err == nil {
				lists[e.Snapshot] = list
			}
		}
	}
	store, err := pagestore.Open(filepath.Join(dir, pagesName), flat(lists)...)
	return store, lists, err
}

func flat(lists map[string][]pagestore.List) []pagestore.List {
	var all []pagestore.List
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// find returns the point with that name, or before which that began, and its place in Undo; -1 is the head.
func (r Record) find(point string) (Entry, int, error) {
	named := func(e Entry) bool { return e.Point() == point || slices.Contains(e.Before, point) }
	if r.Head.Kept && named(r.Head) {
		return r.Head, -1, nil
	}
	for i, e := range slices.Backward(r.Undo) {
		if named(e) {
			return e, i, nil
		}
	}
	return Entry{}, 0, problem.New(problem.PointUnknown, fmt.Sprintf("session %s has no point %s to return to", r.Name, point)).
		WithHint("it may have been dropped for newer ones, or was never kept")
}

// whole makes the snapshot of an entry in the session's own folder, or in that of another, where it is called id, so that it can be restored.
func (r Record) whole(ctx context.Context, dir string, e Entry, to, id string) error {
	if e.Snapshot == "" {
		return nil
	}
	target := snapshotPath(to, Entry{Snapshot: id})
	if !e.Packed {
		snap, err := snapshot.Open(ctx, snapshotPath(dir, e))
		if err == nil && target != snap.Dir {
			_, err = snap.Clone(ctx, target, id)
		}
		return err
	}
	store, _, err := r.openPages(dir)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	if err := snapshot.Remove(target); err != nil { // what a command left that was killed before it had recorded it
		return err
	}
	_, err = snapshot.Unpack(ctx, snapshotPath(dir, e), target, id, store)
	return err
}

// Undo returns the session to its newest point, which becomes the head; the former head is deleted. A session in memory is paused by
// that; if its head is from before the last undoable execution, it returns to that head.
func (s Store) Undo(ctx context.Context, name, command string) (Info, error) {
	return s.goBack(ctx, name, command, func(rec Record) (Entry, int, error) {
		switch n := len(rec.Undo); {
		case rec.unsaved() && rec.Memory.Pinned > 0:
			return rec.Head, -1, nil
		case n == 0:
			return Entry{}, 0, rec.nothingToUndo()
		default:
			return rec.Undo[n-1], n - 1, nil
		}
	})
}

// Return is Undo to a point: with that name, or before which that began. Later points are deleted. A problem with code "point_unknown" says that there is none.
func (s Store) Return(ctx context.Context, name, command, point string) (Info, error) {
	return s.goBack(ctx, name, command, func(rec Record) (Entry, int, error) { return rec.find(point) })
}

// goBack makes the point that choose returns the head. Its place -1 is the head itself.
func (s Store) goBack(ctx context.Context, name, command string, choose func(Record) (Entry, int, error)) (Info, error) {
	l, rec, err := s.acquire(ctx, name, command)
	if err != nil {
		return Info{}, err
	}
	defer l.release()
	to, at, err := choose(rec)
	if err != nil {
		return Info{}, err
	}
	if err := keeper.Stop(ctx, l.dir); err != nil {
		return Info{}, fmt.Errorf("undo in session %s: %w", name, err)
	}
	var gone []Entry
	if at >= 0 {
		kept := slices.Clone(rec.Undo[:at])
		for _, later := range rec.Undo[at+1:] {
			if later.Made != nil {
				kept = append(kept, later) // a way back goes with the session alone
			} else {
				gone = append(gone, later)
			}
		}
		gone = append(gone, rec.Head)
		if to.Packed {
			gone = append(gone, to)
			if err := rec.whole(ctx, l.dir, to, l.dir, to.Snapshot); err != nil {
				return Info{}, fmt.Errorf("undo in session %s: %w", name, err)
			}
			to.Packed, to.Room = false, 0
		}
		rec.Head, rec.Undo = to, kept
	}
	rec.Head.Made = nil
	rec.Executions, rec.Running, rec.Memory, rec.Used = rec.Head.Executions, nil, nil, time.Now()
	if err := rec.write(l.dir); err != nil {
		return Info{}, err
	}
	discard(l.dir, gone)
	_ = rec.shrink(l.dir) // what is not given back now is given back the next time
	l.release()
	return s.look(name)
}
