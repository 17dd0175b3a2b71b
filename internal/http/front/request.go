package front

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unicode"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/http/protocol"
)

// note is what the inner parts of the chain tell the outer ones about a request.
type note struct {
	route string         // a pattern, never an address
	asked protocol.Route // what it is for, known before any surface sees it
	key   string         // the id of the caller's key, or of its browser
	ip    string
	trace context.Context // of the request's span, or nil

	signedOut bool   // the browser's cookie is worth nothing
	cookie    string // that the browser is to keep, until then; "": as it is
	until     time.Time
}

// context is the request's with its trace, for what is outside of that.
func (n *note) context(r *http.Request) context.Context {
	if n.trace != nil {
		return n.trace
	}
	return r.Context()
}

// name takes the route from a pattern of a mux, which may begin with the method.
func (n *note) name(pattern string) {
	_, path, found := strings.Cut(pattern, " ")
	if !found {
		path = pattern
	}
	n.route = strings.TrimSuffix(path, "{$}")
}

type noteKey struct{}

func noteOf(r *http.Request) *note {
	n, _ := r.Context().Value(noteKey{}).(*note)
	if n == nil {
		return &note{}
	}
	return n
}

// recovering answers for handlers that panic, without detail; the log has it.
func (s *Server) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &writer{ResponseWriter: w}
		defer func() {
			fault := recover()
			if fault == nil {
				return
			}
			if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(fault)
			}
			s.o.Telemetry.Count(telemetry.Panics, 1)
			s.log.Error("a handler failed", "request", out.Header().Get("X-Request-Id"), "fault", fault, "stack", string(debug.Stack()))
			if out.status != 0 {
				panic(http.ErrAbortHandler) // half an answer must not look like a whole one
			}
			s.refuse(out, r, problem.New(problem.Fault, "the server failed; it was logged"))
		}()
		next.ServeHTTP(out, r)
	})
}

// identifying gives the request an id: the caller's, where it is fit for a log, or a new one.
func (s *Server) identifying(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if !goodRequestID(id) {
			id = ident.New(ident.Request)
		}
		w.Header().Set("X-Request-Id", id)
		n := &note{ip: s.clientIP(r), asked: s.routeOf(r)}
		n.name(n.asked.Pattern)
		ctx := telemetry.With(telemetry.WithRequest(context.WithValue(r.Context(), noteKey{}, n), id), s.o.Telemetry)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func goodRequestID(id string) bool {
	if len(id) < 8 || len(id) > 100 || telemetry.Clean(id) != id {
		return false
	}
	return strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// logging writes a line and a measurement after every request, also one that panics. Neither has anything that a caller can choose freely:
// no address, no query, no header, no body.
func (s *Server) logging(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		out := w.(*writer)
		whole := false
		defer func() {
			took := time.Since(begin)
			status := out.status
			switch {
			case !whole && status == 0:
				status = http.StatusInternalServerError
			case status == 0:
				status = http.StatusOK
			}
			n := noteOf(r)
			route, method := cmpOr(n.route, "none"), knownMethod(r.Method)
			s.o.Telemetry.Observe(telemetry.Requests, took, method, route, strconv.Itoa(status/100)+"xx")
			level := slog.LevelInfo
			if strings.HasPrefix(route, "/health") && status < 400 {
				level = slog.LevelDebug
			}
			s.log.LogAttrs(n.context(r), level, "request", slog.String("method", method), slog.String("route", route), slog.Int("status", status),
				slog.Int64("bytes", out.bytes), slog.Float64("seconds", took.Seconds()), slog.String("key", n.key), slog.String("ip", n.ip))
		}()
		next.ServeHTTP(w, r)
		whole = true
	})
}

func cmpOr(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// knownMethod bounds the values of a label.
func knownMethod(m string) string {
	switch m {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return m
	}
	return "other"
}

func (s *Server) tracing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := telemetry.Request(r.Context(), r.Header, knownMethod(r.Method))
		noteOf(r).trace = ctx
		defer func() { end(cmpOr(noteOf(r).route, "none"), w.(*writer).status) }()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// noting keeps the pattern that the innermost mux chose. It is deferred, for handlers that panic.
func (s *Server) noting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			noteOf(r).name(r.Pattern)
		}()
		next.ServeHTTP(w, r)
	})
}

// clientIP is whom the request came from: the nearest address that is not a proxy which the operator trusts. Who comes through a unix socket
// is the server's own user, and trusted.
func (s *Server) clientIP(r *http.Request) string {
	var ip netip.Addr
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	unix := err != nil
	if ip, err = netip.ParseAddr(host); err != nil && !unix {
		return "unknown"
	}
	ip = ip.Unmap().WithZone("")
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && (!ip.IsValid() || s.trusts(ip)); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		ip = next.Unmap().WithZone("")
	}
	if !ip.IsValid() {
		return "local"
	}
	return ip.String()
}

func (s *Server) trusts(ip netip.Addr) bool {
	for _, p := range s.o.Proxies {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// agent is the name of the caller's program, fit to be written down.
func agent(r *http.Request) string {
	a := r.UserAgent()
	if len(a) > 200 {
		a = a[:200]
	}
	a = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, a)
	return telemetry.Clean(a)
}
