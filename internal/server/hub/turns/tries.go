package turns

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
	"cove/internal/server/hub/live"
	"cove/internal/server/hub/record"
	"cove/internal/server/transcript"
)

// A question can be answered in several tries at once. Each is a turn of its own in a fork of the session, so that all begin with the same variables and files and none disturbs another. When it is
// clear which is right, the turn that asked has the events and the answer of that one, and its session goes on from the state of that one's fork. The others stay as versions of the turn, without
// their forks. The session itself is not touched before, so that a server that dies in the middle can ask again, with the tries that had ended.

// planTries checks what the tries need before the first one begins, and has the turn remember what it takes to be asked again: without what the session has already, and without secrets.
func (r *Runner) planTries(ctx context.Context, p *plan, n record.NewTurn) error {
	if n.Tries == nil {
		return nil
	}
	for _, name := range n.Tries.Models {
		m, err := r.openModel(ctx, name)
		if err == nil {
			err = loop.Check(m, p.spec)
		}
		if err != nil {
			return err
		}
	}
	if code := n.Tries.Check; code != "" {
		err := r.live.ScreenCode(ctx, &record.Execution{Project: p.who.Project, Key: p.who.Key, Code: code}, false)
		if problem.Has(err, problem.CodeUnapproved) {
			err = problem.New(problem.CodeRefused, "the rules for code do not let the check run unseen: "+problem.Of(err).Message).WithHint("ask without a check, or with another one")
		}
		if err != nil {
			return err
		}
	}
	n.Network, n.Root, n.Once, n.Foreign = nil, false, "", nil
	p.turn.ID = cmp.Or(n.Tries.Again, p.turn.ID)
	p.turn.Tries = &record.TurnTries{Number: n.Tries.Number, Request: &record.Asked{Turn: n, Scopes: p.who.Scopes}}
	return nil
}

// try is one try of a question.
type try struct {
	place  int
	turn   record.Turn
	answer loop.Answer
	err    error
	live   *liveTurn // nil: it ended in an earlier server
}

// right says whether a try may be the answer.
func (t *try) right() bool {
	passed := t.turn.Tries.Passed
	return t.err == nil && (passed == nil || *passed)
}

// tryTurn answers a turn in several tries, and returns the answer of the one that was chosen.
func (r *Runner) tryTurn(p *plan, l *liveTurn) (loop.Answer, error) {
	ctx, stop := context.WithCancelCause(p.work)
	defer stop(nil)
	from := r.work.Now()
	if err := r.untakeState(ctx, p); err != nil {
		return loop.Answer{}, err
	}
	tries, ended, err := r.beginTries(ctx, p)
	var over []*try
	for err == nil && len(over) < len(tries) && !p.decided(over) {
		t := <-ended
		over = append(over, t)
		err = r.publishEvent(ctx, p, l, loop.Notice{Text: t.told(p.tries.Number)}, "", 0)
	}
	stop(cmp.Or(err, error(problem.New(problem.GivenUp, "other tries had answered"))))
	for len(over) < len(tries) {
		over = append(over, <-ended)
	}
	for _, t := range over {
		p.forks = append(p.forks, t.turn)
		p.took(t.turn.Usage, t.turn.Cost)
	}
	if err == nil {
		err = context.Cause(p.work)
	}
	if err != nil {
		return loop.Answer{}, err
	}
	slices.SortFunc(over, func(a, b *try) int { return a.place - b.place })
	chosen, about := r.chooseTry(p, over)
	if chosen == nil {
		return loop.Answer{}, over[0].err
	}
	about.Request = p.turn.Tries.Request // until the turn has ended
	p.turn.Tries = &about
	answer, err := r.settleTries(p, l, chosen, from)
	answer.Usage = p.used
	return answer, err
}

// took adds to what a turn's tries took.
func (p *plan) took(u model.Usage, c model.Cost) {
	p.used = p.used.Plus(u)
	if p.cost.Currency == "" || c.Currency == p.cost.Currency {
		p.cost = model.Cost{Amount: p.cost.Amount + c.Amount, Currency: cmp.Or(p.cost.Currency, c.Currency)}
	}
}

// told is a try that has ended, in a line for people.
func (t *try) told(of int) string {
	switch passed := t.turn.Tries.Passed; {
	case t.err != nil:
		return fmt.Sprintf("Try %d of %d has no answer: %s", t.place, of, problem.Of(t.err).Message)
	case passed == nil:
		return fmt.Sprintf("Try %d of %d answered: %s", t.place, of, firstWords(t.answer.Text))
	case *passed:
		return fmt.Sprintf("Try %d of %d passed the check: %s", t.place, of, firstWords(t.answer.Text))
	}
	return fmt.Sprintf("Try %d of %d did not pass the check: %s", t.place, of, firstWords(t.answer.Text))
}

