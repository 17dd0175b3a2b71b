package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cove/internal/core/problem"
	"cove/internal/http/compat/openai"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/server/hub"
)

// line is a client of the WebSocket mode.
type line struct {
	t    *testing.T
	conn *websocket.Conn
}

func dial(t *testing.T, f *fakeHub, change ...func(*openai.Options)) *line {
	t.Helper()
	s := serve(t, f, change...)
	conn, answer, err := websocket.Dial(t.Context(), s.URL+"/v1/responses",
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer owner"}, "Idempotency-Key": {"once"}}})
	if answer != nil && answer.Body != nil {
		_ = answer.Body.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(8 << 20)
	return &line{t, conn}
}

func (w *line) send(message string) {
	w.t.Helper()
	if err := w.conn.Write(w.t.Context(), websocket.MessageText, []byte(message)); err != nil {
		w.t.Fatal(err)
	}
}

// next reads an event.
func (w *line) next() map[string]any {
	w.t.Helper()
	kind, text, err := w.conn.Read(w.t.Context())
	var e map[string]any
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil || kind != websocket.MessageText {
		w.t.Fatalf("%v %q", err, text)
	}
	return e
}

// events sends a message and reads until its response has ended or was refused.
func (w *line) events(message string) []map[string]any {
	w.t.Helper()
	w.send(message)
	var out []map[string]any
	for {
		e := w.next()
		out = append(out, e)
		switch e["type"] {
		case "response.completed", "response.failed", "response.incomplete", "error":
			return out
		}
	}
}

// last is the last event of a response.
func (w *line) last(message string) map[string]any {
	w.t.Helper()
	events := w.events(message)
	return events[len(events)-1]
}

func created(more string) string { return `{"type":"response.create","model":"m"` + more + `}` }

func (f *fakeHub) said(n int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, _ := json.Marshal([]any{f.asked[n].History, f.asked[n].Input})
	return string(text)
}

func TestSocketSendsTheEventsOfAStream(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	w := dial(t, f)
	s := serve(t, newFake(worked()...))
	tools := `,"tools":[{"type":"code_interpreter","container":{"type":"auto"}}],"input":"Q"`
	_, streamed, _ := raw(t, s, http.MethodPost, "/v1/responses", `{"model":"m","stream":true`+tools+`}`)
	var want []string
	for _, frame := range frames(t, streamed) {
		want = append(want, frame.name)
	}
	for range 2 { // one response after the other
		var got []string
		for n, e := range w.events(created(tools)) {
			got = append(got, e["type"].(string))
			if e["sequence_number"] != float64(n) {
				t.Errorf("event %d has the number %v", n, e["sequence_number"])
			}
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	}
	if f.asked[0].Once != "" {
		t.Error("the key of one request is that of all")
	}
}

// TestSocketGoesOn is a conversation that is stored nowhere but in the connection.
func TestSocketGoesOn(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	w := dial(t, f)
	const tools = `,"store":false,"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]`
	first := at(w.last(created(tools+`,"input":"The word is cobalt."`)), "response")
	next := created(fmt.Sprintf(tools+`,"previous_response_id":%q,"input":"Which word?"`, at(first, "id")))
	second := at(w.last(next), "response")
	if at(second, "previous_response_id") != at(first, "id") || at(second, "status") != "completed" {
		t.Errorf("%v", second)
	}
	if said := f.said(1); !strings.Contains(said, "cobalt") || !strings.Contains(said, "print(6*7)") || !strings.Contains(said, "Which word?") {
		t.Errorf("the model is told %s", said)
	}
	if a, b := at(first, "output", 2, "container_id"), at(second, "output", 2, "container_id"); a == nil || a != b {
		t.Errorf("the containers are %v and %v", a, b)
	}
	// Only the last response is remembered, and only here.
	for _, conn := range []*line{w, dial(t, f)} {
		e := conn.last(next)
		if at(e, "error", "code") != "previous_response_not_found" || at(e, "error", "param") != "previous_response_id" || e["status"] != 400.0 {
			t.Errorf("%v", e)
		}
	}
}

func TestSocketForgetsWhatFailed(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	w := dial(t, f)
	for name, fail := range map[string]func(id any) string{
		"refused": func(id any) string {
			return created(fmt.Sprintf(`,"store":false,"previous_response_id":%q,"input":[{"type":"function_call_output","call_id":"call_none","output":"x"}]`, id))
		},
		"failed": func(id any) string {
			f.mu.Lock()
			f.script = func(hub.NewTurn) ([]loop.Event, error) {
				return nil, problem.New(problem.ModelUnavailable, "the model is away")
			}
			f.mu.Unlock()
			return created(fmt.Sprintf(`,"store":false,"previous_response_id":%q,"input":"More."`, id))
		},
	} {
		f.mu.Lock()
		f.script = func(hub.NewTurn) ([]loop.Event, error) { return worked(), nil }
		f.mu.Unlock()
		id := at(w.last(created(`,"store":false,"input":"Q"`)), "response", "id")
		if e := w.last(fail(id)); e["type"] == "response.completed" {
			t.Errorf("%s: %v", name, e)
		}
		e := w.last(created(fmt.Sprintf(`,"store":false,"previous_response_id":%q,"input":"Again."`, id)))
		if at(e, "error", "code") != "previous_response_not_found" {
			t.Errorf("%s: %v", name, e)
		}
	}
}

func TestSocketWarmsUp(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	w := dial(t, f)
	events := w.events(created(`,"store":false,"generate":false,"input":[{"role":"user","content":"The word is slate."}]`))
	id := at(events[len(events)-1], "response", "id")
	if len(events) != 3 || len(f.asked) != 0 {
		t.Errorf("%d events, %d turns", len(events), len(f.asked))
	}
	if e := w.last(created(fmt.Sprintf(`,"previous_response_id":%q,"input":"Which?"`, id))); e["type"] != "response.completed" || !strings.Contains(f.said(0), "slate") {
		t.Errorf("%v", e)
	}
}

// TestSocketRefuses has the connection go on after every error.
func TestSocketRefuses(t *testing.T) {
	t.Parallel()
	w := dial(t, newFake(worked()...))
	for message, want := range map[string]string{
		`nonsense`:                   "400 invalid_request_error We could not parse",
		`[]`:                         "400 invalid_request_error We could not parse",
		`{"type":"response.cancel"}`: "400 invalid_value Invalid value: 'response.cancel'.",
		created(`,"input":"Q","background":true`):                     "400 unsupported_parameter Unsupported parameter: 'background'",
		created(`,"input":"Q","stream_id":"1"`):                       "400 unknown_parameter Unknown parameter: 'stream_id'.",
		created(``):                                                   "400 missing_required_parameter Missing required parameter: 'input'.",
		created(`,"previous_response_id":"resp_missing","input":"Q"`): "400 previous_response_not_found Previous response",
	} {
		e := w.last(message)
		if got := fmt.Sprintf("%v %v %v", e["status"], at(e, "error", "code"), at(e, "error", "message")); !strings.HasPrefix(got, want) {
			t.Errorf("%s\n got  %s\n want %s", message, got, want)
		}
	}
	if e := w.last(created(`,"input":[` + strings.Repeat("{},", 250_000) + `{}]`)); at(e, "error", "code") != "request_too_complex" {
		t.Errorf("%v", e)
	}
	if err := w.conn.Write(t.Context(), websocket.MessageBinary, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if e := w.next(); e["type"] != "error" {
		t.Errorf("%v", e)
	}
	if e := w.last(created(`,"input":"Q"`)); e["type"] != "response.completed" {
		t.Errorf("%v", e)
	}
}

// TestSocketMakesOneResponseAtATime: a few messages wait, more are refused.
func TestSocketMakesOneResponseAtATime(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	f.gate = make(chan struct{})
	w := dial(t, f)
	const sent = 20
	for range sent {
		w.send(created(`,"input":"Q"`))
	}
	refused, completed := 0, 0
	for open := true; refused+completed < sent; {
		switch e := w.next(); e["type"] {
		case "error":
			if refused++; at(e, "error", "code") != "response_in_progress" || e["status"] != 429.0 {
				t.Fatalf("%v", e)
			}
			if f.mu.Lock(); open && len(f.asked) > 1 {
				t.Errorf("%d responses are made at the same time", len(f.asked))
			}
			f.mu.Unlock()
		case "response.completed":
			completed++
		}
		if open && refused > 0 {
			open = false
			close(f.gate)
		}
	}
	if completed < 16 || refused == 0 {
		t.Errorf("%d responses, %d refusals", completed, refused)
	}
}

func TestSocketOfAClientThatGoesAway(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	f.gate = make(chan struct{})
	w := dial(t, f)
	w.send(created(`,"input":"Q"`))
	w.next()
	_ = w.conn.CloseNow()
	f.mu.Lock()
	turn := f.turns[f.order[0]]
	f.mu.Unlock()
	select {
	case <-turn.canceled:
	case <-time.After(time.Minute):
		t.Error("the response goes on")
	}
}

// TestSocketWhenTheServerStops: what runs is seen to its end, and then the connection ends.
func TestSocketWhenTheServerStops(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	f.gate = make(chan struct{})
	stopping := make(chan struct{})
	w := dial(t, f, func(o *openai.Options) { o.Stopping = stopping })
	w.send(created(`,"input":"Q"`))
	w.next()
	close(stopping)
	close(f.gate)
	for e := w.next(); e["type"] != "response.completed"; {
		e = w.next()
	}
	_, _, err := w.conn.Read(t.Context())
	if websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("%v", err)
	}
}

func TestSocketBoundsMessages(t *testing.T) {
	t.Parallel()
	w := dial(t, newFake(worked()...), func(o *openai.Options) { o.MaxBody = 1 << 10 })
	if e := w.last(created(`,"input":"Q"`)); e["type"] != "response.completed" {
		t.Errorf("%v", e)
	}
	w.send(created(`,"input":"` + strings.Repeat("x", 2<<10) + `"`))
	_, _, err := w.conn.Read(t.Context())
	if websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("%v", err)
	}
}

// summarizing is a model that says a summary.
func summarizing(text string) *fakeModel {
	return &fakeModel{parts: []model.Part{model.TextDelta{Text: text}, model.Finish{Usage: model.Usage{InputTokens: 7, OutputTokens: 3}}}}
}

func TestCompact(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	m := summarizing("The launch is on Tuesday.")
	f.model = m
	secret := func(o *openai.Options) { o.Secret = []byte(strings.Repeat("s", 32)) }
	s := serve(t, f, secret)
	session, container := f.container(nil)
	body := `{"model":"m","prompt_cache_key":"k","input":[{"role":"developer","content":"Speak German."},{"role":"user","content":"We launch on Tuesday."},` + ranItem(container) + `]}`
	status, answer, _ := ask(t, s, http.MethodPost, "/v1/responses/compact", body)
	if status != 200 || answer["object"] != "response.compaction" || at(answer, "usage", "total_tokens") != 10.0 || at(answer, "output", 0, "type") != "compaction" {
		t.Fatalf("%d %v", status, answer)
	}
	if asked := m.asked[0].Messages[0].Content[0].(model.Text).Text; !strings.Contains(asked, "We launch on Tuesday.") || !strings.Contains(asked, "x = 1") {
		t.Errorf("the model is asked %q", asked)
	}
	item, _ := json.Marshal(at(answer, "output", 0))
	if strings.Contains(string(item), "Tuesday") {
		t.Errorf("the item can be read: %s", item)
	}
	// It is taken in the conversation's place, also by a server that was started anew.
	again := serve(t, f, secret)
	ask := func(s string) (int, map[string]any) {
		status, answer, _ := ask(t, again, http.MethodPost, "/v1/responses",
			`{"model":"m","tools":[{"type":"code_interpreter","container":{"type":"auto"}}],"input":[`+s+`,{"role":"user","content":"When?"}]}`)
		return status, answer
	}
	if status, answer := ask(string(item)); status != 200 {
		t.Fatalf("%d %v", status, answer)
	}
	n := f.asked[0]
	if !strings.Contains(f.said(0), "The launch is on Tuesday.") || !strings.Contains(n.Instructions, "Speak German.") || n.Session != session {
		t.Errorf("%s %q %s", f.said(0), n.Instructions, n.Session)
	}
	sealed := at(answer, "output", 0, "encrypted_content").(string)
	for name, content := range map[string]string{
		"changed": sealed[:len(sealed)-8] + strings.Repeat("A", 8), "cut": sealed[:20], "made up": "cove1.e30", "nothing": "", "foreign": "gAAAAABo",
	} {
		item, _ := json.Marshal(map[string]string{"type": "compaction", "encrypted_content": content})
		if status, answer := ask(string(item)); status != 400 || name != "nothing" && at(answer, "error", "code") != "invalid_encrypted_content" {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
}

// TestCompactedIsOneProjects has a caller of another project, and a server with another secret, refuse it.
func TestCompactedIsOneProjects(t *testing.T) {
	t.Parallel()
	a, b := openai.NewSeal([]byte("0123456789abcdef0123456789abcdef")), openai.NewSeal([]byte("another secret 89abcdef012345678"))
	sealed, err := a.Close("prj_1", "x")
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := a.Open("prj_1", sealed, &got); err != nil || got != "x" {
		t.Errorf("%q %v", got, err)
	}
	if a.Open("prj_2", sealed, &got) == nil || b.Open("prj_1", sealed, &got) == nil {
		t.Error("it can be opened by others")
	}
	if twice, _ := a.Close("prj_1", "x"); twice == sealed {
		t.Error("the same text is sealed the same")
	}
}

func TestCompactGoesOnFromAResponse(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	m := summarizing("S.")
	f.model = m
	s := serve(t, f)
	_, first, _ := ask(t, s, http.MethodPost, "/v1/responses", `{"model":"m","input":"Q"}`)
	for _, turn := range f.turns {
		turn.Messages = []model.Message{{Role: model.RoleUser, Content: []model.Content{model.Text{Text: "said before"}}}}
	}
	status, answer, _ := ask(t, s, http.MethodPost, "/v1/responses/compact", fmt.Sprintf(`{"model":"m","previous_response_id":%q}`, first["id"]))
	if status != 200 || !strings.Contains(m.asked[0].Messages[0].Content[0].(model.Text).Text, "said before") {
		t.Errorf("%d %v", status, answer)
	}
	m.err, m.parts = errors.New("broken"), nil
	if status, _, _ := ask(t, s, http.MethodPost, "/v1/responses/compact", `{"model":"m","input":"Q"}`); status != 500 {
		t.Errorf("a broken model: %d", status)
	}
}

func TestInputTokens(t *testing.T) {
	t.Parallel()
	s := serve(t, newFake())
	count := func(body string) float64 {
		status, answer, header := ask(t, s, http.MethodPost, "/v1/responses/input_tokens", body)
		if status != 200 || answer["object"] != "response.input_tokens" || answer["estimated"] != true || header.Get("X-Estimate") != "true" {
			t.Fatalf("%d %v %v", status, answer, header)
		}
		return answer["input_tokens"].(float64)
	}
	short := count(`{"model":"m","input":"Hello there."}`)
	long := count(`{"model":"m","input":"` + strings.Repeat("Hello there. ", 100) + `"}`)
	chinese := count(`{"model":"m","input":"` + strings.Repeat("你好", 100) + `"}`)
	tools := count(`{"model":"m","input":"Hello there.","tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}`)
	if short < 3 || short > 20 || long < 300 || long > 400 || chinese < 200 || tools <= short {
		t.Errorf("%v %v %v %v", short, long, chinese, tools)
	}
}

// TestKeysOfStrictClients are those that OpenAI's own schema and Open Responses require.
func TestKeysOfStrictClients(t *testing.T) {
	t.Parallel()
	s := serve(t, newFake(worked()...))
	_, r, _ := ask(t, s, http.MethodPost, "/v1/responses", `{"model":"m","input":"Q","tools":[{"type":"function","name":"f"},{"type":"function","name":"g","strict":true,"parameters":{"type":"object"}}]}`)
	for _, path := range [][]any{{"usage", "input_tokens_details", "cache_write_tokens"}, {"presence_penalty"}, {"frequency_penalty"}} {
		if at(r, path...) != 0.0 {
			t.Errorf("%v is %v", path, at(r, path...))
		}
	}
	if at(r, "tools", 0, "strict") != false || at(r, "tools", 1, "strict") != true {
		t.Errorf("%v", r["tools"])
	}
	for _, key := range []string{"description", "parameters"} {
		if v, there := at(r, "tools", 0).(map[string]any)[key]; !there || v != nil {
			t.Errorf("%s is %v, %v", key, v, there)
		}
	}
}
