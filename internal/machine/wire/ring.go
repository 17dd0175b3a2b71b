package wire

// ring is a byte queue that grows as it fills, to at most DefaultWindow bytes.
// The caller never puts in more than that.
type ring struct {
	buf  []byte // length is zero or a power of two
	head int
	n    int
}

const ringStart = 4 << 10

func (r *ring) put(p []byte) {
	if r.n+len(p) > len(r.buf) {
		r.grow(r.n + len(p))
	}
	tail := (r.head + r.n) & (len(r.buf) - 1)
	m := copy(r.buf[tail:], p)
	copy(r.buf, p[m:])
	r.n += len(p)
}

func (r *ring) grow(need int) {
	size := max(len(r.buf), ringStart)
	for size < need {
		size *= 2
	}
	buf, n := make([]byte, size), r.n
	r.take(buf)
	*r = ring{buf: buf, n: n}
}

func (r *ring) take(p []byte) int {
	want := min(len(p), r.n)
	m := copy(p[:want], r.buf[r.head:])
	copy(p[m:want], r.buf)
	r.n -= want
	if r.n == 0 {
		r.head = 0
	} else {
		r.head = (r.head + want) & (len(r.buf) - 1)
	}
	return want
}
