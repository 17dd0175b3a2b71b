package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Conversation is the turns of a user with a model, bound to a session.
type Conversation struct {
	ID       string            `json:"id" example:"cnv_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Title    string            `json:"title"`
	Session  string            `json:"session,omitempty" doc:"Whose Python its turns use; missing until one needs it"`
	Model    string            `json:"model,omitempty" doc:"Of the last turn"`
	Metadata map[string]string `json:"metadata"`
	Turns    int               `json:"turns"`
	Source   string            `json:"source" doc:"The surface that it came through" example:"api"`
	Approval string            `json:"approval" enum:"never,always" doc:"always: each program of the model's waits until you approve it (POST /turns/{turn}/approve)"`
	Created  time.Time         `json:"created_at"`
	Used     time.Time         `json:"used_at"`
	User     string            `json:"user"`

	Origin *hub.ConversationOrigin `json:"origin,omitempty" doc:"Of a fork: the conversation that it was made from, and the last turn of that which it has too. Both may have been deleted since"`
}

func conversationOf(c hub.Conversation) Conversation {
	return Conversation{ID: c.ID, Title: c.Title, Session: c.Session, Model: c.Model, Metadata: notNil(c.Metadata), Turns: c.Turns, Source: c.Source, Approval: cmp.Or(string(c.Approval), never),
		Created: c.Created.UTC(), Used: c.Used.UTC(), User: c.User, Origin: c.Origin}
}

// never is hub.ApprovalNever in words.
const never = "never"

func approvalOf(word string) hub.Approval {
	if word == never {
		return hub.ApprovalNever
	}
	return hub.Approval(word)
}

// NewConversation says what conversation to make. All of it may be left out.
type NewConversation struct {
	Title    string            `json:"title,omitempty" maxLength:"500"`
	Session  string            `json:"session,omitempty" maxLength:"64" doc:"One that is there already"`
	Metadata map[string]string `json:"metadata,omitempty" maxProperties:"32"`
	Source   string            `json:"source,omitempty" enum:"api,cli,web" default:"api"`
	Approval string            `json:"approval,omitempty" enum:"never,always" doc:"never when left out"`
}

// ConversationChange says what to change; what is left out stays.
type ConversationChange struct {
	Title    *string           `json:"title,omitempty" maxLength:"500"`
	Metadata map[string]string `json:"metadata,omitempty" maxProperties:"32" doc:"Takes the place of what was there"`
	Approval *string           `json:"approval,omitempty" enum:"never,always" doc:"Of the turns that begin later"`
}

// NewFork says how to fork a conversation. All of it may be left out.
type NewFork struct {
	Turn  string `json:"turn,omitempty" maxLength:"64" doc:"The last turn that the fork has too: the conversation's last when left out"`
	Title string `json:"title,omitempty" maxLength:"500" doc:"The same when left out"`
	State string `json:"state,omitempty" enum:"then,now,none" default:"then" doc:"Which variables and files the fork has: those after that turn, those that its session has at present, or none"`
}

type (
	forkConversation struct {
		ConversationPath
		Body *NewFork
	}
	createConversation struct{ Body *NewConversation }
	// ConversationPath names a conversation in an address.
	ConversationPath struct {
		Conversation string `path:"conversation" maxLength:"64" example:"cnv_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	}
	listConversations struct {
		Paging
		Session string `query:"session" maxLength:"64"`
		User    string `query:"user" maxLength:"64"`
		Source  string `query:"source" maxLength:"64"`
	}
	changeConversation struct {
		ConversationPath
		Body ConversationChange
	}
	listTurns struct {
		ConversationPath
		After string `query:"after" maxLength:"500" doc:"The next of the page before"`
		Limit int    `query:"limit" minimum:"1" maximum:"100" default:"20"`
		Order string `query:"order" enum:"newest,oldest" default:"oldest"`
	}
)

