package hub

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// The bounds of a stream that runs, in bytes of its events.
const (
	tailSize     = 1 << 20 // kept in memory for followers, besides what is not stored yet
	unsavedSize  = 8 << 20 // not stored yet; code that emits more waits, as long as it may
	eventCost    = 128     // of an event besides its body
	smallEvent   = 4 << 10 // see eventLog.full
	batchSize    = 256 << 10
	batchEvents  = 256
	commitDelay  = 25 * time.Millisecond
	commitSize   = 4 << 20 // of one transaction
	commitBudget = time.Minute
	salvageTries = 32 // writes in which to find the events of a stream that the store refuses
	// crashGap is above what a server can have shown and not stored when it was killed.
	crashGap = 1 << 20
)

// gapBody is what is stored where events are missing.
var gapBody = []byte(`{"type":"gap"}`)

func isGap(e StoredEvent) bool { return bytes.Equal(e.Body, gapBody) }

// eventLog is the numbered stream of one execution or turn that runs. One goroutine appends; followers read. What is appended is seen at once and
// stored soon after; what ends the stream is stored first. Its lock is held for moments and never while another one is taken.
type eventLog struct {
	stream string
	now    func() time.Time
	commit *committer
	gone   <-chan struct{} // closed when the hub has ended
	limit  int64           // bytes of its events that are kept, see Limits.Stream
	// writing is held while events of this stream are written to the store.
	writing chan struct{}

	mu      sync.Mutex
	tail    []StoredEvent // the newest events: all that are not stored, and of the others what fits into tailSize
	size    int           // cost of tail
	unsaved int           // cost of what is not stored
	kept    int64         // cost of all events
	seq     int64         // the last one's
	saved   int64         // up to here everything is stored
	missing *StoredEvent  // the gap that comes before the next event; nil: nothing was left out
	over    bool
	whole   bool          // its end is in it
	wake    chan struct{} // closed when something changes; nil while nobody waits
}

func cost(e StoredEvent) int { return len(e.Body) + eventCost }

// openLog begins the stream. Its caller ends it with finish or closeLog.
func (h *Hub) openLog(stream string) *eventLog {
	l := &eventLog{stream: stream, now: h.now, commit: h.commit, gone: h.ended.Done(), limit: h.o.Limits.Stream, writing: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logs[stream] = l
	return l
}

// closeLog has followers read the rest from the store.
func (h *Hub) closeLog(l *eventLog) {
	h.mu.Lock()
	if h.logs[l.stream] == l {
		delete(h.logs, l.stream)
	}
	h.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.stir()
}

// stir wakes who waits for a change. The caller holds mu.
func (l *eventLog) stir() {
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

// changed is closed at the next change. The caller holds mu.
func (l *eventLog) changed() <-chan struct{} {
	if l.wake == nil {
		l.wake = make(chan struct{})
	}
	return l.wake
}

// append adds an event. execution says which execution emitted it, step which step of a turn that is. While far more waits to be stored than the
// store takes, it waits until ctx ends, which is when the code that emits has to end: an event that comes behind that, and finds no room, is left
// out, and a gap stands for it.
func (l *eventLog) append(ctx context.Context, body []byte, execution string, step int) {
	l.mu.Lock()
	if l.full(len(body)) {
		l.mu.Unlock()
		l.addMissing(execution, step)
		return
	}
	for l.unsaved > unsavedSize && !l.over {
		wake := l.changed()
		l.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			l.addMissing(execution, step)
			return
		case <-l.gone:
			return
		}
		l.mu.Lock()
	}
	l.place(body, execution, step)
}

// offer is append for who does not wait: an event that finds no room is left out.
func (l *eventLog) offer(body []byte, execution string, step int) {
	l.mu.Lock()
	if l.unsaved > unsavedSize || l.full(len(body)) {
		l.mu.Unlock()
		l.addMissing(execution, step)
		return
	}
	l.place(body, execution, step)
}

// full says that the stream has as many bytes as are kept of one. Small events, such as the ends of steps, have as much again. The caller holds mu.
func (l *eventLog) full(size int) bool {
	return l.limit > 0 && (l.kept > 2*l.limit || l.kept > l.limit && size > smallEvent)
}

// place adds an event and lets mu go, which the caller holds.
func (l *eventLog) place(body []byte, execution string, step int) {
	l.addGap()
	l.add(StoredEvent{Execution: execution, Step: step, Body: body})
	unsaved := l.unsaved
	l.stir()
	l.mu.Unlock()
	l.commit.note(l, unsaved > batchSize)
}

// add gives an event the next number and its place. The caller holds mu.
func (l *eventLog) add(e StoredEvent) {
	l.seq++
	e.Stream, e.Seq, e.At = l.stream, l.seq, l.now()
	l.tail = append(l.tail, e)
	l.size += cost(e)
	l.unsaved += cost(e)
	l.kept += int64(cost(e))
}

// addMissing notes that an event found no room.
func (l *eventLog) addMissing(execution string, step int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missing = &StoredEvent{Execution: execution, Step: step, Body: gapBody}
}

// addGap adds the gap for what was left out. The caller holds mu.
func (l *eventLog) addGap() {
	if l.missing != nil {
		l.add(*l.missing)
		l.missing = nil
	}
}

// last is the number of the last event.
func (l *eventLog) last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// waiting returns events that are not stored yet, of about limit bytes.
func (l *eventLog) waiting(limit int) []StoredEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []StoredEvent
	for _, e := range l.tail[l.at(l.saved):] {
		if limit <= 0 {
			break
		}
		limit -= cost(e)
		out = append(out, e)
	}
	return out
}

