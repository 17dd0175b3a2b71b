package openai_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"cove/internal/http/compat/openai"
	"cove/internal/llm/model"
)

// TestParametersOfOtherServices passes on what OpenAI does not know, where the model's service is not OpenAI's, and how hard a model is to think.
func TestParametersOfOtherServices(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	m := &fakeModel{extra: true, parts: []model.Part{model.TextDelta{Text: "x"}, model.Finish{Reason: model.FinishStop}}}
	f.model = m
	s := serve(t, f)
	const extra = `"top_k":20,"chat_template_kwargs":{"enable_thinking":false},"nothing":null`
	status, answer, _ := ask(t, s, "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Q"}],"reasoning_effort":"low",`+extra+`}`)
	if status != 200 {
		t.Fatalf("%d %v", status, answer)
	}
	if got := m.asked[0]; got.Effort != "low" || len(got.Extra) != 2 || string(got.Extra["top_k"]) != "20" || string(got.Extra["chat_template_kwargs"]) != `{"enable_thinking":false}` {
		t.Errorf("%+v", got)
	}
	if status, answer, _ = ask(t, s, "POST", "/v1/responses", `{"model":"m","input":"Q","reasoning":{"effort":"high"},`+extra+`}`); status != 200 {
		t.Fatalf("%d %v", status, answer)
	}
	if got := f.asked[0]; got.Effort != "high" || len(got.Extra) != 2 || at(answer, "reasoning", "effort") != "high" {
		t.Errorf("%+v %v", got, answer)
	}
	for path, body := range map[string]string{ // what means something elsewhere, and what is too much
		"/v1/responses":        `{"model":"m","input":"Q","messages":[]}`,
		"/v1/chat/completions": `{"model":"m","messages":[{"role":"user","content":"Q"}],"max_output_tokens":5}`,
		"/v1/responses?":       `{"model":"m","input":"Q","x":"` + strings.Repeat("x", 70<<10) + `"}`,
		"/v1/responses?a":      `{"model":"m","input":"Q","reasoning":{"effort":"` + strings.Repeat("x", 70) + `"}}`,
	} {
		if status, answer, _ := ask(t, s, "POST", path, body); status != 400 {
			t.Errorf("%s: %d %v", path, status, answer)
		}
	}
	m.extra = false
	status, answer, _ = ask(t, s, "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Q"}],`+extra+`}`)
	if status != 400 || at(answer, "error", "code") != "unknown_parameter" {
		t.Errorf("%d %v", status, answer)
	}
}

// TestChatBeginsAtOnce has headers and a sign of life come before a model's first word.
func TestChatBeginsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFake()
	m := &fakeModel{wait: make(chan struct{}), parts: []model.Part{model.TextDelta{Text: "late"}, model.Finish{Reason: model.FinishStop}}}
	f.model = m
	s := serve(t, f, func(o *openai.Options) { o.Settle = time.Millisecond })
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/v1/chat/completions", strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"Q"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer owner")
	response, err := http.DefaultClient.Do(req) // the model says nothing before this returns
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewReader(response.Body)
	if first, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(first, ":") || response.StatusCode != 200 {
		t.Errorf("%d %q, %v", response.StatusCode, first, err)
	}
	close(m.wait)
	rest := new(strings.Builder)
	if _, err := lines.WriteTo(rest); err != nil || !strings.Contains(rest.String(), "late") || !strings.HasSuffix(rest.String(), "[DONE]\n\n") {
		t.Errorf("%s, %v", rest, err)
	}
}

// TestUsageHasItsDetails passes on what was cached and what was thought.
func TestUsageHasItsDetails(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.model = &fakeModel{parts: []model.Part{model.TextDelta{Text: "x"}, model.Finish{Reason: model.FinishStop,
		Usage: model.Usage{InputTokens: 10, OutputTokens: 7, CachedTokens: 8, ReasoningTokens: 5}}}}
	_, answer, _ := ask(t, serve(t, f), "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Q"}]}`)
	if at(answer, "usage", "prompt_tokens_details", "cached_tokens") != 8.0 || at(answer, "usage", "completion_tokens_details", "reasoning_tokens") != 5.0 {
		t.Errorf("%v", answer)
	}
}