func (s *server) addConversations() {
	const tag = "conversations"
	add(s, operation{id: "conversation.create", method: http.MethodPost, path: "/conversations", tag: tag, action: auth.ConversationsWrite, status: http.StatusCreated, repeat: repeatKept,
		summary: "Create a conversation", about: "It is empty, and the body may be. Asking without a conversation (`POST /turns`) makes one as well.", errors: []problem.Code{problem.SessionNotFound},
		example: `curl -H "Authorization: Bearer $KEY" $COVE/conversations -d '{"title":"Sales"}'`},
		func(ctx context.Context, who auth.Principal, in *createConversation) (Conversation, error) {
			n := hub.NewConversation{Source: "api"}
			if b := in.Body; b != nil {
				n = hub.NewConversation{Title: b.Title, Session: b.Session, Metadata: b.Metadata, Source: b.Source, Approval: approvalOf(b.Approval)}
			}
			if n.Source == "" {
				n.Source = "api"
			}
			out, err := s.o.Hub.CreateConversation(ctx, who, n)
			return conversationOf(out), err
		})
	add(s, operation{id: "conversation.list", method: http.MethodGet, path: "/conversations", tag: tag, action: auth.ConversationsRead, summary: "List conversations", about: "The one used last first.",
		example: `curl -H "Authorization: Bearer $KEY" "$COVE/conversations?limit=5"`},
		func(ctx context.Context, who auth.Principal, in *listConversations) (List[Conversation], error) {
			out, err := s.o.Hub.Conversations(ctx, who, hub.ConversationFilter{Session: in.Session, User: in.User, Source: in.Source}, in.page())
			return listOf(out, conversationOf), err
		})
	add(s, operation{id: "conversation.get", method: http.MethodGet, path: "/conversations/{conversation}", tag: tag, action: auth.ConversationsRead, summary: "Get a conversation",
		errors: []problem.Code{problem.ConversationNotFound}, example: `curl -H "Authorization: Bearer $KEY" $COVE/conversations/$CONVERSATION`},
		func(ctx context.Context, who auth.Principal, in *ConversationPath) (Conversation, error) {
			out, err := s.o.Hub.Conversation(ctx, who, in.Conversation)
			return conversationOf(out), err
		})
	add(s, operation{id: "conversation.change", method: http.MethodPatch, path: "/conversations/{conversation}", tag: tag, action: auth.ConversationsWrite, summary: "Change a conversation",
		errors: []problem.Code{problem.ConversationNotFound}, example: `curl -H "Authorization: Bearer $KEY" -X PATCH $COVE/conversations/$CONVERSATION -d '{"title":"Sales of May"}'`},
		func(ctx context.Context, who auth.Principal, in *changeConversation) (Conversation, error) {
			change := hub.ConversationChange{Title: in.Body.Title, Metadata: in.Body.Metadata}
			if in.Body.Approval != nil {
				change.Approval = new(approvalOf(*in.Body.Approval))
			}
			out, err := s.o.Hub.ChangeConversation(ctx, who, in.Conversation, change)
			return conversationOf(out), err
		})
	addSilent(s, operation{id: "conversation.delete", method: http.MethodDelete, path: "/conversations/{conversation}", tag: tag, action: auth.ConversationsWrite, summary: "Delete a conversation",
		about: "With all its turns, and what they ran.", errors: []problem.Code{problem.ConversationNotFound}, example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/conversations/$CONVERSATION`},
		func(ctx context.Context, who auth.Principal, in *ConversationPath) error {
			return s.o.Hub.DeleteConversation(ctx, who, in.Conversation)
		})
	add(s, operation{id: "conversation.fork", method: http.MethodPost, path: "/conversations/{conversation}/fork", tag: tag, action: auth.ConversationsWrite, status: http.StatusCreated, repeat: repeatKept,
		summary: "Fork a conversation",
		about:   "Makes a conversation that goes on from the same turn with the same variables and files, to try something without losing it. It has copies of the turns up to there, with their steps and events, and a fork of their session; the two share nothing. It needs the right `conversations:read` too, and `sessions:write` to fork the session. `origin` of a copied turn says whose copy it is: the session of that turn has the point from before it.",
		errors:  []problem.Code{problem.ConversationNotFound, problem.TurnNotFound, problem.TurnRunning, problem.ConversationEmpty, problem.ConversationTooLarge, problem.PointUnknown, problem.QuotaSessions},
		example: `curl -H "Authorization: Bearer $KEY" -X POST $COVE/conversations/$CONVERSATION/fork -d '{"title":"what if"}'`},
		func(ctx context.Context, who auth.Principal, in *forkConversation) (Conversation, error) {
			n := hub.NewFork{State: hub.StateThen}
			if b := in.Body; b != nil {
				n.Turn, n.Title, n.State = b.Turn, b.Title, cmp.Or(hub.ForkState(b.State), hub.StateThen)
			}
			out, err := s.o.Hub.ForkConversation(ctx, who, in.Conversation, n)
			return conversationOf(out), err
		})
	add(s, operation{id: "turn.list", method: http.MethodGet, path: "/conversations/{conversation}/turns", tag: tag, action: auth.ConversationsRead, summary: "List a conversation's turns",
		about: "Of all branches, the oldest first unless you say otherwise.", errors: []problem.Code{problem.ConversationNotFound}, example: `curl -H "Authorization: Bearer $KEY" $COVE/conversations/$CONVERSATION/turns`},
		func(ctx context.Context, who auth.Principal, in *listTurns) (List[Turn], error) {
			out, err := s.o.Hub.Turns(ctx, who, in.Conversation, hub.Page{After: in.After, Limit: in.Limit, Oldest: in.Order != "newest"})
			return listOf(out, turnOf), err
		})
}
