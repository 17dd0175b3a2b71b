package front

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/server/auth"
)

// rating bounds the requests in a second of a key and of a project, and says in the headers what is left of the scarcer one.
func (s *Server) rating(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := auth.From(r.Context())
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		if err := s.rate(who, w.Header()); err != nil {
			s.refuse(w, r, err)
			return
		}
		if upgrades(r) {
			r = r.WithContext(auth.WithAgain(r.Context(), func(ctx context.Context) (auth.Principal, error) { return s.again(r.WithContext(ctx)) }))
		}
		next.ServeHTTP(w, r)
	})
}

// rate counts a request, and says in the headers, if there are any, what is left.
func (s *Server) rate(who auth.Principal, h http.Header) *problem.Error {
	for _, side := range []struct {
		rates *rates
		id    string
		whose string
	}{{s.keys, means(who), "key"}, {s.projects, who.Project, "project"}} {
		if side.rates == nil {
			continue
		}
		left, wait := side.rates.take(side.id)
		if h != nil {
			tell(h, side.rates.burst, left, wait)
		}
		if wait > 0 {
			return problem.New(problem.RateLimited, "this "+side.whose+" sends too many requests").WithCause(after(wait))
		}
	}
	return nil
}

// again is for connections that carry several requests: the key is looked at, and the request is counted, as if each came by itself.
func (s *Server) again(r *http.Request) (auth.Principal, error) {
	who, err := s.caller(r)
	if err != nil {
		return who, err
	}
	before, _ := auth.From(r.Context())
	who.Request, who.IP, who.Agent = before.Request, before.IP, before.Agent
	if err := s.rate(who, nil); err != nil {
		return who, err
	}
	return who, nil
}

// tell sets the headers of draft-ietf-httpapi-ratelimit-headers, unless what they say already is the scarcer.
func tell(h http.Header, limit, left int, wait time.Duration) {
	if before, err := strconv.Atoi(h.Get("RateLimit-Remaining")); err == nil && before <= left {
		return
	}
	h.Set("RateLimit-Limit", strconv.Itoa(limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(left))
	h.Set("RateLimit-Reset", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
}

// rates are token buckets by id.
type rates struct {
	each  rate.Limit
	burst int

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

// newRates returns nil for no limit.
func newRates(each, burst float64) *rates {
	if each == 0 {
		return nil
	}
	return &rates{each: rate.Limit(each), burst: max(1, int(each*burst)), buckets: map[string]*rate.Limiter{}}
}

// take takes a token, or returns how long there is none.
func (l *rates) take(id string) (left int, wait time.Duration) {
	b := l.bucket(id)
	if b.Allow() {
		return max(0, int(b.Tokens())), 0
	}
	return 0, max(time.Millisecond, time.Duration((1-b.Tokens())/float64(l.each)*float64(time.Second)))
}

func (l *rates) bucket(id string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[id]
	if b == nil {
		if len(l.buckets) >= rememberMost {
			l.sweep()
		}
		b = rate.NewLimiter(l.each, l.burst)
		l.buckets[id] = b
	}
	return b
}

// sweep forgets those that are full again, which are as good as new, and all when none is.
func (l *rates) sweep() {
	for id, b := range l.buckets {
		if b.Tokens() >= float64(l.burst) {
			delete(l.buckets, id)
		}
	}
	if len(l.buckets) >= rememberMost {
		clear(l.buckets)
	}
}

// admitting bounds what is served at the same time. A request waits a moment for room and is then refused: nobody hangs.
func (s *Server) admitting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := auth.From(r.Context())
		if !ok {
			next.ServeHTTP(w, r) // public routes do next to nothing
			return
		}
		done := telemetry.Stage(r.Context(), telemetry.StageAdmit)
		leave, err := s.room.enter(r.Context(), who.Project, means(who))
		done()
		if err != nil {
			s.refuse(w, r, problem.Of(err))
			return
		}
		leave = sync.OnceFunc(leave)
		defer leave()
		next.ServeHTTP(w, r.WithContext(auth.WithPlace(r.Context(), leave)))
	})
}

// room is where requests are served: so many at a time, of one project fewer, and of one key fewer than of its project, so that there is room for others.
type room struct {
	places  chan struct{}
	wait    time.Duration
	waiting atomic.Int64

	mu             sync.Mutex
	project, key   int // 0: no limit
	projects, keys map[string]int
}

func newRoom(l Limits) *room {
	return &room{places: make(chan struct{}, l.InFlight), wait: l.Wait, project: l.ProjectInFlight, key: l.KeyInFlight, projects: map[string]int{}, keys: map[string]int{}}
}

func (o *room) taken() int { return len(o.places) }

// enter returns what leaves the room again.
func (o *room) enter(ctx context.Context, project, key string) (leave func(), err error) {
	if whose := o.hold(project, key); whose != "" {
		return nil, problem.New(problem.TooManyRequests, "the "+whose+" has as many requests running as it may").
			WithHint("end some, such as streams that are not read any more")
	}
	if err := o.place(ctx); err != nil {
		o.release(project, key)
		return nil, err
	}
	return func() {
		<-o.places
		o.release(project, key)
	}, nil
}

func (o *room) place(ctx context.Context) error {
	select {
	case o.places <- struct{}{}:
		return nil
	default:
	}
	full := problem.New(problem.Overloaded, "the server has as much to do as it can")
	// More waiters than places would not get one in time.
	if o.waiting.Add(1) > int64(cap(o.places)) {
		o.waiting.Add(-1)
		return full
	}
	defer o.waiting.Add(-1)
	patience := time.NewTimer(o.wait)
	defer patience.Stop()
	select {
	case o.places <- struct{}{}:
		return nil
	case <-patience.C:
		return full
	case <-ctx.Done():
		return problem.New(problem.GivenUp, "the client gave up the request")
	}
}

// hold counts a request, or says whose requests are too many.
func (o *room) hold(project, key string) (whose string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.project > 0 && o.projects[project] >= o.project:
		return "project"
	case key != "" && o.key > 0 && o.keys[key] >= o.key:
		return "key"
	}
	o.projects[project]++
	if key != "" {
		o.keys[key]++
	}
	return ""
}

func (o *room) release(project, key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.projects[project]--; o.projects[project] <= 0 {
		delete(o.projects, project)
	}
	if o.keys[key]--; o.keys[key] <= 0 {
		delete(o.keys, key)
	}
}
