package wire

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// outSoft is where data waits for the stream to take what is queued before it.
	outSoft = 256 << 10
	// largeWrite is how many bytes a writer of the guest's itself writes to the stream, where nobody else does.
	largeWrite = 16 << 10
	// outHard is where a peer that makes this side answer, and does not read the
	// answers, loses the connection.
	outHard = outSoft + MaxFrame + 1<<20
	// grace bounds how long Close waits for queued output to leave, and how long
	// input that the peer sent before it went away is still read.
	grace = time.Second
)

// errPeerLeft is the cause of a connection that the peer ended in good order.
var errPeerLeft = fmt.Errorf("%w: the peer ended the connection", ErrClosed)

// Conn carries many channels over one stream of bytes. Its methods may be called
// from several goroutines.
//
// The goroutine that reads the stream never writes to it and never waits for a
// consumer: what it has to say goes into the queue that the writing goroutine
// empties. Two peers whose streams are both full therefore keep reading.
type Conn struct {
	stream      io.ReadWriteCloser
	closeStream func() error
	host        bool
	in          *bufio.Reader

	accept  chan *Channel
	dead    chan struct{} // closed when cause is set
	flushed chan struct{} // closed when the writing goroutine has ended
	done    chan struct{}

	mu       sync.Mutex
	wake     sync.Cond // the writing goroutine waits here
	running  bool
	cause    error    // why the connection is over
	sendErr  error    // why nothing more may be queued
	broken   error    // of writing to the stream
	sending  bool     // somebody writes to the stream
	unwoken  *Channel // whose Read was given data and still waits
	out      []byte
	spare    []byte
	waiting  []*Channel // writers that wait for room in out
	channels map[uint32]*Channel
	refusing bool // see Refuse

	nextID   uint32
	lastPeer uint32
	narrow   bool // channels may have NarrowWindow; set by Handshake
	own      open
	peer     open

	pings       map[uint64]chan struct{}
	pingSeq     uint64
	pingSent    uint64
	pongDue     uint64
	pongPending bool
}

// open counts the open channels of one side.
type open struct{ all, wide int }

func (o *open) add(ch *Channel, n int) {
	o.all += n
	if ch.size == DefaultWindow {
		o.wide += n
	}
}

// NewConn wraps a stream whose Close must unblock its Read and Write. It does no
// input or output and starts no goroutine: call Handshake, then Run. The host
// opens channels with odd numbers, the guest with even ones.
func NewConn(rw io.ReadWriteCloser, host bool) *Conn {
	c := &Conn{
		stream:      rw,
		closeStream: sync.OnceValue(rw.Close),
		host:        host,
		in:          bufio.NewReaderSize(hangup{rw}, 4*(headerSize+MaxFrame)),
		accept:      make(chan *Channel, MaxChannels),
		dead:        make(chan struct{}),
		flushed:     make(chan struct{}),
		done:        make(chan struct{}),
		channels:    map[uint32]*Channel{},
		pings:       map[uint64]chan struct{}{},
		nextID:      2,
	}
	if host {
		c.nextID = 1
	}
	c.wake.L = &c.mu
	return c
}

// Run moves frames until the peer ends the stream, Close is called, ctx is done
// or something goes wrong; then it closes the stream and every channel fails
// with the cause. It returns nil after Close and when the peer ended the stream
// between two frames, an error that wraps ErrProtocol when the peer broke the
// protocol, and the cause of ctx when that ended it. Call it once.
func (c *Conn) Run(ctx context.Context) error {
	c.mu.Lock()
	if c.running {
		c.mu.Unlock()
		return errors.New("wire: Run was called twice")
	}
	c.running = true
	c.mu.Unlock()

	var wg sync.WaitGroup
	wg.Go(c.writeLoop)
	wg.Go(func() {
		select {
		case <-ctx.Done():
			c.fail(context.Cause(ctx))
		case <-c.dead:
		}
		// The cause is what Run reports; a failure to close adds nothing to it.
		_ = c.closeStream()
	})
	c.fail(c.readLoop())
	wg.Wait()
	close(c.done)

	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.cause, ErrClosed) {
		return nil
	}
	return c.cause
}

// Done is closed when Run has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close lets queued output leave, for at most a second, and closes the stream,
// which ends Run. Writing fails at once. A second call does nothing new.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.stopSending(ErrClosed)
	running := c.running
	c.mu.Unlock()
	if running {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-c.flushed:
		case <-c.dead:
		case <-timer.C:
		}
	}
	c.fail(ErrClosed)
	return c.closeStream()
}

// Open starts a channel. It does not wait for the peer, who may still refuse by
// resetting it. It fails when MaxChannels of this side's channels are open, or
// OldChannels where the peer is old.
func (c *Conn) Open(ctx context.Context) (*Channel, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return nil, err
	}
	most, wide := c.most()
	if c.own.all >= most {
		return nil, fmt.Errorf("wire: %d channels are open, close one first", most)
	}
	if c.nextID > math.MaxUint32-2 {
		return nil, errors.New("wire: the connection has used up its channel numbers, make a new connection")
	}
	size, says := DefaultWindow, []byte(nil)
	if c.own.wide >= wide {
		size, says = NarrowWindow, binary.BigEndian.AppendUint32(nil, NarrowWindow)
	}
	ch := newChannel(c, c.nextID, size)
	c.nextID += 2
	c.own.add(ch, 1)
	c.channels[ch.id] = ch
	c.control(ch.id, KindOpen, says)
	return ch, nil
}

// most is how many channels of one side may be open, and how many of these may be wide.
func (c *Conn) most() (all, wide int) {
	if c.narrow {
		return MaxChannels, WideChannels
	}
	return OldChannels, OldChannels
}

