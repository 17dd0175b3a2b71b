package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// mayTLS says whether the TLS that a session begins is for the host that it connected to. An address that a rule allows stands for whatever is there but for names that a rule denies.
func (p *connection) mayTLS(first *opening) error {
	named := isName(p.host)
	if !named && !p.dialer.deniesNames() {
		return nil
	}
	h, err := first.readHello()
	switch {
	case !named && err == nil && !h.hidden:
		return p.mayBeFor(h.name)
	case err != nil:
		return refused(p.host, p.port, "the TLS that is spoken to it cannot be read")
	case h.hidden:
		return refused(p.host, p.port, "Encrypted Client Hello hides whom the connection is for; turn it off in the program")
	case h.name == "":
		return refused(p.host, p.port, "the TLS that is spoken to it names no server")
	case h.name != p.host:
		return refused(p.host, p.port, "the TLS that is spoken to it is for "+printable(h.name))
	}
	return nil
}

// mayBeFor refuses what is sent to an address for a name that a rule denies.
func (p *connection) mayBeFor(name string) error {
	if !isName(name) {
		return nil
	}
	for _, rules := range p.dialer.layers {
		if r, denied := rules.denier(name, p.port); denied {
			return refused(p.host, p.port, fmt.Sprintf("what is sent to it is for %s, which the rule %s denies", printable(name), r))
		}
	}
	return nil
}

// printable bounds what a session says before it stands in a message.
func printable(s string) string {
	return strconv.QuoteToASCII(s[:min(len(s), 100)])
}

// http serves a connection on which HTTP is spoken, by HTTP/1 or by HTTP/2 without TLS. Each request is read, looked at, and written anew for the host, so that the two sides cannot
// read it differently. With credentials the connection is TLS, which ends here, and begins anew towards the host.
func (p *connection) http(ctx context.Context, near *metered, first *opening, credentials []Credential) error {
	side, other := net.Pipe()
	plainTwo := strings.HasPrefix(string(first.kept), "PRI * HTTP/2")
	var moving sync.WaitGroup
	moving.Go(func() {
		_, _ = io.Copy(near, other)
		_ = near.CloseWrite()
		_ = near.Close()
	})
	served := &one{over: make(chan struct{})}
	served.conn = &closing{Conn: side, then: served.end}
	var transport *http.Transport
	if len(credentials) == 0 {
		transport = p.transport(plainTwo)
	} else {
		transport = p.secureTransport()
		served.conn = tls.Server(served.conn, p.ownTLS())
	}
	var taken atomic.Bool // by a WebSocket or its like
	stop := context.AfterFunc(ctx, func() {
		_ = side.Close()
		_ = other.Close()
	})
	defer stop()
	w := &checker{connection: p, secrets: len(credentials) > 0, forward: p.forwarder(transport, credentials)}
	server := &http.Server{
		Handler: w, ReadHeaderTimeout: helloPatience, IdleTimeout: idlePatience, MaxHeaderBytes: 256 << 10,
		ErrorLog: log.New(io.Discard, "", 0), Protocols: new(http.Protocols), BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateClosed:
				served.end()
			case http.StateHijacked:
				taken.Store(true)
			}
		},
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	moving.Go(func() {
		_, err := io.Copy(other, first)
		if err != nil || taken.Load() {
			_ = other.Close()
			return
		}
		// A program that says no more still gets the answer to what it has said.
		server.SetKeepAlivesEnabled(false)
	})
	_ = server.Serve(served)
	_ = other.Close()
	_ = server.Close()
	moving.Wait()
	transport.CloseIdleConnections()
	p.end()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused
}

// transport sends requests to the host; the connection that there is serves the first.
func (p *connection) transport(two bool) *http.Transport {
	var once sync.Once
	t := &http.Transport{
		DisableCompression: true, MaxIdleConnsPerHost: 1, IdleConnTimeout: idlePatience, MaxResponseHeaderBytes: 1 << 20, Protocols: new(http.Protocols),
		DialContext: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
			once.Do(func() { conn = p.far })
			if conn == nil {
				conn, err = p.dialer.dial(ctx, p.host, p.port)
			}
			return conn, err
		},
	}
	t.Protocols.SetHTTP1(!two)
	t.Protocols.SetUnencryptedHTTP2(two)
	return t
}

