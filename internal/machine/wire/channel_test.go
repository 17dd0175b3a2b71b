package wire_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"cove/internal/machine/wire"
)

func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestChannelEchoAndHalfClose(t *testing.T) {
	t.Parallel()
	host, guest := connect(t)
	near, far := open(t, host, guest)
	go func() {
		_, _ = io.Copy(far, far)
		_ = far.CloseWrite()
	}()
	sent := noise(1, 5*wire.DefaultWindow+17)
	go func() {
		_, _ = near.Write(sent)
		_ = near.CloseWrite()
	}()
	got, err := io.ReadAll(near)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came back from %d, or others", len(got), len(sent))
	}
	_, err = near.Write([]byte("x"))
	wantError(t, err, wire.ErrClosed)
}

func TestConcurrentChannels(t *testing.T) {
	t.Parallel()
	host, guest := connect(t)
	const channels = 24
	var wg sync.WaitGroup
	for _, side := range []*running{host, guest} {
		wg.Go(func() {
			for range channels {
				ch, err := side.Accept(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				wg.Go(func() {
					defer ch.Close()
					h := sha256.New()
					if _, err := io.Copy(h, ch); err != nil {
						t.Error(err)
					}
					if _, err := ch.Write(h.Sum(nil)); err != nil {
						t.Error(err)
					}
				})
			}
		})
		for i := range channels {
			wg.Go(func() {
				ch, err := side.Open(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				defer ch.Close()
				sent := noise(uint64(i), i*i*2000)
				for piece := range slices.Chunk(sent, 1+i*9970) {
					if _, err := ch.Write(piece); err != nil {
						t.Error(err)
					}
				}
				_ = ch.CloseWrite()
				sum, err := io.ReadAll(ch)
				if want := sha256.Sum256(sent); err != nil || !bytes.Equal(sum, want[:]) {
					t.Errorf("channel %d: %v, sum %x, want %x", ch.ID(), err, sum, want)
				}
			})
		}
	}
	wg.Wait()
}

func TestConcurrentWritesStayWhole(t *testing.T) {
	t.Parallel()
	host, guest := connect(t)
	near, far := open(t, host, guest)
	const writers, size = 8, 300_000
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			if err := wire.WriteMessage(near, i, bytes.Repeat([]byte{byte(i)}, size)); err != nil {
				t.Error(err)
			}
		})
	}
	for range writers {
		var i int
		body, err := wire.ReadMessage(far, size+10, &i)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(body, bytes.Repeat([]byte{byte(i)}, size)) {
			t.Fatalf("message %d is mixed with another", i)
		}
	}
	wg.Wait()
}

func TestSlowReaderHoldsUpOnlyItsChannel(t *testing.T) {
	t.Parallel()
	host, guest := connect(t)
	slow, slowFar := open(t, host, guest)
	stuck := make(chan error)
	go func() {
		_, err := slow.Write(make([]byte, 2*wire.DefaultWindow))
		stuck <- err
	}()
	for range 3 {
		near, far := open(t, guest, host)
		sent := noise(3, 3*wire.DefaultWindow)
		go func() {
			_, _ = near.Write(sent)
			_ = near.Close()
		}()
		got, err := io.ReadAll(far)
		if err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("read %d of %d bytes, error %v", len(got), len(sent), err)
		}
		_ = far.Close()
	}
	select {
	case err := <-stuck:
		t.Fatalf("a write of two windows ended with nobody reading: %v", err)
	default:
	}
	if _, err := io.CopyN(io.Discard, slowFar, 2*wire.DefaultWindow); err != nil {
		t.Fatal(err)
	}
	if err := <-stuck; err != nil {
		t.Fatal(err)
	}
}

func TestZeroLength(t *testing.T) {
	t.Parallel()
	host, guest := connect(t)
	near, far := open(t, host, guest)
	if n, err := near.Write(nil); n != 0 || err != nil {
		t.Errorf("empty write: %d, %v", n, err)
	}
	if n, err := far.Read(nil); n != 0 || err != nil {
		t.Errorf("empty read: %d, %v", n, err)
	}
	if err := near.CloseWrite(); err != nil {
		t.Error(err)
	}
	if err := near.CloseWrite(); err != nil {
		t.Errorf("second CloseWrite: %v", err)
	}
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("read %v, want io.EOF", err)
	}
}

