package hub

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// Turn returns a turn. Needs auth.ConversationsRead.
func (h *Hub) Turn(ctx context.Context, who auth.Principal, id string) (Turn, error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return Turn{}, err
	}
	return h.turn(ctx, who.Project, id)
}

// turn returns a turn's record; for a hidden turn that is the one in memory.
func (h *Hub) turn(ctx context.Context, project, id string) (Turn, error) {
	if t, ok := h.turns.record(id); ok && t.Project == project && t.Hidden {
		return t, nil
	}
	if _, err := h.recall(ctx, project, "", id); err != nil {
		return Turn{}, err
	}
	return h.work.Store.Turn(ctx, project, id)
}

// Turns lists the turns of a conversation, all branches. Needs auth.ConversationsRead.
func (h *Hub) Turns(ctx context.Context, who auth.Principal, conversation string, p Page) (Listing[Turn], error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return Listing[Turn]{}, err
	}
	p, err := p.OrDefault()
	if err != nil {
		return Listing[Turn]{}, err
	}
	if _, err := h.work.Store.Conversation(ctx, who.Project, conversation); err != nil {
		return Listing[Turn]{}, err
	}
	if _, err := h.recall(ctx, who.Project, conversation, ""); err != nil {
		return Listing[Turn]{}, err
	}
	return h.work.Store.Turns(ctx, who.Project, conversation, p)
}

// Branch returns a turn and those that it goes on from, the oldest first. Needs auth.ConversationsRead.
func (h *Hub) Branch(ctx context.Context, who auth.Principal, turn string) ([]Turn, error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return nil, err
	}
	t, err := h.turn(ctx, who.Project, turn)
	if err != nil {
		return nil, err
	}
	if _, err := h.recall(ctx, who.Project, t.Conversation, ""); err != nil {
		return nil, err
	}
	return h.work.Store.Branch(ctx, who.Project, turn)
}

const (
	// largestConversation bounds the records of a conversation that a turn goes on in, in bytes: each turn reads them and sends them to the model.
	largestConversation = 64 << 20
	// copiesOfRecord is how much memory reading a record takes, as a multiple of its length.
	copiesOfRecord = 4
)

// recall reserves memory for the records of a conversation's turns, or of one turn, and returns their length.
func (h *Hub) recall(ctx context.Context, project, conversation, turn string) (int64, error) {
	size, err := h.work.Store.TurnsSize(ctx, project, conversation, turn)
	if err != nil {
		return 0, err
	}
	return size, bodybudget.Recall(ctx, copiesOfRecord*size)
}

// CancelTurn stops a turn and the code that it runs, and returns at once. Of a turn that has ended it stops the code that waits for results of the client. Needs auth.ConversationsWrite.
func (h *Hub) CancelTurn(ctx context.Context, who auth.Principal, id string) (Turn, error) {
	t, err := Turn{}, who.Require(auth.ConversationsWrite)
	if err == nil {
		if running := h.turns.running(id); running != nil && running.project == who.Project {
			running.stop(canceledTurn()) // also while the store is away
		}
		t, err = h.turn(ctx, who.Project, id)
	}
	switch {
	case err != nil:
	case !t.State.Final():
		err = h.work.RunsElsewhereProblem(ctx, problem.TurnElsewhere, "turn", t.Owner)
	case t.State == TurnWaiting:
		h.StopCodeOfTurn(ctx, t, "the turn that waited for results was cancelled")
	}
	h.work.WriteAudit(ctx, who, "turn.cancel", id, "", err)
	return t, err
}

func canceledTurn() *problem.Error {
	return problem.New(problem.GivenUp, "the turn was cancelled")
}

// ErrTurnRunning is the problem of a conversation in which a turn has not ended.
func ErrTurnRunning() *problem.Error {
	return problem.New(problem.TurnRunning, "the conversation has a turn that has not ended").
		WithHint("wait for its end, cancel it, or begin another conversation")
}

