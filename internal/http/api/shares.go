package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Shares are the links of a hub to conversations, and what else makes a document of a branch.
type Shares interface {
	LastTurn(ctx context.Context, who auth.Principal, conversation string) (hub.Turn, error)
	Recorded(ctx context.Context, who auth.Principal, id string) (hub.Follower[json.RawMessage], error)
	AddShare(ctx context.Context, who auth.Principal, n hub.NewShare) (hub.Share, string, error)
	Shares(ctx context.Context, who auth.Principal, p hub.Page) (hub.Listing[hub.Share], error)
	DeleteShare(ctx context.Context, who auth.Principal, id string) error
	Shared(ctx context.Context, code string) (hub.Share, []byte, error)
}

// Share is a link that shows a branch of a conversation, as it was, to all who have the link.
type Share struct {
	ID           string     `json:"id" example:"shr_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Conversation string     `json:"conversation"`
	Turn         string     `json:"turn" doc:"The last one that it shows"`
	Title        string     `json:"title"`
	Turns        int        `json:"turns" doc:"How many it shows"`
	Code         bool       `json:"shows_code" doc:"Whether it shows code and its output"`
	User         string     `json:"created_by"`
	Created      time.Time  `json:"created_at"`
	Expires      *time.Time `json:"expires_at,omitempty" doc:"Missing: never"`
}

func shareOf(s hub.Share) Share {
	return Share{ID: s.ID, Conversation: s.Conversation, Turn: s.Turn, Title: s.Title, Turns: s.Turns, Code: s.Code, User: s.User, Created: s.Created.UTC(), Expires: moment(s.Expires)}
}

// MadeShare is a link with its code.
type MadeShare struct {
	Secret string `json:"code" doc:"Not shown again; GET /shared/{code} shows the conversation to all who have it"`
	Share
}

// Shared is what a link shows.
type Shared struct {
	Title   string       `json:"title"`
	Code    bool         `json:"shows_code" doc:"Whether it shows code and its output"`
	Files   []string     `json:"files" doc:"Names of files that were there for the whole conversation"`
	Turns   []SharedTurn `json:"turns" doc:"The oldest first"`
	Created time.Time    `json:"created_at"`
	Expires *time.Time   `json:"expires_at,omitempty" doc:"Missing: never"`
}

// SharedTurn is a turn without the ids of users, sessions and keys.
type SharedTurn struct {
	ID       string            `json:"id"`
	Parent   string            `json:"parent,omitempty" doc:"The turn before it"`
	State    hub.TurnState     `json:"state" enum:"completed,waiting,failed,canceled,lost"`
	Model    string            `json:"model"`
	Prompt   string            `json:"prompt"`
	Answer   string            `json:"answer"`
	Reason   string            `json:"reason,omitempty"`
	Problem  json.RawMessage   `json:"problem,omitempty" doc:"Why it failed: kind, code, message, hint"`
	Usage    Tokens            `json:"usage"`
	Steps    int               `json:"steps" doc:"Executions"`
	Created  time.Time         `json:"created_at"`
	Finished *time.Time        `json:"finished_at,omitempty"`
	Events   []json.RawMessage `json:"events" doc:"As the turn's events are streamed; without code and output where these are not shown"`
	Outdated bool              `json:"outdated,omitempty" doc:"A step of it, or one before it, ran again after the answer was written"`
	Files    []SharedFile      `json:"files" doc:"That its code created or changed; their contents are not shared"`
}

func sharedTurnOf(t Turn) SharedTurn {
	return SharedTurn{ID: t.ID, Parent: t.Parent, State: t.State, Model: t.Model, Prompt: t.Prompt, Answer: t.Answer, Reason: t.Reason, Problem: t.Problem, Usage: t.Usage,
		Steps: t.Steps, Created: t.Created, Finished: t.Finished, Events: []json.RawMessage{}, Files: []SharedFile{}}
}

// SharedFile is a file that code made.
type SharedFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

type (
	createShare struct {
		ConversationPath
		Body struct {
			Turn    string `json:"turn,omitempty" maxLength:"64" doc:"The last one to show; the newest when left out"`
			Code    *bool  `json:"code,omitempty" doc:"false: show questions and answers alone, without code and its output"`
			Seconds *int64 `json:"seconds,omitempty" minimum:"0" maximum:"315360000" doc:"How long it shows it; 30 days when left out, 0: without an end"`
		}
	}
	// SharePath names a share in an address.
	SharePath struct {
		Share string `path:"share" maxLength:"64" example:"shr_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	}
	sharedPath struct {
		Code string `path:"code" maxLength:"200" doc:"Of the link"`
	}
)

