package openai

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"cove/internal/server/auth"
	"cove/internal/server/hub"
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
		return nil, tooMany("items", 20, n)
	}
	in := &input{s: s, c: c, dry: true}
	err := in.read(f, "items", f.raw["items"])
	return in.items, err
}

// spoiled says that nothing of a turn is in its conversation: it failed before any code had run.
func spoiled(t hub.Turn) bool {
	return t.State.Final() && t.State != hub.TurnCompleted && t.State != hub.TurnWaiting && len(t.Messages) == 0
}

// unused are the items that were added to a conversation and taken by turns of which nothing is in it. The next turn takes them again.
func unused(turns []hub.Turn) []json.RawMessage {
	var out []json.RawMessage
	for _, t := range turns {
		if added := keptOf(t).added(); spoiled(t) {
			out = append(without(out, added), added...)
		} else {
			out = without(out, added)
		}
	}
	return out
}

// without are the items whose ids none of the others have.
func without(items, others []json.RawMessage) []json.RawMessage {
	taken := map[string]bool{}
	for _, e := range rawEntries(others) {
		taken[e.id] = true
	}
	var out []json.RawMessage
	for _, e := range rawEntries(items) {
		if !taken[e.id] {
			out = append(out, e.value.(json.RawMessage))
		}
	}
	return out
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

// changePending replaces the items that were added to a conversation by what change makes of them. With meta, that replaces the rest of the
// metadata. change may be called twice.
func (s *server) changePending(c *call, id string, meta map[string]string, change func([]json.RawMessage) []json.RawMessage) (hub.Conversation, error) {
	return s.Hub.ChangeConversation(c.Context(), c.who, id, hub.ConversationChange{Edit: func(there map[string]string) (map[string]string, error) {
		items := pendingItems(hub.Conversation{Metadata: there})
		if change != nil {
			items = change(items)
		}
		rest := meta
		if rest == nil {
			rest = there
		}
		return withPending(rest, items)
	}})
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
	if t, err = s.changePending(c, t.ID, meta, nil); err != nil {
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

// allTurns returns the turns of a conversation, the oldest first. Those that were not to be stored are no part of it.
func (s *server) allTurns(ctx context.Context, who auth.Principal, id string) ([]hub.Turn, error) {
	var out []hub.Turn
	for page := (hub.Page{Limit: 100, Oldest: true}); ; {
		l, err := s.Hub.Turns(ctx, who, id, page)
		if err != nil {
			return nil, err
		}
		out = append(out, slices.DeleteFunc(l.Items, func(t hub.Turn) bool { return t.Hidden || t.IsTry() })...)
		if page.After = l.Next; page.After == "" || len(out) >= mostTurns {
			return out, nil
		}
	}
}

// conversationItems returns everything in a conversation: what was said to the model, what it said and ran, and what was added last. Of a turn
// that failed there is only what had been added before it.
func (s *server) conversationItems(c *call, t hub.Conversation, outputs bool) ([]entry, error) {
	turns, err := s.allTurns(c.Context(), c.who, t.ID)
	if err != nil {
		return nil, err
	}
	var out []entry
	for _, turn := range turns {
		k := keptOf(turn)
		if spoiled(turn) {
			out = append(out, rawEntries(k.added())...)
			continue
		}
		out = append(out, rawEntries(k.Input)...)
		tr, err := s.replay(c.Context(), c.who, turn, options{outputs: outputs, whole: true})
		if err != nil {
			return nil, err
		}
		for _, i := range tr.shown() {
			out = append(out, entry{i.id, i.json(outputs)})
		}
	}
	out = append(out, rawEntries(pendingItems(t))...)
	seen := map[string]bool{} // what one turn failed with the next one has too
	return slices.DeleteFunc(out, func(e entry) bool {
		known := seen[e.id]
		seen[e.id] = true
		return known
	}), nil
}

func (s *server) listItems(c *call) error {
	q, err := readPage(c, 20, 100)
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
	page, err := q.cut(entries)
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
	add := func(there []json.RawMessage) []json.RawMessage { return append(there, items...) }
	if _, err := s.changePending(c, t.ID, nil, add); err != nil {
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
	id := c.PathValue("item")
	found := false
	t, err = s.changePending(c, t.ID, nil, func(items []json.RawMessage) []json.RawMessage {
		found = false
		return slices.DeleteFunc(items, func(raw json.RawMessage) bool {
			is := rawEntries([]json.RawMessage{raw})[0].id == id
			found = found || is
			return is
		})
	})
	if err != nil {
		return err
	}
	if !found {
		entries, err := s.conversationItems(c, t, false)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(entries, func(e entry) bool { return e.id == id }) {
			return invalid("item_id", "", "Items of a response cannot be deleted one by one. Delete the response.")
		}
		return noItem(id)
	}
	return c.reply(shownConversation(t))
}
