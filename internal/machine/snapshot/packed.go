package snapshot

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"cove/internal/core/seal"
	"cove/internal/machine/pagestore"
	"cove/internal/machine/sharedmem"
)

// A packed snapshot takes little room beside others of the same session: its large files are lists of pages in a pagestore.Store that all of them share, and the
// small ones are compressed. It has to be unpacked before it can be opened.
//
//	<dir>/manifest.json          as of the whole snapshot, with another version and the form of each file
//	<dir>/image/NAME.pages       a pagestore.List
//	<dir>/image/NAME.gz
//	<dir>/image/NAME.whole       a file that is sealed, as it is
//	<dir>/image/shared/          as of the whole snapshot
const packedVersion = 2

// The forms of a file in a packed snapshot, which are the endings of their names.
const (
	inPages  = ".pages"
	inGzip   = ".gz"
	inWhole  = ".whole"  // what is sealed has nothing in common with anything
	pageable = 256 << 10 // bytes from which a file is kept in pages
)

// Pack makes a packed snapshot in dir, which must not exist, with the content of s, which is unchanged.
func (s *Snapshot) Pack(ctx context.Context, dir string, store *pagestore.Store) error {
	_, err := assemble(ctx, dir, certain, func(tmp string) (Manifest, error) {
		m := s.Manifest
		if m.Elsewhere.Name != "" {
			return m, errors.New("a checkpoint that its engine keeps cannot be packed")
		}
		m.Version, m.Files = packedVersion, nil
		err := os.Mkdir(filepath.Join(tmp, imageName), 0o700)
		for _, f := range s.Manifest.Files {
			if err == nil {
				f.Form, err = packFile(ctx, imagePath(s.Dir, f.Name), imagePath(tmp, f.Name), f, store)
				m.Files = append(m.Files, f)
			}
		}
		_, shared := m.shareHeaps(s.Dir, tmp)
		return m, errors.Join(err, shared)
	})
	return err
}

func packFile(ctx context.Context, from, to string, f File, store *pagestore.Store) (string, error) {
	in, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer in.Close()
	if sealed, err := seal.IsSealed(from); err != nil || sealed {
		return inWhole, errors.Join(err, share(ctx, from, to+inWhole, f))
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	read := io.TeeReader(in, sum)
	form, write := inGzip, content(func(w io.Writer) (int64, error) {
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		n, err := io.Copy(z, read)
		return n, errors.Join(err, z.Close())
	})
	if f.Size >= pageable && f.Size%pagestore.Size == 0 {
		list, err := store.Add(ctx, read)
		if err != nil {
			return "", err
		}
		text, _ := list.MarshalBinary()
		form, write = inPages, bytes.NewReader(text).WriteTo
	}
	if err = writeNew(to+form, write); err == nil && sum.Sum32() != f.CRC {
		err = fmt.Errorf("%s has changed since it was saved", from)
	}
	return form, err
}

// content writes a file of a snapshot.
type content func(w io.Writer) (int64, error)

// writeNew makes a file, with the folders above it, and writes it through to the disk.
func writeNew(path string, write content) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = write(f)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// copiesAtOnce bounds how many heaps are copied at a time: each copy waits for the disk at its end.
const copiesAtOnce = 8

// shareHeaps links into the snapshot in to what the one in from has in common with others. It returns the names of those that had to be copied, and were found good by that.
func (m Manifest) shareHeaps(from, to string) (copied map[string]bool, err error) {
	if len(m.Shared) == 0 {
		return nil, nil
	}
	if err := os.MkdirAll(imagePath(to, sharedmem.Folder), 0o700); err != nil {
		return nil, err
	}
	found := make([]bool, len(m.Shared))
	var all errgroup.Group
	all.SetLimit(copiesAtOnce)
	for i, f := range m.Shared {
		all.Go(func() (err error) {
			found[i], err = sharedmem.Share(imagePath(from, f.Name), imagePath(to, f.Name))
			return err
		})
	}
	err = all.Wait()
	copied = map[string]bool{}
	for i, f := range m.Shared {
		copied[f.Name] = found[i]
	}
	return copied, err
}

// Unpack makes of the packed snapshot in from a whole one in dir, which must not exist, and calls it id. An error with code "snapshot_damaged" says that it is not what it was.
func Unpack(ctx context.Context, from, dir, id string, store *pagestore.Store) (*Snapshot, error) {
	m, err := readManifest(from)
	if err != nil {
		return nil, err
	}
	if m.Version != packedVersion {
		return nil, damaged(from, "it is not packed")
	}
	return assemble(ctx, dir, certain, func(tmp string) (Manifest, error) {
		whole := m
		whole.Version, whole.ID, whole.Files = version, id, nil
		err := os.Mkdir(filepath.Join(tmp, imageName), 0o700)
		for _, f := range m.Files {
			if err == nil {
				err = unpackFile(ctx, from, imagePath(tmp, f.Name), f, store)
				f.Form = ""
				whole.Files = append(whole.Files, f)
			}
		}
		_, shared := m.shareHeaps(from, tmp)
		return whole, errors.Join(err, shared)
	})
}

func unpackFile(ctx context.Context, from, to string, f File, store *pagestore.Store) error {
	packed := imagePath(from, f.Name) + f.Form
	if f.Form == inWhole {
		return share(ctx, packed, to, f)
	}
	return writeNew(to, func(w io.Writer) (int64, error) {
		sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		err := unpackInto(ctx, io.MultiWriter(w, sum), packed, f, store)
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
			return 0, err
		case err != nil:
			return 0, damaged(from, fmt.Sprintf("%s cannot be unpacked: %v", f.Name, err))
		}
		if sum.Sum32() != f.CRC {
			return 0, damaged(from, "the checksum of "+f.Name+" differs")
		}
		return f.Size, nil
	})
}

func unpackInto(ctx context.Context, w io.Writer, packed string, f File, store *pagestore.Store) error {
	if f.Form == inPages {
		list, err := readList(packed)
		if err == nil {
			err = store.Copy(ctx, w, list, f.Size)
		}
		return err
	}
	in, err := os.Open(packed)
	if err != nil {
		return err
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	n, err := io.Copy(w, io.LimitReader(z, f.Size+1))
	if err == nil && n != f.Size {
		err = unix.EBADMSG
	}
	return err
}

func readList(path string) (pagestore.List, error) {
	var list pagestore.List
	text, err := os.ReadFile(path)
	if err == nil {
		err = list.UnmarshalBinary(text)
	}
	return list, err
}

// PagesOf returns the lists of the packed snapshot in dir.
func PagesOf(dir string) ([]pagestore.List, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	var all []pagestore.List
	for _, f := range m.Files {
		if f.Form != inPages {
			continue
		}
		list, err := readList(imagePath(dir, f.Name) + f.Form)
		if err != nil {
			return nil, damaged(dir, fmt.Sprintf("the pages of %s cannot be read: %v", f.Name, err))
		}
		all = append(all, list)
	}
	return all, nil
}
