package hub

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"cove/internal/ident"
	"cove/internal/owner"
	"cove/internal/problem"
	"cove/internal/telemetry"
	"cove/internal/transcript"
)

// elsewhereEvery is how often a follower looks for new events of a stream that another process writes.
const elsewhereEvery = 500 * time.Millisecond

// follow returns the events of a stream behind after: from the store as far as they are old, then as they happen, until the stream ends. With an
// execution only those that it emitted. It holds nothing while its consumer does something else. ended says of a stream that another process may be
// writing whether it has ended; nil: none is.
func (h *Hub) follow(ctx context.Context, stream, execution string, after int64, ended func(context.Context) (bool, error)) Follower[json.RawMessage] {
	return func(yield func(Numbered[json.RawMessage], error) bool) {
		after := after
		seen := delivery{t: telemetry.From(ctx), began: h.now(), kind: spanExecution}
		if ident.Valid(ident.Turn, stream) {
			seen.kind = spanTurn
		}
		for {
			events, next, over, err := h.take(ctx, stream, execution, after, ended)
			if err != nil {
				yield(Numbered[json.RawMessage]{}, err)
				return
			}
			for _, e := range events {
				n := Numbered[json.RawMessage]{Seq: e.Seq, At: e.At, Gap: isGap(e)}
				if !n.Gap {
					n.Event = e.Body
				}
				if !yield(n, nil) {
					return
				}
				seen.event(h, e, n.Gap)
			}
			if over {
				return
			}
			after = next
		}
	}
}

