package ondisk_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"cove/internal/python/kernel"
	"cove/internal/sessions/ondisk"
)

func write(t *testing.T, s *ondisk.LeasedSession, path, text string) {
	t.Helper()
	if _, err := s.Write(t.Context(), path, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
}

// journal lists what the session keeps apart from its snapshots.
func journal(t *testing.T, store ondisk.Store, name string) (logs, contents int) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(store.Dir, name, "journal"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".log") {
			logs++
		} else {
			contents++
		}
	}
	return logs, contents
}

// TestFilesOutliveTheOwner kills the owner after it has acknowledged files, before and after a first save.
func TestFilesOutliveTheOwner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		codes []string
		want  string
		says  string
	}{
		{"never saved", []string{"x", "a=1", "b=2"}, "a=1 b=2", "it starts anew"},
		{"saved before", []string{"x", "a=1", "checkpoint", "b=2", "y"}, "x a=1 b=2", "the session is as it was at"},
		{"saved behind", []string{"a=1", "x", "checkpoint"}, "a=1 x", "the session is as it was at"},
		{"replaced", []string{"x", "checkpoint", "a=1", "a=2"}, "x a=2", "the session is as it was at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store := ondisk.Store{Dir: t.TempDir()}
			p, said := spawn(t, store, append([]string{"lab"}, c.codes...)...)
			if said != "ready" {
				t.Fatal(said)
			}
			p.kill()
			before, notices := use(t, store, "lab", ondisk.Options{})
			if got := strings.Join(before, " "); got != c.want {
				t.Errorf("the next command finds %q, want %q", got, c.want)
			}
			if got := strings.Join(notices, "\n"); !strings.Contains(got, c.says) {
				t.Errorf("it is told %q, want %q", got, c.says)
			}
			if got := ran(t, store, "lab"); got != c.want {
				t.Errorf("the command after that finds %q, want %q", got, c.want)
			}
			if logs, contents := journal(t, store, "lab"); logs+contents > 0 {
				t.Errorf("%d logs and %d contents are left of what was saved", logs, contents)
			}
		})
	}
}

// TestFilesOutliveTheSandbox loses the sandbox under a session that goes on.
func TestFilesOutliveTheSandbox(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	m := &machine{}
	s := open(t, store, "lab", m.options())
	execute(t, s, "x")
	write(t, s, "a", "1")
	if err := s.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if logs, contents := journal(t, store, "lab"); logs+contents > 0 {
		t.Errorf("%d logs and %d contents are left of what was saved", logs, contents)
	}
	write(t, s, "b", "2")
	execute(t, s, "y")
	write(t, s, "c/d", "3")
	if err := errors.Join(s.Move(t.Context(), "b", "e"), s.MakeFolder(t.Context(), "f"), s.Remove(t.Context(), "c", true)); err != nil {
		t.Fatal(err)
	}
	execute(t, s, "die")
	want := "x a=1 b=2 b>e f/ -c"
	if got := strings.Join(m.last.ran, " "); got != want {
		t.Errorf("the next sandbox has %q, want %q", got, want)
	}
	if got := strings.Join(s.Notices(), "\n"); !strings.Contains(got, "were restored: e") {
		t.Errorf("it is told %q", got)
	}
	execute(t, s, "z")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ran(t, store, "lab"); got != want+" z" {
		t.Errorf("saved is %q", got)
	}
}

// TestAJournalHasAnEnd changes a session that is never saved far more often than there are things in it.
func TestAJournalHasAnEnd(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	m := &machine{}
	s := open(t, store, "lab", m.options())
	if err := errors.Join(s.MakeFolder(t.Context(), "kept"), s.MakeFolder(t.Context(), "gone"), s.MakeFolder(t.Context(), "old")); err != nil {
		t.Fatal(err)
	}
	write(t, s, "old/b", "1")
	write(t, s, "gone/c", "2")
	if err := errors.Join(s.Move(t.Context(), "old", "new"), s.Remove(t.Context(), "gone", true)); err != nil {
		t.Fatal(err)
	}
	const most = 210 // lines
	for i := range 3 * most {
		write(t, s, "a", strconv.Itoa(i))
		text, err := os.ReadFile(filepath.Join(store.Dir, "lab", "journal", "start.log"))
		if lines := strings.Count(string(text), "\n"); err != nil || lines == 0 || lines > most {
			t.Fatalf("after %d changes the log has %d lines: %v", i, lines, err)
		}
	}
	if logs, contents := journal(t, store, "lab"); logs != 1 || contents != 2 {
		t.Errorf("there are %d logs and %d contents", logs, contents)
	}
	m.last.ran = nil
	execute(t, s, "die")
	if got, want := strings.Join(m.last.ran, " "), "kept/ new/ new/b=1 a="+strconv.Itoa(3*most-1); got != want {
		t.Errorf("the next sandbox has %q, want %q", got, want)
	}
}

