package layer_test

import (
	"encoding/binary"
	"runtime"
	"slices"
	"testing"

	"cove/internal/pydeps/layer"
)

// library is a shared library, as far as the loader needs to know it: its own name and those that it is linked with.
func library(name string, needed ...string) string {
	le := binary.LittleEndian
	const base, programs, dynamicAt = 0x10000, 64, 64 + 2*56
	table := []byte{0}
	add := func(s string) uint64 {
		at := uint64(len(table))
		table = append(append(table, s...), 0)
		return at
	}
	var tags []uint64
	for _, n := range needed {
		tags = append(tags, 1, add(n))
	}
	tags = append(tags, 14, add(name))
	tableAt := uint64(dynamicAt + 8*(len(tags)+4))
	tags = append(tags, 5, base+tableAt, 0, 0)
	b := make([]byte, dynamicAt)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], 3)
	le.PutUint16(b[18:], map[string]uint16{"arm64": 183}[runtime.GOARCH])
	if runtime.GOARCH == "amd64" {
		le.PutUint16(b[18:], 62)
	}
	le.PutUint64(b[32:], programs)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 2)
	for _, t := range tags {
		b = le.AppendUint64(b, t)
	}
	b = append(b, table...)
	segment := func(at int, kind uint32, offset, size uint64) {
		le.PutUint32(b[at:], kind)
		le.PutUint64(b[at+8:], offset)
		le.PutUint64(b[at+16:], base+offset)
		le.PutUint64(b[at+32:], size)
	}
	segment(programs, 1, 0, uint64(len(b)))
	segment(programs+56, 2, dynamicAt, uint64(8*len(tags)))
	return string(b)
}

func TestMissingLibraries(t *testing.T) {
	t.Parallel()
	x, s := newIndex(), open(t, t.TempDir(), layer.Limits{})
	odd := library("libodd.so", "libhidden.so.1")
	l := ensure(t, s, closure(t, x.add(t, dist("aa",
		"aa/core.cpython-311-x86_64-linux-gnu.so", library("core", "libc.so.6", "libcove-absent.so.7", "libbundled-1a2b.so.3", "libother.so.2", "libpython3.11.so.1.0", "../../etc/passwd", "/abs.so"),
		"aa.libs/libbundled-1a2b.so.3.0", library("libbundled-1a2b.so.3", "libcove-lost.so"),
		"aa/cut.so", odd[:70], "aa/short.so", odd[:len(odd)-20], "aa/empty.so", "", "aa/text.so", "text",
	)), x.add(t, dist("bb", "bb/libother.so.2", library("libother.so.2", "libcove-absent.so.7")))), x)
	if want := []string{"libcove-absent.so.7", "libcove-lost.so"}; !slices.Equal(l.Missing, want) {
		t.Errorf("missing %q, want %q", l.Missing, want)
	}
}
