package front

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
)

// Listen opens the addresses, and returns those of the API as they are now: a port 0 has become a real one. Serve does it by itself where it
// was not done. Problems: address_in_use, address_invalid, tls_invalid, debug_not_local.
func (s *Server) Listen(ctx context.Context) ([]net.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.listenAll(ctx); err != nil {
		for _, l := range s.listeners {
			_ = l.Close()
		}
		s.listeners = nil
		return nil, err
	}
	var addresses []net.Addr
	for _, l := range s.listeners[:len(s.o.Listen)] {
		addresses = append(addresses, l.Addr())
	}
	return addresses, nil
}

func (s *Server) listenAll(ctx context.Context) error {
	secure, err := s.tlsConfig()
	if err != nil {
		return err
	}
	for _, address := range s.o.Listen {
		l, err := listen(ctx, address)
		if err != nil {
			return err
		}
		bounded := &boundedListener{Listener: l, most: int64(s.o.Limits.Connections), plain: secure == nil}
		s.add(bounded, s.handler, secure)
	}
	if s.o.Metrics != "" {
		l, err := listen(ctx, s.o.Metrics)
		if err != nil {
			return err
		}
		s.add(l, s.metricsOnly(), nil)
	}
	if s.o.Debug != "" {
		l, err := listen(ctx, s.o.Debug)
		if err != nil {
			return err
		}
		if _, unix := l.Addr().(*net.UnixAddr); !unix && !loopback(l.Addr()) {
			_ = l.Close()
			return problem.New(problem.DebugNotLocal, "the debug listener shows memory and would be open to others").
				WithHint("use an address of this machine alone, as 127.0.0.1:6060")
		}
		s.add(l, debugOnly(), nil)
	}
	return nil
}

func (s *Server) add(l net.Listener, h http.Handler, secure *tls.Config) {
	s.listeners = append(s.listeners, listener{Listener: l, secure: secure != nil, server: &http.Server{
		Handler: h, TLSConfig: secure, ReadHeaderTimeout: s.o.Limits.Header, IdleTimeout: s.o.Limits.Idle, MaxHeaderBytes: 64 << 10,
		ErrorLog: quietLog(s.log), ConnState: s.silent.note,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 250, SendPingTimeout: s.o.Limits.Stall, PingTimeout: s.o.Limits.Stall, WriteByteTimeout: s.o.Limits.Stall,
		},
	}})
}

// unsentMost bounds what waits in the kernel for a client that does not read, besides what its own side holds: without it up to 4 MiB of a stream of events
// would be made for each such client. Nothing is slower for it, since what is sent and not acknowledged does not count.
const unsentMost = 128 << 10

// boundUnsent is for net.ListenConfig.Control; connections have it from their listener.
func boundUnsent(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var failure error
	err := c.Control(func(fd uintptr) {
		failure = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentMost)
	})
	return errors.Join(err, failure)
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	config := net.ListenConfig{Control: boundUnsent}
	config.SetMultipathTCP(false) // which Go listens with otherwise; connections of such a listener do not have what boundUnsent sets
	path, local := strings.CutPrefix(address, "unix:")
	if local {
		return listenUnix(ctx, config, path)
	}
	l, err := config.Listen(ctx, "tcp", address)
	return l, listenProblem(address, err)
}

func listenUnix(ctx context.Context, config net.ListenConfig, path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		// A server that was killed leaves its socket behind, where nobody answers.
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err == nil {
			_ = conn.Close()
			return nil, listenProblem(path, syscall.EADDRINUSE)
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path)
		}
	}
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, listenProblem(path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, listenProblem(path, err)
	}
	return l, nil
}

func listenProblem(address string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EADDRINUSE):
		return problem.New(problem.AddressInUse, "something else listens on "+address).
			WithHint("stop it, or choose another address with --listen").WithCause(err)
	}
	hint := "an address is HOST:PORT, :PORT or unix:/PATH"
	switch {
	case errors.Is(err, syscall.EACCES) && !strings.HasPrefix(address, "unix:"):
		hint = "ports below 1024 are for root alone; choose a higher one, such as :8700"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = "this machine has no such address; :8700 stands for all that it has"
	}
	return problem.New(problem.AddressInvalid, "cannot listen on "+address).WithHint(hint).WithCause(err)
}

// tlsConfig returns nil where there is to be no TLS.
func (s *Server) tlsConfig() (*tls.Config, error) {
	if s.o.Cert == "" && s.o.Key == "" {
		return nil, nil
	}
	c := newCertificate(s.o.Cert, s.o.Key, s.log)
	if _, err := c.get(nil); err != nil {
		return nil, problem.New(problem.TLSInvalid, "the certificate and its key cannot be used").WithCause(err)
	}
	return &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}, nil
}

// boundedListener turns away connections above a number. To leave them waiting would be a hang.
type boundedListener struct {
	net.Listener
	most  int64
	open  atomic.Int64
	plain bool
}

func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			return &boundedConn{Conn: c, left: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		if l.plain {
			// The socket's buffer is empty and takes this at once.
			_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond))
			_, _ = c.Write([]byte("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
		}
		_ = c.Close()
	}
}

type boundedConn struct {
	net.Conn
	left func()
}

func (c *boundedConn) Close() error {
	c.left()
	return c.Conn.Close()
}
