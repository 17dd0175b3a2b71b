// Package stream keeps streams of numbered events. A stream is what one piece of work emits from its beginning to its end, in order: an execution or a turn today.
// The package knows a stream by its name, and an event by its number, its origin and its bytes; it knows nothing of what emits events or of what is in them.
//
//   - A Writer writes a stream in this process. One goroutine appends; each event gets the next number, is seen by followers at once, and is stored a
//     moment later, in one transaction with events of other streams. The event that ends the stream is stored first and seen then.
//   - A follower pulls events: from the writer's memory where it is close behind, from the store where it is not. A follower that reads slowly slows
//     nobody and costs no memory. A stream that another process writes is read from the store, which is asked for more now and then.
//   - Where events are missing, a gap has their place: the stream has as many bytes as are kept of one, more events waited to be stored than there was room for, or the
//     store refused them, or the process died before it had stored them.
//
// The memory of a writer is bounded: 1 MiB of events for followers and 8 MiB that are not stored yet, besides one event.
package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"cove/internal/core/problem"
)

// Event is an event of a stream as it is stored.
type Event struct {
	Stream string
	Seq    int64 // from 1, and growing; the numbers that are left out belong to a gap
	At     time.Time
	Origin
	Body []byte // one JSON value
}

// Origin says where in its stream's work an event comes from. It is stored with the event; a Source selects events by their Part.
type Origin struct {
	Part string // such as an execution of a turn; "" is the work itself
	Step int
}

// gapBody is stored in the place of events that are missing.
var gapBody = []byte(`{"type":"gap"}`)

// Gap is an event that stands for missing ones.
func Gap(from Origin) Event { return Event{Origin: from, Body: gapBody} }

// IsGap says whether the event stands for missing ones.
func (e Event) IsGap() bool { return bytes.Equal(e.Body, gapBody) }

// cost is what an event counts for in bounds, in bytes.
func (e Event) cost() int { return len(e.Body) + eventCost }

// Store keeps events. What returned without an error is durable. When the store cannot be reached the error is a problem of kind Unavailable.
type Store interface {
	// AddEvents writes events of any streams in one transaction. An event that is there already stays as it is.
	AddEvents(ctx context.Context, events []Event) error
	// Events returns at most limit events of a stream with Seq above after, in their order. With a part, only that part's. Of several events, it returns no more than those up to the one whose
	// body reaches size bytes together with the bodies before it.
	Events(ctx context.Context, stream, part string, after int64, limit, size int) ([]Event, error)
}

// Refused says of an error of a store that the store can be reached and will not take the record: another record about the same may be taken.
func Refused(err error) bool {
	if err == nil {
		return false
	}
	p, known := errors.AsType[*problem.Error](err)
	if !known {
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	return p.Kind != problem.Unavailable && p.Kind != problem.NotFound && p.Kind != problem.Canceled && p.Kind != problem.Timeout
}

// Options of Streams. Now and Log are required.
type Options struct {
	// Limit is how many bytes of events are kept of one stream, about; 0 is no limit. Events of at most 4 KiB may take as much again.
	Limit int64
	Now   func() time.Time // as exact as the store keeps times
	Log   *slog.Logger
	// Last says whether an event is the last one of its stream. It is asked about events that another process has written.
	Last func(Event) bool
	// Fenced returns why nothing that this process writes counts any more, or nil. Followers of a stream that was closed without its end get that error.
	// A nil Fenced never has one.
	Fenced func() error
	// Observe returns an observer for a follower that begins to read the stream; nil where nobody observes it.
	Observe func(ctx context.Context, stream string) Observer
	// Hold is asked for room for what a follower holds at once, in bytes, where one event of it is large; the follower ends with its error. A nil Hold has room.
	Hold func(ctx context.Context, bytes int64) error
}

// Observer is told how one follower fares. It is called by the follower's goroutine.
type Observer interface {
	// Delivered is called when the follower has taken an event that was appended after the follower had begun, with the time since then.
	Delivered(after time.Duration)
	// Gap is called when the follower has taken a gap.
	Gap()
}

// Streams are the streams of one store, as one process writes and follows them. It is safe for concurrent use.
type Streams struct {
	o      Options
	life   context.Context
	store  Store
	bounds bounds
	commit *committer

	mu      sync.Mutex
	writers map[string]*Writer // those that are open
	pages   []*page            // of the store, the newest last
}

// New returns the streams of a store. When life ends, nothing waits any more: appending does not wait for room, followers that would wait get the cause of life's end, and
// events that are not stored are written one last time; Wait returns when that is done.
func New(life context.Context, store Store, o Options) *Streams {
	s := &Streams{o: o, life: life, store: store, bounds: defaultBounds, writers: map[string]*Writer{}}
	s.commit = &committer{life: life, store: store, log: o.Log, size: commitSize, full: make(chan struct{}, 1), dirty: map[*Writer]bool{}}
	return s
}

// Wait returns when no event is being written to the store. What is appended afterwards needs another Wait.
func (s *Streams) Wait() { s.commit.wait() }

// Held returns how many bytes of an open stream's events are in memory, and up to which number its events are stored; zeros where the stream is not open.
func (s *Streams) Held(stream string) (size int, stored int64) {
	w := s.open(stream)
	if w == nil {
		return 0, 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.size, w.saved
}

// open returns the writer of a stream that is open in this process, or nil.
func (s *Streams) open(stream string) *Writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writers[stream]
}

// Follower is the events of a stream from one number on. It ends after the stream's last event, or with an error. With json.RawMessage events are as
// they are stored: many may follow one stream, and none of them costs what parsing does. See Read.
type Follower[E any] iter.Seq2[Numbered[E], error]

// Numbered is an event with its place in its stream. Seq begins with 1 and always grows; where it leaves out numbers a Gap says so.
type Numbered[E any] struct {
	Seq   int64
	At    time.Time // when the host got it
	Event E
	Gap   bool // Event is the zero value: what was emitted between the last Seq and this one is missing
}

// Read parses the events of a follower.
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
