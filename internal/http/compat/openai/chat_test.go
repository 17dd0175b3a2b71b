package openai_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
)

// fakeModel says the same to everybody, and remembers what it was asked.
type fakeModel struct {
	parts []model.Part
	err   error
	extra bool
	wait  chan struct{} // nil, or what an answer waits for

	mu    sync.Mutex
	asked []model.Request
}

func (*fakeModel) Name() string { return "test/m" }
func (m *fakeModel) Capabilities() model.Capabilities {
	return model.Capabilities{Tools: true, Images: true, Extra: m.extra}
}
func (m *fakeModel) Stream(_ context.Context, r model.Request) iter.Seq2[model.Part, error] {
	m.mu.Lock()
	m.asked = append(m.asked, r)
	m.mu.Unlock()
	return func(yield func(model.Part, error) bool) {
		if m.wait != nil {
			<-m.wait
		}
		for _, p := range m.parts {
			if !yield(p, nil) {
				return
			}
		}
		if m.err != nil {
			yield(nil, m.err)
		}
	}
}

func chatParams(prompt string) sdk.ChatCompletionNewParams {
	return sdk.ChatCompletionNewParams{Model: "m", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.SystemMessage("Be short."), sdk.UserMessage(prompt)}}
}

func TestChatPassesThrough(t *testing.T) {
	t.Parallel()
	m := &fakeModel{parts: []model.Part{model.TextDelta{Text: "Let "}, model.TextDelta{Text: "me."},
		model.CallDelta{Index: 0, ID: "c1", Name: "weather", Arguments: `{"city":`}, model.CallDelta{Index: 0, Arguments: `"Rome"}`},
		model.Finish{Reason: model.FinishCalls, Calls: []model.ToolCall{{ID: "c1", Name: "weather", Arguments: `{"city":"Rome"}`}}, Usage: model.Usage{InputTokens: 3, OutputTokens: 4}}}}
	f := newFake()
	f.model = m
	c := client(t, f)
	p := chatParams("Weather?")
	p.Tools = []sdk.ChatCompletionToolUnionParam{sdk.ChatCompletionFunctionTool(sdk.FunctionDefinitionParam{Name: "weather", Parameters: sdk.FunctionParameters{"type": "object"}})}
	p.Temperature, p.MaxCompletionTokens = param.NewOpt(0.5), param.NewOpt(int64(99))
	p.StreamOptions = sdk.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)}
	stream := c.Chat.Completions.NewStreaming(t.Context(), p)
	var acc sdk.ChatCompletionAccumulator
	for stream.Next() {
		acc.AddChunk(stream.Current())
	}
	p.StreamOptions = sdk.ChatCompletionStreamOptionsParam{}
	whole, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil || stream.Err() != nil {
		t.Fatal(err, stream.Err())
	}
	for name, got := range map[string]sdk.ChatCompletion{"stream": acc.ChatCompletion, "whole": *whole} {
		choice := got.Choices[0]
		if choice.Message.Content != "Let me." || choice.FinishReason != "tool_calls" || got.Usage.TotalTokens != 7 ||
			choice.Message.ToolCalls[0].ID != "c1" || choice.Message.ToolCalls[0].Function.Arguments != `{"city":"Rome"}` {
			t.Errorf("%s: %+v", name, got)
		}
	}
	asked := m.asked[0]
	if asked.System != "Be short." || asked.MaxTokens != 99 || *asked.Temperature != 0.5 || asked.Tools[0].Name != "weather" || len(asked.Messages) != 1 {
		t.Errorf("%+v", asked)
	}
	if len(f.asked) != 0 {
		t.Error("a turn was begun")
	}
}

