package ondisk_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/sessions/ondisk"
)

// seize holds the lease of a session as the command's process would.
func seize(t *testing.T, store ondisk.Store, name, command string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(store.Dir, name, "lease"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(ondisk.Owner{PID: os.Getpid(), Command: command, Since: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(text, 0); err != nil {
		t.Fatal(err)
	}
}

// A keeper that saves a session has its lease for as long as that takes. Whoever gives up meanwhile is not held.
func TestWhoWaitsForAKeeperMayGiveUp(t *testing.T) {
	t.Parallel()
	store := ondisk.Store{Dir: t.TempDir()}
	use(t, store, "lab", ondisk.Options{}, "a")
	seize(t, store, "lab", ondisk.Keeping)
	for what, do := range map[string]func(ctx context.Context) error{
		"open": func(ctx context.Context) error {
			_, err := store.Open(ctx, "lab", (&machine{}).options())
			return err
		},
		"fork": func(ctx context.Context) error {
			_, err := store.Fork(ctx, "lab", "lab2", "x", "")
			return err
		},
		"undo": func(ctx context.Context) error {
			_, err := store.Undo(ctx, "lab", "x")
			return err
		},
		"pause": func(ctx context.Context) error {
			_, _, err := store.Pause(ctx, "lab", "x")
			return err
		},
		"remove": func(ctx context.Context) error { return store.Remove(ctx, "lab", "x") },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		told := make(chan error, 1)
		go func() { told <- do(ctx) }()
		cancel()
		select {
		case err := <-told:
			fails(t, err, "session_in_use", ondisk.Keeping)
		case <-time.After(20 * time.Second): // the keeper itself is waited for 30 s
			t.Errorf("%s goes on waiting for the keeper", what)
		}
	}
}
