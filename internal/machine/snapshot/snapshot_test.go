package snapshot_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/snapshot"
)

// TestMain plays a process that is killed in the midst of a save when a test asks for it.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SNAPSHOT_TEST_HANG"); dir != "" {
		_, err := snapshot.Create(context.Background(), dir, snapshot.Manifest{}, func(context.Context, string) (sandbox.Checkpoint, error) {
			fmt.Println("saving")
			time.Sleep(time.Hour) // it is killed before
			return sandbox.Checkpoint{}, nil
		})
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func key() snapshot.Key {
	return snapshot.Key{Engine: "gvisor 1 cpu-a", Environment: "standard-1", Guest: "guest-1", Limits: snapshot.LimitsOf(sandbox.Limits{})}
}

func save(files map[string]string) func(context.Context, string) (sandbox.Checkpoint, error) {
	return saving(func(_ context.Context, image string) error {
		for name, text := range files {
			path := filepath.Join(image, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				return err
			}
		}
		return nil
	})
}

// saving is an engine that writes files.
func saving(write func(ctx context.Context, folder string) error) func(context.Context, string) (sandbox.Checkpoint, error) {
	return func(ctx context.Context, folder string) (sandbox.Checkpoint, error) {
		return sandbox.CheckpointIn(folder), write(ctx, folder)
	}
}

// imageOf is the folder of a snapshot's checkpoint.
func imageOf(s *snapshot.Snapshot) string {
	folder, _ := s.Checkpoint().HostFolder()
	return folder
}

func engineFiles() map[string]string {
	return map[string]string{"checkpoint.img": "state of the kernel", "pages.img": strings.Repeat("memory ", 1000), "sub/more": "x"}
}

func create(t *testing.T, dir string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Create(t.Context(), dir, snapshot.Manifest{ID: "snp_1", Created: time.Now().UTC(), Key: key()}, save(engineFiles()))
	if err != nil {
		t.Fatal(err)
	}
	tick(t)
	return s
}

