package hub

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cove/internal/durable"
	"cove/internal/ident"
	"cove/internal/problem"
)

// unfinished is how the names of the files begin that have the bytes of uploads, beside the contents. The upload's id follows. A file is there from its upload's first
// byte on, and may have more bytes than the upload's record counts: those are not known to be on the disk, and are sent again.
const unfinished = ".upload-"

func (c *contents) uploadPath(id string) string { return filepath.Join(c.dir, unfinished+id) }

// openUpload opens the bytes of an upload for those that follow the first received ones, and drops what is there of them already. whole is false when the first ones
// are not there.
func (c *contents) openUpload(id string, received int64) (f *os.File, whole bool, err error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, false, c.unwritable(err)
	}
	f, err = os.OpenFile(c.uploadPath(id), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, c.unwritable(err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() < received {
		return f, false, nil
	}
	if err == nil {
		err = f.Truncate(received)
	}
	if err == nil {
		_, err = f.Seek(received, io.SeekStart)
	}
	if err == nil && received == 0 {
		err = durable.SyncFolder(c.dir) // it may be new
	}
	if err != nil {
		return nil, false, c.unwritable(errors.Join(err, f.Close()))
	}
	return f, true, nil
}

// linked gives the bytes of an upload a second name, under which they can be put in place: until the file's record is written, the upload has them, too.
func (c *contents) linked(ctx context.Context, id string, size int64) (*received, error) {
	f, err := os.Open(c.uploadPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(id)
	}
	if err != nil {
		return nil, c.unwritable(err)
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	n, err := io.Copy(sum, &limited{ctx: ctx, r: f, left: size})
	if err != nil {
		return nil, err
	}
	got := &received{path: filepath.Join(c.dir, c.mine+rand.Text()), hash: hex.EncodeToString(sum.Sum(nil)), size: n}
	if n != size {
		return nil, missing(id)
	}
	if os.Link(f.Name(), got.path) != nil { // a disk without links: a crash before the record is written costs the upload
		if err := os.Rename(f.Name(), got.path); err != nil {
			return nil, c.unwritable(err)
		}
	}
	return got, nil
}

func (c *contents) dropUpload(id string) {
	_ = os.Remove(c.uploadPath(id)) // the sweep tries again
}

// uploads lists the uploads that have bytes here.
func (c *contents) uploads() (ids []string, err error) {
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
