package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"cove/internal/machine/wire"

	"github.com/google/go-cmp/cmp"
)

func TestHandshake(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	host, guest := wire.NewConn(a, true), wire.NewConn(b, false)
	defer host.Close()
	defer guest.Close()
	type result struct {
		hello wire.Hello
		err   error
	}
	got := make(chan result)
	go func() {
		h, err := guest.Handshake(wire.Hello{Token: "secret", Info: json.RawMessage(`{"pid":1}`)}, nil)
		got <- result{h, err}
	}()
	h, err := host.Handshake(wire.Hello{Info: json.RawMessage(`"welcome"`)}, func(peer wire.Hello) error {
		if peer.Token != "secret" {
			return errors.New("wrong token")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := wire.Hello{Version: wire.Version, Narrow: true, Token: "secret", Info: json.RawMessage(`{"pid":1}`)}
	if d := cmp.Diff(want, h); d != "" {
		t.Errorf("at the host: %s", d)
	}
	r := <-got
	want = wire.Hello{Version: wire.Version, Narrow: true, Info: json.RawMessage(`"welcome"`)}
	if d := cmp.Diff(want, r.hello); d != "" || r.err != nil {
		t.Errorf("at the guest: %v %s", r.err, d)
	}
}

// TestAnOlderGuest: a guest speaks and accepts its own version alone, which a newer host answers in.
func TestAnOlderGuest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		guest, oldest, newest int
		refused               string
	}{
		"the same":         {3, 2, 3, ""},
		"older":            {2, 2, 3, ""},
		"too old":          {1, 2, 3, "version 1 and this side 2 to 3"},
		"newer":            {4, 2, 3, "version 4 and this side 2 to 3"},
		"one version only": {2, 0, 3, "version 2 and this side 3 to 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := net.Pipe()
			host, guest := wire.NewConn(a, true), wire.NewConn(b, false)
			answered := make(chan error, 1)
			go func() {
				h, err := guest.Handshake(wire.Hello{Version: c.guest}, nil)
				if err == nil && h.Version != c.guest {
					err = fmt.Errorf("answered in version %d", h.Version)
				}
				answered <- err
			}()
			_, err := host.Handshake(wire.Hello{Version: c.newest, Oldest: c.oldest}, nil)
			_ = host.Close()
			said := <-answered
			_ = guest.Close()
			if c.refused == "" && (err != nil || said != nil) {
				t.Errorf("host: %v, guest: %v", err, said)
			}
			if c.refused != "" && (!errors.Is(err, wire.ErrProtocol) || !strings.Contains(err.Error(), c.refused) || said == nil) {
				t.Errorf("host: %v, guest: %v", err, said)
			}
		})
	}
}

func TestHostRefusesHello(t *testing.T) {
	t.Parallel()
	refused := errors.New("wrong token")
	for name, c := range map[string]struct {
		first wire.Frame
		want  error
		words string
	}{
		"another version": {wire.Frame{Kind: wire.KindHello, Payload: []byte(`{"version":2}`)}, wire.ErrProtocol, "version 2"},
		"no version":      {wire.Frame{Kind: wire.KindHello, Payload: []byte(`{}`)}, wire.ErrProtocol, "version 0"},
		"not JSON":        {wire.Frame{Kind: wire.KindHello, Payload: []byte(`{`)}, wire.ErrProtocol, "hello"},
		"another frame":   {wire.Frame{Kind: wire.KindData}, wire.ErrProtocol, "data"},
		"on a channel":    {wire.Frame{Kind: wire.KindHello, Channel: 1, Payload: []byte(`{"version":1}`)}, wire.ErrProtocol, "channel 1"},
		"a wrong token":   {wire.Frame{Kind: wire.KindHello, Payload: []byte(`{"version":1}`)}, refused, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := net.Pipe()
			host := wire.NewConn(a, true)
			defer host.Close()
			sent := make(chan error)
			go func() { sent <- wire.WriteFrame(b, c.first) }()
			_, err := host.Handshake(wire.Hello{}, func(wire.Hello) error { return refused })
			wantError(t, err, c.want)
			if err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("error %q does not mention %q", err, c.words)
			}
			if err := <-sent; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestGuestRefusesVersion(t *testing.T) {
	t.Parallel()
	a, b := socketPair(t)
	defer a.Close()
	guest := wire.NewConn(b, false)
	defer guest.Close()
	if err := wire.WriteFrame(a, wire.Frame{Kind: wire.KindHello, Payload: []byte(`{"version":9}`)}); err != nil {
		t.Fatal(err)
	}
	_, err := guest.Handshake(wire.Hello{}, nil)
	wantError(t, err, wire.ErrProtocol)
}

func TestCloseUnblocksHandshake(t *testing.T) {
	t.Parallel()
	a, b := socketPair(t)
	defer a.Close()
	host := wire.NewConn(b, true)
	failed := make(chan error)
	go func() {
		_, err := host.Handshake(wire.Hello{}, nil)
		failed <- err
	}()
	if err := host.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("the handshake succeeded without a peer")
	}
}
