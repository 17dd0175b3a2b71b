package ondisk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/sessions/ondisk"
)

func TestALostSandboxLeavesTheSessionAsItWas(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	s := open(t, store, "lab", (&machine{}).options())
	execute(t, s, "die")
	fails(t, s.Close(t.Context()), "session_lost", "session lab was not saved: its sandbox was lost; it starts anew")
	use(t, store, "lab", ondisk.Options{}, "a")
	s = open(t, store, "lab", (&machine{}).options())
	execute(t, s, "b", "die")
	fails(t, s.Close(t.Context()), "session_lost", "the session is as it was at ")
	info, err := store.Show(t.Context(), "lab")
	if err != nil || info.State != ondisk.Paused || info.Executions != 1 || info.Notice == nil || !strings.Contains(info.Notice.Text, "was not saved") {
		t.Errorf("it is said to be %+v, %v", info, err)
	}
	before, notices := use(t, store, "lab", ondisk.Options{}, "die", "c")
	if strings.Join(before, " ") != "a" || len(notices) > 0 {
		t.Errorf("found %q, told %q", before, notices)
	}
	if got := ran(t, store, "lab"); got != "a c" {
		t.Errorf("after going on from the head the session has %q", got)
	}
}

func TestASandboxThatIsLostUnnoticed(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	m := &machine{}
	s := open(t, store, "lab", m.options())
	execute(t, s, "b")
	m.last.die()
	fails(t, s.Close(t.Context()), "session_lost", "its sandbox was lost; the session is as it was at ")
	s = open(t, store, "lab", m.options())
	execute(t, s, "b")
	m.last.die()
	var told []kernel.Rollback
	for ev, err := range s.Execute(t.Context(), kernel.Request{Code: "c"}) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := ev.(kernel.Rollback); ok {
			told = append(told, r)
		}
	}
	if len(told) != 1 || told[0].To.IsZero() || !told[0].To.Equal(s.Head().Saved) || told[0].Reason != "its sandbox was lost" {
		t.Errorf("told %+v", told)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := ran(t, store, "lab"); got != "a c" {
		t.Errorf("the session has %q", got)
	}
	if info, _ := store.Show(t.Context(), "lab"); info.Executions != 2 {
		t.Errorf("%d executions are counted, want 2", info.Executions)
	}
}

// TestTimeRunsOutBehindASave ends the time for a last save when the sandbox has ended, whose files are all that there is of it then.
func TestTimeRunsOutBehindASave(t *testing.T) {
	t.Parallel()
	store, m := ondisk.Store{Dir: t.TempDir()}, &machine{}
	s := open(t, store, "lab", m.options())
	execute(t, s, "a")
	ctx, cancel := context.WithCancel(t.Context())
	m.last.saved = cancel
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	if got := ran(t, store, "lab"); got != "a" {
		t.Errorf("the session has %q", got)
	}
}

func TestWhatACrashTakesCanBeHadBack(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "crash", "a")
	s := open(t, store, "lab", (&machine{}).options())
	execute(t, s, "crash", "b")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := s.Notices(); len(n) != 1 || !strings.Contains(n[0], "without the variables that were lost; `cove session undo lab` goes back to ") {
		t.Errorf("told %q", n)
	}
	if got := ran(t, store, "lab"); got != "b" {
		t.Errorf("the session has %q", got)
	}
	if _, err := store.Undo(t.Context(), "lab", "x"); err != nil {
		t.Fatal(err)
	}
	if got := ran(t, store, "lab"); got != "a" {
		t.Errorf("after undo the session has %q", got)
	}
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	s := open(t, store, "lab", (&machine{}).options())
	execute(t, s, "b")
	if err := s.Discard(t.Context()); err != nil {
		t.Error(err)
	}
	if got := ran(t, store, "lab"); got != "a" {
		t.Errorf("the session has %q", got)
	}
}

func TestALostSandboxOfAnUndoableSession(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	o := (&machine{}).options()
	o.Undoable = true
	s := open(t, store, "lab", o)
	execute(t, s, "a", "b", "die", "c")
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := ran(t, store, "lab"); got != "a b c" {
		t.Errorf("the session has %q, want what was kept before the execution that lost it, and what came after that", got)
	}
}

