// Package client is cove's own interface (package api) as seen from a Go program: what the command line uses when it is told a server.
// Errors are *problem.Error with the server's kind, code and hint. A key is sent to the server that it is for and to nobody else, and is in
// no error.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/api"
)

// Client speaks to one server. It is safe for concurrent use.
type Client struct {
	base string // ends in /api/v1
	host string // for people
	key  string
	http *http.Client
	bad  error // of the address
}

const (
	tries       = 4 // of a request that can be repeated
	maxAnswer   = 64 << 20
	longestWait = 5 * time.Second
)

// New returns a client of the server at base ("http://localhost:8700", with or without /api/v1) with a key. Certificates are checked
// against those of the system, and those that SSL_CERT_FILE names.
func New(base, key string) *Client {
	c := &Client{key: strings.TrimSpace(key)}
	u, err := url.Parse(strings.TrimRight(strings.TrimSpace(base), "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		c.bad = problem.New(problem.ServerAddress, "this is not the address of a server").WithHint("write it like http://localhost:8700")
		u = &url.URL{}
	}
	u.RawQuery, u.Fragment = "", ""
	if !strings.HasSuffix(u.Path, api.Prefix) {
		u = u.JoinPath(api.Prefix)
	}
	c.base, c.host = u.String(), u.Host
	c.http = &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		// The interface never redirects: a server that does is another one, and gets no second request with a body.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// Through has all connections made by dial.
func (c *Client) Through(dial func(ctx context.Context, network, address string) (net.Conn, error)) *Client {
	c.http.Transport.(*http.Transport).DialContext = dial
	return c
}

// Base is the server's address, without a slash at its end.
func (c *Client) Base() string { return strings.TrimSuffix(c.base, api.Prefix) }

// Close closes the connections that are open and not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// call is one request.
type call struct {
	method, path string
	query        url.Values
	body         any       // JSON
	raw          io.Reader // in the place of body
	kind         string    // content type of raw
	accept       string
	once         string // Idempotency-Key
	last         int64  // Last-Event-ID
}

// send does a request and returns its answer if it was a success, the body to be closed by the caller. What can be done twice is tried
// again when the server does not answer or has no room.
func (c *Client) send(ctx context.Context, q call) (*http.Response, error) {
	if c.bad != nil {
		return nil, c.bad
	}
	var text []byte
	if q.body != nil {
		var err error
		if text, err = json.Marshal(q.body); err != nil {
			return nil, fmt.Errorf("write the request: %w", err)
		}
	}
	repeatable := q.raw == nil && (q.method == http.MethodGet || q.once != "")
	for n := 1; ; n++ {
		answer, wait, err := c.attempt(ctx, q, text)
		if err == nil {
			return answer, nil
		}
		if !repeatable || n >= tries || wait < 0 || ctx.Err() != nil {
			return nil, err
		}
		if !sleep(ctx, max(wait, time.Duration(n*n)*100*time.Millisecond)) {
			return nil, err
		}
	}
}

// sleep waits and says whether it came to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempt does a request once. wait is how long the server wants to be left alone; negative when there is no point in trying again.
func (c *Client) attempt(ctx context.Context, q call, text []byte) (answer *http.Response, wait time.Duration, err error) {
	r, err := c.request(ctx, q, text)
	if err != nil {
		return nil, -1, err
	}
	answer, err = c.http.Do(r)
	if err != nil {
		err = c.unreachable(ctx, err)
		if problem.Is(err, problem.Denied) {
			return nil, -1, err // a certificate is the same the next time
		}
		return nil, 0, err
	}
	if answer.StatusCode >= 200 && answer.StatusCode < 300 {
		return answer, 0, nil
	}
	body := answer.Body
	defer func() { _ = body.Close() }()
	return nil, waitOf(answer), c.problemOf(answer)
}

func (c *Client) request(ctx context.Context, q call, text []byte) (*http.Request, error) {
	address := c.base + q.path
	if len(q.query) > 0 {
		address += "?" + q.query.Encode()
	}
	body := q.raw
	if text != nil {
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, address, body)
	if err != nil {
		return nil, problem.New(problem.ServerAddress, "this cannot be asked of a server").WithCause(err)
	}
	h := map[string]string{"Authorization": "Bearer " + c.key, "Accept": q.accept, "Content-Type": q.kind, "Idempotency-Key": q.once}
	if c.key == "" {
		h["Authorization"] = ""
	}
	if text != nil {
		h["Content-Type"] = "application/json"
	}
	if q.accept == "" {
		h["Accept"] = "application/json"
	}
	if q.last > 0 {
		h["Last-Event-ID"] = strconv.FormatInt(q.last, 10)
	}
	for name, value := range h {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return r, nil
}

// unreachable is a failure of the connection. The error of net/http names the address, which has no secret, and no header.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ask the server: %w", context.Cause(ctx))
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return problem.New(problem.ServerUntrusted, "the certificate of the server at "+c.host+" is not trusted").
			WithHint("where it is the server's own certificate, SSL_CERT_FILE=/path/to/cert.pem has it trusted").WithCause(err)
	}
	return problem.New(problem.ServerUnreachable, "the server at "+c.host+" does not answer").
		WithHint("see whether it runs, and whether the address is right").WithCause(err)
}

// waitOf is for how long an answer asks to be left alone; negative when asking again makes no sense.
func waitOf(answer *http.Response) time.Duration {
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
	default:
		return -1
	}
	n, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	wait := time.Duration(n) * time.Second
	switch {
	case err != nil || n < 0:
		return 0
	case wait > longestWait:
		return -1
	}
	return wait
}

