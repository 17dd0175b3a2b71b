package turns

import (
	"context"
	"encoding/json"
	"sync"

	"cove/internal/server/hub/record"
	"cove/internal/server/stream"
)

// turnTable has the turns that run, and the hidden ones that ended a moment ago. Its zero value is ready. No other lock is taken under its own.
type turnTable struct {
	mu    sync.Mutex
	live  map[string]*liveTurn
	taken map[string]string // the conversations that have an unfinished turn, or one that is about to begin
	ends  map[string]int    // the conversations that are being deleted
}

// liveTurn is a turn in memory.
type liveTurn struct {
	id, project string
	stop        context.CancelCauseFunc
	ended       chan struct{} // closed when the turn's end is stored and its conversation free
	events      *stream.Writer
	work        record.Work // of the goroutine that runs the turn

	turn    record.Turn // guarded by turnTable.mu
	pending *pending    // guarded by turnTable.mu; nil: no code waits for the user's word
	asked   *pending    // guarded by turnTable.mu; the code that was last asked about
}

// reserve marks a conversation as having an unfinished turn. When it has one already, ok is false, and running is that turn, or nil when it is only about to begin.
func (t *turnTable) reserve(conversation, turn string) (running *liveTurn, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if other, busy := t.taken[conversation]; busy {
		return t.live[other], false
	}
	if t.taken == nil {
		t.taken, t.live = map[string]string{}, map[string]*liveTurn{}
	}
	t.taken[conversation] = turn
	return nil, true
}

// reserved says whether no turn of a conversation should begin by itself: it has one that has not ended, or is being deleted.
func (t *turnTable) reserved(conversation string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, busy := t.taken[conversation]
	return busy || t.ends[conversation] > 0
}

// ending marks a conversation as being deleted until done is called.
func (t *turnTable) ending(conversation string) (done func()) {
	add := func(n int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.ends == nil {
			t.ends = map[string]int{}
		}
		if t.ends[conversation] += n; t.ends[conversation] == 0 {
			delete(t.ends, conversation)
		}
	}
	add(1)
	return func() { add(-1) }
}

func (t *turnTable) free(conversation string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.taken, conversation)
}

func (t *turnTable) add(l *liveTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live[l.id] = l
}

func (t *turnTable) remove(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.live, id)
}

// running returns a turn of this process that has not ended, or nil.
func (t *turnTable) running(id string) *liveTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.live[id]; l != nil && !l.turn.State.Final() {
		return l
	}
	return nil
}

// count returns how many turns have not ended.
func (t *turnTable) count() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.live {
		if !l.turn.State.Final() {
			n++
		}
	}
	return n
}

// record returns the record of a turn in memory.
func (t *turnTable) record(id string) (record.Turn, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.live[id]; l != nil {
		return l.turn, true
	}
	return record.Turn{}, false
}

// over records the end of a turn and frees its conversation for the next one.
func (t *turnTable) over(l *liveTurn, turn record.Turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn.Foreign = l.turn.Foreign // it may have been set meanwhile
	l.turn = turn
	if t.taken[turn.Conversation] == l.id {
		delete(t.taken, turn.Conversation)
	}
}

// setForeign replaces the surface's record of a hidden turn, which exists in memory only.
func (t *turnTable) setForeign(project, id string, foreign json.RawMessage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.live[id]
	if l == nil || l.project != project || !l.turn.Hidden {
		return false
	}
	l.turn.Foreign = foreign
	return true
}
