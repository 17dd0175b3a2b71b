// Package pagestore keeps files that have most of their pages in common, such as the memory of one session at several times: a page that occurs several times
// is on the disk once.
//
//	<folder>/pages   the pages, in slots of Size bytes; what no file needs is a hole
//	<folder>/sums    the SHA-256 of the page in each slot, 32 bytes each
//
// A file is a List of slots, which the caller keeps. What is in a folder is known only together with all lists of its files: a slot that none of them names
// is free, whatever it holds, so nothing has to be undone when a process dies in between. One process at a time may use a folder.
package pagestore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Size is the size of a page in bytes.
const Size = 4096

// List is a file: the slots of its pages, in their order. The last page is filled up with zeros.
type List []uint32

// MarshalBinary implements encoding.BinaryMarshaler.
func (l List) MarshalBinary() ([]byte, error) {
	text := make([]byte, 0, 4*len(l))
	for _, slot := range l {
		text = binary.LittleEndian.AppendUint32(text, slot)
	}
	return text, nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (l *List) UnmarshalBinary(text []byte) error {
	if len(text)%4 != 0 {
		return errors.New("a list of pages is not whole")
	}
	*l = make(List, 0, len(text)/4)
	for ; len(text) > 0; text = text[4:] {
		*l = append(*l, binary.LittleEndian.Uint32(text))
	}
	return nil
}

type sum [sha256.Size]byte

// Store is a folder with pages.
type Store struct {
	pages, sums *os.File
	known       map[sum]uint32
	used        []bool // by slot
	count       int    // of the used ones
	next        int    // no slot below is free
}

// Open opens a folder with pages, which is made when there is none. used are the lists of all files that are in it.
func Open(folder string, used ...List) (*Store, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	s := &Store{known: map[sum]uint32{}}
	var err error
	if s.pages, err = os.OpenFile(filepath.Join(folder, "pages"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if s.sums, err = os.OpenFile(filepath.Join(folder, "sums"), os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		err = s.learn(used)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// learn reads which pages are there. A list that names others is damaged, which its reader finds out.
func (s *Store) learn(used []List) error {
	info, err := s.pages.Stat()
	if err != nil {
		return err
	}
	s.used = make([]bool, info.Size()/Size)
	for _, l := range used {
		for _, slot := range l {
			if int(slot) < len(s.used) && !s.used[slot] {
				s.used[slot] = true
				s.count++
			}
		}
	}
	sums, err := io.ReadAll(s.sums)
	if err != nil {
		return err
	}
	for slot, here := range s.used {
		if at := slot * sha256.Size; here && at+sha256.Size <= len(sums) {
			s.known[sum(sums[at:at+sha256.Size])] = uint32(slot)
		}
	}
	return nil
}

// Close lets the folder go.
func (s *Store) Close() error {
	err := s.pages.Close()
	if s.sums != nil {
		err = errors.Join(err, s.sums.Close())
	}
	return err
}

// Room is what the pages take on the disk, in bytes.
func (s *Store) Room() int64 { return int64(s.count) * Size }

// Add puts a file into the folder, durably. After an error the pages that were added stay in use until the store is opened again.
func (s *Store) Add(ctx context.Context, r io.Reader) (List, error) {
	var l List
	page := make([]byte, Size)
	for {
		n, err := io.ReadFull(r, page)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, err
		}
		clear(page[n:])
		slot, err := s.put(page)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		l = append(l, slot)
	}
	return l, errors.Join(s.pages.Sync(), s.sums.Sync())
}

// put returns the slot with a page, a new one if there is none yet.
func (s *Store) put(page []byte) (uint32, error) {
	key := sum(sha256.Sum256(page))
	if slot, ok := s.known[key]; ok {
		return slot, nil
	}
	for s.next < len(s.used) && s.used[s.next] {
		s.next++
	}
	slot := s.next
	if _, err := s.pages.WriteAt(page, int64(slot)*Size); err != nil {
		return 0, err
	}
	if _, err := s.sums.WriteAt(key[:], int64(slot)*sha256.Size); err != nil {
		return 0, err
	}
	if slot == len(s.used) {
		s.used = append(s.used, false)
	}
	s.used[slot] = true
	s.count++
	s.known[key] = uint32(slot)
	return uint32(slot), nil
}

// Copy writes the first size bytes of a file to w. Whether they are what was added is for the caller to check.
func (s *Store) Copy(ctx context.Context, w io.Writer, l List, size int64) error {
	if size > int64(len(l))*Size {
		return io.ErrUnexpectedEOF
	}
	buf := make([]byte, 64*Size)
	for len(l) > 0 && size > 0 {
		run := 1 // pages that follow each other
		for run < min(len(l), len(buf)/Size) && l[run] == l[0]+uint32(run) {
			run++
		}
		if _, err := s.pages.ReadAt(buf[:run*Size], int64(l[0])*Size); err != nil {
			return err
		}
		n, err := w.Write(buf[:min(int64(run)*Size, size)])
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		l, size = l[run:], size-int64(n)
	}
	return nil
}

// Drop says that the files with these lists are no longer there. kept are all that still are.
func (s *Store) Drop(dropped []List, kept []List) {
	needed := make([]bool, len(s.used))
	for _, l := range kept {
		for _, slot := range l {
			if int(slot) < len(needed) {
				needed[slot] = true
			}
		}
	}
	for _, l := range dropped {
		for _, slot := range l {
			if int(slot) < len(s.used) && s.used[slot] && !needed[slot] {
				s.used[slot] = false
				s.count--
			}
		}
	}
	for key, slot := range s.known {
		if !s.used[slot] {
			delete(s.known, key)
		}
	}
	s.next = 0
}

// Shrink gives back the room of free slots. A file system without holes gives back those at the end alone.
func (s *Store) Shrink() error {
	end := len(s.used)
	for end > 0 && !s.used[end-1] {
		end--
	}
	s.used = s.used[:end]
	err := errors.Join(s.pages.Truncate(int64(end)*Size), s.sums.Truncate(int64(end)*sha256.Size))
	for at := 0; at < end && err == nil; {
		free := slices.Index(s.used[at:], false)
		if free < 0 {
			break
		}
		at += free
		run := slices.Index(s.used[at:], true)
		err = unix.Fallocate(int(s.pages.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(at)*Size, int64(run)*Size)
		at += run
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}
