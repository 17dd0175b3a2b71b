package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"cove/internal/machine/sharedmem"
)

// settled is how old a file's last change must be before its times prove that it has not changed: two changes within one tick of the file system's clock have
// the same time.
const settled = 50 * time.Millisecond

// look is how a file is recognised that was read and found good.
type look struct {
	Inode    uint64 `json:"inode"`
	Size     int64  `json:"size"`
	Modified int64  `json:"mtime_ns"`
	Changed  int64  `json:"ctime_ns"`
}

// verified is the content of verified.json.
type verified struct {
	Boot  string          `json:"boot"` // the boot of the machine: after a crash every file is read again
	Looks map[string]look `json:"files"`
}

func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// lookOf leaves out of a shared file when its state changed last: each snapshot that links to the file sets that.
func (f File) lookOf(info fs.FileInfo) look {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return look{}
	}
	l := look{Inode: st.Ino, Size: st.Size, Modified: st.Mtim.Nano()}
	if !f.shared() {
		l.Changed = st.Ctim.Nano()
	}
	return l
}

func (f File) shared() bool { return strings.HasPrefix(f.Name, sharedmem.Folder+"/") }

// all is every file that has to be whole, the shared ones last.
func (m Manifest) all() []File { return slices.Concat(m.Files, m.Shared) }

// judge says whether a file is known to be good.
type judge func(f File, l look) bool

// settledLong is for files that were just written or read: one that changed a moment ago may have changed since.
func settledLong(_ File, l look) bool { return time.Since(time.Unix(0, l.Changed)) > settled }

func certain(File, look) bool { return true }

// remember records in verified.json how the files of the snapshot in dir look that are good.
func remember(dir string, m Manifest, good judge) error {
	v := verified{Boot: bootID(), Looks: map[string]look{}}
	for _, f := range m.all() {
		info, err := os.Lstat(imagePath(dir, f.Name))
		if err != nil {
			return err
		}
		if l := f.lookOf(info); good(f, l) {
			v.Looks[f.Name] = l
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	// Losing this file costs reading the others once; so it need not be on the disk at once.
	tmp := filepath.Join(dir, fmt.Sprintf(".%s-%d", verifiedName, os.Getpid()))
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, verifiedName))
}

func imagePath(dir, name string) string {
	return filepath.Join(dir, imageName, filepath.FromSlash(name))
}

func known(dir string) map[string]look {
	text, err := os.ReadFile(filepath.Join(dir, verifiedName))
	var v verified
	if err != nil || json.Unmarshal(text, &v) != nil || v.Boot == "" || v.Boot != bootID() {
		return nil
	}
	return v.Looks
}

// Open returns the snapshot in dir when it is whole. Otherwise the error is a problem with code "snapshot_missing",
// "snapshot_damaged", which names the file and what is wrong with it, "snapshot_foreign" or "snapshot_unreadable".
func Open(ctx context.Context, dir string) (*Snapshot, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	if m.Version == packedVersion {
		return nil, damaged(dir, "it is packed")
	}
	s := &Snapshot{Dir: dir, Manifest: m}
	looks := known(dir)
	renew := false
	for _, f := range m.all() {
		info, err := inspect(dir, f)
		if err != nil {
			return nil, err
		}
		if before, ok := looks[f.Name]; ok && before == f.lookOf(info) {
			continue
		}
		if err := verify(ctx, dir, f); err != nil {
			return nil, err
		}
		s.Read += f.Size
		renew = true
	}
	if renew {
		_ = remember(dir, m, settledLong) // a folder that cannot be written to is read again the next time
	}
	return s, nil
}

// inspect checks what can be seen of a file without reading it.
func inspect(dir string, f File) (fs.FileInfo, error) {
	name := imageName + "/" + f.Name
	info, err := os.Lstat(imagePath(dir, f.Name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, damaged(dir, name+" is missing")
	case err != nil:
		return nil, damaged(dir, name+" cannot be read: "+err.Error())
	case !info.Mode().IsRegular():
		return nil, damaged(dir, name+" is not an ordinary file")
	case info.Size() != f.Size:
		return nil, damaged(dir, fmt.Sprintf("%s has %d bytes instead of %d", name, info.Size(), f.Size))
	}
	return info, nil
}

func verify(ctx context.Context, dir string, f File) error {
	name := imageName + "/" + f.Name
	if f.shared() {
		if err := sharedmem.Verify(imagePath(dir, f.Name)); err != nil {
			return damaged(dir, name+" is not what it was")
		}
		return nil
	}
	file, err := os.Open(imagePath(dir, f.Name))
	if err != nil {
		return damaged(dir, name+" cannot be read: "+err.Error())
	}
	defer file.Close()
	size, crc, err := checksum(ctx, file)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return damaged(dir, name+" cannot be read: "+err.Error())
	case size != f.Size:
		return damaged(dir, fmt.Sprintf("%s has %d bytes instead of %d", name, size, f.Size))
	case crc != f.CRC:
		return damaged(dir, "the checksum of "+name+" differs")
	}
	return nil
}
