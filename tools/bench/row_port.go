package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"cove/internal/python/pyenv"
)

// Hosting is a Subject in which a server of HTTP can run that its clients reach.
type Hosting interface {
	// Host starts pageServer and returns once it answers.
	Host(ctx context.Context) (Hosted, error)
}

// Hosted is such a server.
type Hosted interface {
	Close(ctx context.Context) error
	// Get asks for a path of it.
	Get(ctx context.Context, path string) (*http.Response, error)
}

var _, _ Hosting = (*coveServer)(nil), (*relay)(nil)

// pageServer answers /N with N bytes, at the port that it is given.
const pageServer = `
import http.server, sys
piece = bytes(1 << 20)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True
    def log_message(self, *args): pass
    def do_GET(self):
        left = int(self.path[1:])
        self.send_response(200)
        self.send_header("Content-Length", str(left))
        self.end_headers()
        while left > 0:
            self.wfile.write(piece[:left])
            left -= len(piece)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
`

func portRow() Row {
	const warm, perRound, large = 2, 20, 1_000_000_000
	return Row{
		ID: "port", Title: "a server in a session", Rounds: 3, Quick: 1,
		Measures: []Measure{
			{ID: "port-first", Title: "first byte from a server in a session", Unit: "ms",
				Detail: fmt.Sprintf("a small page of a Python server, from the request until its first byte; %d in each of several sessions, after %d that do not count. cove: by the path of the port, with a key.", perRound, warm)},
			{ID: "port-1gb", Title: "1 GB from a server in a session", Unit: "ms", Detail: "until its client has every byte."},
		},
		Able: as[Hosting]("no server in it is reached"),
		Round: func(ctx context.Context, s Subject, rec Recorder) (err error) {
			h, err := s.(Hosting).Host(ctx)
			if err != nil {
				return err
			}
			defer func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardown)
				defer cancel()
				err = errors.Join(err, h.Close(ctx))
			}()
			for i := range warm + perRound {
				begun := time.Now()
				if err := fetched(ctx, h, 10, func() {
					if i >= warm {
						rec.took(0, time.Since(begun))
					}
				}); err != nil {
					return err
				}
			}
			begun := time.Now()
			if err := fetched(ctx, h, large, func() {}); err != nil {
				return err
			}
			rec.took(1, time.Since(begun))
			return nil
		},
	}
}

// fetched reads a page of so many bytes, and calls first when the first of them is there.
func fetched(ctx context.Context, h Hosted, size int64, first func()) error {
	answer, err := h.Get(ctx, "/"+strconv.FormatInt(size, 10))
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it has been read
	if answer.StatusCode != http.StatusOK {
		return errors.New("the page is " + answer.Status)
	}
	if _, err := io.ReadFull(answer.Body, make([]byte, 1)); err != nil {
		return err
	}
	first()
	n, err := io.Copy(io.Discard, answer.Body)
	if err == nil && n != size-1 {
		err = fmt.Errorf("%d bytes came", n+1)
	}
	return err
}

// hostedSession is a session of `cove serve` with a server in it.
type hostedSession struct {
	*servedSession
	port string // its address
}

// Host implements Hosting.
func (s *coveServer) Host(ctx context.Context) (Hosted, error) {
	l, err := s.Create(ctx)
	if err != nil {
		return nil, err
	}
	h := hostedSession{l.(*servedSession), l.(*servedSession).path + "/ports/8000/http"}
	body, err := json.Marshal(map[string]any{"command": []string{"python", "-c", pageServer, "8000"}})
	if err == nil {
		err = h.api.call(ctx, http.MethodPost, h.path+"/processes", string(body), http.StatusCreated, nil)
	}
	if err == nil {
		err = until(ctx, time.Minute, func(ctx context.Context) error { return fetched(ctx, h, 1, func() {}) })
	}
	if err != nil {
		free(ctx, l, &err)
		return nil, err
	}
	return h, nil
}

// Get implements Hosted.
func (h hostedSession) Get(ctx context.Context, path string) (*http.Response, error) {
	return h.api.send(ctx, http.MethodGet, h.port+path, "", "*/*")
}

// relay is a server on the host, without isolation, behind a plain relay in Go: what moving the bytes once takes on this machine.
type relay struct {
	shop *workshop
	env  *pyenv.Environment
}

func (*relay) About() About {
	return About{ID: "relay", Title: "a plain relay in Go", Note: "io.Copy both ways in front of a server on the host, without isolation"}
}

func (*relay) Start(context.Context) error { return nil }
func (*relay) Stop(context.Context) error  { return nil }

// relayed is the server and the relay.
type relayed struct {
	remote
	process  *server
	listener net.Listener
}

// Host implements Hosting.
func (s *relay) Host(ctx context.Context) (Hosted, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	process, err := s.shop.serve(s.shop.command(s.env.Python, "-c", pageServer, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	h := &relayed{process: process}
	if h.listener, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
		go relayTo(h.listener, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		h.remote = remote{host: h.listener.Addr().String(), client: promptClient()}
		err = until(ctx, time.Minute, func(ctx context.Context) error { return fetched(ctx, h, 1, func() {}) })
	}
	if err != nil {
		return nil, errors.Join(err, h.Close(ctx))
	}
	return h, nil
}

// relayTo moves the bytes of each connection to an address and back, until the listener is closed.
func relayTo(listener net.Listener, address string) {
	for {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = near.Close() }()
			far, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			defer func() { _ = far.Close() }()
			var back sync.WaitGroup
			// Without the shortcut within the kernel (splice), which is for two sockets alone.
			back.Go(func() {
				_, _ = io.CopyBuffer(struct{ io.Writer }{far}, struct{ io.Reader }{near}, make([]byte, 256<<10))
			})
			_, _ = io.CopyBuffer(struct{ io.Writer }{near}, struct{ io.Reader }{far}, make([]byte, 256<<10))
			_ = near.Close()
			back.Wait()
		}()
	}
}

// Get implements Hosted.
func (h *relayed) Get(ctx context.Context, path string) (*http.Response, error) {
	return h.send(ctx, http.MethodGet, path, "", "*/*")
}

// Close implements Hosted.
func (h *relayed) Close(ctx context.Context) error {
	if h.listener != nil {
		_ = h.listener.Close()
	}
	if h.client != nil {
		h.client.CloseIdleConnections()
	}
	return h.process.stop(ctx)
}
