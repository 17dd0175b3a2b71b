package gvisor_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/testkit/testneeds"
)

// disk mounts a file system of so many MiB.
func disk(t *testing.T, kind string, size int) string {
	t.Helper()
	dir := t.TempDir()
	if kind == "tmpfs" {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", size)); err != nil {
			testneeds.Absent(t, testneeds.Root, err)
		}
	} else {
		image := filepath.Join(t.TempDir(), "image")
		script := fmt.Sprintf("truncate -s %dM %s && mkfs.%s -q %[2]s && mount -o loop %[2]s %[4]s", size, image, kind, dir)
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
			testneeds.Absent(t, testneeds.Root, "a disk of its own takes root, loop devices and mkfs."+kind+": "+string(out))
		}
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// free returns the bytes that are free in dir, with what a cache still holds for it.
func free(t *testing.T, dir string) int64 {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	return int64(fs.Bavail) * fs.Bsize
}

const large = 60 << 20 // bytes of each sandbox of these tests

// stuffed starts a sandbox with as many bytes in /tmp as in the workspace, which are kept apart on the host.
func stuffed(t *testing.T, e sandbox.Engine) (sandbox.Sandbox, *guestlink.Link) {
	t.Helper()
	sb, l := sandboxtest.Start(t, e, sandbox.Spec{})
	script := fmt.Sprintf("head -c %d /dev/urandom > /tmp/a && head -c %[1]d /dev/urandom > b && cksum /tmp/a b > sum", large/2)
	if code, out := sandboxtest.Shell(t, l, script); code != 0 {
		t.Fatal(out)
	}
	return sb, l
}

func unharmed(t *testing.T, sb sandbox.Sandbox) {
	t.Helper()
	select {
	case <-sb.Done():
		t.Errorf("the sandbox has ended: %v", sb.Cause())
		return
	default:
	}
	l, err := guestlink.Dial(t.Context(), sb, guestlink.Session{})
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = l.Close() }()
	if code, out := sandboxtest.Shell(t, l, "cksum /tmp/a b | cmp - sum && echo same"); code != 0 || out != "same\n" {
		t.Errorf("afterwards: %d %q", code, out)
	}
}

// TestSavesThatOverlap saves three sandboxes at once where there is room for one or two, while another program takes what is left. Each is saved whole or goes
// on, also on ext2, which cannot set room aside, so that the sandboxes themselves find the disk full.
func TestSavesThatOverlap(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for _, kind := range []string{"ext4", "tmpfs", "ext2"} {
		t.Run(kind, func(t *testing.T) {
			dir := disk(t, kind, 200)
			e := newEngine(t)
			var boxes []sandbox.Sandbox
			for range 3 {
				sb, l := stuffed(t, e)
				_ = l.Close()
				boxes = append(boxes, sb)
			}
			var saves, greed sync.WaitGroup
			var over atomic.Bool
			greed.Go(func() { fill(filepath.Join(dir, "greed"), 70<<20, &over) })
			saved := make([]sandbox.Checkpoint, len(boxes))
			for i, sb := range boxes {
				saves.Go(func() { saved[i] = saveOrGoOn(t, sb, filepath.Join(dir, fmt.Sprint(i))) })
			}
			saves.Wait()
			over.Store(true)
			greed.Wait()
			whole := 0
			for i, sb := range boxes {
				if saved[i] == (sandbox.Checkpoint{}) {
					unharmed(t, sb)
					continue
				}
				whole++
				restored, l := sandboxtest.Restore(t, e, sandbox.Spec{}, saved[i])
				_ = l.Close()
				unharmed(t, restored)
			}
			t.Logf("%d of %d were saved", whole, len(boxes))
			if whole == len(boxes) {
				t.Error("there was room for all, which shows nothing")
			}
		})
	}
}

// saveOrGoOn saves a sandbox in the new folder dir, or returns zero when there was no room.
func saveOrGoOn(t *testing.T, sb sandbox.Sandbox, dir string) (saved sandbox.Checkpoint) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		if strings.Contains(err.Error(), unix.ENOSPC.Error()) {
			return saved
		}
		t.Error(err)
		return saved
	}
	saved, err := sb.(sandbox.Checkpointer).Checkpoint(t.Context(), dir, false)
	if err == nil {
		return saved
	}
	if problem.Of(err).Code != "disk_full" {
		t.Errorf("a save without room: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return saved
}

// fill writes to a file until there are as many bytes in it, or it is told to end. A full disk it meets again and again.
func fill(path string, size int64, over *atomic.Bool) {
	f, err := os.Create(path)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	piece := make([]byte, 64<<10)
	for at := int64(0); at < size && !over.Load(); {
		n, _ := f.WriteAt(piece, at)
		at += int64(n)
	}
}

// TestRoomIsGivenBack looks at the room that a save takes: what it was long enough for, and no more.
func TestRoomIsGivenBack(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for _, kind := range []string{"ext4", "tmpfs"} {
		t.Run(kind, func(t *testing.T) {
			dir := disk(t, kind, 300)
			image := filepath.Join(dir, "image")
			if err := os.Mkdir(image, 0o700); err != nil {
				t.Fatal(err)
			}
			sb, l := stuffed(t, newEngine(t))
			_ = l.Close()
			unix.Sync()
			before := free(t, dir)
			if _, err := sb.(sandbox.Checkpointer).Checkpoint(t.Context(), image, true); err != nil {
				t.Fatal(err)
			}
			unix.Sync()
			var length int64
			files, err := os.ReadDir(image)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				info, err := f.Info()
				if err != nil {
					t.Fatal(err)
				}
				length += info.Size()
			}
			if took := before - free(t, dir); length < large || took > length+(1<<20) {
				t.Errorf("files of %d bytes took %d", length, took)
			}
		})
	}
}

// TestStoppedWhileItIsSaved stops a sandbox in the midst of a save: that it was ended stays known.
func TestStoppedWhileItIsSaved(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	for _, keep := range []bool{true, false, true, false} {
		sb, l := sandboxtest.Start(t, e, sandbox.Spec{})
		_ = l.Close()
		dir := t.TempDir()
		var both sync.WaitGroup
		both.Go(func() { _ = sb.Stop(t.Context()) })
		both.Go(func() { _, _ = sb.(sandbox.Checkpointer).Checkpoint(t.Context(), dir, keep) })
		both.Wait()
		<-sb.Done()
		if err := sb.Cause(); err != nil {
			t.Errorf("keep %v: stopped while it was saved, the cause is %v", keep, err)
		}
	}
}