// TestWhatCannotBePutBackIsSaid refuses files that a next sandbox is to have again, one of which has another name by then.
func TestWhatCannotBePutBackIsSaid(t *testing.T) {
	t.Parallel()
	m := &machine{}
	s := open(t, ondisk.Store{Dir: t.TempDir()}, "lab", m.options())
	write(t, s, "a", "1")
	write(t, s, "c", "2")
	if err := s.Move(t.Context(), "a", "b"); err != nil {
		t.Fatal(err)
	}
	m.last.cramped = true
	execute(t, s, "die")
	if got := s.Notices(); len(got) != 1 || got[0] != "files that were put in after that could not be restored: b, c" {
		t.Errorf("it is told %q", got)
	}
}

// TestWhatFailsIsNotKept refuses changes in every way; none of them comes back.
func TestWhatFailsIsNotKept(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	m := &machine{}
	s := open(t, store, "lab", m.options())
	if _, err := s.Write(t.Context(), "a", strings.NewReader("refuse")); err == nil {
		t.Error("what the workspace refuses is taken")
	}
	broken := errors.New("the client went away")
	if _, err := s.Write(t.Context(), "a", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("half a file: %v", err)
	}
	if logs, contents := journal(t, store, "lab"); logs+contents > 0 {
		t.Errorf("%d logs and %d contents are left of what was refused", logs, contents)
	}
	for range 20 {
		write(t, s, "a", strings.Repeat("x", 100))
	}
	if _, contents := journal(t, store, "lab"); contents != 1 {
		t.Errorf("%d contents are kept of one file", contents)
	}
	if ahead, kept := s.Unsaved(); !ahead || kept != 100 {
		t.Errorf("%v, %d bytes are said to be unsaved", ahead, kept)
	}
}

// TestTornJournal cuts a journal's last line short, as a crash does.
func TestTornJournal(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	p, said := spawn(t, store, "lab", "x", "checkpoint", "a=1", "b=2")
	if said != "ready" {
		t.Fatal(said)
	}
	p.kill()
	logs, err := filepath.Glob(filepath.Join(store.Dir, "lab", "journal", "*.log"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	info, err := os.Stat(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(logs[0], info.Size()-7); err != nil {
		t.Fatal(err)
	}
	s := open(t, store, "lab", (&machine{}).options())
	write(t, s, "c", "3")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ran(t, store, "lab"); got != "x a=1 c=3" {
		t.Errorf("there is %q", got)
	}
}

// TestForkTakesFilesAlong forks a session whose owner was killed.
func TestForkTakesFilesAlong(t *testing.T) {
	t.Parallel()
	for _, codes := range [][]string{{"a=1"}, {"x", "checkpoint", "a=1"}} {
		store := ondisk.Store{Dir: t.TempDir()}
		p, said := spawn(t, store, append([]string{"lab"}, codes...)...)
		if said != "ready" {
			t.Fatal(said)
		}
		p.kill()
		if _, err := store.Fork(t.Context(), "lab", "lab2", "x", ""); err != nil {
			t.Fatal(err)
		}
		want := strings.TrimSpace(strings.ReplaceAll(strings.Join(codes, " "), "checkpoint ", ""))
		for _, name := range []string{"lab2", "lab"} {
			if got := ran(t, store, name); got != want {
				t.Errorf("%s has %q, want %q", name, got, want)
			}
		}
	}
}

// TestCheckpointFindsAGap saves a session whose executions follow each other at once, and does not wait for one that goes on.
func TestCheckpointFindsAGap(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	m := &machine{}
	s := open(t, store, "lab", m.options())
	ctx, stop := context.WithCancel(t.Context())
	busy := make(chan struct{})
	go func() {
		defer close(busy)
		for ctx.Err() == nil {
			execute(t, s, "x")
		}
	}()
	for s.Head().Snapshot == "" {
		if err := s.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	<-busy
	m.last.started = make(chan string)
	long, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, err := range s.Execute(long, kernel.Request{Code: "block"}) {
			t.Log(err) // it is ended
		}
	}()
	<-m.last.started
	fails(t, s.Checkpoint(t.Context()), "session_busy", "in use")
	m.last.started = nil
	end()
	<-ended
}
