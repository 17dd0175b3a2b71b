package ondisk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/sessions/ondisk"
)

// UseFiles has use work with a file system that remembers what was done.
func (f *fake) UseFiles(_ context.Context, _ bool, use func(guestlink.Files) error) error {
	return use(fakeFiles{f: f})
}

// fakeFiles are the files of a fake's machine.
type fakeFiles struct {
	guestlink.Files
	f *fake
}

func (d fakeFiles) did(ctx context.Context, what string) (filesystem.Entry, error) {
	if guestlink.IsRoot(ctx) {
		what = "root:" + what
	}
	if d.f.cramped {
		return filesystem.Entry{}, problem.New(problem.FileNotFound, "it is not there")
	}
	d.f.ran = append(d.f.ran, what)
	return filesystem.Entry{}, nil
}

func (d fakeFiles) WritePath(ctx context.Context, path string, r io.Reader, set filesystem.Set, _ bool) (filesystem.Entry, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return filesystem.Entry{}, err
	}
	if string(text) == "refuse" {
		return filesystem.Entry{}, problem.New(problem.WorkspaceFull, "the disk is full")
	}
	return d.did(ctx, path+"="+string(text)+modeOf(set))
}

func modeOf(set filesystem.Set) string {
	if set.Mode == nil {
		return ""
	}
	return fmt.Sprintf("(%o)", *set.Mode)
}

func (d fakeFiles) ChangePath(ctx context.Context, path string, set filesystem.Set, _ bool) (filesystem.Entry, error) {
	return d.did(ctx, path+modeOf(set))
}

func (d fakeFiles) ReplaceText(ctx context.Context, r filesystem.Replace) ([]filesystem.Replaced, error) {
	_, err := d.did(ctx, strings.Join(r.Paths, "+")+":"+r.Text+"/"+r.With)
	return nil, err
}

func (d fakeFiles) MovePath(ctx context.Context, c filesystem.Copy) (filesystem.Entry, error) {
	return d.did(ctx, fmt.Sprint(c.From, ">", c.To, map[bool]string{true: "!"}[c.Replace]))
}

func (d fakeFiles) CopyPath(ctx context.Context, c filesystem.Copy) (filesystem.Entry, error) {
	return d.did(ctx, fmt.Sprint(c.From, "~", c.To, map[bool]string{true: "!"}[c.Replace]))
}

func (d fakeFiles) RemovePath(ctx context.Context, path string, _ bool) error {
	_, err := d.did(ctx, "-"+path)
	return err
}

func (d fakeFiles) MakePath(ctx context.Context, path string, set filesystem.Set, _ bool) (filesystem.Entry, error) {
	return d.did(ctx, path+"/"+modeOf(set))
}

func (d fakeFiles) LinkPath(ctx context.Context, path, target string, _ bool) (filesystem.Entry, error) {
	return d.did(ctx, path+"@"+target)
}

// works is a session with files that one can work with.
type works struct {
	*testing.T
	s *ondisk.LeasedSession
}

func (w works) files(ctx context.Context, use func(ctx context.Context, f guestlink.Files) error) {
	w.Helper()
	if err := w.s.UseFiles(ctx, true, func(f guestlink.Files) error { return use(ctx, f) }); err != nil {
		w.Fatal(err)
	}
}

func (w works) put(path, text string, set filesystem.Set) {
	w.Helper()
	w.files(w.Context(), func(ctx context.Context, f guestlink.Files) error {
		_, err := f.WritePath(ctx, path, strings.NewReader(text), set, true)
		return err
	})
}

func (w works) copy(from, to string) {
	w.Helper()
	w.files(w.Context(), func(ctx context.Context, f guestlink.Files) error {
		_, err := f.CopyPath(ctx, filesystem.Copy{From: from, To: to})
		return err
	})
}

func (w works) move(from, to string) {
	w.Helper()
	w.files(w.Context(), func(ctx context.Context, f guestlink.Files) error {
		_, err := f.MovePath(ctx, filesystem.Copy{From: from, To: to, Replace: true})
		return err
	})
}

