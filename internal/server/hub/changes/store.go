package changes

import (
	"context"

	"cove/internal/server/audit"
	"cove/internal/server/hub/record"
	"cove/internal/server/stream"
)

// notifyingStore is a store that notifies a feed's followers of what it has written.
type notifyingStore struct {
	record.Store
	to *Feed
}

func (s notifyingStore) notify(err error, project string, c Change) error {
	if err == nil {
		s.to.notify(project, c)
	}
	return err
}

// notifyOfTurn is notify for a turn. Nobody is notified of a hidden one.
func (s notifyingStore) notifyOfTurn(err error, t record.Turn) error {
	if t.Hidden {
		return err
	}
	return s.notify(err, t.Project, changeOfTurn(t))
}

// AddConversation implements ConversationStore.
func (s notifyingStore) AddConversation(ctx context.Context, c record.Conversation) error {
	return s.notify(s.Store.AddConversation(ctx, c), c.Project, Change{Kind: ChangedConversation, ID: c.ID})
}

// AddFork implements ForkStore.
func (s notifyingStore) AddFork(ctx context.Context, c record.Conversation, turns []record.TurnCopy, most int64) error {
	return s.notify(s.Store.AddFork(ctx, c, turns, most), c.Project, Change{Kind: ChangedConversation, ID: c.ID})
}

// UpdateConversation implements ConversationStore.
func (s notifyingStore) UpdateConversation(ctx context.Context, project, id string, change func(*record.Conversation) error) (record.Conversation, error) {
	out, err := s.Store.UpdateConversation(ctx, project, id, change)
	return out, s.notify(err, project, Change{Kind: ChangedConversation, ID: id})
}

// DeleteConversation implements ConversationStore.
func (s notifyingStore) DeleteConversation(ctx context.Context, project, id string) error {
	return s.notify(s.Store.DeleteConversation(ctx, project, id), project, Change{Kind: ChangedConversation, ID: id, State: stateDeleted})
}

// AddTurn implements TurnStore.
func (s notifyingStore) AddTurn(ctx context.Context, t record.Turn) error {
	err := s.notifyOfTurn(s.Store.AddTurn(ctx, t), t)
	if t.Taken.ID != "" {
		err = s.notifyOfQueue(err, t.Project, t.Conversation)
	}
	return err
}

// notifyOfQueue is notify for a conversation's queue, which is read with the conversation.
func (s notifyingStore) notifyOfQueue(err error, project, conversation string) error {
	return s.notify(err, project, Change{Kind: ChangedConversation, ID: conversation})
}

// AddQuestion implements QuestionStore.
func (s notifyingStore) AddQuestion(ctx context.Context, q record.Question, most record.QuestionBounds) error {
	return s.notifyOfQueue(s.Store.AddQuestion(ctx, q, most), q.Project, q.Conversation)
}

// UpdateQuestion implements QuestionStore.
func (s notifyingStore) UpdateQuestion(ctx context.Context, project, conversation, id string, change func(*record.Question) error) (record.Question, error) {
	q, err := s.Store.UpdateQuestion(ctx, project, conversation, id, change)
	return q, s.notifyOfQueue(err, project, conversation)
}

// DeleteQuestion implements QuestionStore.
func (s notifyingStore) DeleteQuestion(ctx context.Context, project, conversation, id string) error {
	return s.notifyOfQueue(s.Store.DeleteQuestion(ctx, project, conversation, id), project, conversation)
}

// UndoTurn implements QuestionStore.
func (s notifyingStore) UndoTurn(ctx context.Context, t record.Turn, q record.Question) error {
	err := s.notify(s.Store.UndoTurn(ctx, t, q), t.Project, Change{Kind: ChangedTurn, ID: t.ID, State: stateDeleted})
	return s.notifyOfQueue(err, t.Project, t.Conversation)
}

// FinishTurn implements TurnStore.
func (s notifyingStore) FinishTurn(ctx context.Context, t record.Turn, last []stream.Event) (bool, error) {
	first, err := s.Store.FinishTurn(ctx, t, last)
	return first, s.notifyOfTurn(err, t)
}

// SetWaiting implements TurnStore.
func (s notifyingStore) SetWaiting(ctx context.Context, project, turn string, w *record.Waiting) error {
	err := s.Store.SetWaiting(ctx, project, turn, w)
	if err != nil {
		return err
	}
	t, err := s.Turn(ctx, project, turn)
	_ = s.notifyOfTurn(err, t) // the word is written
	return nil
}

// SetRating implements TurnStore.
func (s notifyingStore) SetRating(ctx context.Context, project, turn string, r *record.Rating) error {
	if err := s.Store.SetRating(ctx, project, turn, r); err != nil {
		return err
	}
	t, err := s.Turn(ctx, project, turn)
	_ = s.notifyOfTurn(err, t) // the rating is written
	return nil
}

// MarkTurn implements TurnStore.
func (s notifyingStore) MarkTurn(ctx context.Context, project, turn string, change func(*record.TurnMarks) error) (*record.TurnMarks, error) {
	marks, err := s.Store.MarkTurn(ctx, project, turn, change)
	if err != nil {
		return nil, err
	}
	t, err := s.Turn(ctx, project, turn)
	_ = s.notifyOfTurn(err, t) // the marks are written
	return marks, nil
}

// DeleteTurn implements TurnStore.
func (s notifyingStore) DeleteTurn(ctx context.Context, project, turn string) error {
	return s.notify(s.Store.DeleteTurn(ctx, project, turn), project, Change{Kind: ChangedTurn, ID: turn, State: stateDeleted})
}

// AddSession implements SessionStore.
func (s notifyingStore) AddSession(ctx context.Context, row record.Session) error {
	return s.notify(s.Store.AddSession(ctx, row), row.Project, Change{Kind: ChangedSession, ID: row.ID, State: string(row.State)})
}

// UpdateSession implements record.SessionStore. That a session was used is no change that is reported.
func (s notifyingStore) UpdateSession(ctx context.Context, project, id string, change func(*record.Session) error) (record.Session, error) {
	var before record.Session
	out, err := s.Store.UpdateSession(ctx, project, id, func(row *record.Session) error {
		before = *row
		return change(row)
	})
	if err == nil && (before.State != out.State || before.Name != out.Name || before.Reason != out.Reason) {
		s.to.notify(project, Change{Kind: ChangedSession, ID: id, State: string(out.State)})
	}
	return out, err
}

// AddExecution implements ExecutionStore.
func (s notifyingStore) AddExecution(ctx context.Context, e record.Execution, asked ...audit.Row) error {
	err := s.Store.AddExecution(ctx, e, asked...)
	if e.Turn == "" {
		return s.notify(err, e.Project, changeOfExecution(e))
	}
	return err
}

// FinishExecution implements ExecutionStore.
func (s notifyingStore) FinishExecution(ctx context.Context, e record.Execution, last []stream.Event) (bool, error) {
	first, err := s.Store.FinishExecution(ctx, e, last)
	if e.Turn == "" {
		err = s.notify(err, e.Project, changeOfExecution(e))
	}
	return first, err
}

func changeOfExecution(e record.Execution) Change {
	return Change{Kind: ChangedExecution, ID: e.ID, Session: e.Session, State: string(e.State)}
}
