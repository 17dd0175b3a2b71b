package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"cove/internal/machine/wire"
)

// agreed returns a host and a guest after their handshake.
func agreed(t *testing.T) (host, guest *running) {
	t.Helper()
	a, b := socketPair(t)
	h, g := wire.NewConn(a, true), wire.NewConn(b, false)
	said := make(chan error, 1)
	go func() {
		_, err := g.Handshake(wire.Hello{}, nil)
		said <- err
	}()
	if _, err := h.Handshake(wire.Hello{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-said; err != nil {
		t.Fatal(err)
	}
	return run(t, context.Background(), h), run(t, context.Background(), g)
}

// agreedWith returns a host whose guest is a bare stream.
func agreedWith(t *testing.T) (host *running, guest net.Conn) {
	t.Helper()
	a, b := socketPair(t)
	t.Cleanup(func() { _ = b.Close() })
	send(t, b, frame(0, wire.KindHello, fmt.Appendf(nil, `{"version":%d,"narrow":true}`, wire.Version)...))
	c := wire.NewConn(a, true)
	if _, err := c.Handshake(wire.Hello{}, nil); err != nil {
		t.Fatal(err)
	}
	if f, err := wire.ReadFrame(b); err != nil || !bytes.Contains(f.Payload, []byte(`"narrow":true`)) {
		t.Fatalf("the host says %s, %v", f.Payload, err)
	}
	return run(t, context.Background(), c), b
}

// TestManyChannels: as many channels as there may be carry more than their windows, wide ones and narrow ones, and each gives its place back.
func TestManyChannels(t *testing.T) {
	t.Parallel()
	host, guest := agreed(t)
	for range 2 {
		var near, far []*wire.Channel
		for range wire.MaxChannels {
			a, b := open(t, host, guest)
			near, far = append(near, a), append(far, b)
		}
		if _, err := host.Open(t.Context()); err == nil {
			t.Error("opened one channel more than the limit")
		}
		var all sync.WaitGroup
		for i, a := range near {
			all.Go(func() {
				sent := bytes.Repeat([]byte{byte(i)}, 3*wire.NarrowWindow/2)
				if _, err := a.Write(sent); err != nil {
					t.Error(err)
				}
				_ = a.CloseWrite()
			})
			all.Go(func() {
				got, err := io.ReadAll(far[i])
				if want := 3 * wire.NarrowWindow / 2; err != nil || len(got) != want || bytes.Count(got, []byte{byte(i)}) != want {
					t.Errorf("channel %d: %d bytes, %v", i, len(got), err)
				}
				_ = far[i].CloseWrite()
			})
		}
		all.Wait()
		for _, a := range near {
			if _, err := a.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
	}
}

// TestNarrowWindows: what a hostile guest sends on the channels that it opens stays within their windows.
func TestNarrowWindows(t *testing.T) {
	t.Parallel()
	host, guest := agreedWith(t)
	for i := range uint32(wire.WideChannels + 1) {
		send(t, guest, frame(2+2*i, wire.KindOpen))
	}
	f, err := wire.ReadFrame(guest)
	if want := uint32(2 + 2*wire.WideChannels); err != nil || f.Kind != wire.KindReset || f.Channel != want {
		t.Fatalf("read %v, %v, want a reset on channel %d", f, err, want)
	}
	send(t, guest, frame(5000, wire.KindOpen, u32(wire.NarrowWindow)...), frame(5000, wire.KindData, make([]byte, wire.NarrowWindow)...))
	for {
		ch, err := host.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ch.ID() != 5000 {
			continue
		}
		if n, err := io.ReadFull(ch, make([]byte, wire.NarrowWindow)); err != nil {
			t.Fatalf("read %d bytes, %v", n, err)
		}
		break
	}
	if f, err := wire.ReadFrame(guest); err != nil || f.Kind != wire.KindCredit || f.Channel != 5000 || !bytes.Equal(f.Payload, u32(wire.NarrowWindow)) {
		t.Fatalf("read %v, %v, want the whole window back", f, err)
	}
	send(t, guest, frame(5000, wire.KindData, make([]byte, wire.NarrowWindow)...), frame(5000, wire.KindData, 'x'))
	wantError(t, host.wait(), wire.ErrProtocol)
}

// TestWindowsNobodyAgreedOn: of the windows that a guest may ask for there is one.
func TestWindowsNobodyAgreedOn(t *testing.T) {
	t.Parallel()
	for _, payload := range [][]byte{u32(0), u32(wire.NarrowWindow + 1), u32(1<<32 - 1), {1, 2, 3}, make([]byte, 5)} {
		host, guest := agreedWith(t)
		send(t, guest, frame(2, wire.KindOpen, payload...))
		wantError(t, host.wait(), wire.ErrProtocol)
	}
}