func TestChatMessages(t *testing.T) {
	t.Parallel()
	m := &fakeModel{parts: []model.Part{model.TextDelta{Text: "x"}, model.Finish{Reason: model.FinishStop}}}
	f := newFake()
	f.model = m
	status, answer, _ := ask(t, serve(t, f), "POST", "/v1/chat/completions", `{"model":"m","response_format":{"type":"json_object"},"messages":[
		{"role":"user","content":[{"type":"text","text":"Look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,`+pixel+`"}}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c1","content":"one"},{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"two"}]}]}`)
	if status != 200 || at(answer, "choices", 0, "message", "content") != "x" {
		t.Fatalf("%d %v", status, answer)
	}
	got := m.asked[0].Messages
	want := []model.Message{
		{Role: model.RoleUser, Content: got[0].Content},
		{Role: model.RoleAssistant, Content: []model.Content{model.ToolCall{ID: "c1", Name: "f", Arguments: "{}"}, model.ToolCall{ID: "c2", Name: "g", Arguments: "{}"}}},
		{Role: model.RoleTool, Content: []model.Content{model.ToolResult{CallID: "c1", Text: "one"}, model.ToolResult{CallID: "c2", Text: "two"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if image, ok := got[0].Content[1].(model.Image); !ok || image.MIME != "image/png" || !strings.Contains(m.asked[0].System, "JSON") {
		t.Errorf("%+v %q", got[0], m.asked[0].System)
	}
}

func TestChatWithInterpreter(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	s := serve(t, f)
	_, answer, header := ask(t, s, "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Q"}],"tools":[{"type":"code_interpreter"}]}`)
	message := at(answer, "choices", 0, "message")
	if at(message, "content") != "I will compute.\n\n答案 is 42: [table](sandbox:/mnt/data/out/表.csv)." || at(message, "code_interpreter_calls", 0, "outputs", 0, "logs") != "42\n" ||
		!strings.HasPrefix(at(message, "container_id").(string), "cntr_") || header.Get("X-Should-Retry") != "false" {
		t.Errorf("%v", answer)
	}
	if n := f.asked[0]; !n.Hidden || n.NoPython || len(n.Input) != 1 || len(n.History) != 0 {
		t.Errorf("%+v", n)
	}
	_, text, _ := raw(t, s, "POST", "/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"Q"}],"tools":[{"type":"code_interpreter"}]}`)
	if !strings.HasSuffix(text, "data: [DONE]\n\n") || strings.Contains(text, "print(") || !strings.Contains(text, `"finish_reason":"stop"`) {
		t.Errorf("%s", text)
	}
}

func TestChatErrors(t *testing.T) {
	t.Parallel()
	f := newFake()
	m := &fakeModel{err: problem.New(problem.ModelRateLimited, "slow down")}
	f.model = m
	c := client(t, f)
	_, err := c.Chat.Completions.New(t.Context(), chatParams("Q"))
	if e, ok := errors.AsType[*sdk.Error](err); !ok || e.StatusCode != 429 || e.Code != "rate_limit_exceeded" {
		t.Errorf("%v", err)
	}
	m.parts = []model.Part{model.TextDelta{Text: "half"}}
	stream := c.Chat.Completions.NewStreaming(t.Context(), chatParams("Q"))
	for stream.Next() {
		_ = stream.Current()
	}
	if stream.Err() == nil || !strings.Contains(stream.Err().Error(), "limiting the rate") {
		t.Errorf("%v", stream.Err())
	}
	p := chatParams("Q")
	p.Model = "nobody"
	_, err = c.Chat.Completions.New(t.Context(), p)
	if e, ok := errors.AsType[*sdk.Error](err); !ok || e.StatusCode != 404 || e.Code != "model_not_found" {
		t.Errorf("%v", err)
	}
	p = chatParams("Q")
	p.N = param.NewOpt(int64(3))
	_, err = c.Chat.Completions.New(t.Context(), p)
	if e, ok := errors.AsType[*sdk.Error](err); !ok || e.StatusCode != 400 || e.Param != "n" {
		t.Errorf("%v", err)
	}
}

// TestAnswerFormats shows how a form of the answer reaches the model: bound to it, and in words.
func TestAnswerFormats(t *testing.T) {
	t.Parallel()
	m := &fakeModel{parts: []model.Part{model.Finish{Reason: model.FinishStop}}}
	f := newFake(loop.Answer{Text: "{}", Reason: loop.Complete})
	f.model = m
	s := serve(t, f)
	schema := `{"type":"object","properties":{"a":{"type":"integer"}}}`
	of := model.Format{JSON: true, Name: "n", Strict: true, Schema: []byte(schema)}
	_, answer, _ := ask(t, s, "POST", "/v1/responses", `{"model":"m","input":"Q","text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":`+schema+`}}}`)
	if diff := cmp.Diff(of, f.asked[0].Format); diff != "" || !strings.HasSuffix(f.asked[0].Instructions, "It fits this JSON Schema: "+schema) {
		t.Errorf("%s%s", diff, f.asked[0].Instructions)
	}
	if at(answer, "text", "verbosity") != "medium" || at(answer, "text", "format", "name") != "n" {
		t.Errorf("%v", at(answer, "text"))
	}
	if _, answer, _ = ask(t, s, "POST", "/v1/responses", `{"model":"m","input":"Q","text":{"verbosity":"low"}}`); at(answer, "text", "verbosity") != "low" || at(answer, "text", "format", "type") != "text" {
		t.Errorf("%v", at(answer, "text"))
	}
	ask(t, s, "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Q"}],"stop":"END","response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":`+schema+`}},
		"tools":[{"type":"function","function":{"name":"python","strict":true}}]}`)
	ask(t, s, "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Q"}],"stop":["a","b"],"response_format":{"type":"json_object"}}`)
	if asked := m.asked[0]; cmp.Diff(of, asked.Format) != "" || cmp.Diff([]string{"END"}, asked.Stop) != "" || !strings.Contains(asked.System, schema) || !asked.Tools[0].Strict || asked.Tools[0].Name != "python" {
		t.Errorf("%+v", asked)
	}
	if asked := m.asked[1]; cmp.Diff(model.Format{JSON: true}, asked.Format) != "" || cmp.Diff([]string{"a", "b"}, asked.Stop) != "" {
		t.Errorf("%+v", asked)
	}
	status, _, _ := ask(t, s, "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Q"}],"stop":"END","tools":[{"type":"code_interpreter"}]}`)
	if status != 400 {
		t.Errorf("stop beside the interpreter: %d", status)
	}
}

// TestReplayedHistory sends back what a response said, as clients do that keep the conversation themselves.
func TestReplayedHistory(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	s := serve(t, f)
	status, answer, _ := ask(t, s, "POST", "/v1/responses", `{"model":"m","store":false,"instructions":"I",`+python+`,"input":[
		{"role":"developer","content":"D"},
		{"role":"user","content":"Q"},
		{"type":"reasoning","id":"rs_1","summary":[]},
		{"type":"code_interpreter_call","id":"ci_1","status":"completed","container_id":"cntr_1","code":"1+1","outputs":[{"type":"logs","logs":"2\n"}]},
		{"type":"code_interpreter_call","id":"ci_2","status":"incomplete","container_id":"cntr_1","code":"never(","outputs":null},
		{"type":"message","role":"assistant","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"Two.","annotations":[]}]},
		{"role":"user","content":[{"type":"input_text","text":"And three?"},{"type":"input_file","filename":"a.csv","file_data":"data:text/csv;base64,YSxi"}]}]}`)
	if status != 200 {
		t.Fatalf("%d %v", status, answer)
	}
	n := f.asked[0]
	wantHistory := []model.Message{
		{Role: model.RoleUser, Content: []model.Content{model.Text{Text: "Q"}}},
		{Role: model.RoleAssistant, Content: []model.Content{model.ToolCall{ID: "ci_1", Name: "python", Arguments: `{"code":"1+1"}`}}},
		{Role: model.RoleTool, Content: []model.Content{model.ToolResult{CallID: "ci_1", Text: "2\n"}}},
		{Role: model.RoleAssistant, Content: []model.Content{model.Text{Text: "Two."}}},
	}
	if diff := cmp.Diff(wantHistory, n.History); diff != "" {
		t.Error(diff)
	}
	if len(n.Input) != 1 || !n.Hidden || n.Instructions != "I\n\nD" || len(n.Files) != 1 || f.files[n.Files[0]].Name != "a.csv" {
		t.Errorf("%+v", n)
	}
	if status, _, _ := ask(t, s, "GET", "/v1/responses/"+at(answer, "id").(string), ""); status != 404 {
		t.Errorf("a response that was not to be stored: %d", status)
	}
}

// TestItemReference also shows that the outputs of earlier code come back where the client was not sent them.
func TestItemReference(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	s := serve(t, f)
	_, first, _ := ask(t, s, "POST", "/v1/responses", `{"model":"m","input":"Q",`+python+`}`)
	code, said := at(first, "output", 2, "id").(string), at(first, "output", 3, "id").(string)
	status, answer, _ := ask(t, s, "POST", "/v1/responses", `{"model":"m",`+python+`,"input":[{"role":"user","content":"Q"},{"type":"item_reference","id":"`+code+`"},
		{"type":"item_reference","id":"`+said+`"},{"role":"user","content":"More"}]}`)
	if status != 200 {
		t.Fatalf("%d %v", status, answer)
	}
	history := f.asked[1].History
	if len(history) != 4 || history[2].Content[0].(model.ToolResult).Text != "42\n" || len(history[2].Content[0].(model.ToolResult).Images) != 1 {
		t.Errorf("%+v", history)
	}
}

// TestToolChoice tries every form.
func TestToolChoice(t *testing.T) {
	t.Parallel()
	function := `{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"function","name":"g","parameters":{"type":"object"}}`
	for choice, want := range map[string]struct {
		choice   model.ToolChoice
		python   bool
		function int
	}{
		`"none"`:                         {model.ToolChoice{Mode: "none"}, true, 2},
		`"required"`:                     {model.ToolChoice{Mode: "required"}, true, 2},
		`{"type":"code_interpreter"}`:    {model.ToolChoice{Name: "python"}, true, 2},
		`{"type":"function","name":"g"}`: {model.ToolChoice{Name: "g"}, true, 2},
		`{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"}]}`: {model.ToolChoice{Mode: "required"}, false, 1},
		`{"type":"allowed_tools","mode":"auto","tools":[{"type":"code_interpreter"}]}`:        {model.ToolChoice{Mode: "auto"}, true, 0},
	} {
		f := newFake(loop.Answer{Text: "x", Reason: loop.Complete})
		status, answer, _ := ask(t, serve(t, f), "POST", "/v1/responses",
			`{"model":"m","input":"Q","parallel_tool_calls":false,"max_tool_calls":3,"tools":[{"type":"code_interpreter","container":{"type":"auto"}},`+function+`],"tool_choice":`+choice+`}`)
		if status != 200 {
			t.Fatalf("%s: %v", choice, answer)
		}
		n := f.asked[0]
		if n.Choice != want.choice || n.NoPython == want.python || len(n.Tools) != want.function || *n.Parallel || n.MaxCalls != 3 {
			t.Errorf("%s: %+v", choice, n)
		}
	}
}

