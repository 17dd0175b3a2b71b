package gvisor

import (
	"testing"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/testkit/testneeds"
)

// TestRuntimeFolderForbidsExecution: a folder in memory, as Docker mounts one, is refused with what to do about it, and the same folder with execution is not.
func TestRuntimeFolderForbidsExecution(t *testing.T) {
	t.Parallel()
	testneeds.Asked(t, testneeds.Root)
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		testneeds.Absent(t, testneeds.Root, err)
	}
	t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
	if err := checkMount(folder); !problem.Has(problem.Of(err), problem.RuntimeFolder) {
		t.Errorf("got %v", err)
	}
	if err := unix.Mount("", folder, "", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		t.Fatal(err)
	}
	if err := checkMount(folder); err != nil {
		t.Errorf("got %v", err)
	}
}
