package hub

import (
	"fmt"
	"slices"
	"strings"

	"cove/internal/agree"
	"cove/internal/model"
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
	for _, places := range agree.Groups(question, answers) {
		var group []*try
		for _, at := range places {
			group = append(group, answered[at])
		}
		groups = append(groups, group)
	}
	return groups
}

// choose returns the try that is the answer, and why; nil when none has an answer.
func (h *Hub) choose(p *plan, over []*try) (*try, TurnTries) {
	about := TurnTries{Number: p.tries.Number, Agree: 1}
	groups := agreeing(p.turn.Prompt, over)
	if len(groups) == 0 && p.tries.Check != "" { // none passes: what most say is the best that there is, and the notice says so
		for _, t := range over {
			t.turn.Tries.Passed = nil
		}
		groups = agreeing(p.turn.Prompt, over)
		about.Failed = true
	} else if p.tries.Check != "" {
		about.Why = ChosenByCheck
	}
	if len(groups) == 0 {
		return nil, about
	}
	chosen := groups[0][0]
	switch {
	case about.Why == ChosenByCheck:
	case len(groups[0]) > 1:
		about.Why = ChosenByMost
	case len(groups) == 1:
		about.Why = ChosenFirst
	default:
		about.Why = ChosenFirst
		if voted := h.vote(p, groups); voted != nil {
			chosen, about.Why = voted, ChosenByModel
		}
	}
	about.Chosen = chosen.turn.ID
	if len(groups[0]) > 1 {
		about.Agree = len(groups[0])
	}
	return chosen, about
}

// vote asks the model which of several answers is right; nil when it does not say.
func (h *Hub) vote(p *plan, groups [][]*try) *try {
	const longest = 4000 // bytes of an answer
	text := "Programs answered one question, each in its own way. Which answer is right? Check them against the question, and reply with the number of the right one alone.\n\nQuestion:\n" + p.turn.Prompt
	for i, group := range groups {
		answer := group[0].answer.Text
		text += fmt.Sprintf("\n\nAnswer %d:\n%s", i+1, answer[:min(len(answer), longest)])
	}
	ctx, cancel := timed(p.work, h.o.Turns.Time)
	defer cancel()
	said := model.Message{Role: model.RoleUser, Content: []model.Content{model.Text{Text: strings.ToValidUTF8(text, "\uFFFD")}}}
	reply := ""
	for part, err := range p.model.Stream(ctx, model.Request{Messages: []model.Message{said}}) {
		if err != nil {
			return nil
		}
		switch part := part.(type) {
		case model.TextDelta:
			reply += part.Text
		case model.Finish:
			cost := h.about(p.model.Name()).Cost(part.Usage)
			h.spend(p.work, p.who, used(part.Usage, cost))
			p.took(part.Usage, cost)
		}
	}
	numbers := agree.Numbers(reply)
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

// told is what was chosen, in a line for people.
func (t TurnTries) told(chosen *try) string {
	switch t.Why {
	case ChosenByCheck:
		return fmt.Sprintf("This is try %d of %d, which passed the check.", chosen.place, t.Number)
	case ChosenByMost:
		return fmt.Sprintf("This is try %d of %d: %d answered the same.", chosen.place, t.Number, t.Agree)
	case ChosenByModel:
		return fmt.Sprintf("This is try %d of %d: the answers differ, and the model holds it for right.", chosen.place, t.Number)
	}
	return fmt.Sprintf("This is try %d of %d: nothing shows which is right.", chosen.place, t.Number)
}
