package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"cove/internal/auth"
	"cove/internal/hub"
)

// pendingKey is the metadata of a conversation that holds items which were added to it and which no turn has taken yet. It is not shown.
const (
	pendingKey     = "openai.items"
	largestPending = 1 << 20
	mostTurns      = 1000 // of a conversation whose items are listed
)

type conversation struct {
	ID        string            `json:"id"`
	Object    string            `json:"object"`
	CreatedAt int64             `json:"created_at"`
	Metadata  map[string]string `json:"metadata"`
}

func shownConversation(t hub.Conversation) conversation {
	meta := maps.Clone(t.Metadata)
	if meta == nil {
		meta = map[string]string{}
	}
	delete(meta, pendingKey)
	return conversation{conversationID(t.ID), "conversation", t.Created.Unix(), meta}
}

func pendingItems(t hub.Conversation) []json.RawMessage {
	var items []json.RawMessage
	_ = json.Unmarshal([]byte(t.Metadata[pendingKey]), &items)
	return items
}

// readItems reads items that are added to a conversation. They are checked now and become part of the conversation with its next turn.
func (s *server) readItems(c *call, f *form) ([]json.RawMessage, error) {
	if f.err != nil || !f.has("items") {
		return nil, f.err
	}
	if n := len(f.list("items")); n > 20 {
		return nil, invalid("items", "array_above_max_length", fmt.Sprintf("Invalid 'items': array too long. Expected an array with maximum length 20, "+
			"but got an array with length %d instead.", n))
	}
	in := &input{s: s, c: c, dry: true}
	err := in.read(f, "items", f.raw["items"])
	return in.items, err
}

// withPending is metadata that holds items.
func withPending(meta map[string]string, items []json.RawMessage) (map[string]string, error) {
	out := maps.Clone(meta)
	if out == nil {
		out = map[string]string{}
	}
	delete(out, pendingKey)
	if len(items) == 0 {
		return out, nil
	}
	text, err := json.Marshal(items)
	if err == nil && len(text) > largestPending {
		err = invalid("items", "invalid_value", "Invalid 'items': a conversation holds at most 1 MiB of items that no response has used yet.")
	}
	out[pendingKey] = string(text)
	return out, err
}

func (s *server) forgetPending(c *call, b before) error {
	t, err := s.Hub.Conversation(c.Context(), c.who, b.conversation)
	if err != nil {
		return err
	}
	rest := pendingItems(t)
	meta, err := withPending(t.Metadata, rest[min(len(b.pending), len(rest)):])
	if err != nil {
		return err
	}
	_, err = s.Hub.ChangeConversation(c.Context(), c.who, b.conversation, hub.ConversationChange{Metadata: meta})
	return err
}

func (s *server) createConversation(c *call) error {
	f, err := s.readForm(c)
	if err != nil {
		return err
	}
	f.only("items", "metadata")
	meta := f.metadata("metadata")
	items, err := s.readItems(c, f)
	if err != nil {
		return err
	}
	if meta, err = withPending(meta, items); err != nil {
		return err
	}
	t, err := s.Hub.CreateConversation(c.Context(), c.who, hub.NewConversation{Metadata: meta, Source: source})
	if err != nil {
		return err
	}
	return c.reply(shownConversation(t))
}

func (s *server) conversationOf(c *call) (hub.Conversation, error) {
	id, err := ownConversation(c.PathValue("id"))
	if err != nil {
		return hub.Conversation{}, err
	}
	t, err := s.Hub.Conversation(c.Context(), c.who, id)
	return t, named(err, noConversation(c.PathValue("id")))
}

func (s *server) getConversation(c *call) error {
	t, err := s.conversationOf(c)
	if err != nil {
		return err
	}
	return c.reply(shownConversation(t))
}

func (s *server) changeConversation(c *call) error {
	f, err := s.readForm(c)
	if err != nil {
		return err
	}
	f.only("metadata")
	if !f.has("metadata") {
		f.fail(missing("metadata"))
	}
	meta := f.metadata("metadata")
	if f.err != nil {
		return f.err
	}
	t, err := s.conversationOf(c)
	if err != nil {
		return err
	}
	if meta, err = withPending(meta, pendingItems(t)); err != nil {
		return err
	}
	if t, err = s.Hub.ChangeConversation(c.Context(), c.who, t.ID, hub.ConversationChange{Metadata: meta}); err != nil {
		return err
	}
	return c.reply(shownConversation(t))
}

