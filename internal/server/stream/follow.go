package stream

import (
	"context"
	"encoding/json"
	"time"

	"cove/internal/core/problem"
)

// elsewhereEvery is how often a follower looks for new events of a stream that another process writes.
const elsewhereEvery = 500 * time.Millisecond

// Source says which events to read.
type Source struct {
	Stream string
	Part   string // only events of this part; "": all of the stream
	// Ended says whether a stream has ended that another process may be writing; nil where none is. It is not asked about streams that are open in this process.
	Ended func(ctx context.Context) (bool, error)
}

// Follow returns the events with Seq above after: from the store as far as they are old, then as they happen, until the stream ends. It holds nothing
// while its consumer does something else. Problems: "canceled" when ctx ends, the cause of the end of Streams' life, and those of the store.
func (s *Streams) Follow(ctx context.Context, from Source, after int64) Follower[json.RawMessage] {
	return func(yield func(Numbered[json.RawMessage], error) bool) {
		seen, began := s.observer(ctx, from.Stream), s.o.Now()
		s.each(ctx, from, after, s.next, yield, func(e Event) {
			switch {
			case seen == nil:
			case e.IsGap():
				seen.Gap()
			case e.At.After(began):
				seen.Delivered(s.o.Now().Sub(e.At))
			}
		})
	}
}

func (s *Streams) observer(ctx context.Context, stream string) Observer {
	if s.o.Observe == nil {
		return nil
	}
	return s.o.Observe(ctx, stream)
}

// Recorded returns the events that are stored, and does not wait for more.
func (s *Streams) Recorded(ctx context.Context, from Source) Follower[json.RawMessage] {
	from.Ended = nil
	return func(yield func(Numbered[json.RawMessage], error) bool) {
		s.each(ctx, from, 0, s.stored, yield, func(Event) {})
	}
}

// reader returns some of the events after the number after as soon as there are any, and after which number to go on. over says that no others come.
type reader func(ctx context.Context, from Source, after int64) (events []Event, next int64, over bool, err error)

// each yields what read returns until that is over. taken is called for each event that was taken.
func (s *Streams) each(ctx context.Context, from Source, after int64, read reader, yield func(Numbered[json.RawMessage], error) bool, taken func(Event)) {
	for over := false; !over; {
		var events []Event
		var err error
		events, after, over, err = read(ctx, from, after)
		if err != nil {
			yield(Numbered[json.RawMessage]{}, err)
			return
		}
		for _, e := range events {
			n := Numbered[json.RawMessage]{Seq: e.Seq, At: e.At, Gap: e.IsGap()}
			if !n.Gap {
				n.Event = e.Body
			}
			if !yield(n, nil) {
				return
			}
			taken(e)
		}
	}
}

// next is the reader that waits for events. A follower that waits at a writer gets the stream's end from it, too, and need not ask the store.
func (s *Streams) next(ctx context.Context, from Source, after int64) (events []Event, next int64, over bool, err error) {
	w := s.open(from.Stream)
	if w == nil {
		return s.stored(ctx, from, after)
	}
	for len(events) == 0 {
		if ctx.Err() != nil {
			return nil, after, true, canceled(ctx)
		}
		v := w.read(after)
		switch {
		case v.behind:
			p, err := s.page(ctx, from, after, v.saved)
			if err != nil {
				return nil, after, true, err
			}
			events, after = p.events, p.next
		case len(v.events) > 0:
			after = lastOf(v.events, after)
			events = from.among(v.events)
		case v.over:
			return nil, after, true, s.unfinished(v)
		default:
			select {
			case <-v.wake:
			case <-ctx.Done():
			case <-s.life.Done():
				return nil, after, true, context.Cause(s.life)
			}
		}
	}
	return events, after, false, nil
}

// unfinished is what a follower gets after the last event of a writer that is closed: where this process is fenced, another one writes the stream's end.
func (s *Streams) unfinished(v view) error {
	if v.whole || s.o.Fenced == nil {
		return nil
	}
	return s.o.Fenced()
}

// stored is the reader of a stream that is not open in this process. While another process writes it, stored looks for more events now and then.
func (s *Streams) stored(ctx context.Context, from Source, after int64) (events []Event, next int64, over bool, err error) {
	for ended := from.Ended == nil; ; {
		if ctx.Err() != nil {
			return nil, after, true, canceled(ctx)
		}
		p, err := s.page(ctx, from, after, 0)
		if err != nil {
			return nil, after, false, err
		}
		if len(p.events) > 0 {
			return p.events, p.next, from.Ended != nil && s.o.Last(p.events[len(p.events)-1]), nil
		}
		if ended {
			return nil, after, true, nil
		}
		if ended, err = from.Ended(ctx); err != nil {
			return nil, after, true, err
		} else if ended {
			continue // with the events that came before the end
		}
		select {
		case <-time.After(elsewhereEvery):
		case <-ctx.Done():
		case <-s.life.Done():
			return nil, after, true, context.Cause(s.life)
		}
	}
}

func canceled(ctx context.Context) error {
	return problem.New(problem.GivenUp, "nobody follows any more").WithCause(context.Cause(ctx))
}

// lastOf is the number of the last one of events, and after where there are none.
func lastOf(events []Event, after int64) int64 {
	if len(events) == 0 {
		return after
	}
	return max(after, events[len(events)-1].Seq)
}

// among returns those of events that a source has.
func (from Source) among(events []Event) []Event {
	if from.Part == "" {
		return events
	}
	var out []Event
	for _, e := range events {
		if e.Part == from.Part {
			out = append(out, e)
		}
	}
	return out
}
