package turns

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

const (
	// largestQuestion bounds a question that waits, with its settings, in bytes.
	largestQuestion = 1 << 20
	// questionRoom bounds the questions of a project that wait, in bytes.
	questionRoom = 64 << 20
)

// mostQuestions is how many may wait.
var mostQuestions = record.QuestionBounds{Conversation: 50, Key: 200, Project: 1000, Room: questionRoom}

// QuestionChange says what to change; nil fields stay.
type QuestionChange struct {
	Prompt *string
	Model  *string
	Files  []string
}

// PutQuestion puts a question into a conversation's queue: n is as of StartTurn, without what says where it goes on and without functions of the client's. It is stored when PutQuestion returns, and is asked when the
// turns before it have ended, with the rights that the caller has then. Needs what StartTurn needs. Problems: those of StartTurn, too_many_questions, question_too_large.
func (r *Runner) PutQuestion(ctx context.Context, who auth.Principal, n record.NewTurn) (record.Question, error) {
	var q record.Question
	id, again, err := "", false, mayStart(who, n)
	if err == nil {
		var request string
		if request, err = n.Fingerprint(); err == nil {
			id, again, err = r.work.RunOnce(ctx, who, "question.create", n.Once, request, func() (string, error) {
				if q, err = r.newQuestion(ctx, who, n); err == nil {
					err = r.addQuestion(ctx, q)
				}
				return q.ID, err
			})
		}
	}
	if again && err == nil {
		return r.putBefore(ctx, who, n, id)
	}
	r.work.WriteAudit(ctx, who, "question.create", n.Conversation, q.ID, err)
	if err != nil {
		return record.Question{}, err
	}
	r.askLater(q.Project, q.Conversation)
	return q, nil
}

// addQuestion writes a question. One that the store has despite its error is removed: who put it tries again.
func (r *Runner) addQuestion(ctx context.Context, q record.Question) error {
	err := r.work.Store.AddQuestion(ctx, q, mostQuestions)
	if kind := problem.Of(err); err != nil && (kind.Kind == problem.Unavailable || kind.Kind == problem.Internal) {
		r.work.RunInBackground(func(ctx context.Context) {
			undone := r.work.WriteUntilStored(ctx, func(ctx context.Context) error {
				return r.work.Store.DeleteQuestion(ctx, q.Project, q.Conversation, q.ID)
			})
			if undone != nil && !problem.Is(undone, problem.NotFound) {
				r.work.Log.WarnContext(ctx, "a question that may have been put despite an error was not removed", "question", q.ID, "error", undone)
			}
		})
	}
	return err
}

// putBefore returns a question for a request that is repeated. It may have been asked, or taken out, since.
func (r *Runner) putBefore(ctx context.Context, who auth.Principal, n record.NewTurn, id string) (record.Question, error) {
	list, err := r.work.Store.Questions(ctx, who.Project, n.Conversation)
	if err != nil {
		return record.Question{}, err
	}
	if at := slices.IndexFunc(list, func(q record.Question) bool { return q.ID == id }); at >= 0 {
		return list[at], nil
	}
	now := r.work.Now()
	return record.Question{ID: id, Project: who.Project, User: who.User, Key: who.Key, Conversation: n.Conversation, Turn: n, Created: now, Changed: now}, nil
}

// newQuestion checks all that can be checked before the question is asked.
func (r *Runner) newQuestion(ctx context.Context, who auth.Principal, n record.NewTurn) (record.Question, error) {
	switch {
	case n.Parent != "" || n.First || n.Session != "" || n.Network != nil || n.Root || len(n.History) > 0 || n.Approval != record.ApprovalNever:
		return record.Question{}, problem.New(problem.TurnInvalid, "a question in the queue goes on from the turn before it, in its session").
			WithHint("leave parent, first, session, network, root and approval out, or ask when the turn that runs has ended")
	case len(n.Tools)+len(n.CodeTools) > 0:
		return record.Question{}, problem.New(problem.TurnInvalid, "a question in the queue has no functions of the client's: nobody may be there to run them").
			WithHint("leave tools out, or ask when the turn that runs has ended")
	case !slices.ContainsFunc(n.Input, func(m model.Message) bool { return m.Role == model.RoleUser }):
		return record.Question{}, problem.New(problem.TurnInvalid, "there is no question to wait").WithHint("results of functions are sent as the next turn")
	}
	now := r.work.Now()
	q := record.Question{ID: ident.New(ident.Question), Project: who.Project, User: who.User, Key: who.Key, Scopes: who.Scopes, Conversation: n.Conversation, Created: now, Changed: now}
	return q, r.checkQuestion(ctx, who, &q, n)
}

// checkQuestion has a question ask n, if that can be asked.
func (r *Runner) checkQuestion(ctx context.Context, who auth.Principal, q *record.Question, n record.NewTurn) error {
	n.Once, n.Conversation = "", ""
	p := &plan{who: who}
	if err := r.planModel(ctx, p, n); err != nil {
		return err
	}
	text, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("write down a question: %w", err)
	}
	if len(text) > largestQuestion {
		return problem.New(problem.QuestionTooLarge, "the question has more than 1 MiB with its settings").WithHint("send what is long as a file")
	}
	n.Prompt = p.turn.Prompt
	q.Turn, q.Files, q.Size = n, p.turn.Files, int64(len(text))
	return nil
}

