package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/sse"
	"cove/internal/server/hub"
	"cove/internal/server/transcript"
)

// typed is an event that is named like the "type" that its JSON begins with.
func typed(id int64, body []byte) sse.Event {
	return sse.Event{ID: id, Name: cmp.Or(transcript.TypeOf(body), "message"), Data: body}
}

// object is an event around a thing: {"type":"execution","execution":{...}}.
func object(name string, thing any) sse.Event {
	body, err := json.Marshal(thing)
	if err != nil {
		return failure(err)
	}
	return sse.Event{Name: name, Data: fmt.Appendf(nil, `{"type":%q,%q:%s}`, name, name, body)}
}

// failure is the event that ends a stream after an error.
func failure(err error) sse.Event {
	d := documentOf(err)
	body, err := transcript.Failure(&problem.Error{Kind: d.Kind, Code: d.Code, Message: d.Detail, Hint: d.Hint})
	if err != nil {
		body = []byte(`{"type":"failure","kind":"internal","code":"internal","message":"something went wrong in the server"}`)
	}
	return sse.Event{Name: "failure", Data: body}
}

// messages turns the events of a follower into server-sent events. after is the number after which it began.
func messages(f hub.Follower[json.RawMessage], after int64) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		last := after
		for n, err := range f {
			if err != nil {
				yield(sse.Event{}, err)
				return
			}
			if !yield(numbered(n, last), nil) {
				return
			}
			last = n.Seq
		}
	}
}

func numbered(n hub.Numbered[json.RawMessage], last int64) sse.Event {
	if n.Gap {
		return sse.Event{ID: n.Seq, Name: "gap", Data: fmt.Appendf(nil, `{"type":"gap","after":%d,"until":%d}`, last, n.Seq)}
	}
	return typed(n.Seq, n.Event)
}

// untilEnd makes sure that a client sees whether a stream is complete. When the stream breaks off before its last event, as when the server ends, untilEnd adds
// an event that tells the client to follow again. look returns the last event's number and whether that is the final one.
func untilEnd(events iter.Seq2[sse.Event, error], after int64, end string, look func() (last int64, final bool, err error)) iter.Seq2[sse.Event, error] {
	return func(yield func(sse.Event, error) bool) {
		at, over := after, false
		for m, err := range events {
			if !yield(m, err) || err != nil {
				return
			}
			at, over = max(at, m.ID), m.Name == end
		}
		if over {
			return
		}
		last, final, err := look()
		if err == nil && (!final || at < last) {
			err = problem.New(problem.StreamCut, "the stream was cut off before its end").WithHint("follow it again, with Last-Event-ID")
		}
		if err != nil {
			yield(sse.Event{}, err)
		}
	}
}

// outboxSize is how many bytes wait for a client; its producer waits when there are more.
const outboxSize = 64 << 10

// outbox has the events that are ready to be written. The writer takes all of them at once, so that events that come together are sent together, and a single
// one is sent immediately.
type outbox struct {
	mu          sync.Mutex
	pending     []byte
	over        bool
	ready, room chan struct{} // of one
}

func newOutbox() *outbox {
	return &outbox{ready: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put waits for room and says whether there was any before ctx ended.
func (o *outbox) put(ctx context.Context, m sse.Event) bool {
	for {
		o.mu.Lock()
		if len(o.pending) < outboxSize {
			o.pending = m.Append(o.pending)
			o.mu.Unlock()
			signal(o.ready)
			return true
		}
		o.mu.Unlock()
		select {
		case <-o.room:
		case <-ctx.Done():
			return false
		}
	}
}

func (o *outbox) end() {
	o.mu.Lock()
	o.over = true
	o.mu.Unlock()
	signal(o.ready)
}

// take returns what is ready and whether it is the last; spare is reused.
func (o *outbox) take(spare []byte) (text []byte, over bool) {
	if cap(spare) > 4*outboxSize {
		spare = nil // a large event must not keep its memory for the life of the stream
	}
	o.mu.Lock()
	text, over = o.pending, o.over
	o.pending = spare[:0]
	o.mu.Unlock()
	signal(o.room)
	return text, over
}

// opener begins to follow; the events that it returns end with ctx.
type opener func(ctx context.Context) (iter.Seq2[sse.Event, error], error)

// stream writes events until they end, or the client has gone or does not read. The event first, if there is one, comes before all others. An error is returned
// only when nothing was written.
func (s *server) stream(w http.ResponseWriter, r *http.Request, first sse.Event, open opener) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	events, err := open(ctx)
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", sse.ContentType)
		return nil
	}
	out := newOutbox()
	if first.Name != "" {
		out.put(ctx, first)
	}
	var producing sync.WaitGroup
	producing.Go(func() { s.produce(ctx, r, out, events) })
	defer producing.Wait()
	defer cancel() // before the wait
	s.pump(ctx, w, out)
	return nil
}

