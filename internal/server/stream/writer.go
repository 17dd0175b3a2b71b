package stream

import (
	"context"
	"slices"
	"sync"
)

// The bounds of a stream that is open, in bytes of its events.
const (
	tailSize    = 1 << 20 // kept in memory for followers, besides what is not stored yet
	unsavedSize = 8 << 20 // not stored yet; what emits more waits
	eventCost   = 128     // of an event besides its body
	smallEvent  = 4 << 10 // see Writer.full
	batchSize   = PageSize
	commitSize  = 4 << 20 // of one transaction
	batchEvents = 256
)

// bounds are those that tests make small.
type bounds struct{ tail, unsaved, batch int }

var defaultBounds = bounds{tail: tailSize, unsaved: unsavedSize, batch: batchSize}

// Writer writes a stream. One goroutine appends and ends it; any number follow. No lock is taken while mu is held.
type Writer struct {
	s      *Streams
	stream string
	// writing is held while events of this stream are written to the store: by the committer, which never waits for it, or by Finish.
	writing chan struct{}

	mu      sync.Mutex
	tail    []Event       // the newest events: all that are not stored, and of the others as many as the bound allows
	size    int           // cost of tail
	unsaved int           // cost of what is not stored
	kept    int64         // cost of all events
	seq     int64         // of the last event
	saved   int64         // all events up to this number are stored
	missing *Event        // the gap that comes before the next event; nil: nothing was left out
	over    bool          // nothing is appended any more
	whole   bool          // the stream's end is stored
	wake    chan struct{} // closed at the next change; nil while nobody waits
}

// Open begins a stream of which the store has no event. The caller ends it with Finish or Close.
func (s *Streams) Open(stream string) *Writer {
	w := &Writer{s: s, stream: stream, writing: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writers[stream] = w
	return w
}

// Close ends the writer, and with it the stream in this process. Followers read on in the store. A closed writer can be closed again.
func (w *Writer) Close() {
	w.s.mu.Lock()
	if w.s.writers[w.stream] == w {
		delete(w.s.writers, w.stream)
	}
	w.s.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.signal()
}

// Append adds an event. While more events wait to be stored than there is room for, it waits until ctx ends, which is when what emits events has to end. An event
// that finds no room by then is left out, as is one that exceeds Options.Limit; a gap has its place.
func (w *Writer) Append(ctx context.Context, from Origin, body []byte) {
	for {
		room := w.add(from, body)
		if room == nil {
			return
		}
		select {
		case <-room:
		case <-ctx.Done():
			w.leaveOut(from)
			return
		case <-w.s.life.Done():
			w.leaveOut(from)
			return
		}
	}
}

// Offer is Append that does not wait: an event that finds no room is left out.
func (w *Writer) Offer(from Origin, body []byte) {
	if w.add(from, body) != nil {
		w.leaveOut(from)
	}
}

// add places an event, or leaves it out where the stream is full. Where the event has no room until others are stored, it does neither, and retry is closed at
// the next change.
func (w *Writer) add(from Origin, body []byte) (retry <-chan struct{}) {
	w.mu.Lock()
	switch {
	case w.full(len(body)), w.over && w.crowded():
		w.missing = w.gap(from)
		w.mu.Unlock()
		return nil
	case w.crowded():
		defer w.mu.Unlock()
		return w.changed()
	}
	w.placeGap()
	w.place(Event{Origin: from, Body: body})
	unsaved := w.unsaved
	w.signal()
	w.mu.Unlock()
	w.s.commit.note(w, unsaved > w.s.bounds.batch)
	return nil
}

// leaveOut notes that an event found no room.
func (w *Writer) leaveOut(from Origin) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missing = w.gap(from)
}

func (w *Writer) gap(from Origin) *Event {
	gap := Gap(from)
	return &gap
}

// full says whether the stream has as many bytes as are kept of one. Small events, such as the ends of steps, have as much again. The caller holds mu.
func (w *Writer) full(size int) bool {
	limit := w.s.o.Limit
	return limit > 0 && (w.kept > 2*limit || w.kept > limit && size > smallEvent)
}

// crowded says whether as many bytes as there is room for wait to be stored. The caller holds mu.
func (w *Writer) crowded() bool { return w.unsaved > w.s.bounds.unsaved }

