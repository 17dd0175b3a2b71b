package e2e_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"cove/internal/testkit/testneeds"
)

// TestServerOnASmallDisk pauses three sessions of 100 MB at once, on a disk with room for one. What cannot be saved says so and goes on.
func TestServerOnASmallDisk(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	image := filepath.Join(t.TempDir(), "image")
	script := fmt.Sprintf("truncate -s 220M %s && mkfs.ext4 -q -m 0 %[1]s && mount -o loop %[1]s %s", image, dir)
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
		testneeds.Absent(t, testneeds.Root, "a disk of its own takes root and loop devices: "+string(out))
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	s := startServer(t, dir, testKey(t))
	paused, refused := 0, 0
	for range cycles(t, 2, 20) {
		var ids []string
		for range 3 {
			id := s.session()
			s.says(id, "import os, zlib\nx = os.urandom(100_000_000)\nopen('sum', 'w').write(str(zlib.crc32(x)))")
			ids = append(ids, id)
		}
		var all sync.WaitGroup
		answers := make([]reply, len(ids))
		for i, id := range ids {
			all.Go(func() { answers[i], _ = s.call(t.Context(), http.MethodPost, "/api/v1/sessions/"+id+"/pause", nil) })
		}
		all.Wait()
		for i, id := range ids {
			switch a := answers[i]; {
			case a.status == http.StatusOK:
				paused++
			case a.status == http.StatusInsufficientStorage && a.code() == "disk_full":
				refused++
			default:
				t.Errorf("pause: %d %s", a.status, a.body)
			}
			s.says(id, "assert str(zlib.crc32(x)) == open('sum').read()")
			if a, err := s.call(t.Context(), http.MethodDelete, "/api/v1/sessions/"+id, nil); err != nil || a.status >= 300 {
				t.Errorf("delete: %v %d %s", err, a.status, a.body)
			}
		}
	}
	t.Logf("%d paused, %d refused", paused, refused)
	if refused == 0 {
		t.Error("there was room for all, which shows nothing")
	}
}
