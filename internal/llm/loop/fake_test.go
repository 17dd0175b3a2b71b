package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/machine/workspace"
	"cove/internal/python/kernel"
)

// says is one scripted answer of a model.
type says struct {
	parts []model.Part
	err   error // after the parts
	hang  bool  // after the parts, until the context ends
}

// scripted is a model that says what it is told to, in order.
type scripted struct {
	t        *testing.T
	can      model.Capabilities
	script   []says
	last     *says // what it says when the script is over, or nil
	requests []model.Request
	finished int // streams that were not broken off
}

func (m *scripted) Name() string                     { return "test/scripted" }
func (m *scripted) Capabilities() model.Capabilities { return m.can }

func (m *scripted) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		n := len(m.requests)
		m.requests = append(m.requests, req)
		checkRequest(m.t, req)
		var s says
		switch {
		case n < len(m.script):
			s = m.script[n]
		case m.last != nil:
			s = *m.last
		default:
			m.t.Errorf("model call %d is not in the script", n+1)
			yield(nil, fmt.Errorf("no script"))
			return
		}
		for _, p := range s.parts {
			if !yield(p, nil) {
				return
			}
		}
		if s.hang {
			<-ctx.Done()
			yield(nil, ctx.Err())
			return
		}
		if s.err != nil {
			yield(nil, s.err)
			return
		}
		m.finished++
	}
}

// checkRequest holds what every provider demands of a conversation.
func checkRequest(t *testing.T, req model.Request) {
	t.Helper()
	var open []string
	ids := map[string]bool{}
	for n, m := range req.Messages {
		if len(m.Content) == 0 {
			t.Errorf("message %d is empty", n)
		}
		if n == 0 && m.Role != model.RoleUser {
			t.Errorf("the conversation begins with %s", m.Role)
		}
		if n > 0 && m.Role == req.Messages[n-1].Role {
			t.Errorf("messages %d and %d are both of the %s", n-1, n, m.Role)
		}
		var answered []string
		for _, c := range m.Content {
			switch c := c.(type) {
			case model.Text:
				if strings.TrimSpace(c.Text) == "" {
					t.Errorf("message %d has a blank text", n)
				}
			case model.ToolCall:
				if len(req.Tools) == 0 {
					t.Errorf("message %d has a call, but no tools are declared", n)
				}
				var object map[string]any
				if err := json.Unmarshal([]byte(c.Arguments), &object); err != nil {
					t.Errorf("arguments in the history are no object: %s", c.Arguments)
				}
				if c.ID == "" || len(c.ID) > 40 || ids[c.ID] {
					t.Errorf("a call has the id %q, which is none or another's", c.ID)
				}
				ids[c.ID] = true
				open = append(open, c.ID)
			case model.ToolResult:
				answered = append(answered, c.CallID)
			}
		}
		if m.Role == model.RoleTool {
			if !slices.Equal(open, answered) {
				t.Errorf("calls %v are answered by %v", open, answered)
			}
			open = nil
		} else if m.Role == model.RoleUser && len(open) > 0 {
			t.Errorf("calls %v are not answered", open)
		}
	}
}

// lastTexts returns the texts of the last message of the nth request.
func (m *scripted) lastTexts(n int) string {
	if n >= len(m.requests) {
		m.t.Fatalf("there were only %d model calls", len(m.requests))
	}
	messages := m.requests[n].Messages
	return texts(messages[len(messages)-1])
}

func texts(m model.Message) string {
	var out []string
	for _, c := range m.Content {
		switch c := c.(type) {
		case model.Text:
			out = append(out, c.Text)
		case model.ToolResult:
			out = append(out, c.Text)
		}
	}
	return strings.Join(out, "\n---\n")
}

func images(m model.Message) int {
	n := 0
	for _, c := range m.Content {
		switch c := c.(type) {
		case model.Image:
			n++
		case model.ToolResult:
			n += len(c.Images)
		}
	}
	return n
}

