package api

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/sse"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Execution is one run of code.
type Execution struct {
	ID       string             `json:"id" example:"exe_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Session  string             `json:"session"`
	Kernel   string             `json:"kernel"`
	Turn     string             `json:"turn,omitempty" doc:"Of which it is a step"`
	Step     int                `json:"step,omitempty"`
	Code     string             `json:"code"`
	Edited   bool               `json:"edited,omitempty" doc:"You changed the model's code before it ran"`
	Redacted map[string]int     `json:"redacted,omitempty" doc:"How many things of each kind were taken out of what it emitted"`
	Cautions []Caution          `json:"cautions,omitempty" doc:"What a look at the code found before it ran; advice, which calls for a second look"`
	State    hub.ExecutionState `json:"state" doc:"queued, running; then exactly one of ok, error, timeout, interrupted, out_of_memory, kernel_died, kernel_protocol_error, sandbox_died, needs_restart, lost"`
	ExitCode int                `json:"exit_code"`
	Message  string             `json:"message,omitempty" doc:"A sentence where the state needs one"`
	Lost     kernel.Loss        `json:"lost,omitempty" doc:"What the next execution starts without: kernel (variables) or session (files, too)"`
	Created  time.Time          `json:"created_at"`
	Started  *time.Time         `json:"started_at,omitempty"`
	Finished *time.Time         `json:"finished_at,omitempty"`
	Wall     float64            `json:"wall_seconds"`
	CPU      float64            `json:"cpu_seconds,omitempty"`
	Last     int64              `json:"last_event" doc:"Id of the last event so far"`
	Dropped  int64              `json:"dropped_bytes,omitempty" doc:"Of output that is not kept"`
	User     string             `json:"user"`
	Key      string             `json:"key,omitempty"`
	Events   []json.RawMessage  `json:"events,omitempty" doc:"All of them, where the answer was waited for"`
	Cut      bool               `json:"events_cut,omitempty" doc:"There are more events than one answer may hold; follow to get them"`
}

func executionOf(e hub.Execution) Execution {
	return Execution{ID: e.ID, Session: e.Session, Kernel: e.Kernel, Turn: e.Turn, Step: e.Step, Code: e.Code, Edited: e.Edited, Cautions: cautionsOf(e.Cautions), Redacted: e.Redacted, State: e.State, ExitCode: e.ExitCode, Message: e.Message,
		Lost: e.Lost, Created: e.Created.UTC(), Started: moment(e.Started), Finished: moment(e.Finished), Wall: e.Wall.Seconds(), CPU: e.CPU.Seconds(),
		Last: e.Events, Dropped: e.Dropped, User: e.User, Key: e.Key}
}

// NewExecution says what to run.
type NewExecution struct {
	Code      string            `json:"code" minLength:"1" maxLength:"1048576"`
	Kernel    string            `json:"kernel,omitempty" maxLength:"64" doc:"main when left out"`
	Timeout   float64           `json:"timeout_seconds,omitempty" minimum:"0" maximum:"86400" doc:"Wall clock; the server's limit when left out"`
	Program   string            `json:"program,omitempty" maxLength:"255" example:"report.py" doc:"Run the code as python runs a file of this name, and not as a cell of a notebook"`
	Args      []string          `json:"args,omitempty" maxItems:"1000" doc:"sys.argv[1:]"`
	Env       map[string]string `json:"env,omitempty" doc:"Variables that are set before, and stay set in the kernel; they are not recorded"`
	Columns   int               `json:"columns,omitempty" minimum:"0" maximum:"1000" doc:"How many characters a line has where people read the output"`
	Servers   []string          `json:"tool_servers,omitempty" maxItems:"100" doc:"Tool servers whose tools the code may call, in the module tools (GET /tool-servers)"`
	AskBefore []string          `json:"ask_before,omitempty" maxItems:"100" example:"[\"git.git_commit\"]" doc:"Tools of these servers that wait for somebody's word before each call (POST /executions/{execution}/calls/{number}/approve); a * at the end makes a prefix"`
	Approved  bool              `json:"approved,omitempty" doc:"Somebody has looked at the code, which the rules for code ask for (code_unapproved)"`
	Input     bool              `json:"input,omitempty" doc:"You answer what the code asks for with input() and getpass(): its events have input_request (POST /executions/{execution}/inputs/{number}). Without this they raise EOFError"`
	Widgets   bool              `json:"widgets,omitempty" doc:"You show widgets: the events have widgets, which tell the states of those that are shown or have changed, and an Output widget keeps what is shown inside (POST /sessions/{session}/kernels/{kernel}/widgets/{widget})"`
	Restart   bool              `json:"restart,omitempty" doc:"Begin a new interpreter first: variables and imports are lost, files are kept"`
}

// CallWord is what a user says about a call of a tool that waits.
type CallWord struct {
	Run  bool   `json:"run" doc:"Whether the call is made"`
	Note string `json:"note,omitempty" maxLength:"4096" doc:"For the code, when the call is not made"`
}

// InputAnswer is what code gets that asks for a line.
type InputAnswer struct {
	Text *string `json:"text,omitempty" maxLength:"65536" doc:"One line, without its end; it may be empty"`
	End  bool    `json:"end,omitempty" doc:"There is no line: input() raises EOFError"`
}

func (a InputAnswer) hub() (hub.InputReply, error) {
	r := hub.InputReply{End: a.End}
	if a.Text != nil {
		r.Text = *a.Text
	}
	if a.Text == nil == !a.End {
		return r, problem.New(problem.InvalidRequest, "an answer has either a text or an end").WithHint(`send {"text": "..."}, or {"end": true}`)
	}
	return r, nil
}

type (
	createExecution struct {
		SessionPath
		Manner
		Body NewExecution
	}
	// ExecutionPath names an execution in an address.
	ExecutionPath struct {
		Execution string `path:"execution" maxLength:"64" example:"exe_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	}
	approveCall struct {
		ExecutionPath
		Number int `path:"number" minimum:"1" maximum:"1000000000" doc:"Of the call, as the event call_asks has it"`
		Body   CallWord
	}
	answerInput struct {
		ExecutionPath
		Number int `path:"number" minimum:"1" maximum:"1000000000" doc:"Of the request, as the event input_request has it"`
		Body   InputAnswer
	}
	listExecutions struct {
		Paging
		Session string `query:"session" maxLength:"64" doc:"Only of this session"`
		Kernel  string `query:"kernel" maxLength:"64"`
		Turn    string `query:"turn" maxLength:"64" doc:"Only the steps of this turn"`
		State   string `query:"state" maxLength:"40" doc:"As in the answer: running, ok, error, ..."`
	}
	listSessionExecutions struct {
		SessionPath
		Paging
		Kernel string `query:"kernel" maxLength:"64"`
		State  string `query:"state" maxLength:"40" doc:"As in the answer: running, ok, error, ..."`
	}
	// Point has the parameters with which a client goes on following.
	Point struct {
		After int64 `query:"after" minimum:"0" doc:"Id of the last event that you have; the header Last-Event-ID goes before it"`
	}
	followExecution struct {
		ExecutionPath
		Point
	}
)