// In a bubble, synctest.Wait returns when everything is blocked: that is what
// shows that a call waits, without a clock.
func TestUnblocking(t *testing.T) {
	t.Parallel()
	reset := func(_, far *wire.Channel, _, _ *running) { _ = far.Reset("enough") }
	for name, c := range map[string]struct {
		act  func(near, far *wire.Channel, host, guest *running)
		want error
	}{
		"Close":        {func(near, _ *wire.Channel, _, _ *running) { _ = near.Close() }, wire.ErrClosed},
		"Reset":        {func(near, _ *wire.Channel, _, _ *running) { _ = near.Reset("") }, wire.ErrClosed},
		"peer's Reset": {reset, wire.ErrReset},
		"Conn.Close":   {func(_, _ *wire.Channel, host, _ *running) { _ = host.Close() }, wire.ErrClosed},
		"peer's end":   {func(_, _ *wire.Channel, _, guest *running) { _ = guest.Close() }, wire.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a, b := net.Pipe()
				host := run(t, context.Background(), wire.NewConn(a, true))
				guest := run(t, context.Background(), wire.NewConn(b, false))
				near, far := open(t, host, guest)
				read, write, second := make(chan error, 1), make(chan error, 1), make(chan error, 1)
				var n int
				go func() {
					_, err := near.Read(make([]byte, 1))
					read <- err
				}()
				go func() {
					var err error
					n, err = near.Write(make([]byte, wire.DefaultWindow+1))
					write <- err
				}()
				synctest.Wait()
				go func() {
					_, err := near.Write([]byte("x"))
					second <- err
				}()
				if len(read)+len(write) > 0 {
					t.Fatal("Read or Write did not wait")
				}
				c.act(near, far, host, guest)
				wantError(t, <-read, c.want)
				wantError(t, <-write, c.want)
				wantError(t, <-second, c.want)
				if n != wire.DefaultWindow {
					t.Errorf("wrote %d bytes on a credit of %d", n, wire.DefaultWindow)
				}
			})
		})
	}
}

func TestCloseDeliversWhatWasWritten(t *testing.T) {
	t.Parallel()
	host, guest := connect(t)
	near, far := open(t, guest, host)
	sent := noise(5, wire.DefaultWindow)
	if _, err := near.Write(sent); err != nil {
		t.Fatal(err)
	}
	if err := near.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(far)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("read %d of %d bytes, error %v", len(got), len(sent), err)
	}
	for err == nil { // until the reset that follows the end has arrived
		_, err = far.Write(make([]byte, 1000))
	}
	wantError(t, err, wire.ErrReset)
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("read %v, want io.EOF", err)
	}
}

// A Write that Close cuts short must not look whole at the other end.
func TestCloseDuringWriteIsNoCleanEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		host := run(t, context.Background(), wire.NewConn(a, true))
		guest := run(t, context.Background(), wire.NewConn(b, false))
		near, far := open(t, host, guest)
		go func() { _, _ = near.Write(make([]byte, 2*wire.DefaultWindow)) }()
		synctest.Wait()
		_ = near.Close()
		synctest.Wait()
		_, err := io.ReadAll(far)
		wantError(t, err, wire.ErrReset)
	})
}

func TestResetReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ reason, want string }{
		"plain":    {"no such file: 图.csv", "wire: channel reset by peer: no such file: 图.csv"},
		"none":     {"", "wire: channel reset by peer"},
		"controls": {"a\x1b[31mb\nc", "wire: channel reset by peer: a\uFFFD[31mb\uFFFDc"},
		"bad UTF8": {"a\xffb", "wire: channel reset by peer: ab"},
		"long":     {strings.Repeat("x", 5000), "wire: channel reset by peer: " + strings.Repeat("x", 1024)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, guest := connect(t)
			near, far := open(t, host, guest)
			if err := far.Reset(c.reason); err != nil {
				t.Fatal(err)
			}
			_, err := near.Read(make([]byte, 1))
			wantError(t, err, wire.ErrReset)
			if fmt.Sprint(err) != c.want {
				t.Errorf("got %q, want %q", err, c.want)
			}
		})
	}
}

func BenchmarkChannel(b *testing.B) {
	for _, size := range []int{100, 4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("write=%d", size), func(b *testing.B) {
			host, guest := connect(b)
			near, far := open(b, host, guest)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			go func() {
				p := make([]byte, size)
				for range b.N {
					_, _ = near.Write(p)
				}
				_ = near.CloseWrite()
			}()
			if _, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{far}, make([]byte, 64<<10)); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	host, guest := connect(b)
	near, far := open(b, host, guest)
	go func() { _, _ = io.Copy(far, far) }()
	p := make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := near.Write(p); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(near, p); err != nil {
			b.Fatal(err)
		}
	}
}
