package files

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
	"cove/internal/core/seal"
)

// contents keeps the bytes of files by their SHA-256, each content once:
//
//	<dir>/ab/cd/abcd...   a content, whole, for as long as a record names it
//	<dir>/.new-*          one that is being received, or what a killed process left of one
//	<dir>/.upload-*       one that comes in pieces; see uploadbytes.go
//
// A content is on the disk before its record is written, and is removed after its last record: a crash between the two leaves a content without a record, which
// the sweep removes. Adding the record of a content and removing a content take the same lock, which other processes of the home take, too.
type contents struct {
	dir    string
	sealer *seal.Sealer // what contents are sealed with; nil: they are not
	mine   string       // part of the names of files that this process receives

	locks  [64]sync.Mutex // by the hash's beginning
	shared struct {
		once sync.Once
		file *os.File // each of its bytes is a lock between processes; nil where the file could not be made
	}

	mu   sync.Mutex
	held map[string]int64 // by project: bytes whose records are not written yet
	next int              // the folder that is swept next
}

const (
	incoming = ".new-"
	// incomingGrace is how long a file that another process receives may get no byte before it counts as given up.
	incomingGrace = time.Hour
)

func newContents(dir string, sealer *seal.Sealer) *contents {
	return &contents{dir: dir, sealer: sealer, mine: incoming + rand.Text() + "-", held: map[string]int64{}}
}

// lockContent is held from before a content is put in place until its record is written, and while a content is removed.
func (c *contents) lockContent(hash string) (unlock func()) {
	var n byte
	if b, err := hex.DecodeString(hash[:2]); err == nil {
		n = b[0]
	}
	at := int(n) % len(c.locks)
	m := &c.locks[at]
	m.Lock()
	c.lockByte(unix.F_WRLCK, at)
	return func() {
		c.lockByte(unix.F_UNLCK, at)
		m.Unlock()
	}
}

// lockByte acquires or releases the lock that keeps other processes of the home out. The system releases it when a process ends.
func (c *contents) lockByte(kind int16, at int) {
	c.shared.once.Do(func() {
		if os.MkdirAll(filepath.Dir(c.dir), 0o700) == nil {
			c.shared.file, _ = os.OpenFile(c.dir+".lock", os.O_RDWR|os.O_CREATE, 0o600)
		}
	})
	if c.shared.file == nil {
		return // an error that prevents making this file prevents writing contents too
	}
	lock := unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: int64(at), Len: 1}
	for errors.Is(unix.FcntlFlock(c.shared.file.Fd(), unix.F_OFD_SETLKW, &lock), unix.EINTR) {
		continue // interrupted by a signal: try again
	}
}