// session is a workspace and a kernel whose outcomes are scripted by code.
type session struct {
	files     map[string][]byte
	outcomes  map[string][]kernel.Event // by code; others end ok without output
	errs      map[string]error          // by code, instead of an end
	hang      map[string]bool           // by code: until the context ends
	version   string
	packages  map[string]string
	variables kernel.Variables
	told      map[string]workspace.Told // by path
	untold    error                     // of Tell
	reaches   []string
	root      bool
	ran       []loop.Program
}

func (s *session) May() ([]string, bool) { return s.reaches, s.root }

func (s *session) Python() (string, map[string]string) {
	if s.version == "" {
		return "3.12.4", map[string]string{"numpy": "2.1.0", "pandas": "2.2.3", "six": "1.16.0", "idna": "3.7"}
	}
	return s.version, s.packages
}

func (s *session) Variables(context.Context) (kernel.Variables, error) { return s.variables, nil }

func (s *session) Tell(_ context.Context, paths []string) ([]workspace.Told, error) {
	var out []workspace.Told
	for _, path := range paths {
		out = append(out, s.told[path])
	}
	return out, s.untold
}

func (s *session) Files(context.Context) ([]kernel.File, error) {
	var out []kernel.File
	for name, data := range s.files {
		out = append(out, kernel.File{Path: name, Size: int64(len(data))})
	}
	return out, nil
}

func (s *session) ReadFile(_ context.Context, name string, limit int64) ([]byte, error) {
	data, ok := s.files[name]
	if !ok {
		return nil, fmt.Errorf("no file %s", name)
	}
	return data[:min(int64(len(data)), limit)], nil
}

func (s *session) Execute(ctx context.Context, req loop.Program) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		s.ran = append(s.ran, req)
		code := strings.TrimSpace(req.Code)
		if s.hang[code] {
			<-ctx.Done()
			yield(nil, ctx.Err())
			return
		}
		ended := false
		for _, e := range s.outcomes[code] {
			if !yield(e, nil) {
				return
			}
			_, done := e.(kernel.Done)
			ended = ended || done
		}
		if err := s.errs[code]; err != nil {
			yield(nil, err)
			return
		}
		if !ended {
			yield(kernel.Done{Outcome: kernel.OutcomeOK}, nil)
		}
	}
}

func (s *session) codes() []string {
	var out []string
	for _, r := range s.ran {
		out = append(out, strings.TrimSpace(r.Code))
	}
	return out
}

func stdout(text string) kernel.Event { return kernel.Stream{Name: "stdout", Data: []byte(text)} }
func stderr(text string) kernel.Event { return kernel.Stream{Name: "stderr", Data: []byte(text)} }

func prints(text string) []kernel.Event { return []kernel.Event{stdout(text)} }

// raises is an execution that ends with an uncaught exception in the first line of a cell.
func raises(name, value string) []kernel.Event {
	return []kernel.Event{
		kernel.Error{Name: name, Value: value, Traceback: []string{
			"Traceback (most recent call last):", `  File "<cell 1>", line 1, in <module>`, "    f()", name + ": " + value,
		}},
		kernel.Done{Outcome: kernel.OutcomeError, ExitCode: 1},
	}
}

// usage is what every scripted answer costs.
func usage() model.Usage { return model.Usage{InputTokens: 100, OutputTokens: 10} }

// text is an answer in words, in pieces of few bytes.
func text(words string) says {
	var s says
	for _, r := range chunks(words, 5) {
		s.parts = append(s.parts, model.TextDelta{Text: r})
	}
	s.parts = append(s.parts, model.Finish{Reason: model.FinishStop, Usage: usage()})
	return s
}

func chunks(words string, n int) []string {
	var out []string
	runes := []rune(words)
	for len(runes) > 0 {
		k := min(n, len(runes))
		out = append(out, string(runes[:k]))
		runes = runes[k:]
	}
	return out
}

// ended is s with another finish reason.
func (s says) ended(reason model.FinishReason) says {
	s.parts = slices.Clone(s.parts)
	s.parts[len(s.parts)-1] = model.Finish{Reason: reason, Usage: usage()}
	return s
}

