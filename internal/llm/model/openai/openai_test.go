package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/llm/model/modeltest"
	"cove/internal/llm/model/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type said struct {
	text, reasoning string
	deltas          map[int]string
	finish          *model.Finish
	err             *problem.Error
}

func hear(t *testing.T, m model.Model, req model.Request) said {
	t.Helper()
	s := said{deltas: map[int]string{}}
	for part, err := range m.Stream(t.Context(), req) {
		if err != nil {
			s.err = problem.Of(err)
			continue
		}
		switch p := part.(type) {
		case model.TextDelta:
			s.text += p.Text
		case model.ReasoningDelta:
			s.reasoning += p.Text
		case model.CallDelta:
			if _, known := s.deltas[p.Index]; !known && (p.ID == "" || p.Name == "") {
				t.Errorf("the first delta %+v has no id or no name", p)
			}
			s.deltas[p.Index] += p.Arguments
		case model.Finish:
			s.finish = &p
		}
	}
	return s
}

func question(messages ...model.Message) model.Request {
	user := model.Message{Role: model.RoleUser, Content: []model.Content{model.Text{Text: "go"}}}
	return model.Request{Messages: append([]model.Message{user}, messages...), Tools: []model.Tool{{Name: "python", Schema: []byte(`{"type":"object"}`)}}}
}

func start(t *testing.T, d modeltest.Dialect, turns ...modeltest.Turn) (*modeltest.Server, openai.Options) {
	t.Helper()
	server := modeltest.NewServer(turns...)
	server.SetDialect(d)
	t.Cleanup(server.Close)
	return server, openai.Options{Model: "m", BaseURL: server.OpenAIURL(), HTTPClient: server.Client()}
}

