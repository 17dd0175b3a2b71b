package guestlink_test

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/wire"
)

// greeted returns a link to a guest that has said hello, and then does what serve does.
func greeted(t *testing.T, serve func(guest *wire.Conn)) *guestlink.Link {
	t.Helper()
	near, far := net.Pipe()
	guest := wire.NewConn(far, false)
	go func() {
		if _, err := guest.Handshake(wire.Hello{Version: wire.Version, Info: wire.Encode(wire.GuestInfo{Workspace: "/home/user", Files: true})}, nil); err == nil {
			serve(guest)
		}
	}()
	l, err := guestlink.Open(t.Context(), near, guestlink.Session{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the guest first: one that is silent would not take the end of the link
		_ = far.Close()
		_ = guest.Close()
		_ = l.Close()
	})
	return l
}

// TestAGuestThatIsSilent has requests of each kind wait for a guest that is stopped: they end, without their callers' doing.
func TestAGuestThatIsSilent(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(ctx context.Context, l *guestlink.Link) error{
		"a question":         func(ctx context.Context, l *guestlink.Link) error { _, err := l.Stat(ctx, "a"); return err },
		"of the file system": func(ctx context.Context, l *guestlink.Link) error { _, err := l.StatPath(ctx, "/a", false); return err },
		"an upload": func(ctx context.Context, l *guestlink.Link) error {
			_, err := l.WritePath(ctx, "/a", io.LimitReader(zeros{}, 1<<30), filesystem.Set{}, false)
			return err
		},
		"a download": func(ctx context.Context, l *guestlink.Link) error { _, err := l.OpenPath(ctx, "/a", 0, 0); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := greeted(t, func(*wire.Conn) {})
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := ask(ctx, l); !problem.Has(err, problem.GuestSilent) {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestAGuestThatTakesLong answers after an hour, and gives signs of life meanwhile.
func TestAGuestThatTakesLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := greeted(t, func(guest *wire.Conn) {
			go func() { _ = guest.Run(context.Background()) }()
			ch, err := guest.Accept(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			var req wire.Request
			_, _ = wire.ReadMessage(ch, wire.MessageLimit, &req)
			time.Sleep(time.Hour)
			_ = wire.WriteMessage(ch, wire.Response{}, []byte(`{"size":7}`))
			_ = ch.Close()
		})
		if info, err := l.Stat(t.Context(), "a"); err != nil || info.Size != 7 {
			t.Errorf("%+v, %v", info, err)
		}
	})
}