// ownTLS is how a program of the session is talked to in the place of a host that there are credentials for.
func (p *connection) ownTLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return p.dialer.o.Authority.leaf(p.host)
	}}
}

// secureTransport is transport for a host that there are credentials for, which has to show that it is that host.
func (p *connection) secureTransport() *http.Transport {
	t := p.transport(false)
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: p.host, RootCAs: p.dialer.o.Roots}
	t.Protocols.SetHTTP2(true)
	return t
}

func (p *connection) forwarder(t *http.Transport, credentials []Credential) *httputil.ReverseProxy {
	target := &url.URL{Scheme: "http", Host: net.JoinHostPort(p.host, strconv.Itoa(p.port))}
	if len(credentials) > 0 {
		target.Scheme = "https"
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = r.In.Host
			for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} { // what the program says stays
				if v, ok := r.In.Header[h]; ok {
					r.Out.Header[h] = v
				}
			}
			if _, ok := r.In.Header["User-Agent"]; !ok {
				r.Out.Header["User-Agent"] = nil
			}
		},
		Transport: sender{t, credentials}, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "cove: "+p.host+" did not answer: "+p.dialer.withoutCredentials(withoutAddresses(err)), http.StatusBadGateway)
		},
	}
}

// sender sends requests with credentials in them.
type sender struct {
	http.RoundTripper
	credentials []Credential
}

func (s sender) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(s.credentials) > 0 && !addCredentials(r.Header, s.credentials) {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		text := fmt.Sprintf("cove: with its secrets the header of the request is longer than %d kB\n", longestHeaders>>10)
		return &http.Response{
			StatusCode: http.StatusRequestHeaderFieldsTooLarge, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
			Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r,
		}, nil
	}
	return s.RoundTripper.RoundTrip(r)
}

// withoutAddresses is what an error says without the addresses of the connection, of which the session is not to learn those of this machine.
func withoutAddresses(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}

// checker looks at each request of a connection.
type checker struct {
	connection *connection
	secrets    bool // requests get credentials
	forward    http.Handler

	mu      sync.Mutex
	refused error // the last
}

func (w *checker) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if err := w.may(r); err != nil {
		w.mu.Lock()
		w.refused = err
		w.mu.Unlock()
		rw.Header().Set("Connection", "close")
		http.Error(rw, "cove: "+err.Error(), http.StatusForbidden)
		return
	}
	w.forward.ServeHTTP(rw, r)
}

// may says whether a request is for the host that the session connected to.
func (w *checker) may(r *http.Request) error {
	p := w.connection
	if r.Method == http.MethodConnect {
		return refused(p.host, p.port, "it is no proxy for other hosts")
	}
	if w.secrets && r.Method == http.MethodTrace {
		return refused(p.host, p.port, "the answer to TRACE would repeat the credentials")
	}
	for _, to := range []string{r.Host, r.URL.Host} { // the second is of a request that has a whole URL
		if to == "" {
			continue
		}
		host, port, err := net.SplitHostPort(to)
		if err != nil {
			host, port = to, strconv.Itoa(p.port)
		}
		host = strings.ToLower(strings.TrimSuffix(host, "."))
		if !isName(p.host) {
			if err := p.mayBeFor(host); err != nil {
				return err
			}
		} else if host != p.host || port != strconv.Itoa(p.port) {
			return refused(p.host, p.port, "the request that is sent to it is for "+printable(to))
		}
	}
	return nil
}

// one is a listener of one connection.
type one struct {
	conn net.Conn
	over chan struct{}
	once sync.Once
	used bool
}

func (o *one) Accept() (net.Conn, error) {
	if !o.used {
		o.used = true
		return o.conn, nil
	}
	<-o.over
	return nil, errors.New("there is one connection")
}

func (o *one) end()           { o.once.Do(func() { close(o.over) }) }
func (o *one) Close() error   { return nil }
func (o *one) Addr() net.Addr { return o.conn.LocalAddr() }

// closing tells of the end of a connection, also of one that a WebSocket has taken over.
type closing struct {
	net.Conn
	then func()
}

func (c *closing) Close() error {
	defer c.then()
	return c.Conn.Close()
}
