package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
)

// Kind says what a frame is for; the package comment lists them.
type Kind uint8

// The kinds of frames.
const (
	KindHello Kind = iota + 1
	KindOpen
	KindData
	KindCredit
	KindEOF
	KindReset
	KindPing
	KindPong
)

// String returns the name of the kind as the package comment has it.
func (k Kind) String() string {
	switch k {
	case KindHello:
		return "hello"
	case KindOpen:
		return "open"
	case KindData:
		return "data"
	case KindCredit:
		return "credit"
	case KindEOF:
		return "eof"
	case KindReset:
		return "reset"
	case KindPing:
		return "ping"
	case KindPong:
		return "pong"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

func (k Kind) known() bool { return k >= KindHello && k <= KindPong }

// Frame is the unit of the protocol.
type Frame struct {
	Channel uint32
	Kind    Kind
	Payload []byte // at most MaxFrame bytes
}

const headerSize = 9

// ReadFrame reads one frame; its payload is the caller's. At the end of the
// stream it returns io.EOF, inside a frame io.ErrUnexpectedEOF. A frame of an
// unknown kind or of more than MaxFrame bytes is refused with an error that
// wraps ErrProtocol, before any of its payload is read.
func ReadFrame(r io.Reader) (Frame, error) {
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(r, header); err != nil {
		return Frame{}, err
	}
	f, n, err := parseHeader(header)
	if err != nil {
		return Frame{}, err
	}
	f.Payload = make([]byte, n)
	if _, err := io.ReadFull(r, f.Payload); err != nil {
		return Frame{}, insideFrame(err)
	}
	return f, nil
}

// peekFrame is ReadFrame with a payload that is still r's, to be discarded when it has been used: it is not copied. The buffer of r has room for a whole frame.
func peekFrame(r *bufio.Reader) (Frame, error) {
	header, err := r.Peek(headerSize)
	if err != nil {
		if len(header) > 0 {
			err = insideFrame(err)
		}
		return Frame{}, err
	}
	f, n, err := parseHeader(header)
	if err != nil {
		return Frame{}, err
	}
	_, _ = r.Discard(headerSize) // it is there
	if f.Payload, err = r.Peek(n); err != nil {
		return Frame{}, insideFrame(err)
	}
	return f, nil
}

func parseHeader(header []byte) (f Frame, length int, err error) {
	f = Frame{Channel: binary.BigEndian.Uint32(header), Kind: Kind(header[4])}
	n := binary.BigEndian.Uint32(header[5:])
	return f, int(n), checkHeader(f.Kind, uint64(n))
}

// insideFrame is the error of reading for a frame of which a part was there.
func insideFrame(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// WriteFrame writes f in one call of w.Write. It refuses a frame that ReadFrame
// would refuse.
func WriteFrame(w io.Writer, f Frame) error {
	if err := checkHeader(f.Kind, uint64(len(f.Payload))); err != nil {
		return err
	}
	if _, err := w.Write(appendFrame(nil, f.Channel, f.Kind, f.Payload)); err != nil {
		return fmt.Errorf("wire: write a frame: %w", err)
	}
	return nil
}

func checkHeader(k Kind, length uint64) error {
	if !k.known() {
		return fmt.Errorf("%w: a frame of unknown %s", ErrProtocol, k)
	}
	if length > MaxFrame {
		return fmt.Errorf("%w: a %s frame of %d bytes, the limit is %d", ErrProtocol, k, length, MaxFrame)
	}
	return nil
}

// scattered is bytes that lie in several places.
type scattered [][]byte

func (s scattered) size() (n int) {
	for _, p := range s {
		n += len(p)
	}
	return n
}

// take returns the first n bytes and leaves the rest.
func (s *scattered) take(n int) (taken scattered) {
	for n > 0 {
		first := (*s)[0]
		if len(first) > n {
			(*s)[0] = first[n:]
			return append(taken, first[:n])
		}
		if len(first) > 0 {
			taken = append(taken, first)
		}
		n -= len(first)
		*s = (*s)[1:]
	}
	return taken
}

// frames makes frames of data, which is not copied.
func frames(channel uint32, p scattered) *net.Buffers {
	left := p.size()
	headers, out := make([]byte, 0, (left+MaxFrame-1)/MaxFrame*headerSize), make(net.Buffers, 0, 2*len(p)+left/MaxFrame*2)
	for left > 0 {
		n, at := min(left, MaxFrame), len(headers)
		headers = appendHeader(headers, channel, KindData, n)
		out = append(append(out, headers[at:]), p.take(n)...)
		left -= n
	}
	return &out
}

func appendHeader(b []byte, channel uint32, k Kind, length int) []byte {
	b = binary.BigEndian.AppendUint32(b, channel)
	b = append(b, byte(k))
	return binary.BigEndian.AppendUint32(b, uint32(length))
}

func appendFrame(b []byte, channel uint32, k Kind, payload ...[]byte) []byte {
	size := scattered(payload).size()
	b = appendHeader(slices.Grow(b, headerSize+size), channel, k, size)
	for _, p := range payload {
		b = append(b, p...)
	}
	return b
}
