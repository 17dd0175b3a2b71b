package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/machine/wire"
)

func u32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
func u64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func send(t testing.TB, w io.Writer, frames ...wire.Frame) {
	t.Helper()
	for _, f := range frames {
		if err := wire.WriteFrame(w, f); err != nil {
			t.Fatal(err)
		}
	}
}

func frame(channel uint32, k wire.Kind, payload ...byte) wire.Frame {
	return wire.Frame{Channel: channel, Kind: k, Payload: payload}
}

// repeat returns n data frames of full size.
func repeat(channel uint32, n int) []wire.Frame {
	frames := make([]wire.Frame, n)
	for i := range frames {
		frames[i] = wire.Frame{Channel: channel, Kind: wire.KindData, Payload: make([]byte, wire.MaxFrame)}
	}
	return frames
}

func TestRunEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   []byte
		want error
	}{
		"at once":         {nil, nil},
		"between frames":  {[]byte{0, 0, 0, 1, 3, 0, 0, 0, 0}, nil},
		"inside a header": {[]byte{0, 0, 0, 1, 3, 0, 0}, io.ErrUnexpectedEOF},
		"inside a frame":  {[]byte{0, 0, 0, 1, 3, 0, 0, 0, 1}, io.ErrUnexpectedEOF},
		"oversize frame":  {[]byte{0, 0, 0, 1, 3, 0, 1, 0, 1}, wire.ErrProtocol},
		"unknown kind":    {[]byte{0, 0, 0, 1, 77, 0, 0, 0, 0}, wire.ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := socketPair(t)
			host := run(t, context.Background(), wire.NewConn(a, true))
			if _, err := b.Write(c.in); err != nil {
				t.Fatal(err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if err := host.wait(); !errors.Is(err, c.want) {
				t.Errorf("Run returned %v, want %v", err, c.want)
			}
			_, err := host.Accept(t.Context())
			wantError(t, err, wire.ErrClosed)
		})
	}
}

func TestRunStopsWithContext(t *testing.T) {
	t.Parallel()
	a, b := socketPair(t)
	defer b.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	host := run(t, ctx, wire.NewConn(a, true))
	ch, err := host.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("the session is over")
	cancel(cause)
	wantError(t, host.wait(), cause)
	_, err = ch.Read(make([]byte, 1))
	wantError(t, err, cause)
	wantError(t, err, wire.ErrClosed)
}

func TestFramesForNoChannelAreDropped(t *testing.T) {
	t.Parallel()
	host, guest := connect(t)
	near, far := open(t, guest, host)
	_ = far.Close()
	var err error
	for err == nil {
		_, err = near.Write(make([]byte, 10_000))
	}
	wantError(t, err, wire.ErrReset)

	a, b := socketPair(t)
	defer b.Close()
	raw := run(t, context.Background(), wire.NewConn(a, true))
	for _, id := range []uint32{0, 1, 2, 1<<32 - 1} {
		send(t, b, frame(id, wire.KindData, 'x'), frame(id, wire.KindEOF), frame(id, wire.KindReset), frame(id, wire.KindCredit))
	}
	send(t, b, frame(0, wire.KindPing, u64(5)...))
	if f, err := wire.ReadFrame(b); err != nil || f.Kind != wire.KindPong {
		t.Errorf("read %v, %v, want a pong", f, err)
	}
	if _, err := host.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	_ = raw.Close()
}

