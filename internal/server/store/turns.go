package store

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/server/hub"
	"cove/internal/server/stream"
)

// longestBranch bounds how far back a branch is followed.
const longestBranch = 10_000

// Adding, ending and deleting a turn lock its conversation first: the turns of a conversation stay a tree, and there is no deadlock.

// AddTurn implements hub.TurnStore. The turn's conversation has one turn more (a try counts with the turn that it is a try of), was used when the turn was made, and takes on its model and,
// when it has none, its session. Not found: also the turn that it goes on from.
func (s *Store) AddTurn(ctx context.Context, t hub.Turn) error {
	texts := turnTexts(t, place{field: fieldPrompt, text: t.Prompt, at: t.Created})
	asked, more := t.Model, 1
	if t.IsTry() {
		asked, more = "", 0 // its model may be another one than the conversation's
	}
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		done, err := q.ExecContext(ctx, `UPDATE conversations SET turns = turns + $6, used = CASE WHEN used < $1 THEN $1 ELSE used END,
			model = CASE WHEN $2 = '' THEN model ELSE $2 END, session_id = CASE WHEN session_id = '' THEN $3 ELSE session_id END
			WHERE id = $4 AND project = $5`, micros(t.Created), clean(asked), clean(t.Session), t.Conversation, t.Project, more)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil {
			return err
		} else if n == 0 {
			return missing(problem.ConversationNotFound)
		}
		if err := s.aloneInConversation(ctx, q, t.Conversation); err != nil {
			return err
		}
		if err := take(ctx, q, t); err != nil {
			return err
		}
		if t.Parent != "" {
			if err := present(ctx, q, "turns", owned(t.Project, t.Parent)); err != nil {
				return found(err, problem.TurnNotFound)
			}
		}
		if err := insert(ctx, q, "turns", turnFields(&t), ""); err != nil {
			return err
		}
		return addTexts(ctx, q, texts)
	})
}

