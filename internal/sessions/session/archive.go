package session

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
	"unicode"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/workspace"
)

// Bounds of an archive. What code makes may be as many files as it likes, and sparse ones of any size.
const (
	maxArchived = 20000
	maxDepth    = 100
)

// Archive writes a folder with what is in it to w, as "tar.gz" or "zip". Each file has the content that it has when it is written. A file that was removed
// meanwhile is left out; so is one that cannot be read or claims to be larger than a workspace can be (a sparse file), and a symlink that leads to no file of the workspace, and the archive's file LeftOut lists
// those. After an error, which may come when bytes were written already, w has no complete archive.
func (s *Live) Archive(ctx context.Context, dir, format string, w io.Writer) error {
	var p packer
	switch format {
	case "tar.gz":
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		p = &tarball{Writer: tar.NewWriter(z), zip: z}
	case "zip":
		p = &zipper{zip.NewWriter(w)}
	default:
		return problem.New(problem.ArchiveFormat, fmt.Sprintf("%.20q is not an archive format", format)).WithHint("ask for tar.gz or zip")
	}
	return s.reached(ctx, func(l *guestlink.Link) error {
		entries, denied, err := s.inventory(ctx, l, dir)
		if err != nil {
			return err
		}
		left := s.opts.Limits.Workspace + growth
		names := map[string]bool{}
		for _, e := range entries {
			name := harmless(strings.TrimPrefix(strings.TrimPrefix(e.Path, dir), "/"))
			names[name] = true
			err := pack(ctx, l, p, &left, e, name)
			if unreadable(err) {
				denied = append(denied, e.Path)
			} else if err != nil {
				return fmt.Errorf("archive %.300q: %w", e.Path, err)
			}
		}
		if err := packList(p, denied, names); err != nil {
			return err
		}
		return p.Close()
	})
}

// LeftOut is the file of an archive that lists what could not be read, a path in each line.
const LeftOut = "LEFT-OUT.txt"

// unreadable says whether err is about a file or folder that code has made impossible to read, by its permissions or its name.
func unreadable(err error) bool {
	p := problem.Of(err)
	return p != nil && (problem.Has(p, problem.FileDenied, problem.InvalidPath))
}

// packList adds the list of what was left out, if anything was, under a name that no file has.
func packList(p packer, denied []string, names map[string]bool) error {
	if len(denied) == 0 {
		return nil
	}
	var list strings.Builder
	for _, name := range denied {
		list.WriteString(harmless(name) + "\n")
	}
	name := LeftOut
	for names[name] {
		name = "_" + name
	}
	w, err := p.file(name, int64(list.Len()), time.Unix(0, 0).UTC().AddDate(10, 0, 0))
	if err == nil {
		_, err = io.WriteString(w, list.String())
	}
	return err
}

// inventory lists what a folder contains, folders before their content, and apart from that what an archive leaves out: folders that cannot be looked into, symlinks that lead to no file, and
// files that are larger than the whole workspace can be.
func (s *Live) inventory(ctx context.Context, l *guestlink.Link, dir string) (found []workspace.Entry, denied []string, err error) {
	size, room := int64(0), s.opts.Limits.Workspace
	for todo := []string{dir}; len(todo) > 0; {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		entries, more, err := l.ListFolder(ctx, next)
		switch {
		case next != dir && unreadable(err):
			denied = append(denied, next)
			continue
		case next != dir && errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, nil, err
		}
		for _, e := range entries {
			if e.Size > room || e.Link {
				denied = append(denied, e.Path)
				continue
			}
			if e.Size < 0 || e.Size > room-size || more || len(found) == maxArchived || strings.Count(e.Path, "/") > maxDepth {
				return nil, nil, tooMuch(room)
			}
			size += e.Size
			found = append(found, e)
			if e.Folder {
				todo = append(todo, e.Path)
			}
		}
	}
	return found, denied, nil
}

func tooMuch(room int64) error {
	return problem.New(problem.ArchiveTooLarge, fmt.Sprintf("the folder is too large for an archive: at most %d files and %d MiB", maxArchived, room>>20)).
		WithHint("download subfolders or single files instead")
}

// packer writes archives.
type packer interface {
	folder(name string, modified time.Time) error
	file(name string, size int64, modified time.Time) (io.Writer, error)
	Close() error
}

func pack(ctx context.Context, l *guestlink.Link, p packer, left *int64, e workspace.Entry, name string) error {
	modified := timeOf(e)
	if e.Folder {
		return p.folder(name, modified)
	}
	c, err := l.OpenFile(ctx, e.Path, 0, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	defer func() { _ = c.Close() }()
	if *left -= c.Len(); *left < 0 {
		return problem.New(problem.FileChanging, fmt.Sprintf("the file %.300q grew while it was read", e.Path)).WithHint("try again")
	}
	w, err := p.file(name, c.Len(), modified)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, c)
	return err
}

// growth is how much larger the files may have become since they were listed, in bytes.
const growth = 64 << 20

// timeOf returns a time that every format of archives can express: code can give a file any time.
func timeOf(e workspace.Entry) time.Time {
	t := e.Modified
	if t.Year() < 1980 || t.Year() > 2100 {
		return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return t
}

// harmless spells a name so that no program that unpacks it takes it for more than one name below where it unpacks: on some systems
// a backslash separates folders and a colon names a drive. Others are bytes that are not for terminals.
func harmless(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r == '\\' || r == ':' || unicode.IsControl(r) {
			fmt.Fprintf(&b, "%%%02X", r)
		} else {
			b.WriteRune(r)
		}
	}
	return path.Clean(b.String())
}

type tarball struct {
	*tar.Writer
	zip *gzip.Writer
}

func (t *tarball) folder(name string, modified time.Time) error {
	return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: modified})
}

func (t *tarball) file(name string, size int64, modified time.Time) (io.Writer, error) {
	return t.Writer, t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: modified})
}

func (t *tarball) Close() error { return errors.Join(t.Writer.Close(), t.zip.Close()) }

type zipper struct{ *zip.Writer }

func (z *zipper) folder(name string, modified time.Time) error {
	_, err := z.CreateHeader(&zip.FileHeader{Name: name + "/", Modified: modified})
	return err
}

func (z *zipper) file(name string, _ int64, modified time.Time) (io.Writer, error) {
	return z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: modified})
}
