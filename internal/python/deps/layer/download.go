package layer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
)

// mostMembers bounds an archive where the closure's files have no limit.
const mostMembers = 1 << 20

// noteEvery is after how many bytes a download tells how far it is.
const noteEvery = 256 << 10

// makeWheel fetches, unpacks and compiles a wheel. Its caller holds the wheel's lock.
func (m *making) makeWheel(ctx context.Context, w Wheel) (c *contents, err error) {
	work, err := m.store.workspace(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, work.remove()) }()
	file, size, err := m.download(ctx, w, work.path("wheel.whl"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	w.Size = size
	c, err = m.unpackWheel(ctx, w, file, work)
	if d := defect(""); errors.As(err, &d) {
		return nil, invalidWheel(w, d.Error())
	}
	return c, err
}

// download fetches a wheel into a new file, which may have bytes on their way to the disk, and makes sure that it is the right one.
func (m *making) download(ctx context.Context, w Wheel, path string) (file *os.File, size int64, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, 0, err
	}
	d := &receiver{making: m, wheel: w, file: f, hash: sha256.New()}
	m.tell(Progress{Phase: PhaseDownload, Wheel: w})
	err = m.fetch(ctx, w, d, d.expect)
	if d.err != nil { // whatever fetch made of it
		err = d.err
	}
	if err == nil && (hex.EncodeToString(d.hash.Sum(nil)) != w.SHA256) {
		err = mismatch(w)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	m.tell(Progress{Phase: PhaseDownload, Wheel: w})
	return f, d.size, nil
}

func mismatch(w Wheel) error {
	return problem.New(problem.PackageHashMismatch, fmt.Sprintf("the downloaded file of %s %s is not the one that was resolved (its hash differs)", w.Name, w.Version)).
		WithHint("try again; if that does not help, the package index or a proxy before it is faulty or cannot be trusted")
}

// receiver takes the bytes of a wheel. It stops at the first that there may not be.
type receiver struct {
	making *making
	wheel  Wheel
	file   *os.File
	hash   hash.Hash
	size   int64
	told   int64
	err    error
}

func (r *receiver) Write(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	r.size += int64(len(p))
	if r.wheel.Size > 0 && r.size > r.wheel.Size {
		r.err = mismatch(r.wheel)
		return 0, r.err
	}
	if r.err = r.making.charge(r.wheel, func(c *count) { c.download = max(c.download, r.size) }); r.err != nil {
		return 0, r.err
	}
	r.hash.Write(p)
	n, err := r.file.Write(p)
	r.err = err
	if r.making.told != nil {
		r.making.telling.Lock()
		r.making.received[r.wheel.SHA256] = r.size
		r.making.telling.Unlock()
		if r.size-r.told >= noteEvery {
			r.told = r.size
			r.making.tell(Progress{Phase: PhaseDownload, Wheel: r.wheel})
		}
	}
	return n, err
}

// expect hears from fetch how long the file will be, where the closure did not say.
func (r *receiver) expect(_, total int64) {
	if r.wheel.Size > 0 || total <= 0 {
		return
	}
	r.making.telling.Lock()
	r.making.total[r.wheel.SHA256] = total
	r.making.telling.Unlock()
}

// unpackWheel makes a wheel of a file and puts it into the store.
func (m *making) unpackWheel(ctx context.Context, w Wheel, file *os.File, work *workspace) (*contents, error) {
	m.tell(Progress{Phase: PhaseUnpack, Wheel: w})
	most := mostMembers
	if m.store.limits.Files > 0 {
		most = 4*m.store.limits.Files + 1000 // folders have entries too, and some files are left out
	}
	a, err := openArchive(file, w.Size, most)
	if errors.Is(err, errTooMany) {
		return nil, cmp.Or(m.charge(w, func(c *count) { c.files = most }), err)
	}
	if err != nil {
		return nil, err
	}
	p, err := makePlan(w, a)
	if err != nil {
		return nil, err
	}
	if isBomb(w.Size, p.size) {
		return nil, defectf("it unpacks to %s from %s", bytesText(p.size), bytesText(w.Size))
	}
	if err := m.charge(w, func(c *count) { c.unpacked, c.files = p.size, len(p.targets) }); err != nil {
		return nil, err
	}
	if err := m.store.checkRoom(p.size); err != nil {
		return nil, err
	}
	dir := work.path("whole")
	tree := work.path("whole/" + treeName)
	for _, d := range []string{dir, tree} {
		if err := makeFolder(d); err != nil {
			return nil, err
		}
	}
	files, err := unpack(ctx, a, p, tree)
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // gives its room to the bytecode
	m.tell(Progress{Phase: PhaseCompile, Wheel: w})
	compiling := compilation{store: m.store, python: m.python, tag: m.tag, work: work, tree: tree}
	if err := compiling.run(ctx, files); err != nil {
		return nil, err
	}
	c := &contents{Wheel: w, Files: len(files), Unpacked: p.size, Roots: rootsOf(files), Stripped: p.stripped, Format: unpackedFormat}
	return c, m.store.publishWheel(dir, wheelKey(w, m.tag), *c, files)
}

// publishWheel brings an unpacked wheel to the disk and gives it its name. What layers are made of is safe from then on: they are only further names of it.
func (s *Store) publishWheel(dir, key string, c contents, files []entry) error {
	if err := writeWheel(dir, c, files); err != nil {
		return err
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return err
	}
	if err := os.RemoveAll(s.wheelPath(key)); err != nil { // one that known refused
		return err
	}
	return os.Rename(dir, s.wheelPath(key))
}