// aloneInConversation says whether no other living owner has a turn that has not ended in the conversation, which is locked. Of its own turns an owner
// knows that by itself.
func (s *Store) aloneInConversation(ctx context.Context, q queryer, conversation string) error {
	var others bool
	err := q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM turns WHERE unfinished = 1 AND hidden = 0 AND conversation = $1 AND owner <> $2
		AND EXISTS (SELECT 1 FROM owners WHERE owners.id = turns.owner))`, conversation, s.owner).Scan(&others)
	if err == nil && others {
		return hub.ErrTurnRunning()
	}
	return err
}

// Turn implements hub.TurnStore.
func (s *Store) Turn(ctx context.Context, project, id string) (hub.Turn, error) {
	return get(ctx, s, problem.TurnNotFound, turnFields, "FROM turns WHERE id = $1 AND project = $2", clean(id), project)
}

// TurnEnded implements hub.TurnStore.
func (s *Store) TurnEnded(ctx context.Context, project, id string) (ended bool, err error) {
	var unfinished int
	err = s.base.read(ctx, func(ctx context.Context, q queryer) error {
		return found(q.QueryRowContext(ctx, "SELECT unfinished FROM turns WHERE id = $1 AND project = $2", clean(id), project).Scan(&unfinished), problem.TurnNotFound)
	})
	return unfinished == 0, err
}

// Turns implements hub.TurnStore.
func (s *Store) Turns(ctx context.Context, project, conversation string, p hub.Page) (hub.Listing[hub.Turn], error) {
	var w filter
	w.add("project = ?", project)
	w.add("conversation = ?", clean(conversation))
	return list(ctx, s, order[hub.Turn]{
		table: "turns", fields: turnFields, by: "created",
		at: func(t *hub.Turn) (time.Time, string) { return t.Created, t.ID },
	}, w, p)
}

// RunningTurns implements hub.TurnStore.
func (s *Store) RunningTurns(ctx context.Context, project string, limit int) ([]hub.Turn, error) {
	fields := func(t *hub.Turn) []field {
		return []field{{"id", textOf(&t.ID)}, {"project", textOf(&t.Project)}, {"conversation", textOf(&t.Conversation)}, {"state", textOf(&t.State)}, content(field{"waiting", documentOf(&t.Waiting)})}
	}
	return all(ctx, s, fields, "FROM turns WHERE unfinished = 1 AND hidden = 0 AND project = $1 ORDER BY created, id LIMIT "+strconv.Itoa(max(limit, 0)), project)
}

// Branch implements hub.TurnStore.
func (s *Store) Branch(ctx context.Context, project, turn string) ([]hub.Turn, error) {
	return branch(ctx, s, turnFields, project, turn)
}

// TurnHistory implements hub.TurnTexts.
func (s *Store) TurnHistory(ctx context.Context, project, turn string) ([]model.Message, error) {
	turns, err := branch(ctx, s, func(m *[]model.Message) []field { return []field{content(field{"messages", documentOf(m)})} }, project, turn)
	return slices.Concat(turns...), err
}

// branch reads fields of a turn and of those that it goes on from, the oldest first.
func branch[T any](ctx context.Context, s *Store, fields func(*T) []field, project, turn string) ([]T, error) {
	var out []T
	err := s.base.read(ctx, func(ctx context.Context, q queryer) error {
		var err error
		out, err = many(ctx, q, fields, `FROM turns JOIN (
			WITH RECURSIVE line (turn, before, depth) AS (
				SELECT id, parent, 0 FROM turns WHERE id = $1 AND project = $2
				UNION ALL
				SELECT t.id, t.parent, line.depth + 1 FROM turns t JOIN line ON t.id = line.before
				WHERE t.project = $2 AND line.depth < `+strconv.Itoa(longestBranch)+`
			) SELECT turn, depth FROM line
		) AS branch ON turns.id = branch.turn ORDER BY branch.depth DESC`, clean(turn), project)
		if err == nil && len(out) == 0 {
			return missing(problem.TurnNotFound)
		}
		return err
	})
	return out, err
}

// TurnsSize implements hub.TurnTexts. The texts themselves are not read.
func (s *Store) TurnsSize(ctx context.Context, project, conversation, turn string) (int64, error) {
	where, of := "conversation", conversation
	if turn != "" {
		where, of = "id", turn
	}
	var sum int64
	err := s.base.read(ctx, func(ctx context.Context, q queryer) error {
		return q.QueryRowContext(ctx, `SELECT CAST(COALESCE(SUM(OCTET_LENGTH(messages) + OCTET_LENGTH(surface) + OCTET_LENGTH(prompt)
			+ OCTET_LENGTH(answer)), 0) AS BIGINT) FROM turns WHERE project = $1 AND `+where+` = $2`, project, clean(of)).Scan(&sum)
	})
	if s.sealer != nil {
		sum = sum / 4 * 3 // they are base64
	}
	return sum, err
}

// FinishTurn implements hub.TurnStore.
func (s *Store) FinishTurn(ctx context.Context, t hub.Turn, last []stream.Event) (first bool, err error) {
	at := t.Finished
	if at.IsZero() {
		at = t.Created
	}
	texts, err := s.outputTexts(ctx, t, last)
	if err != nil {
		return false, err
	}
	texts = append(texts, turnTexts(t, place{field: fieldAnswer, text: t.Answer, at: at})...)
	err = s.base.write(operation(ctx, opEnd), func(ctx context.Context, q queryer) (err error) {
		_, err = q.ExecContext(ctx, `UPDATE conversations SET used = CASE WHEN used < $1 THEN $1 ELSE used END,
			session_id = CASE WHEN session_id = '' THEN $2 ELSE session_id END
			WHERE id = $3 AND EXISTS (SELECT 1 FROM turns WHERE id = $4 AND unfinished = 1)`, micros(at), clean(t.Session), t.Conversation, t.ID)
		if err != nil {
			return err
		}
		first, err = finish(ctx, q, problem.TurnNotFound, "turns", owned(t.Project, t.ID), turnEnd(&t), last)
		if !first || err != nil {
			return err
		}
		if !t.IsTry() { // the turn that asked has what its tries took
			if err := addAnswer(ctx, q, t); err != nil {
				return err
			}
		}
		return addTexts(ctx, q, texts)
	})
	return first && err == nil, err
}

// SetForeign implements hub.TurnNotes.
func (s *Store) SetForeign(ctx context.Context, project, turn string, foreign []byte) error {
	text := json.RawMessage(foreign)
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		n, err := update(ctx, q, "turns", []field{content(field{"surface", jsonTextOf(&text)})}, owned(project, turn))
		if err == nil && n == 0 {
			return missing(problem.TurnNotFound)
		}
		return err
	})
}

// SetTries implements hub.TurnNotes.
func (s *Store) SetTries(ctx context.Context, project, turn string, t hub.TurnTries) error {
	kept := &t
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		n, err := update(ctx, q, "turns", []field{content(field{"tries", documentOf(&kept)})}, owned(project, turn))
		if err == nil && n == 0 {
			return missing(problem.TurnNotFound)
		}
		return err
	})
}

// SetRating implements hub.TurnNotes.
func (s *Store) SetRating(ctx context.Context, project, turn string, r *hub.Rating) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		n, err := update(ctx, q, "turns", []field{content(field{"rating", documentOf(&r)}), {"rated", derived{func() any { return bit(r != nil) }}}}, owned(project, turn))
		if err == nil && n == 0 {
			return missing(problem.TurnNotFound)
		}
		return err
	})
}

// MarkTurn implements hub.TurnNotes.
func (s *Store) MarkTurn(ctx context.Context, project, turn string, change func(*hub.TurnMarks) error) (*hub.TurnMarks, error) {
	fields := func(m **hub.TurnMarks) []field { return []field{{"marks", documentOf(m)}} }
	return modify(ctx, s, record[*hub.TurnMarks]{problem.TurnNotFound, "turns", fields}, owned(project, turn), func(m **hub.TurnMarks) error {
		if *m == nil {
			*m = &hub.TurnMarks{}
		}
		err := change(*m)
		if (*m).Undone == nil && len((*m).Reruns) == 0 {
			*m = nil
		}
		return err
	}, nil)
}

// RatedTurns implements hub.TurnStore.
func (s *Store) RatedTurns(ctx context.Context, project string, p hub.Page) (hub.Listing[hub.Turn], error) {
	var w filter
	w.add("project = ?", project)
	w.add("rated = ?", 1)
	fields := func(t *hub.Turn) []field {
		return []field{
			{"id", textOf(&t.ID)}, {"project", textOf(&t.Project)}, {"conversation", textOf(&t.Conversation)}, {"model", textOf(&t.Model)}, {"created", moment{&t.Created}},
			content(field{"prompt", textOf(&t.Prompt)}), content(field{"answer", textOf(&t.Answer)}), content(field{"rating", documentOf(&t.Rating)}),
		}
	}
	return list(ctx, s, order[hub.Turn]{
		table: "turns", fields: fields, by: "created",
		at: func(t *hub.Turn) (time.Time, string) { return t.Created, t.ID },
	}, w, p)
}

// EndWaiting implements hub.TurnStore.
func (s *Store) EndWaiting(ctx context.Context, project, turn string, state hub.TurnState, why []byte) error {
	text := json.RawMessage(why)
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		where := owned(project, turn)
		where.add("state = ?", string(hub.TurnWaiting))
		_, err := update(ctx, q, "turns", []field{{"state", textOf(&state)}, content(field{"problem", jsonTextOf(&text)})}, where)
		return err
	})
}

// SetWaiting implements hub.TurnStore.
func (s *Store) SetWaiting(ctx context.Context, project, turn string, w *hub.Waiting) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		where := owned(project, turn)
		where.add("unfinished = 1")
		_, err := update(ctx, q, "turns", []field{content(field{"waiting", documentOf(&w)})}, where)
		return err
	})
}

// DeleteTurn implements hub.TurnStore. Its executions, events and words go with it; turns that go on from it then go on from the one before it.
func (s *Store) DeleteTurn(ctx context.Context, project, turn string) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error { return s.deleteTurn(ctx, q, project, turn) })
}

func (s *Store) deleteTurn(ctx context.Context, q queryer, project, turn string) error {
	const lock = "UPDATE conversations SET turns = turns WHERE id IN (SELECT conversation FROM turns WHERE id = $1 AND project = $2)"
	if _, err := q.ExecContext(ctx, lock, clean(turn), project); err != nil {
		return err
	}
	t, err := one(ctx, q, turnFields, "FROM turns WHERE id = $1 AND project = $2"+s.dialect.forUpdate, clean(turn), project)
	if err != nil {
		return found(err, problem.TurnNotFound)
	}
	if !t.IsTry() {
		if _, err := q.ExecContext(ctx, "UPDATE conversations SET turns = turns - 1 WHERE id = $1 AND turns > 0", t.Conversation); err != nil {
			return err
		}
	}
	if _, err := q.ExecContext(ctx, "UPDATE turns SET parent = $1 WHERE parent = $2", t.Parent, t.ID); err != nil {
		return err
	}
	return each(ctx, q, t.ID,
		"DELETE FROM documents WHERE turn_id = $1",
		"DELETE FROM events WHERE stream IN (SELECT id FROM executions WHERE turn_id = $1)",
		"DELETE FROM events WHERE stream = $1",
		"DELETE FROM executions WHERE turn_id = $1",
		"DELETE FROM turns WHERE id = $1",
	)
}

// AbandonedTurns implements hub.TurnStore. The oldest come first.
func (s *Store) AbandonedTurns(ctx context.Context, limit int) ([]hub.Turn, error) {
	return all(ctx, s, turnFields, "FROM turns WHERE unfinished = 1 AND "+ownerDead("turns")+" ORDER BY created, id LIMIT "+strconv.Itoa(max(limit, 0)))
}