func TestDialects(t *testing.T) {
	t.Parallel()
	cases := map[string]modeltest.Dialect{
		"original":                  {},
		"whole call":                {WholeCall: true},
		"whole call, bare":          {WholeCall: true, NoIndex: true, NoID: true},
		"whole call, finish stop":   {WholeCall: true, NoIndex: true, FinishStop: true},
		"whole call, same id":       {WholeCall: true, NoIndex: true, SameID: true},
		"whole call, zero index":    {WholeCall: true, ZeroIndex: true},
		"arguments are objects":     {WholeCall: true, ObjectArgs: true},
		"no index":                  {NoIndex: true},
		"no id":                     {NoID: true},
		"zero index":                {ZeroIndex: true},
		"same id":                   {SameID: true},
		"id and name in all deltas": {RepeatID: true},
		"finish stop, no done":      {FinishStop: true, NoDone: true},
	}
	earlier := model.Message{Role: model.RoleAssistant, Content: []model.Content{model.ToolCall{ID: "call_0", Name: "python", Arguments: "{}"}}}
	answered := model.Message{Role: model.RoleTool, Content: []model.Content{model.ToolResult{CallID: "call_0"}}}
	for name, dialect := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, opts := start(t, dialect, modeltest.Turn{Calls: []modeltest.Call{{Code: "print('一')"}, {Code: "print(\"二\")"}}})
			got := hear(t, openai.New(opts), question(earlier, answered))
			if got.err != nil || got.finish == nil || got.finish.Reason != model.FinishCalls {
				t.Fatalf("finish %+v, problem %v", got.finish, got.err)
			}
			ids := map[string]bool{"call_0": true}
			var arguments []string
			for i, call := range got.finish.Calls {
				if call.ID == "" || ids[call.ID] || call.Name != "python" {
					t.Errorf("call %+v among %+v", call, got.finish.Calls)
				}
				ids[call.ID] = true
				arguments = append(arguments, call.Arguments)
				if got.deltas[i] != call.Arguments {
					t.Errorf("deltas %q of call %q", got.deltas[i], call.Arguments)
				}
			}
			if diff := cmp.Diff([]string{`{"code":"print('一')"}`, `{"code":"print(\"二\")"}`}, arguments); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOtherDialects(t *testing.T) {
	t.Parallel()
	t.Run("reasoning", func(t *testing.T) {
		t.Parallel()
		_, opts := start(t, modeltest.Dialect{ReasoningAs: "reasoning"}, modeltest.Turn{Reasoning: []string{"a", "b"}, Text: []string{"c"}})
		if got := hear(t, openai.New(opts), question()); got.reasoning != "ab" || got.text != "c" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("stream_options rejected", func(t *testing.T) {
		t.Parallel()
		server, opts := start(t, modeltest.Dialect{RejectStreamOptions: true}, modeltest.Say("a"), modeltest.Say("b"))
		m := openai.New(opts)
		if first, second := hear(t, m, question()), hear(t, m, question()); first.text != "a" || second.text != "b" {
			t.Errorf("%+v, %+v", first, second)
		}
		if n := len(server.Requests()); n != 3 {
			t.Errorf("%d requests, want 3: the refusal is learned", n)
		}
	})
	t.Run("max_tokens rejected", func(t *testing.T) {
		t.Parallel()
		server, opts := start(t, modeltest.Dialect{RejectParameter: "max_tokens"}, modeltest.Say("a"))
		req := question()
		req.MaxTokens = 99
		if got := hear(t, openai.New(opts), req); got.text != "a" {
			t.Errorf("%+v", got)
		}
		if last := server.Requests()[1].Body; last["max_completion_tokens"] != 99.0 {
			t.Errorf("body %v", last)
		}
	})
	t.Run("reasoning_effort rejected, extra parameters taken", func(t *testing.T) {
		t.Parallel()
		server, opts := start(t, modeltest.Dialect{RejectParameter: "reasoning_effort"}, modeltest.Say("a"))
		m := openai.New(opts)
		req := question()
		req.Effort, req.Extra = "low", map[string]json.RawMessage{"top_k": json.RawMessage(`20`), "chat_template_kwargs": json.RawMessage(`{"enable_thinking":false}`)}
		hear(t, m, req)
		sent := server.Requests()
		if len(sent) != 2 || sent[0].Body["reasoning_effort"] != "low" || sent[1].Body["reasoning_effort"] != nil || sent[1].Body["top_k"] != 20.0 ||
			fmt.Sprint(sent[1].Body["chat_template_kwargs"]) != "map[enable_thinking:false]" || !m.Capabilities().Extra {
			t.Errorf("%+v", sent)
		}
	})
	t.Run("parallel_tool_calls rejected", func(t *testing.T) {
		t.Parallel()
		server, opts := start(t, modeltest.Dialect{RejectParameter: "parallel_tool_calls"}, modeltest.Say("a"), modeltest.Say("b"))
		m, req := openai.New(opts), question()
		req.Parallel = new(true)
		if first, second := hear(t, m, req), hear(t, m, req); first.text != "a" || second.text != "b" || len(server.Requests()) != 3 {
			t.Errorf("%+v, %+v after %d requests, want 3: the refusal is learned", first, second, len(server.Requests()))
		}
	})
	t.Run("response_format rejected", func(t *testing.T) {
		t.Parallel()
		server, opts := start(t, modeltest.Dialect{RejectParameter: "response_format"}, modeltest.Say("{}"))
		req := question()
		req.Tools, req.Format = nil, model.Format{JSON: true}
		if got := hear(t, openai.New(opts), req); got.text != "{}" || len(server.Requests()) != 2 {
			t.Errorf("%+v after %d requests", got, len(server.Requests()))
		}
	})
	t.Run("an invalid schema is the client's", func(t *testing.T) {
		t.Parallel()
		server, opts := start(t, modeltest.Dialect{}, modeltest.Error(400, "invalid_request_error", "Invalid schema for response_format 'n': it is odd."))
		req := question()
		req.Tools, req.Format = nil, model.Format{JSON: true, Name: "n", Schema: []byte(`{}`)}
		if got := hear(t, openai.New(opts), req); got.err == nil || got.err.Code != "model_request_rejected" || len(server.Requests()) != 1 {
			t.Errorf("%+v after %d requests", got, len(server.Requests()))
		}
	})
	t.Run("tools rejected", func(t *testing.T) {
		t.Parallel()
		server, opts := start(t, modeltest.Dialect{RejectTools: true}, modeltest.Say("a"))
		m := openai.New(opts)
		if got := hear(t, m, question()); got.err == nil || got.err.Code != "tools_unsupported" {
			t.Errorf("%+v", got)
		}
		req := question()
		req.Tools = nil
		if got := hear(t, m, req); got.text != "a" || len(server.Requests()) != 2 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("images rejected", func(t *testing.T) {
		t.Parallel()
		_, opts := start(t, modeltest.Dialect{RejectImages: true})
		opts.Images = model.SightOn
		req := question(model.Message{Role: model.RoleUser, Content: []model.Content{model.Image{MIME: "image/png", Data: []byte("x")}}})
		if got := hear(t, openai.New(opts), req); got.err == nil || got.err.Code != "images_unsupported" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("invalid arguments are passed on", func(t *testing.T) {
		t.Parallel()
		_, opts := start(t, modeltest.Dialect{}, modeltest.Turn{Calls: []modeltest.Call{{Arguments: `{"code": print(1)`}}})
		got := hear(t, openai.New(opts), question())
		if got.finish == nil || len(got.finish.Calls) != 1 || got.finish.Calls[0].Arguments != `{"code": print(1)` {
			t.Errorf("%+v", got)
		}
	})
	t.Run("filtered", func(t *testing.T) {
		t.Parallel()
		_, opts := start(t, modeltest.Dialect{}, modeltest.Turn{Text: []string{"no"}, Finish: "content_filter"})
		if got := hear(t, openai.New(opts), question()); got.finish == nil || got.finish.Reason != model.FinishFilter {
			t.Errorf("%+v", got)
		}
	})
}

func TestThoughtInTheText(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ said, reasoning, text string }{
		"tags":          {"\n<think>\nA < B\n</think>\n\nB wins", "\nA < B\n", "B wins"},
		"no tags":       {"<table> is a tag", "", "<table> is a tag"},
		"tags later":    {"the tag <think> opens", "", "the tag <think> opens"},
		"never closed":  {"<think>hm </thi", "hm </thi", ""},
		"only a bit":    {" <thi", "", " <thi"},
		"nothing in it": {"<think></think>ok", "", "ok"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for size := 1; size <= len(c.said); size += 5 {
				var pieces []string
				for rest := c.said; rest != ""; rest = rest[min(size, len(rest)):] {
					pieces = append(pieces, rest[:min(size, len(rest))])
				}
				_, opts := start(t, modeltest.Dialect{}, modeltest.Say(pieces...))
				if got := hear(t, openai.New(opts), question()); got.reasoning != c.reasoning || got.text != c.text || got.finish == nil {
					t.Errorf("pieces of %d: %+v", size, got)
				}
			}
		})
	}
}

func TestConversationOnTheWire(t *testing.T) {
	t.Parallel()
	server, opts := start(t, modeltest.Dialect{}, modeltest.Say("ok"))
	opts.APIKey, opts.Images = "sk-key", model.SightOff
	req := question(
		model.Message{Role: model.RoleAssistant, Content: []model.Content{model.Text{Text: "I look."}, model.ToolCall{ID: "c1", Name: "python", Arguments: `{"code":`}}},
		model.Message{Role: model.RoleTool, Content: []model.Content{model.ToolResult{CallID: "c1", Text: "bad JSON", IsError: true, Images: []model.Image{{MIME: "image/png", Data: []byte("x")}}}}},
	)
	req.System = "You run Python."
	if got := hear(t, openai.New(opts), req); got.err != nil {
		t.Fatal(got.err)
	}
	sent := server.Requests()[0]
	want := []map[string]any{
		{"role": "system", "content": "You run Python."},
		{"role": "user", "content": "go"},
		{"role": "assistant", "content": "I look.", "tool_calls": []any{map[string]any{
			"id": "c1", "type": "function", "function": map[string]any{"name": "python", "arguments": `{"invalid_arguments":"{\"code\":"}`}}}},
		{"role": "tool", "tool_call_id": "c1", "content": "bad JSON"},
	}
	if diff := cmp.Diff(want, sent.Messages()); diff != "" {
		t.Error(diff)
	}
	if got := sent.Header.Get("Authorization"); got != "Bearer sk-key" {
		t.Errorf("authorization %q", got)
	}
	if !strings.Contains(sent.Header.Get("User-Agent"), "OpenAI/Go") {
		t.Errorf("not sent by the official SDK but by %q", sent.Header.Get("User-Agent"))
	}
}

func TestOllama(t *testing.T) {
	t.Parallel()
	server := modeltest.NewServer(modeltest.Say("hi"), modeltest.Error(404, "api_error", "model 'none' not found"))
	t.Cleanup(server.Close)
	opts := openai.Options{Model: "qwen3", Ollama: true, BaseURL: openai.OllamaBaseURL(server.OllamaHost()), HTTPClient: server.Client()}
	m := openai.New(opts)
	if got := hear(t, m, question()); got.text != "hi" || m.Name() != "ollama/qwen3" {
		t.Fatalf("%+v from %s", got, m.Name())
	}
	if key := server.Requests()[0].Header.Get("Authorization"); key != "" {
		t.Errorf("sent a key: %q", key)
	}
	opts.Model = "none"
	if got := hear(t, openai.New(opts), question()); got.err == nil || got.err.Code != "model_unknown" || !strings.Contains(got.err.Hint, "ollama pull none") {
		t.Errorf("%+v", got)
	}
}

// redirected sends every request to a server of the test.
type redirected struct{ to *modeltest.Server }

func (r redirected) RoundTrip(req *http.Request) (*http.Response, error) {
	req.URL.Scheme, req.URL.Host = "http", strings.TrimPrefix(r.to.URL, "http://")
	return r.to.Client().Transport.RoundTrip(req)
}

// TestOpenAIItself is sent what it alone is known to take: a form beside tools, and strict functions.
func TestOpenAIItself(t *testing.T) {
	t.Parallel()
	for base, own := range map[string]bool{openai.DefaultBaseURL: true, "https://example.com/v1": false} {
		server := modeltest.NewServer(modeltest.Say("{}"))
		t.Cleanup(server.Close)
		req := question()
		req.Format.JSON, req.Tools[0].Strict = true, true
		if got := hear(t, openai.New(openai.Options{Model: "m", BaseURL: base, HTTPClient: &http.Client{Transport: redirected{server}}}), req); got.err != nil {
			t.Fatal(got.err)
		}
		sent := server.Requests()[0].Body
		_, form := sent["response_format"]
		function := sent["tools"].([]any)[0].(map[string]any)["function"].(map[string]any)
		if _, strict := function["strict"]; form != own || strict != own {
			t.Errorf("%s: a form %v, strict %v", base, form, strict)
		}
	}
}

func TestOllamaBaseURL(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"": "http://127.0.0.1:11434/v1", "0.0.0.0": "http://127.0.0.1:11434/v1", "box": "http://box:11434/v1", "box:8080": "http://box:8080/v1",
		"https://box": "https://box:443/v1", "http://box:1/": "http://box:1/v1", "[::]:9": "http://127.0.0.1:9/v1", "https://box/ollama/": "https://box:443/ollama/v1",
	}
	for host, want := range cases {
		if got := openai.OllamaBaseURL(host); got != want {
			t.Errorf("%q: %s, want %s", host, got, want)
		}
	}
}

// wishes are the members of a request's body that say how the model is to answer.
func wishes(r modeltest.Request) map[string]any {
	out := map[string]any{"tools": r.Tools()}
	for _, name := range []string{"tool_choice", "parallel_tool_calls", "temperature", "top_p", "max_tokens", "stop", "response_format"} {
		if value, ok := r.Body[name]; ok {
			out[name] = value
		}
	}
	return out
}

func TestWishesOnTheWire(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	both, python := []string{"python", "look"}, []string{"python"}
	schema := object{"type": "json_schema", "json_schema": object{"name": "n", "strict": true, "schema": object{"type": "object"}}}
	cases := map[string]struct {
		change       func(*model.Request)
		want, ollama object
	}{
		"none":         {func(*model.Request) {}, object{"tools": both}, object{"tools": both}},
		"required":     {func(r *model.Request) { r.Choice.Mode = "required" }, object{"tools": both, "tool_choice": "required"}, object{"tools": both}},
		"none allowed": {func(r *model.Request) { r.Choice.Mode = "none" }, object{"tools": both, "tool_choice": "none"}, object{"tools": []string(nil)}},
		"by name": {func(r *model.Request) { r.Choice.Name = "python" },
			object{"tools": both, "tool_choice": object{"type": "function", "function": object{"name": "python"}}}, object{"tools": python}},
		"one at a time": {func(r *model.Request) { r.Parallel = new(false) }, object{"tools": both, "parallel_tool_calls": false}, object{"tools": both}},
		"without tools": {func(r *model.Request) { r.Tools, r.Choice.Mode, r.Parallel = nil, "auto", new(true) }, object{"tools": []string(nil)}, object{"tools": []string(nil)}},
		"stop":          {func(r *model.Request) { r.Stop = []string{"END"} }, object{"tools": both, "stop": []any{"END"}}, object{"tools": both, "stop": []any{"END"}}},
		// A grammar would keep a model from calling tools.
		"form beside tools": {func(r *model.Request) { r.Format.JSON = true }, object{"tools": both}, object{"tools": both}},
		"form": {func(r *model.Request) { r.Tools, r.Format.JSON = nil, true },
			object{"tools": []string(nil), "response_format": object{"type": "json_object"}}, object{"tools": []string(nil), "response_format": object{"type": "json_object"}}},
		"schema": {func(r *model.Request) {
			r.Tools, r.Format = nil, model.Format{JSON: true, Name: "n", Strict: true, Schema: []byte(`{"type":"object"}`)}
		}, object{"tools": []string(nil), "response_format": schema}, object{"tools": []string(nil), "response_format": schema}},
		"sampling": {func(r *model.Request) { r.Temperature, r.TopP, r.MaxTokens = new(0.0), new(0.5), 7 },
			object{"tools": both, "temperature": 0.0, "top_p": 0.5, "max_tokens": 7.0}, object{"tools": both, "temperature": 0.0, "top_p": 0.5, "max_tokens": 7.0}},
	}
	for name, c := range cases {
		for _, ollama := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				server, opts := start(t, modeltest.Dialect{}, modeltest.Say("ok"))
				opts.Ollama = ollama
				req := question()
				req.Tools = append(req.Tools, model.Tool{Name: "look", Schema: []byte(`{"type":"object"}`)})
				c.change(&req)
				if got := hear(t, openai.New(opts), req); got.err != nil {
					t.Fatal(got.err)
				}
				want := c.want
				if ollama {
					want = c.ollama
				}
				if diff := cmp.Diff(want, wishes(server.Requests()[0])); diff != "" {
					t.Errorf("ollama %v: %s", ollama, diff)
				}
			})
		}
	}
}
