package builder

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cove/internal/machine/filesystem"
)

// Bounds of an archive.
const (
	mostEntries  = 50_000
	mostUnpacked = 4 << 30 // bytes of the archive, unpacked
	longestName  = 1024    // bytes of a path in it
	longestPart  = 255
	longestLink  = 4096 // bytes of what a symbolic link says
)

// Unpacker is where an archive is unpacked: guestlink.Files has it.
type Unpacker interface {
	WritePath(ctx context.Context, path string, r io.Reader, set filesystem.Set, fresh bool) (filesystem.Entry, error)
	MakePath(ctx context.Context, path string, set filesystem.Set, fresh bool) (filesystem.Entry, error)
	LinkPath(ctx context.Context, path, target string, replace bool) (filesystem.Entry, error)
	CopyPath(ctx context.Context, c filesystem.Copy) (filesystem.Entry, error)
}

// unpacked are the entries of an archive, by their paths: true for folders.
type unpacked map[string]bool

// unpack writes what an archive (tar, or that in gzip) has below a folder. The archive is its sender's: paths that lead out of it, that go through its own symbolic links or come twice,
// and what is no file, folder or link are refused, and so is more than the bounds. Symbolic links are written last, so that nothing is written through one.
func unpack(ctx context.Context, r io.Reader, folder string, to Unpacker) (unpacked, error) {
	text, err := decompressed(r)
	if err != nil {
		return nil, err
	}
	u := &unpacking{to: to, folder: folder, seen: unpacked{}, made: map[string]bool{".": true}, links: map[string]string{}}
	for t := tar.NewReader(&bounded{text, mostUnpacked}); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, archiveFault(err)
		}
		if err := u.entry(ctx, h, t); err != nil {
			return nil, err
		}
	}
	for name, target := range u.links {
		if _, err := to.LinkPath(ctx, path.Join(folder, name), target, true); err != nil {
			return nil, err
		}
	}
	return u.seen, nil
}

// decompressed is the text of an archive, with or without gzip.
func decompressed(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	first, err := b.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.Equal(first, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, archiveFault(err)
		}
		return z, nil
	}
	return b, nil
}

// bounded fails where more is read than it may have.
type bounded struct {
	r    io.Reader
	left int64
}

var errTooMuch = failedf("the archive of the files has more than %d GiB unpacked", int64(mostUnpacked)>>30)

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooMuch
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// archiveFault is what a reader of archives says, without what it was told by what it reads from.
func archiveFault(err error) error {
	if errors.Is(err, errTooMuch) {
		return errTooMuch
	}
	return failed("the archive of the files is no tar, or is broken")
}

type unpacking struct {
	to     Unpacker
	folder string
	seen   unpacked
	made   map[string]bool   // folders that are there
	links  map[string]string // symbolic links that are still to be made
	count  int
}

func (u *unpacking) entry(ctx context.Context, h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if u.count++; u.count > mostEntries {
		return failedf("the archive has more than %d entries", mostEntries)
	}
	name, err := entryName(h.Name)
	if err != nil {
		return err
	}
	if name == "." {
		if h.Typeflag != tar.TypeDir {
			return failedf("the archive has %.200q, which is no path", h.Name)
		}
		return nil
	}
	if err := u.free(name, h.Typeflag == tar.TypeDir); err != nil {
		return err
	}
	at := path.Join(u.folder, name)
	mode := uint32(h.Mode) & 0o777 // set-user-id and its like stay out
	switch h.Typeflag {
	case tar.TypeDir:
		u.seen[name] = true
		return u.makeFolder(ctx, name, mode|0o700)
	case tar.TypeReg:
		u.seen[name] = false
		if err := u.makeFolder(ctx, path.Dir(name), 0o755); err != nil {
			return err
		}
		set := filesystem.Set{Mode: &mode}
		if year := h.ModTime.Year(); year >= 1980 && h.ModTime.Before(time.Now().AddDate(1, 0, 0)) {
			set.Modified = &h.ModTime
		}
		_, err = u.to.WritePath(ctx, at, content, set, false)
		return err
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) > longestLink || strings.ContainsRune(h.Linkname, 0) || !utf8.ValidString(h.Linkname) {
			return failedf("the archive's link %.200q leads to no path", name)
		}
		u.seen[name], u.links[name] = false, h.Linkname
		return u.makeFolder(ctx, path.Dir(name), 0o755)
	case tar.TypeLink:
		of, err := entryName(h.Linkname)
		if folder, known := u.seen[of]; err != nil || !known || folder || u.links[of] != "" {
			return failedf("the archive's entry %.200q is the same file as %.200q, which is not before it", name, h.Linkname)
		}
		u.seen[name] = false
		if err := u.makeFolder(ctx, path.Dir(name), 0o755); err != nil {
			return err
		}
		_, err = u.to.CopyPath(ctx, filesystem.Copy{From: path.Join(u.folder, of), To: at})
		return err
	}
	return failedf("the archive's entry %.200q is no file, folder or link (devices, pipes and sockets are not copied)", name)
}

