package eval

import (
	"context"
	"slices"
	"sync"

	"cove/internal/llm/agreement"
)

// Tried is what the tries of a task came to. The record has the answer of one that most tries agree with, as cove ask --tries has it, and the tokens and the cost of all.
type Tried struct {
	Number int `json:"number"` // that were judged
	Right  int `json:"right"`
}

// try does a task of its own several times at once, each in a session of its own.
func (r *Runner) try(ctx context.Context, t Task) ([]Record, error) {
	all := make([]Record, r.Plan.Settings.Tries)
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for n := range all {
		running.Go(func() {
			var records []Record
			if records, errs[n] = r.once(ctx, []Task{t}, n); errs[n] == nil {
				all[n] = records[0]
			}
		})
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return []Record{choose(t, all)}, nil
}

// choose makes one record of those of several tries.
func choose(t Task, all []Record) Record {
	tried := Tried{}
	var answers []string
	var answered []Record
	for _, one := range all {
		if !one.Judged {
			continue
		}
		tried.Number++
		if one.Right {
			tried.Right++
		}
		if one.Failure == nil {
			answers, answered = append(answers, one.Answer), append(answered, one)
		}
	}
	out := all[0]
	if groups := agreement.Groups(t.Prompt, answers); len(groups) > 0 {
		out = answered[groups[0][0]]
	} else if at := slices.IndexFunc(all, func(one Record) bool { return one.Judged }); at > 0 {
		out = all[at]
	}
	out.Tried, out.Tokens, out.Cost = &tried, Tokens{}, Cost{}
	for _, one := range all {
		out.Tokens, out.Cost = out.Tokens.plus(one.Tokens), Cost{out.Cost.Amount + one.Cost.Amount, one.Cost.Currency}
		if one.Seconds.Total > out.Seconds.Total { // the answer is there when the last try has ended
			check := out.Seconds.Check
			out.Seconds = one.Seconds
			out.Seconds.Check = check
		}
	}
	return out
}
