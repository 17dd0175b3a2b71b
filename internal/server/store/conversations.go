package store

import (
	"context"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/hub"
)

func conversationRecord() record[hub.Conversation] {
	return record[hub.Conversation]{problem.ConversationNotFound, "conversations", conversationFields}
}

// AddConversation implements hub.ConversationStore.
func (s *Store) AddConversation(ctx context.Context, c hub.Conversation) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		return insert(ctx, q, "conversations", conversationFields(&c), "")
	})
}

// Conversation implements hub.ConversationStore.
func (s *Store) Conversation(ctx context.Context, project, id string) (hub.Conversation, error) {
	return get(ctx, s, problem.ConversationNotFound, conversationFields, "FROM conversations WHERE id = $1 AND project = $2", clean(id), project)
}

// Conversations implements hub.ConversationStore. The one used last comes first.
func (s *Store) Conversations(ctx context.Context, project string, f hub.ConversationFilter, p hub.Page) (hub.Listing[hub.Conversation], error) {
	var w filter
	w.add("project = ?", project)
	w.is("session_id", clean(f.Session))
	w.is("user_id", clean(f.User))
	w.is("source", clean(f.Source))
	return list(ctx, s, order[hub.Conversation]{
		table: "conversations", fields: conversationFields, by: "used",
		at: func(c *hub.Conversation) (time.Time, string) { return c.Used, c.ID },
	}, w, p)
}

// UpdateConversation implements hub.ConversationStore.
func (s *Store) UpdateConversation(ctx context.Context, project, id string, change func(*hub.Conversation) error) (hub.Conversation, error) {
	return modify(ctx, s, conversationRecord(), owned(project, id), change, nil)
}

// DeleteConversation implements hub.ConversationStore.
func (s *Store) DeleteConversation(ctx context.Context, project, id string) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		if _, err := one(ctx, q, conversationFields, "FROM conversations WHERE id = $1 AND project = $2"+s.dialect.forUpdate, clean(id), project); err != nil {
			return found(err, problem.ConversationNotFound)
		}
		if err := s.aloneInConversation(ctx, q, clean(id)); err != nil {
			return err
		}
		return deleteConversation(ctx, q, clean(id))
	})
}

func deleteConversation(ctx context.Context, q queryer, id string) error {
	return each(ctx, q, id,
		"DELETE FROM documents WHERE conversation = $1",
		"DELETE FROM events WHERE stream IN (SELECT id FROM executions WHERE turn_id IN (SELECT id FROM turns WHERE conversation = $1))",
		"DELETE FROM events WHERE stream IN (SELECT id FROM turns WHERE conversation = $1)",
		"DELETE FROM executions WHERE turn_id IN (SELECT id FROM turns WHERE conversation = $1)",
		"DELETE FROM turns WHERE conversation = $1",
		"DELETE FROM shares WHERE conversation = $1",
		"DELETE FROM questions WHERE conversation = $1",
		"DELETE FROM conversations WHERE id = $1",
	)
}

// each runs statements that take one id.
func each(ctx context.Context, q queryer, id string, statements ...string) error {
	for _, statement := range statements {
		if _, err := q.ExecContext(ctx, statement, id); err != nil {
			return err
		}
	}
	return nil
}
