package hub

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// longestRating bounds the reason of a rating, in characters.
const longestRating = 2000

// RateTurn rates a turn that has ended, or with nil takes its rating back. Needs auth.ConversationsWrite. Problems: turn_running, turn_invalid.
func (h *Hub) RateTurn(ctx context.Context, who auth.Principal, id string, r *Rating) (Turn, error) {
	t, err := h.rateTurn(ctx, who, id, r)
	h.work.WriteAudit(ctx, who, "turn.rate", id, "", err)
	return t, err
}

func (h *Hub) rateTurn(ctx context.Context, who auth.Principal, id string, r *Rating) (Turn, error) {
	t, err := Turn{}, who.Require(auth.ConversationsWrite)
	if err == nil {
		t, err = h.turn(ctx, who.Project, id)
	}
	switch {
	case err != nil:
		return Turn{}, err
	case !t.State.Final():
		return Turn{}, ErrTurnRunning()
	case r != nil && utf8.RuneCountInString(r.Reason) > longestRating:
		return Turn{}, problem.New(problem.TurnInvalid, fmt.Sprintf("the reason of a rating has at most %d characters", longestRating))
	case r != nil:
		r = &Rating{Good: r.Good, Reason: strings.TrimSpace(strings.ToValidUTF8(r.Reason, "\uFFFD")), User: who.User, At: h.work.Now().UTC()}
	}
	if err := h.work.Store.SetRating(ctx, who.Project, id, r); err != nil {
		return Turn{}, err
	}
	t.Rating = r
	return t, nil
}

// RatedTurns lists the turns that have a rating, the newest first, without their messages. Needs auth.ConversationsRead.
func (h *Hub) RatedTurns(ctx context.Context, who auth.Principal, p Page) (Listing[Turn], error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return Listing[Turn]{}, err
	}
	return h.work.Store.RatedTurns(ctx, who.Project, p)
}