func (s *server) addExecutions() {
	const tag = "executions"
	addRaw(s, operation{id: "execution.create", method: http.MethodPost, path: "/sessions/{session}/executions", tag: tag, action: auth.SessionsExecute, repeat: repeatHub,
		summary: "Run code", about: "Executions of one kernel run one after another. This one goes on whether or not you stay. The answer comes when it is over and has its `events`; with `Accept: text/event-stream` they come as they happen, the first, `execution`, with its id. It takes the right `sessions:read` as well, except with `background=true`.",
		errors: []problem.Code{problem.SessionNotFound, problem.KernelNotFound, problem.QueueFull, problem.QuotaExecutions, problem.CodeRefused, problem.CodeUnapproved, problem.ToolServerNotFound, problem.ToolServerUnreachable},
		example: `# one JSON object, when it is over
curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/executions -d '{"code":"1+1"}'
# events as they happen
curl -N -H "Authorization: Bearer $KEY" -H "Accept: text/event-stream" $COVE/sessions/$SESSION/executions \
  -d '{"code":"1+1"}'
# at once, to be followed later
curl -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/executions?background=true" -d '{"code":"1+1"}'`},
		s.createExecution)
	add(s, operation{id: "execution.list", method: http.MethodGet, path: "/executions", tag: tag, action: auth.SessionsRead, summary: "List executions", about: "The newest first.",
		example: `curl -H "Authorization: Bearer $KEY" "$COVE/executions?state=error"`},
		func(ctx context.Context, who auth.Principal, in *listExecutions) (List[Execution], error) {
			f := hub.ExecutionFilter{Session: in.Session, Kernel: in.Kernel, Turn: in.Turn, State: hub.ExecutionState(in.State)}
			out, err := s.o.Hub.Executions(ctx, who, f, in.page())
			return listOf(out, executionOf), err
		})
	add(s, operation{id: "session.executions", method: http.MethodGet, path: "/sessions/{session}/executions", tag: tag, action: auth.SessionsRead, summary: "List a session's executions",
		errors: []problem.Code{problem.SessionNotFound}, example: `curl -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/executions?order=oldest"`},
		func(ctx context.Context, who auth.Principal, in *listSessionExecutions) (List[Execution], error) {
			if _, err := s.o.Hub.Session(ctx, who, in.Session); err != nil {
				return List[Execution]{}, err
			}
			f := hub.ExecutionFilter{Session: in.Session, Kernel: in.Kernel, State: hub.ExecutionState(in.State)}
			out, err := s.o.Hub.Executions(ctx, who, f, in.page())
			return listOf(out, executionOf), err
		})
	add(s, operation{id: "execution.get", method: http.MethodGet, path: "/executions/{execution}", tag: tag, action: auth.SessionsRead, summary: "Get an execution",
		errors: []problem.Code{problem.ExecutionNotFound}, example: `curl -H "Authorization: Bearer $KEY" $COVE/executions/$EXECUTION`},
		func(ctx context.Context, who auth.Principal, in *ExecutionPath) (Execution, error) {
			out, err := s.o.Hub.Execution(ctx, who, in.Execution)
			return executionOf(out), err
		})
	add(s, operation{id: "execution.interrupt", method: http.MethodPost, path: "/executions/{execution}/interrupt", tag: tag, action: auth.SessionsExecute, summary: "Interrupt an execution",
		about: "Also one that is queued. The answer comes at once; the execution's events have its end.", errors: []problem.Code{problem.ExecutionNotFound},
		example: `curl -H "Authorization: Bearer $KEY" -X POST $COVE/executions/$EXECUTION/interrupt`},
		func(ctx context.Context, who auth.Principal, in *ExecutionPath) (Execution, error) {
			out, err := s.o.Hub.InterruptExecution(ctx, who, in.Execution)
			return executionOf(out), err
		})
	add(s, operation{id: "execution.approve", method: http.MethodPost, path: "/executions/{execution}/calls/{number}/approve", tag: tag, action: auth.SessionsExecute, summary: "Approve a call of a tool",
		about:  "Tools of which the tool server says `ask`, and those of the request's `ask_before`, wait before each call: the execution's events, and those of its turn, have `call_asks` with the number, the name and the arguments. This has the call made, or not; then `tool_call` with the number follows. Nobody's word within the server's `turn.approval_wait` refuses the call.",
		errors: []problem.Code{problem.ExecutionNotFound, problem.CallNotWaiting, problem.ExecutionElsewhere},
		example: `# with a tool server that is named time
ASKS=$(curl -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/executions?background=true" \
  -d '{"code":"import tools\nprint(tools.time_get_current_time(\"UTC\"))",
       "tool_servers":["time"],"ask_before":["time.*"]}' | field id)
# when its events have "call_asks": (or refuse with "run":false and a "note")
until curl -H "Authorization: Bearer $KEY" $COVE/executions/$ASKS/calls/1/approve -d '{"run":true}'; do sleep 0.2; done`},
		func(ctx context.Context, who auth.Principal, in *approveCall) (Execution, error) {
			out, err := s.o.Hub.ApproveCall(ctx, who, in.Execution, in.Number, tool.Word{Run: in.Body.Run, Note: in.Body.Note})
			return executionOf(out), err
		})
	s.addInputs(tag)
	addRaw(s, operation{id: "execution.events", method: http.MethodGet, path: "/executions/{execution}/events", tag: tag, action: auth.SessionsRead, summary: "Follow an execution",
		about:  "Server-sent events, from the first one or from the one after `Last-Event-ID` on, old or happening now, until `done`. Works as often as you like, also long afterwards.",
		errors: []problem.Code{problem.ExecutionNotFound}, example: `curl -N -H "Authorization: Bearer $KEY" -H "Last-Event-ID: 17" $COVE/executions/$EXECUTION/events`},
		func(w http.ResponseWriter, r *http.Request, who auth.Principal, in *followExecution) error {
			from, err := point(r, in.After)
			if err != nil {
				return err
			}
			return s.stream(w, r, sse.Event{}, s.openExecution(who, in.Execution, from))
		})
}

