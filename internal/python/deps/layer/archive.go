package layer

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"unicode/utf8"
)

// The format is described in PKWARE's APPNOTE.TXT. What readers disagree about is refused, so that everybody who looks at a wheel sees
// what is unpacked here: the archive is exactly its members one after the other, the directory that lists them, and the end record.

const (
	endSize       = 22
	end64Size     = 56
	locatorSize   = 20
	centralSize   = 46
	localSize     = 30
	longestTail   = endSize + 1<<16
	unknown16     = 0xffff
	unknown32     = 0xffffffff
	stored        = 0
	deflated      = 8
	flagEncrypted = 1 << 0
	flagTrailer   = 1 << 3 // a descriptor follows the data
	flagPatch     = 1 << 5
	flagStrong    = 1 << 6
	flagUTF8      = 1 << 11
	flagMasked    = 1 << 13
	extraZip64    = 0x0001
	extraPath     = 0x7075 // Info-ZIP: another spelling of the name
)

// member is an entry of an archive's directory.
type member struct {
	name   string
	flags  uint16
	method uint16
	crc    uint32
	packed int64
	size   int64
	header int64  // where its local header begins
	data   int64  // where its bytes begin
	mode   uint32 // as of Unix; 0 when unknown
}

// archive is a zip file whose structure has been checked. Names have not.
type archive struct {
	r       io.ReaderAt
	members []member
}

// defect is a fault of a wheel. Its text completes "it cannot be installed: ".
type defect string

func (d defect) Error() string { return string(d) }

func defectf(format string, args ...any) error { return defect(fmt.Sprintf(format, args...)) }

const damaged = defect("the archive is damaged")

// errTooMany is returned for an archive with more members than a limit.
const errTooMany = defect("it has too many files")

// openArchive reads the directory of a zip file of that size. limit bounds the members.
func openArchive(r io.ReaderAt, size int64, limit int) (*archive, error) {
	where, err := findDirectory(r, size)
	if err != nil {
		return nil, err
	}
	if where.count > uint64(limit) {
		return nil, errTooMany
	}
	a := &archive{r: r}
	in := bufio.NewReaderSize(io.NewSectionReader(r, where.offset, where.size), 1<<16)
	left := where.size
	for range where.count {
		m, used, err := readCentral(in, left)
		if err != nil {
			return nil, err
		}
		left -= used
		a.members = append(a.members, m)
	}
	if left != 0 {
		return nil, defect("the archive's directory holds more than it says")
	}
	if err := a.checkTiling(where.offset); err != nil {
		return nil, err
	}
	return a, nil
}

type directory struct {
	offset, size int64
	count        uint64
}

func findDirectory(r io.ReaderAt, size int64) (directory, error) {
	tail := make([]byte, min(size, longestTail))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return directory{}, err
	}
	at := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if at < 0 || at+endSize > len(tail) {
		return directory{}, defect("it is not a zip archive")
	}
	end := tail[at:]
	if int(binary.LittleEndian.Uint16(end[20:])) != len(end)-endSize {
		return directory{}, defect("there is data after the end of the archive")
	}
	d := directory{
		count:  uint64(binary.LittleEndian.Uint16(end[10:])),
		size:   int64(binary.LittleEndian.Uint32(end[12:])),
		offset: int64(binary.LittleEndian.Uint32(end[16:])),
	}
	if binary.LittleEndian.Uint32(end[4:]) != 0 || binary.LittleEndian.Uint16(end[8:]) != binary.LittleEndian.Uint16(end[10:]) {
		return directory{}, defect("the archive is one part of a split archive")
	}
	stop := size - int64(len(end))
	if at >= locatorSize && string(tail[at-locatorSize:at-locatorSize+4]) == "PK\x06\x07" {
		var err error
		if d, stop, err = findLarge(r, tail[at-locatorSize:at], stop-locatorSize, d); err != nil {
			return directory{}, err
		}
	}
	if d.offset < 0 || d.size < 0 || d.offset > stop || d.offset+d.size != stop {
		return directory{}, defect("the archive's directory is not where its end record says")
	}
	return d, nil
}