// TestContainerOfAResponse: one that is named, one that has expired, one that is made with memory.
func TestContainerOfAResponse(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	s := serve(t, f)
	_, box, _ := ask(t, s, "POST", "/v1/containers", `{"name":"box","expires_after":{"anchor":"last_active_at","minutes":5}}`)
	id := at(box, "id").(string)
	body := `{"model":"m","input":"Q","tools":[{"type":"code_interpreter","container":"` + id + `"}]}`
	_, answer, _ := ask(t, s, "POST", "/v1/responses", body)
	if at(answer, "output", 2, "container_id") != id {
		t.Errorf("%v", answer)
	}
	f.mu.Lock()
	f.sessions["ses_"+id[5:]].Used = start.Add(-6 * 60e9)
	f.mu.Unlock()
	if status, answer, _ := ask(t, s, "POST", "/v1/responses", body); status != 400 || at(answer, "error", "code") != "container_expired" {
		t.Errorf("%d %v", status, answer)
	}
	if _, box, _ := ask(t, s, "GET", "/v1/containers/"+id, ""); at(box, "status") != "expired" {
		t.Errorf("%v", box)
	}
	next := `{"model":"m","input":"Q","previous_response_id":"` + at(answer, "id").(string) + `",` + python + `}`
	if _, answer, _ := ask(t, s, "POST", "/v1/responses", next); at(answer, "output", 2, "container_id") == id || at(answer, "status") != "completed" {
		t.Errorf("a chain goes on in an expired container: %v", answer)
	}
	const policy = `"network_policy":{"type":"allowlist","allowed_domains":["api.example.com","*.example.org:8443"]}`
	_, box, _ = ask(t, s, "POST", "/v1/containers", `{"name":"n",`+policy+`}`)
	if at(box, "network_policy", "type") != "allowlist" || at(box, "network_policy", "allowed_domains", 1) != "*.example.org:8443" {
		t.Errorf("%v", box)
	}
	ask(t, s, "POST", "/v1/responses", `{"model":"m","input":"Q","tools":[{"type":"code_interpreter","container":{"type":"auto",`+policy+`}}]}`)
	f.mu.Lock()
	if n := f.asked[len(f.asked)-1]; f.sessions[n.Session] == nil || f.sessions[n.Session].Network == nil {
		t.Errorf("%+v", n)
	}
	f.mu.Unlock()
	const secrets = `"network_policy":{"type":"allowlist","allowed_domains":["api.example.com"],"domain_secrets":[{"domain":"api.example.com","name":"API_KEY","value":"sk-hidden"}]}`
	_, answer, _ = ask(t, s, "POST", "/v1/responses", `{"model":"m","input":"Q","tools":[{"type":"code_interpreter","container":{"type":"auto",`+secrets+`}}]}`)
	f.mu.Lock()
	if text := fmt.Sprint(answer); strings.Contains(text, "sk-hidden") || !strings.Contains(text, "API_KEY") {
		t.Errorf("the answer tells a secret, or not that there is one: %s", text)
	}
	asked := f.asked[len(f.asked)-1]
	if n := f.sessions[asked.Session]; n == nil || n.Network == nil || len(n.Network.Credentials) != 1 || n.Network.Credentials[0].Name != "API_KEY" || strings.Contains(string(asked.Foreign), "sk-hidden") {
		t.Errorf("%+v", asked)
	}
	f.mu.Unlock()
	ask(t, s, "POST", "/v1/responses", `{"model":"m","input":"Q","tools":[{"type":"code_interpreter","container":{"type":"auto","memory_limit":"4g"}}]}`)
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.asked[len(f.asked)-1]; f.sessions[n.Session] == nil || f.sessions[n.Session].Memory != 4<<30 {
		t.Errorf("%+v", n)
	}
}
