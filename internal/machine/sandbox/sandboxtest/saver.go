package sandboxtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/testkit/testneeds"
)

// connect dials a sandbox's guest.
func connect(t testing.TB, sb sandbox.Sandbox) *guestlink.Link {
	t.Helper()
	l, err := guestlink.Dial(t.Context(), sb, guestlink.Session{})
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// Checkpoint saves a sandbox whose connection is l.
func Checkpoint(t testing.TB, sb sandbox.Sandbox, l *guestlink.Link, keep bool) sandbox.Checkpoint {
	t.Helper()
	_ = l.Close()
	saved, err := sb.(sandbox.Checkpointer).Checkpoint(t.Context(), t.TempDir(), keep)
	if err != nil {
		t.Fatalf("checkpoint: %v", err)
	}
	return saved
}

// Restore starts a sandbox from a checkpoint and stops it when the test ends.
func Restore(t testing.TB, e sandbox.Saver, spec sandbox.Spec, from sandbox.Checkpoint) (sandbox.Sandbox, *guestlink.Link) {
	t.Helper()
	spec.ID = sandbox.NewID("test")
	spec.Checkpoint = from
	p, err := e.Prepare(t.Context(), spec)
	if err != nil {
		t.Fatalf("prepare: %v", err)
	}
	t.Cleanup(func() { _ = p.Stop(t.Context()) })
	sb, err := p.Restore(t.Context(), from)
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	return sb, connect(t, sb)
}

// saver returns e as an engine that saves. One that cannot must not pretend to.
func saver(t *testing.T, e sandbox.Engine) (sandbox.Saver, bool) {
	s, ok := e.(sandbox.Saver)
	if !ok {
		sb, _ := Start(t, e, sandbox.Spec{})
		if _, can := sb.(sandbox.Checkpointer); can {
			t.Error("the engine is no Saver, but its sandboxes are Checkpointers")
		}
	}
	return s, ok
}

func dialsOnceOrAgain(t *testing.T, e sandbox.Engine) {
	sb, l := Start(t, e, sandbox.Spec{})
	if _, ok := e.(sandbox.Saver); !ok {
		if _, err := sb.Dial(t.Context()); err == nil {
			t.Error("dialed twice")
		}
		return
	}
	for range 3 {
		_ = l.Close()
		l = connect(t, sb)
		if code, out := Shell(t, l, "echo alive"); code != 0 || out != "alive\n" {
			t.Errorf("after dialing again: %d %q", code, out)
		}
	}
}

func savesAndRestores(t *testing.T, e sandbox.Engine) {
	s, ok := saver(t, e)
	if !ok {
		gives(t, "pause, fork, undo, points, named sessions", "no")
		return
	}
	sb, l := Start(t, s, sandbox.Spec{})
	Shell(t, l, "echo work > file; echo scratch > /tmp/file; (setsid sleep 1000 >/dev/null 2>&1 &)")
	saved := Checkpoint(t, sb, l, true)
	l = connect(t, sb)
	if _, out := Shell(t, l, "cat file; echo after > file"); out != "work\n" {
		t.Errorf("the kept sandbox has %q", out)
	}
	_, a := Restore(t, s, sandbox.Spec{Limits: sandbox.Limits{Memory: 1 << 30, CPUs: 1}}, saved)
	other, b := Restore(t, s, sandbox.Spec{}, saved)
	for _, l := range []*guestlink.Link{a, b} {
		if _, out := Shell(t, l, "cat file /tmp/file; ps ax | grep -c '[s]leep 1000'; echo mine > file; cat file"); out != "work\nscratch\n1\nmine\n" {
			t.Errorf("a restored sandbox has %q", out)
		}
	}
	if _, out := Shell(t, l, "cat file"); out != "after\n" {
		t.Errorf("the first sandbox has %q", out)
	}
	saved = Checkpoint(t, other, b, false)
	await(t, other.Done(), "the saved sandbox to end")
	if err := other.Cause(); err != nil {
		t.Errorf("its cause is %v", err)
	}
	if left := mentioning(t, other.ID()); len(left) > 0 {
		t.Errorf("left running: %q", left)
	}
	_, l = Restore(t, s, sandbox.Spec{}, saved)
	if _, out := Shell(t, l, "cat file"); out != "mine\n" {
		t.Errorf("the second generation has %q", out)
	}
	gives(t, "pause, fork, undo, points, named sessions", "yes")
}

func givesUpPrepared(t *testing.T, e sandbox.Engine) {
	s, ok := saver(t, e)
	if !ok {
		return
	}
	id := sandbox.NewID("test")
	p, err := s.Prepare(t.Context(), sandbox.Spec{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if left := mentioning(t, id); len(left) > 0 {
		t.Errorf("left running: %q", left)
	}
}

// outlivesAFullDisk: what could not be saved goes on, with or without keep.
func outlivesAFullDisk(t *testing.T, e sandbox.Engine) {
	s, ok := saver(t, e)
	if !ok {
		return
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		testneeds.Absent(t, testneeds.Root, err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	sb, l := Start(t, s, sandbox.Spec{})
	for _, keep := range []bool{true, false} {
		Shell(t, l, "echo work > file")
		_ = l.Close()
		_, err := sb.(sandbox.Checkpointer).Checkpoint(t.Context(), dir, keep)
		if !problem.Has(err, problem.DiskFull) {
			t.Fatalf("a checkpoint on a full disk: %v", err)
		}
		l = connect(t, sb)
		if code, out := Shell(t, l, "cat file; rm file"); code != 0 || out != "work\n" {
			t.Errorf("afterwards: %d %q", code, out)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func refusesBrokenImages(t *testing.T, e sandbox.Engine) {
	s, ok := saver(t, e)
	if !ok {
		return
	}
	sb, l := Start(t, s, sandbox.Spec{})
	good, files := Checkpoint(t, sb, l, false).HostFolder()
	if !files {
		return // the engine keeps it, and nothing here can break it
	}
	entries, err := os.ReadDir(good)
	if err != nil || len(entries) == 0 {
		t.Fatalf("the image has %v, %v", entries, err)
	}
	for _, f := range entries {
		if f.Name() == "guest" {
			continue // a few bytes that name what must be there
		}
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, f.Name())
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, info.Size()/2); err != nil {
			t.Fatal(err)
		}
		id := sandbox.NewID("test")
		p, err := s.Prepare(t.Context(), sandbox.Spec{ID: id, Checkpoint: sandbox.CheckpointIn(dir)})
		if err != nil {
			t.Fatal(err)
		}
		broken, err := p.Restore(t.Context(), sandbox.CheckpointIn(dir))
		if err == nil {
			await(t, broken.Done(), "a sandbox without half of its "+f.Name()+" to end")
		} else if strings.Contains(err.Error(), "did not start within") {
			t.Errorf("half of %s: %v", f.Name(), err)
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Errorf("half of %s: stop: %v", f.Name(), err)
		}
		if left := mentioning(t, id); len(left) > 0 {
			t.Errorf("half of %s: left running: %q", f.Name(), left)
		}
	}
}

// refusesWhatIsElsewhere: a volume and a checkpoint that the engine does not have are refused with a problem, and nothing is left of the attempt.
func refusesWhatIsElsewhere(t *testing.T, e sandbox.Engine) {
	refused := func(id string, err error) {
		t.Helper()
		if p := problem.Of(err); err == nil || p.Kind == problem.Internal {
			t.Errorf("got %v", err)
		}
		if left := mentioning(t, id); len(left) > 0 {
			t.Errorf("left running: %q", left)
		}
	}
	id := sandbox.NewID("test")
	_, err := e.Start(t.Context(), sandbox.Spec{ID: id, Mounts: []sandbox.Mount{{Source: sandbox.Volume("no-such-volume"), Target: "/opt/volume"}}})
	refused(id, err)
	s, ok := e.(sandbox.Saver)
	if !ok {
		return
	}
	id, unknown := sandbox.NewID("test"), sandbox.CheckpointNamed("no-such-checkpoint", 1)
	_, err = s.Prepare(t.Context(), sandbox.Spec{ID: id, Checkpoint: unknown})
	refused(id, err)
	id = sandbox.NewID("test")
	p, err := s.Prepare(t.Context(), sandbox.Spec{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Restore(t.Context(), unknown)
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	refused(id, err)
}