func TestAFailedSaveLeavesTheSessionAsItWas(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	s := open(t, store, "lab", (&machine{}).options())
	execute(t, s, "full")
	err := s.Close(t.Context())
	fails(t, err, "session_unsaved", "there is no room left on the disk")
	fails(t, err, "session_unsaved", "make room")
	fails(t, err, "session_unsaved", "the session is as it was at ")
	if again := s.Close(t.Context()); !errors.Is(again, err) {
		t.Errorf("the second Close says %v", again)
	}
	if got := ran(t, store, "lab"); got != "a" {
		t.Errorf("the session has %q", got)
	}
	o := (&machine{}).options()
	o.Undoable = true
	s = open(t, store, "lab", o)
	execute(t, s, "full", "b")
	if n := s.Notices(); len(n) != 1 || !strings.Contains(n[0], "cannot be undone") {
		t.Errorf("told %q", n)
	}
}

func TestAPauseThatFailsLosesNothing(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	m := &machine{}
	s := open(t, store, "lab", m.options())
	execute(t, s, "a", "full")
	for range 2 {
		if open, err := s.Pause(t.Context()); !open || problem.Of(err).Code != "disk_full" {
			t.Errorf("a pause on a full disk: %v, %v", open, err)
		}
	}
	execute(t, s, "b", "empty")
	if open, err := s.Pause(t.Context()); open || err != nil {
		t.Error(open, err)
	}
	if m.last.closes != 2 { // by the save that worked, and by Close
		t.Errorf("the session was closed %d times", m.last.closes)
	}
	if got := ran(t, store, "lab"); got != "a full b empty" {
		t.Errorf("the session has %q", got)
	}
	s = open(t, store, "lab", m.options())
	execute(t, s, "die")
	_, err := s.Pause(t.Context())
	fails(t, err, "session_lost", "the session is as it was at ")
}

func TestAPauseWhoseRecordCannotBeWritten(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	s := open(t, store, "lab", (&machine{}).options())
	execute(t, s, "a")
	record := filepath.Join(store.Dir, "lab", "session.json")
	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(record, 0o700); err != nil {
		t.Fatal(err)
	}
	// The sandbox ended when it was saved, so it must not be called open.
	if open, err := s.Pause(t.Context()); open || err == nil {
		t.Errorf("open %v, %v", open, err)
	}
}

func TestClosingWhileCodeRuns(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	for code, want := range map[string]string{"block": "a block", "stubborn": "a"} {
		started := make(chan string)
		s := open(t, store, "lab", (&machine{started: started}).options())
		soft, interrupt := context.WithCancel(t.Context())
		ended := make(chan kernel.Outcome, 1)
		go func() {
			var last kernel.Outcome
			for ev, err := range s.Execute(soft, kernel.Request{Code: code}) {
				if err != nil {
					t.Error(err)
				}
				if d, ok := ev.(kernel.Done); ok {
					last = d.Outcome
				}
			}
			ended <- last
		}()
		<-started
		interrupt()
		bound := t.Context()
		if code == "stubborn" {
			ctx, cancel := context.WithCancel(bound)
			cancel()
			bound = ctx
		}
		err := s.Close(bound)
		if code == "stubborn" {
			fails(t, err, "session_unsaved", "its code did not end in time; the session is as it was at ")
		} else if err != nil {
			t.Errorf("%s: %v", code, err)
		}
		<-ended
		if code == "block" {
			if got := ran(t, store, "lab"); got != want {
				t.Errorf("%s: the session has %q, want %q", code, got, want)
			}
			if err := store.Remove(t.Context(), "lab", "x"); err != nil {
				t.Fatal(err)
			}
			use(t, store, "lab", ondisk.Options{}, "a")
			continue
		}
		if got := ran(t, store, "lab"); got != want {
			t.Errorf("%s: the session has %q, want %q", code, got, want)
		}
	}
}

