package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
)

// Channel is a stream of bytes in both directions. Its methods may be called
// from several goroutines; each Write goes out whole before the next begins.
type Channel struct {
	conn *Conn
	id   uint32

	writing sync.Mutex // held for a whole Write; taken before conn.mu

	// The rest is guarded by conn.mu.
	readable sync.Cond
	writable sync.Cond

	size int // of a window

	in       ring
	into     []byte // of a Read that waits: what comes goes there, and only the rest into in
	got      int    // bytes in into
	window   int    // bytes that the peer may still send
	consumed int    // bytes read and not yet given back as credit
	eofIn    bool   // the peer writes no more
	readErr  error

	credit   int  // bytes that may still be sent
	eofOut   bool // this side writes no more
	midWrite bool
	queued   bool // in conn.waiting
	writeErr error

	pending bool // opened by the peer, not yet accepted
	freed   bool // out of conn.channels
}

func newChannel(c *Conn, id uint32, size int) *Channel {
	ch := &Channel{conn: c, id: id, size: size, window: size, credit: size}
	ch.readable.L = &c.mu
	ch.writable.L = &c.mu
	return ch
}

// ID returns the channel's number, which both sides know it by. No other
// channel of the same connection ever has it.
func (ch *Channel) ID() uint32 { return ch.id }

// Read reads what the peer wrote. It returns io.EOF after the peer's end, an
// error that wraps ErrReset after the peer's reset, and one that wraps
// ErrClosed after Close or Reset and when the connection is over; bytes that
// arrived before the end of the connection can still be read.
func (ch *Channel) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c := ch.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case ch.in.n > 0:
			n := ch.in.take(p)
			ch.returnCredit(n)
			return n, nil
		case ch.readErr != nil:
			return 0, ch.readErr
		case ch.eofIn:
			return 0, io.EOF
		case c.cause != nil:
			return 0, c.endError()
		}
		if n := ch.await(p); n > 0 {
			return n, nil
		}
	}
}

// await waits once, and returns how many bytes have been put into p meanwhile.
func (ch *Channel) await(p []byte) int {
	if ch.into != nil { // somebody else reads as well
		ch.readable.Wait()
		return 0
	}
	ch.into = p
	ch.readable.Wait()
	n := ch.got
	ch.into, ch.got = nil, 0
	ch.returnCredit(n)
	return n
}

// returnCredit waits for half a window so that credit frames stay rare. A peer
// that is out of credit has at least the other half still unread here, so the
// batch is always completed.
func (ch *Channel) returnCredit(n int) {
	if ch.eofIn || ch.freed {
		return
	}
	ch.consumed += n
	if ch.consumed < ch.size/2 {
		return
	}
	var grant [4]byte
	binary.BigEndian.PutUint32(grant[:], uint32(ch.consumed))
	ch.window += ch.consumed
	ch.consumed = 0
	ch.conn.control(ch.id, KindCredit, grant[:])
}

// Write sends p, waiting for the peer's credit where it must. It returns when
// all of p is queued for the stream, or with what was queued and an error that
// wraps ErrReset when the peer closed or reset the channel and ErrClosed when
// this side did or the connection is over.
func (ch *Channel) Write(p []byte) (int, error) { return ch.write(p) }

// write is Write for bytes that lie in several places.
func (ch *Channel) write(parts ...[]byte) (int, error) {
	rest := scattered(parts)
	size := rest.size()
	ch.writing.Lock()
	defer ch.writing.Unlock()
	c := ch.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	ch.midWrite = true
	defer func() { ch.midWrite = false }()
	n := 0
	for {
		if err := ch.sendError(); err != nil {
			return n, err
		}
		if n == size {
			return n, nil
		}
		if ch.credit == 0 {
			ch.writable.Wait()
			continue
		}
		if m := min(size-n, ch.credit, outSoft); m >= largeWrite && c.unoccupied() {
			ch.credit -= m
			c.sendNow(ch.id, rest.take(m))
			n += m
			continue
		}
		if len(c.out) >= outSoft {
			c.awaitRoom(ch)
			continue
		}
		m := min(size-n, ch.credit, MaxFrame)
		c.out = appendFrame(c.out, ch.id, KindData, rest.take(m)...)
		c.wake.Signal()
		ch.credit -= m
		n += m
		if n == size {
			return n, nil
		}
	}
}

func (ch *Channel) sendError() error {
	switch {
	case ch.writeErr != nil:
		return ch.writeErr
	case ch.conn.cause != nil:
		return ch.conn.endError()
	}
	return ch.conn.sendErr
}