// findLarge reads the end record of the ZIP64 form, which lies before its locator at stop. Some readers look for it always and others only where the
// ordinary record is full, so both have to say the same.
func findLarge(r io.ReaderAt, locator []byte, stop int64, small directory) (directory, int64, error) {
	at := int64(binary.LittleEndian.Uint64(locator[8:]))
	var rec [end64Size]byte
	if at < 0 || at > stop-end64Size {
		return directory{}, 0, damaged
	}
	if _, err := r.ReadAt(rec[:], at); err != nil {
		return directory{}, 0, damaged
	}
	if string(rec[:4]) != "PK\x06\x06" || binary.LittleEndian.Uint64(rec[4:]) != uint64(stop-at-12) {
		return directory{}, 0, damaged
	}
	d := directory{
		count:  binary.LittleEndian.Uint64(rec[32:]),
		size:   int64(binary.LittleEndian.Uint64(rec[40:])),
		offset: int64(binary.LittleEndian.Uint64(rec[48:])),
	}
	if small.count != unknown16 && small.count != d.count || small.size != unknown32 && small.size != d.size || small.offset != unknown32 && small.offset != d.offset {
		return directory{}, 0, defect("the archive has two end records that differ")
	}
	return d, at, nil
}

// readCentral reads one entry of the directory, of which left bytes remain, and returns its length.
func readCentral(in io.Reader, left int64) (member, int64, error) {
	var h [centralSize]byte
	if left < centralSize {
		return member{}, 0, damaged
	}
	if _, err := io.ReadFull(in, h[:]); err != nil || string(h[:4]) != "PK\x01\x02" {
		return member{}, 0, damaged
	}
	le := binary.LittleEndian
	names, extras, comments := int(le.Uint16(h[28:])), int(le.Uint16(h[30:])), int(le.Uint16(h[32:]))
	used := int64(centralSize + names + extras + comments)
	if used > left {
		return member{}, 0, damaged
	}
	rest := make([]byte, names+extras+comments)
	if _, err := io.ReadFull(in, rest); err != nil {
		return member{}, 0, damaged
	}
	m := member{
		name: string(rest[:names]), flags: le.Uint16(h[8:]), method: le.Uint16(h[10:]), crc: le.Uint32(h[16:]),
		packed: int64(le.Uint32(h[20:])), size: int64(le.Uint32(h[24:])), header: int64(le.Uint32(h[42:])), mode: le.Uint32(h[38:]) >> 16,
	}
	if err := m.readExtras(rest[names : names+extras]); err != nil {
		return member{}, 0, err
	}
	return m, used, m.check()
}

func (m *member) readExtras(extra []byte) error {
	le := binary.LittleEndian
	seen := false
	for len(extra) >= 4 {
		id, n := le.Uint16(extra), int(le.Uint16(extra[2:]))
		if n > len(extra)-4 {
			return damaged
		}
		field := extra[4 : 4+n]
		extra = extra[4+n:]
		switch id {
		case extraPath:
			if len(field) < 5 || string(field[5:]) != m.name {
				return defectf("%q has another name too", m.name)
			}
		case extraZip64:
			if seen {
				return damaged
			}
			seen = true
			for _, v := range []*int64{&m.size, &m.packed, &m.header} {
				if *v != unknown32 {
					continue
				}
				if len(field) < 8 {
					return damaged
				}
				*v = int64(le.Uint64(field))
				field = field[8:]
			}
		}
	}
	return nil
}

func (m *member) check() error {
	switch {
	case m.size < 0 || m.packed < 0 || m.header < 0:
		return damaged
	case m.flags&(flagEncrypted|flagStrong|flagMasked|flagPatch) != 0:
		return defectf("%q is encrypted", m.name)
	case m.method != stored && m.method != deflated:
		return defectf("%q is compressed in a way that wheels may not use", m.name)
	case m.method == stored && m.size != m.packed:
		return damaged
	case !utf8.ValidString(m.name) || m.flags&flagUTF8 == 0 && !isASCII(m.name):
		return defectf("the name %q is not in UTF-8", m.name)
	}
	return nil
}