func TestChannelLimit(t *testing.T) {
	t.Parallel()
	host, guest := connect(t)
	var channels []*wire.Channel
	for range wire.OldChannels {
		ch, err := host.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		channels = append(channels, ch)
	}
	if _, err := host.Open(t.Context()); err == nil {
		t.Fatal("opened one channel more than the limit")
	}
	for _, ch := range channels { // every way to end must give the place back
		far, err := guest.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		switch ch.ID() % 3 {
		case 0:
			_ = ch.Close()
		case 1:
			_ = ch.Reset("done")
		case 2:
			_ = ch.CloseWrite()
			_ = far.CloseWrite()
			if _, err := ch.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
	}
	for range wire.OldChannels {
		near, far := open(t, host, guest)
		if _, err := far.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := near.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPeerChannelLimit(t *testing.T) {
	t.Parallel()
	a, b := socketPair(t)
	defer b.Close()
	host := run(t, context.Background(), wire.NewConn(a, true))
	const extra = 3
	for i := range uint32(wire.OldChannels + extra) {
		send(t, b, frame(2+2*i, wire.KindOpen))
	}
	for i := range uint32(extra) {
		f, err := wire.ReadFrame(b)
		if want := 2 + 2*(wire.OldChannels+i); err != nil || f.Kind != wire.KindReset || f.Channel != want {
			t.Fatalf("read %s on channel %d, %v, want a reset on channel %d", f.Kind, f.Channel, err, want)
		}
	}
	// A channel that is reset before anyone took it holds its place until then.
	send(t, b, frame(2, wire.KindReset), frame(5000, wire.KindOpen))
	if f, err := wire.ReadFrame(b); err != nil || f.Channel != 5000 || f.Kind != wire.KindReset {
		t.Fatalf("read %v, %v, want a reset on channel 5000", f, err)
	}
	if ch, err := host.Accept(t.Context()); err != nil || ch.ID() != 2 {
		t.Fatalf("accepted %v, %v", ch, err)
	}
	send(t, b, frame(6000, wire.KindOpen), frame(0, wire.KindPing, u64(1)...))
	if f, err := wire.ReadFrame(b); err != nil || f.Kind != wire.KindPong {
		t.Fatalf("read %v, %v, want a pong", f, err)
	}
}

// A peer that makes the host answer and never reads must not take its memory.
func TestPeerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe() // holds nothing, so the host's writer is stuck from its first frame
	defer b.Close()
	host := run(t, context.Background(), wire.NewConn(a, true))
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			ch, err := host.Accept(context.Background())
			if err != nil {
				return
			}
			_ = ch.Close()
		}
	})
	for id := uint32(2); ; id += 2 {
		if err := wire.WriteFrame(b, frame(id, wire.KindOpen)); err != nil {
			break
		}
		if id > 1<<20 {
			t.Fatal("the host goes on answering a peer that does not read")
		}
	}
	wantError(t, host.wait(), wire.ErrProtocol)
	wg.Wait()
}

func TestPing(t *testing.T) {
	t.Parallel()
	host, guest := connect(t)
	var wg sync.WaitGroup
	for _, side := range []*running{host, guest} {
		for range 50 {
			wg.Go(func() {
				if d, err := side.Ping(t.Context()); err != nil || d <= 0 {
					t.Errorf("ping: %v, %v", d, err)
				}
			})
		}
	}
	wg.Wait()
	_ = guest.Close()
	_ = host.wait()
	_, err := host.Ping(t.Context())
	wantError(t, err, wire.ErrClosed)
}

func TestPingFlood(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer b.Close()
	run(t, context.Background(), wire.NewConn(a, true))
	const pings = 200_000 // more answers than the host is ready to queue
	for i := range uint64(pings) {
		send(t, b, frame(0, wire.KindPing, u64(i)...))
	}
	for n := 1; ; n++ {
		f, err := wire.ReadFrame(b)
		if err != nil || f.Kind != wire.KindPong {
			t.Fatal(f, err)
		}
		if bytes.Equal(f.Payload, u64(pings-1)) {
			return
		}
		if n > 2 {
			t.Fatalf("answer %d is not to the latest ping", n)
		}
	}
}

func TestPingWithoutAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		host := run(t, context.Background(), wire.NewConn(a, true))
		ctx, cancel := context.WithCancel(context.Background())
		failed := make(chan error, 1)
		go func() {
			_, err := host.Ping(ctx)
			failed <- err
		}()
		synctest.Wait()
		cancel()
		wantError(t, <-failed, context.Canceled)
	})
}

