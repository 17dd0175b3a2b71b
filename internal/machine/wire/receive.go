package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// hangup reads a stream whose reset is an end like any other: that is what the
// system makes of a peer that went away with input unread.
type hangup struct{ io.Reader }

func (h hangup) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if errors.Is(err, syscall.ECONNRESET) {
		err = io.EOF
	}
	return n, err
}

// readLoop returns why it ended, never nil.
func (c *Conn) readLoop() error {
	for {
		f, err := peekFrame(c.in)
		if errors.Is(err, io.EOF) {
			return errPeerLeft
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("wire: the connection broke inside a frame: %w", err)
		}
		if errors.Is(err, ErrProtocol) {
			return err
		}
		if err != nil {
			return fmt.Errorf("wire: read from the peer: %w", err)
		}
		// The buffer has the whole next frame, whatever its size.
		more := c.in.Buffered()-len(f.Payload) >= headerSize+MaxFrame
		if err := c.receive(f, more); err != nil {
			return err
		}
		_, _ = c.in.Discard(len(f.Payload)) // it was there
	}
}

// wakeReader wakes the Read for which data has come, if there is one.
func (c *Conn) wakeReader() {
	if c.unwoken != nil {
		c.unwoken.readable.Broadcast()
		c.unwoken = nil
	}
}

func (c *Conn) receive(f Frame, more bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unwoken != nil && (f.Kind != KindData || f.Channel != c.unwoken.id) {
		c.wakeReader()
	}
	switch f.Kind {
	case KindOpen:
		return c.receiveOpen(f)
	case KindPing, KindPong:
		return c.receivePing(f)
	case KindHello:
		return fmt.Errorf("%w: a second hello", ErrProtocol)
	}
	ch := c.channels[f.Channel]
	if ch == nil {
		return nil
	}
	switch f.Kind {
	case KindData:
		return ch.receiveData(f.Payload, more)
	case KindCredit:
		return ch.receiveCredit(f.Payload)
	case KindEOF:
		return ch.receiveEOF(f.Payload)
	case KindReset:
		ch.receiveReset(f.Payload)
	}
	return nil
}

func (c *Conn) receiveOpen(f Frame) error {
	switch {
	case f.Channel == 0 || c.ours(f.Channel):
		return fmt.Errorf("%w: the peer opened channel %d, which is not its to open", ErrProtocol, f.Channel)
	case f.Channel <= c.lastPeer:
		return fmt.Errorf("%w: the peer opened channel %d after channel %d", ErrProtocol, f.Channel, c.lastPeer)
	}
	size, err := c.windowOf(f.Payload)
	if err != nil {
		return err
	}
	c.lastPeer = f.Channel
	if c.sendErr != nil {
		return nil
	}
	most, wide := c.most()
	if c.refusing || c.peer.all >= most || size == DefaultWindow && c.peer.wide >= wide {
		c.control(f.Channel, KindReset, []byte("too many open channels"))
		return nil
	}
	ch := newChannel(c, f.Channel, size)
	ch.pending = true
	c.peer.add(ch, 1)
	c.channels[ch.id] = ch
	// Never blocks: peer covers every channel that waits in accept.
	c.accept <- ch
	return nil
}

// windowOf returns the window that the payload of an open frame asks for.
func (c *Conn) windowOf(payload []byte) (int, error) {
	switch {
	case len(payload) == 0:
		return DefaultWindow, nil
	case !c.narrow || len(payload) != 4 || binary.BigEndian.Uint32(payload) != NarrowWindow:
		return 0, fmt.Errorf("%w: an open frame with a payload of %d bytes that was not agreed on", ErrProtocol, len(payload))
	}
	return NarrowWindow, nil
}

// receivePing keeps only the latest of the peer's pings, so a flood of them
// takes no memory.
func (c *Conn) receivePing(f Frame) error {
	if f.Channel != 0 || len(f.Payload) != 8 {
		return fmt.Errorf("%w: a malformed %s", ErrProtocol, f.Kind)
	}
	n := binary.BigEndian.Uint64(f.Payload)
	if f.Kind == KindPing {
		c.pongDue, c.pongPending = n, true
		c.wake.Signal()
		return nil
	}
	if n > c.pingSent {
		return fmt.Errorf("%w: the peer answered a ping that was not sent", ErrProtocol)
	}
	for seq, answered := range c.pings {
		if seq <= n {
			close(answered)
			delete(c.pings, seq)
		}
	}
	return nil
}

// queuePings runs in the writing goroutine, just before it takes the output.
func (c *Conn) queuePings() {
	var b [8]byte
	if c.pongPending {
		c.pongPending = false
		binary.BigEndian.PutUint64(b[:], c.pongDue)
		c.control(0, KindPong, b[:])
	}
	if c.pingSent < c.pingSeq {
		c.pingSent = c.pingSeq
		binary.BigEndian.PutUint64(b[:], c.pingSent)
		c.control(0, KindPing, b[:])
	}
}
