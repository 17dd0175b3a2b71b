package turns

import (
	"context"
	"slices"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
	"cove/internal/server/ownership"
)

// heldFor is how long a question that could not be asked waits until it is tried again, where the reason may pass by itself.
const heldFor = time.Minute

// asksQuestions says whether this process asks what waits in queues. A command does not: it ends with its own turn.
func (r *Runner) asksQuestions() bool { return r.o.Asker != nil }

// askLater begins the next question of a conversation, unless a turn of it runs.
func (r *Runner) askLater(project, conversation string) {
	if r.asksQuestions() {
		r.work.RunInBackground(func(ctx context.Context) { r.askNext(ctx, project, conversation) })
	}
}

// askEvery begins what could go on and was not begun: after a start, when another process has ended a turn, and where the reason why a question was held may have passed.
func (r *Runner) askEvery(ctx context.Context) {
	if !r.asksQuestions() {
		return
	}
	r.askDue(ctx)
	r.live.CallEvery(ctx, ownership.Round, func() { r.askDue(ctx) })
}

func (r *Runner) askDue(ctx context.Context) {
	due, err := r.work.Store.DueQuestions(ctx, r.work.Now())
	if err != nil {
		if ctx.Err() == nil && !r.work.IsFenced() {
			r.work.Log.WarnContext(ctx, "the questions that wait were not looked for", "error", err)
		}
		return
	}
	for _, q := range due {
		r.askNext(ctx, q.Project, q.Conversation)
	}
}

// askNext begins the first question of a queue. Several processes may do so at the same time: a turn takes its question out of the queue when it is recorded, so that one of
// them gets it. In this process one at a time does: another one would keep a client from asking while it finds out that it is late.
func (r *Runner) askNext(ctx context.Context, project, conversation string) {
	if !r.asking.enter(conversation) {
		return
	}
	for more := true; more; more = r.asking.leave(conversation) {
		for more && !r.table.reserved(conversation) {
			more = r.askFirst(ctx, project, conversation)
		}
	}
}

// askFirst tries the first question of a queue, and says whether it was changed, taken out or asked meanwhile.
func (r *Runner) askFirst(ctx context.Context, project, conversation string) (again bool) {
	queue, err := r.work.Store.Questions(ctx, project, conversation)
	if err != nil || len(queue) == 0 {
		return false // askEvery comes again
	}
	if err = r.askQuestion(ctx, queue[0]); err != nil {
		r.holdQuestion(ctx, queue[0], err)
	}
	return problem.Has(err, problem.QuestionNotFound)
}

// oneEach lets one goroutine at a time work on a conversation; who comes meanwhile has it work once more. Its zero value is ready.
type oneEach struct {
	mu   sync.Mutex
	busy map[string]bool // whether somebody came meanwhile
}

func (o *oneEach) enter(conversation string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy == nil {
		o.busy = map[string]bool{}
	}
	_, others := o.busy[conversation]
	o.busy[conversation] = others
	return !others
}

func (o *oneEach) leave(conversation string) (again bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if again = o.busy[conversation]; again {
		o.busy[conversation] = false
	} else {
		delete(o.busy, conversation)
	}
	return again
}

// askQuestion begins the turn of a question as who put it, with the rights of now.
func (r *Runner) askQuestion(ctx context.Context, q record.Question) error {
	n := q.Turn
	n.Conversation, n.Queued = q.Conversation, &q
	n.Foreign, n.Format = nil, model.Format{} // which JSON calls null where there are none
	who, err := r.o.Asker(ctx, q.Project, q.User, q.Key)
	if err != nil {
		who = auth.Principal{Project: q.Project, User: q.User, Key: q.Key}
	} else {
		who.Scopes = narrowedScopes(who.Scopes, q.Scopes)
		err = mayStart(who, n)
	}
	var t record.Turn
	if err == nil {
		t, err = r.startTurn(ctx, who, n)
	}
	if err == nil || !passedOver(err) && (q.Held == nil || q.Held.Code != problem.Of(err).Code) { // and not each time that it is tried again
		target := t.ID
		if target == "" {
			target = q.Conversation
		}
		r.work.WriteAudit(ctx, who, "turn.start", target, q.ID, err)
	}
	return err
}

// narrowedScopes are the scopes that two limits have in common; nil is no limit.
func narrowedScopes(a, b []auth.Action) []auth.Action {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return slices.DeleteFunc(slices.Clone(a), func(x auth.Action) bool { return !slices.Contains(b, x) })
}

// passedOver says that a question could not be asked for a reason that is not its own: it simply goes on waiting.
func passedOver(err error) bool {
	return problem.Has(err, problem.TurnRunning, problem.QuestionNotFound, problem.SessionInUse, problem.Draining, problem.OwnerLost, problem.DatabaseUnavailable)
}

// holdQuestion records why a question could not be asked. It stays the first of its queue.
func (r *Runner) holdQuestion(ctx context.Context, q record.Question, why error) {
	if ctx.Err() != nil || passedOver(why) || problem.Has(why, problem.SessionElsewhere) && r.isServed(ctx, q) {
		return
	}
	p := r.work.PublicProblem(ctx, "question", q.ID, why)
	now := r.work.Now()
	_, err := r.work.Store.UpdateQuestion(ctx, q.Project, q.Conversation, q.ID, func(row *record.Question) error {
		if !row.Changed.Equal(q.Changed) {
			return questionGone()
		}
		held := record.Held{Kind: p.Kind, Code: p.Code, Message: p.Message, Hint: p.Hint, Since: now}
		if row.Held != nil && row.Held.Code == held.Code {
			held.Since = row.Held.Since
		}
		row.Held, row.Again = &held, time.Time{}
		if p.Kind == problem.Exhausted || p.Kind == problem.Unavailable {
			row.Again = now.Add(heldFor)
		}
		return nil
	})
	if err != nil && !problem.Has(err, problem.QuestionNotFound) {
		r.work.Log.WarnContext(ctx, "it was not recorded why a question waits", "question", q.ID, "error", err)
	}
}

// isServed says whether a server runs that has the session of a question's conversation on its disk: it asks the question.
func (r *Runner) isServed(ctx context.Context, q record.Question) bool {
	c, err := r.work.Store.Conversation(ctx, q.Project, q.Conversation)
	if err != nil {
		return false
	}
	row, err := r.work.Store.Session(ctx, q.Project, c.Session)
	if err != nil {
		return false
	}
	_, served, err := r.work.Store.Home(ctx, row.Home)
	return err == nil && served
}

// AskDue is what Run does at its start and every five seconds.
func (r *Runner) AskDue(ctx context.Context) { r.askDue(ctx) }
