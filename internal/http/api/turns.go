package api

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"slices"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/sse"
	"cove/internal/llm/model"
	"cove/internal/llm/tool"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Turn is one request to a model and everything until its answer.
type Turn struct {
	ID           string            `json:"id" example:"trn_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Conversation string            `json:"conversation"`
	Parent       string            `json:"parent,omitempty" doc:"The turn before it in its branch"`
	Session      string            `json:"session,omitempty"`
	State        hub.TurnState     `json:"state" enum:"running,completed,waiting,failed,canceled,lost" doc:"waiting: for the results of your functions, which the next turn brings"`
	Model        string            `json:"model"`
	Prompt       string            `json:"prompt"`
	Answer       string            `json:"answer" doc:"The final text"`
	Reason       string            `json:"reason,omitempty" doc:"complete, or why the answer came before the model was done: step_limit, call_limit, token_limit, time_limit, length, filtered, repeated, no_answer, client_calls (your functions)"`
	Problem      json.RawMessage   `json:"problem,omitempty" doc:"Why it failed: kind, code, message, hint"`
	Calls        []Call            `json:"calls,omitempty" doc:"Of your functions, when it waits for their results"`
	Usage        Tokens            `json:"usage"`
	Cost         *Cost             `json:"cost,omitempty" doc:"By the prices at its end; left out where the operator set none"`
	Context      *Context          `json:"context,omitempty" doc:"How much of what the model takes at once it used"`
	Steps        int               `json:"steps" doc:"Executions"`
	Waiting      *Waiting          `json:"waiting,omitempty" doc:"Code that waits for your word, while the turn runs: see POST /turns/{turn}/approve"`
	Created      time.Time         `json:"created_at"`
	Finished     *time.Time        `json:"finished_at,omitempty"`
	Files        []hub.TurnFile    `json:"files,omitempty" doc:"Stored files that it brought, as they were called then"`
	Origin       *hub.TurnOrigin   `json:"origin,omitempty" doc:"Of a turn that a fork of a conversation has: the turn that it is a copy of, and that one's session, which has the point from before it"`
	Tries        *TriesOf          `json:"tries,omitempty" doc:"Of a turn that was answered several times, and of each of these tries"`
	Rating       *Rating           `json:"rating,omitempty"`
	Undone       *Undone           `json:"undone,omitempty"`
	Reruns       []Rerun           `json:"reruns,omitempty" doc:"Steps that a person ran again after the answer was written"`
	Last         int64             `json:"last_event" doc:"Id of the last event so far"`
	User         string            `json:"user"`
	Key          string            `json:"key,omitempty"`
	Events       []json.RawMessage `json:"events,omitempty" doc:"All of them, where the answer was waited for"`
	Cut          bool              `json:"events_cut,omitempty" doc:"There are more events than one answer may hold; follow to get them"`
}

// TriesOf is what a turn has to do with tries.
type TriesOf struct {
	Of     string     `json:"of,omitempty" doc:"Of a try: the turn that it is a try of"`
	Place  int        `json:"place,omitempty" doc:"Of a try: which it is, from 1"`
	Passed *bool      `json:"passed,omitempty" doc:"Of a try: whether the check passed"`
	Number int        `json:"number,omitempty" doc:"Of the turn that has tries: how many there are at most"`
	Chosen string     `json:"chosen,omitempty" doc:"Of the turn that has tries: the one whose answer, variables and files it has"`
	Why    hub.Choice `json:"why,omitempty" enum:"check,agreement,vote,first" doc:"It passed the check; most answered as it did; the model voted for it; nothing says which is right, and it was the first"`
	Agree  int        `json:"agree,omitempty" doc:"How many answered as the chosen one"`
	Failed bool       `json:"failed,omitempty" doc:"No try passed the check"`
}

// Tries have a question answered several times at once.
type Tries struct {
	Number int      `json:"number" minimum:"2" maximum:"10" doc:"How many, each in a fork of the session"`
	Models []string `json:"models,omitempty" maxItems:"10" doc:"Who answers, the first one again after the last; the turn's model when left out"`
	Check  string   `json:"check,omitempty" maxLength:"65536" doc:"Code that a right answer passes, with the answer's words as the variable answer: it runs in the session of a try, without an error and with a last value that is not false. Without it, what most tries answer is right"`
}

func (t *Tries) hub() *hub.Tries {
	if t == nil {
		return nil
	}
	return &hub.Tries{Number: t.Number, Models: t.Models, Check: t.Check}
}

// Rating is what a person says of an answer.
type Rating struct {
	Good   bool      `json:"good"`
	Reason string    `json:"reason,omitempty"`
	User   string    `json:"user" doc:"Who said it"`
	At     time.Time `json:"at"`
}

func ratingOf(r *hub.Rating) *Rating {
	if r == nil {
		return nil
	}
	return &Rating{Good: r.Good, Reason: r.Reason, User: r.User, At: r.At.UTC()}
}

// NewRating says what a person thinks of an answer.
type NewRating struct {
	Good   bool   `json:"good"`
	Reason string `json:"reason,omitempty" maxLength:"2000" doc:"What is wrong, or right"`
}

// RatedTurn is a turn whose answer a person has rated.
type RatedTurn struct {
	Turn         string    `json:"turn"`
	Conversation string    `json:"conversation"`
	Model        string    `json:"model"`
	Prompt       string    `json:"prompt"`
	Answer       string    `json:"answer"`
	Created      time.Time `json:"created_at"`
	Rating       *Rating   `json:"rating"`
}

func ratedOf(t hub.Turn) RatedTurn {
	return RatedTurn{Turn: t.ID, Conversation: t.Conversation, Model: t.Model, Prompt: t.Prompt, Answer: t.Answer, Created: t.Created.UTC(), Rating: ratingOf(t.Rating)}
}

// Cost is what tokens cost.
type Cost struct {
	Amount    float64 `json:"amount" doc:"With at most six decimals"`
	Currency  string  `json:"currency" example:"USD"`
	Estimated bool    `json:"estimated,omitempty" doc:"The tokens are estimated"`
}

// Context is how full a model's context is.
type Context struct {
	Used int64 `json:"used" doc:"Tokens of the turn's last request to the model and of its answer"`
	Size int64 `json:"size,omitempty" doc:"Tokens that the model takes; left out where that is not known"`
}

// Call is a call of one of the client's functions.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments" doc:"A JSON object, as text"`
	Execution string `json:"execution,omitempty" doc:"Whose code made the call, and waits for the result; left out where the model made it"`
}

