package turns

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub/live"
	"cove/internal/server/hub/record"
)

// A fork of a conversation has copies of a branch's turns, with their steps and events, and a fork of the session: the two share nothing, and either can be deleted.
// The points of the session stay with the origin, so each copy says what it is a copy of (Turn.Origin).

// largestFork bounds the events of the turns that a fork copies, in bytes: they are written in one transaction, for which others wait.
const largestFork = 32 << 20

// ForkState says which variables and files a fork of a conversation goes on with.
type ForkState string

// The states.
const (
	StateThen ForkState = "then" // those after the turn that the fork ends with
	StateNow  ForkState = "now"  // those that the turn's session has at present
	StateNone ForkState = "none" // none: its next turn begins with a new session
)

// NewFork says how to fork a conversation.
type NewFork struct {
	Turn  string // the last one that the fork has too; "": the conversation's last
	Title string // "": the origin's
	State ForkState
}

// ForkConversation makes a conversation that goes on from a turn of another one. Needs auth.ConversationsWrite and auth.ConversationsRead, and auth.SessionsWrite where a session is
// forked. Problems: conversation_empty, turn_running, conversation_too_large, point_unknown when the state of that time is not kept, and those of ForkSession.
func (r *Runner) ForkConversation(ctx context.Context, who auth.Principal, id string, n NewFork) (record.Conversation, error) {
	var fork record.Conversation
	err := cmp.Or(who.Require(auth.ConversationsWrite), who.Require(auth.ConversationsRead))
	if err == nil {
		fork, err = r.forkConversation(ctx, who, id, n)
	}
	r.work.WriteAudit(ctx, who, "conversation.fork", cmp.Or(fork.ID, id), "of "+id, err)
	if err != nil {
		return record.Conversation{}, err
	}
	return r.work.Store.Conversation(ctx, who.Project, fork.ID)
}

func (r *Runner) forkConversation(ctx context.Context, who auth.Principal, id string, n NewFork) (record.Conversation, error) {
	origin, branch, err := r.branchToFork(ctx, who, id, n.Turn)
	if err != nil {
		return record.Conversation{}, err
	}
	last := branch[len(branch)-1]
	now := r.work.Now()
	fork := record.Conversation{
		ID: ident.New(ident.Conversation), Project: who.Project, User: who.User, Title: cmp.Or(n.Title, origin.Title), Model: last.Model, Metadata: maps.Clone(origin.Metadata),
		Created: now, Used: now, Turns: len(branch), Source: origin.Source, Approval: origin.Approval,
		Origin: &record.ConversationOrigin{Conversation: origin.ID, Turn: last.ID},
	}
	maps.DeleteFunc(fork.Metadata, func(name, _ string) bool { return record.SurfaceOwn(name) })
	if err := fork.Check(); err != nil {
		return record.Conversation{}, err
	}
	var session record.Session
	if n.State != StateNone {
		if session, err = r.forkSessionAt(ctx, who, branch, n.State); err != nil {
			return record.Conversation{}, err
		}
	}
	fork.Session = session.ID
	spans, err := r.spansOf(ctx, session)
	if err == nil {
		err = r.work.Store.AddFork(ctx, fork, copiesOf(branch, fork, spans), largestFork)
	}
	if err != nil {
		if fork.Session != "" {
			r.work.RunInBackground(func(ctx context.Context) {
				r.live.RemoveUnmade(ctx, record.Session{ID: fork.Session, Project: who.Project})
			})
		}
		return record.Conversation{}, err
	}
	return fork, nil
}

// branchToFork returns a conversation, and its turns to the one that a fork ends with.
func (r *Runner) branchToFork(ctx context.Context, who auth.Principal, id, turn string) (record.Conversation, []record.Turn, error) {
	c, err := r.work.Store.Conversation(ctx, who.Project, id)
	if err != nil {
		return record.Conversation{}, nil, err
	}
	if turn == "" {
		last, err := r.LastTurn(ctx, who, id)
		if err != nil {
			return record.Conversation{}, nil, err
		}
		turn = last.ID
	}
	size, err := r.chargeRecall(ctx, who.Project, id, "")
	if err == nil && size > largestConversation {
		err = ErrForkTooLarge()
	}
	if err != nil {
		return record.Conversation{}, nil, err
	}
	branch, err := r.work.Store.Branch(ctx, who.Project, turn)
	if err != nil {
		return record.Conversation{}, nil, err
	}
	switch last := branch[len(branch)-1]; {
	case last.Conversation != id || last.Hidden:
		return record.Conversation{}, nil, problem.New(problem.TurnNotFound, "the conversation has no such turn")
	case !last.State.Final():
		return record.Conversation{}, nil, ErrTurnRunning()
	}
	return c, branch, nil
}

// span is what a fork has of what ran in a session: all until a time.
type span struct {
	session string
	until   time.Time
}

func (s span) has(session string, at time.Time) bool {
	return s.session == session && !at.After(s.until)
}

// mostOrigins bounds how far forks of forks are followed.
const mostOrigins = 100