// entryName is the path of an entry, which stays in the archive.
func entryName(said string) (string, error) {
	name := path.Clean(strings.TrimPrefix(said, "./"))
	switch {
	case said == "" || strings.ContainsRune(said, 0) || !utf8.ValidString(said) || len(said) > longestName:
		return "", failedf("the archive has %.200q, which is no path", said)
	case path.IsAbs(said) || slices.Contains(strings.Split(said, "/"), "..") || !fs.ValidPath(name):
		return "", failedf("the archive has %.200q, which leads out of it", said)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > longestPart {
			return "", failedf("the archive has %.200q, which is no path", said)
		}
	}
	return name, nil
}

// free says whether an entry may be written there: nothing else is, and what it is in are folders.
func (u *unpacking) free(name string, folder bool) error {
	if was, there := u.seen[name]; there && (!was || !folder) {
		return failedf("the archive has %.200q twice", name)
	}
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		if was, there := u.seen[above]; there && !was {
			return failedf("the archive has %.200q below %.200q, which is no folder", name, above)
		}
	}
	if !folder && u.made[name] {
		return failedf("the archive has %.200q twice", name)
	}
	return nil
}

// makeFolder makes a folder and those that it is in. One that is there already gets the mode.
func (u *unpacking) makeFolder(ctx context.Context, name string, mode uint32) error {
	if u.made[name] && !u.seen[name] {
		return nil
	}
	if above := path.Dir(name); name != "." && !u.made[above] {
		if err := u.makeFolder(ctx, above, 0o755); err != nil {
			return err
		}
	}
	if u.made[name] {
		return nil
	}
	u.made[name] = true
	_, err := u.to.MakePath(ctx, path.Join(u.folder, name), filesystem.Set{Mode: &mode}, false)
	return err
}

// cleanSource is the path of a source within the archive; "." is all of it.
func cleanSource(source string) (string, error) {
	clean := path.Clean("/" + source)[1:]
	switch {
	case slices.Contains(strings.Split(source, "/"), ".."):
		return "", failedf("the source %.200q leads out of the context", source)
	case strings.Contains(source, "**"):
		return "", failedf("the source %.200q has **, which cove does not have; name the folder", source)
	case clean == "":
		return ".", nil
	}
	if _, err := path.Match(clean, "x"); err != nil {
		return "", failedf("the source %.200q is no pattern", source)
	}
	return clean, nil
}

// match returns the paths of the archive that a source means, sorted.
func (u unpacked) match(source string) ([]string, error) {
	clean, err := cleanSource(source)
	if err != nil {
		return nil, err
	}
	if clean == "." {
		return []string{"."}, nil
	}
	var all []string
	depth := strings.Count(clean, "/")
	for name := range u {
		// A folder may have no entry of its own.
		parts := strings.Split(name, "/")
		if len(parts) <= depth {
			continue
		}
		name = strings.Join(parts[:depth+1], "/")
		if ok, _ := path.Match(clean, name); ok || name == clean {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		return nil, failedf("the context has nothing that is %.200q", source)
	}
	return all, nil
}