// Waiting is code that waits for its user's word.
type Waiting struct {
	Step  int       `json:"step"`
	Code  string    `json:"code"`
	Why   string    `json:"why,omitempty" doc:"What in it calls for a look, where the rules for code ask"`
	Since time.Time `json:"since"`
}

// Word is what a user says about code that waits.
type Word struct {
	Step int    `json:"step" minimum:"1" doc:"That the code waits for, as the turn and its event \"approval\" say"`
	Run  bool   `json:"run" doc:"false: the model is told that you did not want the code to run, and goes on"`
	Code string `json:"code,omitempty" maxLength:"1048576" doc:"That runs instead of the model's"`
	Note string `json:"note,omitempty" maxLength:"4096" doc:"For the model, when the code does not run"`
}

// Tokens count what a model read and wrote.
type Tokens struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`

	Cached    int64 `json:"cached_tokens,omitempty" doc:"Of the input, those that the provider had read before"`
	Reasoning int64 `json:"reasoning_tokens,omitempty" doc:"Of the output, those that were thought and not said"`
	Estimated bool  `json:"estimated,omitempty" doc:"By the lengths of what was sent and said: the model did not say, or what cannot be"`
}

func tokensOf(u model.Usage) Tokens {
	return Tokens{Input: u.InputTokens, Output: u.OutputTokens, Cached: u.CachedTokens, Reasoning: u.ReasoningTokens, Estimated: u.Estimated}
}

func turnOf(t hub.Turn) Turn {
	out := Turn{ID: t.ID, Conversation: t.Conversation, Parent: t.Parent, Session: t.Session, State: t.State, Model: t.Model, Prompt: t.Prompt, Answer: t.Answer,
		Reason: t.Reason, Usage: tokensOf(t.Usage), Steps: t.Steps, Created: t.Created.UTC(),
		Finished: moment(t.Finished), Files: t.Files, Origin: t.Origin, Last: t.Events, User: t.User, Key: t.Key}
	if t.Cost.Currency != "" {
		out.Cost = &Cost{Amount: t.Cost.Amount, Currency: t.Cost.Currency, Estimated: t.Usage.Estimated}
	}
	if t.Context.Used > 0 {
		out.Context = &Context{Used: t.Context.Used, Size: t.Context.Size}
	}
	if w := t.Waiting; w != nil {
		out.Waiting = &Waiting{Step: w.Step, Code: w.Code, Why: w.Why, Since: w.Since.UTC()}
	}
	if a := t.Tries; a != nil {
		if t.IsTry() && !t.Finished.IsZero() {
			out.Session = "" // its fork is gone
		}
		out.Tries = &TriesOf{Of: a.Of, Place: a.Place, Passed: a.Passed, Number: a.Number, Chosen: a.Chosen, Why: a.Why, Agree: a.Agree, Failed: a.Failed}
	}
	out.Rating = ratingOf(t.Rating)
	out.mark(t.Marks)
	if json.Valid(t.Problem) {
		out.Problem = t.Problem
	}
	for _, c := range t.Calls {
		call := Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments}
		if execution, _, ok := hub.CallOfCode(c.ID); ok {
			call.Execution = execution
		}
		out.Calls = append(out.Calls, call)
	}
	return out
}

// NewTurn says what a model is asked.
type NewTurn struct {
	Prompt       string   `json:"prompt,omitempty" maxLength:"1048576" doc:"Your words"`
	Images       []Image  `json:"images,omitempty" maxItems:"16" doc:"For a model that sees"`
	Results      []Result `json:"results,omitempty" maxItems:"64" doc:"Of your functions that the turn before called; then there is no prompt"`
	Parent       string   `json:"parent,omitempty" maxLength:"64" doc:"The turn to go on from: the conversation's last when left out; an earlier one begins a branch"`
	First        bool     `json:"first,omitempty" doc:"Go on from no turn: another version of the conversation's first question"`
	Session      string   `json:"session,omitempty" maxLength:"64" doc:"Whose Python is used: the conversation's, or a new one, when left out"`
	Network      *Network `json:"network,omitempty" doc:"Of a new session: where its programs may connect to"`
	Root         bool     `json:"root,omitempty" doc:"Of a new session: its programs may run as root"`
	Model        string   `json:"model,omitempty" maxLength:"200" doc:"The server's default when left out"`
	Files        []string `json:"files,omitempty" maxItems:"100" doc:"Ids of stored files that are put into the workspace first"`
	Instructions string   `json:"instructions,omitempty" maxLength:"262144"`
	Python       *bool    `json:"python,omitempty" doc:"false: the model is not offered the interpreter"`
	Tools        []Tool   `json:"tools,omitempty" maxItems:"128" doc:"Your functions: the model or its code calls them, you run them"`
	Servers      []string `json:"tool_servers,omitempty" maxItems:"100" doc:"Tool servers whose tools code may call, in the module tools (GET /tool-servers)"`
	AskBefore    []string `json:"ask_before,omitempty" maxItems:"100" doc:"Tools of these servers that wait for your word before each call, see POST /executions/{execution}/calls/{number}/approve"`
	ToolChoice   string   `json:"tool_choice,omitempty" maxLength:"128" doc:"auto, none, required, or the name of one function"`
	Parallel     *bool    `json:"parallel_tool_calls,omitempty"`
	Kernels      int      `json:"kernels,omitempty" minimum:"0" maximum:"8" doc:"In how many kernels besides main the model may have code run; programs of one answer in different kernels run at the same time, with variables of their own and the same files"`
	Tries        *Tries   `json:"tries,omitempty" doc:"Has the question answered several times at once: the best answer is the turn's, and the session goes on from the state of that one"`
	MaxCalls     int      `json:"max_steps,omitempty" minimum:"0" maximum:"1000" doc:"Executions; the server's limit when left out"`
	MaxTokens    int      `json:"max_tokens,omitempty" minimum:"0" doc:"Of each answer of the model"`
	Temperature  *float64 `json:"temperature,omitempty" minimum:"0" maximum:"2"`
	TopP         *float64 `json:"top_p,omitempty" minimum:"0" maximum:"1"`
	Source       string   `json:"source,omitempty" enum:"api,cli,web" default:"api"`
	Check        bool     `json:"check,omitempty" doc:"Look at each program of the model's for mistakes and slow forms when it has run; the events have \"findings\", and the model is told"`
	Approval     string   `json:"approval,omitempty" enum:"never,always" doc:"Of a new conversation; one that is there is changed with PATCH"`
}

// Image is a picture.
type Image struct {
	MIME string `json:"mime" enum:"image/png,image/jpeg,image/gif,image/webp"`
	Data []byte `json:"data" doc:"base64"`
}

// Result is what a function of the client's returned.
type Result struct {
	Call  string `json:"call" maxLength:"256" doc:"The call's id"`
	Text  string `json:"text"`
	Error bool   `json:"error,omitempty" doc:"It failed, and text says how"`
}

// Tool is a function of the client's.
type Tool struct {
	Name        string          `json:"name" minLength:"1" maxLength:"64" pattern:"^[A-Za-z0-9_-]+$"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty" doc:"A JSON Schema"`
	Returns     json.RawMessage `json:"returns,omitempty" doc:"A JSON Schema of the result, for code that calls it"`
	Callers     []string        `json:"callers,omitempty" maxItems:"2" enum:"model,code" doc:"Who may call it: the model, which is so when left out; or code that runs, as tools.NAME(...), which waits for the result"`
}

