package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/pyindex"
)

const (
	maxPage      = 64 << 20 // bytes of a page, unpacked
	maxMetadata  = 8 << 20  // bytes of a file's core metadata
	maxRedirects = 5
	downFor      = 5 * time.Second // how long an index that could not be connected to is not tried again
	userAgent    = "cove"
)

// upstream is an index, or a flat page of files, that is reached over HTTP.
type upstream struct {
	shown string
	base  *url.URL // without credentials; with a slash at the end unless flat
	user  *url.Userinfo
	flat  bool
	id    string
	now   func() time.Time
	times Times

	proxy            func(*http.Request) (*url.URL, error)
	checked, careful http.RoundTripper // careful is for hosts whose certificates are not checked
	insecure         []string
	reach            *reach

	mu        sync.Mutex
	downUntil time.Time
	downError *problem.Error
}

func newUpstream(s pyindex.Source, a pyindex.Access, times Times, now func() time.Time) (*upstream, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, problem.New(problem.IndexSettingsInvalid, "the address of the package index "+s.Name+" is not an http or https URL").
			WithHint("correct it in the settings of uv or pip")
	}
	up := &upstream{shown: s.Name, user: u.User, flat: s.Flat, times: times, now: now, proxy: a.Proxy, insecure: a.Insecure}
	u.User, u.Fragment = nil, ""
	if !up.flat {
		u.RawQuery = ""
		u = u.JoinPath("/")
	}
	up.base = u
	if up.shown == "" {
		up.shown = u.Host
	}
	// The address is hashed because it may have a token in it.
	sum := sha256.Sum256([]byte(u.String()))
	up.id = hex.EncodeToString(sum[:8])
	up.reach = &reach{host: u.Hostname()}
	up.checked = up.transport(a, false)
	up.careful = up.transport(a, true)
	return up, nil
}

func (u *upstream) transport(a pyindex.Access, unchecked bool) http.RoundTripper {
	dialer := &net.Dialer{Timeout: u.times.Connect, ControlContext: u.reach.control}
	t := &http.Transport{
		Proxy:                  a.Proxy,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    u.times.Connect,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
	if a.TLS != nil {
		t.TLSClientConfig = a.TLS.Clone()
	}
	if unchecked {
		t.TLSClientConfig = uncheckedTLS(t.TLSClientConfig)
	}
	return t
}

func (u *upstream) name() string  { return u.shown }
func (u *upstream) key() string   { return u.id }
func (u *upstream) trusted() bool { return false }
func (u *upstream) local() bool   { return false }

func (u *upstream) pageOf(project string) string {
	if u.flat {
		return "flat page"
	}
	return project
}

func (u *upstream) pageURL(project string) *url.URL {
	if u.flat {
		return u.base
	}
	return u.base.JoinPath(project, "/")
}

// refresh reads a page, with one more try when the connection fails or the index is busy.
func (u *upstream) refresh(ctx context.Context, project string, old *page) (*page, error) {
	ctx, cancel := context.WithTimeout(ctx, u.times.Page)
	defer cancel()
	p, err := u.readPage(ctx, project, old)
	if err != nil && u.pause(ctx, err) {
		p, err = u.readPage(ctx, project, old)
	}
	return p, err
}

func (u *upstream) readPage(ctx context.Context, project string, old *page) (*page, error) {
	header := http.Header{"Accept": {"application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"}}
	if old != nil && !old.absent {
		setUnlessEmpty(header, "If-None-Match", old.etag)
		setUnlessEmpty(header, "If-Modified-Since", old.changed)
	}
	r, err := u.send(ctx, http.MethodGet, u.pageURL(project), header)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Body.Close() }()
	switch {
	case r.StatusCode == http.StatusNotModified && old != nil:
		return old.confirmed(u.now()), nil
	case r.StatusCode == http.StatusNotFound || r.StatusCode == http.StatusGone:
		return &page{absent: true, fetched: u.now()}, nil
	case r.StatusCode != http.StatusOK:
		return nil, u.status(r)
	}
	body := &bounded{from: r.Body, left: maxPage}
	p, err := parsePage(r.Header.Get("Content-Type"), r.Request.URL, body)
	if err == nil {
		_, err = io.Copy(io.Discard, body)
	}
	switch {
	case body.over:
		return nil, u.malformed("its page for "+project+" is larger than "+amount(maxPage), nil)
	case body.err != nil && !errors.Is(body.err, io.EOF):
		return nil, u.fault(ctx, body.err)
	case err != nil:
		return nil, u.malformed("its answer for "+project+" is not a page of a package index", err)
	}
	p.etag, p.changed, p.fetched = clip(r.Header.Get("ETag"), 256), clip(r.Header.Get("Last-Modified"), 64), u.now()
	return p, nil
}