// Read parses what a follower yields; parse is transcript.ParseEvent or transcript.ParseTurnEvent. A gap has the zero value of E as its event.
func Read[E any](f Follower[json.RawMessage], parse func(body []byte) (E, error)) Follower[E] {
	return func(yield func(Numbered[E], error) bool) {
		for n, err := range f {
			out := Numbered[E]{Seq: n.Seq, At: n.At, Gap: n.Gap}
			if err == nil && !n.Gap {
				out.Event, err = parse(n.Event)
			}
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}

// delivery measures how late events reach a follower that was there when they came.
type delivery struct {
	t     *telemetry.Telemetry
	began time.Time
	kind  string
}

func (d delivery) event(h *Hub, e StoredEvent, gap bool) {
	switch {
	case d.t == nil:
	case gap:
		d.t.Count(telemetry.Gaps, 1)
	case e.At.After(d.began):
		d.t.Observe(telemetry.Delivery, h.now().Sub(e.At), d.kind)
	}
}

// take returns some of the events behind after, and after which to go on, as soon as there are any or the stream is over.
func (h *Hub) take(ctx context.Context, stream, execution string, after int64, ended func(context.Context) (bool, error)) (
	events []StoredEvent, next int64, over bool, err error,
) {
	h.mu.Lock()
	l := h.logs[stream] // a follower that waits in it gets the end from it, too, and need not ask the store
	h.mu.Unlock()
	for {
		if ctx.Err() != nil {
			return nil, after, true, problem.New(problem.GivenUp, "nobody follows any more").WithCause(context.Cause(ctx))
		}
		if l == nil {
			events, over, err = h.takeStored(ctx, stream, execution, after, ended)
			return events, lastOf(events, after), over, err
		}
		found, behind, saved, last, wake := l.read(after)
		switch {
		case behind:
			if events, err = h.o.Store.Events(ctx, stream, execution, after, batchEvents); err != nil {
				return nil, after, true, err
			}
			if after = lastOf(events, after); len(events) < batchEvents {
				after = max(after, saved) // what is not the execution's is passed over
			}
		case len(found) > 0:
			after = lastOf(found, after)
			events = emittedBy(found, execution)
		case last && h.fenced() && !l.isWhole():
			return nil, after, true, owner.ErrLost() // its end is another process's to tell
		case last:
			return nil, after, true, nil
		default:
			select {
			case <-wake:
			case <-ctx.Done():
			case <-h.ended.Done():
				return nil, after, true, drained()
			}
		}
		if len(events) > 0 {
			return events, after, false, nil
		}
	}
}

// takeStored is take for a stream that is not in this process's memory. While another process writes it, it looks for more now and then.
func (h *Hub) takeStored(ctx context.Context, stream, execution string, after int64, ended func(context.Context) (bool, error)) (events []StoredEvent, over bool, err error) {
	for over = ended == nil; ; {
		events, err = h.o.Store.Events(ctx, stream, execution, after, batchEvents)
		if err != nil || len(events) > 0 {
			return events, ended != nil && err == nil && isEnd(events[len(events)-1]), err
		}
		if over {
			return nil, true, nil
		}
		if over, err = ended(ctx); over && err == nil {
			continue // what came before its end
		} else if err != nil {
			return nil, true, err
		}
		select {
		case <-time.After(elsewhereEvery):
		case <-ctx.Done():
			return nil, true, problem.New(problem.GivenUp, "nobody follows any more").WithCause(context.Cause(ctx))
		case <-h.ended.Done():
			return nil, true, drained()
		}
	}
}

// isEnd says whether an event is a stream's last one.
func isEnd(e StoredEvent) bool {
	return slices.Contains([]string{"done", "answer", "failure"}, transcript.TypeOf(e.Body))
}

// executionEnds returns what follow needs of an execution's record; nil where nothing more comes.
func (h *Hub) executionEnds(e Execution) func(context.Context) (bool, error) {
	switch {
	case e.Owner == h.me():
		return nil
	case e.Turn != "":
		return h.turnEnds(e.Project, e.Turn)
	case e.State.Final():
		return nil
	}
	return func(ctx context.Context) (bool, error) {
		now, err := h.o.Store.Execution(ctx, e.Project, e.ID)
		return gone(now.State.Final(), err)
	}
}

func (h *Hub) turnEnds(project, turn string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) { return gone(h.o.Store.TurnEnded(ctx, project, turn)) }
}

// gone has a record that was deleted count as one that has ended.
func gone(ended bool, err error) (bool, error) {
	if problem.Is(err, problem.NotFound) {
		return true, nil
	}
	return ended, err
}

func lastOf(events []StoredEvent, after int64) int64 {
	if len(events) == 0 {
		return after
	}
	return max(after, events[len(events)-1].Seq)
}

func emittedBy(events []StoredEvent, execution string) []StoredEvent {
	if execution == "" {
		return events
	}
	var out []StoredEvent
	for _, e := range events {
		if e.Execution == execution {
			out = append(out, e)
		}
	}
	return out
}

// lastSeq is the number of the last stored event of a stream whose server has died: there are none missing below it.
func (h *Hub) lastSeq(ctx context.Context, stream string) (int64, error) {
	more := func(after int64) (bool, error) {
		events, err := h.o.Store.Events(ctx, stream, "", after, 1)
		return len(events) > 0, err
	}
	low, high := int64(0), int64(1) // there is one behind low-1, and none behind high
	for {
		found, err := more(high - 1)
		if err != nil {
			return 0, err
		}
		if !found {
			break
		}
		low, high = high, 2*high
	}
	for high-1 > low {
		mid := (low + high) / 2
		found, err := more(mid - 1)
		if err != nil {
			return 0, err
		}
		if found {
			low = mid
		} else {
			high = mid
		}
	}
	return low, nil
}

// lostEnd are the last events of a stream that a killed server left: a gap, and the end.
func (h *Hub) lostEnd(ctx context.Context, stream, execution string, step int, body []byte) ([]StoredEvent, error) {
	last, err := h.lastSeq(ctx, stream)
	if err != nil {
		return nil, err
	}
	at := h.now()
	return []StoredEvent{
		{Stream: stream, Seq: last + crashGap, At: at, Execution: execution, Step: step, Body: gapBody},
		{Stream: stream, Seq: last + crashGap + 1, At: at, Execution: execution, Step: step, Body: body},
	}, nil
}