// input returns the turn's messages.
func (n NewTurn) input() ([]model.Message, error) {
	if len(n.Results) > 0 {
		if n.Prompt != "" || len(n.Images) > 0 {
			return nil, problem.New(problem.InvalidRequest, "a request with results has no prompt and no images (body.results)")
		}
		m := model.Message{Role: model.RoleTool}
		for _, r := range n.Results {
			m.Content = append(m.Content, model.ToolResult{CallID: r.Call, Text: r.Text, IsError: r.Error})
		}
		return []model.Message{m}, nil
	}
	m := model.Message{Role: model.RoleUser}
	if n.Prompt != "" {
		m.Content = append(m.Content, model.Text{Text: n.Prompt})
	}
	for _, i := range n.Images {
		m.Content = append(m.Content, model.Image{MIME: i.MIME, Data: i.Data})
	}
	if len(m.Content) == 0 {
		return nil, problem.New(problem.InvalidRequest, "there is nothing to ask (body.prompt)").WithHint(`send {"prompt":"..."}`)
	}
	return []model.Message{m}, nil
}

func (n NewTurn) hub(conversation, once string) (hub.NewTurn, error) {
	input, err := n.input()
	if err != nil {
		return hub.NewTurn{}, err
	}
	out := hub.NewTurn{Conversation: conversation, Parent: n.Parent, First: n.First, Session: n.Session, Network: n.Network.hub(), Root: n.Root, Model: n.Model, Input: input, Prompt: n.Prompt, Files: n.Files,
		Instructions: n.Instructions, InProject: true, NoPython: n.Python != nil && !*n.Python, Servers: n.Servers, AskBefore: n.AskBefore, Parallel: n.Parallel, Kernels: n.Kernels, Tries: n.Tries.hub(), MaxCalls: n.MaxCalls, MaxTokens: n.MaxTokens,
		Temperature: n.Temperature, TopP: n.TopP, Source: n.Source, Check: n.Check, Once: once, Approval: approvalOf(n.Approval)}
	if out.Source == "" {
		out.Source = "api"
	}
	switch n.ToolChoice {
	case "", "auto", "none", "required":
		out.Choice.Mode = n.ToolChoice
	default:
		out.Choice.Name = n.ToolChoice
	}
	for _, t := range n.Tools {
		if len(t.Callers) == 0 || slices.Contains(t.Callers, "model") {
			out.Tools = append(out.Tools, model.Tool{Name: t.Name, Description: t.Description, Schema: t.Parameters})
		}
		if slices.Contains(t.Callers, "code") {
			out.CodeTools = append(out.CodeTools, tool.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters, Result: t.Returns})
		}
	}
	return out, nil
}