func setUnlessEmpty(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// send makes one request and follows its redirects. Each hop, and each read of the body, has to come within the time limits.
func (u *upstream) send(ctx context.Context, method string, to *url.URL, header http.Header) (*http.Response, error) {
	if err := u.down(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(u.times.Connect+u.times.Answer, func() { cancel(errSlow) })
	for range maxRedirects + 1 {
		r, err := u.hop(ctx, method, to, header)
		if err != nil {
			watch.Stop()
			err = u.fault(ctx, err)
			cancel(nil)
			return nil, err
		}
		location := r.Header.Get("Location")
		if r.StatusCode < 301 || r.StatusCode > 308 || r.StatusCode == http.StatusNotModified || location == "" {
			watch.Reset(u.times.Stall)
			r.Body = &watched{body: r.Body, watch: watch, stall: u.times.Stall, ctx: ctx, cancel: cancel}
			return r, nil
		}
		_, _ = io.CopyN(io.Discard, r.Body, 4<<10)
		_ = r.Body.Close()
		next, err := to.Parse(location)
		if err != nil || next.Host == "" || next.Scheme != "https" && (next.Scheme != "http" || to.Scheme == "https") {
			watch.Stop()
			cancel(nil)
			return nil, u.malformed("it redirects to where no package can be", nil)
		}
		to = next
		watch.Reset(u.times.Answer)
	}
	watch.Stop()
	cancel(nil)
	return nil, u.malformed("its redirects lead nowhere", nil)
}

// hop makes one request. Credentials go to the index's own host alone.
func (u *upstream) hop(ctx context.Context, method string, to *url.URL, header http.Header) (*http.Response, error) {
	own := sameHost(u.base, to)
	target := *to
	target.User, target.Fragment = nil, ""
	r := (&http.Request{Method: method, URL: &target, Host: target.Host, Header: header.Clone(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1})
	r.Header.Set("User-Agent", userAgent)
	if own && u.user != nil {
		password, _ := u.user.Password()
		r.SetBasicAuth(u.user.Username(), password)
	}
	direct := true
	if u.proxy != nil {
		via, err := u.proxy(r)
		if err != nil {
			return nil, errProxy
		}
		direct = via == nil
	}
	if !own {
		if err := u.reach.literal(ctx, target.Hostname()); err != nil {
			return nil, err
		}
	}
	r = r.WithContext(u.reach.mark(ctx, own, direct))
	if unchecked(u.insecure, &target) {
		return u.careful.RoundTrip(r)
	}
	return u.checked.RoundTrip(r)
}

// sameHost tells whether a URL may have the credentials of an index: same host and port, or its switch from http to https.
func sameHost(base, to *url.URL) bool {
	if base.Scheme == to.Scheme {
		return strings.EqualFold(base.Hostname(), to.Hostname()) && port(base) == port(to)
	}
	return base.Scheme == "http" && strings.EqualFold(base.Hostname(), to.Hostname()) && port(base) == "80" && port(to) == "443"
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// unchecked tells whether the user wants the certificate of a URL's host to go unchecked.
func unchecked(hosts []string, to *url.URL) bool {
	for _, h := range hosts {
		h = strings.TrimPrefix(strings.TrimPrefix(h, "https://"), "http://")
		if strings.EqualFold(h, to.Host) || strings.EqualFold(h, to.Hostname()) || strings.EqualFold(h, to.Hostname()+":"+port(to)) {
			return true
		}
	}
	return false
}

// pause waits before another try, when another try makes sense.
func (u *upstream) pause(ctx context.Context, err error) bool {
	p := problem.Of(err)
	if !problem.Has(p, problem.IndexUnreachable) || errors.Is(err, errDown) {
		return false
	}
	wait := u.times.Pause
	if busy, ok := errors.AsType[*busyError](err); ok {
		wait = max(wait, min(busy.after, 10*wait))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		u.mu.Lock()
		u.downUntil = time.Time{}
		u.mu.Unlock()
		return true
	}
}

// down returns the error of a connection that has just failed: to find out again takes as long each time.
func (u *upstream) down() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.now().Before(u.downUntil) {
		return u.downError.WithCause(errDown)
	}
	return nil
}

func (u *upstream) setDown(err *problem.Error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.downUntil, u.downError = u.now().Add(downFor), err
}

func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(strings.TrimSpace(h.Get("Retry-After")))
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, 3600)) * time.Second
}

func clip(s string, n int) string {
	if len(s) > n {
		return ""
	}
	return clean(s)
}
