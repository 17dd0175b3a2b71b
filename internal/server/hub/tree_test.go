package hub_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/machine/snapshot"
	"cove/internal/machine/workspace"
	"cove/internal/python/installation"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/sessions/ondisk"
	"cove/internal/sessions/session"
	"cove/internal/testkit/testneeds"
)

// A session is what a server needs.
var _ hub.Live = (*session.Live)(nil)

// folder is a workspace that is a map.
type folder struct {
	hub.Tree
	mu    sync.Mutex
	files map[string]string
}

func (f *folder) Write(_ context.Context, path string, r io.Reader) (workspace.Entry, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return workspace.Entry{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files[path] = string(text)
	return workspace.Entry{Path: path, Size: int64(len(text))}, nil
}

func (f *folder) Read(_ context.Context, path string, _, _ int64, w io.Writer) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := io.WriteString(w, f.files[path])
	return int64(n), err
}

func (f *folder) Move(context.Context, string, string) error  { return nil }
func (f *folder) Remove(context.Context, string, bool) error  { return nil }
func (f *folder) MakeFolder(context.Context, string) error    { return nil }
func (f *folder) names() []string                             { return slices.Sorted(maps.Keys(f.files)) }
func (l *life) audited(who auth.Principal) (actions []string) { return l.auditedLast(who, 20) }

func (l *life) auditedLast(who auth.Principal, n int) (actions []string) {
	l.t.Helper()
	rows, err := l.store.Rows(l.t.Context(), audit.Query{Project: who.Project, Limit: n})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, r := range slices.Backward(rows) {
		actions = append(actions, r.Action+" "+r.Outcome)
	}
	return actions
}

// newTreeLife is a life whose sessions have all the same workspace.
func newTreeLife(t *testing.T, change func(*hub.Options)) (*life, *folder) {
	tree := &folder{files: map[string]string{}}
	return newLife(t, func(o *hub.Options) {
		prepare := o.Prepare
		o.Prepare = func(ctx context.Context, b ondisk.Base) (*ondisk.Ground, error) {
			g, err := prepare(ctx, b)
			if err != nil {
				return nil, err
			}
			start := g.Start
			g.Start = func(ctx context.Context, from *snapshot.Snapshot, reseed bool) (ondisk.Live, error) {
				l, err := start(ctx, from, reseed)
				if err == nil {
					l.(*toy).Tree = tree
				}
				return l, err
			}
			return g, nil
		}
		if change != nil {
			change(o)
		}
	}), tree
}

func TestWorkspaces(t *testing.T) {
	t.Parallel()
	l, tree := newTreeLife(t, func(o *hub.Options) { o.Limits.File = 100 })
	who, other := someone(auth.LocalProject), someone("prj_other")
	s := l.session(who)
	change := func(tr hub.Tree) error {
		_, err := tr.Write(t.Context(), "a.txt", strings.NewReader("hello"))
		return errors.Join(err, tr.Move(t.Context(), "a.txt", "b.txt"), tr.Remove(t.Context(), "b.txt", true), tr.MakeFolder(t.Context(), "c"))
	}
	if err := l.Tree(t.Context(), who, s.ID, true, func(_ context.Context, tr hub.Tree) error { return change(tr) }); err != nil {
		t.Error(err)
	}
	want := "[session.create ok session.file.write ok session.file.move ok session.file.delete ok session.folder.create ok]"
	if got := fmt.Sprint(l.audited(who)); got != want {
		t.Errorf("the audit log says %s", got)
	}
	err := l.Tree(t.Context(), who, s.ID, true, func(_ context.Context, tr hub.Tree) error {
		_, err := tr.Write(t.Context(), "big.txt", strings.NewReader(strings.Repeat("x", 101)))
		return err
	})
	fails(t, err, "file_too_large")
	if got := tree.names(); fmt.Sprint(got) != "[a.txt]" {
		t.Errorf("there are %v", got)
	}
	viewer := who
	viewer.Role = auth.Viewer
	for _, write := range []bool{false, true} {
		err := l.Tree(t.Context(), viewer, s.ID, write, func(_ context.Context, tr hub.Tree) error { return change(tr) })
		fails(t, err, "forbidden")
		err = l.Tree(t.Context(), other, s.ID, write, func(context.Context, hub.Tree) error { t.Error("used"); return nil })
		fails(t, err, "session_not_found")
	}
	var read strings.Builder
	err = l.Tree(t.Context(), viewer, s.ID, false, func(ctx context.Context, tr hub.Tree) error {
		_, err := tr.Read(ctx, "a.txt", 0, 0, &read)
		return err
	})
	if err != nil || read.String() != "hello" {
		t.Errorf("read %q, %v", read.String(), err)
	}
}

