package anthropic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/compat/anthropic"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/hub/hubtest"
)

// fakeHub is a hub in memory whose turns say what a test wrote.
type fakeHub struct {
	mu       sync.Mutex
	events   []loop.Event
	end      error // of the turn, behind its events
	parts    []model.Part
	asked    []hub.NewTurn
	passed   []model.Request
	session  string
	files    map[string]hub.File
	data     map[string][]byte
	models   []hub.ModelInfo
	script   [][]model.Part // of the model, answer by answer; in the place of parts
	machine  machine
	hang     bool // the turn does not end by itself
	canceled []string
}

func newFake(events ...loop.Event) *fakeHub {
	return &fakeHub{events: events, session: ident.New(ident.Session), files: map[string]hub.File{}, data: map[string][]byte{},
		models: []hub.ModelInfo{{ID: "openai/m", Provider: "openai", Default: true}}}
}

func absent(code problem.Code) error { return problem.New(code, "it does not exist") }

func (f *fakeHub) StartTurn(_ context.Context, _ auth.Principal, n hub.NewTurn) (hub.Turn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, n)
	return hub.Turn{ID: ident.New(ident.Turn), Session: f.session, Model: "openai/m"}, nil
}

func (f *fakeHub) Turn(context.Context, auth.Principal, string) (hub.Turn, error) {
	return hub.Turn{Session: f.session}, nil
}

func (f *fakeHub) CancelTurn(_ context.Context, _ auth.Principal, id string) (hub.Turn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.canceled = append(f.canceled, id)
	return hub.Turn{}, nil
}

func (f *fakeHub) FollowTurn(ctx context.Context, _ auth.Principal, _ string, _ int64) (hub.Follower[json.RawMessage], error) {
	return hubtest.TurnEvents(func(yield func(hub.Numbered[hub.TurnEvent], error) bool) {
		for n, e := range f.events {
			if !yield(hub.Numbered[hub.TurnEvent]{Seq: int64(n + 1), Event: e}, nil) {
				return
			}
		}
		if f.hang {
			<-ctx.Done()
		}
		if f.end != nil {
			yield(hub.Numbered[hub.TurnEvent]{}, f.end)
		}
	}), nil
}

func (f *fakeHub) Session(_ context.Context, _ auth.Principal, id string) (hub.Session, error) {
	if id != f.session {
		return hub.Session{}, absent(problem.SessionNotFound)
	}
	return hub.Session{ID: id, Expires: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}, nil
}

func (f *fakeHub) Tree(ctx context.Context, _ auth.Principal, _ string, _ bool, use func(context.Context, hub.Tree) error) error {
	if f.machine.files == nil {
		return absent(problem.FileDenied)
	}
	return use(ctx, tree{machine: &f.machine})
}

func (f *fakeHub) AddFile(_ context.Context, _ auth.Principal, n hub.NewFile, r io.Reader) (hub.File, error) {
	data, err := io.ReadAll(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	record := hub.File{ID: ident.New(ident.File), Name: n.Name, Size: int64(len(data)), Purpose: n.Purpose}
	if n.Life > 0 {
		record.Expires = time.Now().Add(n.Life)
	}
	f.files[record.ID], f.data[record.ID] = record, data
	return record, err
}

func (f *fakeHub) File(_ context.Context, _ auth.Principal, id string) (hub.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if record, ok := f.files[id]; ok {
		return record, nil
	}
	return hub.File{}, absent(problem.FileNotFound)
}

func (f *fakeHub) Files(_ context.Context, _ auth.Principal, _ string, p hub.Page) (l hub.Listing[hub.File], err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, record := range f.files {
		if record.ID > p.After {
			l.Items = append(l.Items, record)
		}
	}
	slices.SortFunc(l.Items, func(a, b hub.File) int { return strings.Compare(a.ID, b.ID) })
	if len(l.Items) > p.Limit {
		l.Items = l.Items[:p.Limit]
		l.Next = l.Items[p.Limit-1].ID
	}
	return l, nil
}

type reader struct{ *bytes.Reader }

func (reader) Close() error { return nil }

func (f *fakeHub) OpenFile(ctx context.Context, who auth.Principal, id string) (hub.File, io.ReadSeekCloser, error) {
	record, err := f.File(ctx, who, id)
	return record, reader{bytes.NewReader(f.data[id])}, err
}

func (f *fakeHub) DeleteFile(_ context.Context, _ auth.Principal, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.files, id)
	return nil
}

func (f *fakeHub) Models(context.Context, auth.Principal) ([]hub.ModelInfo, error) {
	return f.models, nil
}

func (f *fakeHub) OpenModel(context.Context, auth.Principal, string) (model.Model, error) {
	return f, nil
}

