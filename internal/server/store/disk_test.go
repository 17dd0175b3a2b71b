package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/server/store"
	"cove/internal/server/stream"
	"cove/internal/testkit/testneeds"
)

// smallDisk is a folder on a disk of that many bytes. It takes root, and skips the test for others.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	testneeds.Asked(t, testneeds.Root)
	folder := t.TempDir()
	err := unix.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%d", size))
	if errors.Is(err, unix.EPERM) {
		testneeds.Absent(t, testneeds.Root, err)
	}
	must(t, err)
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return folder
}

func TestADiskMayBeFull(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	disk := smallDisk(t, 4<<20)
	path, ballast := filepath.Join(disk, "cove.db"), filepath.Join(disk, "ballast")
	s := open(t, path)
	must(t, os.WriteFile(ballast, make([]byte, 1<<20), 0o600))
	written := 0
	fill := func() error {
		for {
			written++
			body := make([]byte, 1<<14)
			if err := s.AddEvents(ctx, []stream.Event{{Stream: "exe_1", Seq: int64(written), Body: body}}); err != nil {
				written--
				return err
			}
		}
	}
	full := func(err error) {
		t.Helper()
		if p := problem.Of(err); p.Kind != problem.Unavailable || p.Hint == "" {
			t.Errorf("on a full disk: %v", err)
		}
	}
	full(fill())
	race(20, func(i int) {
		full(s.AddEvents(ctx, []stream.Event{{Stream: "exe_2", Seq: int64(i), Body: make([]byte, 1<<16)}}))
	})
	if got, err := s.Events(ctx, "exe_1", "", 0, 1<<20, 1<<30); err != nil || len(got) != written {
		t.Errorf("%d of %d events are read from a full disk, %v", len(got), written, err)
	}
	other, err := store.Open(ctx, store.Options{Database: path})
	if err != nil {
		full(err)
	} else {
		must(t, other.Close())
	}
	_, err = store.Open(ctx, store.Options{Database: filepath.Join(disk, "another.db")})
	full(err)
	must(t, os.Remove(ballast))
	before := written
	full(fill())
	if written == before {
		t.Error("nothing is written after there is room again")
	}
	must(t, s.Close())
	again, err := store.Open(ctx, store.Options{Database: path})
	if err != nil {
		full(err)
		return
	}
	if got, err := again.Events(ctx, "exe_1", "", 0, 1<<20, 1<<30); err != nil || len(got) != written {
		t.Errorf("%d of %d events are there, %v", len(got), written, err)
	}
	must(t, again.Close())
}

func TestADatabaseMayBeReadOnly(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	disk := smallDisk(t, 16<<20)
	path := filepath.Join(disk, "cove.db")
	s, err := store.Open(ctx, store.Options{Database: path})
	must(t, err)
	must(t, s.AddSession(ctx, session("ses_1", 0)))
	must(t, s.Close())
	must(t, unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	for _, name := range []string{path, filepath.Join(disk, "new.db")} {
		_, err = store.Open(ctx, store.Options{Database: name})
		wantCode(t, err, "database_unavailable")
		if !strings.Contains(problem.Of(err).Hint, "written") {
			t.Errorf("%s: the hint is %q", name, problem.Of(err).Hint)
		}
	}
	must(t, unix.Mount("", disk, "", unix.MS_REMOUNT, ""))
	must(t, open(t, path).AddSession(ctx, session("ses_2", 0)))
}
