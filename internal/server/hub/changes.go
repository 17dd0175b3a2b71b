package hub

import (
	"context"
	"iter"
	"maps"
	"sync"
	"time"

	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/stream"
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
func (h *Hub) Changes(ctx context.Context, who auth.Principal) (iter.Seq2[Change, error], error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return nil, err
	}
	others, err := h.lookAround(ctx, who.Project)
	if err != nil {
		return nil, err
	}
	return func(yield func(Change, error) bool) {
		r := h.changes.join(who.Project)
		defer h.changes.leave(r)
		for _, c := range others.running {
			r.put(c)
		}
		tick := time.NewTicker(lookElsewhere)
		defer tick.Stop()
		for {
			select {
			case <-r.wake:
			case <-tick.C:
				if h.alone(ctx) {
					continue
				}
				now, err := h.lookAround(ctx, who.Project)
				if err != nil {
					continue // the next look tells more
				}
				now.since(others, r.put)
				others = now
				continue
			case <-ctx.Done():
				yield(Change{}, context.Cause(ctx))
				return
			case <-h.ended.Done():
				yield(Change{}, context.Cause(h.ended))
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

// alone says whether no other process writes to the database, as of at most lookElsewhere ago: a page that nobody uses follows too, and many of them ask the database no
// more often than one.
func (h *Hub) alone(ctx context.Context) bool {
	c := h.changes
	c.looking.Lock()
	defer c.looking.Unlock()
	if time.Since(c.looked) >= lookElsewhere {
		n, err := h.o.Store.Others(ctx, h.me())
		if err != nil {
			return false
		}
		c.looked, c.alone = time.Now(), n == 0
	}
	return c.alone
}

// surroundings are what the database has of a project's newest conversations and unfinished turns.
type surroundings struct {
	used    map[string]time.Time // of conversations
	running map[string]Change    // by turn
}

func (h *Hub) lookAround(ctx context.Context, project string) (surroundings, error) {
	s := surroundings{used: map[string]time.Time{}, running: map[string]Change{}}
	turns, err := h.o.Store.RunningTurns(ctx, project, lookedAt)
	if err != nil {
		return s, err
	}
	for _, t := range turns {
		s.running[t.ID] = changeOfTurn(t)
	}
	recent, err := h.o.Store.Conversations(ctx, project, ConversationFilter{}, Page{Limit: lookedAt})
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
			c.State = string(TurnCompleted) // or in another way: who asks is told
			put(c)
		}
	}
}

func changeOfTurn(t Turn) Change {
	state := string(t.State)
	if t.Waiting != nil && !t.State.Final() {
		state = stateApproval
	}
	return Change{Kind: ChangedTurn, ID: t.ID, Conversation: t.Conversation, State: state}
}

// changes tells the followers of a project what its records' writers wrote.
type changes struct {
	mu      sync.Mutex
	readers map[string]map[*changeReader]struct{} // by project

	looking sync.Mutex // see alone; held while the database is asked
	looked  time.Time
	alone   bool
}

func (c *changes) join(project string) *changeReader {
	r := &changeReader{project: project, wake: make(chan struct{}, 1), waiting: map[Change]int{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readers == nil {
		c.readers = map[string]map[*changeReader]struct{}{}
	}
	if c.readers[project] == nil {
		c.readers[project] = map[*changeReader]struct{}{}
	}
	c.readers[project][r] = struct{}{}
	return r
}

func (c *changes) leave(r *changeReader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.readers[r.project], r)
	if len(c.readers[r.project]) == 0 {
		delete(c.readers, r.project)
	}
}

func (c *changes) tell(project string, change Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range maps.Keys(c.readers[project]) {
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

// telling is a Store that tells of what it wrote.
type telling struct {
	Store
	to *changes
}

func (s telling) told(err error, project string, c Change) error {
	if err == nil {
		s.to.tell(project, c)
	}
	return err
}

// toldOfTurn is told for a turn. Nobody hears of a hidden one.
func (s telling) toldOfTurn(err error, t Turn) error {
	if t.Hidden {
		return err
	}
	return s.told(err, t.Project, changeOfTurn(t))
}

// AddConversation implements ConversationStore.
func (s telling) AddConversation(ctx context.Context, c Conversation) error {
	return s.told(s.Store.AddConversation(ctx, c), c.Project, Change{Kind: ChangedConversation, ID: c.ID})
}

// AddFork implements ForkStore.
func (s telling) AddFork(ctx context.Context, c Conversation, turns []TurnCopy, most int64) error {
	return s.told(s.Store.AddFork(ctx, c, turns, most), c.Project, Change{Kind: ChangedConversation, ID: c.ID})
}

// UpdateConversation implements ConversationStore.
func (s telling) UpdateConversation(ctx context.Context, project, id string, change func(*Conversation) error) (Conversation, error) {
	out, err := s.Store.UpdateConversation(ctx, project, id, change)
	return out, s.told(err, project, Change{Kind: ChangedConversation, ID: id})
}

// DeleteConversation implements ConversationStore.
func (s telling) DeleteConversation(ctx context.Context, project, id string) error {
	return s.told(s.Store.DeleteConversation(ctx, project, id), project, Change{Kind: ChangedConversation, ID: id, State: stateDeleted})
}

// AddTurn implements TurnStore.
func (s telling) AddTurn(ctx context.Context, t Turn) error {
	err := s.toldOfTurn(s.Store.AddTurn(ctx, t), t)
	if t.Taken.ID != "" {
		err = s.toldOfQueue(err, t.Project, t.Conversation)
	}
	return err
}

// toldOfQueue is told for a conversation's queue, which is read with the conversation.
func (s telling) toldOfQueue(err error, project, conversation string) error {
	return s.told(err, project, Change{Kind: ChangedConversation, ID: conversation})
}

// AddQuestion implements QuestionStore.
func (s telling) AddQuestion(ctx context.Context, q Question, most QuestionBounds) error {
	return s.toldOfQueue(s.Store.AddQuestion(ctx, q, most), q.Project, q.Conversation)
}

// UpdateQuestion implements QuestionStore.
func (s telling) UpdateQuestion(ctx context.Context, project, conversation, id string, change func(*Question) error) (Question, error) {
	q, err := s.Store.UpdateQuestion(ctx, project, conversation, id, change)
	return q, s.toldOfQueue(err, project, conversation)
}

// DeleteQuestion implements QuestionStore.
func (s telling) DeleteQuestion(ctx context.Context, project, conversation, id string) error {
	return s.toldOfQueue(s.Store.DeleteQuestion(ctx, project, conversation, id), project, conversation)
}

// UndoTurn implements QuestionStore.
func (s telling) UndoTurn(ctx context.Context, t Turn, q Question) error {
	err := s.told(s.Store.UndoTurn(ctx, t, q), t.Project, Change{Kind: ChangedTurn, ID: t.ID, State: stateDeleted})
	return s.toldOfQueue(err, t.Project, t.Conversation)
}

// FinishTurn implements TurnStore.
func (s telling) FinishTurn(ctx context.Context, t Turn, last []stream.Event) (bool, error) {
	first, err := s.Store.FinishTurn(ctx, t, last)
	return first, s.toldOfTurn(err, t)
}

// SetWaiting implements TurnStore.
func (s telling) SetWaiting(ctx context.Context, project, turn string, w *Waiting) error {
	err := s.Store.SetWaiting(ctx, project, turn, w)
	if err != nil {
		return err
	}
	t, err := s.Turn(ctx, project, turn)
	_ = s.toldOfTurn(err, t) // the word is written
	return nil
}

// SetRating implements TurnStore.
func (s telling) SetRating(ctx context.Context, project, turn string, r *Rating) error {
	if err := s.Store.SetRating(ctx, project, turn, r); err != nil {
		return err
	}
	t, err := s.Turn(ctx, project, turn)
	_ = s.toldOfTurn(err, t) // the rating is written
	return nil
}

// MarkTurn implements TurnStore.
func (s telling) MarkTurn(ctx context.Context, project, turn string, change func(*TurnMarks) error) (*TurnMarks, error) {
	marks, err := s.Store.MarkTurn(ctx, project, turn, change)
	if err != nil {
		return nil, err
	}
	t, err := s.Turn(ctx, project, turn)
	_ = s.toldOfTurn(err, t) // the marks are written
	return marks, nil
}

// DeleteTurn implements TurnStore.
func (s telling) DeleteTurn(ctx context.Context, project, turn string) error {
	return s.told(s.Store.DeleteTurn(ctx, project, turn), project, Change{Kind: ChangedTurn, ID: turn, State: stateDeleted})
}

// AddSession implements SessionStore.
func (s telling) AddSession(ctx context.Context, row Session) error {
	return s.told(s.Store.AddSession(ctx, row), row.Project, Change{Kind: ChangedSession, ID: row.ID, State: string(row.State)})
}

// UpdateSession implements SessionStore. That a session was used changes nothing that is told.
func (s telling) UpdateSession(ctx context.Context, project, id string, change func(*Session) error) (Session, error) {
	var before Session
	out, err := s.Store.UpdateSession(ctx, project, id, func(row *Session) error {
		before = *row
		return change(row)
	})
	if err == nil && (before.State != out.State || before.Name != out.Name || before.Reason != out.Reason) {
		s.to.tell(project, Change{Kind: ChangedSession, ID: id, State: string(out.State)})
	}
	return out, err
}

// AddExecution implements ExecutionStore.
func (s telling) AddExecution(ctx context.Context, e Execution, asked ...audit.Row) error {
	err := s.Store.AddExecution(ctx, e, asked...)
	if e.Turn == "" {
		return s.told(err, e.Project, changeOfExecution(e))
	}
	return err
}

// FinishExecution implements ExecutionStore.
func (s telling) FinishExecution(ctx context.Context, e Execution, last []stream.Event) (bool, error) {
	first, err := s.Store.FinishExecution(ctx, e, last)
	if e.Turn == "" {
		err = s.told(err, e.Project, changeOfExecution(e))
	}
	return first, err
}

func changeOfExecution(e Execution) Change {
	return Change{Kind: ChangedExecution, ID: e.ID, Session: e.Session, State: string(e.State)}
}