// isHash says whether a record's hash has the form of a content's name.
func isHash(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

func (c *contents) pathOf(hash string) string { return filepath.Join(c.dir, hash[:2], hash[2:4], hash) }

// received is a content that is on the disk under another name.
type received struct {
	path string
	hash string
	size int64
}

// drop removes it, unless it was put in place.
func (r *received) drop() {
	if r.path != "" {
		_ = os.Remove(r.path) // the sweep removes it later
	}
}

// receiveContent writes r's bytes, at most limit of them, to the disk. After an error none of them is left there.
func (c *contents) receiveContent(ctx context.Context, r io.Reader, limit int64) (*received, error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, c.unwritableError(err)
	}
	f, err := os.OpenFile(filepath.Join(c.dir, c.mine+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, c.unwritableError(err)
	}
	got := &received{path: f.Name()}
	source, sum := NewBoundedReader(ctx, r, limit), sha256.New()
	sealed, err := c.sealer.NewWriter(f)
	if err == nil {
		got.size, err = io.Copy(io.MultiWriter(sealed, sum), source)
	}
	if err == nil {
		err = errors.Join(sealed.Close(), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		got.drop()
		if source.err != nil {
			return nil, source.err
		}
		return nil, c.unwritableError(err)
	}
	got.hash = hex.EncodeToString(sum.Sum(nil))
	return got, nil
}

// placeContent makes received bytes the content of their hash, unless it exists already. The caller holds its lock.
func (c *contents) placeContent(r *received) error {
	target := c.pathOf(r.hash)
	if info, err := os.Stat(target); err == nil && info.Size() == c.sealer.Length(r.size) {
		return nil
	}
	for _, dir := range []string{c.dir, filepath.Dir(filepath.Dir(target))} {
		if err := c.makeFolder(dir, target); err != nil {
			return c.unwritableError(err)
		}
	}
	if err := os.Rename(r.path, target); err != nil {
		return c.unwritableError(err)
	}
	r.path = ""
	if err := durable.SyncFolder(filepath.Dir(target)); err != nil {
		return c.unwritableError(err)
	}
	return nil
}

// makeFolder makes the folder below dir that leads to target, durably: it exists after a crash, too.
func (c *contents) makeFolder(dir, target string) error {
	rel, err := filepath.Rel(dir, target)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(rel, string(filepath.Separator))
	if err := os.Mkdir(filepath.Join(dir, first), 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return durable.SyncFolder(dir)
}

// openHash opens a content. One that is not sealed is an *os.File, of which others can make links.
func (c *contents) openHash(hash string) (content io.ReadSeekCloser, err error) {
	if !isHash(hash) {
		return nil, missingContent(hash)
	}
	if c.sealer == nil {
		content, err = os.Open(c.pathOf(hash))
	} else {
		content, err = c.sealer.OpenFile(c.pathOf(hash), false)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingContent(hash)
	}
	return content, err
}

func missingContent(hash string) error {
	return problem.New(problem.ContentMissing, "the content of the file is not in the server's data folder").WithCause(errors.New("content " + hash))
}

func (c *contents) unwritableError(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return problem.New(problem.DiskFull, "there is no room left on the server's disk").WithCause(err).WithHint("the operator has to make room")
	}
	return problem.New(problem.FilesUnwritable, "the server cannot write to its folder of files").WithCause(err)
}

// removeContents removes contents that no record names any more. unused tells which these are.
func (c *contents) removeContents(hashes []string, unused func([]string) ([]string, error)) error {
	var failed error
	for _, hash := range hashes {
		if isHash(hash) {
			failed = errors.Join(failed, c.removeOne(hash, unused))
		}
	}
	return failed
}

func (c *contents) removeOne(hash string, unused func([]string) ([]string, error)) error {
	defer c.lockContent(hash)()
	gone, err := unused([]string{hash})
	if err != nil || len(gone) == 0 {
		return err
	}
	if err := os.Remove(c.pathOf(hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// staleContents lists contents of one part of the folder, another one every time, and removes what dead processes were receiving.
func (c *contents) staleContents() ([]string, error) {
	c.mu.Lock()
	part := fmt.Sprintf("%02x", c.next)
	c.next = (c.next + 1) % 256
	c.mu.Unlock()
	entries, err := os.ReadDir(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), incoming) && !strings.HasPrefix(e.Name(), c.mine) && isLeftOver(e) {
			_ = os.Remove(filepath.Join(c.dir, e.Name())) // the next sweep tries again
		}
	}
	found, err := filepath.Glob(filepath.Join(c.dir, part, "*", part+"*"))
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	return found, err
}

// isLeftOver says whether another process has given up receiving a file: nothing was written to it for incomingGrace.
func isLeftOver(e fs.DirEntry) bool {
	info, err := e.Info()
	return err == nil && time.Since(info.ModTime()) > incomingGrace
}

// NewBoundedReader returns a reader of at most limit bytes of r that fails when there are more or ctx has ended.
func NewBoundedReader(ctx context.Context, r io.Reader, limit int64) *BoundedReader {
	return &BoundedReader{ctx: ctx, r: r, left: limit}
}

// BoundedReader reads at most left bytes, and fails when there are more or ctx has ended.
type BoundedReader struct {
	ctx  context.Context
	r    io.Reader
	left int64
	full *problem.Error // when there are more; nil: file_too_large
	err  error
}

// Read implements io.Reader.
func (b *BoundedReader) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		b.err = err
		return 0, err
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left+1)])
	if b.ctx.Err() != nil {
		err = b.ctx.Err()
	} else if int64(n) > b.left {
		err = cmp.Or(b.full, tooLarge())
	}
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}
