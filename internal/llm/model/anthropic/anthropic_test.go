package anthropic_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/llm/model/anthropic"
	"cove/internal/llm/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func hear(t *testing.T, m model.Model, req model.Request) (*model.Finish, *problem.Error) {
	t.Helper()
	var finish *model.Finish
	for part, err := range m.Stream(t.Context(), req) {
		if err != nil {
			return finish, problem.Of(err)
		}
		if f, ok := part.(model.Finish); ok {
			finish = &f
		}
	}
	return finish, nil
}

func start(t *testing.T, turns ...modeltest.Turn) (*modeltest.Server, model.Model) {
	t.Helper()
	server := modeltest.NewServer(turns...)
	t.Cleanup(server.Close)
	// The version at the end is a habit that must do no harm.
	return server, anthropic.New(anthropic.Options{Model: "claude-test", BaseURL: server.AnthropicURL() + "/v1/", APIKey: "sk-ant", HTTPClient: server.Client()})
}

func question(messages ...model.Message) model.Request {
	user := model.Message{Role: model.RoleUser, Content: []model.Content{model.Text{Text: "go"}}}
	return model.Request{System: "You run Python.", Messages: append([]model.Message{user}, messages...)}
}

func TestStopReasons(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason model.FinishReason
		code   string
	}{
		"end_turn": {model.FinishStop, ""}, "stop_sequence": {model.FinishStop, ""}, "max_tokens": {model.FinishLength, ""},
		"model_context_window_exceeded": {model.FinishLength, ""}, "refusal": {model.FinishFilter, ""}, "pause_turn": {"", "model_paused"},
		"something new": {model.FinishStop, ""},
	}
	for stop, c := range cases {
		t.Run(stop, func(t *testing.T) {
			t.Parallel()
			_, m := start(t, modeltest.Turn{Text: []string{"a"}, Finish: stop})
			finish, err := hear(t, m, question())
			if c.code != "" && (err == nil || err.Code != c.code || finish != nil) {
				t.Errorf("finish %+v, problem %v", finish, err)
			}
			if c.code == "" && (err != nil || finish == nil || finish.Reason != c.reason) {
				t.Errorf("finish %+v, problem %v", finish, err)
			}
		})
	}
}

func TestConversationOnTheWire(t *testing.T) {
	t.Parallel()
	server, m := start(t, modeltest.Say("ok"))
	req := question(
		model.Message{Role: model.RoleAssistant, Content: []model.Content{model.Text{}, model.ToolCall{ID: "t1", Name: "python", Arguments: `{"code":"1"}`}, model.ToolCall{ID: "f.t:2", Name: "python", Arguments: `oops`}}},
		model.Message{Role: model.RoleTool, Content: []model.Content{
			model.ToolResult{CallID: "t1", Text: "1", Images: []model.Image{{MIME: "image/png", Data: []byte("png")}}},
			model.ToolResult{CallID: "f.t:2", Text: "not JSON", IsError: true},
		}},
	)
	req.Tools = []model.Tool{{Name: "python", Description: "Runs.", Schema: []byte(`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"],"additionalProperties":false}`)}}
	if _, err := hear(t, m, req); err != nil {
		t.Fatal(err)
	}
	sent := server.Requests()[0]
	type object = map[string]any
	want := []object{
		{"role": "user", "content": []any{object{"type": "text", "text": "go"}}},
		{"role": "assistant", "content": []any{
			object{"type": "tool_use", "id": "t1", "name": "python", "input": object{"code": "1"}},
			object{"type": "tool_use", "id": "f_t_2", "name": "python", "input": object{"invalid_arguments": "oops"}}}},
		{"role": "user", "content": []any{
			object{"type": "tool_result", "tool_use_id": "t1", "is_error": false, "content": []any{
				object{"type": "text", "text": "1"},
				object{"type": "image", "source": object{"type": "base64", "media_type": "image/png", "data": "cG5n"}}}},
			object{"type": "tool_result", "tool_use_id": "f_t_2", "is_error": true, "content": []any{object{"type": "text", "text": "not JSON"}}}}},
	}
	if diff := cmp.Diff(want, sent.Messages()); diff != "" {
		t.Error(diff)
	}
	tool := []any{object{"name": "python", "description": "Runs.", "input_schema": object{
		"type": "object", "properties": object{"code": object{"type": "string"}}, "required": []any{"code"}, "additionalProperties": false}}}
	if diff := cmp.Diff(any(tool), sent.Body["tools"]); diff != "" {
		t.Error(diff)
	}
	if sent.Body["max_tokens"] != float64(anthropic.DefaultMaxTokens) || sent.Header.Get("X-Api-Key") != "sk-ant" {
		t.Errorf("max_tokens %v, key %q", sent.Body["max_tokens"], sent.Header.Get("X-Api-Key"))
	}
	if !strings.Contains(sent.Header.Get("User-Agent"), "Anthropic/Go") {
		t.Errorf("not sent by the official SDK but by %q", sent.Header.Get("User-Agent"))
	}
}

func TestWishesOnTheWire(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	cases := map[string]struct {
		change func(*model.Request)
		want   object
	}{
		"none":          {func(*model.Request) {}, object{}},
		"auto":          {func(r *model.Request) { r.Choice.Mode = "auto" }, object{"tool_choice": object{"type": "auto"}}},
		"required":      {func(r *model.Request) { r.Choice.Mode = "required" }, object{"tool_choice": object{"type": "any"}}},
		"none allowed":  {func(r *model.Request) { r.Choice.Mode, r.Parallel = "none", new(false) }, object{"tool_choice": object{"type": "none"}}},
		"by name":       {func(r *model.Request) { r.Choice.Name = "python" }, object{"tool_choice": object{"type": "tool", "name": "python"}}},
		"one at a time": {func(r *model.Request) { r.Parallel = new(false) }, object{"tool_choice": object{"type": "auto", "disable_parallel_tool_use": true}}},
		"one, required": {func(r *model.Request) { r.Choice.Mode, r.Parallel = "required", new(false) },
			object{"tool_choice": object{"type": "any", "disable_parallel_tool_use": true}}},
		"several":         {func(r *model.Request) { r.Parallel = new(true) }, object{}},
		"without tools":   {func(r *model.Request) { r.Tools, r.Choice.Mode = nil, "required" }, object{}},
		"temperature":     {func(r *model.Request) { r.Temperature = new(0.0) }, object{"temperature": 0.0}},
		"too hot":         {func(r *model.Request) { r.Temperature, r.TopP = new(1.7), new(0.5) }, object{"temperature": 1.0}},
		"stop":            {func(r *model.Request) { r.Stop = []string{"END"} }, object{"stop_sequences": []any{"END"}}},
		"top_p and limit": {func(r *model.Request) { r.TopP, r.MaxTokens = new(0.5), 7 }, object{"top_p": 0.5, "max_tokens": 7.0}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, m := start(t, modeltest.Say("ok"))
			req := question()
			req.Tools = []model.Tool{{Name: "python", Schema: []byte(`{"type":"object"}`)}}
			c.change(&req)
			if _, err := hear(t, m, req); err != nil {
				t.Fatal(err)
			}
			got := object{}
			for _, name := range []string{"tool_choice", "temperature", "top_p", "max_tokens", "stop_sequences"} {
				if value, ok := server.Requests()[0].Body[name]; ok && value != float64(anthropic.DefaultMaxTokens) {
					got[name] = value
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
