package image

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/egress"
)

// Way is how images of callers are fetched. A registry, and what it sends on to for blobs and tokens, is reached at addresses of the public internet alone, so that nobody has this machine ask
// what is near it; hosts that the operator has named may be anywhere. Behind a proxy, names are the proxy's to judge.
type Way struct {
	named           map[string]bool // HOST:PORT
	direct, proxied http.RoundTripper
}

// Way returns how images that callers name are fetched.
func (a Allowed) Way() *Way {
	const patience = 30 * time.Second
	usual, _ := http.DefaultTransport.(*http.Transport)
	if usual == nil {
		usual = &http.Transport{}
	}
	w := &Way{named: a.registries()}
	anywhere := &net.Dialer{Timeout: patience}
	guarded := &net.Dialer{Timeout: patience, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return publicOnly(at.Addr())
	}}
	direct := usual.Clone()
	direct.Proxy, direct.ResponseHeaderTimeout = nil, patience
	direct.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if w.named[address] {
			return anywhere.DialContext(ctx, network, address)
		}
		return guarded.DialContext(ctx, network, address)
	}
	proxied := usual.Clone()
	proxied.Proxy, proxied.ResponseHeaderTimeout = http.ProxyFromEnvironment, patience
	w.direct, w.proxied = direct, proxied
	return w
}

// RoundTrip implements http.RoundTripper.
func (w *Way) RoundTrip(req *http.Request) (*http.Response, error) {
	through, err := http.ProxyFromEnvironment(req)
	if err != nil {
		return nil, err
	}
	if through == nil {
		return w.direct.RoundTrip(req)
	}
	port := req.URL.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[req.URL.Scheme]
	}
	if a, err := netip.ParseAddr(req.URL.Hostname()); err == nil && !w.named[net.JoinHostPort(req.URL.Hostname(), port)] {
		if err := publicOnly(a); err != nil {
			return nil, errors.Join(err, closeBody(req))
		}
	}
	return w.proxied.RoundTrip(req)
}

func closeBody(req *http.Request) error {
	if req.Body == nil {
		return nil
	}
	return req.Body.Close()
}

func publicOnly(a netip.Addr) error {
	if egress.IsPublic(a) {
		return nil
	}
	return problem.New(problem.ImageDenied, "the registry of the image, or what it sends on to, is not on the public internet").
		WithHint("the operator can name its host in images.allow, as registry.example.com/*")
}
