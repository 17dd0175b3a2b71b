package image

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"archive/tar"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
)

// Store is the folder that keeps images. It is made when needed.
type Store struct {
	Dir     string
	Size    int64 // bytes that one image may have, unpacked
	Total   int64 // bytes that all may take; those that are used least recently go first. 0: no bound
	Entries int   // files, folders and links that one image may have; 0: a million
	// Needed returns the digests of images that saved sessions need, which are not removed to make room; nil: none are.
	Needed func() []string
	// Removed is called when an image was removed, with what begins the names of what was made for it; nil: nothing is called.
	Removed func(family string)
}

const usualEntries = 1_000_000

// Progress is how far the unpacking of an image is.
type Progress struct {
	Reference     string
	Layer, Layers int   // from 1
	Done, All     int64 // bytes, as they come
}

// Get says how to get an image.
type Get struct {
	// Own says that it is this machine's user who asks: the keys of registries in their Docker configuration are used. Other callers get what anybody may have.
	Own      bool
	Anew     bool           // ask the registry even where an image of that reference is here
	Progress func(Progress) // called now and then; nil: nobody is told
	Waiting  func()         // called when another process is unpacking the same image; nil: nobody is told
	// Way is how registries are reached; nil: as the machine's settings say.
	Way *Way
}

// Ensure returns the image that a reference means, fetched and unpacked where that has not been done yet. Those who ask at the same time unpack it once. What fails or is cancelled leaves nothing
// after. Problems: image_missing, image_unreachable, image_unfit, image_damaged, image_too_large, images_full, disk_full, data_folder_unusable, canceled.
func (s Store) Ensure(ctx context.Context, r Reference, o Get) (*Image, error) {
	if r.kind == registry && !o.Anew {
		if i := s.here(r); i != nil {
			i.Touch()
			return i, nil
		}
	}
	if err := os.MkdirAll(s.Dir, 0o711); err != nil {
		return nil, unusable(s.Dir, err)
	}
	if err := os.Chmod(s.Dir, 0o711); err != nil { //nolint:gosec // sandboxes of other users pass through it, whatever the umask
		return nil, unusable(s.Dir, err)
	}
	s.sweep()
	img, clean, err := r.open(ctx, o, s.Dir)
	defer clean()
	if err != nil {
		return nil, err
	}
	d, err := describe(img)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	lock, err := s.lock(ctx, d.digest, o.Waiting)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }()
	i, err := s.Open(d.digest)
	if err != nil {
		if i, err = s.unpack(ctx, r, d, o); err != nil {
			return nil, err
		}
	}
	if err := s.name(i, r); err != nil {
		return nil, err
	}
	i.Touch()
	return i, nil
}

// Here returns the digest of the image that was asked for by a reference before, or "".
func (s Store) Here(r Reference) string {
	i := s.here(r)
	if i == nil {
		return ""
	}
	i.Touch()
	return i.Digest
}

// here returns the image that was asked for by a reference before, or nil.
func (s Store) here(r Reference) *Image {
	all, err := s.List()
	if err != nil {
		return nil
	}
	if at := slices.IndexFunc(all, func(i *Image) bool { return slices.Contains(i.References, r.String()) }); at >= 0 {
		return all[at]
	}
	return nil
}

// lock waits until this process alone may unpack the image with that digest.
func (s Store) lock(ctx context.Context, digest string, waiting func()) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(s.Dir, lockPrefix+strings.TrimPrefix(digest, digestPrefix)), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unusable(s.Dir, err)
	}
	for told := false; ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(unusable(s.Dir, err), f.Close())
		}
		if !told && waiting != nil {
			waiting()
		}
		told = true
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(problem.New(problem.GivenUp, "fetching the image was cancelled").WithCause(context.Cause(ctx)), f.Close())
		}
	}
}

// unpack makes an image's folder. The caller holds its lock.
func (s Store) unpack(ctx context.Context, r Reference, d described, o Get) (i *Image, err error) {
	if d.compressedSize() > s.Size {
		return nil, tooLarge(fmt.Sprintf("the image has %d MB, and one may have %d MB", d.compressedSize()>>20, s.Size>>20))
	}
	tmp, err := os.MkdirTemp(s.Dir, tmpPrefix)
	if err != nil {
		return nil, unusable(s.Dir, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, discard(tmp))
		}
	}()
	busy, err := holdTemporary(tmp)
	if err != nil {
		return nil, unusable(s.Dir, err)
	}
	defer func() { _ = busy.Close() }()
	i = &Image{Version: version, Digest: d.digest, Made: time.Now().UTC(), Env: d.config.Config.Env, User: d.config.Config.User, dir: tmp}
	if i.Start = slices.Concat(d.config.Config.Entrypoint, d.config.Config.Cmd); i.Start == nil {
		i.Start = []string{}
	}
	if dir := path.Clean("/" + d.config.Config.WorkingDir); dir != "/" {
		i.Dir = dir
	}
	if err := s.fill(ctx, r, d, i, o); err != nil {
		return nil, err
	}
	if err := s.makeRoom(i.Size); err != nil {
		return nil, err
	}
	if err := i.write(); err != nil {
		return nil, unusable(s.Dir, err)
	}
	final := filepath.Join(s.Dir, strings.TrimPrefix(d.digest, digestPrefix))
	if err := discard(final); err != nil { // of another version of cove
		return nil, err
	}
	if err := os.Rename(tmp, final); err != nil {
		return nil, unusable(s.Dir, err)
	}
	i.dir = final
	return i, nil
}

