package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Clone makes another snapshot with the same content in dir, which must not exist, and calls it id. On one file system it takes no room: the two share the
// files, which never change.
func (s *Snapshot) Clone(ctx context.Context, dir, id string) (*Snapshot, error) {
	unchanged := s.unchanged()
	var copied map[string]bool
	// Of the others nothing is known: they are linked to, not read.
	good := func(f File, _ look) bool { return unchanged[f.Name] || copied[f.Name] }
	clone, err := assemble(ctx, dir, good, func(tmp string) (Manifest, error) {
		m := s.Manifest
		m.ID = id
		if err := os.Mkdir(filepath.Join(tmp, imageName), 0o700); err != nil {
			return m, err
		}
		for _, f := range m.Files {
			if err := share(ctx, imagePath(s.Dir, f.Name), imagePath(tmp, f.Name), f); err != nil {
				return m, err
			}
		}
		var err error
		copied, err = m.shareHeaps(s.Dir, tmp)
		return m, err
	})
	if err != nil {
		return nil, err
	}
	if len(unchanged) > 0 {
		_ = remember(s.Dir, s.Manifest, func(f File, _ look) bool { return unchanged[f.Name] }) // a link changed the files' times, nothing else did
	}
	return clone, nil
}

// Import makes in dir, which must not exist, a snapshot of the one in the folder from, which may be on another disk, and calls it by its id. It reads each file once: what is copied is checked while it
// is, what could be linked to is read afterwards. The errors are Open's; of a snapshot that is not whole nothing stays in dir.
func Import(ctx context.Context, from, dir string) (*Snapshot, error) {
	m, err := readManifest(from)
	if err != nil {
		return nil, err
	}
	if m.Version == packedVersion {
		return nil, damaged(from, "it is packed")
	}
	if _, err := (&Snapshot{Dir: from, Manifest: m}).Clone(ctx, dir, m.ID); err != nil {
		return nil, err
	}
	s, err := Open(ctx, dir)
	if err != nil {
		return nil, errors.Join(err, Remove(dir))
	}
	return s, nil
}

// unchanged returns the files that look as they did when they were last read, by their names.
func (s *Snapshot) unchanged() map[string]bool {
	out, looks := map[string]bool{}, known(s.Dir)
	for _, f := range s.Manifest.all() {
		info, err := os.Lstat(imagePath(s.Dir, f.Name))
		if before, ok := looks[f.Name]; err == nil && ok && before == f.lookOf(info) {
			out[f.Name] = true
		}
	}
	return out
}

// share makes to a link to the file at from, or a copy where linking fails.
func share(ctx context.Context, from, to string, f File) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	return replicate(ctx, from, to, f)
}

func replicate(ctx context.Context, from, to string, f File) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	size, crc, err := checksum(ctx, io.TeeReader(in, out))
	if err == nil && (size != f.Size || crc != f.CRC) {
		err = fmt.Errorf("%s has changed since it was saved", from)
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
