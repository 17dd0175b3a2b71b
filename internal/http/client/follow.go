package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/sse"
	"cove/internal/server/transcript"
)

// Gap is an error that does not end a stream: the events between After and Until are lost.
type Gap struct{ After, Until int64 }

// Error says nothing of the numbers, which tell a person nothing: when a server was killed, its streams go on with a much higher one.
func (g *Gap) Error() string { return "some output may be missing here" }

const (
	maxEvent = 64 << 20
	silence  = 45 * time.Second // the server breaks a silence every ten seconds
	farewell = time.Second      // for the end of an answer after the last event
	patience = 8                // attempts to follow again without a single event
)

// stream is one connection's events.
type stream struct {
	body   io.ReadCloser
	events *sse.Reader
	idle   *time.Timer
	stop   context.CancelFunc
}

// open begins a stream. A server that says nothing at all for too long is taken for gone.
func (c *Client) open(ctx context.Context, q call) (*stream, error) {
	ctx, stop := context.WithCancel(ctx)
	q.accept = sse.ContentType
	answer, err := c.send(ctx, q) //nolint:bodyclose // closed with the stream
	if err != nil {
		stop()
		return nil, err
	}
	idle := time.AfterFunc(silence, stop)
	heard := func() { idle.Reset(silence) }
	return &stream{body: answer.Body, events: sse.NewReader(answer.Body, maxEvent, heard), idle: idle, stop: stop}, nil
}

// finish reads what little is after the last event, so that the connection can be used again. A server that has more to say than that, or
// takes its time, costs the connection.
func (s *stream) finish() {
	s.idle.Reset(farewell)
	s.events.Discard(4 << 10)
	s.close()
}

func (s *stream) close() {
	s.idle.Stop()
	s.stop()
	_ = s.body.Close()
}

// next reads an event with a name; io.EOF is the end of the connection, not of what is followed.
func (s *stream) next() (sse.Event, error) {
	for {
		e, err := s.events.Next()
		if errors.Is(err, sse.ErrTooLarge) {
			err = problem.New(problem.ServerUnexpected, "the server sent an event that is too large").WithCause(err)
		}
		if err != nil || e.Name != "" {
			return e, err
		}
	}
}

// follow yields what parse makes of the events at path, from the event after the number after on, until last says that one was the last. It follows again when the
// connection breaks. first, if not nil, is a connection that is open already.
func follow[E any](ctx context.Context, c *Client, path string, after int64, first *stream, parse func([]byte) (E, error), last func(E) bool) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		var none E
		f := follower[E]{c: c, path: path, at: after, parse: parse, last: last, yield: yield}
		s, tried := first, 0
		for {
			var err error
			before := f.at
			if s == nil {
				s, err = c.open(ctx, call{method: http.MethodGet, path: path, last: f.at})
			}
			if err == nil {
				err = f.drain(s)
				if f.over {
					s.finish()
				} else {
					s.close()
				}
				s, f.over = nil, false
			}
			switch {
			case errors.Is(err, errOver):
				return
			case ctx.Err() != nil:
				yield(none, fmt.Errorf("follow: %w", context.Cause(ctx)))
				return
			}
			if tried++; f.at > before {
				tried = 0
			} else if errors.Is(err, errEnded) && tried > 1 {
				err = problem.New(problem.StreamEnded, "the server has no more events of this, and no end of it").WithHint("look at its state")
			}
			if final(err) || tried >= patience {
				yield(none, err)
				return
			}
			if !sleep(ctx, min(time.Duration(tried*tried+1)*100*time.Millisecond, longestWait)) {
				yield(none, fmt.Errorf("follow: %w", context.Cause(ctx)))
				return
			}
		}
	}
}

// errOver says that nothing more is to be yielded.
var errOver = errors.New("over")

// errEnded says that the server ended the stream in good order, and without a last event.
var errEnded = errors.New("the stream ended")

// final says whether following again makes no sense: the server answered, and said why not.
func final(err error) bool {
	p, ok := errors.AsType[*problem.Error](err)
	if !ok {
		return false // the connection
	}
	switch p.Code {
	case string(problem.ServerUnreachable), string(problem.Draining), string(problem.DatabaseUnavailable), string(problem.StreamCut):
		return false
	}
	return p.Kind != problem.Exhausted
}

type follower[E any] struct {
	c     *Client
	path  string
	at    int64 // the last event that was yielded
	parse func([]byte) (E, error)
	last  func(E) bool
	yield func(E, error) bool
	over  bool // of this connection, the last event was read
}

// drain yields a connection's events. It returns errOver after the last one, and otherwise why the connection ended.
func (f *follower[E]) drain(s *stream) error {
	for {
		m, err := s.next()
		if errors.Is(err, io.EOF) {
			return errEnded
		}
		if _, told := errors.AsType[*problem.Error](err); err != nil && !told {
			return f.c.unreachable(context.Background(), err)
		}
		if err != nil {
			return err
		}
		if err := f.one(m); err != nil {
			return err
		}
	}
}

func (f *follower[E]) one(m sse.Event) error {
	var none E
	if m.ID > 0 && m.ID <= f.at {
		return nil // seen already
	}
	switch m.Name {
	case "failure":
		f.over = true
		if p, ok := transcript.ParseFailure(m.Data); ok {
			return p
		}
		return problem.New(problem.ServerUnexpected, "the server sent a failure that cannot be read")
	case "gap":
		var g Gap
		_ = json.Unmarshal(m.Data, &g)
		f.at = m.ID
		if !f.yield(none, &g) {
			return errOver
		}
		return nil
	}
	if m.ID == 0 {
		return nil // about the thing, not of its stream
	}
	f.at = m.ID
	e, err := f.parse(m.Data)
	if err != nil {
		return nil // of a newer server: what is not known is not shown
	}
	f.over = f.last(e)
	if !f.yield(e, nil) || f.over {
		return errOver
	}
	return nil
}

// begin has something started and reads what was: the first event of the answer, whose name is name.
func begin[T any](ctx context.Context, c *Client, path, name string, body any) (thing T, s *stream, err error) {
	s, err = c.open(ctx, call{method: http.MethodPost, path: path, body: body, once: ident.New(ident.Request)})
	if err != nil {
		return thing, nil, err
	}
	m, err := s.next()
	if err != nil {
		s.close()
		return thing, nil, c.unreachable(ctx, err)
	}
	var got map[string]json.RawMessage
	if err = json.Unmarshal(m.Data, &got); err == nil {
		err = json.Unmarshal(got[name], &thing) // nothing to read where another event came first
	}
	if err != nil {
		s.close()
		return thing, nil, problem.New(problem.ServerUnexpected, "the server's answer cannot be read").WithCause(err)
	}
	return thing, s, nil
}
