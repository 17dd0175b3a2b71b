package turns

import (
	"context"
	"maps"
	"strings"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// NewConversation says what conversation to make.
type NewConversation struct {
	Title    string
	Session  string // an existing one to use, or ""
	Metadata map[string]string
	Source   string
	Approval record.Approval
}

// CreateConversation makes an empty conversation. Needs auth.ConversationsWrite.
func (r *Runner) CreateConversation(ctx context.Context, who auth.Principal, n NewConversation) (record.Conversation, error) {
	c := record.Conversation{
		ID: ident.New(ident.Conversation), Project: who.Project, User: who.User, Session: n.Session, Title: n.Title, Metadata: n.Metadata, Source: n.Source,
		Created: r.work.Now(), Approval: n.Approval,
	}
	c.Used = c.Created
	err := who.Require(auth.ConversationsWrite)
	if err == nil {
		err = c.Check()
	}
	if err == nil && n.Session != "" {
		_, err = r.live.FindSession(ctx, who, n.Session)
	}
	if err == nil {
		err = r.work.Store.AddConversation(ctx, c)
	}
	r.work.WriteAudit(ctx, who, "conversation.create", c.ID, "", err)
	if err != nil {
		return record.Conversation{}, err
	}
	return c, nil
}

// Conversation returns a conversation. Needs auth.ConversationsRead.
func (r *Runner) Conversation(ctx context.Context, who auth.Principal, id string) (record.Conversation, error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return record.Conversation{}, err
	}
	return r.work.Store.Conversation(ctx, who.Project, id)
}

// Conversations lists conversations, the one used last first. Needs auth.ConversationsRead.
func (r *Runner) Conversations(ctx context.Context, who auth.Principal, f record.ConversationFilter, p record.Page) (record.Listing[record.Conversation], error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return record.Listing[record.Conversation]{}, err
	}
	p, err := p.OrDefault()
	if err != nil {
		return record.Listing[record.Conversation]{}, err
	}
	return r.work.Store.Conversations(ctx, who.Project, f, p)
}

// ConversationChange says what to change; nil fields stay.
type ConversationChange struct {
	Title    *string
	Session  *string          // that its next turns use
	Approval *record.Approval // of the turns that begin later
	Metadata map[string]string
	// Edit makes the new metadata from the present one, which nothing else changes meanwhile. It may be called twice. It is used instead of Metadata.
	Edit func(metadata map[string]string) (map[string]string, error)
}

// ChangeConversation changes a conversation. Needs auth.ConversationsWrite.
func (r *Runner) ChangeConversation(ctx context.Context, who auth.Principal, id string, c ConversationChange) (record.Conversation, error) {
	var changed record.Conversation
	err := who.Require(auth.ConversationsWrite)
	if err == nil {
		changed, err = r.work.Store.UpdateConversation(ctx, who.Project, id, func(row *record.Conversation) error {
			if c.Title != nil {
				row.Title = *c.Title
			}
			if c.Session != nil {
				row.Session = *c.Session
			}
			if c.Approval != nil {
				row.Approval = *c.Approval
			}
			if c.Metadata != nil {
				row.Metadata = c.Metadata
			}
			if c.Edit != nil {
				edited, err := c.Edit(maps.Clone(row.Metadata))
				if err != nil {
					return err
				}
				row.Metadata = edited
			}
			return row.Check()
		})
	}
	r.work.WriteAudit(ctx, who, "conversation.change", id, "", err)
	return changed, err
}

// deletePatience is how long a deletion waits for a turn that it cancelled.
const deletePatience = 10 * time.Second

// DeleteConversation removes a conversation with all its turns; one that runs is cancelled. Needs auth.ConversationsWrite.
func (r *Runner) DeleteConversation(ctx context.Context, who auth.Principal, id string) error {
	err := who.Require(auth.ConversationsWrite)
	if err == nil {
		_, err = r.work.Store.Conversation(ctx, who.Project, id)
	}
	if err == nil {
		err = r.deleteConversation(ctx, who.Project, id)
	}
	r.work.WriteAudit(ctx, who, "conversation.delete", id, "", err)
	return err
}

// deleteConversation keeps turns from beginning meanwhile: they would store records in a deleted conversation.
func (r *Runner) deleteConversation(ctx context.Context, project, id string) error {
	ctx, cancel := context.WithTimeout(ctx, deletePatience)
	defer cancel()
	defer r.table.ending(id)()
	for {
		running, ok := r.table.reserve(id, "")
		if ok {
			break
		}
		if running == nil {
			return ErrTurnRunning()
		}
		running.stop(canceledTurn())
		select {
		case <-running.ended:
		case <-ctx.Done():
			return ErrTurnRunning().WithCause(context.Cause(ctx))
		}
	}
	defer r.table.free(id)
	return r.work.Store.DeleteConversation(ctx, project, id)
}

// TitleOf is the first words of a prompt, as a conversation without a title gets them.
func TitleOf(prompt string) string {
	const most = 60 // characters
	words := strings.Fields(prompt)
	title := ""
	for _, word := range words {
		next := strings.TrimSpace(title + " " + word)
		if runes := []rune(next); len(runes) > most {
			if title == "" {
				title = string(runes[:most])
			}
			return title + "…"
		}
		title = next
	}
	return title
}

// wordsOf are the user's words in messages.
func wordsOf(messages []model.Message) string {
	var out []string
	for _, m := range messages {
		for _, c := range m.Content {
			if t, ok := c.(model.Text); ok && m.Role == model.RoleUser {
				out = append(out, t.Text)
			}
		}
	}
	return strings.Join(out, "\n\n")
}

// LastTurn returns the newest turn of a conversation. Needs auth.ConversationsRead. Problems: conversation_empty.
func (r *Runner) LastTurn(ctx context.Context, who auth.Principal, conversation string) (record.Turn, error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return record.Turn{}, err
	}
	c, err := r.work.Store.Conversation(ctx, who.Project, conversation)
	if err != nil {
		return record.Turn{}, err
	}
	if _, err := r.chargeRecall(ctx, who.Project, conversation, ""); err != nil {
		return record.Turn{}, err
	}
	t, err := r.lastTurn(ctx, c)
	if err == nil && t.ID == "" {
		err = problem.New(problem.ConversationEmpty, "the conversation has no turns yet")
	}
	return t, err
}