// Both sides write as much as they can, over a stream that holds nothing, and
// ping at the same time.
func TestBothSidesFull(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	host := run(t, context.Background(), wire.NewConn(a, true))
	guest := run(t, context.Background(), wire.NewConn(b, false))
	near, far := open(t, host, guest)
	var wg sync.WaitGroup
	for _, ch := range []*wire.Channel{near, far} {
		wg.Go(func() { _, _ = ch.Write(make([]byte, 4*wire.DefaultWindow)) })
	}
	for _, side := range []*running{host, guest} {
		if _, err := side.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, ch := range []*wire.Channel{near, far} {
		if _, err := io.CopyN(io.Discard, ch, 4*wire.DefaultWindow); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}

func TestConnCloseDeliversWhatWasWritten(t *testing.T) {
	t.Parallel()
	host, guest := connect(t)
	near, far := open(t, guest, host)
	sent := noise(9, wire.DefaultWindow)
	if _, err := near.Write(sent); err != nil {
		t.Fatal(err)
	}
	if err := guest.Close(); err != nil {
		t.Fatal(err)
	}
	if err := guest.wait(); err != nil {
		t.Errorf("the guest's Run: %v", err)
	}
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("the host read something else, error %v", err)
	}
	_, err := far.Read(got)
	wantError(t, err, wire.ErrClosed)
	if err := host.wait(); err != nil {
		t.Errorf("the host's Run: %v", err)
	}
}

// brokenWriter is a stream whose writes fail while its reads go on.
type brokenWriter struct{ net.Conn }

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteErrorEndsConn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		host := run(t, context.Background(), wire.NewConn(brokenWriter{a}, true))
		ch, err := host.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		send(t, b, frame(1, wire.KindData, []byte("last words")...))
		got := make([]byte, 10)
		if _, err := io.ReadFull(ch, got); err != nil || string(got) != "last words" {
			t.Errorf("read %q, %v", got, err)
		}
		wantError(t, host.wait(), errBroken)
		_, err = ch.Write([]byte("x"))
		wantError(t, err, errBroken)
		_, err = ch.Read(got)
		wantError(t, err, errBroken)
	})
}

// onceBroken is a stream that takes what is little, and fails where much is written to it.
type onceBroken struct{ net.Conn }

func (s onceBroken) Write(p []byte) (int, error) {
	if len(p) > 100 {
		return 0, errBroken
	}
	return s.Conn.Write(p)
}

// Large writes go to the stream from who writes: that they fail ends the connection as well, and what the peer said before is read.
func TestLargeWriteErrorEndsConn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		guest := run(t, context.Background(), wire.NewConn(onceBroken{a}, false))
		go func() { _, _ = io.Copy(io.Discard, b) }()
		ch, err := guest.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // until the channel's opening has left the queue
		_, err = ch.Write(make([]byte, 2*wire.MaxFrame))
		wantError(t, err, errBroken)
		send(t, b, frame(2, wire.KindData, []byte("last words")...))
		got := make([]byte, 10)
		if _, err := io.ReadFull(ch, got); err != nil || string(got) != "last words" {
			t.Errorf("read %q, %v", got, err)
		}
		wantError(t, guest.wait(), errBroken)
	})
}

// A guest that reads nothing holds up whoever writes much to it until the channel is closed, and no longer.
func TestLargeWriteToTheDeafIsCalledOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		host := run(t, context.Background(), wire.NewConn(a, true))
		ch, err := host.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		written := make(chan error)
		go func() {
			_, err := ch.Write(make([]byte, wire.DefaultWindow))
			written <- err
		}()
		synctest.Wait() // until all that can wait does
		_ = ch.Close()
		wantError(t, <-written, wire.ErrClosed)
		_ = b.Close()
		_ = host.wait()
	})
}

func TestCloseOfStuckConn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		defer b.Close()
		host := run(t, context.Background(), wire.NewConn(a, true))
		ch, err := host.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = ch.Write([]byte("nobody reads this"))
		if err := host.Close(); err != nil {
			t.Error(err)
		}
		if err := host.wait(); err != nil {
			t.Errorf("Run after Close: %v", err)
		}
	})
}

