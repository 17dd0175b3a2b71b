package store

import (
	"context"
	"errors"
	"slices"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/hub"
)

// Following implements hub.ForkStore.
func (s *Store) Following(ctx context.Context, project, turn string) ([]hub.Turn, error) {
	fields := func(t *hub.Turn) []field {
		return []field{{"id", textOf(&t.ID)}, {"session_id", textOf(&t.Session)}, {"created", moment{&t.Created}}}
	}
	return all(ctx, s, fields, "FROM turns WHERE parent = $1 AND project = $2 AND hidden = 0 ORDER BY created, id", clean(turn), project)
}

// AddFork implements hub.ForkStore.
func (s *Store) AddFork(ctx context.Context, c hub.Conversation, turns []hub.TurnCopy, most int64) error {
	texts := make([][]place, len(turns))
	for i, t := range turns { // the words are found before the transaction, see indexed
		places, err := all(ctx, s, placeFields, "FROM documents WHERE turn_id = $1 ORDER BY at, id", t.Of)
		if err != nil {
			return err
		}
		for k := range places {
			p := &places[k]
			p.conversation, p.turn, p.session = c.ID, t.ID, t.Session
		}
		texts[i] = indexed(places)
	}
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		if err := insert(ctx, q, "conversations", conversationFields(&c), ""); err != nil {
			return err
		}
		room := most
		for i, t := range turns {
			size, err := copyTurn(ctx, q, t, texts[i], room)
			if err != nil {
				return err
			}
			room -= size
		}
		return nil
	})
}

// copyTurn writes a copy with what its original has, and returns how many bytes its events have, which are at most most. The events of the steps are in the turn's
// stream.
func copyTurn(ctx context.Context, q queryer, t hub.TurnCopy, texts []place, most int64) (int64, error) {
	if err := present(ctx, q, "turns", owned(t.Project, t.Of)); err != nil {
		return 0, found(err, problem.TurnNotFound)
	}
	var size int64
	if err := q.QueryRowContext(ctx, "SELECT CAST(COALESCE(SUM(LENGTH(body)), 0) AS BIGINT) FROM events WHERE stream = $1", t.Of).Scan(&size); err != nil {
		return 0, err
	}
	if size > most {
		return 0, hub.ErrForkTooLarge()
	}
	_, err := q.ExecContext(ctx, `INSERT INTO events (stream, seq, execution, step, at, body)
		SELECT CAST($1 AS TEXT), seq, execution, step, at, body FROM events WHERE stream = $2`, t.ID, t.Of)
	if err == nil {
		err = insert(ctx, q, "turns", turnFields(&t.Turn), "")
	}
	if err != nil {
		return 0, err
	}
	steps, err := many(ctx, q, executionFields, "FROM executions WHERE turn_id = $1 ORDER BY created, id", t.Of)
	if err != nil {
		return 0, err
	}
	texts = slices.Clone(texts) // this may be called again
	for _, e := range steps {
		of := e.ID
		e.ID, e.Turn, e.Session, e.Owner = ident.New(ident.Execution), t.ID, t.Session, ""
		e.Detached = false // the copy has the events of the turn's stream
		_, err := q.ExecContext(ctx, "UPDATE events SET execution = $1 WHERE stream = $2 AND execution = $3", e.ID, t.ID, of)
		if err = errors.Join(err, insert(ctx, q, "executions", executionFields(&e), "")); err != nil {
			return 0, err
		}
		for i := range texts {
			if texts[i].execution == of {
				texts[i].execution = e.ID
			}
		}
	}
	return size, addTexts(ctx, q, texts)
}
