// Package sharedmem keeps memory that sandboxes have in common. A heap is a file with memory of an interpreter as it was when a template was made; every
// sandbox that begins with that template has the file mapped, privately, so that the machine holds each page once until a sandbox writes to it.
//
// Heaps are files in a folder of their own that is mounted in every sandbox, named for their content, and never change:
//
//	<dir>/heap-<id>                     the heap; id is the beginning of its SHA-256
//	<checkpoint>/shared/heap-<id>       a link to it in each checkpoint that needs it
//
// The memory of one interpreter is a Set of heaps, since what a sandbox's save costs grows with the square of the number of pieces of one file that it has mapped.
// A heap that has no other link is needed by no checkpoint, and Sweep removes it.
package sharedmem

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
)

// Folder is the folder in a checkpoint with what it has in common with others.
const Folder = "shared"

const (
	prefix  = "heap-"
	part    = ".new-heap-"
	idBytes = 16
	// birth is the time of every heap, in seconds since 1970: a saved sandbox remembers it of the files that it has mapped, and a copy has to have the same.
	birth = 1_700_000_000
)

// Heap is a heap that is open, and stays readable whatever becomes of its name. All sandboxes of a process that have memory from it share the open file: there are
// dozens for each, and a process may not have many thousands open.
type Heap struct {
	Name string
	file *os.File
	dir  string
	look look

	mu       sync.Mutex
	attached string // where a checkpoint has it, on whichever disk that is; "" when none is known

	users int // guarded by opened.mu
}

// opened has the heaps that are open in this process.
var opened = struct {
	mu sync.Mutex
	by map[identity]*Heap
}{by: map[identity]*Heap{}}

// identity tells one file from all others that are open.
type identity struct {
	dir           string
	device, inode uint64
}

// look is how a change of a file shows. The time of its last change of state does not count: each new link to the file sets that.
type look struct {
	size     int64
	modified time.Time
}

// Add makes a heap in the folder dir of what fill writes. The caller closes it.
func Add(dir string, fill func(io.Writer) error) (*Heap, error) {
	f, err := os.CreateTemp(dir, part+"*")
	if err != nil {
		return nil, fmt.Errorf("make a heap: %w", err)
	}
	name, err := write(f, fill)
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err == nil {
		err = durable.SyncFolder(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("make a heap: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return open(dir, name)
}

// write fills a new heap, closes it and returns its name.
func write(f *os.File, fill func(io.Writer) error) (name string, err error) {
	h := sha256.New()
	err = fill(io.MultiWriter(f, h))
	if err == nil {
		err = f.Chmod(0o444)
	}
	if err == nil {
		born := time.Unix(birth, 0)
		err = os.Chtimes(f.Name(), born, born)
	}
	if err == nil {
		err = f.Sync()
	}
	return nameOf(h), errors.Join(err, f.Close())
}

// nameOf is the name of the heap whose content h has been given.
func nameOf(h hash.Hash) string { return prefix + hex.EncodeToString(h.Sum(nil)[:idBytes]) }

// open opens a heap that the caller closes. One that has changed since this process opened it is opened anew: what uses the one that was open before is told, and nothing else.
func open(dir, name string) (*Heap, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("open a heap: %w", err)
	}
	h := &Heap{Name: name, file: f, dir: dir, users: 1}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a heap: %w", err), f.Close())
	}
	h.look = lookOf(info)
	id := identify(dir, info)
	opened.mu.Lock()
	defer opened.mu.Unlock()
	if have := opened.by[id]; have != nil && have.Intact() == nil {
		have.users++
		return have, f.Close()
	}
	opened.by[id] = h
	return h, nil
}

func identify(dir string, info fs.FileInfo) identity {
	st, _ := info.Sys().(*syscall.Stat_t)
	return identity{dir, st.Dev, st.Ino}
}

func lookOf(info fs.FileInfo) look { return look{info.Size(), info.ModTime()} }

// Close lets the heap go.
func (h *Heap) Close() error {
	opened.mu.Lock()
	defer opened.mu.Unlock()
	if h.users--; h.users > 0 {
		return nil
	}
	if info, err := h.file.Stat(); err == nil {
		if id := identify(h.dir, info); opened.by[id] == h {
			delete(opened.by, id)
		}
	}
	return h.file.Close()
}

// Intact returns a problem with code "memory_changed" when the file was changed since the heap was opened: then what maps it has memory that nobody has computed.
func (h *Heap) Intact() error {
	info, err := h.file.Stat()
	if errors.Is(err, fs.ErrClosed) || err == nil && lookOf(info) == h.look {
		return nil
	}
	return changed(h.Name)
}

func changed(name string) error {
	return problem.New(problem.MemoryChanged, "the file "+name+", from which the session has a part of its memory, was changed on the disk").
		WithHint("nothing but cove may write below its data folder; the template is made again by itself, and sessions that were saved with this file cannot be resumed")
}

// Attach notes in the checkpoint in the folder image that it needs the heap, and keeps the heap there.
func (h *Heap) Attach(image string) error {
	if err := h.Intact(); err != nil {
		return err
	}
	folder := filepath.Join(image, Folder)
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	to := filepath.Join(folder, h.Name)
	h.mu.Lock()
	defer h.mu.Unlock()
	if os.Link(filepath.Join(h.dir, h.Name), to) == nil || os.Link(h.attached, to) == nil {
		return nil
	}
	// It was removed meanwhile, or this is the first checkpoint on another disk.
	if err := replicate(io.NewSectionReader(h.file, 0, h.look.size), to, h.Name); err != nil {
		return err
	}
	h.attached = to
	return nil
}

// Attached returns the names of the heaps that the checkpoint in the folder image needs.
func Attached(image string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(image, Folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if !valid(e.Name()) {
			return nil, fmt.Errorf("%s has %q, which is no heap", filepath.Join(image, Folder), e.Name())
		}
		names = append(names, e.Name())
	}
	return names, nil
}

// Of opens the heaps that a checkpoint needs, which the caller has verified, in the folder dir, where they are put when they are not there.
func Of(image, dir string) (Set, error) {
	names, err := Attached(image)
	if err != nil {
		return nil, err
	}
	set := make(Set, 0, len(names))
	for _, name := range names {
		h, err := of(image, dir, name)
		if err != nil {
			return nil, errors.Join(err, set.Close())
		}
		set = append(set, h)
	}
	return set, nil
}

func of(image, dir, name string) (*Heap, error) {
	kept, path := filepath.Join(image, Folder, name), filepath.Join(dir, name)
	if !same(kept, path) && Verify(path) != nil {
		_ = os.Remove(path)
		if _, err := Share(kept, path); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("open a heap: %w", err)
		}
	}
	h, err := open(dir, name)
	if err == nil {
		h.mu.Lock()
		h.attached = kept
		h.mu.Unlock()
	}
	return h, err
}

