package store

import (
	"context"
	"reflect"
	"strconv"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/hub"
)

func questionFields(q *hub.Question) []field {
	return []field{
		{"id", textOf(&q.ID)}, {"project", textOf(&q.Project)}, {"user_id", textOf(&q.User)}, {"key_id", textOf(&q.Key)}, {"scopes", documentOf(&q.Scopes)},
		{"conversation", textOf(&q.Conversation)}, {"place", countOf(&q.Place)}, content(field{"turn", documentOf(&q.Turn)}), content(field{"files", documentOf(&q.Files)}),
		{"size", countOf(&q.Size)}, {"created", moment{&q.Created}}, {"changed", moment{&q.Changed}}, content(field{"held", documentOf(&q.Held)}), {"again", moment{&q.Again}},
		{"stays", derived{func() any { return bit(q.Held != nil) }}},
	}
}

func oneQuestion(project, conversation, id string) filter {
	f := owned(project, id)
	f.add("conversation = ?", clean(conversation))
	return f
}

// lockQueue locks the conversation of a queue, as what takes a question out of it does.
func lockQueue(ctx context.Context, q queryer, project, conversation string) error {
	return useQueue(ctx, q, "used", project, conversation)
}

// touchQueue locks the conversation of a queue that changes, and says that it was used: who looks for what other servers changed goes by that.
func touchQueue(ctx context.Context, q queryer, project, conversation string) error {
	now := strconv.FormatInt(micros(time.Now()), 10)
	return useQueue(ctx, q, "CASE WHEN used < "+now+" THEN "+now+" ELSE used + 1 END", project, conversation)
}

func useQueue(ctx context.Context, q queryer, used, project, conversation string) error {
	done, err := q.ExecContext(ctx, "UPDATE conversations SET used = "+used+" WHERE id = $1 AND project = $2", clean(conversation), project)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); n > 0 || err != nil {
		return err
	}
	return missing(problem.ConversationNotFound)
}

// AddQuestion implements hub.QuestionStore. Requests for different conversations that PostgreSQL takes at the same moment do not see each other, and may be a few too many.
func (s *Store) AddQuestion(ctx context.Context, x hub.Question, most hub.QuestionBounds) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		if err := touchQueue(ctx, q, x.Project, x.Conversation); err != nil {
			return err
		}
		var queue, key, project int
		var size int64
		err := q.QueryRowContext(ctx, `SELECT COUNT(CASE WHEN conversation = $2 THEN 1 END), COUNT(CASE WHEN user_id = $3 AND key_id = $4 THEN 1 END), COUNT(*),
			CAST(COALESCE(SUM(size), 0) AS BIGINT), COALESCE(MAX(CASE WHEN conversation = $2 THEN place END), 0) + 1 FROM questions WHERE project = $1`,
			x.Project, clean(x.Conversation), clean(x.User), clean(x.Key)).Scan(&queue, &key, &project, &size, &x.Place)
		if err != nil {
			return err
		}
		full := func(whose string, n int) error {
			return problem.New(problem.TooManyQuestions, whose+" has "+strconv.Itoa(n)+" questions that wait, and can have no more").
				WithHint("wait until some of them were asked, or take some out of the queue")
		}
		switch {
		case queue >= most.Conversation:
			return full("the conversation", queue)
		case key >= most.Key:
			return full("the key", key)
		case project >= most.Project || size+x.Size > most.Room:
			return full("the project", project)
		}
		return insert(ctx, q, "questions", questionFields(&x), "")
	})
}

// Questions implements hub.QuestionStore.
func (s *Store) Questions(ctx context.Context, project, conversation string) ([]hub.Question, error) {
	return all(ctx, s, questionFields, "FROM questions WHERE conversation = $1 AND project = $2 ORDER BY place", clean(conversation), project)
}

// UpdateQuestion implements hub.QuestionStore.
func (s *Store) UpdateQuestion(ctx context.Context, project, conversation, id string, change func(*hub.Question) error) (hub.Question, error) {
	var x hub.Question
	err := s.base.write(ctx, func(ctx context.Context, q queryer) (err error) {
		if err := lockQueue(ctx, q, project, conversation); err != nil {
			return err
		}
		where := oneQuestion(project, conversation, id)
		if x, err = one(ctx, q, questionFields, "FROM questions"+where.where(), where.args...); err != nil {
			return found(err, problem.QuestionNotFound)
		}
		had := x
		if err := change(&x); err != nil {
			return err
		}
		if !x.Changed.Equal(had.Changed) || !reflect.DeepEqual(x.Held, had.Held) { // and not each time that it was tried again
			if err := touchQueue(ctx, q, project, conversation); err != nil {
				return err
			}
		}
		_, err = update(ctx, q, "questions", questionFields(&x), where)
		return err
	})
	return x, err
}

// DeleteQuestion implements hub.QuestionStore.
func (s *Store) DeleteQuestion(ctx context.Context, project, conversation, id string) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		if err := touchQueue(ctx, q, project, conversation); err != nil {
			return err
		}
		return deleteQuestion(ctx, q, oneQuestion(project, conversation, id))
	})
}

func deleteQuestion(ctx context.Context, q queryer, where filter) error {
	done, err := q.ExecContext(ctx, "DELETE FROM questions"+where.where(), where.args...)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); n > 0 || err != nil {
		return err
	}
	return missing(problem.QuestionNotFound)
}

// take removes the question that a turn is, whose conversation is locked.
func take(ctx context.Context, q queryer, t hub.Turn) error {
	if t.Taken.ID == "" {
		return nil
	}
	where := oneQuestion(t.Project, t.Conversation, t.Taken.ID)
	where.add("changed = ?", micros(t.Taken.Changed))
	return deleteQuestion(ctx, q, where)
}

// UndoTurn implements hub.QuestionStore.
func (s *Store) UndoTurn(ctx context.Context, t hub.Turn, x hub.Question) error {
	return s.base.write(ctx, func(ctx context.Context, q queryer) error {
		if _, err := q.ExecContext(ctx, "UPDATE conversations SET turns = turns WHERE id = $1", t.Conversation); err != nil { // locks it
			return err
		}
		mine := false // or another process has taken it over, and may have begun it again
		err := q.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM turns WHERE id = $1 AND project = $2 AND unfinished = 1 AND owner = $3)", t.ID, t.Project, t.Owner).Scan(&mine)
		if err != nil || !mine {
			return err
		}
		if err := s.deleteTurn(ctx, q, t.Project, t.ID); err != nil {
			return err
		}
		return insert(ctx, q, "questions", questionFields(&x), "")
	})
}

// DueQuestions implements hub.QuestionStore.
func (s *Store) DueQuestions(ctx context.Context, now time.Time) ([]hub.Question, error) {
	fields := func(q *hub.Question) []field {
		return []field{{"id", textOf(&q.ID)}, {"project", textOf(&q.Project)}, {"conversation", textOf(&q.Conversation)}}
	}
	return all(ctx, s, fields, `FROM questions WHERE (stays = 0 OR again > 0 AND again <= $1)
		AND NOT EXISTS (SELECT 1 FROM questions before WHERE before.conversation = questions.conversation AND before.place < questions.place)
		AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.conversation = questions.conversation AND turns.unfinished = 1 AND turns.hidden = 0)
		ORDER BY created, id`, micros(now))
}
