package ondisk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"cove/internal/core/problem"
	"cove/internal/machine/keeper"
	"cove/internal/machine/snapshot"
)

// State is where a session is in its life; see the package comment.
type State string

// The states.
const (
	New     State = "new"
	Running State = "running"
	Paused  State = "paused"
	Lost    State = "lost"
	Broken  State = "broken"
)

// Info describes a session. For a broken one little but the Name is known.
type Info struct {
	Record
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"` // why it is lost or broken
	Kept   bool   `json:"-"`                // the journal has changes that the head lacks
	Disk   int64  `json:"disk_bytes"`       // room on the disk, and where its engine keeps checkpoints; forks count what they share
	Path   string `json:"path"`
	Unread bool   `json:"-"` // it counts as broken because reading it failed, perhaps for the moment only, so that which snapshots it needs is not known
}

// List returns every session, the one used last first.
func (s Store) List() ([]Info, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, problem.New(problem.SessionsUnreadable, "cove cannot read "+s.Dir).WithCause(err)
	}
	var all []Info
	for _, e := range entries {
		if CheckName(e.Name()) != nil {
			continue
		}
		if info, err := s.look(e.Name()); err == nil {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b Info) int {
		if c := b.Used.Compare(a.Used); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all, nil
}

// Show describes a session, and checks its head snapshot.
func (s Store) Show(ctx context.Context, name string) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	info, err := s.look(name)
	if err != nil || info.State == Running || info.State == Broken || info.Head.Snapshot == "" {
		return info, err
	}
	_, damage := snapshot.Open(ctx, snapshotPath(info.Path, info.Head))
	if damage == nil || ctx.Err() != nil {
		return info, ctx.Err()
	}
	now, err := s.look(name)
	if err == nil && now.State != Running && now.Head.Snapshot == info.Head.Snapshot {
		now.State, now.Reason = Broken, problem.Of(damage).Error()
	}
	return now, err
}

// Look is Show without a check of the snapshot.
func (s Store) Look(name string) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	return s.look(name)
}

// look reads a session's record, without acquiring the lease.
func (s Store) look(name string) (Info, error) {
	dir := s.path(name)
	at, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Info{}, unknown(name)
	}
	who, held := owner(dir)
	rec, rerr := readRecord(dir, name)
	kept := keeper.Lives(dir)
	for rerr == nil && !held && (rec.Running != nil || rec.Memory != nil && !kept) {
		// Its owner or keeper has died, or began after the record was read and may have ended since.
		seen := rec
		if who, held = owner(dir); held {
			break
		}
		kept = keeper.Lives(dir)
		if rec, rerr = readRecord(dir, name); rerr == nil && rec.same(seen) {
			break
		}
	}
	info := Info{Record: rec, State: Paused, Kept: journaled(dir, rec.Head), Disk: snapshot.Occupied(dir) + rec.elsewhere(), Path: dir}
	switch {
	case err != nil || rerr != nil:
		info.State, info.Name, info.Reason = Broken, name, problem.Of(errors.Join(err, rerr)).Error()
		_, unread := errors.AsType[*fs.PathError](errors.Join(err, rerr))
		info.Unread = unread && !errors.Is(rerr, syscall.ENOTDIR)
		if err == nil {
			info.Used = at.ModTime()
		}
	case held:
		info.State, info.Running = Running, who
	case rec.Memory != nil && kept:
		info.State = Running
	case rec.Running != nil || rec.unsaved():
		info.State, info.Reason = Lost, rec.lossNotice()
	case rec.Head.Snapshot == "":
		info.State = New
	}
	return info, nil
}

// same says whether r and o have the same owner and the same keeper.
func (r Record) same(o Record) bool {
	if (r.Running == nil) != (o.Running == nil) || (r.Memory == nil) != (o.Memory == nil) {
		return false
	}
	return (r.Running == nil || r.Running.Since.Equal(o.Running.Since)) && (r.Memory == nil || r.Memory.Since.Equal(o.Memory.Since))
}
