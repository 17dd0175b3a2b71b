package turns

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/server/auth"
	"cove/internal/server/hub/live"
	"cove/internal/server/hub/record"
)

// waitingPatience is how long the store may take to record that a turn waits, which is how other servers know.
const waitingPatience = 5 * time.Second

// Word is what a user says about code that waits.
type Word struct {
	Step int // that the word is about
	Run  bool
	Code string // that runs instead; "": the model's own
	Note string // for the model, when the code does not run
}

// pending is code that waits for its user's word.
type pending struct {
	record.Waiting
	decided chan loop.Decision // holds one
}

// waiting returns the turns of a project, or of all with "", that wait for their users' word.
func (t *turnTable) waiting(project string) (out []*liveTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.live {
		if l.pending != nil && (project == "" || l.project == project) {
			out = append(out, l)
		}
	}
	return out
}

// ask notes that code of a turn waits; nil: it does no longer.
func (t *turnTable) ask(l *liveTurn, p *pending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.pending, l.turn.Waiting = p, nil; p != nil {
		l.asked, l.turn.Waiting = p, &p.Waiting
	}
}

// asked is what a turn asked last. It may have been decided already: a client hears of the question before the turn waits for the word.
func (t *turnTable) asked(l *liveTurn) *pending {
	t.mu.Lock()
	defer t.mu.Unlock()
	return l.asked
}

// claim gives one caller the right to decide about the code of a step.
func (t *turnTable) claim(l *liveTurn, step int) (*pending, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch p := l.pending; {
	case p == nil:
		return nil, notWaiting()
	case p.Step != step:
		return nil, problem.New(problem.TurnNotWaiting, fmt.Sprintf("the code that waits is that of step %d, not of step %d", p.Step, step)).
			WithHint("look at the turn, and decide about the code that waits now")
	default:
		l.pending, l.turn.Waiting = nil, nil
		return p, nil
	}
}

func notWaiting() error {
	return problem.New(problem.TurnNotWaiting, "no code of the turn waits for approval").WithHint("it was decided before, or the turn has ended: look at the turn")
}

func stoppedWaiting() *problem.Error {
	return problem.New(problem.Draining, "the server stopped while the turn waited for its user's word about code, which did not run").WithHint("ask again in a moment")
}

// ApproveTurn lets code run that waits, other code in its place, or none of it. Needs auth.ConversationsWrite and auth.SessionsExecute. Problems: turn_not_waiting,
// turn_invalid, code_too_large, turn_elsewhere.
func (r *Runner) ApproveTurn(ctx context.Context, who auth.Principal, id string, w Word) (record.Turn, error) {
	t, err := r.approveTurn(ctx, who, id, w)
	detail := "refused"
	switch {
	case w.Run && w.Code != "":
		detail = "edited"
	case w.Run:
		detail = "run"
	}
	r.work.WriteAudit(ctx, who, "turn.approve", id, detail, err)
	return t, err
}

func (r *Runner) approveTurn(ctx context.Context, who auth.Principal, id string, w Word) (record.Turn, error) {
	for _, action := range []auth.Action{auth.ConversationsWrite, auth.SessionsExecute} {
		if err := who.Require(action); err != nil {
			return record.Turn{}, err
		}
	}
	if err := w.check(r.o.Limits.Code); err != nil {
		return record.Turn{}, err
	}
	l := r.table.running(id)
	if l == nil || l.project != who.Project {
		t, err := r.findTurn(ctx, who.Project, id)
		if err == nil && !t.State.Final() {
			err = r.work.RunsElsewhereProblem(ctx, problem.TurnElsewhere, "turn", t.Owner)
		}
		if err == nil {
			err = notWaiting()
		}
		return t, err
	}
	p, err := r.table.claim(l, w.Step)
	if err != nil {
		return record.Turn{}, err
	}
	r.recordWaiting(ctx, l, nil)
	p.decided <- loop.Decision{Run: w.Run, Code: w.Code, Note: w.Note}
	return r.findTurn(ctx, who.Project, id)
}

func (w Word) check(mostCode int) error {
	switch {
	case w.Run && w.Note != "":
		return problem.New(problem.TurnInvalid, "code that runs takes no note").WithHint("leave out note, or refuse the code")
	case !w.Run && w.Code != "":
		return problem.New(problem.TurnInvalid, "code that is refused takes no other code").WithHint(`send "run":true with the code that is to run`)
	case w.Code != "" && strings.TrimSpace(w.Code) == "":
		return problem.New(problem.TurnInvalid, "the code that is to run instead is empty").WithHint("refuse the code, or leave out code")
	case len(w.Code) > mostCode:
		return problem.New(problem.CodeTooLarge, fmt.Sprintf("the code has more than %d MiB", mostCode>>20)).WithHint("put data into a file and have the code read that")
	case len(w.Note) > live.LongestNote:
		return problem.New(problem.TurnInvalid, "the note has more than 4 KiB")
	}
	return nil
}

// noteWaiting notes that code waits, before a client can hear of it.
func (r *Runner) noteWaiting(ctx context.Context, l *liveTurn, e loop.Approval) error {
	if len(r.table.waiting("")) >= live.MostWaiting || len(r.table.waiting(l.project)) >= live.MostProjectWaiting {
		return problem.New(problem.TooManyWaiting, "too many turns wait for approval").WithHint("decide about some of them, or cancel them")
	}
	p := &pending{Waiting: record.Waiting{Step: e.Step, Code: e.Code, Why: e.Why, Since: r.work.Now()}, decided: make(chan loop.Decision, 1)}
	r.table.ask(l, p)
	r.recordWaiting(ctx, l, &p.Waiting)
	return nil
}

// recordWaiting tells other servers. The turn goes on without that.
func (r *Runner) recordWaiting(ctx context.Context, l *liveTurn, w *record.Waiting) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitingPatience)
	defer cancel()
	if err := r.work.Store.SetWaiting(ctx, l.project, l.id, w); err != nil {
		r.work.Log.WarnContext(ctx, "what a turn waits for was not recorded", "turn", l.id, "error", err)
	}
}

// awaitWord waits for the user's word about the code of the last Approval. Meanwhile the session is given back: it may be paused, and others may use it.
func (r *Runner) awaitWord(ctx context.Context, p *plan, l *liveTurn, steps *stepper) (loop.Decision, error) {
	asked := r.table.asked(l)
	if asked == nil {
		return loop.Decision{}, notWaiting()
	}
	defer r.table.ask(l, nil)
	<-steps.marked
	r.live.EndLease(steps.lease)
	if r.live.IsDraining() {
		l.stop(stoppedWaiting())
	}
	late := time.NewTimer(r.o.Limits.Approval)
	defer late.Stop()
	var d loop.Decision
	select {
	case d = <-asked.decided:
	case <-late.C:
		why := problem.New(problem.ApprovalLate, fmt.Sprintf("nobody said within %s whether the code may run; it did not", r.o.Limits.Approval)).WithHint("ask again")
		l.stop(why)
		return d, why
	case <-ctx.Done():
		return d, context.Cause(ctx)
	}
	s, err := r.live.AcquireSession(p.work, p.turn.Project, p.turn.Session)
	if err != nil {
		return d, err
	}
	steps.lease.Seat, steps.Live = s, s.Live
	return d, nil
}
