package ondisk_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"cove/internal/sessions/ondisk"
	"cove/internal/testkit/testneeds"
)

func TestStateOutlivesTheCommand(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: filepath.Join(t.TempDir(), "sessions")}
	use(t, store, "lab", ondisk.Options{}, "x = 1")
	use(t, store, "lab", ondisk.Options{}, "x += 1", "x += 2")
	if got := ran(t, store, "lab"); got != "x = 1 x += 1 x += 2" {
		t.Errorf("the third command finds %q", got)
	}
	info, err := store.Show(t.Context(), "lab")
	if err != nil {
		t.Fatal(err)
	}
	if info.State != ondisk.Paused || info.Executions != 3 || info.Python != "3.11.7" || info.Environment != "standard-1" || info.Limits.Memory != 2<<30 || info.Disk == 0 {
		t.Errorf("it is said to be %+v", info)
	}
	snapshots, err := os.ReadDir(filepath.Join(store.Dir, "lab", "snapshots"))
	if err != nil || len(snapshots) != 1 {
		t.Errorf("%d snapshots are kept, %v; want the head alone", len(snapshots), err)
	}
	if ran(t, store, "other") != "" {
		t.Error("another session sees the first one's state")
	}
}

func TestOnlyWhatChangedIsSaved(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	m := &machine{}
	s := open(t, store, "lab", m.options())
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, err := store.Show(t.Context(), "lab"); err != nil || info.State != ondisk.New {
		t.Errorf("a session in which nothing ran is %s, %v", info.State, err)
	}
	s = open(t, store, "lab", m.options())
	if err := s.PutFile(t.Context(), "a.csv", "/dev/null"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, _ := store.Show(t.Context(), "lab")
	if got := ran(t, store, "lab"); got != "put a.csv" {
		t.Errorf("the file that was put in is not there: %q", got)
	}
	if second, _ := store.Show(t.Context(), "lab"); second.Head.Snapshot != first.Head.Snapshot || second.State != ondisk.Paused {
		t.Error("a command that did nothing made a snapshot")
	}
	if want := fmt.Sprint([]bool{true, true}); fmt.Sprint(m.reseeds) != want {
		t.Errorf("new sessions were reseeded: %v, want %s", m.reseeds, want)
	}
}

func TestTwoProcessesNeverOwnOneSession(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	p, said := spawn(t, store, "lab", "x = 1")
	if said != "ready" {
		t.Fatal(said)
	}
	_, err := store.Open(t.Context(), "lab", (&machine{}).options())
	fails(t, err, "session_in_use", fmt.Sprintf("session lab is in use by process %d (cove run) since ", p.cmd.Process.Pid))
	for what, try := range map[string]func() error{
		"pause": func() error { _, _, err := store.Pause(t.Context(), "lab", "x"); return err },
		"undo":  func() error { _, err := store.Undo(t.Context(), "lab", "x"); return err },
		"fork":  func() error { _, err := store.Fork(t.Context(), "lab", "lab2", "x", ""); return err },
		"rm":    func() error { return store.Remove(t.Context(), "lab", "x") },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), "in use by process") {
			t.Errorf("%s of a session in use: %v", what, err)
		}
	}
	if info, err := store.Show(t.Context(), "lab"); err != nil || info.State != ondisk.Running || info.Running.PID != p.cmd.Process.Pid {
		t.Errorf("it is said to be %s, %v", info.State, err)
	}
	p.finish(t)
	if got := ran(t, store, "lab"); got != "x = 1" {
		t.Errorf("what the other saved is %q", got)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	var all sync.WaitGroup
	var mu sync.Mutex
	want := 0
	for range 8 {
		all.Go(func() {
			for range 25 {
				s, err := store.Open(t.Context(), "lab", (&machine{}).options())
				if err != nil {
					fails(t, err, "session_in_use", "")
					continue
				}
				execute(t, s, "x")
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				want++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if got := strings.Count(ran(t, store, "lab"), "x"); got != want || want == 0 {
		t.Errorf("%d executions are in the session, %d were saved", got, want)
	}
}

// contend has users open the session lab at once, each so many times, and returns how often one of them had it; never two.
func contend(t *testing.T, store ondisk.Store, users, times int) int32 {
	t.Helper()
	var owners, opened atomic.Int32
	var all sync.WaitGroup
	for range users {
		all.Go(func() {
			for range times {
				s, err := store.Open(t.Context(), "lab", (&machine{}).options())
				if err != nil {
					continue
				}
				opened.Add(1)
				if owners.Add(1) > 1 {
					t.Error("two own the session at once")
				}
				runtime.Gosched()
				owners.Add(-1)
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	return opened.Load()
}

func TestRemovingAndMakingAtOnce(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	var remover sync.WaitGroup
	over := make(chan struct{})
	remover.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				_ = store.Remove(t.Context(), "lab", "rm") // as often as not it is in use
			}
		}
	})
	opened := contend(t, store, 4, 150)
	close(over)
	remover.Wait()
	if opened == 0 {
		t.Error("nobody ever had the session")
	}
	if left, _ := filepath.Glob(filepath.Join(store.Dir, ".*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestAFolderThatIsReplacedMeanwhile puts another folder in the session's place again and again, as removing and making it anew
// does: holding the lease, but as fast as can be.
func TestAFolderThatIsReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/dev/shm", "named-test-") // memory: what counts here is the number of attempts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	store := ondisk.Store{Dir: dir}
	use(t, store, "lab", ondisk.Options{})
	use(t, store, "spare", ondisk.Options{})
	leases := [2]*os.File{}
	for n, name := range []string{"lab", "spare"} {
		if leases[n], err = os.OpenFile(filepath.Join(dir, name, "lease"), os.O_RDWR, 0); err != nil {
			t.Fatal(err)
		}
		defer leases[n].Close()
	}
	lock := func(f *os.File, how int16) bool {
		return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: how}) == nil
	}
	var swapper sync.WaitGroup
	var swapped atomic.Int32
	over := make(chan struct{})
	swapper.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			if lock(leases[0], unix.F_WRLCK) && lock(leases[1], unix.F_WRLCK) {
				swapped.Add(1)
				if err := unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "lab"), unix.AT_FDCWD, filepath.Join(dir, "spare"), unix.RENAME_EXCHANGE); err != nil {
					t.Error(err)
				}
			}
			lock(leases[0], unix.F_UNLCK)
			lock(leases[1], unix.F_UNLCK)
		}
	})
	times := 500
	if !testneeds.MoreThanQuick() {
		times = 100
	}
	opened := contend(t, store, 8, times)
	close(over)
	swapper.Wait()
	if opened == 0 || swapped.Load() == 0 {
		t.Errorf("%d openings, %d replacements", opened, swapped.Load())
	}
	t.Logf("%d openings, %d replacements", opened, swapped.Load())
}