// firstWords are the beginning of a text, in one line.
func firstWords(text string) string {
	const most = 100
	text = strings.Join(strings.Fields(strings.NewReplacer("**", "", "`", "").Replace(text)), " ")
	if whole := []rune(text); len(whole) > most {
		return string(whole[:most]) + "…"
	}
	return text
}

// beginTries begins the tries, those that had ended in an earlier server apart. Each is sent when it has ended.
func (r *Runner) beginTries(ctx context.Context, p *plan) ([]*try, <-chan *try, error) {
	earlier, err := r.earlierTries(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	var all []*try
	ended := make(chan *try, p.tries.Number)
	for _, t := range earlier {
		ended <- t
		all = append(all, t)
	}
	for place := 1; place <= p.tries.Number; place++ {
		if earlier[place] != nil {
			continue
		}
		t := &try{place: place}
		if err := r.beginTry(ctx, p, t, ended); err != nil {
			return all, ended, err
		}
		all = append(all, t)
	}
	return all, ended, nil
}

// beginTry begins one try, in a fork of the turn's session.
func (r *Runner) beginTry(ctx context.Context, p *plan, t *try, ended chan<- *try) error {
	who := p.who
	who.Scopes = nil // a caller with the right to the turn may make what the turn needs
	q := &plan{who: who, model: p.model, spec: p.spec, work: ctx, end: func() {}, looks: p.looks, alone: true, unheard: true}
	if names := p.tries.Models; len(names) > 0 {
		m, err := r.openModel(ctx, names[(t.place-1)%len(names)])
		if err != nil {
			return err
		}
		q.model, q.spec.Context = m, r.about(m.Name()).Context
	}
	row, err := r.live.ForkSessionRow(ctx, who, p.turn.Session, live.NewSession{Life: r.forkLife()})
	if err != nil {
		return err
	}
	q.turn = p.turn
	q.turn.ID, q.turn.Session, q.turn.Model, q.turn.Created, q.turn.Files, q.turn.Foreign, q.turn.Taken = ident.New(ident.Turn), row.ID, q.model.Name(), r.work.Now(), nil, nil, record.Taken{}
	q.turn.Tries = &record.TurnTries{Of: p.turn.ID, Place: t.place}
	t.turn, q.events = q.turn, r.live.Streams.Open(q.turn.ID)
	if err := r.work.Store.AddTurn(ctx, q.turn); err != nil {
		q.events.Close()
		return errors.Join(err, r.live.DeleteSessionRow(ctx, p.turn.Project, row.ID))
	}
	t.live = r.beginTurn(q)
	r.work.RunInBackground(func(context.Context) {
		defer func() { ended <- t }()
		t.turn, t.answer, t.err = r.runTurn(q, t.live)
		if t.err == nil {
			r.assessTry(ctx, p, t)
		}
	})
	return nil
}

// forkLife is how long a fork for a try lives at most: it is removed when its turn has ended, unless everything that would do so was killed.
func (r *Runner) forkLife() time.Duration {
	const most = 24 * time.Hour
	if life := r.o.Limits.Life; life > 0 {
		return min(life, most)
	}
	return most
}

// assessTry runs the check in the session of a try, and saves the session as the try has left it.
func (r *Runner) assessTry(ctx context.Context, p *plan, t *try) {
	about := *t.turn.Tries
	if code := p.tries.Check; code != "" {
		passed, err := r.passesCheck(ctx, p, t, code)
		if err != nil {
			t.err = err
			return
		}
		about.Passed = &passed
	}
	err := r.live.PauseWhenUnused(ctx, t.turn.Project, t.turn.Session, func() error { return nil })
	if err == nil {
		about.Saved = true
		err = r.work.Store.SetTries(ctx, t.turn.Project, t.turn.ID, about)
	}
	if t.turn.Tries = &about; err != nil {
		t.err = err
	}
}

// checking is the code of a check. It runs in a copy of the variables, and ends with an error where the last value is false.
const checking = `def _cove_check(code, answer, names):
    import ast
    tree = ast.parse(code)
    space = {**names, "answer": answer}
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<check>", "exec"), space)
    assert last is None or eval(compile(ast.Expression(last.value), "<check>", "eval"), space), "the check's value is false"
try:
    _cove_check(%s, %s, globals())
finally:
    del _cove_check`

// passesCheck runs a check.
func (r *Runner) passesCheck(ctx context.Context, p *plan, t *try, code string) (bool, error) {
	if err := r.meter.MayRun(ctx, p.who.Project, p.who.Key); err != nil {
		return false, err
	}
	req := kernel.Request{Code: fmt.Sprintf(checking, literal(code), literal(t.answer.Text)), Mode: kernel.Cell, Unnumbered: true, Timeout: r.o.Turns.Execution}
	var done kernel.Done
	who := p.who
	who.Scopes = nil
	err := live.Patiently(ctx, func() error {
		_, err := r.live.RunExecution(ctx, who, t.turn.Session, req, func(e record.Event) error {
			if d, ok := e.(kernel.Done); ok {
				done = d
			}
			return nil
		})
		return err
	}, problem.QuotaExecutions, problem.QueueFull)
	if err == nil && done.Lost != kernel.LostNothing {
		err = problem.New(problem.TurnInvalid, "the check ended the try's Python, and its variables are gone")
	}
	return done.Outcome == kernel.OutcomeOK, err
}

// literal is a text as a literal of Python: JSON's are.
func literal(text string) string {
	written, _ := json.Marshal(strings.ToValidUTF8(text, "\uFFFD")) //nolint:errchkjson // a text can be written
	return string(written)
}

// settleTries has the turn's session go on from the state of the chosen try, and the turn have its events.
func (r *Runner) settleTries(p *plan, l *liveTurn, chosen *try, from time.Time) (loop.Answer, error) {
	if err := context.Cause(p.work); err != nil {
		return loop.Answer{}, err
	}
	ctx := context.WithoutCancel(p.work) // when the session has the state, the turn has the answer
	if err := r.takeState(ctx, p.turn, chosen.turn.Session, from); err != nil {
		return loop.Answer{}, err
	}
	choice := loop.Notice{Text: reportChoice(*p.turn.Tries, chosen)}
	told := []loop.Notice{choice}
	if p.turn.Tries.Failed {
		told = []loop.Notice{{Text: "No try passed the check."}, told[0]}
	}
	for _, notice := range told {
		if err := r.publishEvent(ctx, p, l, notice, "", 0); err != nil {
			return loop.Answer{}, err
		}
	}
	const atOnce, room = 200, 4 << 20
	for after := int64(0); ; {
		events, err := r.work.Store.Events(ctx, chosen.turn.ID, "", after, atOnce, room)
		if err != nil || len(events) == 0 {
			return chosen.answer, err
		}
		for _, e := range events {
			after = e.Seq
			event, err := transcript.ParseTurnEvent(e.Body)
			if _, end := event.(loop.Answer); end || err != nil || event == nil {
				continue // what is missing there is missing here
			}
			if err := r.publishEvent(ctx, p, l, event, e.Part, e.Step); err != nil {
				return loop.Answer{}, err
			}
		}
	}
}

// errTaken is the reason of code that waited in a session which goes on from the state of a try.
var errTaken = problem.New(problem.GivenUp, "the session went on from another state while the code waited")

// untakeState returns a session to before the state of a try was taken, by a server that died before it recorded the turn's end.
func (r *Runner) untakeState(ctx context.Context, p *plan) error {
	if p.tries.Again == "" {
		return nil
	}
	row, err := r.work.Store.Session(ctx, p.turn.Project, p.turn.Session)
	if err != nil {
		return err
	}
	err = r.live.PauseWhenUnused(ctx, row.Project, row.ID, func() error { return r.live.ReturnPaused(ctx, row, p.turn.ID) })
	if problem.Has(err, problem.PointUnknown) {
		return nil // it was not
	}
	return err
}

// takeState has a turn's session go on from the state of another one.
func (r *Runner) takeState(ctx context.Context, t record.Turn, session string, from time.Time) error {
	row, err := r.work.Store.Session(ctx, t.Project, t.Session)
	if err != nil {
		return err
	}
	return r.live.PauseWhenUnused(ctx, t.Project, t.Session, func() error {
		return r.live.PauseWhenUnused(ctx, t.Project, session, func() error {
			info, err := r.o.Sessions.Take(ctx, t.Session, session, r.o.Command, t.ID, r.o.Limits.Points)
			if err != nil {
				return live.WithoutCommands(err)
			}
			r.live.LoseParked(t.Session, errTaken)
			return r.work.WriteUntilStored(ctx, func(ctx context.Context) error {
				lost, err := r.live.FindRollback(ctx, row, from, "a turn with tries went on from the state before")
				if err != nil {
					return err
				}
				_, err = r.work.Store.UpdateSession(ctx, t.Project, t.Session, func(s *record.Session) error {
					if s.State == record.SessionDeleted {
						return live.SessionGone()
					}
					s.State, s.Reason, s.Saved, s.Disk, s.Executions = record.SessionPaused, "", info.Head.Saved, info.Disk, info.Head.Executions
					if before := row.Rollback; len(lost.Executions) > 0 && (before == nil || len(lost.Executions) > len(before.Executions)) {
						s.Rollback = lost // other code ran in the session meanwhile
					}
					return nil
				})
				return err
			})
		})
	})
}

// dropTries removes the forks of tries.
func (r *Runner) dropTries(ctx context.Context, project string, tries ...record.Turn) {
	ctx = context.WithoutCancel(ctx)
	for _, t := range tries {
		if err := r.live.DeleteSessionRow(ctx, project, t.Session); err != nil && problem.Of(err).Kind != problem.NotFound {
			r.work.Log.WarnContext(ctx, "the session of a try was not removed", "session", t.Session, "error", err)
		}
	}
}