func (s *server) produce(ctx context.Context, r *http.Request, out *outbox, events iter.Seq2[sse.Event, error]) {
	defer out.end()
	for m, err := range events {
		if err != nil {
			if ctx.Err() != nil && !draining(ctx) {
				return // the client has gone: there is nobody to send an error to
			}
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			s.logFault(r, documentOf(err))
			out.put(ctx, failure(err))
			return
		}
		if !out.put(ctx, m) {
			return
		}
	}
}

// draining says whether ctx ended because the server ends, of which a client that is still connected is told.
func draining(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return problem.Has(cause, problem.Draining)
}

// pump writes events as soon as they are ready, and a comment after a while without events.
func (s *server) pump(ctx context.Context, w http.ResponseWriter, out *outbox) {
	to := sse.NewWriter(w)
	text := []byte("retry: 1000\n\n")
	beat := time.NewTimer(s.o.Heartbeat)
	defer beat.Stop()
	gone := ctx.Done()
	for over := false; ; {
		if _, err := to.Write(text); err != nil || over {
			return
		}
		beat.Reset(s.o.Heartbeat)
		select {
		case <-gone:
			if !draining(ctx) {
				return
			}
			gone, text = nil, text[:0] // the producer adds the reason, and ends
			continue
		case <-beat.C:
			text = append(text[:0], sse.Comment...)
			continue
		case <-out.ready:
		}
		text, over = out.take(text)
	}
}

// point returns the number after which a stream goes on: the Last-Event-ID header of a client that reconnects, or ?after=.
func point(r *http.Request, after int64) (int64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		if after < 0 {
			return 0, problem.New(problem.InvalidRequest, "after must not be negative")
		}
		return after, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, problem.New(problem.InvalidRequest, "Last-Event-ID is not the id of an event of this stream")
	}
	return n, nil
}

// manner is how a client wants the answer of an operation that can take long.
type manner int

const (
	asWhole manner = iota
	asStream
	asPromise
)

// Manner has the parameters of operations that can take long.
type Manner struct {
	Stream     bool `query:"stream" doc:"Answer with server-sent events. 'Accept: text/event-stream' does the same"`
	Wait       bool `query:"wait" doc:"Answer when it is over, with one JSON object, whatever Accept says; this is the default"`
	Background bool `query:"background" doc:"Answer at once (202); follow later"`
}

func (m Manner) of(r *http.Request) (manner, error) {
	switch {
	case m.Background && (m.Wait || m.Stream), m.Wait && m.Stream:
		return 0, problem.New(problem.InvalidRequest, "stream, wait and background exclude each other")
	case m.Background:
		return asPromise, nil
	case m.Wait:
		return asWhole, nil
	case m.Stream:
		return asStream, nil
	}
	if wantsEvents(r.Header.Values("Accept")) {
		return asStream, nil
	}
	return asWhole, nil
}

// wantsEvents says whether a client's Accept header names server-sent events. A client that accepts anything gets JSON, as generated clients expect.
func wantsEvents(accept []string) bool {
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		kind, weight, _ := strings.Cut(strings.ToLower(part), ";")
		if strings.TrimSpace(kind) == "text/event-stream" && !refused().MatchString(weight) {
			return true
		}
	}
	return false
}

// refused is the weight of a type that a client does not accept (RFC 9110, 12.4.2).
var refused = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`q=0(\.0*)?\s*(;|$)`) })

// writeJSON answers with a value as JSON.
func writeJSON(w http.ResponseWriter, status int, thing any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(thing) // an error means that the client has gone
}

// maxWhole bounds the events of one JSON answer.
const maxWhole = 32 << 20

// collect reads a stream for one JSON answer, of events of most bytes. cut says that there were more events than an answer may have.
func collect(events iter.Seq2[sse.Event, error], most int) (bodies []json.RawMessage, cut bool, err error) {
	size := 0
	bodies = []json.RawMessage{}
	for m, err := range events {
		if err != nil {
			return bodies, cut, err
		}
		if size += len(m.Data); size > most && m.Name != "done" {
			cut = true
			continue
		}
		bodies = append(bodies, json.RawMessage(m.Data))
	}
	return bodies, cut, nil
}
