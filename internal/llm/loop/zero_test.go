package loop_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
)

// Where a limit is 0 nothing is limited by it, but a turn has a bound of steps and of what the model is sent.
func TestZeroIsNoLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := loop.DefaultLimits()
		costly := says{parts: []model.Part{
			model.CallDelta{ID: "1", Name: "python", Arguments: `{"code":"a"}`},
			model.Finish{Reason: model.FinishCalls, Calls: []model.ToolCall{{ID: "1", Name: "python", Arguments: `{"code":"a"}`}}, Usage: model.Usage{InputTokens: 2 * d.Tokens}},
		}}
		m := &scripted{t: t, can: tools(), script: []says{costly, text("Done.")}}
		s := &lasting{session: &session{}}
		got := ask(t, newConversation(m, s, loop.Limits{Steps: d.Steps, Result: d.Result}), "q")
		if got.err != nil || got.answer.Text != "Done." || got.answer.Reason != loop.Complete {
			t.Errorf("the answer is %+v, %v", got.answer, got.err)
		}
		if len(s.ran) != 1 || s.ran[0].Timeout != 0 {
			t.Errorf("it ran %+v", s.ran)
		}
	})
}

// lasting is a session in which code takes a year.
type lasting struct{ *session }

func (s *lasting) Execute(_ context.Context, req loop.Program) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		s.ran = append(s.ran, req)
		time.Sleep(365 * 24 * time.Hour)
		yield(kernel.Done{Outcome: kernel.OutcomeOK}, nil)
	}
}

func TestLimitsThatMustBe(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*loop.Limits){
		"steps": func(l *loop.Limits) { l.Steps = 0 }, "steps below 0": func(l *loop.Limits) { l.Steps = -1 },
		"result": func(l *loop.Limits) { l.Result = 0 }, "tokens below 0": func(l *loop.Limits) { l.Tokens = -1 },
		"time below 0": func(l *loop.Limits) { l.Time = -1 }, "execution below 0": func(l *loop.Limits) { l.Execution = -1 },
	} {
		l := loop.DefaultLimits()
		change(&l)
		m := &scripted{t: t, can: tools()}
		if got := ask(t, newConversation(m, &session{}, l), "q"); problem.Of(got.err).Code != "config_invalid" || len(m.requests) > 0 {
			t.Errorf("%s: %+v, %v", name, got.answer, got.err)
		}
	}
}
