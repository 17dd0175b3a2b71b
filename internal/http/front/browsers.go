package front

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/server/auth"
)

// A browser that is signed in sends a cookie, which scripts cannot read and pages of others do not make it send. It counts for surfaces that take it, and only
// where the request has no key.

// cookieName is what a request's cookie is called. One that came over TLS has a name that browsers take from such answers alone; without TLS the port
// is in the name, since cookies do not know ports, and two servers of one machine would sign each other's users out.
func (s *Server) cookieName(r *http.Request) string {
	if s.secure(r) {
		return "__Host-cove"
	}
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil || port == "" || len(port) > 5 || strings.Trim(port, "0123456789") != "" {
		port = "80"
	}
	return "cove_" + port
}

// secure says whether the browser speaks TLS, with this server or with a proxy that is trusted to say so.
func (s *Server) secure(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err == nil {
		ip, err := netip.ParseAddr(host)
		if err != nil || !s.trusts(ip.Unmap().WithZone("")) {
			return false
		}
	}
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return strings.EqualFold(strings.TrimSpace(first), "https")
}

// cookies returns what a request that has no key brings instead.
func (s *Server) cookies(r *http.Request) []*http.Cookie {
	f := s.surfaceOf(r)
	if f == nil || !f.Cookies || r.Header.Get("Authorization") != "" || r.Header.Get("X-Api-Key") != "" {
		return nil
	}
	return r.CookiesNamed(s.cookieName(r))
}

// signedIn returns who a browser's cookie stands for. Several different ones are none, as with keys.
func (s *Server) signedIn(r *http.Request, cookies []*http.Cookie) (auth.Principal, error) {
	if !s.ownPage(r) {
		return auth.Principal{}, problem.New(problem.CrossOrigin, "only this server's own page may call as the browser that is signed in").
			WithHint("send a key as Authorization: Bearer cove_...")
	}
	text := cookies[0].Value
	for _, c := range cookies {
		if c.Value != text {
			text = ""
		}
	}
	n := noteOf(r)
	who, err := s.login(r.Context(), n.ip, func(ctx context.Context) (auth.Principal, error) {
		who, until, err := s.o.Accounts.AuthenticateBrowser(ctx, text)
		if n.signedOut = problem.Is(err, problem.Denied); err == nil && !until.IsZero() {
			n.cookie, n.until = text, until
		}
		return who, err
	})
	return who, err
}

// ownPage says whether a request comes from no page, or from one of this server: also to read, and whatever other pages may call.
func (s *Server) ownPage(r *http.Request) bool {
	if http.NewCrossOriginProtection().Check(r) != nil {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
		origin := r.Header.Get("Origin")
		u, err := url.Parse(origin)
		return origin == "" || err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
	}
	return false
}

// login has find tell who calls, and holds back addresses that are often refused.
func (s *Server) login(ctx context.Context, ip string, find func(context.Context) (auth.Principal, error)) (auth.Principal, error) {
	wait := s.logins.wait(ip)
	if wait > 0 {
		leave, err := s.logins.enter(ctx, s.o.Limits.Wait)
		if err != nil {
			return auth.Principal{}, err
		}
		defer leave()
	}
	who, err := find(ctx)
	if problem.Is(err, problem.Denied) || problem.Is(err, problem.NotFound) {
		s.logins.failed(ip)
		if wait > 0 {
			err = problem.New(problem.TooManyFailedLogins, "too many wrong keys came from this address").WithCause(after(wait))
		}
	}
	return who, err
}

// visit implements auth.Visit.
type visit struct {
	s *Server
	w http.ResponseWriter
	r *http.Request
}

var _ auth.Visit = visit{}

func (v visit) Visitor() auth.Principal {
	return auth.Principal{Request: telemetry.RequestID(v.r.Context()), IP: noteOf(v.r).ip, Agent: agent(v.r)}
}

func (v visit) Login(ctx context.Context, name string, find func(context.Context) (auth.Principal, error)) (auth.Principal, error) {
	if name != "" {
		if err := v.s.mayGuess(noteOf(v.r).ip, name); err != nil {
			return auth.Principal{}, err
		}
	}
	who, err := v.s.login(ctx, noteOf(v.r).ip, find)
	if err != nil {
		return who, err
	}
	if refused := v.s.rate(who, nil); refused != nil {
		return auth.Principal{}, refused
	}
	return who, nil
}

func (v visit) Look(ctx context.Context, find func(context.Context) error) error {
	_, err := v.s.login(ctx, noteOf(v.r).ip, func(ctx context.Context) (auth.Principal, error) { return auth.Principal{}, find(ctx) })
	return err
}

func (v visit) Enter(ctx context.Context, who auth.Principal) (leave func(), err error) {
	if refused := v.s.rate(who, nil); refused != nil {
		return nil, refused
	}
	return v.s.room.enter(ctx, who.Project, means(who))
}

func (v visit) Caller(ctx context.Context) (auth.Principal, error) {
	if len(v.s.cookies(v.r)) == 0 && v.r.Header.Get("Authorization") == "" && v.r.Header.Get("X-Api-Key") == "" {
		return auth.Principal{}, nil
	}
	who, err := v.s.caller(v.r.WithContext(ctx))
	if err != nil {
		return auth.Principal{}, err
	}
	if refused := v.s.rate(who, nil); refused != nil {
		return auth.Principal{}, refused
	}
	visitor := v.Visitor()
	who.Request, who.IP, who.Agent = visitor.Request, visitor.IP, visitor.Agent
	return who, nil
}

// mayGuess bounds passwords for a name, right and wrong ones: unlike keys they can be guessed, so they are not even looked at beyond that, neither from an
// address that has sent too much that was wrong.
func (s *Server) mayGuess(ip, name string) error {
	wait := s.logins.wait(ip)
	if wait == 0 {
		_, wait = s.guesses.take(name)
	}
	if wait > 0 {
		return problem.New(problem.TooManyFailedLogins, "too many passwords came for this name or from this address").WithCause(after(wait))
	}
	return nil
}

func (v visit) Remember(text string, until time.Time) {
	v.set(text, max(1, int(time.Until(until).Seconds())))
}

func (v visit) Forget() { v.set("", -1) }

// set replaces what the answer said before: nothing else of the server sets cookies.
func (v visit) set(text string, seconds int) {
	c := &http.Cookie{Name: v.s.cookieName(v.r), Value: text, Path: "/", MaxAge: seconds, HttpOnly: true, Secure: v.s.secure(v.r), SameSite: http.SameSiteStrictMode}
	v.w.Header().Set("Set-Cookie", c.String())
}

// means is what the log and the limits know a caller by: the key, or the browser where there is none.
func means(who auth.Principal) string { return cmp.Or(who.Key, who.Browser) }
