// Package changes reports to the followers of a project which of its records have changed. It changes when a page is to be notified of something else.
package changes

import (
	"context"
	"iter"
	"maps"
	"sync"
	"time"

	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// A Change says that a record of a project is not as it was. Who wants to know more reads the record.
type Change struct {
	Kind         ChangeKind
	ID           string
	Conversation string // of a turn
	Session      string // of an execution
	State        string // of a turn, a session or an execution; "approval" for a turn whose code waits for its user's word, "deleted" for what is gone
}

// ChangeKind says what changed.
type ChangeKind string

// The kinds of changes.
const (
	ChangedConversation ChangeKind = "conversation"
	ChangedTurn         ChangeKind = "turn"
	ChangedSession      ChangeKind = "session"
	ChangedExecution    ChangeKind = "execution" // one that is not a step of a turn
	ChangedMuch         ChangeKind = "all"       // more than is listed: read anew what is shown
)

// The states of a Change that no record has.
const (
	stateApproval = "approval"
	stateDeleted  = "deleted"
)

const (
	// mostChanges is how many changes wait for a follower; one that does not keep up gets ChangedMuch in their place.
	mostChanges = 256
	// lookElsewhere is how often a follower looks for changes of other servers on the database.
	lookElsewhere = 2 * time.Second
	// lookedAt is how many conversations and unfinished turns that look compares.
	lookedAt = 40
)

// Changes yields what changes in the caller's project, until ctx or the server ends, beginning with the turns that have not ended. Changes of one record that come
// faster than they are taken are one. Those that another server on the database makes come within seconds, as far as they concern the conversations used last.
// Needs auth.ConversationsRead.
func (f *Feed) Changes(ctx context.Context, who auth.Principal) (iter.Seq2[Change, error], error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return nil, err
	}
	others, err := f.lookAround(ctx, who.Project)
	if err != nil {
		return nil, err
	}
	return func(yield func(Change, error) bool) {
		r := f.join(who.Project)
		defer f.leave(r)
		for _, c := range others.running {
			r.put(c)
		}
		tick := time.NewTicker(lookElsewhere)
		defer tick.Stop()
		for {
			select {
			case <-r.wake:
			case <-tick.C:
				if f.isAlone(ctx) {
					continue
				}
				now, err := f.lookAround(ctx, who.Project)
				if err != nil {
					continue // the next look reports more
				}
				now.since(others, r.put)
				others = now
				continue
			case <-ctx.Done():
				yield(Change{}, context.Cause(ctx))
				return
			case <-f.ended.Done():
				yield(Change{}, context.Cause(f.ended))
				return
			}
			for _, c := range r.take() {
				if !yield(c, nil) {
					return
				}
			}
		}
	}, nil
}

// isAlone says whether no other process writes to the database, as of at most lookElsewhere ago: a page that nobody uses follows too, and many of them ask the database no
// more often than one.
func (f *Feed) isAlone(ctx context.Context) bool {
	f.looking.Lock()
	defer f.looking.Unlock()
	if time.Since(f.looked) >= lookElsewhere {
		n, err := f.store.Others(ctx, f.owner)
		if err != nil {
			return false
		}
		f.looked, f.alone = time.Now(), n == 0
	}
	return f.alone
}

// surroundings are what the database has of a project's newest conversations and unfinished turns.
type surroundings struct {
	used    map[string]time.Time // of conversations
	running map[string]Change    // by turn
}

func (f *Feed) lookAround(ctx context.Context, project string) (surroundings, error) {
	s := surroundings{used: map[string]time.Time{}, running: map[string]Change{}}
	turns, err := f.store.RunningTurns(ctx, project, lookedAt)
	if err != nil {
		return s, err
	}
	for _, t := range turns {
		s.running[t.ID] = changeOfTurn(t)
	}
	recent, err := f.store.Conversations(ctx, project, record.ConversationFilter{}, record.Page{Limit: lookedAt})
	if err != nil {
		return s, err
	}
	for _, c := range recent.Items {
		s.used[c.ID] = c.Used
	}
	return s, nil
}

// since puts what is not as it was before.
func (s surroundings) since(before surroundings, put func(Change)) {
	for id, used := range s.used {
		if was, known := before.used[id]; !known || !was.Equal(used) {
			put(Change{Kind: ChangedConversation, ID: id})
		}
	}
	for id, c := range s.running {
		if before.running[id] != c {
			put(c)
		}
	}
	for id, c := range before.running {
		if _, still := s.running[id]; !still {
			c.State = string(record.TurnCompleted) // or in another way: readers read the record
			put(c)
		}
	}
}

func changeOfTurn(t record.Turn) Change {
	state := string(t.State)
	if t.Waiting != nil && !t.State.Final() {
		state = stateApproval
	}
	return Change{Kind: ChangedTurn, ID: t.ID, Conversation: t.Conversation, State: state}
}

// Feed notifies the followers of a project of the records that were written.
//
// Its locks: mu guards readers, and the mu of a changeReader is taken under it. looking is taken alone. Nothing is called under mu, and the database alone under
// looking.
type Feed struct {
	store record.Store    // that notifies nobody
	owner string          // the id of this process as an owner; "": it is alone on the store
	ended context.Context // ends with the hub

	mu      sync.Mutex
	readers map[string]map[*changeReader]struct{} // by project

	looking sync.Mutex // see alone; held while the database is asked
	looked  time.Time
	alone   bool
}

// New returns a feed, and store as it has to be written to for the feed to notify its followers. owner is the id of this process among those on the store; ended
// ends all followers.
func New(ended context.Context, store record.Store, owner string) (*Feed, record.Store) {
	f := &Feed{store: store, owner: owner, ended: ended}
	return f, notifyingStore{Store: store, to: f}
}

func (f *Feed) join(project string) *changeReader {
	r := &changeReader{project: project, wake: make(chan struct{}, 1), waiting: map[Change]int{}}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers == nil {
		f.readers = map[string]map[*changeReader]struct{}{}
	}
	if f.readers[project] == nil {
		f.readers[project] = map[*changeReader]struct{}{}
	}
	f.readers[project][r] = struct{}{}
	return r
}

func (f *Feed) leave(r *changeReader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readers[r.project], r)
	if len(f.readers[r.project]) == 0 {
		delete(f.readers, r.project)
	}
}

// NotifyRestart tells the followers of a project that a session has begun an interpreter anew, which no record says.
func (f *Feed) NotifyRestart(project, session string) {
	f.notify(project, Change{Kind: ChangedSession, ID: session, State: string(record.SessionActive)})
}

func (f *Feed) notify(project string, change Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range maps.Keys(f.readers[project]) {
		r.put(change)
	}
}

// changeReader has the changes that its follower has not taken.
type changeReader struct {
	project string
	wake    chan struct{}
	mu      sync.Mutex
	list    []Change
	waiting map[Change]int // where in list: by a Change without its state
}

func (r *changeReader) put(c Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := c
	of.State = ""
	switch at, there := r.waiting[of]; {
	case there:
		r.list[at] = c
	case len(r.list) >= mostChanges:
		much := Change{Kind: ChangedMuch}
		r.list, r.waiting = []Change{much}, map[Change]int{much: 0}
	case len(r.list) == 1 && r.list[0].Kind == ChangedMuch:
		return
	default:
		r.waiting[of] = len(r.list)
		r.list = append(r.list, c)
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *changeReader) take() []Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.list
	r.list, r.waiting = nil, map[Change]int{}
	return out
}
