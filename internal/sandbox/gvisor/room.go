package gvisor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"cove/internal/problem"
)

// spareRoom is what a checkpoint may need beyond the memory that a sandbox holds.
const spareRoom = 16 << 20

// roomFor says whether a checkpoint of so many bytes fits below dir. A sentry that meets a full disk while it saves itself does not survive that, so a
// sandbox that is to go on must not be asked to.
func roomFor(dir string, size int64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("see how much room there is: %w", err)
	}
	left := int64(fs.Bavail) * fs.Bsize
	if need := size + spareRoom; left < need {
		return problem.New(problem.Exhausted, "disk_full", fmt.Sprintf("there is no room left on the disk to save the sandbox: %d MiB are free and it may take %d",
			left>>20, need>>20)).WithCause(unix.ENOSPC).WithHint("make room, or move the folder to another disk; nothing was lost")
	}
	return nil
}