// Questions lists a conversation's queue, the first one first. Needs auth.ConversationsRead.
func (r *Runner) Questions(ctx context.Context, who auth.Principal, conversation string) ([]record.Question, error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return nil, err
	}
	if _, err := r.work.Store.Conversation(ctx, who.Project, conversation); err != nil {
		return nil, err
	}
	return r.work.Store.Questions(ctx, who.Project, conversation)
}

// ChangeQuestion changes a question that waits, which is the caller's from then on; one that is held is tried again. Needs what StartTurn needs. Problems: question_not_found,
// also where it has been asked meanwhile, and those of PutQuestion.
func (r *Runner) ChangeQuestion(ctx context.Context, who auth.Principal, conversation, id string, c QuestionChange) (record.Question, error) {
	q, err := r.changeQuestion(ctx, who, conversation, id, c)
	r.work.WriteAudit(ctx, who, "question.change", conversation, id, err)
	if err != nil {
		return record.Question{}, err
	}
	r.askLater(who.Project, conversation)
	return q, nil
}

func (r *Runner) changeQuestion(ctx context.Context, who auth.Principal, conversation, id string, c QuestionChange) (record.Question, error) {
	if err := who.Require(auth.ConversationsWrite); err != nil {
		return record.Question{}, err
	}
	if _, err := r.work.Store.Conversation(ctx, who.Project, conversation); err != nil {
		return record.Question{}, err
	}
	list, err := r.work.Store.Questions(ctx, who.Project, conversation)
	if err != nil {
		return record.Question{}, err
	}
	at := slices.IndexFunc(list, func(q record.Question) bool { return q.ID == id })
	if at < 0 {
		return record.Question{}, questionGone()
	}
	q := list[at]
	n := q.Turn
	if c.Prompt != nil {
		n.Prompt, n.Input = *c.Prompt, reworded(n.Input, *c.Prompt)
	}
	if c.Files != nil {
		n.Files, n.Names = c.Files, nil
	}
	n.Model = *cmp.Or(c.Model, &n.Model)
	again := ""
	if n.Tries != nil && n.Tries.Again != "" { // what had been answered was another question
		tries := *n.Tries
		again, tries.Again = tries.Again, ""
		n.Tries = &tries
	}
	if err = mayStart(who, n); err == nil {
		err = r.checkQuestion(ctx, who, &q, n)
	}
	if err != nil {
		return record.Question{}, err
	}
	changed, err := r.work.Store.UpdateQuestion(ctx, who.Project, conversation, id, func(row *record.Question) error {
		if !row.Changed.Equal(list[at].Changed) {
			return problem.New(problem.QuestionChanged, "the question was changed by another request meanwhile").WithHint("read the queue, and change it again")
		}
		at := r.work.Now()
		if !at.After(row.Changed) {
			at = row.Changed.Add(time.Microsecond)
		}
		row.User, row.Key, row.Scopes, row.Turn, row.Files, row.Size, row.Changed = who.User, who.Key, who.Scopes, q.Turn, q.Files, q.Size, at
		row.Held, row.Again = nil, time.Time{}
		return nil
	})
	if err == nil {
		r.forgetTries(who.Project, conversation, again)
	}
	return changed, err
}

// reworded returns what a client says with other words, and its pictures.
func reworded(input []model.Message, text string) []model.Message {
	said := model.Message{Role: model.RoleUser, Content: []model.Content{model.Text{Text: text}}}
	for _, m := range input {
		for _, c := range m.Content {
			if _, words := c.(model.Text); !words {
				said.Content = append(said.Content, c)
			}
		}
	}
	return []model.Message{said}
}

func questionGone() error {
	return problem.New(problem.QuestionNotFound, "there is no such question in the queue").WithHint("it was asked or taken out meanwhile: list the queue and the turns of the conversation")
}

// DeleteQuestion takes a question out of a queue. Needs auth.ConversationsWrite. Problems: question_not_found, also where it has been asked meanwhile.
func (r *Runner) DeleteQuestion(ctx context.Context, who auth.Principal, conversation, id string) error {
	err := who.Require(auth.ConversationsWrite)
	if err == nil {
		_, err = r.work.Store.Conversation(ctx, who.Project, conversation)
	}
	again := ""
	if err == nil {
		again, err = r.triesOfQuestion(ctx, who.Project, conversation, id)
	}
	if err == nil {
		err = r.work.Store.DeleteQuestion(ctx, who.Project, conversation, id)
	}
	r.work.WriteAudit(ctx, who, "question.delete", conversation, id, err)
	if err == nil {
		r.forgetTries(who.Project, conversation, again)
		r.askLater(who.Project, conversation) // what was after one that was held
	}
	return err
}