// calls is an answer with one call of the python tool for each code.
func calls(codes ...string) says {
	var raw []model.ToolCall
	for n, code := range codes {
		arguments, err := json.Marshal(map[string]string{"code": code})
		if err != nil {
			panic(err)
		}
		raw = append(raw, model.ToolCall{ID: fmt.Sprintf("call_%d", n), Name: "python", Arguments: string(arguments)})
	}
	return rawCalls(raw...)
}

func rawCalls(raw ...model.ToolCall) says {
	var s says
	for n, c := range raw {
		s.parts = append(s.parts, model.CallDelta{Index: n, ID: c.ID, Name: c.Name})
		for _, piece := range chunks(c.Arguments, 7) {
			s.parts = append(s.parts, model.CallDelta{Index: n, Arguments: piece})
		}
	}
	s.parts = append(s.parts, model.Finish{Reason: model.FinishCalls, Calls: raw, Usage: usage()})
	return s
}

// told is what a turn told its user.
type told struct {
	events  []loop.Event
	text    string
	code    map[int]string // by step
	started []string
	notices []string
	answer  *loop.Answer
	err     error
}

// within are the default limits with those that are given.
func within(l loop.Limits) loop.Limits {
	d := loop.DefaultLimits()
	fill(&l.Steps, d.Steps)
	fill(&l.Tokens, d.Tokens)
	fill(&l.Time, d.Time)
	fill(&l.Execution, d.Execution)
	fill(&l.Result, d.Result)
	return l
}

func fill[T comparable](field *T, otherwise T) {
	var zero T
	if *field == zero {
		*field = otherwise
	}
}

func ask(t *testing.T, i *conversation, prompt string) told {
	t.Helper()
	return askContext(t, t.Context(), i, prompt)
}

func askContext(t *testing.T, ctx context.Context, i *conversation, prompt string) told {
	t.Helper()
	out := told{code: map[int]string{}}
	for event, err := range i.Ask(ctx, prompt) {
		if out.err != nil || out.answer != nil {
			t.Errorf("%#v comes after the end", event)
		}
		if err != nil {
			out.err = err
			continue
		}
		out.events = append(out.events, event)
		switch e := event.(type) {
		case loop.Text:
			out.text += e.Delta
		case loop.Code:
			out.code[e.Step] += e.Delta
		case loop.Start:
			out.started = append(out.started, strings.TrimSpace(e.Code))
			if e.Step != len(out.started) {
				t.Errorf("step %d comes as number %d", e.Step, len(out.started))
			}
		case loop.Notice:
			if strings.Contains(e.Text, "\n") {
				t.Errorf("a notice of more than one line: %q", e.Text)
			}
			out.notices = append(out.notices, e.Text)
		case loop.Answer:
			out.answer = &e
		}
	}
	if (out.err == nil) == (out.answer == nil) {
		t.Errorf("a turn ends with an answer or an error; got %v and %v", out.answer, out.err)
	}
	return out
}

// tools are the capabilities of a model that can call tools.
func tools() model.Capabilities { return model.Capabilities{Tools: true} }

// conversation keeps what was said in turns with one session.
type conversation struct {
	model    model.Model
	session  loop.Executor
	limits   loop.Limits
	messages []model.Message
	window   int64 // tokens that the model takes at once; 0: unknown
}

func newConversation(m model.Model, s loop.Executor, l loop.Limits) *conversation {
	return &conversation{model: m, session: s, limits: l}
}

// Ask runs a turn. Asking again goes on with the conversation, also after a turn that failed.
func (c *conversation) Ask(ctx context.Context, prompt string) iter.Seq2[loop.Event, error] {
	return func(yield func(loop.Event, error) bool) {
		turn := loop.Turn{History: c.messages, Python: true, Context: c.window, Input: []model.Message{{Role: model.RoleUser, Content: []model.Content{model.Text{Text: prompt}}}}}
		for e, err := range loop.Run(ctx, c.model, c.session, c.limits, turn) {
			if a, ok := e.(loop.Answer); ok {
				c.messages = append(c.messages, a.Messages...)
			}
			if stopped, ok := errors.AsType[*loop.Stopped](err); ok {
				c.messages, err = append(c.messages, stopped.Messages...), stopped.Err
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