// TestTheFileSystemOutlivesItsOwner makes every change that clients can make of a machine's file system. All are made again, in their order and with the rights that they had, in the sandbox that takes
// the place of a lost one, and by the owner that comes next.
func TestTheFileSystemOutlivesItsOwner(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	m := &machine{}
	s := open(t, store, "lab", m.options())
	execute(t, s, "x")
	if err := s.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, mode := works{t, s}, uint32(0o640)
	w.put("/srv/a", "1", filesystem.Set{Mode: &mode})
	execute(t, s, "y")
	write(t, s, "in", "2")
	w.files(guestlink.AsRoot(t.Context()), func(ctx context.Context, f guestlink.Files) error {
		_, err := f.WritePath(ctx, "/etc/b", strings.NewReader("3"), filesystem.Set{}, false)
		_, err2 := f.LinkPath(ctx, "/etc/l", "/etc/b", true)
		return errors.Join(err, err2)
	})
	w.files(t.Context(), func(ctx context.Context, f guestlink.Files) error {
		_, err := f.MakePath(ctx, "d", filesystem.Set{Mode: &mode}, true)
		_, err2 := f.ChangePath(ctx, "/srv/a", filesystem.Set{Mode: &mode}, true)
		_, err3 := f.ReplaceText(ctx, filesystem.Replace{Paths: []string{"in", "/srv/a"}, Text: "1", With: "2"})
		return errors.Join(err, err2, err3, f.RemovePath(ctx, "old", true))
	})
	w.copy("in", "d/c")
	w.move("/srv/a", "d/a")
	want := "x /srv/a=1(640) in=2 root:/etc/b=3 root:/etc/l@/etc/b d/(640) /srv/a(640) in+/srv/a:1/2 -old in~d/c /srv/a>d/a!"
	execute(t, s, "die")
	if got := strings.Join(m.last.ran, " "); got != want {
		t.Errorf("the next sandbox has %q, want %q", got, want)
	}
	if got := strings.Join(s.Notices(), "\n"); !strings.Contains(got, "were restored: /etc/b, d/a, in") {
		t.Errorf("it is told %q", got)
	}
	if err := s.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ran(t, store, "lab"); got != want {
		t.Errorf("the next owner finds %q, want %q", got, want)
	}
}

// TestContentsThatAreStillNeeded replaces files that something else was made of, or that had more said of them, and files of which nothing is needed any more.
func TestContentsThatAreStillNeeded(t *testing.T) {
	t.Parallel()
	secret := uint32(0o600)
	for name, c := range map[string]struct {
		change   func(w works)
		want     string
		contents int
	}{
		"copied": {func(w works) {
			w.put("/a", "1", filesystem.Set{})
			w.copy("/a", "/b")
			w.put("/a", "2", filesystem.Set{})
		}, "/a=1 /a~/b /a=2", 2},
		"moved": {func(w works) {
			w.put("/a", "1", filesystem.Set{})
			w.move("/a", "/b")
			w.put("/a", "2", filesystem.Set{})
		}, "/a=1 /a>/b! /a=2", 2},
		"moved and replaced": {func(w works) {
			w.put("/a", "1", filesystem.Set{})
			w.move("/a", "/b")
			w.put("/b", "2", filesystem.Set{})
		}, "/a=1 /a>/b! /b=2", 2},
		"by its other name": {func(w works) {
			w.put("/home/user/a", "1", filesystem.Set{})
			_ = w.s.Move(w.Context(), "a", "b")
			w.put("/home/user/a", "2", filesystem.Set{})
		}, "/home/user/a=1 a>b /home/user/a=2", 2},
		"copied and removed": {func(w works) { w.put("/a", "1", filesystem.Set{}); w.copy("/a", "/b"); w.remove("/a") }, "/a=1 /a~/b -/a", 1},
		"with a mode":        {func(w works) { w.put("/a", "1", filesystem.Set{Mode: &secret}); w.put("/a", "2", filesystem.Set{}) }, "/a=1(600) /a=2", 2},
		"with the same mode": {func(w works) {
			w.put("/a", "1", filesystem.Set{Mode: &secret})
			w.put("/a", "2", filesystem.Set{Mode: &secret})
		}, "/a=2(600)", 1},
		"replaced": {func(w works) {
			w.copy("/x", "/y")
			w.put("/a", "1", filesystem.Set{})
			w.put("/a", "2", filesystem.Set{})
		}, "/x~/y /a=2", 1},
		"removed": {func(w works) { w.put("/a/b", "1", filesystem.Set{}); w.remove("/a") }, "-/a", 0},
		"put over by another": {func(w works) {
			w.put("/a", "1", filesystem.Set{})
			w.put("/b", "2", filesystem.Set{})
			w.move("/b", "/a")
		}, "/b=2 /b>/a!", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, m := ondisk.Store{Dir: t.TempDir()}, &machine{}
			s := open(t, store, "lab", m.options())
			c.change(works{t, s})
			if _, contents := journal(t, store, "lab"); contents != c.contents {
				t.Errorf("%d contents are kept, want %d", contents, c.contents)
			}
			m.last.ran = nil
			execute(t, s, "die")
			if got := strings.Join(m.last.ran, " "); got != c.want {
				t.Errorf("the next sandbox has %q, want %q", got, c.want)
			}
			if err := s.Discard(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := ran(t, store, "lab"); got != c.want {
				t.Errorf("the next owner finds %q, want %q", got, c.want)
			}
		})
	}
}

