package turns

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// longestRating bounds the reason of a rating, in characters.
const longestRating = 2000

// RateTurn rates a turn that has ended, or with nil takes its rating back. Needs auth.ConversationsWrite. Problems: turn_running, turn_invalid.
func (r *Runner) RateTurn(ctx context.Context, who auth.Principal, id string, given *record.Rating) (record.Turn, error) {
	t, err := r.rateTurn(ctx, who, id, given)
	r.work.WriteAudit(ctx, who, "turn.rate", id, "", err)
	return t, err
}

func (r *Runner) rateTurn(ctx context.Context, who auth.Principal, id string, given *record.Rating) (record.Turn, error) {
	t, err := record.Turn{}, who.Require(auth.ConversationsWrite)
	if err == nil {
		t, err = r.findTurn(ctx, who.Project, id)
	}
	switch {
	case err != nil:
		return record.Turn{}, err
	case !t.State.Final():
		return record.Turn{}, ErrTurnRunning()
	case given != nil && utf8.RuneCountInString(given.Reason) > longestRating:
		return record.Turn{}, problem.New(problem.TurnInvalid, fmt.Sprintf("the reason of a rating has at most %d characters", longestRating))
	case given != nil:
		given = &record.Rating{Good: given.Good, Reason: strings.TrimSpace(strings.ToValidUTF8(given.Reason, "\uFFFD")), User: who.User, At: r.work.Now().UTC()}
	}
	if err := r.work.Store.SetRating(ctx, who.Project, id, given); err != nil {
		return record.Turn{}, err
	}
	t.Rating = given
	return t, nil
}

// RatedTurns lists the turns that have a rating, the newest first, without their messages. Needs auth.ConversationsRead.
func (r *Runner) RatedTurns(ctx context.Context, who auth.Principal, p record.Page) (record.Listing[record.Turn], error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return record.Listing[record.Turn]{}, err
	}
	return r.work.Store.RatedTurns(ctx, who.Project, p)
}
