package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Bounds of what is in a layer, besides those of an image.
const (
	longestPath = 4096 // bytes
	longestPart = 255
	longestLink = 4096
	deepestPath = 256 // folders
)

// Names in layers that say what of the layers below is gone.
const (
	whiteout       = ".wh."
	whiteoutOpaque = ".wh..wh..opq"
	whiteoutOther  = ".wh..wh." // what else union file systems keep for themselves
)

// unpacking writes the layers of an image into a folder, one over the other. Every path is looked up by the kernel as if that folder were the root, so that no link leads out of it.
type unpacking struct {
	root    int // descriptor of the folder
	left    int64
	entries int
	most    int // entries
	size    int64
	leftOut int
	own     map[string]bool // what the present layer has, and the folders that these are in

	folder string // of above
	above  *os.Root
}

// UnpackTar unpacks a tar file that nobody has looked at into an empty folder, as the layer of an image: no path leads out of the folder, and there are no devices, owners and set-user-ID bits. It may
// have that many bytes and entries. Problems: image_damaged, image_too_large.
func UnpackTar(dir string, text io.Reader, bytes int64, entries int) (size int64, unpacked int, err error) {
	u, err := newUnpacking(dir, bytes, entries)
	if err != nil {
		return 0, 0, err
	}
	defer u.close()
	// What is between the files takes time as well, and what follows them.
	all := &io.LimitedReader{R: text, N: bytes + int64(entries)*paddingPerEntry}
	err = u.layer(all)
	if err == nil {
		_, err = io.Copy(io.Discard, all)
	}
	switch {
	case all.N <= 0:
		err = tooLarge("the image has more bytes than it may")
	case err != nil && isFormat(err):
		err = damaged("its files are no tar file").WithCause(err)
	}
	return u.size, u.entries, err
}

func newUnpacking(dir string, bytes int64, entries int) (*unpacking, error) {
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &unpacking{root: root, left: bytes, most: entries}, nil
}

func (u *unpacking) close() {
	u.forget()
	_ = unix.Close(u.root)
}

// forget closes the folder that is at hand, which may not be where its path leads any more.
func (u *unpacking) forget() {
	if u.above != nil {
		_ = u.above.Close()
	}
	u.above, u.folder = nil, ""
}

// layer unpacks a layer, whose text is the tar file.
func (u *unpacking) layer(text io.Reader) error {
	u.own = map[string]bool{}
	for t := tar.NewReader(text); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if u.entries++; u.entries > u.most {
			return tooLarge(fmt.Sprintf("the image has more than %d files, folders and links", u.most))
		}
		if err := u.entry(h, t); err != nil {
			return err
		}
	}
}

// clean is the path of an entry, from the image's root, without a slash before it.
func clean(name string) (string, error) {
	if len(name) > longestPath || strings.ContainsRune(name, 0) || !utf8.ValidString(name) {
		return "", damaged(fmt.Sprintf("a layer has %.100q, which is no path", name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", damaged(fmt.Sprintf("a layer has %.200q, which leads out of it", name))
		}
	}
	p := strings.TrimPrefix(path.Clean("/"+name), "/")
	if strings.Count(p, "/") >= deepestPath {
		return "", damaged(fmt.Sprintf("a layer has %.100q..., which is too deep", name))
	}
	for part := range strings.SplitSeq(p, "/") {
		if len(part) > longestPart {
			return "", damaged(fmt.Sprintf("a layer has %.100q, which is no path", name))
		}
	}
	return p, nil
}

func (u *unpacking) entry(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	p, err := clean(h.Name)
	if err != nil || p == "" {
		return err
	}
	folder, base := path.Split(p)
	folder = strings.TrimSuffix(folder, "/")
	if gone, is := strings.CutPrefix(base, whiteout); is {
		return u.whiteout(folder, base, gone)
	}
	if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeSymlink && h.Typeflag != tar.TypeLink {
		u.leftOut++
		return nil
	}
	above, err := u.open(folder, true)
	if err != nil {
		return u.fault(p, err)
	}
	for at := p; at != "." && !u.own[at]; at = path.Dir(at) {
		u.own[at] = true
	}
	if err := u.make(above, base, h, content); err != nil {
		return u.fault(p, err)
	}
	return nil
}

// fault is an error with the path that it is of.
func (u *unpacking) fault(p string, err error) error {
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, fs.ErrExist):
		return damaged(fmt.Sprintf("a layer has %.200q below something that is no folder", p)).WithCause(err)
	}
	return err
}

// make makes one entry, in the place of what lower layers, or this one, have there.
func (u *unpacking) make(above *os.Root, base string, h *tar.Header, content io.Reader) error {
	was, err := above.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case was.IsDir() && h.Typeflag == tar.TypeDir:
		return above.Chmod(base, modeOf(h))
	default:
		if err := above.RemoveAll(base); err != nil {
			return err
		}
		if !was.Mode().IsRegular() {
			defer u.forget() // it may have been on the way to the folder at hand
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := above.Mkdir(base, 0o700); err != nil {
			return err
		}
		return above.Chmod(base, modeOf(h))
	case tar.TypeReg:
		return u.file(above, base, h, content)
	case tar.TypeLink:
		return u.link(above, base, h.Linkname)
	}
	if h.Linkname == "" || len(h.Linkname) > longestLink || strings.ContainsRune(h.Linkname, 0) {
		return damaged(fmt.Sprintf("the link %.200q leads to no path", h.Name))
	}
	u.size += int64(len(h.Linkname))
	return above.Symlink(h.Linkname, base)
}

