package api

import (
	"context"
	"net/http"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Question is what is to be asked in a conversation when the turns before it have ended.
type Question struct {
	ID           string         `json:"id" example:"qst_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Conversation string         `json:"conversation"`
	Prompt       string         `json:"prompt"`
	Model        string         `json:"model,omitempty" doc:"Left out for the server's default"`
	Files        []hub.TurnFile `json:"files,omitempty" doc:"Stored files that it brings"`
	User         string         `json:"user" doc:"Who put it, or changed it last: it is asked with the rights that they have then"`
	Key          string         `json:"key,omitempty"`
	Created      time.Time      `json:"created_at"`
	Held         *hub.Held      `json:"held,omitempty" doc:"Why it could not be asked when it was its turn. It stays the first of the queue"`
	Again        *time.Time     `json:"again_at,omitempty" doc:"When the server tries that again by itself; it does so too when a turn of the conversation ends, and when the question is changed"`
}

func questionOf(q hub.Question) Question {
	out := Question{ID: q.ID, Conversation: q.Conversation, Prompt: q.Turn.Prompt, Model: q.Turn.Model, Files: q.Files, User: q.User, Key: q.Key, Created: q.Created.UTC(), Again: moment(q.Again)}
	if q.Held != nil {
		held := *q.Held
		held.Since = held.Since.UTC()
		out.Held = &held
	}
	return out
}

// QuestionChange says what to change; what is left out stays.
type QuestionChange struct {
	Prompt *string  `json:"prompt,omitempty" minLength:"1" maxLength:"1048576"`
	Model  *string  `json:"model,omitempty" maxLength:"200"`
	Files  []string `json:"files,omitempty" maxItems:"100" doc:"Ids of stored files, in the place of those that it brought"`
}

type (
	createQuestion struct {
		ConversationPath
		Body NewTurn
	}
	// QuestionPath names a question in an address.
	QuestionPath struct {
		ConversationPath
		Question string `path:"question" maxLength:"64" example:"qst_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	}
	changeQuestion struct {
		QuestionPath
		Body QuestionChange
	}
)

func (s *server) addQuestions() {
	const tag = "conversations"
	gone := []problem.Code{problem.ConversationNotFound, problem.QuestionNotFound}
	addRaw(s, operation{id: "question.create", method: http.MethodPost, path: "/conversations/{conversation}/queue", tag: tag, action: auth.ConversationsWrite, status: http.StatusCreated, repeat: repeatHub,
		summary: "Put a question into the queue",
		about:   "It is asked when the turns before it have ended, in the order of the queue, whether or not you stay, and at once where no turn runs. It is the body of `POST /conversations/{conversation}/turns`, without `parent`, `first`, `session`, `network`, `root`, `results`, `approval` and `tools`: it goes on from the turn before it, in its session. The answer comes when it is stored. It takes the rights that asking takes, and is asked with those that you have then.",
		errors:  []problem.Code{problem.ConversationNotFound, problem.TurnInvalid, problem.TooManyQuestions, problem.QuestionTooLarge, problem.FileNotFound, problem.ModelUnknown, problem.QuotaTokens},
		example: `# while a turn runs, or waits for your word as this one does
BUSY=$(curl -H "Authorization: Bearer $KEY" "$COVE/turns?background=true" \
  -d '{"prompt":"What is 6 * 7?","approval":"always"}' | field conversation)
QUESTION=$(curl -H "Authorization: Bearer $KEY" $COVE/conversations/$BUSY/queue -d '{"prompt":"And 7 * 7?"}' | field id)`},
		func(w http.ResponseWriter, r *http.Request, who auth.Principal, in *createQuestion) error {
			n, err := in.Body.hub(in.Conversation, r.Header.Get("Idempotency-Key"))
			if err != nil {
				return err
			}
			q, err := s.o.Hub.PutQuestion(r.Context(), who, n)
			if err != nil {
				return err
			}
			writeJSON(w, http.StatusCreated, questionOf(q))
			return nil
		})
	add(s, operation{id: "question.list", method: http.MethodGet, path: "/conversations/{conversation}/queue", tag: tag, action: auth.ConversationsRead, summary: "List a conversation's queue",
		about: "All of it, the question that is asked next first. `GET /events` tells of changes as changes of the conversation.", errors: []problem.Code{problem.ConversationNotFound},
		example: `curl -H "Authorization: Bearer $KEY" $COVE/conversations/$BUSY/queue`},
		func(ctx context.Context, who auth.Principal, in *ConversationPath) (List[Question], error) {
			out, err := s.o.Hub.Questions(ctx, who, in.Conversation)
			return List[Question]{Items: each(out, questionOf)}, err
		})
	add(s, operation{id: "question.change", method: http.MethodPatch, path: "/conversations/{conversation}/queue/{question}", tag: tag, action: auth.ConversationsWrite, summary: "Change a question in the queue",
		about:  "It keeps its place, and is yours from then on. One that is held is tried again, also with an empty change. It takes the rights that asking takes.",
		errors: append(gone, problem.QuestionChanged, problem.QuestionTooLarge), example: `curl -H "Authorization: Bearer $KEY" -X PATCH $COVE/conversations/$BUSY/queue/$QUESTION \
  -d '{"prompt":"And 8 * 7?"}'`},
		func(ctx context.Context, who auth.Principal, in *changeQuestion) (Question, error) {
			out, err := s.o.Hub.ChangeQuestion(ctx, who, in.Conversation, in.Question, hub.QuestionChange(in.Body))
			return questionOf(out), err
		})
	addSilent(s, operation{id: "question.delete", method: http.MethodDelete, path: "/conversations/{conversation}/queue/{question}", tag: tag, action: auth.ConversationsWrite, summary: "Take a question out of the queue",
		about: "What has been asked is not there any more (`question_not_found`): cancel its turn.", errors: gone,
		example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/conversations/$BUSY/queue/$QUESTION`},
		func(ctx context.Context, who auth.Principal, in *QuestionPath) error {
			return s.o.Hub.DeleteQuestion(ctx, who, in.Conversation, in.Question)
		})
}