// at is the place in tail of the first event behind seq. The caller holds mu.
func (l *eventLog) at(seq int64) int {
	if len(l.tail) == 0 {
		return 0
	}
	return int(min(max(seq-l.tail[0].Seq+1, 0), int64(len(l.tail))))
}

// stored notes that everything up to seq is stored, and forgets what need not be remembered.
func (l *eventLog) stored(seq int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.tail[l.at(l.saved):l.at(seq)] {
		l.unsaved -= cost(e)
	}
	l.saved = max(l.saved, seq)
	cut := 0
	for cut < len(l.tail) && l.size > tailSize && l.tail[cut].Seq <= l.saved {
		l.size -= cost(l.tail[cut])
		l.tail[cut] = StoredEvent{} // the array lives on
		cut++
	}
	l.tail = l.tail[cut:]
	l.stir()
}

// finish ends the stream with one more event, after write has stored that and all events that are not stored yet (last). It is shown when it is
// stored. After an error nothing has changed, and finish may be called again. A nil body ends the stream without another event.
func (h *Hub) finish(ctx context.Context, l *eventLog, body []byte, execution string, step int, write func(ctx context.Context, last []StoredEvent) error) error {
	select {
	case l.writing <- struct{}{}:
		defer func() { <-l.writing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	l.mu.Lock()
	l.addGap()
	l.mu.Unlock()
	last := l.waiting(1 << 62)
	if body != nil {
		last = append(last, StoredEvent{Stream: l.stream, Seq: l.last() + 1, Execution: execution, Step: step, At: h.now(), Body: body})
	}
	if err := write(ctx, last); err != nil {
		return err
	}
	l.mu.Lock()
	l.whole = true
	if body != nil {
		end := last[len(last)-1]
		l.tail = append(l.tail, end)
		l.seq, l.size, l.unsaved = end.Seq, l.size+cost(end), l.unsaved+cost(end)
	}
	l.mu.Unlock()
	l.stored(l.last())
	h.closeLog(l)
	return nil
}

// isWhole says whether the stream's end was stored.
func (l *eventLog) isWhole() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.whole
}

// read returns events behind after from the tail. behind says that they are not in the tail any more, and that those up to saved are in the
// store. When there are none, wake is closed as soon as there may be, and over says that there will not be.
func (l *eventLog) read(after int64) (events []StoredEvent, behind bool, saved int64, over bool, wake <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if after < l.seq && (len(l.tail) == 0 || l.tail[0].Seq > after+1) {
		return nil, true, l.saved, false, nil
	}
	size := 0
	for _, e := range l.tail[l.at(after):] {
		if size >= batchSize || len(events) == batchEvents {
			break
		}
		size += cost(e)
		events = append(events, e)
	}
	if len(events) > 0 || l.over {
		return events, false, l.saved, l.over, nil
	}
	return nil, false, l.saved, false, l.changed()
}
