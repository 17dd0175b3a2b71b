package guestlink_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"cove/internal/machine/guestlink"
	"cove/internal/machine/wire"
)

// opened returns a link to a guest that answers the first operation with response and holds its channel until the host closes it. closed tells of that.
func opened(t *testing.T, response wire.Response) (l *guestlink.Link, guest *wire.Conn, closed <-chan struct{}) {
	t.Helper()
	return openedFor(t, wire.OpForward, response)
}

func openedFor(t *testing.T, op string, response wire.Response) (l *guestlink.Link, guest *wire.Conn, closed <-chan struct{}) {
	t.Helper()
	near, far := net.Pipe()
	guest = wire.NewConn(far, false)
	over := make(chan struct{})
	go func() {
		defer close(over)
		info := wire.Encode(wire.GuestInfo{Workspace: "/home/user", Processes: []string{}})
		if _, err := guest.Handshake(wire.Hello{Version: wire.Version, Info: info}, nil); err != nil {
			return
		}
		go func() { _ = guest.Run(context.Background()) }()
		ch, err := guest.Accept(context.Background())
		if err != nil {
			return
		}
		var req wire.Request
		if _, err := wire.ReadMessage(ch, wire.MessageLimit, &req); err != nil {
			return // who asks may have been given up before the question was sent
		}
		if req.Op != op {
			t.Errorf("the guest was asked for %q", req.Op)
			return
		}
		_ = wire.WriteMessage(ch, response, nil)
		_, _ = io.Copy(io.Discard, ch)
		_ = ch.Close()
	}()
	l, err := guestlink.Open(t.Context(), near, guestlink.Session{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Close()
		_ = guest.Close()
	})
	return l, guest, over
}

func TestForward(t *testing.T) {
	t.Parallel()
	l, guest, closed := opened(t, wire.Response{Port: 4711})
	f, err := l.Forward(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f.Port != 4711 || f.Addr().String() != "127.0.0.1:4711" {
		t.Errorf("the port is %d, the address %s", f.Port, f.Addr())
	}
	sizes := map[string]int{"moo!": 5_000, "huge": 1_000_000}
	served := make(chan error, 1)
	go func() {
		for {
			c, err := f.Accept()
			if err != nil {
				served <- err
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				var asked [4]byte
				if _, err := io.ReadFull(c, asked[:]); err == nil {
					_, _ = c.Write([]byte(strings.Repeat(string(asked[:]), sizes[string(asked[:])])))
				}
			}()
		}
	}()
	for range 3 * wire.ForwardLimit {
		ch, err := guest.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ch.Write([]byte("moo!")); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(ch)
		if err != nil || string(answer) != strings.Repeat("moo!", sizes["moo!"]) {
			t.Fatalf("answered were %d bytes (%v)", len(answer), err)
		}
		_ = ch.Close()
	}
	hanging, err := guest.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hanging.Write([]byte("huge")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(hanging, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept ends with %v", err)
	}
	<-closed
	if _, err := io.ReadAll(hanging); err == nil {
		t.Error("a connection that hung has ended well")
	}
}

func TestForwardEndsWithItsLink(t *testing.T) {
	t.Parallel()
	l, guest, _ := opened(t, wire.Response{Port: 1})
	f, err := l.Forward(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = guest.Close()
	if _, err := f.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept ends with %v", err)
	}
	_ = f.Close()
}

func TestForwardThatFails(t *testing.T) {
	t.Parallel()
	for name, response := range map[string]wire.Response{"fault": {Code: wire.FaultInvalid, Message: "no"}, "no port": {}, "absurd port": {Port: 1 << 20}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _, closed := opened(t, response)
			if _, err := l.Forward(t.Context()); err == nil {
				t.Error("it is no error")
			}
			<-closed
		})
	}
	l, _, _ := opened(t, wire.Response{Port: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Forward(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("without time: %v", err)
	}
}
