package guestlink_test

import (
	"context"
	"encoding/json"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/wire"
)

// counted is a network that counts what it is asked, and holds its connections until they end.
type counted struct{ lookUps, connects, open atomic.Int32 }

func (*counted) Allows() []string { return nil }

func (*counted) Certificates() []byte { return nil }

func (c *counted) LookUp(context.Context, string) error {
	c.lookUps.Add(1)
	return nil
}

func (c *counted) Connect(_ context.Context, _ string, _ int, conn guestlink.Stream, ready func() error) error {
	c.connects.Add(1)
	c.open.Add(1)
	defer c.open.Add(-1)
	if err := ready(); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, conn)
	return err
}

// TestHostileGuestOnTheNetwork has a guest want what cannot be, say garbage, and open as many channels as it can.
func TestHostileGuestOnTheNetwork(t *testing.T) {
	t.Parallel()
	l, guest, _ := openedFor(t, wire.OpNetwork, wire.Response{})
	n := &counted{}
	stop, err := l.ServeNetwork(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	want := func(header any) (wire.Response, error) {
		ch, err := guest.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ch.Close() }()
		var r wire.Response
		if err := wire.WriteMessage(ch, header, nil); err != nil {
			return r, err
		}
		_, err = wire.ReadMessage(ch, wire.MessageLimit, &r)
		return r, err
	}
	for _, o := range []wire.Outbound{
		{}, {Kind: "other", Host: "a.test"}, {Kind: wire.OutboundLookUp}, {Kind: wire.OutboundLookUp, Host: "A.test"}, {Kind: wire.OutboundLookUp, Host: "a\x00.test"}, {Kind: wire.OutboundConnect, Host: "a.test"},
		{Kind: wire.OutboundConnect, Host: "a.test", Port: 65536}, {Kind: wire.OutboundConnect, Host: "a.test", Port: -1}, {Kind: wire.OutboundConnect, Host: "::1", Port: 80}, {Kind: wire.OutboundConnect, Host: "a/b", Port: 80},
	} {
		if r, err := want(o); err != nil || r.Code != wire.FaultUnreachable {
			t.Errorf("%+v: %+v, %v", o, r, err)
		}
	}
	if _, err := want(json.RawMessage(`[1]`)); err == nil {
		t.Error("garbage was answered")
	}
	if n.lookUps.Load()+n.connects.Load() != 0 {
		t.Errorf("the network was asked %d times", n.lookUps.Load()+n.connects.Load())
	}
	if r, err := want(wire.Outbound{Kind: wire.OutboundLookUp, Host: "a.test"}); err != nil || r.Code != "" {
		t.Errorf("%+v, %v", r, err)
	}
	for range wire.MaxChannels - 10 {
		ch, err := guest.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = wire.WriteMessage(ch, wire.Outbound{Kind: wire.OutboundConnect, Host: "a.test", Port: 80}, nil)
	}
	for deadline := time.Now().Add(time.Minute); n.open.Load() < wire.NetworkLimit; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are open", n.open.Load())
		}
	}
	if open := n.open.Load(); open > wire.NetworkLimit {
		t.Errorf("%d connections are open", open)
	}
	stop()
	stop()
	if open := n.open.Load(); open != 0 {
		t.Errorf("%d connections are open after the end", open)
	}
}

func TestRebootOfAnOlderGuest(t *testing.T) {
	t.Parallel()
	l, _, _ := openedFor(t, wire.OpReboot, wire.Response{Code: wire.FaultInvalid, Message: "unknown operation"})
	if err := l.Reboot(t.Context()); !problem.Has(err, problem.RebootAbsent) {
		t.Error(err)
	}
}

func TestNetworkOfAnOlderGuest(t *testing.T) {
	t.Parallel()
	l, _, _ := openedFor(t, wire.OpNetwork, wire.Response{Code: wire.FaultInvalid, Message: "unknown operation"})
	if _, err := l.ServeNetwork(t.Context(), &counted{}); !problem.Has(err, problem.NetworkAbsent) {
		t.Error(err)
	}
}