// tick waits for the next tick of the file system's clock: a file that changes within the one in which it was made looks as if it had not.
func tick(t *testing.T) {
	t.Helper()
	touched := func() time.Time {
		name := filepath.Join(t.TempDir(), "clock")
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	began := touched()
	for touched().Equal(began) {
		time.Sleep(time.Millisecond)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

func TestWhatIsSavedIsFoundAgain(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "made", "when needed")
	dir := filepath.Join(parent, "one")
	made := create(t, dir)
	found, err := snapshot.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(made.Manifest, found.Manifest); diff != "" {
		t.Error(diff)
	}
	if len(found.Manifest.Files) != 3 || found.Size() != 19+7000+1 {
		t.Errorf("%d files, %d bytes", len(found.Manifest.Files), found.Size())
	}
	for name, want := range engineFiles() {
		if got, err := os.ReadFile(filepath.Join(imageOf(found), name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got := names(t, parent); !cmp.Equal(got, []string{"one"}) {
		t.Errorf("beside it there is %q", got)
	}
	if _, err := snapshot.Create(t.Context(), dir, snapshot.Manifest{}, save(engineFiles())); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second one in the same folder: %v", err)
	}
	if _, err := snapshot.Open(t.Context(), dir); err != nil {
		t.Errorf("the first is gone: %v", err)
	}
}

// openUnread opens until nothing had to be read: files that changed a moment ago are read once more.
func openUnread(t *testing.T, dir string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		s, err := snapshot.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if s.Read == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("every opening reads the files again")
		}
	}
}

func TestUnchangedFilesAreNotReadAgain(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "one")
	create(t, dir)
	openUnread(t, dir)
	path := filepath.Join(dir, "image", "pages.img")
	now := time.Now()
	if err := os.Chtimes(path, now, now); err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Open(t.Context(), dir)
	if err != nil || s.Read != 7000 {
		t.Errorf("of a file that looks changed %d bytes were read, %v; want 7000", s.Read, err)
	}
	openUnread(t, dir)
	verified := filepath.Join(dir, "verified.json")
	text, err := os.ReadFile(verified)
	if err != nil {
		t.Fatal(err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	earlier := strings.Replace(string(text), strings.TrimSpace(string(boot)), "another boot", 1)
	if err := os.WriteFile(verified, []byte(earlier), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := snapshot.Open(t.Context(), dir); err != nil || s.Read != s.Size() {
		t.Errorf("after a reboot %d of %d bytes were read, %v", s.Read, s.Size(), err)
	}
}

func TestDamageIsNamed(t *testing.T) {
	t.Parallel()
	write := func(name, text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	for name, test := range map[string]struct {
		harm func(dir string) error
		code string
		says string
	}{
		"nothing there":   {os.RemoveAll, "snapshot_missing", "there is no snapshot"},
		"no manifest":     {func(dir string) error { return os.Remove(filepath.Join(dir, "manifest.json")) }, "snapshot_damaged", "manifest.json is missing"},
		"torn manifest":   {write("manifest.json", `{"version": 1, "fi`), "snapshot_damaged", "manifest.json is not whole"},
		"empty manifest":  {write("manifest.json", `{"version": 1}`), "snapshot_damaged", "names no files"},
		"manifest climbs": {write("manifest.json", `{"version":1,"files":[{"name":"../../x"}]}`), "snapshot_damaged", "outside"},
		"another format":  {write("manifest.json", `{"version": 7}`), "snapshot_foreign", "format 7"},
		"file missing":    {func(dir string) error { return os.Remove(filepath.Join(dir, "image/pages.img")) }, "snapshot_damaged", "image/pages.img is missing"},
		"file torn":       {func(dir string) error { return os.Truncate(filepath.Join(dir, "image/pages.img"), 6999) }, "snapshot_damaged", "image/pages.img has 6999 bytes instead of 7000"},
		"file empty":      {func(dir string) error { return os.Truncate(filepath.Join(dir, "image/sub/more"), 0) }, "snapshot_damaged", "image/sub/more has 0 bytes instead of 1"},
		"one bit":         {write("image/sub/more", "y"), "snapshot_damaged", "the checksum of image/sub/more differs"},
		"a folder instead": {func(dir string) error {
			p := filepath.Join(dir, "image/sub/more")
			_ = os.Remove(p)
			return os.Mkdir(p, 0o700)
		}, "snapshot_damaged", "not an ordinary file"},
		"garbage in record": {write("verified.json", "?"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "one")
			create(t, dir)
			if err := test.harm(dir); err != nil {
				t.Fatal(err)
			}
			_, err := snapshot.Open(t.Context(), dir)
			if test.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || problem.Of(err).Code != test.code || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want code %s and %q", err, test.code, test.says)
			}
		})
	}
}

func TestWhatDiffersIsNamed(t *testing.T) {
	t.Parallel()
	s := create(t, filepath.Join(t.TempDir(), "one"))
	if err := s.Fits(key()); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*snapshot.Key){
		"the engine (it was gvisor 1 cpu-a, now it is gvisor 2 cpu-a)":     func(k *snapshot.Key) { k.Engine = "gvisor 2 cpu-a" },
		"the Python environment (it was standard-1, now it is standard-2)": func(k *snapshot.Key) { k.Environment = "standard-2" },
		"the program inside the sandbox":                                   func(k *snapshot.Key) { k.Guest = "" },
		"Processes:7":                                                      func(k *snapshot.Key) { k.Limits.Processes = 7 },
	} {
		other := key()
		change(&other)
		if err := s.Fits(other); err == nil || problem.Of(err).Code != "snapshot_unfit" || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if a, b := snapshot.LimitsOf(sandbox.Limits{Memory: 1 << 30, CPUs: 1}), snapshot.LimitsOf(sandbox.Limits{Memory: 2 << 30}); a != b {
		t.Error("memory and processors count, though they can change")
	}
}

func TestFailuresLeaveNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	for name, test := range map[string]struct {
		ctx  context.Context
		save func(context.Context, string) error
		code string
	}{
		"engine fails": {ctx, func(ctx context.Context, dir string) error {
			_, _ = save(engineFiles())(ctx, dir)
			return errors.New("sentry died")
		}, "internal"},
		"disk full":         {ctx, func(context.Context, string) error { return &os.PathError{Op: "write", Path: "p", Err: unix.ENOSPC} }, "disk_full"},
		"disk full as text": {ctx, func(context.Context, string) error { return errors.New("sentry: write: no space left on device") }, "disk_full"},
		"no files":          {ctx, func(context.Context, string) error { return nil }, "internal"},
		"not a file":        {ctx, func(_ context.Context, dir string) error { return unix.Mkfifo(filepath.Join(dir, "f"), 0o600) }, "internal"},
		"given up": {ctx, func(ctx context.Context, dir string) error {
			cancel()
			_, err := save(engineFiles())(ctx, dir)
			return err
		}, "internal"},
	} {
		parent := t.TempDir()
		if name != "given up" {
			test.ctx = t.Context()
		}
		_, err := snapshot.Create(test.ctx, filepath.Join(parent, "one"), snapshot.Manifest{}, saving(test.save))
		if err == nil || problem.Of(err).Code != test.code {
			t.Errorf("%s: %v, want code %s", name, err, test.code)
		}
		if test.code == "disk_full" && strings.Contains(problem.Of(err).Error(), "write") {
			t.Errorf("%s: what the engine says is told to the user: %v", name, problem.Of(err))
		}
		if left := names(t, parent); len(left) > 0 {
			t.Errorf("%s left %q", name, left)
		}
	}
}

func TestClonesShareTheirFiles(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	s := create(t, filepath.Join(top, "a", "one"))
	openUnread(t, s.Dir)
	other, err := os.MkdirTemp("/dev/shm", "snapshot-test-") // another file system, where there is no linking
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	for _, dir := range []string{filepath.Join(top, "b", "two"), filepath.Join(other, "three")} {
		if _, err := s.Clone(t.Context(), dir, "snp_2"); err != nil {
			t.Fatal(err)
		}
	}
	near, err := snapshot.Open(t.Context(), filepath.Join(top, "b", "two"))
	if err != nil {
		t.Fatal(err)
	}
	if near.Manifest.ID != "snp_2" || near.Read != 0 {
		t.Errorf("the clone is called %s and %d bytes of it had to be read", near.Manifest.ID, near.Read)
	}
	if again, err := snapshot.Open(t.Context(), s.Dir); err != nil || again.Read != 0 {
		t.Errorf("after cloning, %d bytes of the original had to be read, %v", again.Read, err)
	}
	a, _ := os.Stat(filepath.Join(imageOf(s), "pages.img"))
	b, _ := os.Stat(filepath.Join(imageOf(near), "pages.img"))
	if !os.SameFile(a, b) {
		t.Error("the clone has a copy")
	}
	if err := snapshot.Remove(s.Dir); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{near.Dir, filepath.Join(other, "three")} {
		if _, err := snapshot.Open(t.Context(), dir); err != nil {
			t.Errorf("a clone went with its original: %v", err)
		}
	}
	if _, err := s.Clone(t.Context(), filepath.Join(top, "c"), "snp_3"); err == nil {
		t.Error("a snapshot that is gone was cloned")
	}
}

func TestCopiesOfDamagedFilesAreRefused(t *testing.T) {
	t.Parallel()
	s := create(t, filepath.Join(t.TempDir(), "one"))
	if err := os.WriteFile(filepath.Join(imageOf(s), "sub/more"), []byte("y"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "two")
	if _, err := s.Clone(t.Context(), dir, "snp_2"); err != nil {
		return // another file system: copied, and refused
	}
	if _, err := snapshot.Open(t.Context(), dir); err == nil {
		t.Error("a damaged clone counts as whole")
	}
}

func TestRemoveIsWholeAndRepeatable(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	s := create(t, filepath.Join(parent, "one"))
	for range 2 {
		if err := snapshot.Remove(s.Dir); err != nil {
			t.Error(err)
		}
	}
	if left := names(t, parent); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestLeftoversOfTheDeadAreSweptAndTheLivingLeftAlone(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "SNAPSHOT_TEST_HANG="+filepath.Join(parent, "one"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "saving\n" {
		t.Fatalf("%q, %v", line, err)
	}
	age := func(path string) {
		past := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, past, past); err != nil {
			t.Fatal(err)
		}
	}
	under := names(t, parent)
	if len(under) != 1 {
		t.Fatalf("the save under way has %q", under)
	}
	age(filepath.Join(parent, under[0]))
	if err := snapshot.Sweep(parent); err != nil {
		t.Fatal(err)
	}
	if got := names(t, parent); !cmp.Equal(got, under) {
		t.Errorf("a save under way was swept: %q", got)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	young := filepath.Join(parent, ".tmp-young")
	if err := os.Mkdir(young, 0o700); err != nil {
		t.Fatal(err)
	}
	create(t, filepath.Join(parent, "two")) // sweeps by itself
	if got := names(t, parent); !cmp.Equal(got, []string{".tmp-young", "two"}) {
		t.Errorf("there is %q; a folder whose maker has not locked it yet must stay, a dead one's must go", got)
	}
}

// TestKeptByTheEngine has a snapshot of which no file is on this host: it is as whole, can be cloned, and says what it takes.
func TestKeptByTheEngine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := sandbox.CheckpointNamed("registry/one:3", 1<<30)
	_, err := snapshot.Create(t.Context(), filepath.Join(dir, "one"), snapshot.Manifest{ID: "one", Key: key()}, func(context.Context, string) (sandbox.Checkpoint, error) { return want, nil })
	if err != nil {
		t.Fatal(err)
	}
	one, err := snapshot.Open(t.Context(), filepath.Join(dir, "one"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Clone(t.Context(), filepath.Join(dir, "two"), "two"); err != nil {
		t.Fatal(err)
	}
	two, err := snapshot.Open(t.Context(), filepath.Join(dir, "two"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*snapshot.Snapshot{one, two} {
		if s.Checkpoint() != want || s.Size() != 1<<30 || s.Read != 0 || s.Fits(key()) != nil {
			t.Errorf("%+v", s)
		}
	}
}
