package ports

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/server/auth"
)

const (
	// mostHead bounds the head of an answer, in bytes.
	mostHead = 256 << 10
	// answerPatience bounds how long an upgrade may take, and how long a body is waited for that a server wants to be asked for.
	answerPatience = time.Second
)

// Way says how a request came to a port.
type Way struct {
	Session string
	Port    int
	// Prefix is what of the path is the server's, with a slash at its end; "": the port has a name of its own.
	Prefix string
	// Host is the host that the session's server is told; "": the request's own, or where the port has no name localhost.
	Host string
	// Secret says that Prefix has the code of a link in it, which no code of a session gets to see.
	Secret bool
}

// cookiePrefix begins the names of a port's cookies where it has no name of its own.
func (y Way) cookiePrefix() string {
	_, id, _ := strings.Cut(y.Session, "_")
	return "port-" + strconv.Itoa(y.Port) + "-" + id + "-"
}

// Forward hands a request to the server at the other end of a stream, and its answer back: also streams, and upgrades to WebSockets. It answers by itself with refuse where there
// is no answer in HTTP.
func Forward(ctx context.Context, w http.ResponseWriter, r *http.Request, stream guestlink.Stream, y Way, refuse func(http.ResponseWriter, *http.Request, *problem.Error)) {
	once := make(chan net.Conn, 1)
	once <- conn{stream}
	transport := &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: mostHead, ExpectContinueTimeout: answerPatience,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case c := <-once:
				return c, nil
			default:
				return nil, errors.New("the connection was used already")
			}
		},
	}
	defer transport.CloseIdleConnections()
	(&httputil.ReverseProxy{
		Transport: finalAnswers{transport}, FlushInterval: -1, BufferPool: pieces{}, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite:        y.request,
		ModifyResponse: y.answer,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				panic(http.ErrAbortHandler) // nobody is there, or the session is needed by somebody else
			}
			refuse(w, r, problem.New(problem.PortBroken, "what listens at port "+strconv.Itoa(y.Port)+" does not answer in HTTP").WithHint("look at what the program says").WithCause(err))
		},
	}).ServeHTTP(w, r.WithContext(ctx))
}

// finalAnswers passes over informational answers (RFC 9110, 15.2), which httputil.ReverseProxy would pass on before ModifyResponse: a client takes their cookies and links for this server's own.
type finalAnswers struct{ http.RoundTripper }

func (f finalAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	return f.RoundTripper.RoundTrip(r.WithContext(withoutValues{r.Context()}))
}

// withoutValues is a context without values, among which package httptrace keeps what is called for an informational answer.
type withoutValues struct{ context.Context }

func (withoutValues) Value(any) any { return nil }

// The sizes of pieces in which answers are moved. Each is written at once, so that large ones make for less work; those are at most mostLarge in this process, because a
// connection has one for as long as it lasts.
const (
	smallPiece = 32 << 10
	largePiece = 256 << 10
	mostLarge  = 64
)

// largeUsed holds a token for each large piece that is in use.
var largeUsed = make(chan struct{}, mostLarge)

var largePieces = sync.Pool{New: func() any { return new([largePiece]byte) }}

// pieces is the httputil.BufferPool of all ports.
type pieces struct{}

func (pieces) Get() []byte {
	select {
	case largeUsed <- struct{}{}:
		large, _ := largePieces.Get().(*[largePiece]byte)
		return large[:]
	default:
		return make([]byte, smallPiece)
	}
}

func (pieces) Put(piece []byte) {
	if len(piece) == largePiece {
		largePieces.Put((*[largePiece]byte)(piece))
		<-largeUsed
	}
}

