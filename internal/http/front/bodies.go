package front

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/http/protocol"
	"cove/internal/server/auth"
)

// shortBody is read before the surface is called: it frees the handler of waiting for a slow client, and from then on the server notices
// when the client goes away.
const shortBody = 64 << 10

// bodies bounds a request's body, and what it may take in memory when a surface reads it with package intake.
func (s *Server) bodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who, ok := auth.From(r.Context()); ok {
			share := s.memory.Share(cmp.Or(means(who), who.Project))
			defer share.Release()
			r = r.WithContext(bodybudget.With(r.Context(), share))
		}
		limit, long := s.o.Limits.Body, problem.New(problem.RequestTooLarge, "the request is too long")
		if noteOf(r).asked.Large {
			limit, long = s.o.Limits.Upload, problem.New(problem.FileTooLarge, "the file is larger than the server takes").WithHint("upload it in parts")
		}
		if noteOf(r).asked.Access == protocol.Public {
			limit = min(limit, shortBody) // nobody counts what these take
		}
		if r.ContentLength > limit {
			s.refuse(w, r, long)
			return
		}
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = bodybudget.Bounded(w, r.Body, limit)
			if r.ContentLength >= 0 && r.ContentLength <= shortBody {
				if !s.readShort(w, r) {
					return
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) readShort(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		return true
	}
	w.Header().Set("Connection", "close")
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.refuse(w, r, problem.New(problem.RequestTimeout, "the request did not arrive in time"))
	} else {
		s.refuse(w, r, problem.New(problem.RequestIncomplete, "the request did not arrive whole"))
	}
	return false
}

// slow cuts off clients that neither send nor take anything. There is no limit on the whole, since streams and uploads last.
func (s *Server) slow(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := w.(*writer)
		out.control, out.stall, out.multiplexed = http.NewResponseController(out.ResponseWriter), s.o.Limits.Stall, r.ProtoMajor > 1
		// The deadline of the connection's last request may have passed, and the server itself writes after the handler.
		// After it may be up to one stall of reading what the handler left of the body.
		out.hurry()
		out.rest()
		defer func() { _ = out.control.SetWriteDeadline(time.Now().Add(2 * out.stall)) }()
		var b *body
		if r.Body != nil && r.Body != http.NoBody {
			b = &body{ReadCloser: r.Body, control: out.control, stall: out.stall, speed: s.o.Limits.Speed}
			// Where a request is refused without reading its body, the server itself reads on before it answers.
			_ = b.control.SetReadDeadline(time.Now().Add(b.stall))
			r.Body = b
		}
		next.ServeHTTP(w, r)
		if b != nil && b.got < r.ContentLength && out.status >= http.StatusBadRequest && !out.multiplexed && !waits(r) {
			bodybudget.DropBody(w, b) // or a client that sends everything before it looks for an answer would see none
		}
	})
}

// waits says whether a client sends its body only when it is told to.
func waits(r *http.Request) bool { return strings.EqualFold(r.Header.Get("Expect"), "100-continue") }

// body is a request's body that must arrive with a minimum speed. Only the time that is spent in waiting for the client counts.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	stall   time.Duration
	speed   int64

	got    int64
	waited time.Duration
}

func (b *body) Read(p []byte) (int, error) {
	left := b.stall
	if b.speed > 0 {
		left = min(left, b.stall+time.Duration(b.got)*time.Second/time.Duration(b.speed)-b.waited)
	}
	begin := time.Now()
	_ = b.control.SetReadDeadline(begin.Add(left))
	n, err := b.ReadCloser.Read(p)
	b.waited += time.Since(begin)
	b.got += int64(n)
	switch err {
	case nil:
	case io.EOF:
		// The server now watches the connection for its end; a deadline from before would look like one.
		_ = b.control.SetReadDeadline(time.Time{})
	default:
		// Before it answers, the server itself reads on what the handler left: from this client, no more.
		_ = b.control.SetReadDeadline(time.Now())
	}
	return n, err
}
