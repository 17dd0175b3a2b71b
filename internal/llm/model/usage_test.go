package model_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/llm/model"
	"cove/internal/llm/model/modeltest"
)

// TestUsageIsBelievedWhereItCanBe has the service tell counts that are true, missing and impossible.
func TestUsageIsBelievedWhereItCanBe(t *testing.T) {
	t.Parallel()
	question := "Why? " + strings.Repeat("because ", 500) // 4 KB: about 1000 tokens, with the tool and the system prompt
	onEachWire(t, func(t *testing.T, connect func(model.Limits, ...modeltest.Turn) (model.Model, *modeltest.Server)) {
		for name, c := range map[string]struct {
			turn      modeltest.Turn
			input     [2]int64 // at least, at most
			output    [2]int64
			estimated bool
		}{
			"told":            {modeltest.Turn{Input: 900, Output: 40}, [2]int64{900, 900}, [2]int64{40, 40}, false},
			"hidden thoughts": {modeltest.Turn{Input: 900, Output: 60_000, Reasoned: 59_000}, [2]int64{900, 900}, [2]int64{60_000, 60_000}, false},
			"nothing":         {modeltest.Turn{}, [2]int64{1000, 1100}, [2]int64{100, 100}, true},
			"negative":        {modeltest.Turn{Input: -5, Output: -5}, [2]int64{1000, 1100}, [2]int64{100, 100}, true},
			"too many":        {modeltest.Turn{Input: math.MaxInt64, Output: math.MaxInt64}, [2]int64{1000, 1100}, [2]int64{100, 100}, true},
			"one of them":     {modeltest.Turn{Input: 900, Output: math.MinInt64}, [2]int64{900, 900}, [2]int64{100, 100}, true},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c.turn.Text = []string{strings.Repeat("yes ", 100)}
				m, _ := connect(model.Limits{}, c.turn)
				h := listen(m.Stream(t.Context(), ask(question)))
				if h.problem != nil || len(h.finishes) != 1 {
					t.Fatal(h.problem)
				}
				u := h.finishes[0].Usage
				if u.InputTokens < c.input[0] || u.InputTokens > c.input[1] || u.OutputTokens < c.output[0] || u.OutputTokens > c.output[1] || u.Estimated != c.estimated {
					t.Errorf("%+v", u)
				}
			})
		}
		t.Run("details", func(t *testing.T) {
			t.Parallel()
			m, server := connect(model.Limits{}, modeltest.Turn{Text: []string{"yes"}, Input: 900, Output: 40, Cached: 800, Reasoned: 30})
			h := listen(m.Stream(t.Context(), ask(question)))
			want := model.Usage{InputTokens: 900, OutputTokens: 40, CachedTokens: 800, ReasoningTokens: 30}
			if strings.HasSuffix(server.Requests()[0].Path, "/messages") {
				want.ReasoningTokens = 0 // that format does not say
			}
			if diff := cmp.Diff(want, h.finishes[0].Usage); diff != "" {
				t.Error(diff)
			}
		})
	})
}

func TestUsageAddsUp(t *testing.T) {
	t.Parallel()
	most := model.Usage{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, CachedTokens: -5, Estimated: true}
	u := model.Usage{InputTokens: 1, OutputTokens: 2, CachedTokens: 3}.Plus(most).Plus(most)
	if diff := cmp.Diff(model.Usage{InputTokens: model.MostTokens, OutputTokens: model.MostTokens, CachedTokens: 3, Estimated: true}, u); diff != "" || u.Total() != model.MostTokens {
		t.Error(diff, u.Total())
	}
}