// modeOf are the rights of a file or a folder in sandboxes: nothing in an image is secret from those who use it, and nobody gets more rights by it.
func modeOf(h *tar.Header) fs.FileMode {
	mode := fs.FileMode(h.Mode).Perm() | 0o644 //nolint:gosec // Perm takes the lowest bits
	if h.Typeflag == tar.TypeDir || mode&0o111 != 0 {
		mode |= 0o111
	}
	return mode &^ 0o022 // what sandboxes may write to, they write to in their own layers
}

func (u *unpacking) file(above *os.Root, base string, h *tar.Header, content io.Reader) error {
	if h.Size > u.left {
		return tooLarge("the image has more bytes than it may")
	}
	f, err := above.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, content)
	if u.left -= n; err == nil && u.left < 0 {
		err = tooLarge("the image has more bytes than it may")
	}
	u.size += n
	if err == nil {
		err = f.Chmod(modeOf(h))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if year := h.ModTime.Year(); year >= 1980 && year < 2100 {
		return above.Chtimes(base, time.Time{}, h.ModTime)
	}
	return nil
}

// link makes another name of a file, or of a symbolic link, that the image has.
func (u *unpacking) link(above *os.Root, base, of string) error {
	p, err := clean(of)
	if err != nil {
		return err
	}
	missing := damaged(fmt.Sprintf("a layer has another name of %.200q, which is no file of the image", of))
	folder, target := path.Split(p)
	if target == "" {
		return missing
	}
	from, err := u.find(strings.TrimSuffix(folder, "/"))
	if err != nil {
		return missing.WithCause(err)
	}
	defer func() { _ = from.Close() }()
	info, err := from.Lstat(target)
	if err != nil || !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0 {
		return missing.WithCause(err)
	}
	a, err := from.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }()
	b, err := above.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	return unix.Linkat(int(a.Fd()), target, int(b.Fd()), base, 0)
}

// whiteout removes what lower layers have: one entry of a folder, or all of them.
func (u *unpacking) whiteout(folder, base, gone string) error {
	if base != whiteoutOpaque && strings.HasPrefix(base, whiteoutOther) {
		return nil
	}
	if base != whiteoutOpaque && (gone == "" || gone == "." || gone == "..") {
		return damaged(fmt.Sprintf("a layer removes %.200q, which is no entry of a folder", path.Join(folder, base)))
	}
	at, err := u.find(folder)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil // it was not there
	}
	if err != nil {
		return u.fault(folder, err)
	}
	defer func() { _ = at.Close() }()
	u.forget()
	if base != whiteoutOpaque {
		return u.removeLower(at, folder, gone)
	}
	return u.emptyLower(at, folder)
}

// emptyLower removes what lower layers have in a folder.
func (u *unpacking) emptyLower(at *os.Root, folder string) error {
	entries, err := fs.ReadDir(at.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := u.removeLower(at, folder, e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// removeLower removes an entry of a folder, but for what the present layer has made.
func (u *unpacking) removeLower(at *os.Root, folder, name string) error {
	p := path.Join(folder, name)
	if !u.own[p] {
		return at.RemoveAll(name)
	}
	if info, err := at.Lstat(name); err != nil || !info.IsDir() {
		return nil //nolint:nilerr // nothing of lower layers is there
	}
	below, err := at.OpenRoot(name)
	if err != nil {
		return err
	}
	defer func() { _ = below.Close() }()
	return u.emptyLower(below, p)
}

// open returns a folder of the image, made where it is missing. It stays at hand, since the next entry is likely to be in the same.
func (u *unpacking) open(folder string, missing bool) (*os.Root, error) {
	if u.above != nil && u.folder == folder {
		return u.above, nil
	}
	u.forget()
	at, err := u.find(folder)
	if errors.Is(err, fs.ErrNotExist) && missing && folder != "" {
		parent, base := path.Split(folder)
		above, err := u.open(strings.TrimSuffix(parent, "/"), true)
		if err != nil {
			return nil, err
		}
		if err := above.Mkdir(base, 0o755); err != nil {
			return nil, err
		}
		if err := above.Chmod(base, 0o755); err != nil {
			return nil, err
		}
		u.forget()
		if at, err = u.find(folder); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	u.above, u.folder = at, folder
	return at, nil
}

// find returns a folder of the image. Links on the way to it lead where they would if the image were the whole machine.
func (u *unpacking) find(folder string) (*os.Root, error) {
	if folder == "" {
		folder = "."
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(u.root, folder, &how)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: folder, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	return os.OpenRoot("/proc/self/fd/" + strconv.Itoa(fd))
}