func headFolder(t *testing.T, store ondisk.Store, name string) string {
	t.Helper()
	info, err := store.Show(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(info.Path, "snapshots", info.Head.Snapshot)
}

func TestADamagedHeadIsSaidAndKept(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{Undoable: true}, "a", "b")
	head := headFolder(t, store, "lab")
	if err := os.WriteFile(filepath.Join(head, "image", "state"), []byte(`["a","B"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), "lab", (&machine{}).options())
	fails(t, err, "snapshot_damaged", "session lab cannot be restored: ")
	fails(t, err, "snapshot_damaged", "the checksum of image/state differs")
	fails(t, err, "snapshot_damaged", "`cove session undo lab` goes back to ")
	fails(t, err, "snapshot_damaged", "`cove session rm lab`")
	if info, err := store.Show(t.Context(), "lab"); err != nil || info.State != ondisk.Broken || !strings.Contains(info.Reason, "differs") {
		t.Errorf("it is said to be %s: %s, %v", info.State, info.Reason, err)
	}
	_, err = store.Fork(t.Context(), "lab", "lab2", "x", "")
	fails(t, err, "snapshot_damaged", "")
	if _, err := store.Undo(t.Context(), "lab", "x"); err != nil {
		t.Fatal(err)
	}
	if got := ran(t, store, "lab"); got != "a" {
		t.Errorf("after undo the session has %q", got)
	}
	if err := os.RemoveAll(headFolder(t, store, "lab")); err != nil {
		t.Fatal(err)
	}
	_, err = store.Open(t.Context(), "lab", (&machine{}).options())
	fails(t, err, "snapshot_missing", "goes back to the beginning")
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	try := func(name string, m *machine, change func(*ondisk.Options)) error {
		o := m.options()
		if change != nil {
			change(&o)
		}
		s, err := store.Open(t.Context(), name, o)
		if err == nil {
			t.Errorf("%s was opened", name)
			_ = s.Close(t.Context())
		}
		return err
	}
	fails(t, try("lab", &machine{engine: "later"}, nil), "snapshot_unfit", "the engine (it was fake , now it is fake later)")
	fails(t, try("lab", &machine{}, func(o *ondisk.Options) { o.Packages = "minimal" }), "session_packages", "was made with --packages standard")
	fails(t, try("lab", &machine{}, func(o *ondisk.Options) { o.Base.Engine = "local" }), "session_engine", "--engine gvisor")
	fails(t, try("lab", &machine{refuses: errors.New("no memory")}, nil), "internal", "cannot be restored: no memory")
	fails(t, try("none", &machine{}, func(o *ondisk.Options) { o.Existing = true }), "session_unknown", "cove session ls")
	fails(t, try("none", &machine{refuses: errors.New("no memory")}, nil), "internal", "no memory")
	if all, err := store.List(); err != nil || len(all) != 1 {
		t.Errorf("a session that never started is listed: %v, %v", all, err)
	}
	gone := (&machine{}).options()
	gone.Base.Packages = "gone"
	use(t, store, "old", gone, "a")
	fails(t, try("old", &machine{engine: "later"}, nil), "environment_missing", "gone-1 is not there any more")
	if got := ran(t, store, "lab"); got != "a" {
		t.Errorf("after all that the session has %q", got)
	}
}

func TestMemoryAndProcessorsMayChange(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	o := (&machine{}).options()
	o.Memory, o.CPUs = 4<<30, 0.5
	use(t, store, "lab", o, "b")
	if got := ran(t, store, "lab"); got != "a b" {
		t.Errorf("the session has %q", got)
	}
	if info, err := store.Show(t.Context(), "lab"); err != nil || info.Limits.Memory != 4<<30 || info.Limits.CPUs != 0.5 || info.Limits.Sandbox().Workspace != 4<<30 {
		t.Errorf("limits %+v, %v; they should stay until they are changed again", info.Limits, err)
	}
}

func TestFork(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	if _, err := store.Fork(t.Context(), "lab", "lab2", "x", ""); err != nil {
		t.Fatal(err)
	}
	_, err := store.Fork(t.Context(), "lab", "lab2", "x", "")
	fails(t, err, "session_exists", "cove session rm lab2")
	_, err = store.Fork(t.Context(), "none", "lab3", "x", "")
	fails(t, err, "session_unknown", "none")
	use(t, store, "lab", ondisk.Options{}, "b")
	m := &machine{}
	use(t, store, "lab2", m.options(), "c")
	use(t, store, "lab2", m.options(), "d")
	if want := fmt.Sprint([]bool{true, false}); fmt.Sprint(m.reseeds) != want {
		t.Errorf("the fork was reseeded %v, want %s", m.reseeds, want)
	}
	if a, b := ran(t, store, "lab"), ran(t, store, "lab2"); a != "a b" || b != "a c d" {
		t.Errorf("lab has %q, lab2 has %q", a, b)
	}
	one, _ := store.Show(t.Context(), "lab")
	two, _ := store.Show(t.Context(), "lab2")
	if one.ID == two.ID || one.ID == "" {
		t.Errorf("ids %s and %s", one.ID, two.ID)
	}
	if err := store.Remove(t.Context(), "lab", "x"); err != nil {
		t.Fatal(err)
	}
	if got := ran(t, store, "lab2"); got != "a c d" {
		t.Errorf("the fork went with its origin: %q", got)
	}
	open(t, store, "empty", (&machine{}).options()).Close(t.Context())
	if info, err := store.Fork(t.Context(), "empty", "empty2", "x", ""); err != nil || info.State != ondisk.New {
		t.Errorf("the fork of a new session is %s, %v", info.State, err)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	for _, name := range []string{"", "a/b", "../x", ".hidden", "Lab", "a b", "-x", strings.Repeat("a", 64), "läb", "a\n"} {
		_, err := store.Open(t.Context(), name, (&machine{}).options())
		fails(t, err, "session_name", "lower-case letters")
		fails(t, store.Remove(t.Context(), name, "x"), "session_name", "")
		_, err = store.Show(t.Context(), name)
		fails(t, err, "session_name", "")
	}
	for _, name := range []string{"a", "7", "sales-2025", "a.b_c", strings.Repeat("a", 63)} {
		use(t, store, name, ondisk.Options{})
	}
}

func TestBrokenSessionsAreListedAndRemovable(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	for name, text := range map[string]string{"torn": `{"vers`, "later": `{"version": 9}`, "climbs": `{"version": 1, "head": {"snapshot": "../../x"}}`} {
		use(t, store, name, ondisk.Options{}, "a")
		if err := os.WriteFile(filepath.Join(store.Dir, name, "session.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(store.Dir, "bare"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(store.Dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	use(t, store, "good", ondisk.Options{}, "a")
	if err := os.Mkdir(filepath.Join(store.Dir, "unread"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("session.json", filepath.Join(store.Dir, "unread", "session.json")); err != nil { // which no one can follow
		t.Fatal(err)
	}
	all, err := store.List()
	if err != nil || len(all) != 7 {
		t.Fatalf("%d are listed, %v", len(all), err)
	}
	for _, info := range all {
		if wantBroken := info.Name != "good"; (info.State == ondisk.Broken) != wantBroken || wantBroken && info.Reason == "" {
			t.Errorf("%s is %s (%s)", info.Name, info.State, info.Reason)
		}
		if info.Unread != (info.Name == "unread") {
			t.Errorf("%s could not be read for the moment: %v", info.Name, info.Unread)
		}
		_, err := store.Open(t.Context(), info.Name, (&machine{}).options())
		if info.Name == "good" {
			continue
		}
		fails(t, err, "session_broken", info.Name+" is broken")
		if err := store.Remove(t.Context(), info.Name, "x"); info.Name != "file" && err != nil {
			t.Errorf("rm %s: %v", info.Name, err)
		}
	}
	if all, _ = store.List(); len(all) != 2 {
		t.Errorf("%d are left, want the good one and the file", len(all))
	}
}

func TestAReadOnlyStoreIsSaid(t *testing.T) {
	t.Parallel()
	// A file where the folder should be refuses everyone, root too.
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "sessions"), "/proc/sessions"} {
		_, err := ondisk.Store{Dir: dir}.Open(t.Context(), "lab", (&machine{}).options())
		if err == nil || problem.Of(err).Kind != problem.Unavailable {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	past := time.Now().Add(-time.Hour)
	for _, name := range []string{".new-old", ".new-young", ".gone-x"} {
		dir := filepath.Join(store.Dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if name == ".new-old" {
			_ = os.Chtimes(dir, past, past)
		}
	}
	use(t, store, "lab", ondisk.Options{}, "a")
	for _, name := range []string{"snp_orphan", ".tmp-young"} {
		if err := os.Mkdir(filepath.Join(store.Dir, "lab", "snapshots", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got := ran(t, store, "lab"); got != "a" {
		t.Errorf("the session has %q", got)
	}
	if left, err := os.ReadDir(filepath.Join(store.Dir, "lab", "snapshots")); err != nil || len(left) != 1 {
		t.Errorf("snapshots that nothing leads to were kept: %v, %v", left, err)
	}
	if left, _ := filepath.Glob(filepath.Join(store.Dir, ".*")); len(left) != 1 || filepath.Base(left[0]) != ".new-young" {
		t.Errorf("left: %q, want the one that may still be in the making", left)
	}
}

func TestAThousandSessions(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "s0", ondisk.Options{}, "a")
	text, err := os.ReadFile(filepath.Join(store.Dir, "s0", "session.json"))
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 1000; n++ {
		dir := filepath.Join(store.Dir, fmt.Sprintf("s%d", n))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "session.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	use(t, store, "newest", ondisk.Options{}, "a")
	all, err := store.List()
	if err != nil || len(all) != 1001 || all[0].Name != "newest" || all[7].Name == all[8].Name {
		t.Errorf("%d sessions, the first %s, %v", len(all), all[0].Name, err)
	}
}
