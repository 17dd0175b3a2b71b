package files

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cove/internal/core/durable"
	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/core/seal"
)

// unfinished is how the names of the files begin that have the bytes of uploads, beside the contents. The upload's id follows. A file is there from its upload's first
// byte on, and may have more bytes than the upload's record counts: those are not known to be on the disk, and are sent again.
const unfinished = ".upload-"

// Where contents are sealed, what comes between two syncs is a stream of its own, behind its length in 8 bytes: then nothing is ever sealed twice with the same key, and a
// record's count always ends with a stream.
const lengthBytes = 8

func (c *contents) uploadPath(id string) string { return filepath.Join(c.dir, unfinished+id) }

// openUpload opens the bytes of an upload for those that follow the first received ones, and drops what is there of them already. whole is false when the first ones
// are not there.
func (c *contents) openUpload(id string, received int64) (f *os.File, whole bool, err error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, false, c.unwritableError(err)
	}
	f, err = os.OpenFile(c.uploadPath(id), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, c.unwritableError(err)
	}
	at, whole, err := c.placeIn(f, received)
	if err == nil && !whole {
		return f, false, nil
	}
	if err == nil {
		err = f.Truncate(at)
	}
	if err == nil {
		_, err = f.Seek(at, io.SeekStart)
	}
	if err == nil && received == 0 {
		err = durable.SyncFolder(c.dir) // it may be new
	}
	if err != nil {
		return nil, false, c.unwritableError(errors.Join(err, f.Close()))
	}
	return f, true, nil
}

// placeIn returns where in the file of an upload the bytes end that were received.
func (c *contents) placeIn(f *os.File, received int64) (at int64, whole bool, err error) {
	if c.sealer == nil {
		info, err := f.Stat()
		return received, err == nil && info.Size() >= received, err
	}
	streams, at, err := c.streamsOf(f, received)
	for _, s := range streams {
		received -= s.Size()
	}
	return at, received == 0, err
}

// streamsOf opens the sealed streams of an upload that make up the bytes that were received, and returns where they end.
func (c *contents) streamsOf(f *os.File, received int64) (streams []*seal.Reader, at int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	length := make([]byte, lengthBytes)
	for received > 0 && at+lengthBytes <= info.Size() {
		if _, err := f.ReadAt(length, at); err != nil {
			return nil, 0, err
		}
		size := int64(binary.BigEndian.Uint64(length)) //nolint:gosec // a length that cannot be is refused below
		if size <= 0 || size > info.Size()-at-lengthBytes {
			break // it was cut short
		}
		s, err := c.sealer.NewReader(io.NewSectionReader(f, at+lengthBytes, size), size, false)
		if err != nil || s.Size() > received {
			break
		}
		streams, at, received = append(streams, s), at+lengthBytes+size, received-s.Size()
	}
	return streams, at, nil
}

// appendUpload writes the next bytes of an upload, at most uploadSync of them, and returns how many there were. They count when the file is synced.
func (c *contents) appendUpload(f *os.File, source io.Reader) (n int64, err error) {
	if c.sealer == nil {
		return io.CopyN(f, source, uploadSync)
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	if _, err := f.Write(make([]byte, lengthBytes)); err != nil {
		return 0, err
	}
	sealed, err := c.sealer.NewWriter(f)
	if err != nil {
		return 0, err
	}
	n, came := io.CopyN(sealed, source, uploadSync)
	length := make([]byte, lengthBytes)
	binary.BigEndian.PutUint64(length, uint64(c.sealer.Length(n))) //nolint:gosec // it is positive
	err = sealed.Close()
	if err == nil {
		_, err = f.WriteAt(length, at)
	}
	if err != nil {
		return n, err
	}
	return n, came
}

// linkUpload gives the bytes of an upload a second name, under which they can be put in place: until the file's record is written, the upload has them, too.
func (c *contents) linkUpload(ctx context.Context, id string, size int64) (*received, error) {
	f, err := os.Open(c.uploadPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingContent(id)
	}
	if err != nil {
		return nil, c.unwritableError(err)
	}
	defer func() { _ = f.Close() }()
	if c.sealer != nil {
		return c.joinUpload(ctx, f, id, size)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, NewBoundedReader(ctx, f, size))
	if err != nil {
		return nil, err
	}
	got := &received{path: filepath.Join(c.dir, c.mine+rand.Text()), hash: hex.EncodeToString(sum.Sum(nil)), size: n}
	if n != size {
		return nil, missingContent(id)
	}
	if os.Link(f.Name(), got.path) != nil { // a disk without links: a crash before the record is written costs the upload
		if err := os.Rename(f.Name(), got.path); err != nil {
			return nil, c.unwritableError(err)
		}
	}
	return got, nil
}

// joinUpload seals the bytes of an upload as one stream, which can be put in place.
func (c *contents) joinUpload(ctx context.Context, f *os.File, id string, size int64) (*received, error) {
	streams, _, err := c.streamsOf(f, size)
	if err != nil {
		return nil, err
	}
	all := make([]io.Reader, len(streams))
	for i, s := range streams {
		all[i] = s
	}
	got, err := c.receiveContent(ctx, io.MultiReader(all...), size)
	if err == nil && got.size != size {
		got.drop()
		err = missingContent(id)
	}
	return got, err
}

func (c *contents) dropUpload(id string) {
	_ = os.Remove(c.uploadPath(id)) // the sweep tries again
}

// listUploads lists the uploads that have bytes here.
func (c *contents) listUploads() (ids []string, err error) {
	entries, err := os.ReadDir(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if id, ok := strings.CutPrefix(e.Name(), unfinished); ok && ident.Valid(ident.Upload, id) {
			ids = append(ids, id)
		}
	}
	return ids, err
}

func tooLarge() *problem.Error {
	return problem.New(problem.FileTooLarge, "the file is larger than the server takes").WithHint("split it, or have the operator raise the limit")
}
