package wire_test

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"cove/internal/machine/wire"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// socketPair returns the two ends of a unix stream socket.
func socketPair(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		ends[i], err = net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return ends[0], ends[1]
}

// running is a Conn whose Run is under way.
type running struct {
	*wire.Conn
	ended chan struct{}
	err   error // what Run returned
}

func run(t testing.TB, ctx context.Context, c *wire.Conn) *running {
	t.Helper()
	r := &running{Conn: c, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = c.Run(ctx)
	}()
	t.Cleanup(func() {
		_ = c.Close()
		<-r.ended
	})
	return r
}

// wait returns what Run returned.
func (r *running) wait() error {
	<-r.ended
	return r.err
}

// connect returns a running host and guest.
func connect(t testing.TB) (host, guest *running) {
	t.Helper()
	a, b := socketPair(t)
	return run(t, context.Background(), wire.NewConn(a, true)), run(t, context.Background(), wire.NewConn(b, false))
}

// open returns the two ends of a channel from one side to the other.
func open(t testing.TB, from, to *running) (*wire.Channel, *wire.Channel) {
	t.Helper()
	near, err := from.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	far, err := to.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if near.ID() != far.ID() {
		t.Fatalf("opened channel %d, accepted channel %d", near.ID(), far.ID())
	}
	return near, far
}

func wantError(t testing.TB, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}
