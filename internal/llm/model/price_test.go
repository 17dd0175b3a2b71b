package model_test

import (
	"testing"

	"cove/internal/llm/model"
)

func TestCost(t *testing.T) {
	t.Parallel()
	dear := model.Price{Input: 1_250_000, Output: 10_000_000, Cached: new(int64(125_000)), Currency: "USD"}
	plain := model.Price{Input: 300_000, Output: 1_200_000, Currency: "CNY"}
	for name, c := range map[string]struct {
		price *model.Price
		usage model.Usage
		want  model.Cost
	}{
		"no price":            {nil, model.Usage{InputTokens: 1000}, model.Cost{}},
		"nothing used":        {&dear, model.Usage{}, model.Cost{Currency: "USD"}},
		"free":                {&model.Price{Currency: "USD"}, model.Usage{InputTokens: 1000, OutputTokens: 1000}, model.Cost{Currency: "USD"}},
		"a million each":      {&dear, model.Usage{InputTokens: 1e6, OutputTokens: 1e6}, model.Cost{Amount: 11.25, Currency: "USD"}},
		"cached":              {&dear, model.Usage{InputTokens: 1e6, CachedTokens: 8e5}, model.Cost{Amount: 0.35, Currency: "USD"}},
		"cached like input":   {&plain, model.Usage{InputTokens: 1e6, CachedTokens: 8e5}, model.Cost{Amount: 0.3, Currency: "CNY"}},
		"more cached than in": {&dear, model.Usage{InputTokens: 1e6, CachedTokens: 2e6}, model.Cost{Amount: 0.125, Currency: "USD"}},
		"half rounds up":      {&dear, model.Usage{InputTokens: 2}, model.Cost{Amount: 0.000003, Currency: "USD"}},
		"below half":          {&dear, model.Usage{InputTokens: 1}, model.Cost{Amount: 0.000001, Currency: "USD"}},
		"rounded once":        {&plain, model.Usage{InputTokens: 1, OutputTokens: 1}, model.Cost{Amount: 0.000002, Currency: "CNY"}}, // 1.5 millionths
		"thought is output":   {&dear, model.Usage{OutputTokens: 100, ReasoningTokens: 90}, model.Cost{Amount: 0.001, Currency: "USD"}},
		"negative":            {&dear, model.Usage{InputTokens: -5, OutputTokens: -5}, model.Cost{Currency: "USD"}},
		"a lie":               {&model.Price{Input: 999_999_000_000, Currency: "USD"}, model.Usage{InputTokens: 1 << 62}, model.Cost{Amount: model.MostCost, Currency: "USD"}},
	} {
		if got := (model.About{Price: c.price}).Cost(c.usage); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
