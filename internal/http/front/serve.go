package front

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"golang.org/x/sync/errgroup"

	"cove/internal/core/problem"
)

// lastWords is how long requests may go on after their contexts ended.
const lastWords = 3 * time.Second

// Serve answers requests until ctx ends, and then stops in bounded time: no new connections are taken and readiness is refused at once;
// what runs may go on for Limits.Grace; then the contexts of requests end with a problem of code "draining" as their cause, which streams
// tell their clients; at last connections are closed. It returns nil after such an end.
func (s *Server) Serve(ctx context.Context) error {
	s.mu.Lock()
	listening := len(s.listeners) > 0
	s.mu.Unlock()
	if !listening {
		if _, err := s.Listen(ctx); err != nil {
			return err
		}
	}
	requests, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	group, failed := errgroup.WithContext(ctx)
	for _, l := range s.listeners {
		l.server.BaseContext = func(net.Listener) context.Context { return requests }
		group.Go(func() error {
			var err error
			if l.secure {
				err = l.server.ServeTLS(l.Listener, "", "")
			} else {
				err = l.server.Serve(l.Listener)
			}
			if errors.Is(err, http.ErrServerClosed) {
				return nil
			}
			return problem.New(problem.ListenerFailed, "the server cannot take connections any more").WithCause(err)
		})
	}
	group.Go(func() error {
		<-failed.Done() // ctx, or a listener
		s.stop(end)
		return nil
	})
	return group.Wait()
}

func (s *Server) stop(end context.CancelCauseFunc) {
	s.draining.Store(true)
	grace, cancel := context.WithTimeout(context.Background(), s.o.Limits.Grace)
	defer cancel()
	defer time.AfterFunc(silence, s.silent.close).Stop()
	if s.shutdown(grace) {
		return
	}
	end(stopping())
	last, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	if s.shutdown(last) {
		return
	}
	for _, l := range s.listeners {
		_ = l.server.Close()
	}
}

func stopping() error {
	return problem.New(problem.Draining, "the server is stopping").WithHint("come again in a moment")
}

// shutdown closes the listeners and says whether everything that ran has ended in time, also on connections that were upgraded.
func (s *Server) shutdown(ctx context.Context) bool {
	var group errgroup.Group
	for _, l := range s.listeners {
		group.Go(func() error { return l.server.Shutdown(ctx) })
	}
	return group.Wait() == nil && s.crowd.gone(ctx)
}

// metricsOnly serves the metrics to every client that reaches the listener, except web pages.
func (s *Server) metricsOnly() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.o.Telemetry.Metrics())
	mux.HandleFunc("GET /health", s.alive)
	mux.HandleFunc("GET /health/ready", s.isReady)
	return notForPages(mux)
}

// debugOnly serves Go's profiles, but for web pages.
func debugOnly() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound) // arguments may have addresses with passwords
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return notForPages(mux)
}

// notForPages refuses what a page in a browser on this machine has the browser ask: under a name of the page's own, or across sites.
func notForPages(next http.Handler) http.Handler {
	bare := &Server{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site := r.Header.Get("Sec-Fetch-Site")
		if !bare.goesBy(r) || r.Header.Get("Origin") != "" || site != "" && site != "none" && site != "same-origin" {
			http.Error(w, "not for web pages", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// quietLog is for what net/http says by itself: broken TLS handshakes and the like, which anybody can cause.
func quietLog(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelDebug) }