// place gives an event the next number and adds it to the tail. The caller holds mu.
func (w *Writer) place(e Event) {
	w.seq++
	e.Stream, e.Seq, e.At = w.stream, w.seq, w.s.o.Now()
	w.tail = append(w.tail, e)
	w.size += e.cost()
	w.unsaved += e.cost()
	w.kept += int64(e.cost())
}

// placeGap adds the gap for what was left out. The caller holds mu.
func (w *Writer) placeGap() {
	if w.missing != nil {
		w.place(*w.missing)
		w.missing = nil
	}
}

// Finish ends the stream with one more event. write stores that event and all that are not stored yet: last, which is never empty. The event is seen by followers when
// write has returned. After an error nothing has changed, and Finish may be called again.
func (w *Writer) Finish(ctx context.Context, from Origin, body []byte, write func(ctx context.Context, last []Event) error) error {
	select {
	case w.writing <- struct{}{}:
		defer func() { <-w.writing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	last := w.ending(from, body)
	if err := write(ctx, last); err != nil {
		return err
	}
	end := last[len(last)-1]
	w.mu.Lock()
	w.whole = true
	w.tail = append(w.tail, end)
	w.seq, w.size, w.unsaved = end.Seq, w.size+end.cost(), w.unsaved+end.cost()
	w.mu.Unlock()
	w.stored(end.Seq)
	w.Close()
	return nil
}

// ending returns the events that are not stored, and after them the one that is to end the stream.
func (w *Writer) ending(from Origin, body []byte) []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.placeGap()
	last := slices.Clone(w.tail[w.at(w.saved):])
	return append(last, Event{Stream: w.stream, Seq: w.seq + 1, At: w.s.o.Now(), Origin: from, Body: body})
}

// Shortened returns what is left of a stream's last events where the store refused one of them: the end, after a gap.
func Shortened(last []Event) []Event {
	if len(last) < 2 {
		return last
	}
	short := slices.Clone(last[len(last)-2:])
	short[0].Body = gapBody
	return short
}

// signal wakes those that wait for a change. The caller holds mu.
func (w *Writer) signal() {
	if w.wake != nil {
		close(w.wake)
		w.wake = nil
	}
}

// changed is closed at the next change. The caller holds mu.
func (w *Writer) changed() <-chan struct{} {
	if w.wake == nil {
		w.wake = make(chan struct{})
	}
	return w.wake
}

// waiting returns events that are not stored yet, of about limit bytes.
func (w *Writer) waiting(limit int) []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Event
	for _, e := range w.tail[w.at(w.saved):] {
		if limit <= 0 {
			break
		}
		limit -= e.cost()
		out = append(out, e)
	}
	return out
}

// at is the index in tail of the first event after seq. The caller holds mu.
func (w *Writer) at(seq int64) int {
	if len(w.tail) == 0 {
		return 0
	}
	return int(min(max(seq-w.tail[0].Seq+1, 0), int64(len(w.tail))))
}

// stored notes that all events up to seq are stored, and drops from memory what exceeds the bound.
func (w *Writer) stored(seq int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.tail[w.at(w.saved):w.at(seq)] {
		w.unsaved -= e.cost()
	}
	w.saved = max(w.saved, seq)
	cut := 0
	for cut < len(w.tail) && w.size > w.s.bounds.tail && w.tail[cut].Seq <= w.saved {
		w.size -= w.tail[cut].cost()
		w.tail[cut] = Event{} // the array stays in use
		cut++
	}
	w.tail = w.tail[cut:]
	w.signal()
}

// view is what a follower sees of a stream that is open.
type view struct {
	events []Event
	behind bool            // the next events are not in memory any more; those up to saved are in the store
	saved  int64           // valid when behind is set
	over   bool            // no further events come
	whole  bool            // where over: the stream's end is among its events
	wake   <-chan struct{} // where there are no events and it is not over: closed at the next change
}

// read returns some of the events after the number after.
func (w *Writer) read(after int64) view {
	w.mu.Lock()
	defer w.mu.Unlock()
	if after < w.seq && (len(w.tail) == 0 || w.tail[0].Seq > after+1) {
		return view{behind: true, saved: w.saved}
	}
	v := view{over: w.over, whole: w.whole}
	size := 0
	for _, e := range w.tail[w.at(after):] {
		if size >= w.s.bounds.batch || len(v.events) == batchEvents {
			break
		}
		size += e.cost()
		v.events = append(v.events, e)
	}
	if len(v.events) == 0 && !v.over {
		v.wake = w.changed()
	}
	return v
}
