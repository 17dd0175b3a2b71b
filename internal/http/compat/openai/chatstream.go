package openai

import (
	"context"
	"strings"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/server/hub"
)

func chatID() string { return "chatcmpl-" + ident.Body(ident.New("cmpl")) }

// chatAnswer writes an answer of Chat Completions, whole or in chunks.
type chatAnswer struct {
	id        string
	created   int64
	model     string
	usageAt   bool    // chunks end with one of the usage
	out       *outlet // nil: the answer is sent whole
	c         *call
	container string

	said      []byte
	sure      int // bytes of said that are not said again when an answer breaks off
	reasoning strings.Builder
	calls     []chatCall
	known     map[int]int // by the calls' index, their place in calls
	ran       []any       // executions, for the field that OpenAI does not have
	usage     *chatUsage
	begun     bool
}

type chatCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type chatUsage struct {
	Prompt        int64 `json:"prompt_tokens"`
	Completion    int64 `json:"completion_tokens"`
	Total         int64 `json:"total_tokens"`
	PromptDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func chatUsageOf(u model.Usage) *chatUsage {
	out := &chatUsage{Prompt: u.InputTokens, Completion: u.OutputTokens, Total: u.Total()}
	out.PromptDetails.Cached, out.CompletionDetails.Reasoning = u.CachedTokens, u.ReasoningTokens
	return out
}

type chatDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []chatCall `json:"tool_calls,omitempty"`
}

type chatChoice struct {
	Index    int          `json:"index"`
	Delta    *chatDelta   `json:"delta,omitempty"`
	Message  *chatMessage `json:"message,omitempty"`
	Logprobs *struct{}    `json:"logprobs"`
	Finish   *string      `json:"finish_reason"`
}

