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

	"cove/internal/auth"
	"cove/internal/link"
	"cove/internal/problem"
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
func Forward(ctx context.Context, w http.ResponseWriter, r *http.Request, stream link.Stream, y Way, refuse func(http.ResponseWriter, *http.Request, *problem.Error)) {
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
		Transport: transport, FlushInterval: -1, BufferPool: pieces{}, ErrorLog: log.New(io.Discard, "", 0),
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
type conn struct{ link.Stream }

func (conn) LocalAddr() net.Addr              { return place{} }
func (conn) RemoteAddr() net.Addr             { return place{} }
func (conn) SetDeadline(time.Time) error      { return nil }
func (conn) SetReadDeadline(time.Time) error  { return nil }
func (conn) SetWriteDeadline(time.Time) error { return nil }

type place struct{}

func (place) Network() string { return "session" }
func (place) String() string  { return "session" }