func TestKilledOwners(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	p, said := spawn(t, store, "lab", "x = 1")
	if said != "ready" {
		t.Fatal(said)
	}
	p.kill()
	if info, err := store.Show(t.Context(), "lab"); err != nil || info.State != ondisk.Lost || !strings.Contains(info.Reason, "starts anew") {
		t.Errorf("it is said to be %s (%s), %v", info.State, info.Reason, err)
	}
	before, notices := use(t, store, "lab", ondisk.Options{}, "y = 1")
	want := fmt.Sprintf("the last command (process %d, ", p.cmd.Process.Pid)
	if len(before) > 0 || len(notices) != 1 || !strings.HasPrefix(notices[0], want) || !strings.HasSuffix(notices[0], "the session was lost before it was first saved, it starts anew") {
		t.Errorf("found %q, told %q", before, notices)
	}

	p, _ = spawn(t, store, "lab", "y = 2")
	p.kill()
	if _, err := store.Open(t.Context(), "lab", (&machine{refuses: errors.New("no memory")}).options()); err == nil {
		t.Error("the session started on a machine that refuses")
	}
	before, notices = use(t, store, "lab", ondisk.Options{}, "y = 3")
	if strings.Join(before, " ") != "y = 1" || len(notices) != 1 || !strings.Contains(notices[0], "the session is as it was at ") {
		t.Errorf("found %q, told %q", before, notices)
	}
	if got, notices := use(t, store, "lab", ondisk.Options{}); strings.Join(got, " ") != "y = 1 y = 3" || len(notices) > 0 {
		t.Errorf("found %q, told %q", got, notices)
	}
}

func TestUndo(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	undoable := ondisk.Options{Undoable: true}
	use(t, store, "lab", undoable, "a", "b")
	use(t, store, "lab", undoable, "c")
	for _, want := range []string{"a b c", "a b", "a", ""} {
		if got := ran(t, store, "lab"); got != want {
			t.Errorf("the session has %q, want %q", got, want)
		}
		_, err := store.Undo(t.Context(), "lab", "x")
		if want == "" {
			fails(t, err, "nothing_to_undo", "--undoable")
		} else if err != nil {
			t.Fatal(err)
		}
	}
	use(t, store, "lab", undoable, "a", "b", "c", "d", "e")
	info, err := store.Show(t.Context(), "lab")
	if err != nil || len(info.Undo) != 3 || info.Undo[0].Executions != 2 || info.Executions != 5 {
		t.Errorf("undo holds %v after %d executions, %v; want the newest 3 of 5", info.Undo, info.Executions, err)
	}
	snapshots, _ := os.ReadDir(filepath.Join(store.Dir, "lab", "snapshots"))
	if len(snapshots) != 4 {
		t.Errorf("%d snapshots are on the disk, want 4", len(snapshots))
	}
}

func TestUndoableSurvivesAKill(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	p, _ := spawn(t, store, "lab", "--undoable", "a", "b", "c")
	p.kill()
	if got := ran(t, store, "lab"); got != "a b" {
		t.Errorf("after a kill the session has %q", got)
	}
}