// spansOf returns what a fork has of which sessions: of the one that it was forked from, of that one's origin, and so on.
func (r *Runner) spansOf(ctx context.Context, fork record.Session) (spans []span, err error) {
	for o := fork.Origin; o != nil && len(spans) < mostOrigins; {
		until := o.At
		if n := len(spans); n > 0 && spans[n-1].until.Before(until) {
			until = spans[n-1].until
		}
		spans = append(spans, span{o.Session, until})
		row, err := r.work.Store.Session(ctx, fork.Project, o.Session)
		if problem.Has(err, problem.SessionNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		o = row.Origin
	}
	return spans, nil
}

// forkSessionAt forks the session that a branch goes on with, and returns the fork; none when the branch has no session any more.
func (r *Runner) forkSessionAt(ctx context.Context, who auth.Principal, branch []record.Turn, state ForkState) (record.Session, error) {
	last := branch[len(branch)-1]
	session, undone := last.Session, last.UndoneTo()
	if undone != nil {
		session = undone.Session
	}
	if session == "" {
		return record.Session{}, nil
	}
	row, err := r.live.FindSession(ctx, who, session)
	switch {
	case problem.Is(err, problem.NotFound), err == nil && row.State == record.SessionDeleted:
		if undone == nil {
			return record.Session{}, nil
		}
		return r.remakeUndone(ctx, who, last)
	case err != nil:
		return record.Session{}, err
	}
	var point record.Turn
	if state == StateThen {
		if point, err = r.pointAfter(ctx, who, row, branch); err != nil {
			return record.Session{}, err
		}
	}
	fork, err := r.live.ForkSession(ctx, who, session, live.NewSession{Point: point.ID})
	if problem.Has(err, problem.PointUnknown) {
		err = errStateGone()
	}
	return fork, err
}

// pointAfter returns the turn before which a session had its state after the last turn of a branch; none where that is the present one. A problem with code point_unknown says that nothing has it: the
// session was returned to before that turn, lost what the turn did, or was changed by turns of other branches since.
func (r *Runner) pointAfter(ctx context.Context, who auth.Principal, session record.Session, branch []record.Turn) (record.Turn, error) {
	last := branch[len(branch)-1]
	following, err := r.work.Store.Following(ctx, who.Project, last.ID)
	if err != nil {
		return record.Turn{}, err
	}
	for _, t := range following {
		if t.Session == session.ID {
			return t, nil // what was kept from before the first turn that changed the session since
		}
	}
	if r := session.Rollback; r != nil && last.UndoneTo() == nil && last.Steps > 0 && last.Created.Before(r.At) && last.Finished.After(r.To) {
		return record.Turn{}, errStateGone()
	}
	newest, err := r.work.Store.Executions(ctx, who.Project, record.ExecutionFilter{Session: session.ID}, record.Page{Limit: recentExecutions})
	if err != nil {
		return record.Turn{}, err
	}
	for _, e := range newest.Items {
		if e.Turn == "" {
			continue // somebody has run code there by hand since, and sees it in the fork
		}
		if !slices.ContainsFunc(branch, func(t record.Turn) bool { return t.ID == e.Turn }) {
			return record.Turn{}, errStateGone()
		}
		break
	}
	return record.Turn{}, nil
}

// recentExecutions is how many of a session's newest executions are looked at for the turn that changed it last.
const recentExecutions = 50

func errStateGone() *problem.Error {
	return problem.New(problem.PointUnknown, "the variables and files of that turn are not kept any more").
		WithHint(`fork from the conversation's last turn, or with what its session has at present: {"state":"now"}`)
}

// copiesOf are the turns of a fork whose session has what ran in some spans. What a surface keeps with a turn is about that turn alone.
func copiesOf(branch []record.Turn, fork record.Conversation, spans []span) []record.TurnCopy {
	copies, parent := make([]record.TurnCopy, len(branch)), ""
	for i, t := range branch {
		c := record.TurnCopy{Turn: t, Of: t.ID}
		if c.Origin == nil {
			c.Origin = &record.TurnOrigin{Turn: t.ID, Session: t.Session}
		}
		c.ID, c.Conversation, c.Parent, c.Session, c.Foreign, c.Owner = ident.New(ident.Turn), fork.ID, parent, fork.Session, nil, ""
		c.Tries, c.Rating = nil, nil // they are of the turn that was asked
		c.Marks = marksOfCopy(t, fork.Session, spans)
		copies[i], parent = c, c.ID
	}
	return copies
}

// marksOfCopy returns the marks of a turn that hold for its copy: the steps that ran again in what the fork's session has. The fork goes on with the state that undone turns left, so no copy says that they
// are undone.
func marksOfCopy(t record.Turn, session string, spans []span) *record.TurnMarks {
	if t.Marks == nil {
		return nil
	}
	var out record.TurnMarks
	for _, r := range t.Marks.Reruns {
		if slices.ContainsFunc(spans, func(s span) bool { return s.has(cmp.Or(r.Session, t.Session), r.At) }) {
			r.Session = session
			out.Reruns = append(out.Reruns, r)
		}
	}
	if len(out.Reruns) == 0 {
		return nil
	}
	return &out
}

// ErrForkTooLarge is the problem of a branch that is too large to be copied.
func ErrForkTooLarge() *problem.Error {
	return problem.New(problem.ConversationTooLarge, "the conversation is too large to be forked").
		WithHint("fork it from an earlier turn, or fork its session alone and begin a new conversation with that")
}