// holdTemporary says that a folder in the making has a maker who lives.
func holdTemporary(tmp string) (*os.File, error) {
	if err := os.Chmod(tmp, 0o711); err != nil { //nolint:gosec // as the folder that it becomes
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(tmp, UseName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return f, unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
}

// fill unpacks the layers and looks at what they make.
func (s Store) fill(ctx context.Context, r Reference, d described, i *Image, o Get) error {
	if err := os.Mkdir(i.Root(), 0o755); err != nil { //nolint:gosec // sandboxed code passes through it
		return unusable(s.Dir, err)
	}
	if err := os.Chmod(i.Root(), 0o755); err != nil { //nolint:gosec // whatever the umask
		return unusable(s.Dir, err)
	}
	most := s.Entries
	if most == 0 {
		most = usualEntries
	}
	u, err := newUnpacking(i.Root(), s.Size, most)
	if err != nil {
		return unusable(s.Dir, err)
	}
	defer u.close()
	p := Progress{Reference: r.String(), Layers: len(d.layers), All: d.compressedSize()}
	for n := range d.layers {
		p.Layer = n + 1
		told := func(bytes int64) {
			if p.Done += bytes; o.Progress != nil {
				o.Progress(p)
			}
		}
		if err := d.unpackLayer(ctx, n, u, told); err != nil {
			return s.unpackProblem(ctx, r, err)
		}
	}
	if err := u.furnish(); err != nil {
		return s.unpackProblem(ctx, r, err)
	}
	i.Python = u.python(i.Variables()["PATH"])
	i.Size, i.Entries, i.LeftOut = u.size, u.entries, u.leftOut
	return nil
}

func (s Store) unpackProblem(ctx context.Context, r Reference, err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EROFS) {
		return unusable(s.Dir, err)
	}
	return r.explain(ctx, err)
}

// isFormat says whether an error is about how a layer is written.
func isFormat(err error) bool {
	if _, is := errors.AsType[*problem.Error](err); is {
		return false
	}
	for _, one := range []error{tar.ErrHeader, tar.ErrFieldTooLong, gzip.ErrHeader, gzip.ErrChecksum, io.ErrUnexpectedEOF, zstd.ErrMagicMismatch, zstd.ErrCRCMismatch, zstd.ErrWindowSizeExceeded, zstd.ErrDecoderSizeExceeded} {
		if errors.Is(err, one) {
			return true
		}
	}
	_, is := errors.AsType[flate.CorruptInputError](err)
	return is
}

// name remembers by which reference an image was asked for; no other image has that any more.
func (s Store) name(i *Image, r Reference) error {
	all, err := s.List()
	if err != nil {
		return err
	}
	for _, other := range all {
		if at := slices.Index(other.References, r.String()); at >= 0 && other.Digest != i.Digest {
			other.References = slices.Delete(other.References, at, at+1)
			if err := other.write(); err != nil {
				return unusable(s.Dir, err)
			}
		}
	}
	if slices.Contains(i.References, r.String()) {
		return nil
	}
	const most = 16
	i.References = append(i.References, r.String())
	i.References = i.References[max(0, len(i.References)-most):]
	if err := i.write(); err != nil {
		return unusable(s.Dir, err)
	}
	return nil
}

func (i *Image) write() error {
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Join(i.dir, manifestName), 0o600, strings.NewReader(string(text)+"\n"))
}

// IsNeeded says whether a saved session needs an image.
func (s Store) IsNeeded(i *Image) bool {
	return s.Needed != nil && slices.Contains(s.Needed(), i.Digest)
}

// makeRoom removes images that nobody uses, the one used least recently first, until there is room for so many bytes more. Problems: images_full.
func (s Store) makeRoom(bytes int64) error {
	if s.Total <= 0 {
		return nil
	}
	all, err := s.List()
	if err != nil {
		return err
	}
	for _, i := range all {
		bytes += i.Size
	}
	var needed []string
	if s.Needed != nil && bytes > s.Total {
		needed = s.Needed()
	}
	for _, i := range slices.Backward(all) {
		if bytes <= s.Total {
			return nil
		}
		if slices.Contains(needed, i.Digest) {
			continue
		}
		switch err := s.Remove(i); {
		case err == nil:
			bytes -= i.Size
		case !problem.Has(err, problem.ImageUsed):
			return err
		}
	}
	if bytes <= s.Total {
		return nil
	}
	return problem.New(problem.ImagesFull, fmt.Sprintf("the images that are in use leave no room for this one: all together may take %d MB", s.Total>>20)).
		WithHint("remove some (cove image rm), delete sessions that have them, or have the operator set images.total")
}

// sweep removes what killed processes left behind.
func (s Store) sweep() {
	entries, _ := os.ReadDir(s.Dir)
	for _, e := range entries {
		dir := filepath.Join(s.Dir, e.Name())
		if !strings.HasPrefix(e.Name(), tmpPrefix) {
			continue
		}
		if info, err := e.Info(); err != nil || time.Since(info.ModTime()) < sweepGrace {
			continue
		}
		if f, err := os.Open(filepath.Join(dir, UseName)); err == nil {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
			_ = f.Close()
			if err != nil {
				continue // its maker lives
			}
		}
		_ = discard(dir) // what cannot be removed now is tried again next time
	}
}

// sweepGrace is how long a folder may have nobody who says that it is in the making: an archive of a layout while it is read.
const sweepGrace = time.Hour
