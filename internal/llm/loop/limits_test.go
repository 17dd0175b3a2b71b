package loop_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLimits(t *testing.T) {
	t.Parallel()
	bad := map[string][]kernel.Event{"bad": raises("ValueError", "no")}
	down := says{err: problem.New(problem.ModelUnavailable, "503")}
	cut := says{parts: []model.Part{
		model.CallDelta{ID: "1", Name: "python", Arguments: `{"code":"print(`}, model.Finish{Reason: model.FinishLength, Usage: usage()},
	}}
	for _, c := range []turnCase{
		{
			name: "steps", limits: loop.Limits{Steps: 2},
			script: []says{calls("a"), calls("b"), calls("c"), text("So far: b.")},
			ran:    []string{"a", "b"}, answer: "So far: b.", reason: loop.StepLimit,
			results: []string{"", "", "", "limit of 2 code executions"}, notices: []string{"Reached the limit of 2"},
		}, {
			name: "an answer after the last step is complete", limits: loop.Limits{Steps: 1},
			script: []says{calls("a"), text("Done.")},
			ran:    []string{"a"}, answer: "Done.",
		}, {
			name: "steps among calls of one answer", limits: loop.Limits{Steps: 1},
			script: []says{calls("a", "b"), text("So far: a.")},
			ran:    []string{"a"}, answer: "So far: a.", reason: loop.StepLimit, notices: []string{"Reached"},
		}, {
			name: "calls that cannot be run count", limits: loop.Limits{Steps: 2},
			script: []says{rawCalls(model.ToolCall{ID: "1", Name: "ls"}), rawCalls(model.ToolCall{ID: "2", Name: "ls"}),
				rawCalls(model.ToolCall{ID: "3", Name: "ls"}), text("No.")},
			answer: "No.", reason: loop.StepLimit, notices: []string{"could not", "could not", "Reached"},
		}, {
			name: "steps of a model without tools", fenced: true, limits: loop.Limits{Steps: 1},
			script: []says{text("```python\na\n```"), text("```python\nb\n```"), text("So far: a.")},
			ran:    []string{"a"}, answer: "So far: a.", reason: loop.StepLimit, notices: []string{"Reached"},
		}, {
			name: "steps, and the service is down", limits: loop.Limits{Steps: 1},
			script:   []says{calls("a"), calls("b"), down},
			outcomes: map[string][]kernel.Event{"a": prints("41\n")},
			ran:      []string{"a"}, reason: loop.StepLimit, notices: []string{"Reached"},
			answer: "I reached the limit of 1 code executions before I could finish. The last result was:\n\n41",
		}, {
			name: "tokens", limits: loop.Limits{Tokens: 200},
			script: []says{calls("a"), calls("b"), text("So far: a.")},
			ran:    []string{"a"}, answer: "So far: a.", reason: loop.TokenLimit, notices: []string{"limit of 200 tokens"},
		}, {
			name: "tokens do not spoil a complete answer", limits: loop.Limits{Tokens: 50},
			script: []says{text("Done.")},
			answer: "Done.",
		}, {
			name:   "a call cut off, then a shorter one",
			script: []says{cut, calls("a"), text("Ok.")},
			ran:    []string{"a"}, answer: "Ok.", notices: []string{"cut off"},
			results: []string{"", "Your call was cut off"},
		}, {
			name:   "calls cut off again and again",
			script: []says{cut, cut, cut, text("I could not.")},
			answer: "I could not.", reason: loop.Length, notices: []string{"cut off", "cut off", "Reached"},
		}, {
			name:   "the same failing code again and again",
			script: []says{calls("bad"), calls("bad"), calls("bad"), calls("bad"), text("I could not.")}, outcomes: bad,
			ran: []string{"bad", "bad", "bad"}, answer: "I could not.", reason: loop.Repeated,
			results: []string{"", "", "", "failed 3 times. Do not send it again"}, notices: []string{"Reached the end of the attempts"},
		}, {
			name:   "another approach after the warning",
			script: []says{calls("bad"), calls("bad"), calls("bad"), calls("good"), text("Ok.")}, outcomes: bad,
			ran: []string{"bad", "bad", "bad", "good"}, answer: "Ok.",
		},
	} {
		t.Run(c.name, c.run)
	}
}

func TestLastCallIsWithoutTools(t *testing.T) {
	t.Parallel()
	m := &scripted{t: t, can: tools(), script: []says{calls("a"), calls("b"), text("So far.")}}
	s := &session{outcomes: map[string][]kernel.Event{"a": prints("41\n")}}
	ask(t, newConversation(m, s, within(loop.Limits{Steps: 1})), "q")
	last := m.requests[2]
	if len(last.Tools) != 0 || last.MaxTokens <= 0 || strings.Contains(last.System, "call the tool") {
		t.Errorf("tools %v, %d tokens, system:\n%s", last.Tools, last.MaxTokens, last.System)
	}
	if got := texts(last.Messages[1]); got != "```python\na\n```" {
		t.Errorf("the call is told as %q", got)
	}
	if got := texts(last.Messages[2]); got != "Result of the code:\n```\n41\n```" {
		t.Errorf("the result is told as %q", got)
	}
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	limits := within(loop.Limits{Time: 10 * time.Minute, Execution: 7 * time.Minute})
	for name, c := range map[string]struct {
		script []says
		ran    int
		answer string
	}{
		"the model takes too long":           {[]says{calls("slow"), {hang: true}, text("So far.")}, 1, "So far."},
		"the code takes too long":            {[]says{calls("slow"), calls("slow "), text("So far.")}, 2, "So far."},
		"the model never answers":            {[]says{{hang: true}, {hang: true}}, 0, "I reached the time limit of 10m0s before I could finish. No code was run."},
		"an answer just in time is complete": {[]says{calls("slow"), text("Done.")}, 1, "Done."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &scripted{t: t, can: tools(), script: c.script}
				s := &slow{session: &session{}}
				began := time.Now()
				got := ask(t, newConversation(m, s, limits), "q")
				if got.err != nil {
					t.Fatal(got.err)
				}
				if took := time.Since(began); took > limits.Time {
					t.Errorf("the turn took %s", took)
				}
				reason := loop.TimeLimit
				if got.answer.Text == "Done." {
					reason = loop.Complete
				}
				if got.answer.Text != c.answer || got.answer.Reason != reason || len(s.ran) != c.ran {
					t.Errorf("answer %+v after %d executions", *got.answer, len(s.ran))
				}
				for n, want := range []time.Duration{7 * time.Minute, 2 * time.Minute}[:c.ran] {
					if s.ran[n].Timeout != want {
						t.Errorf("execution %d was given %s, want %s", n+1, s.ran[n].Timeout, want)
					}
				}
			})
		})
	}
	t.Run("the caller's own deadline", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := contextWithTimeout(t, time.Second)
			defer cancel()
			m := &scripted{t: t, can: tools(), script: []says{{hang: true}}}
			got := askContext(t, ctx, newConversation(m, &session{}, limits), "q")
			if p := problem.Of(got.err); p == nil || p.Kind != problem.Timeout {
				t.Errorf("error %v", got.err)
			}
		})
	})
}
