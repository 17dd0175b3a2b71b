package gvisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/sentry/state/checkpointfiles"

	"cove/internal/core/problem"
)

// draft is the files of a checkpoint before and while the sentry writes them. They have real blocks on the disk beyond what is written, so that nobody
// else can use up the room meanwhile: not another save, not another process, not the sandbox itself.
type draft struct {
	dir   string
	files []*os.File
	// sure says that the file system has set the blocks aside. Some cannot; then there was room a moment ago, and nothing more is known.
	sure bool
}

// imageFiles names the files of a checkpoint, in the order in which the sentry expects them.
func imageFiles() []string {
	return []string{checkpointfiles.StateFileName, checkpointfiles.PagesMetadataFileName, checkpointfiles.PagesFileName}
}

// spareRoom is what saves leave of the disk for others, as for the database that may be there too: a disk that is full for a moment is full for them.
const spareRoom = 16 << 20

// needs is how many bytes the files of a checkpoint may take, by name.
type needs map[string]int64

// metadataRoom is what the list of a checkpoint's pages takes at the least.
const metadataRoom = 1 << 20

// needsOf says what a checkpoint of a sandbox may take. loaded is the length of the pages that it was itself restored from, of which some may not be in
// memory yet. Code may still allocate until it is stopped, so it can be too little.
func needsOf(sentry int, in *instance, loaded int64) needs {
	pages := max(new(memoryFile).size(sentry)+filesIn(in.Join("workspace"))+unnamedIn(sentry, in, systemStore), loaded)
	return needs{
		checkpointfiles.StateFileName:         statusBytes(sentry, "RssAnon:"), // what the sentry knows, which is shorter written down
		checkpointfiles.PagesMetadataFileName: metadataRoom + pages/256,        // some bytes for a run of pages, at the worst for every other page
		checkpointfiles.PagesFileName:         pages,
	}
}

// outline makes the files of a checkpoint in dir and sets aside the room for them. Without it the sandbox is not even stopped. The error is a problem
// with code "disk_full" when there is none; then nothing is left in dir.
func outline(dir string, n needs) (*draft, error) {
	d := &draft{dir: dir, sure: true}
	var total int64
	for _, name := range imageFiles() {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err != nil {
			return nil, errors.Join(asFull(err), d.discard())
		}
		d.files = append(d.files, f)
		total += n[name]
		switch err := setAside(f, n[name]); {
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			d.sure = false
		case err != nil:
			return nil, errors.Join(asFull(err), d.discard())
		}
	}
	if d.sure {
		total = 0
	}
	if err := roomFor(dir, total+spareRoom); err != nil {
		return nil, errors.Join(err, d.discard())
	}
	return d, nil
}

// setAside gives a file blocks for so many bytes; it remains empty.
func setAside(f *os.File, size int64) error {
	for size > 0 {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return nil
}

// roomFor looks whether so many bytes are free below dir.
func roomFor(dir string, size int64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("see how much room there is: %w", err)
	}
	if int64(fs.Bavail)*fs.Bsize < size {
		return asFull(unix.ENOSPC)
	}
	return nil
}

// finish gives back the blocks that were not needed. What may still fail to reach the disk is brought there: afterwards a lack of room has been found.
func (d *draft) finish() error {
	var errs []error
	for _, f := range d.files {
		info, err := f.Stat()
		if err == nil {
			err = f.Truncate(info.Size()) // frees what is beyond
		}
		if err == nil && !d.sure {
			err = f.Sync()
		}
		errs = append(errs, err, f.Close())
	}
	return asFull(errors.Join(errs...))
}

// discard empties the folder again.
func (d *draft) discard() error {
	for _, f := range d.files {
		_ = f.Close()
	}
	entries, err := os.ReadDir(d.dir)
	errs := []error{err}
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(d.dir, e.Name())))
	}
	return errors.Join(errs...)
}

// asFull says a lack of room in words, also where the sentry has met it, which reports it as text.
func asFull(err error) error {
	if err == nil {
		return nil
	}
	for _, lack := range []error{unix.ENOSPC, unix.EDQUOT} {
		if errors.Is(err, lack) || strings.Contains(err.Error(), lack.Error()) {
			return problem.New(problem.DiskFull, "there is no room left on the disk to save the sandbox").WithCause(lack).
				WithHint("make room, or move the folder to another disk; nothing was lost")
		}
	}
	return err
}

// unnamedIn returns the bytes that files without a name take on the disk that a process has open and that were made in a folder of an instance: what a sandbox has changed of its system.
// The process may have another root, so nothing is known of where its files are but the end of their paths.
func unnamedIn(pid int, in *instance, folder string) (total int64) {
	below := "/" + in.ID + "/" + folder + "/"
	open := fmt.Sprintf("/proc/%d/fd", pid)
	seen := map[uint64]bool{}
	for _, name := range namesIn(open) {
		path := filepath.Join(open, name)
		var st unix.Stat_t
		if to, err := os.Readlink(path); err == nil && strings.Contains(to, below) && unix.Stat(path, &st) == nil && !seen[st.Ino] {
			seen[st.Ino] = true
			total += st.Blocks * 512
		}
	}
	return total
}

// filesIn returns the bytes that the files in a folder take on the disk.
func filesIn(dir string) (total int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		var st unix.Stat_t
		if unix.Lstat(filepath.Join(dir, e.Name()), &st) == nil {
			total += st.Blocks * 512
		}
	}
	return total
}