type chatMessage struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Refusal   *string    `json:"refusal"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []chatCall `json:"tool_calls,omitempty"`
	// Executions and Container are not OpenAI's: what the interpreter ran for this answer, and where.
	Executions []any  `json:"code_interpreter_calls,omitempty"`
	Container  string `json:"container_id,omitempty"`
}

type completion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   *chatUsage   `json:"usage,omitempty"`
}

func (s *server) newChat(c *call, r *chatRequest, id string) *chatAnswer {
	a := &chatAnswer{id: id, created: s.Now().Unix(), model: r.model, usageAt: r.usage, c: c, known: map[int]int{}}
	if r.stream {
		a.out = newOutlet(c.w, -1)
	}
	return a
}

func (a *chatAnswer) chunk(d chatDelta, finish *string) error {
	if a.out == nil {
		return nil
	}
	if !a.begun {
		a.begun = true
		if err := a.chunk(chatDelta{Role: "assistant", Content: new("")}, nil); err != nil {
			return err
		}
	}
	return a.out.data("", completion{a.id, "chat.completion.chunk", a.created, a.model, []chatChoice{{Delta: &d, Finish: finish}}, nil})
}

func (a *chatAnswer) text(delta string) error {
	a.said = append(a.said, delta...)
	return a.chunk(chatDelta{Content: &delta}, nil)
}

func (a *chatAnswer) think(delta string) error {
	a.reasoning.WriteString(delta)
	return a.chunk(chatDelta{Reasoning: delta}, nil)
}

// call continues a call of one of the client's functions.
func (a *chatAnswer) call(index int, id, name, arguments string) error {
	at, ok := a.known[index]
	if !ok {
		at = len(a.calls)
		a.known[index] = at
		if id == "" {
			id = "call_" + ident.Body(ident.New("call"))
		}
		a.calls = append(a.calls, chatCall{ID: id, Type: "function", Function: chatFunction{Name: name}})
	}
	a.calls[at].Function.Arguments += arguments
	d := chatCall{Index: &at, Function: chatFunction{Arguments: arguments}}
	if !ok {
		d.ID, d.Type, d.Function.Name = id, "function", name
	}
	return a.chunk(chatDelta{Calls: []chatCall{d}}, nil)
}

// finish ends the answer.
func (a *chatAnswer) finish(reason string, u model.Usage) error {
	if u != (model.Usage{}) {
		a.usage = chatUsageOf(u)
	}
	if a.out != nil {
		return a.finishStream(reason)
	}
	m := &chatMessage{Role: "assistant", Reasoning: a.reasoning.String(), Calls: a.calls, Executions: a.ran, Container: a.container}
	if len(a.said) > 0 || len(a.calls) == 0 {
		m.Content = new(string(a.said))
	}
	if len(a.ran) > 0 {
		a.c.w.Header().Set("X-Should-Retry", "false")
	}
	usage := a.usage
	if usage == nil {
		usage = &chatUsage{}
	}
	return a.c.reply(completion{a.id, "chat.completion", a.created, a.model, []chatChoice{{Message: m, Finish: &reason}}, usage})
}

func (a *chatAnswer) finishStream(reason string) error {
	if err := a.chunk(chatDelta{}, &reason); err != nil {
		return err
	}
	if a.usageAt {
		usage := a.usage
		if usage == nil {
			usage = &chatUsage{}
		}
		if err := a.out.data("", completion{a.id, "chat.completion.chunk", a.created, a.model, []chatChoice{}, usage}); err != nil {
			return err
		}
	}
	return a.out.write([]byte("data: [DONE]\n\n"))
}

// fail ends the answer with an error: with a status where nothing was sent yet, otherwise within the stream.
func (a *chatAnswer) fail(err error) error {
	if a.out == nil || !a.out.begun() {
		return chatRefused(err, a.model)
	}
	return a.out.write(append(append([]byte("data: "), faultOf(err).body()...), '\n'))
}

// passOn streams a model's answer to the client.
func (s *server) passOn(c *call, r *chatRequest, m model.Model, a *chatAnswer) error {
	req := model.Request{System: r.system, Messages: r.in.history.messages, Tools: r.functions, MaxTokens: r.max, Choice: r.choice,
		Parallel: r.parallel, Temperature: r.temp, TopP: r.topP, Stop: r.stop, Format: r.format, Effort: r.effort, Extra: r.extra}
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	type part struct {
		part model.Part
		err  error
	}
	parts := make(chan part)
	go func() {
		defer close(parts)
		for p, err := range m.Stream(ctx, req) {
			select {
			case parts <- part{p, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	beat := time.NewTicker(s.Heartbeat)
	defer beat.Stop()
	settled := time.After(s.Settle) // what fails at once fails with a status; then the client is told that it is being answered
	for {
		select {
		case <-settled:
			if a.out != nil {
				if err := a.out.comment(); err != nil {
					return err
				}
			}
		case <-c.Context().Done():
			return nil
		case <-beat.C:
			if a.out != nil {
				if err := a.out.comment(); err != nil {
					return err
				}
			}
		case p, ok := <-parts:
			switch {
			case !ok:
				return a.fail(problem.New(problem.ModelStreamTruncated, "the model's answer ended too early"))
			case p.err != nil:
				return a.fail(p.err)
			}
			if over, err := a.part(p.part); over || err != nil {
				return err
			}
		}
	}
}

// part translates one part of a model's answer and says whether it was the last.
func (a *chatAnswer) part(p model.Part) (bool, error) {
	switch p := p.(type) {
	case model.TextDelta:
		return false, a.text(p.Text)
	case model.ReasoningDelta:
		return false, a.think(p.Text)
	case model.CallDelta:
		return false, a.call(p.Index, p.ID, p.Name, p.Arguments)
	case model.Finish:
		a.completeCalls(p.Calls)
		reason := string(p.Reason)
		if p.Reason == model.FinishFilter {
			reason = "content_filter"
		}
		return true, a.finish(reason, p.Usage)
	}
	return false, nil
}

// completeCalls takes the complete calls where the answer is sent whole.
func (a *chatAnswer) completeCalls(calls []model.ToolCall) {
	if a.out != nil || len(calls) == 0 {
		return
	}
	a.calls = nil
	for _, call := range calls {
		a.calls = append(a.calls, chatCall{ID: call.ID, Type: "function", Function: chatFunction{Name: call.Name, Arguments: call.Arguments}})
	}
}

// followChat answers with what a turn says. The turn does not outlive the answer.
func (s *server) followChat(c *call, turn hub.Turn, a *chatAnswer) error {
	ended, err := s.pumpChat(c, turn, a)
	if !ended {
		s.abandon(c, turn.ID)
	}
	if a.out != nil && a.out.begun() {
		return nil
	}
	return err
}

func (s *server) pumpChat(c *call, turn hub.Turn, a *chatAnswer) (ended bool, err error) {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	steps, err := s.steps(ctx, c.who, turn.ID)
	if err != nil {
		return false, err
	}
	shadow := newTranslation(turn, kept{}, options{outputs: true, whole: true}, func(event) error { return nil })
	shadow.place = s.placeOf(ctx, c.who, turn.ID)
	beat := time.NewTicker(s.Heartbeat)
	defer beat.Stop()
	settled := time.After(s.Settle) // what fails at once fails with a status; then the client is told that it is being answered
	for {
		select {
		case <-settled:
			if a.out != nil {
				if err := a.out.comment(); err != nil {
					return false, err
				}
			}
		case <-c.Context().Done():
			return false, nil
		case <-beat.C:
			if a.out != nil {
				if err := a.out.comment(); err != nil {
					return false, err
				}
			}
		case st, ok := <-steps:
			if gone(c.Context()) {
				return false, nil
			}
			if !ok {
				st = step{err: problem.New(problem.TurnLost, "the answer broke off")}
			}
			if ended, err = a.turnStep(st, shadow); ended || err != nil {
				return ended, err
			}
		}
	}
}

// turnStep translates one event of a turn. The code and its outputs are gathered by a translation of the kind that Responses has.
func (a *chatAnswer) turnStep(st step, shadow *translation) (bool, error) {
	if st.err != nil {
		return true, a.fail(st.err)
	}
	before := len(shadow.items)
	if _, err := shadow.feed(st); err != nil {
		return false, err
	}
	switch e := st.event.Event.(type) {
	case loop.Text:
		// Words before and after code are paragraphs of one answer.
		if len(a.said) > 0 && len(shadow.items) > before {
			e.Delta = "\n\n" + strings.TrimLeft(e.Delta, "\n")
		}
		return false, a.text(e.Delta)
	case loop.Reasoning:
		return false, a.think(e.Delta)
	case loop.Start:
		a.sure = len(a.said)
	case loop.Notice:
		if a.out == nil {
			a.said = a.said[:a.sure]
		}
	case loop.Answer:
		return true, a.answer(e, shadow)
	}
	return false, nil
}

func (a *chatAnswer) answer(e loop.Answer, shadow *translation) error {
	if a.container = shadow.container; !shadow.ran {
		a.container = ""
	}
	for _, i := range shadow.shown() {
		if i.code != nil && i.done {
			a.ran = append(a.ran, i.json(true))
		}
	}
	// A sentence that cove composed did not come as text.
	if missing := strings.TrimSpace(e.Text); missing != "" && strings.TrimSpace(shadow.said.String()) == missing && !strings.Contains(string(a.said), missing) {
		if len(a.said) > 0 {
			missing = "\n\n" + missing
		}
		if err := a.text(missing); err != nil {
			return err
		}
	}
	// Calls come when they are complete: of an answer that broke off nothing can be taken back.
	for n, call := range e.Calls {
		if err := a.call(n, call.ID, call.Name, call.Arguments); err != nil {
			return err
		}
	}
	reason := "stop"
	switch e.Reason {
	case loop.ClientCalls:
		reason = "tool_calls"
	case loop.TokenLimit, loop.Length:
		reason = "length"
	case loop.Filtered:
		reason = "content_filter"
	}
	return a.finish(reason, e.Usage)
}
