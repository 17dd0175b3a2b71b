package ondisk_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cove/internal/machine/snapshot"
	"cove/internal/sessions/ondisk"
)

// TestSurvey counts what becomes of sessions, and changes nothing.
func TestSurvey(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	for _, name := range []string{"a", "b", "c"} {
		use(t, store, name, ondisk.Options{}, "x")
	}
	use(t, store, "new", ondisk.Options{})
	if err := os.Mkdir(filepath.Join(store.Dir, "broken"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := contents(t, store.Dir)
	outlooks := []ondisk.Outlook{ondisk.GoesOn, ondisk.CarriedOver, ondisk.Unreadable}
	n := 0
	got, err := store.Survey(t.Context(), func(b ondisk.Base, head snapshot.Manifest) ondisk.Outlook {
		if b.Packages != "standard" || head.Key.Environment != "standard-1" {
			t.Errorf("asked about %+v, %+v", b, head)
		}
		n++
		return outlooks[n-1]
	})
	if err != nil || got.Sessions != 5 || got.New != 1 || got.GoOn != 1 || got.CarriedOver != 1 || got.Unreadable != 1 || got.Broken != 1 || got.Makers["an older cove"] != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if after := contents(t, store.Dir); after != before {
		t.Errorf("something changed:\n%s\n%s", before, after)
	}
	if got, err := (ondisk.Store{Dir: filepath.Join(store.Dir, "none")}).Survey(t.Context(), nil); err != nil || got.Sessions != 0 {
		t.Errorf("of no store: %+v, %v", got, err)
	}
}

// contents lists all that is below a folder, with times.
func contents(t *testing.T, dir string) (all string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			all += fmt.Sprintln(path, info.Size(), info.ModTime().Format(time.RFC3339Nano))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAHeadThatCannotBeCarriedOver: whatever goes wrong, the session is as it was, and its files are said to be where they are.
func TestAHeadThatCannotBeCarriedOver(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	for name, salvage := range map[string]func(context.Context, *snapshot.Snapshot, func(io.Reader) error) error{
		"nobody can read it": func(context.Context, *snapshot.Snapshot, func(io.Reader) error) error { return os.ErrNotExist },
		"it ends too early": func(_ context.Context, _ *snapshot.Snapshot, use func(io.Reader) error) error {
			pr, pw := io.Pipe()
			_ = pw.Close()
			return use(pr)
		},
	} {
		m := &machine{engine: "later"}
		o := m.options()
		o.Prepare = func(ctx context.Context, b ondisk.Base) (*ondisk.Ground, error) {
			g, err := m.prepare(ctx, b)
			if err == nil {
				g.Salvage = salvage
			}
			return g, err
		}
		s, err := store.Open(t.Context(), "lab", o)
		if err == nil {
			t.Errorf("%s: it was opened", name)
			_ = s.Close(t.Context())
		}
		fails(t, err, "snapshot_unfit", "its files could not be carried over")
		fails(t, err, "snapshot_unfit", "nothing was deleted")
		if got := ran(t, store, "lab"); got != "a" {
			t.Errorf("%s: after that the session has %q", name, got)
		}
	}
}