// Accept waits for the next channel that the peer opens.
func (c *Conn) Accept(ctx context.Context) (*Channel, error) {
	select {
	case ch := <-c.accept:
		return c.accepted(ch), nil
	default:
	}
	select {
	case ch := <-c.accept:
		return c.accepted(ch), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.dead:
		c.mu.Lock()
		defer c.mu.Unlock()
		return nil, c.endError()
	}
}

// Refuse says whether channels that the peer opens are reset instead of kept for Accept, as they should be where nobody calls it: each takes memory.
func (c *Conn) Refuse(all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusing = all
}

func (c *Conn) accepted(ch *Channel) *Channel {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch.pending = false
	if ch.freed {
		c.peer.add(ch, -1)
	}
	return ch
}

// Ping measures the time until the peer's Run has answered, with the output
// that was queued before it.
func (c *Conn) Ping(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	c.mu.Lock()
	if err := c.usable(); err != nil {
		c.mu.Unlock()
		return 0, err
	}
	c.pingSeq++
	seq, answered := c.pingSeq, make(chan struct{})
	c.pings[seq] = answered
	c.wake.Signal()
	c.mu.Unlock()
	select {
	case <-answered:
		return time.Since(start), nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pings, seq)
		return 0, context.Cause(ctx)
	case <-c.dead:
		c.mu.Lock()
		defer c.mu.Unlock()
		return 0, c.endError()
	}
}

func (c *Conn) usable() error {
	if c.cause != nil {
		return c.endError()
	}
	return c.sendErr
}

// endError is what calls on a connection that is over return; it wraps both
// ErrClosed and the cause.
func (c *Conn) endError() error {
	if errors.Is(c.cause, ErrClosed) {
		return c.cause
	}
	return fmt.Errorf("%w: %w", ErrClosed, c.cause)
}

// sideOf returns the count that a channel belongs to.
func (c *Conn) sideOf(id uint32) *open {
	if c.ours(id) {
		return &c.own
	}
	return &c.peer
}

func (c *Conn) ours(id uint32) bool { return (id%2 == 1) == c.host }

func (c *Conn) fail(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(cause)
}

func (c *Conn) failLocked(cause error) {
	if c.cause != nil {
		return
	}
	c.cause = cause
	close(c.dead)
	c.stopSending(c.endError())
}

// stopSending makes all that waits look again at why it should.
func (c *Conn) stopSending(err error) {
	if c.sendErr == nil {
		c.sendErr = err
	}
	for _, ch := range c.channels {
		ch.readable.Broadcast()
		ch.writable.Broadcast()
	}
	c.wake.Broadcast()
}

// control queues a frame that must not wait for room.
func (c *Conn) control(id uint32, k Kind, payload []byte) {
	if c.sendErr != nil {
		return
	}
	if len(c.out)+headerSize+len(payload) > outHard {
		c.failLocked(fmt.Errorf("%w: the peer does not read what it is sent", ErrProtocol))
		return
	}
	c.out = appendFrame(c.out, id, k, payload)
	c.wake.Signal()
}

// awaitRoom waits once, until the stream has taken output or ch has changed.
func (c *Conn) awaitRoom(ch *Channel) {
	if !ch.queued {
		ch.queued = true
		c.waiting = append(c.waiting, ch)
	}
	ch.writable.Wait()
}

func (c *Conn) writeLoop() {
	defer close(c.flushed)
	for {
		b := c.takeOutput()
		if b == nil {
			c.awaitLastWords()
			return
		}
		_, err := c.stream.Write(b)
		c.mu.Lock()
		c.sent(err)
		if cap(b) <= 2*outSoft {
			c.spare = b[:0]
		}
		c.mu.Unlock()
	}
}

// takeOutput waits for output, which the caller then writes to the stream; nil says that there will be no more.
func (c *Conn) takeOutput() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.cause == nil && c.broken == nil {
		if c.sending {
			c.wake.Wait()
			continue
		}
		c.queuePings()
		if len(c.out) > 0 {
			b := c.out
			c.out, c.spare = c.spare, nil
			for _, ch := range c.waiting {
				ch.queued = false
				ch.writable.Broadcast()
			}
			c.waiting = slices.Delete(c.waiting, 0, len(c.waiting))
			c.sending = true
			return b
		}
		if c.sendErr != nil {
			return nil
		}
		c.wake.Wait()
	}
	return nil
}

// unoccupied says whether something that is written to the stream now comes after all that was queued. On the host nobody but the writing goroutine writes: a guest need not
// read, and who waits there for a channel can be called off.
func (c *Conn) unoccupied() bool { return !c.host && c.running && !c.sending && len(c.out) == 0 }

// sendNow writes data to the stream past the queue: it is not copied, and nobody else has to wake up for it. The caller holds mu, which is not held meanwhile.
func (c *Conn) sendNow(id uint32, p scattered) {
	c.sending = true
	c.mu.Unlock()
	_, err := frames(id, p).WriteTo(c.stream)
	c.mu.Lock()
	c.sent(err)
	if len(c.out) > 0 || c.pongPending || c.pingSent < c.pingSeq || c.sendErr != nil {
		c.wake.Signal() // what came meanwhile
	}
}

// sent is called with mu held when somebody has written to the stream.
func (c *Conn) sent(err error) {
	c.sending = false
	if err != nil && c.broken == nil {
		c.broken = fmt.Errorf("wire: write to the peer: %w", err)
		c.stopSending(c.broken)
	}
}

// awaitLastWords leaves the reader a moment: a peer that sent its last words and
// went away fails the next write before those words are read.
func (c *Conn) awaitLastWords() {
	c.mu.Lock()
	broken := c.broken
	c.mu.Unlock()
	if broken == nil {
		return
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.dead:
	case <-timer.C:
		c.fail(broken)
	}
}