func TestCloseBeforeRun(t *testing.T) {
	t.Parallel()
	a, b := socketPair(t)
	defer b.Close()
	host := wire.NewConn(a, true)
	if err := host.Close(); err != nil {
		t.Fatal(err)
	}
	if err := host.Run(context.Background()); err != nil {
		t.Errorf("Run after Close: %v", err)
	}
	<-host.Done()
}

func TestCallsWithDoneContext(t *testing.T) {
	t.Parallel()
	host, _ := connect(t)
	if _, err := host.Ping(t.Context()); err != nil { // now Run is under way
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the user gave up")
	cancel(cause)
	_, err := host.Open(ctx)
	wantError(t, err, cause)
	_, err = host.Accept(ctx)
	wantError(t, err, cause)
	if err := host.Run(t.Context()); err == nil {
		t.Error("a second Run began")
	}
}

// What the guest said before it went away counts, even if it said it with the
// host's own words still unread.
func TestPeerLeavesWithInputUnread(t *testing.T) {
	t.Parallel()
	a, b := socketPair(t)
	host := run(t, context.Background(), wire.NewConn(a, true))
	ch, err := host.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.ReadFrame(b); err != nil { // the open
		t.Fatal(err)
	}
	if _, err := ch.Write([]byte("never read")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Read(make([]byte, 1)); err != nil { // the rest of the frame has arrived, too
		t.Fatal(err)
	}
	send(t, b, frame(1, wire.KindData, []byte("bye")...), frame(1, wire.KindEOF))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(ch)
	if err != nil || string(got) != "bye" {
		t.Errorf("read %q, %v", got, err)
	}
	if err := host.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// bursts is a stream whose every Read fills what it is given from one burst.
type bursts struct {
	next chan []byte
	left []byte
	io.WriteCloser
}

func (b *bursts) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		b.left = <-b.next
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }

// TestBurstsWakeTheirReaders has frames come at once, and nothing after them: who waits for them gets them all, whatever else is among them.
func TestBurstsWakeTheirReaders(t *testing.T) {
	t.Parallel()
	full := repeat(2, 1)[0]
	for name, burst := range map[string][]wire.Frame{
		"a small one at the end": {full, full, full, frame(2, wire.KindData, 'x')},
		"full ones":              repeat(2, 5),
		"a ping behind":          {full, frame(0, wire.KindPing, u64(1)...)},
		"an empty one behind":    {full, frame(2, wire.KindData), frame(4, wire.KindData, 'y')},
		"another's between":      {full, repeat(4, 1)[0], full, frame(4, wire.KindData, 'y'), frame(2, wire.KindData, 'x')},
		"of a channel not there": {full, repeat(6, 1)[0]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				stream := &bursts{next: make(chan []byte), WriteCloser: discard{io.Discard}}
				host := run(t, context.Background(), wire.NewConn(stream, true))
				defer func() { close(stream.next); _ = host.Close() }()
				flat := func(frames ...wire.Frame) []byte {
					var b bytes.Buffer
					send(t, &b, frames...)
					return b.Bytes()
				}
				stream.next <- flat(frame(2, wire.KindOpen), frame(4, wire.KindOpen))
				want := map[uint32]int{}
				for _, f := range burst {
					if f.Kind == wire.KindData {
						want[f.Channel] += len(f.Payload)
					}
				}
				all := make(chan error)
				for range 2 {
					ch, err := host.Accept(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					go func() {
						_, err := io.ReadAtLeast(ch, make([]byte, 1<<20), want[ch.ID()])
						all <- err
					}()
				}
				synctest.Wait() // both wait
				stream.next <- flat(burst...)
				for range 2 {
					select {
					case err := <-all:
						if err != nil {
							t.Error(err)
						}
					case <-time.After(time.Minute):
						t.Fatal("a reader was not woken")
					}
				}
			})
		})
	}
}
