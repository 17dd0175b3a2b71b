package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"cove/internal/http/api"
	"cove/internal/llm/loop"
	"cove/internal/server/transcript"
)

// CreateConversation makes an empty conversation.
func (c *Client) CreateConversation(ctx context.Context, n api.NewConversation) (api.Conversation, error) {
	return create[api.Conversation](ctx, c, "/conversations", n)
}

// Conversation returns a conversation.
func (c *Client) Conversation(ctx context.Context, id string) (api.Conversation, error) {
	return get[api.Conversation](ctx, c, "/conversations"+join(id), nil)
}

// ConversationFilter narrows a list of conversations; empty fields do not.
type ConversationFilter struct{ Session, User, Source string }

// Conversations yields conversations, the one used last first.
func (c *Client) Conversations(ctx context.Context, f ConversationFilter) iter.Seq2[api.Conversation, error] {
	return pages[api.Conversation](ctx, c, "/conversations", url.Values{"session": {f.Session}, "user": {f.User}, "source": {f.Source}})
}

// ChangeConversation changes a conversation.
func (c *Client) ChangeConversation(ctx context.Context, id string, change api.ConversationChange) (api.Conversation, error) {
	return act[api.Conversation](ctx, c, http.MethodPatch, "/conversations"+join(id), change)
}

// DeleteConversation removes a conversation with all its turns.
func (c *Client) DeleteConversation(ctx context.Context, id string) error {
	return c.delete(ctx, "/conversations"+join(id), nil)
}

// Ask begins a turn in a conversation ("" for a new one) and yields what happens, as Run does for code. A turn that fails ends with its problem.
func (c *Client) Ask(ctx context.Context, conversation string, n api.NewTurn) (api.Turn, iter.Seq2[loop.Event, error], error) {
	path := "/turns"
	if conversation != "" {
		path = "/conversations" + join(conversation, "turns")
	}
	t, s, err := begin[api.Turn](ctx, c, path, "turn", n)
	if err != nil {
		return t, nil, err
	}
	return t, c.followTurn(ctx, t.ID, 0, s), nil
}

// FollowTurn yields a turn's events with an id above after, old ones and those that come.
func (c *Client) FollowTurn(ctx context.Context, id string, after int64) iter.Seq2[loop.Event, error] {
	return c.followTurn(ctx, id, after, nil)
}

func (c *Client) followTurn(ctx context.Context, id string, after int64, s *stream) iter.Seq2[loop.Event, error] {
	return follow(ctx, c, "/turns"+join(id, "events"), after, s, transcript.ParseTurnEvent, func(e loop.Event) bool {
		_, answer := e.(loop.Answer)
		return answer
	})
}

// Turn returns a turn.
func (c *Client) Turn(ctx context.Context, id string) (api.Turn, error) {
	return get[api.Turn](ctx, c, "/turns"+join(id), nil)
}

// Turns yields the turns of a conversation, of all branches, the oldest first.
func (c *Client) Turns(ctx context.Context, conversation string) iter.Seq2[api.Turn, error] {
	return pages[api.Turn](ctx, c, "/conversations"+join(conversation, "turns"), nil)
}

// NewestTurn returns the turn of a conversation that was made last, whatever branch it is of, and false where there is none.
func (c *Client) NewestTurn(ctx context.Context, conversation string) (t api.Turn, found bool, err error) {
	page, err := get[api.List[api.Turn]](ctx, c, "/conversations"+join(conversation, "turns"), url.Values{"order": {"newest"}, "limit": {"1"}})
	if err != nil || len(page.Items) == 0 {
		return api.Turn{}, false, err
	}
	return page.Items[0], true, nil
}

// Branch returns a turn and those that it goes on from, the oldest first.
func (c *Client) Branch(ctx context.Context, turn string) ([]api.Turn, error) {
	out, err := get[api.List[api.Turn]](ctx, c, "/turns"+join(turn, "branch"), nil)
	return out.Items, err
}

// ApproveTurn says what becomes of the code that a turn shows before it runs. Problems: turn_not_waiting.
func (c *Client) ApproveTurn(ctx context.Context, id string, w api.Word) (api.Turn, error) {
	return act[api.Turn](ctx, c, http.MethodPost, "/turns"+join(id, "approve"), w)
}

// CancelTurn stops a turn and the code that it runs.
func (c *Client) CancelTurn(ctx context.Context, id string) (api.Turn, error) {
	return act[api.Turn](ctx, c, http.MethodPost, "/turns"+join(id, "cancel"), nil)
}

// RatedTurns yields the answers of the project that people have rated, the newest first.
func (c *Client) RatedTurns(ctx context.Context) iter.Seq2[api.RatedTurn, error] {
	return pages[api.RatedTurn](ctx, c, "/ratings", nil)
}

// DeleteTurn removes a finished turn.
func (c *Client) DeleteTurn(ctx context.Context, id string) error {
	return c.delete(ctx, "/turns"+join(id), nil)
}

// Search yields the places of the history that have all words of query, the newest first.
func (c *Client) Search(ctx context.Context, query string) iter.Seq2[api.Found, error] {
	return pages[api.Found](ctx, c, "/search", url.Values{"q": {query}})
}

// Models lists the models that can be asked.
func (c *Client) Models(ctx context.Context) ([]api.Model, error) {
	out, err := get[api.List[api.Model]](ctx, c, "/models", nil)
	return out.Items, err
}