// problemOf is the problem that an answer tells.
func (c *Client) problemOf(answer *http.Response) error {
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	var p api.Problem
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil || kind != "application/problem+json" || json.Unmarshal(text, &p) != nil || p.Code == "" || p.Kind == "" {
		return problem.New(problem.ServerUnexpected, fmt.Sprintf("what answers at %s (status %d) is not a cove server", c.host, answer.StatusCode)).
			WithHint("see whether the address is right, http:// or https:// included, and what stands before the server")
	}
	out := problem.Received(p.Kind, p.Code, p.Detail)
	if p.Hint != "" {
		out = out.WithHint(p.Hint)
	}
	if p.Kind == problem.Internal && p.RequestID != "" {
		out = out.WithCause(errors.New("request " + p.RequestID))
	}
	return out
}

// ask does a request and reads its JSON answer into out, which may be nil.
func (c *Client) ask(ctx context.Context, q call, out any) error {
	answer, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if out == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20)) // so that the connection can be used again
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return c.unreachable(ctx, err)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return problem.New(problem.ServerUnexpected, "the server's answer cannot be read").WithCause(err)
	}
	return nil
}

// get asks for a thing.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (out T, err error) {
	err = c.ask(ctx, call{method: http.MethodGet, path: path, query: query}, &out)
	return out, err
}

// create has a thing made, once even if it has to be asked for again.
func create[T any](ctx context.Context, c *Client, path string, body any) (out T, err error) {
	err = c.ask(ctx, call{method: http.MethodPost, path: path, body: body, once: ident.New(ident.Request)}, &out)
	return out, err
}

// act has something done that is not done again when the server does not answer.
func act[T any](ctx context.Context, c *Client, method, path string, body any) (out T, err error) {
	err = c.ask(ctx, call{method: method, path: path, body: body}, &out)
	return out, err
}

func (c *Client) delete(ctx context.Context, path string, query url.Values) error {
	return c.ask(ctx, call{method: http.MethodDelete, path: path, query: query}, nil)
}

// join makes a path of what a caller named.
func join(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + url.PathEscape(p))
	}
	return b.String()
}
