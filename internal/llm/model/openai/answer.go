package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"

	"cove/internal/llm/model"
)

// answer puts the chunks of one stream together.
type answer struct {
	calls    calls
	thought  thought
	reason   string
	refused  bool
	usage    model.Usage
	hasUsage bool
}

func newAnswer(req model.Request) *answer {
	taken := map[string]bool{}
	for _, m := range req.Messages {
		for _, c := range m.Content {
			if call, ok := c.(model.ToolCall); ok {
				taken[call.ID] = true
			}
		}
	}
	return &answer{calls: calls{taken: taken}}
}

// take returns what a chunk adds to the answer.
func (a *answer) take(chunk openai.ChatCompletionChunk) []model.Part {
	if chunk.JSON.Usage.Valid() {
		a.usage = model.Usage{InputTokens: chunk.Usage.PromptTokens, OutputTokens: chunk.Usage.CompletionTokens,
			CachedTokens: chunk.Usage.PromptTokensDetails.CachedTokens, ReasoningTokens: chunk.Usage.CompletionTokensDetails.ReasoningTokens}
		a.hasUsage = true
	}
	var parts []model.Part
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		delta := choice.Delta
		if text := reasoning(delta.JSON.ExtraFields); text != "" {
			parts = append(parts, model.ReasoningDelta{Text: text})
		}
		if delta.Content != "" {
			parts = append(parts, spoken(a.thought.split(delta.Content))...)
		}
		if delta.Refusal != "" {
			a.refused = true
			parts = append(parts, model.TextDelta{Text: delta.Refusal})
		}
		for _, call := range delta.ToolCalls {
			parts = append(parts, a.calls.take(call)...)
		}
		if choice.FinishReason != "" {
			a.reason = choice.FinishReason
		}
	}
	return parts
}

func spoken(reasoning, text string) []model.Part {
	var parts []model.Part
	if reasoning != "" {
		parts = append(parts, model.ReasoningDelta{Text: reasoning})
	}
	if text != "" {
		parts = append(parts, model.TextDelta{Text: text})
	}
	return parts
}

// complete says that nothing further is worth waiting for.
func (a *answer) complete() bool { return a.reason != "" && a.hasUsage }

// finish returns an error for an answer that was given up rather than finished.
func (a *answer) finish() (model.Finish, error) {
	finish := model.Finish{Reason: model.FinishStop, Usage: a.usage}
	switch a.reason {
	case "length", "max_tokens", "model_length":
		finish.Reason = model.FinishLength
		return finish, nil
	case "content_filter":
		finish.Reason = model.FinishFilter
		return finish, nil
	case "stop", "tool_calls", "function_call", "eos", "end_turn", "stop_sequence":
	default:
		if len(a.calls.list) > 0 {
			return finish, fmt.Errorf("the service ended the answer with the reason %q", a.reason)
		}
		if a.reason == "error" || a.reason == "abort" {
			return finish, errors.New("the service gave up the answer")
		}
	}
	if a.refused {
		finish.Reason = model.FinishFilter
		return finish, nil
	}
	finish.Calls = a.calls.complete()
	if len(finish.Calls) > 0 {
		finish.Reason = model.FinishCalls
	}
	return finish, nil
}

// reasoning reads the fields in which DeepSeek, Qwen and vLLM (reasoning_content) or OpenRouter and Ollama (reasoning)
// stream what a model thinks; the official format has none.
func reasoning(extra map[string]respjson.Field) string {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		var text string
		if field, ok := extra[name]; ok && json.Unmarshal([]byte(field.Raw()), &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// calls assembles tool calls from deltas that are keyed by index, or by id, or by nothing at all.
type calls struct {
	list  []*call
	taken map[string]bool // ids in use in the conversation
}

type call struct {
	id        string // unique in the conversation
	sentID    string // as the service names it, perhaps more than one call
	index     int64
	indexed   bool
	name      string
	arguments strings.Builder
	announced bool
	held      string // arguments that came before the name
}

// mostNameless bounds the calls of an answer, and the bytes of one call, that are held back in the hope of a name.
const mostNameless = 1000

func (c *calls) take(delta openai.ChatCompletionChunkChoiceDeltaToolCall) []model.Part {
	arguments := delta.Function.Arguments
	if raw := delta.Function.JSON.Arguments.Raw(); strings.HasPrefix(raw, "{") {
		arguments = raw
	}
	at := c.find(delta, arguments)
	if at < 0 {
		at = len(c.list)
		c.list = append(c.list, &call{id: c.unique(delta.ID), sentID: delta.ID, index: delta.Index, indexed: delta.JSON.Index.Valid()})
	}
	current := c.list[at]
	if current.name == "" {
		current.name = delta.Function.Name
	}
	current.arguments.WriteString(arguments)
	if current.name == "" {
		current.held += arguments
		if len(c.list) > mostNameless || current.arguments.Len() > mostNameless {
			return []model.Part{model.CallDelta{Index: at, Arguments: current.held}} // it counts as what the answer has
		}
		return nil
	}
	part := model.CallDelta{Index: at, Arguments: current.held + arguments}
	current.held = ""
	if !current.announced {
		current.announced = true
		part.ID, part.Name = current.id, current.name
	} else if part.Arguments == "" {
		return nil
	}
	return []model.Part{part}
}

// find returns the call that a delta continues, or -1 when it begins one.
func (c *calls) find(delta openai.ChatCompletionChunkChoiceDeltaToolCall, arguments string) int {
	for i := len(c.list) - 1; i >= 0; i-- {
		known := c.list[i]
		if delta.JSON.Index.Valid() && known.indexed && delta.Index != known.index {
			continue
		}
		if delta.ID != "" && known.sentID != "" && delta.ID != known.sentID {
			continue
		}
		// A name in front of new arguments, after complete ones, begins another call under the same label.
		again := delta.Function.Name != "" && strings.HasPrefix(strings.TrimSpace(arguments), "{")
		if again && json.Valid([]byte(known.arguments.String())) {
			continue
		}
		return i
	}
	return -1
}

// unique keeps the service's id unless it is missing or already in use.
func (c *calls) unique(id string) string {
	for n := len(c.taken) + 1; id == "" || c.taken[id]; n++ {
		id = fmt.Sprintf("call_%d", n)
	}
	c.taken[id] = true
	return id
}

func (c *calls) complete() []model.ToolCall {
	var out []model.ToolCall
	for _, call := range c.list {
		if call.name == "" {
			continue
		}
		arguments := call.arguments.String()
		if strings.TrimSpace(arguments) == "" {
			arguments = "{}"
		}
		out = append(out, model.ToolCall{ID: call.id, Name: call.name, Arguments: arguments})
	}
	return out
}
