package turns

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cove/internal/llm/agreement"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/server/hub/record"
)

// decided says whether the tries that have ended show which is right.
func (p *plan) decided(over []*try) bool {
	if p.tries.Check != "" {
		return slices.ContainsFunc(over, (*try).right)
	}
	groups := agreeing(p.turn.Prompt, over)
	return len(groups) > 0 && 2*len(groups[0]) > p.tries.Number
}

// agreeing are the tries with an answer, those together that answer the same, the most first.
func agreeing(question string, tries []*try) (groups [][]*try) {
	var answers []string
	var answered []*try
	for _, t := range tries {
		if t.right() {
			answered, answers = append(answered, t), append(answers, t.answer.Text)
		}
	}
	for _, places := range agreement.Groups(question, answers) {
		var group []*try
		for _, at := range places {
			group = append(group, answered[at])
		}
		groups = append(groups, group)
	}
	return groups
}

// chooseTry returns the try that is the answer, and why; nil when none has an answer.
func (r *Runner) chooseTry(p *plan, over []*try) (*try, record.TurnTries) {
	about := record.TurnTries{Number: p.tries.Number, Agree: 1}
	groups := agreeing(p.turn.Prompt, over)
	if len(groups) == 0 && p.tries.Check != "" { // none passes: what most say is the best that there is, and the notice says so
		for _, t := range over {
			t.turn.Tries.Passed = nil
		}
		groups = agreeing(p.turn.Prompt, over)
		about.Failed = true
	} else if p.tries.Check != "" {
		about.Why = record.ChosenByCheck
	}
	if len(groups) == 0 {
		return nil, about
	}
	chosen := groups[0][0]
	switch {
	case about.Why == record.ChosenByCheck:
	case len(groups[0]) > 1:
		about.Why = record.ChosenByMost
	case len(groups) == 1:
		about.Why = record.ChosenFirst
	default:
		about.Why = record.ChosenFirst
		if voted := r.voteForTry(p, groups); voted != nil {
			chosen, about.Why = voted, record.ChosenByModel
		}
	}
	about.Chosen = chosen.turn.ID
	if len(groups[0]) > 1 {
		about.Agree = len(groups[0])
	}
	return chosen, about
}

// ballot is what the model is asked in a vote: the question and the answers, as much of each as its window has room for, with the rest of it for the reply.
func ballot(question string, answers []string, window int64) string {
	const most, instructions = 32_000, 100 // tokens, where the model takes so many
	tokens := int64(most)
	if window > 0 {
		tokens = min(tokens, window-window/4)
	}
	tokens = max(tokens-instructions, 0)
	text := "Programs answered one question, each in its own way. Which answer is right? Check them against the question, and reply with the number of the right one alone.\n\nQuestion:\n" + loop.CutToTokens(question, tokens/3)
	for i, answer := range answers {
		text += fmt.Sprintf("\n\nAnswer %d:\n%s", i+1, loop.CutToTokens(answer, min(2000, tokens*2/3/int64(len(answers)))))
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// voteForTry asks the model which of several answers is right; nil when it does not say.
func (r *Runner) voteForTry(p *plan, groups [][]*try) *try {
	ctx, cancel := record.WithLimit(p.work, r.o.Turns.Time)
	defer cancel()
	window := p.spec.Context
	if ask := p.model.Capabilities().Window; window == 0 && ask != nil {
		window = ask(ctx)
	}
	answers := make([]string, len(groups))
	for i, group := range groups {
		answers[i] = group[0].answer.Text
	}
	numbers := agreement.Numbers(r.voteReply(ctx, p, ballot(p.turn.Prompt, answers, window)))
	if len(numbers) == 0 {
		return nil
	}
	for i, group := range groups {
		if numbers[len(numbers)-1] == float64(i+1) {
			return group[0]
		}
	}
	return nil
}

// voteReply returns what the model replies to a ballot, "" when it fails or has no end.
func (r *Runner) voteReply(ctx context.Context, p *plan, text string) string {
	const longest = 16 << 10 // bytes of a reply
	ask := model.Message{Role: model.RoleUser, Content: []model.Content{model.Text{Text: text}}}
	reply := ""
	req := model.Request{Messages: []model.Message{ask}}
	for part, err := range p.model.Stream(ctx, req) {
		if err != nil {
			return ""
		}
		switch part := part.(type) {
		case model.TextDelta:
			if reply += part.Text; len(reply) > longest {
				r.countVote(p, model.Estimate(req, int64(len(reply))))
				return ""
			}
		case model.Finish:
			r.countVote(p, part.Usage)
		}
	}
	return reply
}

// countVote adds what a vote took to what the turn and its key have taken.
func (r *Runner) countVote(p *plan, usage model.Usage) {
	cost := r.about(p.model.Name()).Cost(usage)
	r.meter.AddUsage(p.work, p.who, used(usage, cost))
	p.took(usage, cost)
}

// reportChoice says what was chosen, in a line for people.
func reportChoice(t record.TurnTries, chosen *try) string {
	switch t.Why {
	case record.ChosenByCheck:
		return fmt.Sprintf("This is try %d of %d, which passed the check.", chosen.place, t.Number)
	case record.ChosenByMost:
		return fmt.Sprintf("This is try %d of %d: %d answered the same.", chosen.place, t.Number, t.Agree)
	case record.ChosenByModel:
		return fmt.Sprintf("This is try %d of %d: the answers differ, and the model holds it for right.", chosen.place, t.Number)
	}
	return fmt.Sprintf("This is try %d of %d: nothing shows which is right.", chosen.place, t.Number)
}