// DeleteTurn removes a finished turn. Turns that go on from it stay. Needs auth.ConversationsWrite. Problems: turn_running.
func (h *Hub) DeleteTurn(ctx context.Context, who auth.Principal, id string) error {
	err := who.Require(auth.ConversationsWrite)
	var t Turn
	if err == nil {
		t, err = h.turn(ctx, who.Project, id)
	}
	switch {
	case err != nil:
	case !t.State.Final():
		err = ErrTurnRunning()
	case t.State == TurnWaiting:
		h.StopCodeOfTurn(ctx, t, "the turn that waited for results was deleted")
	}
	switch {
	case err != nil:
	case t.Hidden:
		err = h.forgetTurn(ctx, t)
	default:
		if err = h.work.Store.DeleteTurn(ctx, who.Project, id); err == nil && t.Tries != nil {
			h.forgetTries(t.Project, t.Conversation, id)
		}
	}
	h.work.WriteAudit(ctx, who, "turn.delete", id, "", err)
	return err
}

// SetForeign replaces Turn.Foreign, which is the surface's own record and leaves no row in the audit log. Needs auth.ConversationsWrite.
func (h *Hub) SetForeign(ctx context.Context, who auth.Principal, turn string, foreign json.RawMessage) error {
	if err := who.Require(auth.ConversationsWrite); err != nil {
		return err
	}
	if h.turns.setForeign(who.Project, turn, foreign) {
		return nil
	}
	return h.work.Store.SetForeign(ctx, who.Project, turn, foreign)
}

// Search finds words in the project's history. Needs auth.ConversationsRead.
func (h *Hub) Search(ctx context.Context, who auth.Principal, query string, p Page) (Listing[Found], error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return Listing[Found]{}, err
	}
	p, err := p.OrDefault()
	if err != nil {
		return Listing[Found]{}, err
	}
	return h.work.Store.Search(ctx, who.Project, query, p)
}

// Models lists the models that can be asked. Needs auth.ModelsRead.
func (h *Hub) Models(ctx context.Context, who auth.Principal) ([]ModelInfo, error) {
	if err := who.Require(auth.ModelsRead); err != nil {
		return nil, err
	}
	if h.o.Models == nil {
		return nil, nil
	}
	return h.o.Models.List(ctx)
}

// OpenModel connects to a model for a surface that passes requests through. The tokens are counted for the caller. Needs auth.ModelsRead and
// auth.ConversationsWrite. Problems: quota_tokens and those of opening it.
func (h *Hub) OpenModel(ctx context.Context, who auth.Principal, name string) (model.Model, error) {
	for _, action := range []auth.Action{auth.ModelsRead, auth.ConversationsWrite} { // asking a model costs, unlike listing models
		if err := who.Require(action); err != nil {
			return nil, err
		}
	}
	if err := h.MayAsk(ctx, who.Project, who.Key); err != nil {
		return nil, err
	}
	m, err := h.openModel(ctx, name)
	if err != nil {
		return nil, err
	}
	return metered{m, h.o.Turns.Time, func(u model.Usage) {
		h.AddUsage(ctx, who, used(u, h.about(m.Name()).Cost(u)))
	}}, nil
}

func (h *Hub) openModel(ctx context.Context, name string) (model.Model, error) {
	if h.o.Models == nil {
		return nil, problem.New(problem.ModelMissing, "the server has no model").WithHint("the operator has to configure one")
	}
	m, err := h.o.Models.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return model.Observed(m), nil
}

// about is what is known of a model.
func (h *Hub) about(name string) model.About {
	if h.o.About == nil {
		return model.About{}
	}
	return h.o.About(name)
}

// used is what the tokens of a model add to the day's counters.
func used(u model.Usage, c model.Cost) Usage {
	return Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Cost: c.Amount, Currency: c.Currency}
}

// metered is a model that counts the tokens of every answer, and bounds an answer by the time of a turn.
type metered struct {
	model.Model
	time  time.Duration
	spend func(model.Usage)
}

func (m metered) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		ctx, cancel := record.WithLimit(ctx, m.time)
		defer cancel()
		said, finished := int64(0), false
		defer func() {
			if !finished && said > 0 {
				m.spend(model.Estimate(req, said)) // a caller that leaves before the end has used the tokens all the same
			}
		}()
		for part, err := range m.Model.Stream(ctx, req) {
			switch p := part.(type) {
			case model.TextDelta:
				said += int64(len(p.Text))
			case model.ReasoningDelta:
				said += int64(len(p.Text))
			case model.CallDelta:
				said += int64(len(p.Name) + len(p.Arguments))
			case model.Finish:
				finished = true
				m.spend(p.Usage)
			}
			if !yield(part, err) {
				return
			}
		}
	}
}

var _ loop.Executor = (*stepper)(nil)
