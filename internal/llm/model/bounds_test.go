package model_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/llm/model"
	"cove/internal/llm/model/modeltest"
)

// TestAnswersThatAreTooLong has the service say more than an answer may have: in one token, without an end, and in what no part is made of.
func TestAnswersThatAreTooLong(t *testing.T) {
	t.Parallel()
	calls := func(n int, name string) []modeltest.Call {
		return slices.Repeat([]modeltest.Call{{Name: name, Arguments: `{}`}}, n)
	}
	const limit = 1 << 20
	onEachWire(t, func(t *testing.T, connect func(model.Limits, ...modeltest.Turn) (model.Model, *modeltest.Server)) {
		for name, turn := range map[string]modeltest.Turn{
			"one token":         {Text: []string{"a", strings.Repeat("x", 30<<20)}},
			"one thought":       {Reasoning: []string{strings.Repeat("x", 3*limit/2)}},
			"one call":          {Calls: []modeltest.Call{{Arguments: `{"code":"` + strings.Repeat("x", 30<<20) + `"}`, Fragment: 1 << 30}}},
			"words for ever":    {Text: slices.Repeat([]string{strings.Repeat("word ", 1000)}, 8), Fault: modeltest.Fault{RepeatAfter: 5}},
			"thoughts for ever": {Reasoning: slices.Repeat([]string{strings.Repeat("hm ", 1000)}, 8), Fault: modeltest.Fault{RepeatAfter: 5}},
			"many calls":        {Calls: calls(200, "python")},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m, server := connect(model.Limits{Answer: limit}, turn, turn)
				h := listen(m.Stream(t.Context(), ask("go")))
				if h.code() != "model_answer_too_long" {
					t.Fatalf("problem %v after %d bytes", h.problem, len(h.text)+len(h.reasoning))
				}
				if said := len(h.text) + len(h.reasoning) + len(strings.Join(h.arguments, "")); said > limit || len(h.finishes) > 0 {
					t.Errorf("%d bytes were passed on", said)
				}
				if len(server.Requests()) != 1 {
					t.Errorf("it was asked %d times", len(server.Requests()))
				}
			})
		}
		t.Run("just fits", func(t *testing.T) {
			t.Parallel()
			m, _ := connect(model.Limits{Answer: limit}, modeltest.Turn{Reasoning: []string{"hm"}, Text: []string{strings.Repeat("\n", limit/2)}, Calls: calls(100, "python")})
			if h := listen(m.Stream(t.Context(), ask("go"))); h.problem != nil || len(h.text) != limit/2 || len(h.finishes[0].Calls) != 100 {
				t.Errorf("%v", h.problem)
			}
		})
	})
}

// TestServersThatOnlyKeepAlive sends what is no answer, for ever: a stall is that the answer does not go on, not that nothing comes.
func TestServersThatOnlyKeepAlive(t *testing.T) {
	t.Parallel()
	onEachWire(t, func(t *testing.T, connect func(model.Limits, ...modeltest.Turn) (model.Model, *modeltest.Server)) {
		for name, c := range map[string]struct {
			turn modeltest.Turn
			code string
		}{
			"comments":               {modeltest.Turn{Text: []string{"a", "b", "c"}, Fault: modeltest.Fault{CommentsAfter: 4}}, "model_stalled"},
			"empty words":            {modeltest.Turn{Text: []string{"a", "", "", "", "", ""}, Fault: modeltest.Fault{RepeatAfter: 5}}, "model_stalled"},
			"empty thoughts":         {modeltest.Turn{Reasoning: []string{"a", "", "", "", "", ""}, Fault: modeltest.Fault{RepeatAfter: 5}}, "model_stalled"},
			"comments and no answer": {modeltest.Turn{Text: []string{"a"}, Fault: modeltest.Fault{CommentsAfter: 1}}, "model_first_token_timeout"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c.turn.Delay = time.Millisecond
				limits := model.Limits{Stall: 200 * time.Millisecond, FirstToken: time.Minute} // on a busy machine the first words take long
				if c.code == "model_first_token_timeout" {
					limits.FirstToken = 200 * time.Millisecond
				}
				m, _ := connect(limits, c.turn)
				if h := listen(m.Stream(t.Context(), ask("go"))); h.code() != c.code {
					t.Errorf("problem %v", h.problem)
				}
			})
		}
		t.Run("comments before a slow answer", func(t *testing.T) {
			t.Parallel()
			m, _ := connect(model.Limits{FirstToken: 10 * time.Second, Stall: 10 * time.Second}, modeltest.Turn{Text: []string{"a", "b"}, Delay: 20 * time.Millisecond})
			if h := listen(m.Stream(t.Context(), ask("go"))); h.problem != nil || h.text != "ab" {
				t.Errorf("%q, %v", h.text, h.problem)
			}
		})
	})
}