type (
	createTurn struct {
		Manner
		Body NewTurn
	}
	createTurnIn struct {
		ConversationPath
		Manner
		Body NewTurn
	}
	// TurnPath names a turn in an address.
	TurnPath struct {
		Turn string `path:"turn" maxLength:"64" example:"trn_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	}
	rateTurn struct {
		TurnPath
		Body NewRating
	}
	listRatings struct {
		Paging
	}
	approveTurn struct {
		TurnPath
		Body Word
	}
	followTurn struct {
		TurnPath
		Point
	}
)

var turnProblems = []problem.Code{problem.ConversationNotFound, problem.TurnNotFound, problem.TurnRunning, problem.ModelUnknown, problem.QuotaTokens, problem.CallsGone}

func (s *server) addTurns() {
	const tag = "conversations"
	addRaw(s, operation{id: "turn.create", method: http.MethodPost, path: "/conversations/{conversation}/turns", tag: tag, action: auth.ConversationsWrite, repeat: repeatHub,
		summary: "Ask", about: "The turn goes on whether or not you stay. The answer comes when it is over and has its `events`; with `Accept: text/event-stream` they come as they happen, the first, `turn`, with its id; the last is `answer`, or `failure`. It takes the right `sessions:execute` as well, except with `\"python\":false`, and `conversations:read`, except with `background=true`.",
		errors: turnProblems, example: `curl -N -H "Authorization: Bearer $KEY" -H "Accept: text/event-stream" $COVE/conversations/$CONVERSATION/turns \
  -d '{"prompt":"Which region grew fastest?"}'
# a branch: another turn after the same parent
curl -H "Authorization: Bearer $KEY" $COVE/conversations/$CONVERSATION/turns \
  -d '{"parent":"'$PARENT'","prompt":"And in May?"}'`},
		func(w http.ResponseWriter, r *http.Request, who auth.Principal, in *createTurnIn) error {
			return s.ask(w, r, who, in.Conversation, in.Manner, in.Body)
		})
	addRaw(s, operation{id: "turn.create_alone", method: http.MethodPost, path: "/turns", tag: tag, action: auth.ConversationsWrite, repeat: repeatHub,
		summary: "Ask in a new conversation", about: "As above; the turn says which conversation was made.", errors: turnProblems,
		example: `curl -H "Authorization: Bearer $KEY" "$COVE/turns" -d '{"prompt":"What is the 100th prime?"}'`},
		func(w http.ResponseWriter, r *http.Request, who auth.Principal, in *createTurn) error {
			return s.ask(w, r, who, "", in.Manner, in.Body)
		})
	add(s, operation{id: "turn.get", method: http.MethodGet, path: "/turns/{turn}", tag: tag, action: auth.ConversationsRead, summary: "Get a turn", errors: []problem.Code{problem.TurnNotFound},
		example: `curl -H "Authorization: Bearer $KEY" $COVE/turns/$TURN`}, s.turn(Hub.Turn))
	add(s, operation{id: "turn.branch", method: http.MethodGet, path: "/turns/{turn}/branch", tag: tag, action: auth.ConversationsRead, summary: "Get a turn's branch",
		about: "The turn and those that it goes on from, the oldest first.", errors: []problem.Code{problem.TurnNotFound}, example: `curl -H "Authorization: Bearer $KEY" $COVE/turns/$TURN/branch`},
		func(ctx context.Context, who auth.Principal, in *TurnPath) (List[Turn], error) {
			out, err := s.o.Hub.Branch(ctx, who, in.Turn)
			return List[Turn]{Items: each(out, turnOf)}, err
		})
	add(s, operation{id: "turn.cancel", method: http.MethodPost, path: "/turns/{turn}/cancel", tag: tag, action: auth.ConversationsWrite, summary: "Cancel a turn",
		about: "With the code that it runs. The answer comes at once.", errors: []problem.Code{problem.TurnNotFound}, example: `curl -H "Authorization: Bearer $KEY" -X POST $COVE/turns/$TURN/cancel`},
		s.turn(Hub.CancelTurn))
	add(s, operation{id: "turn.approve", method: http.MethodPost, path: "/turns/{turn}/approve", tag: tag, action: auth.ConversationsWrite, summary: "Approve code",
		about:  "In a conversation with `\"approval\":\"always\"` each program of the model's waits before it runs: the turn has `waiting`, and its events have `approval` with the step and the code. This lets it run, or other code in its place, or none; then the event `start` follows, or `refused`. It takes the right `sessions:execute` as well. Nobody's word within the server's `turn.approval_wait` cancels the turn.",
		errors: []problem.Code{problem.TurnNotFound, problem.TurnNotWaiting, problem.TurnInvalid, problem.TurnElsewhere}, example: `WAITING=$(curl -H "Authorization: Bearer $KEY" "$COVE/turns?background=true" \
  -d '{"prompt":"What is 6 * 7?","approval":"always"}' | field id)
# when the turn has "waiting": (or refuse with "run":false and a "note")
until curl -H "Authorization: Bearer $KEY" $COVE/turns/$WAITING | grep '"waiting":'; do sleep 0.2; done
curl -H "Authorization: Bearer $KEY" $COVE/turns/$WAITING/approve -d '{"step":1,"run":true}'`},
		func(ctx context.Context, who auth.Principal, in *approveTurn) (Turn, error) {
			w := in.Body
			out, err := s.o.Hub.ApproveTurn(ctx, who, in.Turn, hub.Word{Step: w.Step, Run: w.Run, Code: w.Code, Note: w.Note})
			return turnOf(out), err
		})
	addSilent(s, operation{id: "turn.delete", method: http.MethodDelete, path: "/turns/{turn}", tag: tag, action: auth.ConversationsWrite, summary: "Delete a turn",
		about: "A finished one. Turns that go on from it stay.", errors: []problem.Code{problem.TurnNotFound, problem.TurnRunning}, example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/turns/$TURN`},
		func(ctx context.Context, who auth.Principal, in *TurnPath) error {
			return s.o.Hub.DeleteTurn(ctx, who, in.Turn)
		})
	s.addRatings(tag)
	s.addMarks(tag)
	addRaw(s, operation{id: "turn.events", method: http.MethodGet, path: "/turns/{turn}/events", tag: tag, action: auth.ConversationsRead, summary: "Follow a turn",
		about: "Server-sent events, from the first one or from the one after `Last-Event-ID` on, until `answer` or `failure`.", errors: []problem.Code{problem.TurnNotFound},
		example: `curl -N -H "Authorization: Bearer $KEY" -H "Last-Event-ID: 2" $COVE/turns/$TURN/events`},
		func(w http.ResponseWriter, r *http.Request, who auth.Principal, in *followTurn) error {
			from, err := point(r, in.After)
			if err != nil {
				return err
			}
			return s.stream(w, r, sse.Event{}, s.openTurn(who, in.Turn, from))
		})
}

func (s *server) addRatings(tag string) {
	add(s, operation{id: "turn.rate", method: http.MethodPut, path: "/turns/{turn}/rating", tag: tag, action: auth.ConversationsWrite, summary: "Rate an answer",
		about: "Of a turn that has ended. A turn has one rating, the last.", errors: []problem.Code{problem.TurnNotFound, problem.TurnRunning, problem.TurnInvalid},
		example: `curl -H "Authorization: Bearer $KEY" -X PUT $COVE/turns/$TURN/rating -d '{"good":false,"reason":"It left out May."}'`},
		func(ctx context.Context, who auth.Principal, in *rateTurn) (Turn, error) {
			out, err := s.o.Hub.RateTurn(ctx, who, in.Turn, &hub.Rating{Good: in.Body.Good, Reason: in.Body.Reason})
			return turnOf(out), err
		})
	addSilent(s, operation{id: "turn.unrate", method: http.MethodDelete, path: "/turns/{turn}/rating", tag: tag, action: auth.ConversationsWrite, summary: "Take a rating back",
		errors: []problem.Code{problem.TurnNotFound, problem.TurnRunning}, example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/turns/$TURN/rating`},
		func(ctx context.Context, who auth.Principal, in *TurnPath) error {
			_, err := s.o.Hub.RateTurn(ctx, who, in.Turn, nil)
			return err
		})
	add(s, operation{id: "rating.list", method: http.MethodGet, path: "/ratings", tag: tag, action: auth.ConversationsRead, summary: "List rated answers",
		about: "The project's, the newest first; `cove eval ratings` makes a report of them.", example: `curl -H "Authorization: Bearer $KEY" $COVE/ratings`},
		func(ctx context.Context, who auth.Principal, in *listRatings) (List[RatedTurn], error) {
			out, err := s.o.Hub.RatedTurns(ctx, who, hub.Page{After: in.After, Limit: in.Limit})
			return listOf(out, ratedOf), err
		})
}