func TestPutStoredFile(t *testing.T) {
	t.Parallel()
	l, tree := newTreeLife(t, nil)
	who, other := someone(auth.LocalProject), someone("prj_other")
	s, f := l.session(who), l.add(who, "a.csv", "1,2\n")
	for path, want := range map[string]string{"": "a.csv", "in/b.csv": "in/b.csv"} {
		if info, err := l.PutFile(t.Context(), who, s.ID, f.ID, path); err != nil || info.Path != want || tree.files[want] != "1,2\n" {
			t.Errorf("put as %+v, %v", info, err)
		}
	}
	_, err := l.PutFile(t.Context(), other, s.ID, f.ID, "")
	fails(t, err, "file_not_found")
	_, err = l.PutFile(t.Context(), other, s.ID, l.add(other, "b", "b").ID, "")
	fails(t, err, "session_not_found")
}

func TestInstallAndPackages(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s := l.session(who)
	if _, err := l.Install(t.Context(), who, s.ID, []string{"polars>=1", "Foo_Bar[x]"}, func(installation.Progress) {}); err != nil {
		t.Error(err)
	}
	for name, asked := range map[string][]string{
		"none": nil, "too many": make([]string, 101), "no name": {"-r requirements.txt"}, "an address": {"x @ file:///etc/passwd"}, "too long": {strings.Repeat("x", 501)},
	} {
		if _, err := l.Install(t.Context(), who, s.ID, asked, nil); err == nil {
			t.Errorf("%s is installed", name)
		} else {
			fails(t, err, "package_name")
		}
	}
	python, packages, err := l.Packages(t.Context(), who, s.ID)
	if err != nil || python != "3.11.7" || packages == nil {
		t.Errorf("%s %v %v", python, packages, err)
	}
	viewer := who
	viewer.Role = auth.Viewer
	_, err = l.Install(t.Context(), viewer, s.ID, []string{"polars"}, nil)
	fails(t, err, "forbidden")
	_, _, err = l.Packages(t.Context(), someone("prj_other"), s.ID)
	fails(t, err, "session_not_found")
}

func TestUsage(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	l.add(who, "a", "hello")
	l.add(who, "b", "world!")
	today := time.Now().UTC().Format(time.DateOnly)
	var used []hub.Usage
	for deadline := time.Now().Add(testneeds.Patience); (len(used) == 0 || used[0].UploadBytes < 11) && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var err error
		if used, err = l.Usage(t.Context(), who, who.Key, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	if len(used) != 1 || used[0].UploadBytes != 11 || used[0].Day < today {
		t.Errorf("used were %+v", used)
	}
	for _, days := range [][2]string{{"yesterday", ""}, {"", "2026-13-01"}, {"2020-01-01", "2026-01-01"}} {
		_, err := l.Usage(t.Context(), who, "", days[0], days[1])
		fails(t, err, "invalid_day")
	}
	if other, err := l.Usage(t.Context(), someone("prj_other"), who.Key, "", ""); err != nil || len(other) != 0 {
		t.Errorf("another project used %+v, %v", other, err)
	}
	stranger := who
	stranger.Scopes = []auth.Action{auth.FilesRead}
	_, err := l.Usage(t.Context(), stranger, "", "", "")
	fails(t, err, "forbidden")
}
