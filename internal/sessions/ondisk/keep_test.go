package ondisk_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/sessions/ondisk"
)

func show(t *testing.T, store ondisk.Store) ondisk.Info {
	t.Helper()
	info, err := store.Show(t.Context(), "lab")
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// until waits for what another goroutine does at a time of its own.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 2000 {
		if holds() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("it never came to be that %s", what)
}

func TestCommandsFindTheSessionInMemory(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	saved := show(t, store).Head
	k := bring(t, store, 0, time.Hour)
	if before, _ := use(t, store, "lab", ondisk.Options{}, "b"); strings.Join(before, " ") != "a" {
		t.Errorf("the first command finds %q", before)
	}
	if before, notices := use(t, store, "lab", ondisk.Options{}, "c"); strings.Join(before, " ") != "a b" || len(notices) > 0 {
		t.Errorf("the second command finds %q and is told %q", before, notices)
	}
	info := show(t, store)
	if info.State != ondisk.Running || info.Running != nil || info.Memory == nil || !info.Memory.Unsaved || info.Executions != 3 || !cmp.Equal(info.Head, saved) {
		t.Errorf("it is said to be %+v", info)
	}
	if err := store.Keep(t.Context(), "lab", ondisk.KeepOptions{Options: (&machine{}).options()}); problem.Of(err) == nil || problem.Of(err).Code != "session_in_memory" {
		t.Errorf("a second keeper: %v", err)
	}
	if _, fresh, err := store.Resume(t.Context(), "lab", func(context.Context) error { return errors.New("launched") }); fresh || err != nil {
		t.Errorf("resumed again: %v, %v", fresh, err)
	}
	paused, was, err := store.Pause(t.Context(), "lab", "x")
	if err != nil || !was || paused.State != ondisk.Paused || paused.Executions != 3 || paused.Memory != nil {
		t.Errorf("after pause it is %+v, %v, %v", paused, was, err)
	}
	k.wait(t)
	if got := ran(t, store, "lab"); got != "a b c" {
		t.Errorf("the session has %q", got)
	}
	if _, was, err := store.Pause(t.Context(), "lab", "x"); was || err != nil {
		t.Errorf("pausing a paused session: %v, %v", was, err)
	}
	if left, _ := filepath.Glob(filepath.Join(store.Dir, "lab", "*.sock")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestAKeeperSavesWhenItEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(k *keeping){"idle": func(*keeping) {}, "signal": func(k *keeping) { k.end() }} {
		store := ondisk.Store{Dir: t.TempDir()}
		use(t, store, "lab", ondisk.Options{}, "a")
		idle := time.Hour
		if name == "idle" {
			idle = 200 * time.Millisecond
		}
		k := bring(t, store, idle, time.Hour)
		s := open(t, store, "lab", (&machine{}).options())
		execute(t, s, "b")
		end(k)
		_, err := store.Open(t.Context(), "lab", (&machine{}).options())
		fails(t, err, "session_in_use", "(cove run)")
		execute(t, s, "c")
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		k.wait(t)
		if info := show(t, store); info.State != ondisk.Paused || info.Memory != nil {
			t.Errorf("%s: it is said to be %+v", name, info)
		}
		if got := ran(t, store, "lab"); got != "a b c" {
			t.Errorf("%s: the session has %q", name, got)
		}
	}
}

func TestAKeeperSavesInTheBackground(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	bring(t, store, 0, 50*time.Millisecond)
	use(t, store, "lab", ondisk.Options{}, "b")
	until(t, "the session is saved", func() bool {
		info := show(t, store)
		return info.Memory != nil && !info.Memory.Unsaved && info.Head.Executions == 2
	})
	for range 20 {
		use(t, store, "lab", ondisk.Options{}, "c") // never refused because of a save
	}
	if got := show(t, store).Executions; got != 22 {
		t.Errorf("%d executions are counted", got)
	}
}

func TestAKilledKeeper(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	p, said := spawn(t, store, "lab", "--keep")
	if said != "ready" {
		t.Fatal(said)
	}
	p.kill()
	if info := show(t, store); info.State != ondisk.Paused {
		t.Errorf("nothing is lost, but it is said to be %s (%s)", info.State, info.Reason)
	}
	if _, notices := use(t, store, "lab", ondisk.Options{}); len(notices) != 1 || !strings.HasSuffix(notices[0], "its process ended; nothing is lost") {
		t.Errorf("told %q", notices)
	}
	p, _ = spawn(t, store, "lab", "--keep")
	use(t, store, "lab", ondisk.Options{}, "b")
	use(t, store, "lab", ondisk.Options{}, "c")
	p.kill()
	if info := show(t, store); info.State != ondisk.Lost || !strings.Contains(info.Reason, "(2 executions are lost)") {
		t.Errorf("it is said to be %s (%s)", info.State, info.Reason)
	}
	before, notices := use(t, store, "lab", ondisk.Options{})
	if strings.Join(before, " ") != "a" || len(notices) != 1 || !strings.HasPrefix(notices[0], "session lab was in memory and its process ended before it was saved; the session is as it was at ") {
		t.Errorf("found %q, told %q", before, notices)
	}
	if info := show(t, store); info.State != ondisk.Paused || info.Executions != 1 || info.Memory != nil {
		t.Errorf("it is said to be %+v", info)
	}
}

func TestAKeeperThatIsKilledWhileItIsUsed(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	p, _ := spawn(t, store, "lab", "--keep")
	s := open(t, store, "lab", (&machine{}).options())
	execute(t, s, "b")
	p.kill()
	execute(t, s, "c")
	fails(t, s.Close(t.Context()), "session_lost", "its sandbox was lost; the session is as it was at ")
	if info := show(t, store); info.State != ondisk.Paused || info.Executions != 1 || info.Memory != nil {
		t.Errorf("it is said to be %+v", info)
	}
	if got := ran(t, store, "lab"); got != "a" {
		t.Errorf("the session has %q", got)
	}
}

func TestACommandThatIsKilledWhileItUsesMemory(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	k := bring(t, store, 0, time.Hour)
	p, said := spawn(t, store, "lab", "b")
	if said != "ready" {
		t.Fatal(said)
	}
	p.kill()
	if info := show(t, store); info.State != ondisk.Running {
		t.Errorf("it is said to be %s", info.State)
	}
	if _, err := store.Fork(t.Context(), "lab", "lab2", "x", ""); err != nil {
		t.Error(err)
	}
	if got := ran(t, store, "lab2"); got != "a b" {
		t.Errorf("the fork has %q", got)
	}
	before, notices := use(t, store, "lab", ondisk.Options{})
	if strings.Join(before, " ") != "a b" || len(notices) != 1 || !strings.Contains(notices[0], "ended while it used session lab: what it was running is interrupted") {
		t.Errorf("found %q, told %q", before, notices)
	}
	p, _ = spawn(t, store, "lab", "c")
	p.kill()
	k.end()
	k.wait(t)
	if info := show(t, store); info.State != ondisk.Paused || info.Notice == nil || !strings.Contains(info.Notice.Text, "ended while it used session lab") {
		t.Errorf("it is said to be %s (%s, %v)", info.State, info.Reason, info.Notice)
	}
	if got := ran(t, store, "lab"); got != "a b c" {
		t.Errorf("the session has %q", got)
	}
}

func TestASandboxThatIsLostInMemory(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	k := bring(t, store, 0, time.Hour)
	use(t, store, "lab", ondisk.Options{}, "b")
	s := open(t, store, "lab", (&machine{}).options())
	execute(t, s, "die")
	fails(t, s.Close(t.Context()), "session_lost", "its sandbox was lost")
	k.wait(t)
	if got := ran(t, store, "lab"); got != "a" {
		t.Errorf("the session has %q", got)
	}
}

func TestMemoryOnAFullDisk(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	k := bring(t, store, 0, time.Hour)
	use(t, store, "lab", ondisk.Options{}, "full")
	_, _, err := store.Pause(t.Context(), "lab", "x")
	fails(t, err, "disk_full", "")
	_, err = store.Fork(t.Context(), "lab", "lab2", "x", "")
	fails(t, err, "disk_full", "")
	if info := show(t, store); info.State != ondisk.Running || info.Notice == nil || !strings.Contains(info.Notice.Text, "could not be saved") {
		t.Errorf("it is said to be %+v", info)
	}
	if before, _ := use(t, store, "lab", ondisk.Options{}, "b"); strings.Join(before, " ") != "a full" {
		t.Errorf("after a failed save the session has %q", before)
	}
	k.end()
	k.wait(t)
	if info := show(t, store); info.State != ondisk.Lost || !strings.Contains(info.Reason, "was told to end and could not save the session") {
		t.Errorf("it is said to be %s (%s)", info.State, info.Reason)
	}
	if got := ran(t, store, "lab"); got != "a" {
		t.Errorf("the session has %q", got)
	}
}

func TestUndoInMemory(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	undoable := ondisk.Options{Undoable: true}
	use(t, store, "lab", ondisk.Options{}, "a")
	k := bring(t, store, 0, 50*time.Millisecond)
	use(t, store, "lab", undoable, "b", "c")
	use(t, store, "lab", undoable, "d")
	until(t, "the session is saved", func() bool { return !show(t, store).Memory.Unsaved })
	use(t, store, "lab", undoable, "e")
	for _, want := range []string{"a b c d", "a b c", "a b", "a", ""} {
		_, err := store.Undo(t.Context(), "lab", "x")
		if want == "" {
			fails(t, err, "nothing_to_undo", "--undoable")
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := ran(t, store, "lab"); got != want {
			t.Errorf("the session has %q, want %q", got, want)
		}
	}
	k.wait(t)
	bring(t, store, 0, time.Hour)
	use(t, store, "lab", ondisk.Options{}, "f")
	_, err := store.Undo(t.Context(), "lab", "x")
	fails(t, err, "nothing_to_undo", "it was last saved at ")
	if got := ran(t, store, "lab"); got != "a f" {
		t.Errorf("after a refused undo the session has %q", got)
	}
}

func TestForkAndRemoveInMemory(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	k := bring(t, store, 0, time.Hour)
	use(t, store, "lab", ondisk.Options{}, "b")
	if _, err := store.Fork(t.Context(), "lab", "lab2", "x", ""); err != nil {
		t.Fatal(err)
	}
	use(t, store, "lab", ondisk.Options{}, "c")
	if got := ran(t, store, "lab2"); got != "a b" {
		t.Errorf("the fork has %q", got)
	}
	if got := ran(t, store, "lab"); got != "a b c" {
		t.Errorf("the origin has %q", got)
	}
	if err := store.Remove(t.Context(), "lab", "x"); err != nil {
		t.Fatal(err)
	}
	k.wait(t)
	if got, err := os.ReadDir(store.Dir); err != nil || len(got) != 1 {
		t.Errorf("left: %v, %v", got, err)
	}
}

func TestOtherLimitsInMemory(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	k := bring(t, store, 0, time.Hour)
	use(t, store, "lab", ondisk.Options{}, "b")
	m := &machine{}
	o := m.options()
	o.Memory = 1 << 30
	s := open(t, store, "lab", o)
	k.wait(t)
	if n := s.Notices(); strings.Join(m.last.ran, " ") != "a b" || len(n) != 1 || !strings.Contains(n[0], "was paused to change its limits") {
		t.Errorf("found %q, told %q", m.last.ran, n)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMemoryOfAnotherVersion(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	k := bring(t, store, 0, time.Hour)
	use(t, store, "lab", ondisk.Options{}, "b")
	_, err := store.Open(t.Context(), "lab", (&machine{engine: "later"}).options())
	fails(t, err, "keeper_version", "`cove session pause lab`, which saves the session for that version")
	if _, was, err := store.Pause(t.Context(), "lab", "x"); !was || err != nil {
		t.Errorf("pause: %v, %v", was, err)
	}
	k.wait(t)
	if got := ran(t, store, "lab"); got != "a b" {
		t.Errorf("the session has %q", got)
	}
}

func TestAFailureToJoinHarmsNothing(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	bring(t, store, 0, time.Hour)
	use(t, store, "lab", ondisk.Options{}, "b")
	if _, err := store.Open(t.Context(), "lab", (&machine{refuses: errors.New("no memory")}).options()); err == nil {
		t.Error("it was joined")
	}
	s := open(t, store, "lab", (&machine{}).options())
	if err := s.Discard(t.Context()); err != nil {
		t.Error(err)
	}
	if info := show(t, store); !info.Memory.Unsaved {
		t.Error("what was not saved before is forgotten")
	}
	if got := ran(t, store, "lab"); got != "a b" {
		t.Errorf("the session has %q", got)
	}
}

func TestAFolderThatIsRemovedUnderAKeeper(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	k := bring(t, store, 0, 50*time.Millisecond)
	if err := os.RemoveAll(filepath.Join(store.Dir, "lab")); err != nil {
		t.Fatal(err)
	}
	k.end()
	k.wait(t)
}

// TestManyAtOnceInMemory has many use, pause, resume and save one session at once: no execution may be lost or counted twice.
func TestManyAtOnceInMemory(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{})
	var users, keepers sync.WaitGroup
	var mu sync.Mutex
	want := 0
	ctx, stop := context.WithCancel(t.Context())
	for range 2 {
		keepers.Go(func() {
			for ctx.Err() == nil {
				err := store.Keep(ctx, "lab", ondisk.KeepOptions{Options: (&machine{}).options(), Idle: 40 * time.Millisecond, SaveAfter: time.Millisecond, Ready: func([]string) {}})
				if err != nil && ctx.Err() == nil && !slices.Contains([]string{"session_in_memory", "session_in_use"}, problem.Of(err).Code) {
					t.Errorf("keep: %v", err)
				}
			}
		})
	}
	for range 4 {
		users.Go(func() {
			for range 50 {
				s, err := store.Open(t.Context(), "lab", (&machine{}).options())
				if err != nil {
					fails(t, err, "session_in_use", "")
					continue
				}
				for _, err := range s.Execute(t.Context(), kernel.Request{Code: "x"}) {
					if err != nil {
						t.Error(err)
					}
				}
				if n := s.Notices(); len(n) > 0 {
					t.Errorf("told %q", n)
				}
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				want++
				mu.Unlock()
			}
		})
	}
	users.Wait()
	stop()
	keepers.Wait()
	if got := strings.Count(ran(t, store, "lab"), "x"); got != want || want == 0 {
		t.Errorf("%d executions are in the session, %d were made", got, want)
	}
}
