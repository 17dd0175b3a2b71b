package snapshot

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"cove/internal/core/durable"
	"cove/internal/core/seal"
	"cove/internal/machine/pagestore"
)

// sealingSuffix is that of what Seal makes beside a snapshot. Nothing names it, so it goes when a process dies in between.
const sealingSuffix = ".sealing"

// Seal replaces the snapshot in dir, packed or not, by one in which those of its files are sealed that names has. One that is sealed already stays. store is the pages of a
// packed one, which afterwards needs none of them.
func Seal(ctx context.Context, dir string, names []string, sealer *seal.Sealer, store *pagestore.Store) error {
	m, err := readManifest(dir)
	if err != nil {
		return err
	}
	packed, next := m.Version == packedVersion, dir+sealingSuffix
	if done, err := m.sealed(dir, names); err != nil || done {
		return err
	}
	from, whole := dir, next
	if packed {
		from, whole = dir+sealingSuffix+"-plain", dir+sealingSuffix+"-whole"
	}
	for _, left := range []string{next, from, whole} {
		if left != dir {
			if err := Remove(left); err != nil {
				return err
			}
		}
	}
	if packed {
		if _, err := Unpack(ctx, dir, from, m.ID, store); err != nil {
			return err
		}
		defer func() { _ = Remove(from) }()
	}
	s, err := sealInto(ctx, from, whole, names, sealer)
	if err != nil {
		return err
	}
	if packed {
		err = errors.Join(s.Pack(ctx, next, store), Remove(whole))
	}
	if err == nil {
		err = unix.Renameat2(unix.AT_FDCWD, next, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE)
	}
	if err == nil {
		err = durable.SyncFolder(filepath.Dir(dir))
	}
	return errors.Join(err, Remove(next))
}

// sealed says whether the files of names are.
func (m Manifest) sealed(dir string, names []string) (bool, error) {
	for _, f := range m.Files {
		if !slices.Contains(names, f.Name) {
			continue
		}
		if f.Form != "" {
			return f.Form == inWhole, nil
		}
		return seal.IsSealed(imagePath(dir, f.Name))
	}
	return true, nil
}

// sealInto makes a copy of a whole snapshot in which the files of names are sealed.
func sealInto(ctx context.Context, from, to string, names []string, sealer *seal.Sealer) (*Snapshot, error) {
	s, err := Open(ctx, from)
	if err != nil {
		return nil, err
	}
	return assemble(ctx, to, certain, func(tmp string) (Manifest, error) {
		m := s.Manifest
		m.Files = slices.Clone(m.Files)
		err := os.Mkdir(filepath.Join(tmp, imageName), 0o700)
		for i := range m.Files {
			f := &m.Files[i]
			source, target := imagePath(from, f.Name), imagePath(tmp, f.Name)
			if err == nil && !slices.Contains(names, f.Name) {
				err = share(ctx, source, target, *f)
				continue
			}
			if err == nil {
				err = writeNew(target, func(w io.Writer) (int64, error) { return sealFile(source, w, sealer) })
			}
			if err == nil {
				f.Size, f.CRC, err = settle(ctx, target)
			}
		}
		_, shared := m.shareHeaps(from, tmp)
		return m, errors.Join(err, shared)
	})
}

func sealFile(path string, w io.Writer, sealer *seal.Sealer) (int64, error) {
	in, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	sealed, err := sealer.NewWriter(w)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(sealed, in)
	if err == nil {
		err = sealed.Close()
	}
	return n, err
}
