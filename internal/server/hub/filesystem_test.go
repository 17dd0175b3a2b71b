package hub_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/snapshot"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/sessions/ondisk"
)

// drawer is a file system that takes all that is written.
type drawer struct{ guestlink.Files }

func (drawer) WritePath(_ context.Context, path string, r io.Reader, _ filesystem.Set, _ bool) (filesystem.Entry, error) {
	n, err := io.Copy(io.Discard, r)
	return filesystem.Entry{Path: path, Size: n}, err
}

func (drawer) StatPath(_ context.Context, path string, _ bool) (filesystem.Entry, error) {
	return filesystem.Entry{Path: path}, nil
}

// TestFileSystemsOfSessions asks who may see and change what, what the audit log has of it, and what is bounded and counted.
func TestFileSystemsOfSessions(t *testing.T) {
	t.Parallel()
	l := newLife(t, func(o *hub.Options) {
		o.Limits.File = 100
		prepare := o.Prepare
		o.Prepare = func(ctx context.Context, b ondisk.Base) (*ondisk.Ground, error) {
			g, err := prepare(ctx, b)
			if err != nil {
				return nil, err
			}
			start := g.Start
			g.Start = func(ctx context.Context, from *snapshot.Snapshot, reseed bool) (ondisk.Live, error) {
				live, err := start(ctx, from, reseed)
				if err == nil {
					live.(*toy).files = drawer{}
				}
				return live, err
			}
			return g, nil
		}
	})
	who := someone(auth.LocalProject)
	s := l.session(who)
	write := func(who auth.Principal, path, text string) error {
		return l.UseFiles(t.Context(), who, s.ID, hub.FilesUse{Action: "session.file.write", Paths: []string{path}}, func(ctx context.Context, f guestlink.Files) error {
			_, err := f.WritePath(ctx, path, strings.NewReader(text), filesystem.Set{}, false)
			return err
		})
	}
	look := func(who auth.Principal, path string) error {
		return l.UseFiles(t.Context(), who, s.ID, hub.FilesUse{Paths: []string{path}}, func(ctx context.Context, f guestlink.Files) error {
			_, err := f.StatPath(ctx, path, false)
			return err
		})
	}
	if err := errors.Join(write(who, "a.txt", "hello"), write(who, "/tmp/b", "x"), look(who, "/etc/hosts")); err != nil {
		t.Error(err)
	}
	fails(t, write(who, "big", strings.Repeat("x", 101)), "file_too_large")
	fails(t, write(who, "../x", "x"), "invalid_path")
	fails(t, look(who, "../x"), "invalid_path")
	fails(t, look(someone("prj_other"), "a.txt"), "session_not_found")

	reader, writer := who, who
	reader.Scopes = []auth.Action{auth.FilesRead}
	writer.Scopes = []auth.Action{auth.FilesRead, auth.FilesWrite}
	if err := errors.Join(look(reader, "a.txt"), write(writer, "a.txt", "x")); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"a reader writes": write(reader, "a.txt", "x"), "a reader looks outside": look(reader, "/proc/self/environ"), "a writer writes outside": write(writer, "/tmp/x", "x"),
	} {
		if !problem.Has(err, problem.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := l.WatchFiles(t.Context(), reader, s.ID, "/proc", true); !problem.Has(err, problem.Forbidden) {
		t.Errorf("a reader watches outside: %v", err)
	}
	rows := l.audited(who)
	slices.Sort(rows[6:]) // of a map's order
	want := "[session.create ok session.file.write ok session.file.write ok session.file.write file_too_large session.file.write invalid_path session.file.write ok session.file.write forbidden session.file.write forbidden]"
	if got := fmt.Sprint(rows); got != want {
		t.Errorf("the audit log says %s", got)
	}

	_, err := l.WatchFiles(t.Context(), who, s.ID, "none", false)
	fails(t, err, "file_not_found")
	events, err := l.WatchFiles(t.Context(), reader, s.ID, "data", true)
	if err != nil {
		t.Fatal(err)
	}
	var got []filesystem.EventKind
	for e, err := range events {
		if err != nil {
			t.Error(err)
		}
		got = append(got, e.Kind)
	}
	if fmt.Sprint(got) != "[create end]" {
		t.Errorf("watched: %v", got)
	}
}
