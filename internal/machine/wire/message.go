package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// A message is u32 length of the header, u32 length of the body (big-endian),
// the header in JSON, the body.
const messagePrefix = 8

// WriteMessage writes one message, a header in JSON and a body of raw bytes, in
// one call of w.Write: messages that are written to a Channel from several
// goroutines do not mix.
func WriteMessage(w io.Writer, header any, body []byte) error {
	h, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("wire: encode a message header: %w", err)
	}
	if uint64(len(h)) > math.MaxUint32 || uint64(len(body)) > math.MaxUint32 {
		return fmt.Errorf("wire: a message of %d+%d bytes is too long to send", len(h), len(body))
	}
	b := make([]byte, 0, messagePrefix+len(h))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	b = append(b, h...)
	if ch, ok := w.(*Channel); ok {
		_, err = ch.write(b, body)
	} else {
		_, err = w.Write(append(b, body...))
	}
	if err != nil {
		return fmt.Errorf("wire: write a message: %w", err)
	}
	return nil
}

// ReadMessage reads one message, decodes its header into header (a pointer, or
// nil to drop it) and returns its body, nil when it is empty. At the end of the
// stream it returns io.EOF, inside a message io.ErrUnexpectedEOF. A message
// whose header and body together exceed limit bytes, or whose header does not
// decode, is refused with an error that wraps ErrProtocol. Memory grows with
// the bytes that arrive, not with the lengths that the peer claims.
func ReadMessage(r io.Reader, limit int, header any) (body []byte, err error) {
	return ReadMessageInto(r, limit, header, nil)
}

// ReadMessageInto is ReadMessage that asks where to put a body of so many bytes, once it comes; nil, or too little, means memory of its own.
func ReadMessageInto(r io.Reader, limit int, header any, room func(size int) []byte) (body []byte, err error) {
	var prefix [messagePrefix]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, err
	}
	hn, bn := binary.BigEndian.Uint32(prefix[:]), binary.BigEndian.Uint32(prefix[4:])
	if total := uint64(hn) + uint64(bn); total > uint64(max(limit, 0)) {
		return nil, fmt.Errorf("%w: a message of %d bytes, the limit is %d", ErrProtocol, total, limit)
	}
	h, err := readGradually(r, int(hn))
	if err != nil {
		return nil, err
	}
	if header != nil {
		if err := json.Unmarshal(h, header); err != nil {
			return nil, fmt.Errorf("%w: a message header that does not decode: %w", ErrProtocol, err)
		}
	}
	if room != nil && bn > 0 {
		if buf := room(int(bn)); len(buf) >= int(bn) {
			_, err := io.ReadFull(r, buf[:bn])
			return buf[:bn], insideFrame(err)
		}
	}
	return readGradually(r, int(bn))
}

func readGradually(r io.Reader, n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	buf := make([]byte, min(n, MaxFrame))
	for filled := 0; ; {
		m, err := io.ReadFull(r, buf[filled:])
		filled += m
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		if filled == n {
			return buf, nil
		}
		grown := make([]byte, min(n, 2*len(buf)))
		copy(grown, buf)
		buf = grown
	}
}
