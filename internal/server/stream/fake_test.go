package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/stream"
)

// memory is a store in memory that can be away, lose its answers, and refuse events with the word "poison".
type memory struct {
	mu     sync.Mutex
	events map[string][]stream.Event
	away   bool
	forget int // writes that are done, and whose answer is lost
	writes int
	takes  time.Duration // of a write
}

var errRefused = errors.New("a value is too large")

func unreachable() error {
	return problem.New(problem.DatabaseUnavailable, "the database does not answer")
}

func (m *memory) AddEvents(_ context.Context, events []stream.Event) error {
	time.Sleep(m.takes)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	if m.away {
		return unreachable()
	}
	if slices.ContainsFunc(events, func(e stream.Event) bool { return bytes.Contains(e.Body, []byte("poison")) }) {
		return errRefused
	}
	for _, e := range events {
		if m.events == nil {
			m.events = map[string][]stream.Event{}
		}
		at, there := slices.BinarySearchFunc(m.events[e.Stream], e.Seq, func(e stream.Event, seq int64) int { return int(e.Seq - seq) })
		if !there {
			m.events[e.Stream] = slices.Insert(m.events[e.Stream], at, e)
		}
	}
	if m.forget > 0 {
		m.forget--
		return unreachable()
	}
	return nil
}

func (m *memory) Events(_ context.Context, name, part string, after int64, limit, size int) ([]stream.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []stream.Event
	for _, e := range m.events[name] {
		if len(out) < limit && size > 0 && e.Seq > after && (part == "" || e.Part == part) {
			out = append(out, e)
			size -= len(e.Body)
		}
	}
	return out, nil
}

func (m *memory) set(away bool, forget int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away, m.forget = away, forget
}

// streamsOf returns streams with small bounds: 1 kB for followers, 4 kB that are not stored.
func streamsOf(t *testing.T, life context.Context, store stream.Store, o stream.Options) *stream.Streams {
	t.Helper()
	o.Now, o.Log = time.Now, slog.New(slog.DiscardHandler)
	o.Last = func(e stream.Event) bool { return string(e.Body) == `"end"` }
	s := stream.New(life, store, o)
	s.Small(1<<10, 4<<10, 512, 2<<10)
	return s
}

// finish ends a stream, however often that has to be tried.
func finish(ctx context.Context, l *stream.Writer, m *memory) error {
	for {
		err := l.Finish(ctx, stream.Origin{}, []byte(`"end"`), m.AddEvents)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case stream.Refused(err):
			return l.Finish(ctx, stream.Origin{}, []byte(`"end"`), func(ctx context.Context, last []stream.Event) error {
				return m.AddEvents(ctx, stream.Shortened(last))
			})
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// heard is what a follower got: bodies, and "gap".
type heard struct {
	mu     sync.Mutex
	bodies []string
	seqs   []int64
	err    error
	ended  bool // the iteration has ended
}

// hear follows until the stream ends, the follower's number of events is reached, or an error comes.
func (h *heard) hear(f stream.Follower[rawMessage], most int) {
	n := 0
	for e, err := range f {
		h.mu.Lock()
		if err != nil {
			h.err = err
			h.mu.Unlock()
			return
		}
		body := string(e.Event)
		if e.Gap {
			body = "gap"
		}
		h.bodies, h.seqs = append(h.bodies, body), append(h.seqs, e.Seq)
		h.mu.Unlock()
		if n++; n == most {
			return
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
}

func (h *heard) last() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.seqs) == 0 {
		return 0
	}
	return h.seqs[len(h.seqs)-1]
}

func body(n, size int) []byte {
	return fmt.Appendf(nil, `"%d %s"`, n, bytes.Repeat([]byte{'x'}, size))
}