// CloseWrite tells the peer that no more is coming, after a Write in progress
// is done. Reading goes on. A second call does nothing.
func (ch *Channel) CloseWrite() error {
	ch.writing.Lock()
	defer ch.writing.Unlock()
	ch.conn.mu.Lock()
	defer ch.conn.mu.Unlock()
	if ch.eofOut {
		return nil
	}
	if err := ch.sendError(); err != nil {
		return err
	}
	ch.sendEOF()
	ch.writeErr = fmt.Errorf("%w: write after the end of writing", ErrClosed)
	if ch.eofIn {
		ch.free()
	}
	return nil
}

func (ch *Channel) sendEOF() {
	ch.eofOut = true
	ch.conn.control(ch.id, KindEOF, nil)
}

// Close ends both directions, unblocks Read and Write and frees the channel. The
// peer reads what was written up to its end, but sees a reset where Close cut a
// Write short. What the peer still sends is dropped. Close never blocks; its
// error is always nil.
func (ch *Channel) Close() error {
	ch.conn.mu.Lock()
	defer ch.conn.mu.Unlock()
	if !ch.freed {
		if !ch.eofOut && !ch.midWrite {
			ch.sendEOF()
		}
		if !ch.eofIn || !ch.eofOut {
			ch.conn.control(ch.id, KindReset, []byte("the peer closed it"))
		}
	}
	ch.end(ErrClosed)
	return nil
}

// Reset ends both directions at once and gives the peer the reason, of which it
// sees the first 1024 bytes. What either side has not read is lost. Reset
// never blocks; its error is always nil.
func (ch *Channel) Reset(reason string) error {
	ch.conn.mu.Lock()
	defer ch.conn.mu.Unlock()
	if !ch.freed {
		ch.conn.control(ch.id, KindReset, []byte(reason[:min(len(reason), maxReason)]))
	}
	ch.end(ErrClosed)
	return nil
}

// end frees the channel; whatever is called on it from now on fails with err.
func (ch *Channel) end(err error) {
	ch.in = ring{}
	ch.readErr = err
	ch.writeErr = err
	ch.free()
}

func (ch *Channel) free() {
	c := ch.conn
	if !ch.freed {
		ch.freed = true
		delete(c.channels, ch.id)
		if !ch.pending {
			c.sideOf(ch.id).add(ch, -1)
		}
	}
	ch.readable.Broadcast()
	ch.writable.Broadcast()
}

// receiveData takes a frame's bytes. more says that the whole next frame is in the buffer: a Read that waits may get the bytes of both.
func (ch *Channel) receiveData(p []byte, more bool) error {
	if ch.eofIn {
		return fmt.Errorf("%w: data on channel %d after its end", ErrProtocol, ch.id)
	}
	if len(p) > ch.window {
		return fmt.Errorf("%w: %d bytes on channel %d with a credit of %d", ErrProtocol, len(p), ch.id, ch.window)
	}
	if len(p) == 0 {
		ch.conn.wakeReader()
		return nil
	}
	ch.window -= len(p)
	if ch.into != nil && ch.in.n == 0 {
		n := copy(ch.into[ch.got:], p)
		ch.got += n
		p = p[n:]
	}
	if len(p) > 0 {
		ch.in.put(p)
	}
	// To wake a goroutine for each frame costs more than to move the frame.
	if ch.conn.unwoken = ch; !more || ch.into == nil || ch.got == len(ch.into) {
		ch.conn.wakeReader()
	}
	return nil
}

func (ch *Channel) receiveCredit(p []byte) error {
	if len(p) != 4 {
		return fmt.Errorf("%w: a credit frame of %d bytes", ErrProtocol, len(p))
	}
	grant := binary.BigEndian.Uint32(p)
	if uint64(grant) > uint64(ch.size-ch.credit) {
		return fmt.Errorf("%w: credit of %d on channel %d is more than was used", ErrProtocol, grant, ch.id)
	}
	ch.credit += int(grant)
	ch.writable.Signal()
	return nil
}

func (ch *Channel) receiveEOF(p []byte) error {
	if ch.eofIn || len(p) != 0 {
		return fmt.Errorf("%w: a repeated or malformed end of channel %d", ErrProtocol, ch.id)
	}
	ch.eofIn = true
	if ch.eofOut {
		ch.free()
	}
	ch.readable.Broadcast()
	return nil
}

func (ch *Channel) receiveReset(p []byte) {
	err := ErrReset
	if reason := Printable(string(p), maxReason); reason != "" {
		err = fmt.Errorf("%w: %s", ErrReset, reason)
	}
	if !ch.eofIn {
		ch.end(err)
		return
	}
	if ch.writeErr == nil {
		ch.writeErr = err
	}
	ch.free()
}

const maxReason = 1 << 10

// Printable makes words of a peer fit to print, and cuts them off after some bytes: they end up in messages on terminals, and the peer may be hostile.
func Printable(words string, limit int) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(words[:min(len(words), limit)], ""))
}
