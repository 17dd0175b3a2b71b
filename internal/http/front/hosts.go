package front

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/protocol"
)

// hosts refuses names that the server does not go by. See Options.Hosts.
func (s *Server) hosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.goesBy(r) {
			s.refuse(w, r, problem.New(problem.Misdirected, "this server does not go by that name").
				WithHint("call it localhost, or have it started with --allow-host"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) goesBy(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if _, unix := local.(*net.UnixAddr); unix {
		return true // no browser comes this way
	}
	name := hostOf(r.Host)
	for _, h := range s.o.Hosts {
		if h == "*" || protocol.GoesBy(hostOf(h), name) {
			return true
		}
	}
	for _, f := range s.o.Surfaces {
		if f.Host != "" && protocol.GoesBy(f.Host, name) && (f.Named == nil || f.Named(name)) {
			return true
		}
	}
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	return len(s.o.Hosts) == 0 && !loopback(local)
}

// hostOf is a host's name alone, however it is written.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(address, "[]"), "."))
}

func loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

func protection(origins []string) (*http.CrossOriginProtection, error) {
	p := http.NewCrossOriginProtection()
	for _, o := range origins {
		if err := p.AddTrustedOrigin(o); err != nil {
			return nil, problem.New(problem.OriginInvalid, "an allowed origin is not right: "+o).WithCause(err).
				WithHint("write it as https://app.example.com, without a path")
		}
	}
	return p, nil
}

// upgrades says whether a request asks for another protocol, which is a WebSocket.
func upgrades(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }

// samePage says whether a request comes from no page, from one of this server, or from one that the operator names.
func (s *Server) samePage(r *http.Request, origin string) bool {
	if origin == "" || slices.Contains(s.o.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// exposed are the headers of answers that scripts of allowed pages may read.
const exposed = "Location, X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Content-Disposition, Content-Range, ETag, Idempotency-Replayed, WWW-Authenticate"

// crossOrigin keeps web pages of others away, but for those that the operator names. Origins are compared exactly.
func (s *Server) crossOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := s.surfaceOf(r); f != nil && f.Foreign {
			next.ServeHTTP(w, r)
			return
		}
		origin := r.Header.Get("Origin")
		if len(s.o.Origins) > 0 {
			w.Header().Add("Vary", "Origin")
		}
		if origin != "" && slices.Contains(s.o.Origins, origin) {
			h := w.Header()
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", exposed)
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
				h.Set("Access-Control-Allow-Headers", "Authorization, *") // the star does not cover Authorization
				h.Set("Access-Control-Max-Age", "600")
				noteOf(r).route = "preflight"
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		// The check lets whatever reads pass; a connection that a page upgrades reads and writes.
		if err := s.origins.Check(r); err != nil || upgrades(r) && !s.samePage(r, origin) {
			s.refuse(w, r, problem.New(problem.CrossOrigin, "this web page may not call the server").
				WithHint("have the server started with --allow-origin"))
			return
		}
		next.ServeHTTP(w, r)
	})
}