func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// Share links the heap at from to the path to as well, or copies it there when the two are on different disks. It says whether it was copied: a copy has been compared with the heap's name.
func Share(from, to string) (copied bool, err error) {
	if err := os.Link(from, to); err == nil || errors.Is(err, fs.ErrExist) {
		return false, err
	}
	f, err := os.Open(from)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	return true, replicate(f, to, filepath.Base(from))
}

// replicate makes a copy, which appears whole or not at all.
func replicate(from io.Reader, to, name string) error {
	f, err := os.CreateTemp(filepath.Dir(to), part+"*")
	if err != nil {
		return err
	}
	got, err := write(f, func(w io.Writer) error {
		_, err := io.Copy(w, from)
		return err
	})
	if err == nil && got != name {
		err = changed(name)
	}
	if err == nil {
		err = os.Rename(f.Name(), to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Verify reads the heap at path, and returns a problem with code "memory_changed" when it is not what it was.
func Verify(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if name := filepath.Base(path); name != nameOf(h) {
		return changed(name)
	}
	return nil
}

func valid(name string) bool {
	id, ok := strings.CutPrefix(name, prefix)
	b, err := hex.DecodeString(id)
	return ok && err == nil && len(b) == idBytes
}

// Grace is after which time a heap without a checkpoint is none whose template is being made.
const Grace = time.Hour

// Sweep removes from dir the heaps that no checkpoint has needed for as long as grace, and what a crash has left of one in the making. A sandbox that runs with such a heap is not hurt.
func Sweep(dir string, grace time.Duration) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !valid(e.Name()) && !strings.HasPrefix(e.Name(), part) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if ok && st.Nlink == 1 && time.Since(time.Unix(st.Ctim.Unix())) >= grace {
			_ = os.Remove(filepath.Join(dir, e.Name())) // what cannot be removed now is tried again next time
		}
	}
}

// Warm has the system read the heaps of the checkpoint in the folder image, in the background: the first sessions then find its pages in memory, and their memory is not charged with them.
func Warm(image string) {
	names, _ := Attached(image)
	for _, name := range names {
		if f, err := os.Open(filepath.Join(image, Folder, name)); err == nil {
			_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_WILLNEED)
			_ = f.Close()
		}
	}
}
