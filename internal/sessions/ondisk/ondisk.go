// Package ondisk keeps sessions under a name on the disk: the Python of `cove run --session lab` goes on where the last command
// left it, a day or a reboot later. Between commands a session is files and no process.
//
// A command that uses a session owns it: it acquires the session's lease, restores the head snapshot (or starts anew when there is none), runs code, saves a
// new snapshot, makes that the head and releases the lease. Only undo and a keeper change the head besides.
//
// The states of a session, and what leads from one to the other:
//
//		         create                    Open                     Close: saved
//		(none) ─────────▶ new ───────────────────────▶ running ───────────────────▶ paused
//		                   ▲                             ▲ │ │                        │
//		                   └──────Close: nothing ran─────┼─┘ │ the owner died         │
//		                                                 │   ▼                        │
//		                                                 │  lost                      │
//		                                                 └───┴────────── Open ────────┘
//
//	  - new: nothing was ever saved. The next Open starts it from the beginning.
//	  - running: a living process holds the lease. session.json says "running", in case that process dies.
//	  - paused: no process holds the lease. The session is its head snapshot and nothing else.
//	  - lost: no process holds the lease, but session.json says "running": the last owner died before it saved. What it did is
//	    lost; the next Open says so and goes on from the head, or from the beginning when there is none.
//	  - broken: session.json cannot be read, or the head could not be when it was checked. Nothing of such a session is deleted unasked.
//
// A session can be in memory between commands (Store.Keep): a process, its keeper, has its sandbox, offers it to owners through package keeper, and is the
// owner itself only while it saves. Such a session counts as running, also after an owner has closed it or died. When its keeper dies it is lost if code ran in
// it since it was saved, and paused if not.
//
// Type state says what has changed in an open session since its head was saved, and whether those changes still exist; a table gives the next state for each event.
//
// A sandbox that dies while its owner lives, and a save that fails, leave the head as it was; Close says so. Fork makes a second session from a head, Undo
// makes an earlier snapshot the head, Remove deletes the session.
//
// On the disk:
//
//	<store>/<name>/lease            locked by the owner, and who that is
//	<store>/<name>/session.json     the Record
//	<store>/<name>/keeper*          see package keeper; and keeper.log
//	<store>/<name>/snapshots/<id>/  see package snapshot; the head and what undo can return to
//	<store>/.new-*, <store>/.gone-* a session being made or removed, or what a killed process left of one
package ondisk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
)

const (
	newPrefix  = ".new-"
	gonePrefix = ".gone-"
	// newGrace is how long making a session may take until it has a lease.
	newGrace = 10 * time.Second
)

// Store is the folder that keeps the sessions. It is made when needed.
type Store struct{ Dir string }

func id(prefix string) string { return prefix + strings.ToLower(rand.Text()[:20]) }

// CheckName says why name cannot be a session's, or returns nil.
func CheckName(name string) error {
	if regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`).MatchString(name) {
		return nil
	}
	return problem.New(problem.SessionName, fmt.Sprintf("%q cannot be the name of a session", name)).
		WithHint("a name has 1 to 63 lower-case letters, digits, dots, dashes and underscores, and begins with a letter or a digit, like lab or sales-2025")
}

func (s Store) path(name string) string { return filepath.Join(s.Dir, name) }

func unknown(name string) error {
	return problem.New(problem.SessionUnknown, "there is no session "+name).
		WithHint("`cove session ls` lists them; `cove run --session " + name + " ...` makes it")
}

// unwritable makes a problem of an error that keeps the store from being changed.
func unwritable(dir string, err error) error {
	return problem.New(problem.SessionsUnwritable, "cove cannot write to "+dir).WithCause(err).
		WithHint("make the folder writable and make sure that the disk is not full, or set COVE_SESSIONS to another folder")
}

// acquire takes the lease of an existing session.
func (s Store) acquire(ctx context.Context, name, command string) (*lease, Record, error) {
	if err := CheckName(name); err != nil {
		return nil, Record{}, err
	}
	l, err := acquire(ctx, s.path(name), name, command)
	if err != nil {
		return nil, Record{}, err
	}
	rec, err := readRecord(l.dir, name)
	if err != nil {
		l.release()
		return nil, Record{}, err
	}
	return l, rec, nil
}

// create makes the session name and acquires its lease; fill may put snapshots into its folder and returns its record. The session appears whole. An error that
// is fs.ErrExist means that the session exists already.
func (s Store) create(name, command string, fill func(dir string) (Record, error)) (*lease, Record, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, Record{}, unwritable(s.Dir, err)
	}
	born := filepath.Join(s.Dir, id(newPrefix))
	if err := os.Mkdir(born, 0o700); err != nil {
		return nil, Record{}, unwritable(s.Dir, err)
	}
	l, err := tryAcquire(born, name, command)
	if err != nil {
		return nil, Record{}, errors.Join(err, os.RemoveAll(born))
	}
	rec, err := fill(born)
	if err == nil {
		err = rec.write(born)
	}
	if err == nil {
		err = os.Rename(born, s.path(name)) // fails when the session exists: its folder is not empty
	}
	if err == nil {
		l.dir = s.path(name)
		if err = durable.SyncFolder(s.Dir); err == nil {
			return l, rec, nil
		}
	}
	l.release()
	return nil, Record{}, errors.Join(err, os.RemoveAll(born))
}

func exists(name string) error {
	return problem.New(problem.SessionExists, "there is a session "+name+" already").
		WithHint("choose another name, or remove it first: `cove session rm " + name + "`")
}

// Sweep removes the remains of sessions that a process was making or removing when it died.
func (s Store) Sweep() error {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unwritable(s.Dir, err)
	}
	for _, e := range entries {
		dir := filepath.Join(s.Dir, e.Name())
		if strings.HasPrefix(e.Name(), newPrefix) && abandoned(dir, e) || strings.HasPrefix(e.Name(), gonePrefix) {
			_ = os.RemoveAll(dir) // the next command tries again
		}
	}
	return nil
}

func abandoned(dir string, e fs.DirEntry) bool {
	info, err := e.Info()
	if err != nil || time.Since(info.ModTime()) < newGrace {
		return false
	}
	_, held := owner(dir)
	return !held
}

// clock formats a time for people.
func clock(t time.Time) string {
	t, now := t.Local(), time.Now()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}
