package openai

import (
	"encoding/json"
	"fmt"
	"slices"
)

const (
	mostExtra    = 32
	largestExtra = 64 << 10 // bytes, of all together
)

// elsewhere are parameters of OpenAI's that the other of the two operations has, or had once: they mean something that they would not do here.
func elsewhere() []string {
	return []string{"messages", "frequency_penalty", "logprobs", "max_completion_tokens", "max_tokens", "n", "presence_penalty", "seed", "audio", "logit_bias",
		"modalities", "reasoning_effort", "stop", "verbosity", "function_call", "functions", "prediction", "response_format", "web_search_options", "stream_options",
		"background", "instructions", "max_output_tokens", "max_tool_calls", "previous_response_id", "context_management", "conversation", "include",
		"prompt", "truncation", "input", "text", "tools", "tool_choice", "model", "stream", "temperature", "top_p", "parallel_tool_calls", "suffix", "echo", "best_of", "stream_id"}
}

// extra returns the fields of other names, which are the model's provider's to know: top_k, chat_template_kwargs. What OpenAI knows elsewhere is refused.
func (f *form) extra(names ...string) map[string]json.RawMessage {
	f.only(slices.DeleteFunc(f.names(), func(name string) bool { return !slices.Contains(names, name) && slices.Contains(elsewhere(), name) })...)
	out, size := map[string]json.RawMessage{}, 0
	for name, value := range f.raw {
		if !slices.Contains(names, name) && f.has(name) {
			out[name] = value
			size += len(name) + len(value)
		}
	}
	if len(out) > mostExtra || size > largestExtra {
		f.fail(invalid("", "invalid_value", fmt.Sprintf("Too many parameters that are not OpenAI's: expected at most %d of %d bytes together.", mostExtra, largestExtra)))
	}
	if f.err != nil || len(out) == 0 {
		return nil
	}
	return out
}

func (f *form) names() []string {
	var out []string
	for name := range f.raw {
		out = append(out, name)
	}
	return out
}

// short is a string of a few words.
func (f *form) short(name string) string {
	s := f.text(name)
	if len(s) > 64 {
		f.fail(tooLong(f.path(name), 64, len(s)))
	}
	return s
}
