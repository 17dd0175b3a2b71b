package openai

import (
	"cove/internal/llm/model"
)

// What is counted for a message beside its words, for a picture, and for what the interpreter adds of itself, in tokens.
const (
	tokensOfMessage     = 4
	tokensOfImage       = 1000
	tokensOfInterpreter = 1000
)

// inputTokens says how many tokens a request would take. Only the model's provider knows that: it is an estimate, and the answer says so.
func (s *server) inputTokens(c *call) error {
	f, err := s.readForm(c)
	if err != nil {
		return err
	}
	f.only("conversation", "input", "instructions", "model", "parallel_tool_calls", "personality", "previous_response_id", "reasoning", "text", "tool_choice",
		"tools", "truncation")
	var r request
	r.input = f.raw["input"]
	r.readRest(f)
	r.toolbox = s.readTools(f)
	r.readState(f)
	if !f.has("input") && r.previous == "" && r.talk == "" {
		f.fail(missing("input"))
	}
	if f.err != nil {
		return f.err
	}
	b, in, messages, err := s.conversationOfRequest(c, f, &r)
	if err != nil {
		return err
	}
	n := tokensIn(r.text)
	for _, text := range append(b.developer, in.developer...) {
		n += tokensIn(text) + tokensOfMessage
	}
	for _, m := range messages {
		n += tokensOf(m)
	}
	for _, tool := range r.functions {
		n += tokensIn(tool.Name) + tokensIn(tool.Description) + tokensIn(string(tool.Schema)) + tokensOfMessage
	}
	if r.python {
		n += tokensOfInterpreter
	}
	c.w.Header().Set("X-Estimate", "true")
	return c.reply(struct {
		Object    string `json:"object"`
		Tokens    int64  `json:"input_tokens"`
		Estimated bool   `json:"estimated"` // not OpenAI's
	}{"response.input_tokens", n, true})
}

func tokensOf(m model.Message) int64 {
	n := int64(tokensOfMessage)
	for _, part := range m.Content {
		switch p := part.(type) {
		case model.Text:
			n += tokensIn(p.Text)
		case model.Image:
			n += tokensOfImage
		case model.ToolCall:
			n += tokensIn(p.Name) + tokensIn(p.Arguments)
		case model.ToolResult:
			n += tokensIn(p.Text) + int64(len(p.Images))*tokensOfImage
		}
	}
	return n
}

// tokensIn estimates: four letters of the Latin alphabet make a token, and one of any other script.
func tokensIn(text string) int64 {
	var latin, other int64
	for _, r := range text {
		if r < 0x250 {
			latin++
		} else {
			other++
		}
	}
	return (latin+3)/4 + other
}