// request makes the request that the session's server gets.
func (y Way) request(p *httputil.ProxyRequest) {
	if y.Host != "" {
		defer func() { p.Out.Host = y.Host }()
	}
	local := "localhost:" + strconv.Itoa(y.Port)
	out := p.Out
	out.URL.Scheme, out.URL.Host = "http", local
	out.Header.Del(Header)
	for _, name := range []string{"Authorization", "X-Api-Key"} {
		if isKey(out.Header.Get(name)) {
			out.Header.Del(name)
		}
	}
	secure := "http"
	if p.In.TLS != nil || strings.EqualFold(p.In.Header.Get("X-Forwarded-Proto"), "https") {
		secure = "https"
	}
	p.SetXForwarded()
	out.Header.Set("X-Forwarded-Proto", secure)
	if y.Prefix == "" {
		out.Host = p.In.Host
		keepCookies(out.Header, func(name string) (string, bool) {
			return name, name != cookieName && name != "__Host-cove" && !strings.HasPrefix(name, "cove_") // none of the server's own, should a browser send one
		})
		if from, err := url.Parse(out.Header.Get("Referer")); err == nil && from.Host != p.In.Host && from.Path != "" {
			out.Header.Set("Referer", from.Scheme+"://"+from.Host+"/") // another's address may have the code of a link
		}
		if q := out.URL.Query(); q.Has(Parameter) {
			q.Del(Parameter)
			out.URL.RawQuery = q.Encode()
		}
		return
	}
	out.Host = local
	out.URL.Path = "/" + strings.TrimPrefix(p.In.URL.Path, y.Prefix)
	if p.In.URL.RawPath != "" {
		out.URL.RawPath = "/" + strings.TrimPrefix(p.In.URL.EscapedPath(), (&url.URL{Path: y.Prefix}).EscapedPath())
	}
	if !y.Secret {
		out.Header.Set("X-Forwarded-Prefix", strings.TrimSuffix(y.Prefix, "/"))
	}
	if from, err := url.Parse(out.Header.Get("Referer")); err == nil && from.Path != "" {
		from.Scheme, from.Host, from.Path, from.RawPath = "http", local, "/"+strings.TrimPrefix(from.Path, y.Prefix), ""
		out.Header.Set("Referer", from.String())
	}
	if out.Header.Get("Origin") != "" { // of the page that the server itself has shown
		out.Header.Set("Origin", "http://"+local)
	}
	// The browser sends what it has for this server's own pages, too.
	if scheme, _, _ := strings.Cut(out.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Basic") {
		out.Header.Del("Authorization")
	}
	keepCookies(out.Header, func(name string) (string, bool) { return strings.CutPrefix(name, y.cookiePrefix()) })
}

// isKey says whether a header brings a key of the server's, which no code of a session gets to see.
func isKey(header string) bool {
	if scheme, text, ok := strings.Cut(header, " "); ok && strings.EqualFold(scheme, "Bearer") {
		header = text
	}
	_, _, err := auth.ParseText(strings.TrimSpace(header))
	return err == nil
}

// keepCookies keeps those of a request's cookies that take returns a name for.
func keepCookies(h http.Header, take func(name string) (string, bool)) {
	var kept []string
	for _, line := range h.Values("Cookie") {
		for one := range strings.SplitSeq(line, ";") {
			name, value, ok := strings.Cut(strings.TrimSpace(one), "=")
			if name, mine := take(name); ok && mine {
				kept = append(kept, name+"="+value)
			}
		}
	}
	h.Del("Cookie")
	if len(kept) > 0 {
		h.Set("Cookie", strings.Join(kept, "; "))
	}
}

// ofAnswers are the headers that an answer may have, as IANA's registry of HTTP fields and WHATWG's standards name them for answers. What is not here has no meaning to a client, or one to something on
// the way, such as a proxy that serves files of its machine when it is told to (X-Accel-Redirect, X-Sendfile).
var ofAnswers = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(`Accept-Ch Accept-Patch Accept-Post Accept-Ranges Access-Control-Allow-Credentials Access-Control-Allow-Headers Access-Control-Allow-Methods
		Access-Control-Allow-Origin Access-Control-Expose-Headers Access-Control-Max-Age Activate-Storage-Access Age Allow Alt-Svc Authentication-Info Cache-Control Clear-Site-Data Connection
		Content-Disposition Content-Digest Content-Encoding Content-Language Content-Length Content-Location Content-Range Content-Security-Policy Content-Security-Policy-Report-Only Content-Type
		Critical-Ch Cross-Origin-Embedder-Policy Cross-Origin-Embedder-Policy-Report-Only Cross-Origin-Opener-Policy Cross-Origin-Opener-Policy-Report-Only Cross-Origin-Resource-Policy Date Deprecation
		Digest Etag Expect-Ct Expires Last-Modified Link Location Mcp-Protocol-Version Mcp-Session-Id Nel No-Vary-Search Origin-Agent-Cluster
		Permissions-Policy Pragma Preference-Applied Proxy-Status Public-Key-Pins Public-Key-Pins-Report-Only Ratelimit Ratelimit-Limit Ratelimit-Policy Ratelimit-Remaining Ratelimit-Reset
		Referrer-Policy Refresh Report-To Reporting-Endpoints Repr-Digest Retry-After Sec-Websocket-Accept Sec-Websocket-Extensions Sec-Websocket-Protocol Sec-Websocket-Version Server Server-Timing
		Service-Worker-Allowed Set-Cookie Set-Login Sourcemap Strict-Transport-Security Sunset Supports-Loading-Mode Timing-Allow-Origin Tk Trailer Transfer-Encoding Upgrade Vary Via Warning
		Www-Authenticate X-Content-Type-Options X-Dns-Prefetch-Control X-Frame-Options X-Permitted-Cross-Domain-Policies X-Robots-Tag X-Xss-Protection`) {
		all[name] = true
	}
	return all
})

