package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"cove/internal/code/advice"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
)

// ParseEvent reads what Event wrote. What Event leaves out comes back empty. What makes no sense is a problem of kind Invalid with code
// "event_invalid"; a type that is not known, as of a later version, is one with code "event_unknown".
func ParseEvent(text []byte) (kernel.Event, error) {
	kind, err := typeOf(text)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "stream":
		return parsed(text, parsedStream)
	case "display":
		return parsed(text, func(d parsedDisplay) (kernel.Event, bool) {
			return kernel.Display{Data: filled(d.Data), Metadata: filled(d.Metadata), ID: d.ID, Update: d.Update && d.ID != ""}, true
		})
	case "result":
		return parsed(text, func(d parsedDisplay) (kernel.Event, bool) {
			return kernel.Result{Count: d.Count, Data: filled(d.Data), Metadata: filled(d.Metadata)}, true
		})
	case "widgets":
		return parsed(text, parsedWidgets.event)
	case "error":
		return parsed(text, func(e parsedError) (kernel.Event, bool) {
			return kernel.Error{Name: e.Name, Value: e.Value, Traceback: filledList(e.Traceback), Hint: e.Hint}, true
		})
	case "clear_output":
		return parsed(text, parsedClear.event)
	case "file":
		return parsed(text, func(f struct {
			Path    string `json:"path"`
			Size    int64  `json:"size"`
			Created bool   `json:"created"`
		}) (kernel.Event, bool) {
			return kernel.File{Path: f.Path, Size: f.Size, Created: f.Created}, f.Path != "" && f.Size >= 0
		})
	case "install":
		return parsed(text, parsedInstall.event)
	case "install_progress":
		return parsed(text, parsedProgress.event)
	case "rollback":
		return parsed(text, parsedRollback.event)
	case "tool_call":
		return parsed(text, func(c struct {
			Number    int     `json:"number"` // not in what was written long ago
			Name      string  `json:"name"`
			Arguments string  `json:"arguments"`
			Error     string  `json:"error"`
			Seconds   float64 `json:"seconds"`
		}) (kernel.Event, bool) {
			sane := c.Seconds >= 0 && c.Seconds <= longestWall
			return kernel.ToolCall{Number: c.Number, Name: c.Name, Arguments: c.Arguments, Error: c.Error, Wall: wallOf(c.Seconds)}, sane
		})
	case "call_asks":
		return parsed(text, func(c struct {
			Number    int    `json:"number"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		}) (kernel.Event, bool) {
			return kernel.CallAsks{Number: c.Number, Name: c.Name, Arguments: c.Arguments}, true
		})
	case "input_request", "input_reply":
		return parsedInput(kind, text)
	case "calls_wait":
		return parsed(text, func(c struct {
			Calls []struct {
				ID   string `json:"id"`
				Name string `json:"name"`
			} `json:"calls"`
		}) (kernel.Event, bool) {
			var e kernel.CallsWait
			for _, call := range c.Calls {
				e.Calls = append(e.Calls, kernel.WaitingCall{ID: call.ID, Name: call.Name})
			}
			return e, true
		})
	case "done":
		return parsed(text, parsedDone.event)
	}
	return nil, unknownEvent(kind)
}

// ParseTurnEvent reads what TurnEvent wrote; see ParseEvent. A "failure" is unknown to it: see ParseFailure.
func ParseTurnEvent(text []byte) (loop.Event, error) {
	kind, err := typeOf(text)
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"text", "reasoning", "code", "approval", "refused", "start", "output", "findings", "call", "notice", "answer"}, kind) {
		return nil, unknownEvent(kind)
	}
	var e parsedTurnEvent
	if json.Unmarshal(text, &e) != nil || e.Step < 0 || e.Index < 0 || e.Steps < 0 {
		return nil, invalidEvent(kind)
	}
	switch kind {
	case "text":
		return loop.Text{Delta: e.Delta}, nil
	case "reasoning":
		return loop.Reasoning{Delta: e.Delta}, nil
	case "code":
		return loop.Code{Step: e.Step, Delta: e.Delta}, nil
	case "start":
		return loop.Start{Step: e.Step, Code: e.Code, Edited: e.Edited, Kernel: e.Kernel, Resumed: e.Resumed, Printed: e.Printed, Execution: e.Execution}, nil
	case "approval":
		return loop.Approval{Step: e.Step, Code: e.Code, Why: e.Why}, nil
	case "refused":
		return loop.Refused{Step: e.Step, Note: e.Note, Why: e.Why, Code: e.Code}, nil
	case "output":
		event, err := ParseEvent(e.Event)
		if err != nil {
			return nil, err
		}
		return loop.Output{Step: e.Step, Event: event}, nil
	case "findings":
		return loop.Findings{Step: e.Step, Items: e.Items, Notes: e.Notes}, nil
	case "call":
		return loop.Call{Index: e.Index, ID: e.ID, Name: e.Name, Delta: e.Delta}, nil
	case "notice":
		return loop.Notice{Text: e.Text}, nil
	default:
		return loop.Answer{Text: e.Text, Reason: e.Reason, Steps: e.Steps, Calls: e.Calls,
			Usage: model.Usage(e.Usage)}, nil
	}
}

// OutputOf returns the kernel's event, as Event writes it, in what TurnEvent wrote of an loop.Output; nil for any other event of a turn.
func OutputOf(text []byte) []byte {
	var e struct {
		Event json.RawMessage `json:"event"`
	}
	if TypeOf(text) != "output" || json.Unmarshal(text, &e) != nil {
		return nil
	}
	return e.Event
}

// shown is what people read of an event, of an execution's stream or of a turn's, which wraps it.
type shown struct {
	Type  string         `json:"type"`
	Text  string         `json:"text"`
	Name  string         `json:"name"`
	Value string         `json:"value"`
	Data  map[string]any `json:"data"`
	Event *shown         `json:"event"`
}

// TextOf returns the text that people read of an event that code emitted, in what Event or TurnEvent wrote: what was printed, the line of an error, the plain form
// of a display or result. "" for every other event.
func TextOf(text []byte) string {
	var e shown
	if json.Unmarshal(text, &e) != nil {
		return "" // such as a stream of bytes that are no text
	}
	if e.Type == "output" && e.Event != nil {
		e = *e.Event
	}
	switch e.Type {
	case "stream":
		return e.Text
	case "error":
		return "\n" + e.Name + ": " + e.Value + "\n"
	case "display", "result":
		if plain, ok := e.Data["text/plain"].(string); ok {
			return "\n" + plain + "\n"
		}
	}
	return ""
}

// TypeOf returns the type of what this package wrote without reading the rest; "" for anything else.
func TypeOf(text []byte) string {
	rest, ok := bytes.CutPrefix(text, []byte(`{"type":"`))
	name, _, closed := bytes.Cut(rest[:min(len(rest), longestType)], []byte(`"`))
	if !ok || !closed {
		return ""
	}
	return string(name)
}

// longestType bounds the name of a type, in bytes.
const longestType = 40

// ParseFailure reads what Failure wrote. ok is false for what is no failure.
func ParseFailure(text []byte) (p *problem.Error, ok bool) {
	var f parsedFailure
	if kind, err := typeOf(text); err != nil || kind != "failure" || json.Unmarshal(text, &f) != nil {
		return nil, false
	}
	return f.problem(), true
}

func typeOf(text []byte) (string, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return "", invalidEvent("").WithCause(err)
	}
	return head.Type, nil
}

func unknownEvent(kind string) *problem.Error {
	return problem.New(problem.EventUnknown, fmt.Sprintf("an event is of the type %.40q, which is not known here", kind)).
		WithHint("pass over it, or update cove")
}

func invalidEvent(kind string) *problem.Error {
	return problem.New(problem.EventInvalid, fmt.Sprintf("an event of the type %.40q does not have the form of one", kind))
}

// parsed decodes an event's members and has build make it of them; false says that they make none.
func parsed[T any](text []byte, build func(T) (kernel.Event, bool)) (kernel.Event, error) {
	var members T
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, invalidEvent("").WithCause(err)
	}
	event, ok := build(members)
	if !ok {
		return nil, invalidEvent(fmt.Sprintf("%T", event))
	}
	return event, nil
}

type parsedText struct {
	Name string  `json:"name"`
	Text *string `json:"text"`
	Data []byte  `json:"data"`
}

func parsedStream(s parsedText) (kernel.Event, bool) {
	out := kernel.Stream{Name: s.Name, Data: s.Data}
	if s.Text != nil {
		out.Data = []byte(*s.Text)
	}
	return out, (s.Name == "stdout" || s.Name == "stderr") && out.Data != nil
}

type parsedDisplay struct {
	Count    int            `json:"count"`
	Data     map[string]any `json:"data"`
	Metadata map[string]any `json:"metadata"`
	ID       string         `json:"id"`
	Update   bool           `json:"update"`
}

type parsedClear struct {
	Wait bool `json:"wait"`
}

func (c parsedClear) event() (kernel.Event, bool) { return kernel.ClearOutput(c), true }

type parsedWidgets struct {
	Models map[string]any `json:"models"`
	Closed []string       `json:"closed"`
}

func (w parsedWidgets) event() (kernel.Event, bool) {
	return kernel.Widgets{Models: filled(w.Models), Closed: filledList(w.Closed)}, true
}

type parsedError struct {
	Name      string   `json:"name"`
	Value     string   `json:"value"`
	Traceback []string `json:"traceback"`
	Hint      string   `json:"hint"`
}

// filled has an empty map come back as none, which is how the sandbox sends it.
func filled[M ~map[string]any](m M) M {
	if len(m) == 0 {
		return nil
	}
	return m
}

func filledList[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

type parsedFailure struct {
	Kind    problem.Kind `json:"kind"`
	Code    string       `json:"code"`
	Message string       `json:"message"`
	Hint    string       `json:"hint"`
}

// problem takes a kind that is not known for a fault of the program that wrote it.
func (f parsedFailure) problem() *problem.Error {
	kinds := []problem.Kind{problem.Invalid, problem.NotFound, problem.Denied, problem.Unavailable, problem.Timeout, problem.Exhausted, problem.Canceled}
	if !slices.Contains(kinds, f.Kind) {
		f.Kind = problem.Internal
	}
	return problem.Received(f.Kind, f.Code, f.Message).WithHint(f.Hint)
}

type parsedInstall struct {
	Packages []installation.Package `json:"packages"`
	Refused  []installation.Refusal `json:"refused"` // the names differ in case alone
	Notes    []string               `json:"notes"`
	Seconds  float64                `json:"seconds"`
	Cached   bool                   `json:"cached"`
	Restart  string                 `json:"needs_restart"`
	Begun    bool                   `json:"restarted"`
	Failure  *parsedFailure         `json:"failure"`
}

func (i parsedInstall) event() (kernel.Event, bool) {
	e := kernel.Install{Restarted: i.Begun, Provision: installation.Provision{
		Installed: filledList(i.Packages), Refused: filledList(i.Refused), Notes: filledList(i.Notes), Seconds: i.Seconds, Cached: i.Cached, Restart: i.Restart,
	}}
	if i.Failure != nil {
		e.Failure = i.Failure.problem()
	}
	return e, i.Seconds >= 0
}

type parsedProgress struct {
	Phase    string                 `json:"phase"`
	Packages []installation.Package `json:"packages"`
	Received int64                  `json:"received_bytes"`
	Total    int64                  `json:"total_bytes"`
}

func (p parsedProgress) event() (kernel.Event, bool) {
	return kernel.Install{Progress: &installation.Progress{Phase: p.Phase, Packages: filledList(p.Packages), Received: p.Received, Total: p.Total}}, p.Received >= 0 && p.Total >= 0
}

type parsedDone struct {
	Outcome  kernel.Outcome `json:"outcome"`
	ExitCode int            `json:"exit_code"`
	Seconds  float64        `json:"seconds"`
	Signal   string         `json:"signal"`
	Message  string         `json:"message"`
	Lost     kernel.Loss    `json:"lost"`
	Dropped  int64          `json:"dropped_bytes"`
}

// longestWall is the most that is believed of an execution's time: a Duration holds 292 years.
const longestWall = 1e9

func (d parsedDone) event() (kernel.Event, bool) {
	sane := d.Outcome != "" && d.Seconds >= 0 && d.Seconds <= longestWall && d.Dropped >= 0 &&
		(d.Lost == kernel.LostNothing || d.Lost == kernel.LostKernel || d.Lost == kernel.LostSession)
	return kernel.Done{Outcome: d.Outcome, ExitCode: d.ExitCode, Signal: d.Signal, Message: d.Message, Lost: d.Lost, Dropped: d.Dropped,
		Wall: wallOf(d.Seconds)}, sane
}

type parsedTurnEvent struct {
	Delta     string            `json:"delta"`
	Step      int               `json:"step"`
	Code      string            `json:"code"`
	Edited    bool              `json:"edited"`
	Resumed   bool              `json:"resumed"`
	Kernel    string            `json:"kernel"`
	Printed   string            `json:"printed"`
	Execution string            `json:"execution"`
	Note      string            `json:"note"`
	Why       string            `json:"why"`
	Event     json.RawMessage   `json:"event"`
	Items     []advice.Finding  `json:"items"`
	Notes     []string          `json:"notes"`
	Index     int               `json:"index"`
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Text      string            `json:"text"`
	Reason    loop.AnswerReason `json:"reason"`
	Steps     int               `json:"steps"`
	Calls     []model.ToolCall  `json:"calls"`
	Usage     struct {
		InputTokens     int64 `json:"input_tokens"`
		OutputTokens    int64 `json:"output_tokens"`
		CachedTokens    int64 `json:"cached_tokens"`
		ReasoningTokens int64 `json:"reasoning_tokens"`
		Estimated       bool  `json:"estimated"`
	} `json:"usage"`
}

func parsedInput(kind string, text []byte) (kernel.Event, error) {
	if kind == "input_reply" {
		return parsed(text, parsedInputReply.event)
	}
	return parsed(text, parsedInputRequest.event)
}

type parsedInputRequest struct {
	Number   int    `json:"number"`
	Prompt   string `json:"prompt"`
	Password bool   `json:"password"`
}

func (r parsedInputRequest) event() (kernel.Event, bool) {
	return kernel.InputRequest{Number: r.Number, Prompt: r.Prompt, Password: r.Password}, r.Number > 0
}

type parsedInputReply struct {
	Number int     `json:"number"`
	Text   *string `json:"text"`
	Ended  bool    `json:"ended"`
}

func (r parsedInputReply) event() (kernel.Event, bool) {
	e := kernel.InputReply{Number: r.Number, Ended: r.Ended, Secret: r.Text == nil && !r.Ended}
	if r.Text != nil && !r.Ended {
		e.Text = *r.Text
	}
	return e, r.Number > 0
}

type parsedRollback struct {
	At         time.Time  `json:"at"`
	To         *time.Time `json:"to"`
	Reason     string     `json:"reason"`
	Executions []string   `json:"executions"`
	More       int        `json:"more_executions"`
	Files      []string   `json:"files"`
}

func (r parsedRollback) event() (kernel.Event, bool) {
	e := kernel.Rollback{At: r.At, Reason: r.Reason, Executions: filledList(r.Executions), More: r.More, Files: filledList(r.Files)}
	if r.To != nil {
		e.To = *r.To
	}
	return e, r.More >= 0
}

func wallOf(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * float64(time.Second)))
}
