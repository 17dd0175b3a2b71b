package modeltest

import (
	"encoding/json"
	"fmt"
)

type object = map[string]any

// openAI is the format of Chat Completions streaming.
type openAI struct{}

func (openAI) failure(kind string) event {
	return event{data: object{"error": object{"message": "scripted failure", "type": kind, "code": kind}}}
}

func (openAI) events(t Turn, d Dialect, r Request) []event {
	out := []event{chunk(r, object{"role": "assistant", "content": ""}, nil)}
	field := d.ReasoningAs
	if field == "" {
		field = "reasoning_content"
	}
	for _, text := range t.Reasoning {
		out = append(out, chunk(r, object{field: text}, nil))
	}
	for _, text := range t.Text {
		out = append(out, chunk(r, object{"content": text}, nil))
	}
	for i, call := range t.Calls {
		for _, delta := range callDeltas(i, call, d, t.CutCall && i == len(t.Calls)-1) {
			out = append(out, chunk(r, object{"tool_calls": []any{delta}}, nil))
		}
	}
	if !d.NoFinish {
		out = append(out, chunk(r, object{}, openAIFinish(t, d)))
	}
	if options, ok := r.Body["stream_options"].(object); ok && options["include_usage"] == true && (t.Input != 0 || t.Output != 0) {
		usage := object{"prompt_tokens": t.Input, "completion_tokens": t.Output, "total_tokens": t.Input + t.Output,
			"prompt_tokens_details": object{"cached_tokens": t.Cached}, "completion_tokens_details": object{"reasoning_tokens": t.Reasoned}}
		out = append(out, event{data: object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": r.Model(), "choices": []any{}, "usage": usage}})
	}
	if !d.NoDone {
		out = append(out, event{data: "[DONE]"})
	}
	return out
}

func openAIFinish(t Turn, d Dialect) string {
	switch {
	case t.Finish != "":
		return t.Finish
	case t.CutCall:
		return "length"
	case len(t.Calls) > 0 && !d.FinishStop:
		return "tool_calls"
	}
	return "stop"
}

func callDeltas(i int, c Call, d Dialect, cut bool) []object {
	id := c.ID
	if id == "" {
		id = fmt.Sprintf("call_%d", i+1)
	}
	if d.SameID {
		id = "call_0"
	}
	head := func(arguments any) object {
		f := object{"name": c.name(), "arguments": arguments}
		return label(object{"id": id, "type": "function", "function": f}, i, d)
	}
	pieces := c.fragments(cut)
	if d.WholeCall {
		whole := Call{Arguments: c.arguments(), Fragment: 1 << 30, ASCII: c.ASCII}.fragments(cut)[0]
		if d.ObjectArgs {
			return []object{head(json.RawMessage(whole))}
		}
		return []object{head(whole)}
	}
	out := []object{head("")}
	for _, piece := range pieces {
		if d.RepeatID {
			out = append(out, head(piece))
			continue
		}
		out = append(out, label(object{"function": object{"arguments": piece}}, i, d))
	}
	return out
}

func label(delta object, i int, d Dialect) object {
	switch {
	case d.NoIndex:
	case d.ZeroIndex:
		delta["index"] = 0
	default:
		delta["index"] = i
	}
	if d.NoID {
		delete(delta, "id")
	}
	return delta
}

func chunk(r Request, delta object, finish any) event {
	return event{data: object{
		"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": r.Model(),
		"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}},
	}}
}
