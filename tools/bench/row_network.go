package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Reaching is a Subject whose code reaches a server on this machine.
type Reaching interface {
	// Source listens where its code may connect to.
	Source() (net.Listener, error)
	// Reach opens something whose code connects to address, and says at which address the code finds it.
	Reach(ctx context.Context, address string) (l Live, found string, err error)
}

var _, _ Reaching = (*coveServer)(nil), (*relay)(nil)

// fetching is what code does: times of so many small pages and of a large one, in seconds.
const fetching = `
import http.client, time
def fetch(size):
    c = http.client.HTTPConnection(%q, timeout=600)
    began = time.perf_counter()
    c.request("GET", "/%%d" %% size)
    r = c.getresponse()
    buffer, got, first = bytearray(1 << 20), 0, None
    while n := r.readinto(buffer):
        first = first or time.perf_counter() - began
        got += n
    c.close()
    assert got == size, got
    return first, time.perf_counter() - began
small = [fetch(10)[0] for _ in range(%d)][%d:]
large = fetch(%d)[1]`

func networkRow() Row {
	const warm, perRound, large = 2, 20, 1_000_000_000
	return Row{
		ID: "network", Title: "code that connects elsewhere", Rounds: 3, Quick: 1,
		Measures: []Measure{
			{ID: "network-first", Title: "first byte from another machine", Unit: "ms",
				Detail: fmt.Sprintf("a small page of a server on the host, each over a connection of its own, from before it is opened until the first byte, by code's clock; %d in each of several sessions, after %d that do not count. cove: by rules, through the guest and the host.", perRound, warm)},
			{ID: "network-1gb", Title: "1 GB from another machine", Unit: "ms", Detail: "until code has read every byte, by its clock."},
		},
		Able: as[Reaching]("code in it reaches nothing"),
		Round: func(ctx context.Context, s Subject, rec Recorder) (err error) {
			listener, err := s.(Reaching).Source()
			if err != nil {
				return err
			}
			source := zeros(listener)
			defer func() { _ = source.Close() }()
			l, found, err := s.(Reaching).Reach(ctx, listener.Addr().String())
			if err != nil {
				return err
			}
			defer free(ctx, l, &err)
			out, err := l.Run(ctx, Task{Setup: fmt.Sprintf(fetching, found, warm+perRound, warm, large), Expr: `" ".join(str(t) for t in [large, *small])`})
			if err != nil {
				return err
			}
			times := strings.Fields(strings.Trim(strings.TrimSpace(out.Text), "'"))
			if len(times) != 1+perRound {
				return fmt.Errorf("%d times came: %.100q", len(times), out.Text)
			}
			for i, text := range times {
				seconds, err := strconv.ParseFloat(text, 64)
				if err != nil {
					return err
				}
				rec.took(map[bool]int{true: 1, false: 0}[i == 0], time.Duration(seconds*float64(time.Second)))
			}
			return nil
		},
	}
}

// zeros serves pages of so many bytes as their path says.
func zeros(listener net.Listener) *http.Server {
	piece := make([]byte, 1<<20)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		left, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		w.Header().Set("Content-Length", strconv.Itoa(left))
		for left > 0 {
			n, err := w.Write(piece[:min(left, len(piece))])
			if err != nil {
				return
			}
			left -= n
		}
	})}
	go func() { _ = server.Serve(listener) }()
	return server
}

// Source implements Reaching. The server was told the address at its start.
func (s *coveServer) Source() (net.Listener, error) {
	if s.source == "" {
		return nil, errors.New("this machine has no address but 127.0.0.1, which in a session is the session's own")
	}
	return net.Listen("tcp", s.source)
}

// ownAddress is an address of this machine that is not that of loopback.
func ownAddress() (string, bool) {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String(), true
		}
	}
	return "", false
}

// Source implements Reaching.
func (*relay) Source() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// Reach implements Reaching.
func (s *coveServer) Reach(ctx context.Context, address string) (Live, string, error) {
	l, err := s.create(ctx, `{"network":{"allow":["`+address+`"]}}`)
	return l, address, err
}

// relayedProgram is Python on the host that reaches a server through a relay.
type relayedProgram struct {
	s        *relay
	listener net.Listener
}

// Reach implements Reaching.
func (s *relay) Reach(_ context.Context, address string) (Live, string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	go relayTo(listener, address)
	return &relayedProgram{s, listener}, listener.Addr().String(), nil
}

// Run implements Live.
func (l *relayedProgram) Run(ctx context.Context, t Task) (Output, error) {
	text, err := l.s.shop.do(ctx, l.s.shop.command(l.s.env.Python, "-c", t.Program()))
	return Output{Text: text}, err
}

// Close implements Live.
func (l *relayedProgram) Close(context.Context) error {
	if err := l.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
