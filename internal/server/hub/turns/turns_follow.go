package turns

import (
	"context"
	"encoding/json"

	"cove/internal/core/ident"
	"cove/internal/http/bodybudget"
	"cove/internal/server/auth"
	"cove/internal/server/hub/live"
	"cove/internal/server/stream"
)

// FollowTurn yields the events of a turn with Seq above after, as Follow does for an execution. It ends after the loop.Answer, or
// with the error that ended the turn, also when it ended long ago. Needs auth.ConversationsRead.
func (r *Runner) FollowTurn(ctx context.Context, who auth.Principal, id string, after int64) (live.Follower[json.RawMessage], error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return nil, err
	}
	t, err := r.findTurn(ctx, who.Project, id)
	if err != nil {
		return nil, err
	}
	return live.UntilFailure(r.live.Streams.Follow(ctx, r.live.TurnEvents(t), after)), bodybudget.Recall(ctx, stream.PageSize)
}

// Recorded yields what is stored of a turn or an execution (its id) until now, and does not wait for more. Needs auth.ConversationsRead for a turn and
// auth.SessionsRead for an execution.
func (r *Runner) Recorded(ctx context.Context, who auth.Principal, id string) (live.Follower[json.RawMessage], error) {
	var from stream.Source
	if ident.Valid(ident.Turn, id) {
		t, err := r.Turn(ctx, who, id)
		if err != nil {
			return nil, err
		}
		from = r.live.TurnEvents(t)
	} else {
		e, err := r.live.Execution(ctx, who, id)
		if err != nil {
			return nil, err
		}
		from = r.live.ExecutionEvents(e)
	}
	return r.live.Streams.Recorded(ctx, from), nil
}
