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

// extra returns the fields of other names, which are the model's provider's to know: top_k, chat_template_kwargs. What OpenAI knows elsewhere is refused, and what is misspelt.
func (f *form) extra(names ...string) map[string]json.RawMessage {
	f.only(slices.DeleteFunc(f.names(), func(name string) bool { return !slices.Contains(names, name) && slices.Contains(elsewhere(), name) })...)
	out, size := map[string]json.RawMessage{}, 0
	for name, value := range f.raw {
		if !slices.Contains(names, name) && f.has(name) {
			if meant := misspelt(name, names); meant != "" {
				f.fail(invalid(name, "unknown_parameter", fmt.Sprintf("Unknown parameter: '%.60s'. Did you mean '%s'?", name, meant)))
			}
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

// misspelt returns the parameter of OpenAI's that a name is one letter off, or "". The names that servers of open models have are none.
func misspelt(name string, names []string) string {
	const shortest = 5
	if len(name) < shortest || slices.Contains([]string{"top_k", "top_a", "min_p"}, name) {
		return ""
	}
	for _, known := range names {
		if oneOff(name, known) {
			return known
		}
	}
	return ""
}

// oneOff says whether a word becomes another one by leaving out, adding or changing one letter, or by changing the order of two.
func oneOff(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(b) && a[i] == b[i] {
		i++
	}
	switch len(a) - len(b) {
	case 0:
		return i < len(a) && (a[i+1:] == b[i+1:] || i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:])
	case 1:
		return a[i+1:] == b[i:]
	}
	return false
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