// ofPrograms says whether a header is one of a program's own for its own pages, such as X-Total-Count. Those by which proxies, caches and balancers on the way are told what to do begin otherwise.
func ofPrograms(name string) bool {
	begins := func(family string) bool { return strings.HasPrefix(name, family) }
	return slices.ContainsFunc(familiesOfPrograms, begins) && !slices.ContainsFunc(familiesOfProxies, begins)
}

var (
	familiesOfPrograms = []string{"X-", "Hx-", "Tus-", "Upload-", "Docker-", "Grpc-"} // of htmx, tus, registries of images, and gRPC for browsers
	familiesOfProxies  = []string{
		"X-Accel-", "X-Sendfile", "X-Lighttpd-", "X-Litespeed-", "X-Lsadc-", "X-Reproxy-", "X-Nginx-", "X-Envoy-", "X-Amz", "X-Goog-", "X-Azure-", "X-Ms-", "X-Akamai-", "X-Edge-", "X-Fastly-", "X-Ats-",
		"X-Proxy", "X-Haproxy-", "X-Traefik-", "X-Cache", "X-Varnish", "X-Forwarded-", "X-Real-", "X-Original-", "X-Rewrite-", "X-Pingback",
	}
)

// ofTheOrigin are headers of an answer that count for everything at the same address, or for the browser: below a path, that would be the server's own.
var ofTheOrigin = []string{
	"Strict-Transport-Security", "Clear-Site-Data", "Alt-Svc", "Nel", "Report-To", "Reporting-Endpoints", "Accept-Ch", "Critical-Ch", "Service-Worker-Allowed", "Www-Authenticate",
	"Public-Key-Pins", "Public-Key-Pins-Report-Only", "Expect-Ct", "Set-Login", "Activate-Storage-Access", "Origin-Agent-Cluster", "Access-Control-Allow-Credentials",
}

// apart has a browser show a page without an origin: it can neither read the server's own pages nor call it as its user.
const apart = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads allow-pointer-lock"

// answer makes of the session's answer what the client gets.
func (y Way) answer(answer *http.Response) error {
	h := answer.Header
	for name := range h {
		if !ofAnswers()[name] && !ofPrograms(name) {
			delete(h, name)
		}
	}
	set := h["Set-Cookie"]
	h.Del("Set-Cookie")
	for _, line := range set {
		if line = y.setCookie(line); line != "" {
			h.Add("Set-Cookie", line)
		}
	}
	if y.Prefix == "" {
		for _, name := range []string{"Strict-Transport-Security", "Alt-Svc", "Public-Key-Pins", "Expect-Ct"} { // of names below, or of the whole address
			h.Del(name)
		}
		return nil
	}
	for _, name := range ofTheOrigin {
		h.Del(name)
	}
	h.Add("Content-Security-Policy", apart)
	h.Set("X-Content-Type-Options", "nosniff")
	if where := h.Get("Location"); strings.HasPrefix(where, "/") && !strings.HasPrefix(where, "//") {
		h.Set("Location", strings.TrimSuffix(y.Prefix, "/")+where) // a redirect that leaves the path would lead to the server's own pages
	}
	// Without an origin of its own, the page is another's to its own server.
	if answer.Request != nil && answer.Request.Header.Get("Origin") != "" {
		h.Set("Access-Control-Allow-Origin", "*")
	}
	return nil
}

// setCookie has a cookie count for the port alone; "" drops it.
func (y Way) setCookie(line string) string {
	parts := strings.Split(line, ";")
	name, value, ok := strings.Cut(strings.TrimSpace(parts[0]), "=")
	if !ok || name == "" {
		return ""
	}
	parts = slices.DeleteFunc(parts[1:], func(part string) bool {
		key, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(part)), "=")
		return key == "domain" || y.Prefix != "" && key == "path"
	})
	if y.Prefix == "" {
		if name == cookieName {
			return ""
		}
		return strings.Join(append([]string{name + "=" + value}, parts...), ";")
	}
	return strings.Join(append([]string{y.cookiePrefix() + name + "=" + value}, append(parts, " Path="+(&url.URL{Path: y.Prefix}).EscapedPath())...), ";")
}

// conn is a stream as package http wants it.
type conn struct{ guestlink.Stream }

func (conn) LocalAddr() net.Addr              { return place{} }
func (conn) RemoteAddr() net.Addr             { return place{} }
func (conn) SetDeadline(time.Time) error      { return nil }
func (conn) SetReadDeadline(time.Time) error  { return nil }
func (conn) SetWriteDeadline(time.Time) error { return nil }

type place struct{}

func (place) Network() string { return "session" }
func (place) String() string  { return "session" }