// turn is an operation on one turn that answers with it.
func (s *server) turn(do func(Hub, context.Context, auth.Principal, string) (hub.Turn, error)) func(context.Context, auth.Principal, *TurnPath) (Turn, error) {
	return func(ctx context.Context, who auth.Principal, in *TurnPath) (Turn, error) {
		out, err := do(s.o.Hub, ctx, who, in.Turn)
		return turnOf(out), err
	}
}

func (s *server) openTurn(who auth.Principal, id string, from int64) opener {
	return func(ctx context.Context) (iter.Seq2[sse.Event, error], error) {
		f, err := s.o.Hub.FollowTurn(ctx, who, id, from)
		return untilEnd(messages(f, from), from, "answer", func() (int64, bool, error) {
			t, err := s.o.Hub.Turn(ctx, who, id)
			return t.Events, t.State.Final(), err
		}), err
	}
}

func (s *server) ask(w http.ResponseWriter, r *http.Request, who auth.Principal, conversation string, m Manner, body NewTurn) error {
	how, err := m.of(r)
	if err != nil {
		return err
	}
	n, err := body.hub(conversation, r.Header.Get("Idempotency-Key"))
	if err != nil {
		return err
	}
	if how != asPromise { // nothing is started for a caller that may not read the result
		if err := who.Require(auth.ConversationsRead); err != nil {
			return err
		}
	}
	t, err := s.o.Hub.StartTurn(r.Context(), who, n)
	if err != nil {
		return err
	}
	w.Header().Set("Location", Prefix+"/turns/"+t.ID)
	switch how {
	case asPromise:
		writeJSON(w, http.StatusAccepted, turnOf(t))
		return nil
	case asWhole:
		return s.wholeTurn(w, r, who, t.ID)
	}
	return s.stream(w, r, object("turn", turnOf(t)), s.openTurn(who, t.ID, 0))
}

// wholeTurn answers when the turn has ended, also when it failed: then the turn has the problem.
func (s *server) wholeTurn(w http.ResponseWriter, r *http.Request, who auth.Principal, id string) error {
	events, err := s.openTurn(who, id, 0)(r.Context())
	if err != nil {
		return err
	}
	bodies, cut, failed := collect(events, maxWhole)
	t, err := s.o.Hub.Turn(r.Context(), who, id)
	if err != nil {
		return err
	}
	if failed != nil && !t.State.Final() {
		return failed // following failed, not the turn
	}
	out := turnOf(t)
	out.Events, out.Cut = bodies, cut
	writeJSON(w, http.StatusOK, out)
	return nil
}
