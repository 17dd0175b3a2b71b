package stream

import (
	"context"
	"slices"
	"time"
)

// Pages that were read a moment ago are shared by the followers that are at the same place, so that many who follow one stream, and perhaps do not read on, have one copy of it.
const (
	// PageSize is about how many bytes of events a follower takes at once, and holds while it waits for its client.
	PageSize = 128 << 10

	mostPages = 32
	mostKept  = 32 << 20 // bytes of pages, which one large event may exceed
	pageLife  = 5 * time.Second
)

// page is what the store has of a source after one number: batchEvents events or about bounds.batch bytes at most. Its events are not changed.
type page struct {
	stream, part string
	after        int64

	read   chan struct{} // closed when the fields below are there
	events []Event
	size   int   // bytes of them; the mutex of Streams guards it, too
	next   int64 // the number after which to go on
	err    error
}

// page returns what the store has of a source after a number, where there is room to hold it. All events up to saved are known to be stored.
func (s *Streams) page(ctx context.Context, from Source, after, saved int64) (*page, error) {
	p, err := s.sharedPage(ctx, from, after, saved)
	if err == nil && s.o.Hold != nil && p.size > s.bounds.batch {
		err = s.o.Hold(ctx, int64(p.size))
	}
	return p, err
}

func (s *Streams) sharedPage(ctx context.Context, from Source, after, saved int64) (*page, error) {
	p, mine := s.pageAt(from, after)
	if mine {
		defer close(p.read)
		if err := s.load(ctx, p, saved); err != nil || len(p.events) == 0 {
			s.forgetPage(p)
			return p, err
		}
		s.boundPages()
		time.AfterFunc(pageLife, func() { s.forgetPage(p) })
		return p, nil
	}
	select {
	case <-p.read:
	case <-ctx.Done():
		return nil, canceled(ctx)
	}
	if p.err == nil && len(p.events) > 0 {
		return p, nil
	}
	own := newPage(from, after) // the other follower may have been given up, or have looked before there was anything
	return own, s.load(ctx, own, saved)
}

// pageAt returns the page of a source after a number. mine says that there was none, and that the caller has to load it.
func (s *Streams) pageAt(from Source, after int64) (p *page, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pages {
		if p.stream == from.Stream && p.part == from.Part && p.after == after {
			return p, false
		}
	}
	p = newPage(from, after)
	if s.pages = append(s.pages, p); len(s.pages) > mostPages {
		s.pages = slices.Delete(s.pages, 0, 1)
	}
	return p, true
}

// boundPages forgets the oldest pages where all are too large together.
func (s *Streams) boundPages() {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for _, p := range s.pages {
		total += p.size
	}
	for len(s.pages) > 1 && total > mostKept {
		total -= s.pages[0].size
		s.pages = slices.Delete(s.pages, 0, 1)
	}
}

func newPage(from Source, after int64) *page {
	return &page{stream: from.Stream, part: from.Part, after: after, read: make(chan struct{})}
}

func (s *Streams) forgetPage(p *page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages = slices.DeleteFunc(s.pages, func(other *page) bool { return other == p })
}

// load reads a page from the store.
func (s *Streams) load(ctx context.Context, p *page, saved int64) error {
	p.events, p.err = s.store.Events(ctx, p.stream, p.part, p.after, batchEvents, s.bounds.batch)
	p.next = lastOf(p.events, p.after)
	size := 0
	for _, e := range p.events {
		size += len(e.Body)
	}
	s.mu.Lock()
	p.size = size
	s.mu.Unlock()
	if len(p.events) < batchEvents && size < s.bounds.batch {
		p.next = max(p.next, saved) // events of other parts are passed over
	}
	return p.err
}
