package front

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
)

// authenticating finds the caller and puts it into the context. What needs no key gets no caller, also when a key is sent.
func (s *Server) authenticating(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := visit{s, w, r}
		if f := s.surfaceOf(r); f != nil && (f.Cookies || f.Keys != nil) {
			r = r.WithContext(auth.WithVisit(r.Context(), v))
		}
		if s.public(r) {
			next.ServeHTTP(w, r)
			return
		}
		who, err := s.caller(r)
		n := noteOf(r)
		if n.signedOut {
			v.Forget()
		}
		if err != nil {
			s.refuseCaller(w, r, err)
			return
		}
		if n.cookie != "" {
			v.Remember(n.cookie, n.until)
		}
		n.key = means(who)
		who.Request, who.IP, who.Agent = telemetry.RequestID(r.Context()), n.ip, agent(r)
		next.ServeHTTP(w, r.WithContext(auth.With(r.Context(), who)))
	})
}

func (s *Server) caller(r *http.Request) (auth.Principal, error) {
	done := telemetry.Stage(r.Context(), telemetry.StageAuthenticate)
	defer done()
	if cookies := s.cookies(r); len(cookies) > 0 {
		return s.signedIn(r, cookies)
	}
	text, ok := s.keyText(r)
	if documentation := noteOf(r).asked.Access == protocol.Documentation; documentation && (!ok || text == "") {
		return auth.Principal{}, problem.New(problem.Unauthenticated, "a key is needed, for this documentation too").
			WithHint("send Authorization: Bearer cove_..., in a browser the key as the password with any name; cove's source has the same as docs/openapi.json, and the setting serve.docs_public opens this one to everybody")
	}
	if !ok || text == "" {
		return auth.Principal{}, problem.New(problem.Unauthenticated, "a key is needed").
			WithHint("send Authorization: Bearer cove_...; cove key create makes a key")
	}
	find := s.o.Accounts.Authenticate
	if f := s.surfaceOf(r); f != nil && f.Tokens != nil && !auth.IsKey(text) {
		find = f.Tokens
	}
	return s.login(r.Context(), noteOf(r).ip, func(ctx context.Context) (auth.Principal, error) { return find(ctx, text) })
}

// keyText returns the key that the request brings, the same for either header. Two different ones are none: it must not depend on the
// reader which of them counts. A browser can send a key as a password only; that counts for the documentation alone, because a browser
// repeats it for whatever a foreign page makes it ask. A surface may know further ways; where a key came in one of those, a header with another
// scheme may be one of them, or a proxy's, and is passed over.
func (s *Server) keyText(r *http.Request) (string, bool) {
	var texts []string
	if f := s.surfaceOf(r); f != nil && f.Keys != nil {
		texts = f.Keys(r)
	}
	further := len(texts) > 0
	for _, v := range r.Header.Values("Authorization") {
		scheme, text, _ := strings.Cut(v, " ")
		_, password, ok := r.BasicAuth()
		switch {
		case ok && noteOf(r).asked.Access == protocol.Documentation && len(r.Header.Values("Authorization")) == 1:
			text = password
		case strings.EqualFold(scheme, "Bearer"):
		case further:
			continue
		default:
			return "", false
		}
		texts = append(texts, strings.TrimSpace(text))
	}
	texts = append(texts, r.Header.Values("X-Api-Key")...)
	for _, t := range texts {
		if t != texts[0] {
			return "", false
		}
	}
	if len(texts) == 0 {
		return "", false
	}
	return texts[0], true
}

func (s *Server) refuseCaller(w http.ResponseWriter, r *http.Request, err error) {
	p, less := problem.Public(err)
	if p.Kind == problem.Internal || less {
		s.log.ErrorContext(r.Context(), "a caller could not be authenticated", "error", err)
	}
	if p.Kind == problem.Denied && r.URL.Path == "/" {
		w.Header().Set("WWW-Authenticate", `Bearer realm="cove"`)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte("cove\n\n" + s.whereThingsAre()))
		return
	}
	s.refuse(w, r, p)
}

// after is a cause that knows when to come again.
type after time.Duration

func (a after) Error() string             { return "come again in " + time.Duration(a).String() }
func (a after) RetryAfter() time.Duration { return time.Duration(a) }

const (
	failures     = 20              // wrong keys that an address may send at once
	failureEvery = 3 * time.Second // and then one in this time
	rememberMost = 10_000          // addresses, and other things that clients choose
	suspects     = 4               // keys that are looked up at the same time for addresses that have sent too many wrong ones
)

// logins holds back addresses that send wrong keys. Nobody guesses a key; this is for the database and the log. A right key is let through from
// everywhere: behind a proxy many share an address. So keys from such an address are looked up, too, but few at a time.
type logins struct {
	places chan struct{}

	mu  sync.Mutex
	bad map[string]*rate.Limiter
}

func newLogins() *logins {
	return &logins{places: make(chan struct{}, suspects), bad: map[string]*rate.Limiter{}}
}

// wait returns how long the address has to wait before it may send another wrong key.
func (l *logins) wait(ip string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bad[network(ip)]
	if b == nil {
		return 0
	}
	if tokens := b.Tokens(); tokens < 1 {
		return time.Duration((1 - tokens) * float64(failureEvery))
	}
	return 0
}

// enter waits for one of the places in which such keys are looked up. leave gives it back.
func (l *logins) enter(ctx context.Context, patience time.Duration) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case l.places <- struct{}{}:
		return func() { <-l.places }, nil
	case <-ctx.Done():
		return nil, problem.New(problem.Overloaded, "too many wrong keys come from this address to look at this one in time").WithHint("try again in a moment")
	}
}

func (l *logins) failed(ip string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := network(ip)
	b := l.bad[name]
	if b == nil {
		if len(l.bad) >= rememberMost {
			clear(l.bad)
		}
		b = rate.NewLimiter(rate.Every(failureEvery), failures)
		l.bad[name] = b
	}
	b.Allow()
}

// network is what one customer of a provider has: an IPv4 address, or 2^64 IPv6 ones.
func network(ip string) string {
	a, err := netip.ParseAddr(ip)
	if err != nil || a.Is4() {
		return ip
	}
	p, err := a.Prefix(64)
	if err != nil {
		return ip
	}
	return p.String()
}
