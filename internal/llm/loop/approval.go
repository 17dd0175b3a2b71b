package loop

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

	rules string // why rules do not let the code run; "": they do
}

// Screening says what becomes of a program before it runs. Its zero value lets it run.
type Screening struct {
	Ask    bool   // it waits for the user's word
	Why    string // what in it calls for that, where not all code waits
	Refuse string // it does not run, because of this; "": it may
}

// screen asks what becomes of a program.
func (t *turn) screen(code string) Screening {
	if t.spec.Screen == nil {
		return Screening{Ask: t.spec.Approve != nil}
	}
	return t.spec.Screen(code)
}

// next is the number of the execution that comes next. Code that the user refused has used its number up: no later code is taken for it.
func (t *turn) next() int { return t.steps + t.refused + 1 }

// decide has the user say whether code runs, where the turn asks for that. What the user takes to decide does not count against the turn's time.
func (t *turn) decide(ctx context.Context, step int, code string) (Decision, error) {
	s := t.screen(code)
	if s.Refuse != "" {
		return Decision{Code: code, rules: s.Refuse}, nil
	}
	if !s.Ask || t.spec.Approve == nil {
		return Decision{Run: true, Code: code}, nil
	}
	if err := t.emit(Approval{step, code, s.Why}); err != nil {
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
	if d.Run && d.Code != code {
		if why := t.screen(d.Code).Refuse; why != "" {
			d.Run, d.rules = false, why
		}
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

// refuse tells the model that its code did not run, because the user did not want it to or rules do not let it.
func (t *turn) refuse(step int, d Decision) (outcome, error) {
	t.refused++
	if d.rules != "" {
		t.lastText = "Not run: the rules of this place do not let this code run. " + d.rules + ". Do not send it again in another form: take another way, or answer without it."
		return outcome{text: t.lastText, failed: true}, t.emit(Refused{Step: step, Why: d.rules, Code: d.Code})
	}
	note := d.Note
	text := "Not run: the user looked at this code and did not want it to run."
	if note = strings.TrimSpace(note); note != "" {
		text += " They say: " + note
	}
	text += " Do not send the same code again: take another way, or answer without it."
	t.lastText = text
	return outcome{text: text, failed: true}, t.emit(Refused{Step: step, Note: note})
}

// editedHead begins the result of code that the user changed before it ran.
func editedHead(code string) string {
	return "[The user changed your code before it ran. This ran:]\n" + fence("python", code) + "\n[Its result:]\n"
}