func (s *server) deleteConversation(c *call) error {
	id, err := ownConversation(c.PathValue("id"))
	if err != nil {
		return err
	}
	if err := s.Hub.DeleteConversation(c.Context(), c.who, id); err != nil {
		return named(err, noConversation(c.PathValue("id")))
	}
	return c.reply(deleted{c.PathValue("id"), "conversation.deleted", true})
}

// allTurns returns the turns of a conversation, the oldest first.
func (s *server) allTurns(ctx context.Context, who auth.Principal, id string) ([]hub.Turn, error) {
	var out []hub.Turn
	for page := (hub.Page{Limit: 100, Oldest: true}); ; {
		l, err := s.Hub.Turns(ctx, who, id, page)
		if err != nil {
			return nil, err
		}
		out = append(out, l.Items...)
		if page.After = l.Next; page.After == "" || len(out) >= mostTurns {
			return out, nil
		}
	}
}

// conversationItems returns everything in a conversation: what was said to the model, what it said and ran, and what was added last.
func (s *server) conversationItems(c *call, t hub.Conversation, outputs bool) ([]entry, error) {
	turns, err := s.allTurns(c.Context(), c.who, t.ID)
	if err != nil {
		return nil, err
	}
	var out []entry
	for _, turn := range turns {
		out = append(out, rawEntries(keptOf(turn).Input)...)
		tr, err := s.replay(c.Context(), c.who, turn, options{outputs: outputs})
		if err != nil {
			return nil, err
		}
		for _, i := range tr.items {
			out = append(out, entry{i.id, i.json(outputs)})
		}
	}
	return append(out, rawEntries(pendingItems(t))...), nil
}

func (s *server) listItems(c *call) error {
	q, err := readQuery(c)
	if err != nil {
		return err
	}
	if q.limit, err = bound(c, 20, 100); err != nil {
		return err
	}
	t, err := s.conversationOf(c)
	if err != nil {
		return err
	}
	entries, err := s.conversationItems(c, t, slices.Contains(q.include, withOutputs))
	if err != nil {
		return err
	}
	page, err := q.cut(entries, q.limit)
	if err != nil {
		return err
	}
	return c.reply(page)
}

func (s *server) addItems(c *call) error {
	f, err := s.readForm(c)
	if err != nil {
		return err
	}
	f.only("items")
	if !f.has("items") {
		f.fail(missing("items"))
	}
	items, err := s.readItems(c, f)
	if err != nil {
		return err
	}
	t, err := s.conversationOf(c)
	if err != nil {
		return err
	}
	meta, err := withPending(t.Metadata, append(pendingItems(t), items...))
	if err != nil {
		return err
	}
	if _, err := s.Hub.ChangeConversation(c.Context(), c.who, t.ID, hub.ConversationChange{Metadata: meta}); err != nil {
		return err
	}
	return c.reply(newList(rawEntries(items), false))
}

func (s *server) getItem(c *call) error {
	q, err := readQuery(c)
	if err != nil {
		return err
	}
	t, err := s.conversationOf(c)
	if err != nil {
		return err
	}
	entries, err := s.conversationItems(c, t, slices.Contains(q.include, withOutputs))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.id == c.PathValue("item") {
			return c.reply(e.value)
		}
	}
	return noItem(c.PathValue("item"))
}

// deleteItem takes back an item that was added and that no response has used. What a response said and did stays together.
func (s *server) deleteItem(c *call) error {
	t, err := s.conversationOf(c)
	if err != nil {
		return err
	}
	items := pendingItems(t)
	left := slices.DeleteFunc(slices.Clone(items), func(raw json.RawMessage) bool { return rawEntries([]json.RawMessage{raw})[0].id == c.PathValue("item") })
	if len(left) == len(items) {
		entries, err := s.conversationItems(c, t, false)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(entries, func(e entry) bool { return e.id == c.PathValue("item") }) {
			return invalid("item_id", "", "Items of a response cannot be deleted one by one. Delete the response.")
		}
		return noItem(c.PathValue("item"))
	}
	meta, err := withPending(t.Metadata, left)
	if err != nil {
		return err
	}
	if t, err = s.Hub.ChangeConversation(c.Context(), c.who, t.ID, hub.ConversationChange{Metadata: meta}); err != nil {
		return err
	}
	return c.reply(shownConversation(t))
}