func (s *server) addInputs(tag string) {
	add(s, operation{id: "execution.input", method: http.MethodPost, path: "/executions/{execution}/inputs/{number}", tag: tag, action: auth.SessionsExecute, summary: "Answer code that asks for a line",
		about:  "Code of an execution with `input` waits where it calls `input()` or `getpass()`: the events have `input_request` with the number, the prompt, and whether it is for a password. This gives it the line, or the end of the input; then `input_reply` with the number follows, without the text of a password. The time of the execution does not run meanwhile. Nobody's answer within the server's `turn.approval_wait` is the end of the input.",
		errors: []problem.Code{problem.ExecutionNotFound, problem.InputNotWaiting, problem.ExecutionElsewhere},
		example: `ASKS=$(curl -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/executions?background=true" \
  -d '{"code":"print(\"Hello\", input(\"Your name: \"))","input":true}' | field id)
# when its events have "input_request": (or end the input with "end":true)
until curl -H "Authorization: Bearer $KEY" $COVE/executions/$ASKS/inputs/1 -d '{"text":"Ada"}'; do sleep 0.2; done`},
		func(ctx context.Context, who auth.Principal, in *answerInput) (Execution, error) {
			r, err := in.Body.hub()
			if err != nil {
				return Execution{}, err
			}
			out, err := s.o.Hub.AnswerInput(ctx, who, in.Execution, in.Number, r)
			return executionOf(out), err
		})
}