func (f *fakeHub) Name() string                     { return "openai/m" }
func (f *fakeHub) Capabilities() model.Capabilities { return model.Capabilities{Tools: true} }

func (f *fakeHub) Stream(_ context.Context, req model.Request) iter.Seq2[model.Part, error] {
	f.passed = append(f.passed, req)
	return func(yield func(model.Part, error) bool) {
		parts := f.parts
		if len(f.script) > 0 {
			parts, f.script = f.script[0], f.script[1:]
		}
		for _, p := range parts {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// ask sends a request as the owner of everything, and returns the status and the answer.
func ask(t *testing.T, f *fakeHub, method, path, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, anthropic.Prefix+path, strings.NewReader(body))
	w := httptest.NewRecorder()
	anthropic.New(anthropic.Options{Hub: f, Settle: time.Minute}).ServeHTTP(w, r.WithContext(auth.With(r.Context(), auth.Local())))
	return w.Code, w.Body.String()
}

const withCode = `"model": "claude-x", "max_tokens": 9, "tools": [{"type": "code_execution_20260120", "name": "code_execution"}]`

func worked() []loop.Event {
	return []loop.Event{
		loop.Text{Delta: "I look."},
		loop.Code{Step: 1, Delta: "print(\"4"}, loop.Code{Step: 1, Delta: "2\")"},
		loop.Start{Step: 1, Code: "print(\"42\")\n"},
		loop.Output{Step: 1, Event: kernel.Stream{Name: "stdout", Data: []byte("42\n")}},
		loop.Output{Step: 1, Event: kernel.Display{Data: kernel.Bundle{"image/png": "cGl4ZWw="}}},
		loop.Output{Step: 1, Event: kernel.File{Path: "secret.txt"}},
		loop.Output{Step: 1, Event: kernel.Done{Outcome: kernel.OutcomeOK}},
		loop.Text{Delta: "It is 42."},
		loop.Answer{Text: "It is 42.", Reason: loop.Complete, Usage: model.Usage{InputTokens: 10, OutputTokens: 5, CachedTokens: 4}},
	}
}

func TestWholeMessage(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	status, body := ask(t, f, "POST", "/v1/messages", `{`+withCode+`, "system": [{"type": "text", "text": "Be short."}], "messages": [{"role": "user", "content": "Q"}]}`)
	var m struct {
		Model, Role string
		Content     []struct {
			Type, ID, Text string
			Input          struct{ Code string }
			ToolUseID      string `json:"tool_use_id"`
			Content        struct {
				Stdout, Stderr string
				Code           int `json:"return_code"`
				Content        []struct {
					File string `json:"file_id"`
				}
			}
		}
		Stop      string `json:"stop_reason"`
		Container struct {
			ID      string
			Expires string `json:"expires_at"`
		}
		Usage struct {
			Input  int64 `json:"input_tokens"`
			Cached int64 `json:"cache_read_input_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil || status != 200 || len(m.Content) != 4 {
		t.Fatalf("%d %v %s", status, err, body)
	}
	result := m.Content[2]
	switch {
	case m.Content[0].Text != "I look." || m.Content[3].Text != "It is 42.", m.Content[1].Input.Code != "print(\"42\")\n":
		t.Errorf("the content is %s", body)
	case result.ToolUseID != m.Content[1].ID || result.Content.Stdout != "42\n" || result.Content.Code != 0 || len(result.Content.Content) != 1:
		t.Errorf("the result is %+v", result)
	case !strings.Contains(result.Content.Stderr, `"secret.txt" was not kept`): // the hub refused it
		t.Errorf("nothing is said of a file that was not kept: %+v", result)
	case m.Stop != "end_turn" || m.Container.Expires != "2030-01-02T03:04:05Z" || m.Usage.Input != 6 || m.Usage.Cached != 4 || m.Model != "openai/m":
		t.Errorf("%+v", m)
	}
	if _, text := ask(t, f, "GET", "/v1/files/"+result.Content.Content[0].File+"/content", ""); text != "pixel" {
		t.Errorf("the picture is %q", text)
	}
	n := f.asked[0]
	if !n.Hidden || !n.Unattended || n.Instructions != "Be short." || n.MaxTokens != 9 || n.Model != "" {
		t.Errorf("the turn is %+v", n)
	}
}

func TestStreamedMessage(t *testing.T) {
	t.Parallel()
	status, body := ask(t, newFake(worked()...), "POST", "/v1/messages", `{`+withCode+`, "stream": true, "messages": [{"role": "user", "content": "Q"}]}`)
	var names, code []string
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type  string
			Delta struct {
				Type    string
				Partial string `json:"partial_json"`
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		if names = append(names, e.Type); e.Delta.Partial != "" {
			code = append(code, e.Delta.Partial)
		}
	}
	var input struct{ Code string }
	if err := json.Unmarshal([]byte(strings.Join(code, "")), &input); err != nil || input.Code != "print(\"42\")\n" {
		t.Errorf("the code is %q", code)
	}
	const start, stop, delta = "content_block_start", "content_block_stop", "content_block_delta"
	want := []string{"message_start", "ping", start, delta, stop, start, delta, delta, delta, delta, delta, stop, start, stop, start, delta, stop, "message_delta", "message_stop"}
	if status != 200 || !slices.Equal(names, want) {
		t.Errorf("%d %v", status, names)
	}
}

// TestHistory: what a client sends back becomes a conversation that any provider takes, and the results of its tools are the news.
func TestHistory(t *testing.T) {
	t.Parallel()
	f := newFake(loop.Answer{Text: "Paused.", Reason: loop.StepLimit})
	file, _ := f.AddFile(t.Context(), auth.Local(), hub.NewFile{Name: "a.csv"}, strings.NewReader("x"))
	history := `"messages": [{"role": "user", "content": [{"type": "text", "text": "Q"}, {"type": "container_upload", "file_id": "file_` + ident.Body(file.ID) + `"}]},
		{"role": "assistant", "content": [{"type": "thinking", "thinking": "?", "signature": ""},
			{"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {"code": "1"}},
			{"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {"type": "code_execution_result", "stdout": "out", "stderr": "err", "return_code": 0, "content": []}}`
	called := history + `, {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "r"}]}]`
	if status, body := ask(t, f, "POST", "/v1/messages", `{`+withCode+`, `+called+`}`); status != 200 || !strings.Contains(body, `"stop_reason":"pause_turn"`) {
		t.Fatalf("%d %s", status, body)
	}
	n := f.asked[0]
	if len(n.History) != 4 || len(n.Input) != 1 || !slices.Equal(n.Files, []string{file.ID}) {
		t.Fatalf("%+v", n)
	}
	if r, ok := n.History[2].Content[0].(model.ToolResult); !ok || r.Text != "out\nerr" {
		t.Errorf("%+v", n.History[2])
	}
	if r, ok := n.Input[0].Content[0].(model.ToolResult); !ok || r.CallID != "c1" || r.Text != "r" {
		t.Errorf("%+v", n.Input)
	}
	// What paused goes on; in a container that is named, earlier files are there already.
	paused := `{` + withCode + `, "container": "container_` + ident.Body(f.session) + `", ` + history + `]}]}`
	if status, body := ask(t, f, "POST", "/v1/messages", paused); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if n = f.asked[1]; n.Session != f.session || len(n.Files) != 0 || len(n.Input) != 1 || n.Input[0].Role != model.RoleUser {
		t.Errorf("%+v", n)
	}
}

func TestWithoutCode(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.parts = []model.Part{model.TextDelta{Text: "Hm."}, model.Finish{Reason: model.FinishCalls, Calls: []model.ToolCall{{ID: "c", Name: "f", Arguments: `{"a": 1}`}}}}
	status, body := ask(t, f, "POST", "/v1/messages", `{"model": "m", "max_tokens": 5, "stop_sequences": ["END"], "tools": [{"name": "f", "input_schema": {"type": "object"}}],
		"tool_choice": {"type": "any", "disable_parallel_tool_use": true}, "messages": [{"role": "user", "content": "Q"}]}`)
	if status != 200 || !strings.Contains(body, `"input":{"a":1}`) || !strings.Contains(body, `"stop_reason":"tool_use"`) || !strings.Contains(body, `"container":null`) {
		t.Errorf("%d %s", status, body)
	}
	if r := f.passed[0]; r.Choice.Mode != "required" || *r.Parallel || r.Stop[0] != "END" || r.Tools[0].Name != "f" || r.MaxTokens != 5 {
		t.Errorf("%+v", r)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	question := `"messages": [{"role": "user", "content": "Q"}]`
	for body, want := range map[string]string{
		`{}`:                               "model: Field required",
		`{"model": "m", ` + question + `}`: "max_tokens: Field required",
		`{` + withCode + `, ` + question + `, "frobnicate": 1}`:                                                                                                "frobnicate: Extra inputs are not permitted",
		`{` + withCode + `, ` + question + `, "thread": {"type": "create"}}`:                                                                                   "no threads",
		`{` + withCode + `, ` + question + `, "stream": "yes"}`:                                                                                                "stream: Input should be a valid boolean",
		`{` + withCode + `, ` + question + `, "mcp_servers": [{}]}`:                                                                                            "mcp_servers",
		`{` + withCode + `, ` + question + `, "container": {"skills": [1]}}`:                                                                                   "skills",
		`{` + withCode + `, ` + question + `, "stop_sequences": ["x"]}`:                                                                                        "stop_sequences",
		`{"model": "m", "max_tokens": 1, "tools": [{"type": "bash_20250124", "name": "bash"}], ` + question + `}`:                                              "bash_20250124",
		`{"model": "m", "max_tokens": 1, "tools": [{"name": "f", "input_schema": {}, "allowed_callers": ["code_execution_20260120"]}], ` + question + `}`:      "needs that tool",
		`{"model": "m", "max_tokens": 1, "tools": [{"name": "f", "input_schema": {}, "allowed_callers": ["code_execution_20250522"]}], ` + question + `}`:      "allowed_callers: Input should be",
		`{` + withCode + `, "messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "The"}]}`:                                          "prefill",
		`{` + withCode + `, "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}]}`:                                         "unexpected `tool_use_id`",
		`{` + withCode + `, "messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url"}}]}]}`:                                        "fetches no addresses",
		`{` + withCode + `, "messages": [{"role": "user", "content": [{"type": "search_result"}]}]}`:                                                           "search_result",
		`{` + withCode + `, "messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f"}]}, {"role": "user", "content": "Q"}]}`: "without `tool_result`",
	} {
		f := newFake()
		status, answer := ask(t, f, "POST", "/v1/messages", body)
		var e struct {
			Type  string
			Error struct{ Type, Message string }
		}
		if err := json.Unmarshal([]byte(answer), &e); err != nil || status != 400 || e.Type != "error" || e.Error.Type != "invalid_request_error" || !strings.Contains(e.Error.Message, want) {
			t.Errorf("%s: %d %s", body, status, answer)
		}
		if len(f.asked) > 0 {
			t.Errorf("%s was asked all the same", body)
		}
	}
	f := newFake()
	f.end = problem.New(problem.ModelRateLimited, "slow down")
	for _, stream := range []string{"true", "false"} { // what fails at once fails with a status, also where a stream is asked for
		if status, answer := ask(t, f, "POST", "/v1/messages", `{`+withCode+`, `+question+`, "stream": `+stream+`}`); status != 429 || !strings.Contains(answer, `"rate_limit_error"`) {
			t.Errorf("%d %s", status, answer)
		}
	}
	f.events = worked()[:5]
	if status, answer := ask(t, f, "POST", "/v1/messages", `{`+withCode+`, `+question+`, "stream": true}`); status != 200 || !strings.Contains(answer, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"") {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := ask(t, f, "POST", "/v1/messages/batches", `{}`); status != 404 || !strings.Contains(answer, "batches") {
		t.Errorf("%d %s", status, answer)
	}
	if status, _ := ask(t, f, "PUT", "/v1/messages", `{}`); status != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d", status)
	}
}

// TestClientThatLeaves: nobody waits for its turn.
func TestClientThatLeaves(t *testing.T) {
	t.Parallel()
	f := newFake(worked()[:5]...)
	f.hang = true
	ctx, leave := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, leave)
	r := httptest.NewRequestWithContext(ctx, "POST", anthropic.Prefix+"/v1/messages", strings.NewReader(`{`+withCode+`, "messages": [{"role": "user", "content": "Q"}]}`))
	anthropic.New(anthropic.Options{Hub: f}).ServeHTTP(httptest.NewRecorder(), r.WithContext(auth.With(ctx, auth.Local())))
	if len(f.canceled) != 1 {
		t.Errorf("%d turns were cancelled", len(f.canceled))
	}
}

// TestListOfFiles goes through pages by both of the ways that clients have.
func TestListOfFiles(t *testing.T) {
	t.Parallel()
	f := newFake()
	var ids []string
	for range 3 {
		file, _ := f.AddFile(t.Context(), auth.Local(), hub.NewFile{Name: "a.csv"}, strings.NewReader("x"))
		ids = append(ids, "file_"+ident.Body(file.ID))
	}
	slices.Sort(ids)
	list := func(query string) (got []string, next string) {
		_, body := ask(t, f, "GET", "/v1/files?"+query, "")
		var l struct {
			Data []struct{ ID string }
			Next string `json:"next_page"`
		}
		if err := json.Unmarshal([]byte(body), &l); err != nil {
			t.Fatal(err)
		}
		for _, one := range l.Data {
			got = append(got, one.ID)
		}
		return got, l.Next
	}
	first, next := list("limit=2")
	second, end := list("limit=2&page=" + next)
	if !slices.Equal(append(first, second...), ids) || end != "" {
		t.Errorf("%v %v", first, second)
	}
	if got, _ := list("after_id=" + ids[0]); !slices.Equal(got, ids[1:]) {
		t.Errorf("%v", got)
	}
	if got, _ := list("ids=" + ids[1] + "&ids=file_none"); !slices.Equal(got, ids[1:2]) {
		t.Errorf("%v", got)
	}
}