const (
	shareLife = 30 * 24 * time.Hour
	// sharedAtOnce bounds how many documents are sent at the same time to those without a key.
	sharedAtOnce   = 8
	sharedPatience = 5 * time.Second
)

func (s *server) addShares() {
	const tag = "conversations"
	add(s, operation{id: "share.create", method: http.MethodPost, path: "/conversations/{conversation}/shares", tag: tag, action: auth.ConversationsWrite, status: http.StatusCreated, repeat: repeatNever,
		summary: "Share a conversation", about: "Makes a link that shows a branch, as it is now, to all who have the link, without a key. Its code is in the answer and is not shown again. It takes the right `conversations:read` as well.",
		errors: []problem.Code{problem.SharingOff, problem.ConversationNotFound, problem.TurnNotFound, problem.ConversationEmpty, problem.TurnRunning, problem.ShareTooLarge, problem.TooManyShares},
		example: `LINK=$(curl -H "Authorization: Bearer $KEY" $COVE/conversations/$CONVERSATION/shares -d '{"seconds":3600}' | field code)
SHARE=$(curl -H "Authorization: Bearer $KEY" $COVE/conversations/$CONVERSATION/shares -d '{"code":false}' | field id)`},
		s.createShare)
	add(s, operation{id: "share.list", method: http.MethodGet, path: "/shares", tag: tag, action: auth.ConversationsRead, summary: "List links to conversations", about: "Those of the project that show something.",
		example: `curl -H "Authorization: Bearer $KEY" $COVE/shares`},
		func(ctx context.Context, who auth.Principal, in *Paging) (List[Share], error) {
			out, err := s.o.Hub.Shares(ctx, who, in.page())
			return listOf(out, shareOf), err
		})
	addSilent(s, operation{id: "share.delete", method: http.MethodDelete, path: "/shares/{share}", tag: tag, action: auth.ConversationsWrite, summary: "Withdraw a link", about: "At once.",
		errors: []problem.Code{problem.ShareNotFound}, example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/shares/$SHARE`},
		func(ctx context.Context, who auth.Principal, in *SharePath) error {
			return s.o.Hub.DeleteShare(ctx, who, in.Share)
		})
	addRaw(s, operation{id: "share.show", method: http.MethodGet, path: "/shared/{code}", tag: tag, public: true, summary: "See a shared conversation",
		about:  "What never was, was withdrawn or has expired is the same 404.",
		errors: []problem.Code{problem.ShareNotFound, problem.SharingOff, problem.TooManyFailedLogins}, example: `curl $COVE/shared/$LINK`}, s.showShared)
}

func (s *server) createShare(ctx context.Context, who auth.Principal, in *createShare) (MadeShare, error) {
	if s.o.NoSharing {
		return MadeShare{}, sharingOff()
	}
	conversation, turns, err := s.branch(ctx, who, in.Conversation, in.Body.Turn)
	if err != nil {
		return MadeShare{}, err
	}
	n := hub.NewShare{Conversation: conversation.ID, Turn: turns[len(turns)-1].ID, Title: conversation.Title, Turns: len(turns), Code: in.Body.Code == nil || *in.Body.Code, Life: shareLife}
	if in.Body.Seconds != nil {
		n.Life = seconds(*in.Body.Seconds)
	}
	doc := Shared{Title: conversation.Title, Code: n.Code, Files: fileNames(conversation), Turns: []SharedTurn{}, Created: s.o.Now().UTC()}
	if n.Life > 0 {
		doc.Expires = moment(doc.Created.Add(n.Life))
	}
	room := int64(hub.LargestShare)
	outdated := hub.Outdated(turns)
	for i, t := range turns {
		shared, err := s.sharedTurn(ctx, who, t, n.Code, &room)
		if err != nil {
			return MadeShare{}, err
		}
		shared.Outdated = outdated[i]
		doc.Turns = append(doc.Turns, shared)
	}
	if n.Document, err = plainJSON(doc); err != nil {
		return MadeShare{}, err
	}
	made, code, err := s.o.Hub.AddShare(ctx, who, n)
	return MadeShare{Secret: code, Share: shareOf(made)}, err
}

// plainJSON is JSON in which text is as it was: the events of a document are to be those that were streamed.
func plainJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return out.Bytes(), err
}

func sharingOff() error {
	return problem.New(problem.SharingOff, "the operator has switched off links to conversations").WithHint("serve.sharing = true, or COVE_SHARING=on, switches them on")
}

// branch returns a conversation and those of its turns that end in one, which is the newest where none is named.
func (s *server) branch(ctx context.Context, who auth.Principal, conversation, turn string) (hub.Conversation, []hub.Turn, error) {
	c, err := s.o.Hub.Conversation(ctx, who, conversation)
	if err != nil {
		return c, nil, err
	}
	if turn == "" {
		last, err := s.o.Hub.LastTurn(ctx, who, c.ID)
		if err != nil {
			return c, nil, err
		}
		turn = last.ID
	}
	turns, err := s.o.Hub.Branch(ctx, who, turn)
	if err != nil {
		return c, nil, err
	}
	last := turns[len(turns)-1]
	switch {
	case last.Conversation != c.ID:
		return c, nil, problem.New(problem.TurnNotFound, "there is no such turn")
	case !last.State.Final():
		return c, nil, hub.ErrTurnRunning()
	}
	return c, turns, nil
}

// sharedTurn is a turn as others see it. room is what is left for all of them, in bytes.
func (s *server) sharedTurn(ctx context.Context, who auth.Principal, t hub.Turn, code bool, room *int64) (SharedTurn, error) {
	out := sharedTurnOf(turnOf(t))
	events, err := s.o.Hub.Recorded(ctx, who, t.ID)
	if err != nil {
		return out, err
	}
	sizes, names := map[string]int64{}, []string{}
	last := int64(0)
	for n, err := range events {
		if err != nil {
			return out, err
		}
		body := json.RawMessage(numbered(n, last).Data)
		last = n.Seq
		if f, ok := madeFile(body); ok {
			if _, known := sizes[f.Name]; !known {
				names = append(names, f.Name)
			}
			sizes[f.Name] = f.Size
		}
		if !code && !isTalk(body) {
			continue
		}
		if *room -= int64(len(body)); *room < 0 {
			return out, hub.ErrShareTooLarge()
		}
		if err := bodybudget.Recall(ctx, 3*(hub.LargestShare-*room)); err != nil {
			return out, err
		}
		out.Events = append(out.Events, bytes.Clone(body))
	}
	for _, name := range names {
		out.Files = append(out.Files, SharedFile{Name: name, Size: sizes[name]})
	}
	return out, nil
}

// madeFile returns the file that an event tells of.
func madeFile(body []byte) (SharedFile, bool) {
	if len(body) > 64<<10 || !bytes.Contains(body, []byte(`"file"`)) {
		return SharedFile{}, false
	}
	var e struct {
		Type  string `json:"type"`
		Event struct {
			Type string `json:"type"`
			Path string `json:"path"`
			Size int64  `json:"size"`
		} `json:"event"`
	}
	if json.Unmarshal(body, &e) != nil || e.Type != "output" || e.Event.Type != "file" {
		return SharedFile{}, false
	}
	return SharedFile{Name: e.Event.Path, Size: e.Event.Size}, true
}

// isTalk says whether an event is what the model said, and no code and no output.
func isTalk(body []byte) bool {
	var e struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(body, &e) != nil {
		return false
	}
	return e.Type == "text" || e.Type == "answer" || e.Type == "failure"
}

// fileNames are the names of the files that the command line brought, which it keeps with the conversation.
func fileNames(c hub.Conversation) []string {
	if c.Metadata["files"] == "" {
		return []string{}
	}
	return strings.Split(c.Metadata["files"], "\n")
}

func (s *server) showShared(w http.ResponseWriter, r *http.Request, _ auth.Principal, in *sharedPath) error {
	if s.o.NoSharing {
		return sharingOff()
	}
	ctx, cancel := context.WithTimeout(r.Context(), sharedPatience)
	defer cancel()
	select {
	case s.showing <- struct{}{}:
		defer func() { <-s.showing }()
	case <-ctx.Done():
		return problem.New(problem.Overloaded, "too many look at shared conversations at this moment").WithHint("try again in a moment")
	}
	var packed []byte
	err := auth.VisitOf(r.Context()).Look(r.Context(), func(ctx context.Context) (err error) {
		_, packed, err = s.o.Hub.Shared(ctx, in.Code)
		return err
	})
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Robots-Tag", "noindex")
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed)
		return nil
	}
	document, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	_, _ = io.Copy(w, io.LimitReader(document, 2*hub.LargestShare))
	return nil
}
