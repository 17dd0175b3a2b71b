package live

import (
	"context"
	"errors"
	"io"
	"iter"
	"path"
	"strings"

	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/server/auth"
	"cove/internal/server/hub/files"
	"cove/internal/server/hub/record"
)

// FileSystem is what a session's machine has for files. Package session documents the methods.
type FileSystem interface {
	UseFiles(ctx context.Context, change bool, use func(guestlink.Files) error) error
	WatchFiles(ctx context.Context, path string, all bool, began func()) iter.Seq2[filesystem.Event, error]
}

// FilesUse says what a use of a session's file system is for.
type FilesUse struct {
	Action string   // of a change, for the audit log; "": it only looks
	Paths  []string // all that it is about
	Root   bool     // with the rights of the session's root, who may do so only where programs may run as root
}

// allowed says whether a caller may use paths: those outside the workspace are what code may use, and show what it shows, such as the variables of its processes.
func (u FilesUse) allowed(who auth.Principal) error {
	right := auth.FilesRead
	if u.Action != "" {
		right = auth.FilesWrite
	}
	err := who.Require(right)
	for _, p := range u.Paths {
		if err == nil {
			err = filesystem.CheckPath(p)
		}
		if err == nil && path.IsAbs(p) {
			err = who.Require(auth.SessionsExecute)
		}
	}
	return err
}

func (u FilesUse) rights(ctx context.Context) context.Context {
	if u.Root {
		return guestlink.AsRoot(ctx)
	}
	return ctx
}

// UseFiles loads a session and has use work with the file system of its machine, which use may not keep. It may use the paths that u names, and change something only where
// u says what. Needs auth.FilesRead, for a change auth.FilesWrite, and for absolute paths auth.SessionsExecute. Changes are in the audit log, and bytes that use writes
// are bounded by Limits.File and counted.
func (m *Manager) UseFiles(ctx context.Context, who auth.Principal, session string, u FilesUse, use func(ctx context.Context, f guestlink.Files) error) error {
	change := u.Action != ""
	err := u.allowed(who)
	if err == nil && u.Root {
		err = who.Require(auth.SessionsExecute)
	}
	if err == nil && !change {
		return m.PeekSession(ctx, who, session, func(ctx context.Context, l Live) error {
			return l.UseFiles(ctx, false, func(f guestlink.Files) error { return use(u.rights(ctx), f) })
		})
	}
	if err == nil {
		err = m.UseSession(ctx, who, session, func(ctx context.Context, l Live) error {
			return l.UseFiles(ctx, true, func(f guestlink.Files) error { return use(u.rights(ctx), measured{f, m, who}) })
		})
	}
	if change {
		m.work.WriteAudit(ctx, who, u.Action, session, strings.Join(u.Paths[:min(len(u.Paths), mostAudited)], ", "), err)
	}
	return err
}

// mostAudited is how many paths of one change the audit log has.
const mostAudited = 10

// measured bounds and counts the bytes that are written.
type measured struct {
	guestlink.Files
	m   *Manager
	who auth.Principal
}

// WritePath implements guestlink.Files.
func (m measured) WritePath(ctx context.Context, path string, r io.Reader, set filesystem.Set, fresh bool) (filesystem.Entry, error) {
	if err := m.m.meter.MayStore(ctx, m.who.Project, m.who.Key, 0); err != nil {
		return filesystem.Entry{}, err
	}
	n, err := m.Files.WritePath(ctx, path, files.NewBoundedReader(ctx, r, m.m.o.Limits.File), set, fresh)
	if err == nil {
		m.m.meter.AddUsage(ctx, m.who, record.Usage{UploadBytes: n.Size})
	}
	return n, err
}

// WatchFiles yields the changes of a file, or in a folder and with all in those below it. It returns when the watching has begun. It keeps the session in memory, until
// somebody else needs the session. Needs auth.FilesRead, and for absolute paths auth.SessionsExecute. Problems: file_not_found, too_many_processes, session_taken.
func (m *Manager) WatchFiles(ctx context.Context, who auth.Principal, session, path string, all bool) (iter.Seq2[filesystem.Event, error], error) {
	if err := (FilesUse{Paths: []string{path}}).allowed(who); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	type told struct {
		filesystem.Event
		err error
	}
	events, began := make(chan told), make(chan struct{})
	go func() {
		defer close(events)
		left := errors.New("the watcher has left")
		err := m.yielding(ctx, who, session, m.acquireUntouched, func(ctx context.Context, l Live) error {
			for e, err := range l.WatchFiles(ctx, path, all, func() { close(began) }) {
				if err != nil {
					return err
				}
				select {
				case events <- told{Event: e}:
				case <-ctx.Done():
					return left
				}
			}
			return nil
		})
		if err != nil {
			select {
			case events <- told{err: err}:
			case <-ctx.Done():
			}
		}
	}()
	select {
	case <-began:
	case first := <-events: // it has failed, or ended at once
		cancel()
		return func(func(filesystem.Event, error) bool) {}, first.err
	case <-ctx.Done():
		cancel()
		return nil, ctx.Err()
	}
	return func(yield func(filesystem.Event, error) bool) {
		defer cancel()
		for e := range events {
			if !yield(e.Event, e.err) || e.err != nil {
				return
			}
		}
	}, nil
}
