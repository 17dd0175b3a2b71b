package ondisk

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"cove/internal/core/problem"
	"cove/internal/machine/snapshot"
)

// Outlook is what becomes of a saved session when it is opened.
type Outlook string

// The outlooks.
const (
	GoesOn      Outlook = "goes_on"      // as it was saved
	CarriedOver Outlook = "carried_over" // anew, with its files and packages
	Unreadable  Outlook = "unreadable"   // not at all with this cove
)

// Survey counts the sessions of a store by their outlook.
type Survey struct {
	Folder      string `json:"folder"`
	Sessions    int    `json:"sessions"` // all
	New         int    `json:"new"`      // never saved so far
	GoOn        int    `json:"go_on"`
	CarriedOver int    `json:"carried_over"`
	Unreadable  int    `json:"unreadable"`
	Broken      int    `json:"broken"` // their records cannot be read
	// Makers are the versions of cove that made the heads which this one cannot restore, with the number of sessions of each.
	Makers map[string]int `json:"saved_by,omitempty"`
	// WaysBack is the number of sessions that have a way back, and the bytes that these take on the disk.
	WaysBack     int   `json:"ways_back"`
	WaysBackSize int64 `json:"ways_back_bytes"`
}

// MakersSorted are the keys of Makers.
func (s Survey) MakersSorted() []string { return slices.Sorted(maps.Keys(s.Makers)) }

// Survey counts every session without changing any. judge returns the outlook of a session with that base whose head has that manifest. Survey reads two small
// files of each session, and no snapshot's content.
func (s Store) Survey(ctx context.Context, judge func(b Base, head snapshot.Manifest) Outlook) (Survey, error) {
	found := Survey{Folder: s.Dir, Makers: map[string]int{}}
	dir, err := os.Open(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return found, problem.New(problem.SessionsUnreadable, "cove cannot read "+s.Dir).WithCause(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return found, problem.New(problem.SessionsUnreadable, "cove cannot read "+s.Dir).WithCause(err)
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return found, ctx.Err()
		}
		if CheckName(name) == nil {
			found.count(s.path(name), name, judge)
		}
	}
	return found, nil
}

func (s *Survey) count(dir, name string, judge func(Base, snapshot.Manifest) Outlook) {
	rec, err := readRecord(dir, name)
	if _, gone := os.Stat(dir); gone != nil {
		return // the session was removed meanwhile
	}
	s.Sessions++
	if err != nil {
		s.Broken++
		return
	}
	kept := false
	for _, e := range rec.Undo {
		if e.Made != nil {
			kept = true
			s.WaysBackSize += e.Size
		}
	}
	if kept {
		s.WaysBack++
	}
	if rec.Head.Snapshot == "" {
		s.New++
		return
	}
	head, err := snapshot.ReadManifest(snapshotPath(dir, rec.Head))
	if err != nil {
		s.Broken++
		return
	}
	switch judge(rec.Base, head) {
	case GoesOn:
		s.GoOn++
		return
	case CarriedOver:
		s.CarriedOver++
	default:
		s.Unreadable++
	}
	s.Makers[head.Made.String()]++
}
