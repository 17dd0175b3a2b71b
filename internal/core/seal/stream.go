package seal

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
)

// Writer seals a stream. What was written is whole only after Close, which does not close what it writes to.
type Writer struct {
	to     io.Writer
	cipher cipher.AEAD // nil: what is written is passed on
	buf    []byte      // with room for a tag
	chunk  int64
	err    error
}

// NewWriter begins a sealed stream. With a nil sealer the stream is what is written.
func (b *Sealer) NewWriter(w io.Writer) (*Writer, error) {
	if b == nil {
		return &Writer{to: w}, nil
	}
	head := b.newHead()
	c, err := b.readHead(head, "stream")
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(head); err != nil {
		return nil, err
	}
	return &Writer{to: w, cipher: c, buf: make([]byte, 0, chunkBytes+tagBytes)}, nil
}

// Write implements io.Writer. Bytes reach the writer below a chunk at a time.
func (w *Writer) Write(p []byte) (n int, err error) {
	if w.cipher == nil {
		return w.to.Write(p)
	}
	for len(p) > 0 && w.err == nil {
		if len(w.buf) == chunkBytes { // only now it is known not to be the last one
			w.flush(false)
			continue
		}
		part := p[:min(len(p), chunkBytes-len(w.buf))]
		w.buf = append(w.buf, part...)
		p, n = p[len(part):], n+len(part)
	}
	return n, w.err
}

func (w *Writer) flush(last bool) {
	sealed := w.cipher.Seal(w.buf[:0], nonce(w.chunk, last), w.buf, nil)
	if _, err := w.to.Write(sealed); err != nil {
		w.err = err
	}
	w.buf, w.chunk = w.buf[:0], w.chunk+1
}

// Close writes the last chunk.
func (w *Writer) Close() error {
	if w.cipher == nil || errors.Is(w.err, errClosed) {
		return nil
	}
	if w.err == nil {
		w.flush(true)
	}
	err := w.err
	w.err = errClosed
	return err
}

// Length is how long the stream of so many bytes is when it is sealed.
func (b *Sealer) Length(plain int64) int64 {
	if b == nil {
		return plain
	}
	chunks := max(1, (plain+chunkBytes-1)/chunkBytes)
	return int64(headBytes) + plain + chunks*tagBytes
}

// plainLength is the inverse of Length; ok is false for what no stream is long.
func plainLength(sealed int64) (plain int64, ok bool) {
	n := sealed - int64(headBytes)
	if n < tagBytes {
		return 0, false
	}
	chunks := (n + chunkBytes + tagBytes - 1) / (chunkBytes + tagBytes)
	plain = n - chunks*tagBytes
	return plain, plain > (chunks-1)*chunkBytes || plain == 0 && chunks == 1
}

// Reader reads a sealed stream, from any place in it. ReadAt is safe for concurrent use.
type Reader struct {
	*io.SectionReader
	under io.ReaderAt
	own   *chunks
}

// Close closes what is read from, when it can be closed. Others than its caller must not read any more.
func (r *Reader) Close() error {
	if c, ok := r.under.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Sealed says whether what is read is a sealed stream, and not passed on as it is.
func (r *Reader) Sealed() bool { return r.own != nil }

// chunks decrypts, and keeps the chunk that was read last.
type chunks struct {
	from   io.ReaderAt
	cipher cipher.AEAD
	plain  int64
	last   int64 // the number of the last chunk

	mu   sync.Mutex
	have int64 // the number of the chunk in buf; -1: none
	buf  []byte
	room []byte
}

// NewReader reads a stream of size bytes that NewWriter sealed; with a nil sealer, what from has. A stream that is not sealed is damaged to a sealer, unless lenient is set: then it is
// read as it is. Problems: sealed_damaged.
func (b *Sealer) NewReader(from io.ReaderAt, size int64, lenient bool) (*Reader, error) {
	asIs := &Reader{SectionReader: io.NewSectionReader(from, 0, size), under: from}
	if b == nil {
		return asIs, nil
	}
	head := make([]byte, headBytes)
	n, err := from.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if lenient && !isHead(head[:n]) {
		return asIs, nil
	}
	c, err := b.readHead(head[:n], "stream")
	if err != nil {
		return nil, err
	}
	plain, ok := plainLength(size)
	if !ok {
		return nil, damaged("it was cut off")
	}
	own := &chunks{from: from, cipher: c, plain: plain, last: max(0, (plain-1)/chunkBytes), have: -1, room: make([]byte, chunkBytes+tagBytes)}
	return &Reader{SectionReader: io.NewSectionReader(own, 0, plain), under: from, own: own}, nil
}

// OpenFile opens a file that NewWriter has sealed; see NewReader.
func (b *Sealer) OpenFile(path string, lenient bool) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	var r *Reader
	if err == nil {
		r, err = b.NewReader(f, info.Size(), lenient)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// SealFile replaces a file by a sealed one. One that the sealer opens stays as it is: nobody can make up what opens.
func (b *Sealer) SealFile(path string) error {
	if r, err := b.OpenFile(path, false); err == nil {
		err = r.own.load(0)
		_ = r.Close()
		if err == nil {
			return nil
		}
	} else if !problem.Has(err, problem.SealedDamaged) {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	piped, fill := io.Pipe()
	defer func() { _ = piped.Close() }()
	go func() {
		w, err := b.NewWriter(fill)
		if err == nil {
			_, err = io.Copy(w, f)
		}
		if err == nil {
			err = w.Close()
		}
		_ = fill.CloseWithError(err) // nil: the end
	}()
	return durable.Replace(path, 0o600, piped)
}

// IsSealed says whether the file begins as sealed ones do.
func IsSealed(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return isHead(head[:n]), nil
}

// KeyOf returns the number of the data key of what begins with head, and false when that is not sealed.
func KeyOf(head []byte) (uint32, bool) {
	if !isHead(head) {
		return 0, false
	}
	return binary.BigEndian.Uint32(head[len(magic):]), true
}

// ReadAt implements io.ReaderAt on the plain bytes.
func (c *chunks) ReadAt(p []byte, off int64) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < len(p) {
		at := off + int64(n)
		if at >= c.plain {
			return n, io.EOF
		}
		if err := c.load(at / chunkBytes); err != nil {
			return n, err
		}
		n += copy(p[n:], c.buf[at%chunkBytes:])
	}
	return n, nil
}

// load decrypts a chunk into buf.
func (c *chunks) load(number int64) error {
	if c.have == number {
		return nil
	}
	c.have = -1
	size := int64(chunkBytes)
	if number == c.last {
		size = c.plain - number*chunkBytes
	}
	sealed := c.room[:size+tagBytes]
	if n, err := c.from.ReadAt(sealed, int64(headBytes)+number*(chunkBytes+tagBytes)); n < len(sealed) {
		if errors.Is(err, io.EOF) {
			err = damaged("it was cut off")
		}
		return err
	}
	plain, err := c.cipher.Open(sealed[:0], nonce(number, number == c.last), sealed, nil)
	if err != nil {
		return damaged("it is not what was sealed")
	}
	c.buf, c.have = plain, number
	return nil
}