func isASCII(s string) bool {
	for _, c := range []byte(s) {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// checkTiling makes sure that the members lie one after the other from the file's first byte to stop, each with a header of its own that agrees with the
// directory: nothing overlaps and nothing is hidden between them.
func (a *archive) checkTiling(stop int64) error {
	order := make([]*member, len(a.members))
	for i := range a.members {
		order[i] = &a.members[i]
	}
	slices.SortFunc(order, func(x, y *member) int { return cmp.Compare(x.header, y.header) })
	expected, slack := int64(0), int64(0)
	for _, m := range order {
		if err := checkGap(m.header-expected, slack); err != nil {
			return err
		}
		var err error
		if slack, err = a.checkLocal(m); err != nil {
			return err
		}
		if m.packed > stop-m.data {
			return damaged
		}
		expected = m.data + m.packed
	}
	return checkGap(stop-expected, slack)
}

// checkGap looks at the distance between two members, where a descriptor may be.
func checkGap(gap, slack int64) error {
	switch {
	case gap < 0:
		return defect("files overlap in the archive")
	case slack == 0 && gap == 0:
		return nil
	case slack != 0 && (gap == 12 || gap == 16 || gap == 20 || gap == 24): // with and without a signature, ordinary and ZIP64
		return nil
	}
	return defect("there is hidden data between the files of the archive")
}

// checkLocal compares the header before a member's data with the directory, and fills in where the data is. It returns whether a descriptor follows.
func (a *archive) checkLocal(m *member) (slack int64, err error) {
	var h [localSize]byte
	if _, err := a.r.ReadAt(h[:], m.header); err != nil || string(h[:4]) != "PK\x03\x04" {
		return 0, damaged
	}
	le := binary.LittleEndian
	flags, method, crc, packed, size := le.Uint16(h[6:]), le.Uint16(h[8:]), le.Uint32(h[14:]), le.Uint32(h[18:]), le.Uint32(h[22:])
	name := make([]byte, le.Uint16(h[26:]))
	if _, err := a.r.ReadAt(name, m.header+localSize); err != nil {
		return 0, damaged
	}
	m.data = m.header + localSize + int64(len(name)) + int64(le.Uint16(h[28:]))
	differs := defectf("%q is described in two ways by the archive", m.name)
	if string(name) != m.name || method != m.method || (flags^m.flags)&(flagEncrypted|flagTrailer) != 0 {
		return 0, differs
	}
	trailer := flags&flagTrailer != 0
	same := func(here uint32, there int64) bool {
		return int64(here) == there || here == unknown32 || trailer && here == 0
	}
	if !same(packed, m.packed) || !same(size, m.size) || crc != m.crc && (!trailer || crc != 0) {
		return 0, differs
	}
	if trailer {
		return 1, nil
	}
	return 0, nil
}

// content returns a reader of a member's bytes, which ends in an error unless they are as long as the directory says and have its checksum.
// unzip may be reused for the next.
func (a *archive) content(m member, unzip *inflater) io.Reader {
	var r io.Reader = io.NewSectionReader(a.r, m.data, m.packed)
	if m.method == deflated {
		r = unzip.reset(r)
	}
	return &exactly{r: r, left: m.size, want: m.crc}
}

// exactly reads what has to be of one length and checksum.
type exactly struct {
	r    io.Reader
	left int64
	crc  uint32
	want uint32
}

func (e *exactly) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if int64(n) > e.left {
		return 0, defect("a file is longer than the archive says")
	}
	e.left -= int64(n)
	e.crc = crc32.Update(e.crc, crc32.IEEETable, p[:n])
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		return n, damaged
	case e.left != 0 || e.crc != e.want:
		return n, damaged
	}
	return n, io.EOF
}
