package interpreter

import (
	"context"
	"strings"
	"time"
)

// Decision is what a user says about code of the model's before it runs.
type Decision struct {
	Run  bool
	Code string // that runs instead; "": the model's own
	Note string // for the model, when the code does not run
}

// next is the number of the execution that comes next. Code that the user refused has used its number up: no later code is taken for it.
func (t *turn) next() int { return t.steps + t.refused + 1 }

// decide has the user say whether code runs, where the turn asks for that. What the user takes to decide does not count against the turn's time.
func (t *turn) decide(ctx context.Context, step int, code string) (Decision, error) {
	if t.spec.Approve == nil {
		return Decision{Run: true, Code: code}, nil
	}
	if err := t.emit(Approval{step, code}); err != nil {
		return Decision{}, err
	}
	began, stopped := time.Now(), t.clock == nil || t.clock.Stop()
	d, err := t.spec.Approve(ctx, step)
	waited := time.Since(began)
	t.end, t.deadline = t.end.add(waited), t.deadline.add(waited)
	if t.clock != nil && stopped {
		t.clock.Reset(time.Until(t.end.add(lastWords).at))
	}
	if strings.TrimSpace(d.Code) == "" {
		d.Code = code
	}
	return d, err
}

// bound ends a context at the end of the turn, which moves while the user decides.
func (t *turn) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	last := t.end.add(lastWords)
	if t.spec.Approve == nil || last.at.IsZero() {
		return last.bound(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	t.clock = time.AfterFunc(time.Until(last.at), func() { cancel(context.DeadlineExceeded) })
	return ctx, func() {
		t.clock.Stop()
		cancel(nil)
	}
}

// refuse tells the model that the user did not want its code to run.
func (t *turn) refuse(step int, note string) (outcome, error) {
	t.refused++
	text := "Not run: the user looked at this code and did not want it to run."
	if note = strings.TrimSpace(note); note != "" {
		text += " They say: " + note
	}
	text += " Do not send the same code again: take another way, or answer without it."
	t.lastText = text
	return outcome{text: text, failed: true}, t.emit(Refused{step, note})
}

// editedHead begins the result of code that the user changed before it ran.
func editedHead(code string) string {
	return "[The user changed your code before it ran. This ran:]\n" + fence("python", code) + "\n[Its result:]\n"
}
