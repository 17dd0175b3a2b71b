package modeltest

import "fmt"

// anthropic is the format of Messages streaming.
type anthropic struct{}

func (anthropic) failure(kind string) event {
	return event{"error", object{"type": "error", "error": object{"type": kind, "message": "scripted failure"}}}
}

func (anthropic) events(t Turn, d Dialect, r Request) []event {
	out := []event{
		{"message_start", object{"type": "message_start", "message": object{
			"id": "msg_1", "type": "message", "role": "assistant", "model": r.Model(), "content": []any{},
			"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": t.Input - t.Cached, "cache_read_input_tokens": t.Cached, "output_tokens": 1}}}},
		{"ping", object{"type": "ping"}},
	}
	index := 0
	block := func(start object, deltas ...object) {
		out = append(out, event{"content_block_start", object{"type": "content_block_start", "index": index, "content_block": start}})
		for _, delta := range deltas {
			out = append(out, event{"content_block_delta", object{"type": "content_block_delta", "index": index, "delta": delta}})
		}
		out = append(out, event{"content_block_stop", object{"type": "content_block_stop", "index": index}})
		index++
	}
	if len(t.Reasoning) > 0 {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, textDeltas("thinking_delta", "thinking", t.Reasoning)...)
	}
	if len(t.Text) > 0 {
		block(object{"type": "text", "text": ""}, textDeltas("text_delta", "text", t.Text)...)
	}
	for i, c := range t.Calls {
		id := c.ID
		if id == "" {
			id = fmt.Sprintf("toolu_%d", i+1)
		}
		pieces := append([]string{""}, c.fragments(t.CutCall && i == len(t.Calls)-1)...)
		block(object{"type": "tool_use", "id": id, "name": c.name(), "input": object{}}, textDeltas("input_json_delta", "partial_json", pieces)...)
	}
	if d.NoFinish {
		return out
	}
	return append(out,
		event{"message_delta", object{"type": "message_delta", "delta": object{"stop_reason": anthropicFinish(t), "stop_sequence": nil}, "usage": object{"output_tokens": t.Output}}},
		event{"message_stop", object{"type": "message_stop"}})
}

func anthropicFinish(t Turn) string {
	switch {
	case t.Finish != "":
		return t.Finish
	case t.CutCall:
		return "max_tokens"
	case len(t.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func textDeltas(kind, field string, texts []string) []object {
	var out []object
	for _, text := range texts {
		out = append(out, object{"type": kind, field: text})
	}
	return out
}