func (w works) remove(path string) {
	w.Helper()
	w.files(w.Context(), func(ctx context.Context, f guestlink.Files) error { return f.RemovePath(ctx, path, true) })
}

// TestAJournalOfFilesHasAnEnd writes one file over and over.
func TestAJournalOfFilesHasAnEnd(t *testing.T) {
	t.Parallel()
	store, m := ondisk.Store{Dir: t.TempDir()}, &machine{}
	s := open(t, store, "lab", m.options())
	w := works{t, s}
	w.copy("/x", "/y")
	const most = 210 // lines
	for i := range 2 * most {
		w.put("/a", fmt.Sprint(i), filesystem.Set{})
		text, err := os.ReadFile(filepath.Join(store.Dir, "lab", "journal", "start.log"))
		if lines := strings.Count(string(text), "\n"); err != nil || lines == 0 || lines > most {
			t.Fatalf("after %d changes the log has %d lines: %v", i, lines, err)
		}
	}
	if logs, contents := journal(t, store, "lab"); logs != 1 || contents != 1 {
		t.Errorf("there are %d logs and %d contents", logs, contents)
	}
	execute(t, s, "die")
	if got, want := strings.Join(m.last.ran, " "), fmt.Sprint("/x~/y /a=", 2*most-1); got != want {
		t.Errorf("the next sandbox has %q, want %q", got, want)
	}
}

// TestVolumesAreNotWrittenAgain changes files in a volume, which is on the disk by itself, and which another session may have changed since.
func TestVolumesAreNotWrittenAgain(t *testing.T) {
	t.Parallel()
	m := &machine{}
	o := m.options()
	o.Base.Volumes = []ondisk.Volume{{Folder: "v", Path: "/home/user/shared"}}
	s := open(t, ondisk.Store{Dir: t.TempDir()}, "lab", o)
	w := works{t, s}
	w.put("shared/a", "1", filesystem.Set{})
	w.put("/home/user/shared/b", "1", filesystem.Set{})
	w.put("shared-not", "1", filesystem.Set{})
	w.copy("shared-not", "shared/c")
	w.copy("shared/a", "own")
	w.move("shared-not", "/home/user/../user/shared/d")
	w.files(t.Context(), func(ctx context.Context, f guestlink.Files) error {
		_, err := f.ReplaceText(ctx, filesystem.Replace{Paths: []string{"own", "shared/a"}, Text: "1", With: "2"})
		_, err2 := f.ReplaceText(ctx, filesystem.Replace{Paths: []string{"shared/a"}, Text: "1", With: "2"})
		return errors.Join(err, err2)
	})
	w.remove("shared/a")
	execute(t, s, "die")
	if got, want := strings.Join(m.last.ran, " "), "shared-not=1 shared/a~own -shared-not own:1/2"; got != want {
		t.Errorf("the next sandbox has %q, want %q", got, want)
	}
}

// TestFileChangesThatCannotBeMadeAgain are said, and those that were refused are not kept.
func TestFileChangesThatCannotBeMadeAgain(t *testing.T) {
	t.Parallel()
	store, m := ondisk.Store{Dir: t.TempDir()}, &machine{}
	s := open(t, store, "lab", m.options())
	err := s.UseFiles(t.Context(), true, func(f guestlink.Files) error {
		_, err := f.WritePath(t.Context(), "/a", strings.NewReader("refuse"), filesystem.Set{}, false)
		return err
	})
	if !problem.Has(err, problem.WorkspaceFull) {
		t.Errorf("what the machine refuses: %v", err)
	}
	if logs, contents := journal(t, store, "lab"); logs+contents > 0 {
		t.Errorf("%d logs and %d contents are left of what was refused", logs, contents)
	}
	w := works{t, s}
	w.put("/a", "1", filesystem.Set{})
	w.copy("/a", "/b")
	w.move("/c", "/d")
	w.files(t.Context(), func(ctx context.Context, f guestlink.Files) error {
		_, err := f.MakePath(ctx, "/e", filesystem.Set{}, true)
		_, err2 := f.LinkPath(ctx, "/f", "/a", false)
		return errors.Join(err, err2)
	})
	m.last.cramped = true
	execute(t, s, "die")
	if got := s.Notices(); len(got) != 1 || got[0] != "files that were put in after that could not be restored: /a, /b, /d, /e, /f" {
		t.Errorf("it is told %q", got)
	}
}
