package gemini

import (
	"cmp"
	"encoding/json"
	"strings"

	"cove/internal/core/ident"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

// part is one part of an answer.
type part struct {
	Text         *string       `json:"text,omitempty"`
	Thought      bool          `json:"thought,omitempty"`
	Code         *code         `json:"executableCode,omitempty"`
	Result       *codeResult   `json:"codeExecutionResult,omitempty"`
	InlineData   *blob         `json:"inlineData,omitempty"`
	FunctionCall *functionCall `json:"functionCall,omitempty"`
}

type code struct {
	Language string `json:"language"`
	Code     string `json:"code"`
	ID       string `json:"id"`
}

type codeResult struct {
	Outcome string `json:"outcome"`
	Output  string `json:"output"`
	ID      string `json:"id"`
}

type blob struct {
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
}

type functionCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type content struct {
	Parts []part `json:"parts"`
	Role  string `json:"role"`
}

type candidate struct {
	Content      content `json:"content"`
	FinishReason string  `json:"finishReason,omitempty"`
	Index        int     `json:"index"`
}

type usage struct {
	Prompt     int64 `json:"promptTokenCount"`
	Candidates int64 `json:"candidatesTokenCount"`
	Total      int64 `json:"totalTokenCount"`
	Cached     int64 `json:"cachedContentTokenCount,omitempty"`
	Thoughts   int64 `json:"thoughtsTokenCount,omitempty"`
}

// response is a GenerateContentResponse, whole or a chunk of a stream.
type response struct {
	Candidates []candidate `json:"candidates"`
	Usage      *usage      `json:"usageMetadata,omitempty"`
	Model      string      `json:"modelVersion"`
	ID         string      `json:"responseId"`
}

// largestFigures bounds the figures of one answer, in bytes of base64.
const largestFigures = 32 << 20

// answer makes parts of a turn's events. Chunks go to send as they come; without it the parts are gathered.
type answer struct {
	send     func(response) error
	turn     hub.Turn
	session  func() string // asked for when code first runs: a session may be made after its turn has begun
	model    string
	thoughts bool

	parts   []part
	sure    int             // of parts, those that stay when an answer breaks off and is said again
	said    strings.Builder // the words since the last execution
	held    *part           // the last words, which are not sent yet: the last chunk has words, since some versions of the SDKs take one without for a broken one
	id      string          // of the code that runs
	running *outputs
	shown   int  // bytes of figures
	gap     bool // events are lost
}

func (a *answer) emit(p part) error {
	if a.send == nil {
		if n := len(a.parts); n > a.sure && p.Text != nil && a.parts[n-1].Text != nil && a.parts[n-1].Thought == p.Thought {
			a.parts[n-1].Text = new(*a.parts[n-1].Text + *p.Text)
			return nil
		}
		a.parts = append(a.parts, p)
		return nil
	}
	if err := a.flush(); err != nil {
		return err
	}
	if p.Text != nil && !p.Thought {
		a.held = &p
		return nil
	}
	return a.chunk("", nil, p)
}

func (a *answer) flush() error {
	if a.held == nil {
		return nil
	}
	p := *a.held
	a.held = nil
	return a.chunk("", nil, p)
}

func (a *answer) chunk(finish string, u *usage, parts ...part) error {
	return a.send(a.response(finish, u, parts))
}

func (a *answer) response(finish string, u *usage, parts []part) response {
	return response{[]candidate{{Content: content{parts, "model"}, FinishReason: finish}}, u, cmp.Or(a.turn.Model, a.model), ident.Body(a.turn.ID)}
}

// take translates one event of the turn and returns the whole answer, or the last chunk, after the last.
func (a *answer) take(e loop.Event) (last *response, err error) {
	switch e := e.(type) {
	case loop.Text:
		if strings.TrimSpace(e.Delta) == "" && strings.TrimSpace(a.said.String()) == "" {
			return nil, nil // blank lines between code and words are no part
		}
		a.said.WriteString(e.Delta)
		return nil, a.emit(part{Text: &e.Delta})
	case loop.Reasoning:
		if a.thoughts && e.Delta != "" {
			return nil, a.emit(part{Text: &e.Delta, Thought: true})
		}
	case loop.Start:
		a.id = codeID(cmp.Or(a.turn.Session, a.session()), a.turn.ID, e.Step)
		a.running = &outputs{}
		return nil, a.settle(part{Code: &code{"PYTHON", e.Code, a.id}})
	case loop.Output:
		return nil, a.output(e.Event)
	case loop.Notice:
		a.said.Reset()
		a.held, a.parts = nil, a.parts[:a.sure]
	case loop.Answer:
		return a.end(e)
	}
	return nil, nil
}

// settle adds a part that is never taken back.
func (a *answer) settle(p part) error {
	err := a.emit(p)
	a.sure = len(a.parts)
	a.said.Reset()
	return err
}

func (a *answer) output(e kernel.Event) error {
	if a.running == nil {
		return nil
	}
	done, ended := e.(kernel.Done)
	if !ended {
		a.running.add(e)
		return nil
	}
	result, figures := a.running.result(a.id, done)
	a.running = nil
	for n, f := range figures {
		if a.shown += len(f.data); a.shown > largestFigures {
			figures = figures[:n]
			result.Output += "[Figures were left out: those of one answer are too large together.]\n"
			break
		}
	}
	if err := a.settle(part{Result: result}); err != nil {
		return err
	}
	for _, f := range figures {
		if err := a.settle(part{InlineData: &blob{f.kind, f.data}}); err != nil {
			return err
		}
	}
	return nil
}

// end completes the answer: with words that cove composed, which did not come as text, and with calls of functions, which come when they are complete.
func (a *answer) end(e loop.Answer) (*response, error) {
	said, want := strings.TrimSpace(a.said.String()), strings.TrimSpace(e.Text)
	missing := ""
	switch {
	case e.Reason == loop.ClientCalls || want == said:
	case a.gap && a.send == nil:
		a.parts, missing = a.parts[:a.sure], want
	case strings.HasPrefix(want, said):
		missing = strings.TrimPrefix(want, said)
	}
	if missing != "" {
		if err := a.emit(part{Text: &missing}); err != nil {
			return nil, err
		}
	}
	for _, call := range e.Calls {
		args := json.RawMessage(call.Arguments)
		var object map[string]json.RawMessage
		if json.Unmarshal(args, &object) != nil || object == nil {
			args = json.RawMessage("{}")
		}
		if err := a.emit(part{FunctionCall: &functionCall{call.ID, call.Name, args}}); err != nil {
			return nil, err
		}
	}
	parts := a.parts
	if a.held != nil {
		parts = []part{*a.held}
	}
	if len(parts) == 0 {
		parts = []part{{Text: new("")}}
	}
	r := a.response(finishOf(e.Reason), usageOf(e.Usage), parts)
	return &r, nil
}

func finishOf(r loop.AnswerReason) string {
	switch r {
	case loop.TokenLimit, loop.Length:
		return "MAX_TOKENS"
	case loop.Filtered:
		return "SAFETY"
	case loop.TimeLimit:
		return "OTHER"
	}
	return "STOP"
}

func usageOf(u model.Usage) *usage {
	return &usage{Prompt: u.InputTokens, Candidates: max(u.OutputTokens-u.ReasoningTokens, 0), Total: u.Total(), Cached: u.CachedTokens, Thoughts: u.ReasoningTokens}
}