func (s *server) openExecution(who auth.Principal, id string, from int64) opener {
	return func(ctx context.Context) (iter.Seq2[sse.Event, error], error) {
		f, err := s.o.Hub.Follow(ctx, who, id, from)
		return untilEnd(messages(f, from), from, "done", func() (int64, bool, error) {
			e, err := s.o.Hub.Execution(ctx, who, id)
			return e.Events, e.State.Final(), err
		}), err
	}
}

func (s *server) createExecution(w http.ResponseWriter, r *http.Request, who auth.Principal, in *createExecution) error {
	how, err := in.of(r)
	if err != nil {
		return err
	}
	if how != asPromise { // nothing is started for a caller that may not read the result
		if err := who.Require(auth.SessionsRead); err != nil {
			return err
		}
	}
	e, err := s.o.Hub.StartExecution(r.Context(), who, hub.NewExecution{Session: in.Session, Kernel: in.Body.Kernel, Code: in.Body.Code,
		Program: in.Body.Program, Args: in.Body.Args, Environment: in.Body.Env, Columns: in.Body.Columns, Restart: in.Body.Restart, Asks: in.Body.Input, Widgets: in.Body.Widgets, Approved: in.Body.Approved, Servers: in.Body.Servers, AskBefore: in.Body.AskBefore, Timeout: time.Duration(in.Body.Timeout * float64(time.Second)), Once: r.Header.Get("Idempotency-Key")})
	if err != nil {
		return err
	}
	w.Header().Set("Location", Prefix+"/executions/"+e.ID)
	switch how {
	case asPromise:
		writeJSON(w, http.StatusAccepted, executionOf(e))
		return nil
	case asWhole:
		return s.wholeExecution(w, r, who, e.ID)
	}
	return s.stream(w, r, object("execution", executionOf(e)), s.openExecution(who, e.ID, 0))
}

// wholeExecution answers when the execution is over. A client that leaves does not end it.
func (s *server) wholeExecution(w http.ResponseWriter, r *http.Request, who auth.Principal, id string) error {
	events, err := s.openExecution(who, id, 0)(r.Context())
	if err != nil {
		return err
	}
	bodies, cut, err := collect(events, maxWhole)
	if err != nil {
		return err
	}
	e, err := s.o.Hub.Execution(r.Context(), who, id)
	if err != nil {
		return err
	}
	out := executionOf(e)
	out.Events, out.Cut = bodies, cut
	writeJSON(w, http.StatusOK, out)
	return nil
}
