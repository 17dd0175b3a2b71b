package gemini_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/internal/http/compat/gemini"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func out(e kernel.Event) loop.Event { return loop.Output{Step: 1, Event: e} }

// worked is a turn that runs code with a figure and answers.
func worked() []loop.Event {
	return []loop.Event{
		loop.Text{Delta: "I "}, loop.Text{Delta: "compute."},
		loop.Code{Step: 1, Delta: "print("}, loop.Start{Step: 1, Code: "print(42)"},
		out(kernel.Stream{Name: "stdout", Data: []byte("42\n")}), out(kernel.Stream{Name: "stderr", Data: []byte("a warning\n")}),
		out(kernel.Display{Data: kernel.Bundle{"image/png": pixel, "text/plain": "<Figure>"}}),
		out(kernel.Done{Outcome: kernel.OutcomeOK}),
		loop.Text{Delta: "\n\n"}, loop.Text{Delta: "It is "}, loop.Text{Delta: "42."},
		loop.Answer{Text: "It is 42.", Reason: loop.Complete, Usage: model.Usage{InputTokens: 10, OutputTokens: 5, ReasoningTokens: 2}},
	}
}

const simple = `{"contents":[{"parts":[{"text":"What is it?"}]}],"tools":[{"code_execution":{}}]}`

// kinds are the fields of parts, and their words.
func kinds(parts any) []string {
	var got []string
	list, _ := parts.([]any)
	for _, p := range list {
		m, _ := p.(map[string]any)
		for name, value := range m {
			text, ok := value.(string)
			if !ok {
				text = name
			}
			got = append(got, text)
		}
	}
	return got
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	s := serve(t, f)
	status, text := ask(t, s, "POST", generate, simple)
	got := decoded(t, text)
	parts := at(got, "candidates", 0, "content", "parts")
	if want := []string{"I compute.", "executableCode", "codeExecutionResult", "inlineData", "It is 42."}; status != 200 || !slices.Equal(kinds(parts), want) {
		t.Fatalf("%d %s", status, text)
	}
	id, _ := at(parts, 1, "executableCode", "id").(string)
	for _, c := range []struct {
		path []any
		want any
	}{
		{[]any{1, "executableCode", "code"}, "print(42)"},
		{[]any{1, "executableCode", "language"}, "PYTHON"},
		{[]any{2, "codeExecutionResult"}, map[string]any{"outcome": "OUTCOME_OK", "output": "42\n", "id": id}},
		{[]any{3, "inlineData"}, map[string]any{"mimeType": "image/png", "data": pixel}},
	} {
		if diff := cmp.Diff(c.want, at(parts, c.path...)); diff != "" {
			t.Errorf("%v: %s", c.path, diff)
		}
	}
	if diff := cmp.Diff(map[string]any{"promptTokenCount": 10., "candidatesTokenCount": 3., "totalTokenCount": 15., "thoughtsTokenCount": 2.}, at(got, "usageMetadata")); diff != "" {
		t.Error(diff)
	}
	if at(got, "candidates", 0, "finishReason") != "STOP" || at(got, "modelVersion") != "test/m" || at(got, "responseId") == "" {
		t.Error(text)
	}
	n := f.last(t)
	if n.NoPython || !n.Hidden || n.Model != "m" || n.Session != "" || n.Prompt != "What is it?" {
		t.Errorf("%+v", n)
	}
	// The next request goes on in the session that the code's id names, as long as there is one.
	talk, _ := json.Marshal(parts)
	next := `{"contents":[{"parts":[{"text":"What is it?"}]},{"role":"model","parts":` + string(talk) + `},{"role":"user","parts":[{"text":"And now?"}]}],"tools":[{"codeExecution":{}}]}`
	ask(t, s, "POST", generate, next)
	n = f.last(t)
	if n.Session != f.session || len(n.Input) != 1 || len(n.History) != 4 {
		t.Fatalf("%+v", n)
	}
	result, _ := n.History[2].Content[0].(model.ToolResult)
	if result.Text != "42\n" || len(result.Images) != 1 {
		t.Errorf("%+v", result)
	}
	f.session = ""
	if ask(t, s, "POST", generate, next); f.last(t).Session != "" {
		t.Error("a session that is gone was asked for")
	}
}

// chunks are the elements of a stream of events.
func chunks(t *testing.T, text string) []map[string]any {
	t.Helper()
	var got []map[string]any
	for e := range strings.SplitSeq(text, "\n\n") {
		if e == "" {
			continue
		}
		data, ok := strings.CutPrefix(e, "data: ")
		if !ok {
			t.Fatalf("the SDKs do not know %q", e)
		}
		got = append(got, decoded(t, data))
	}
	return got
}

func TestStream(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	s := serve(t, f)
	_, text := ask(t, s, "POST", strings.Replace(generate, ":generate", ":streamGenerate", 1)+"?alt=sse", simple)
	var got []string
	list := chunks(t, text)
	for _, c := range list {
		got = append(got, kinds(at(c, "candidates", 0, "content", "parts"))...)
	}
	if want := []string{"I ", "compute.", "executableCode", "codeExecutionResult", "inlineData", "It is ", "42."}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if last := list[len(list)-1]; at(last, "candidates", 0, "finishReason") != "STOP" || at(last, "usageMetadata", "totalTokenCount") != 15. {
		t.Errorf("%v", last)
	}
	_, text = ask(t, s, "POST", "/gemini/v1/models/m:streamGenerateContent", simple)
	var whole []map[string]any
	if err := json.Unmarshal([]byte(text), &whole); err != nil || len(whole) != len(list) {
		t.Errorf("%q: %v", text, err)
	}
}

// TestSilence: a stream on which nothing happens has signs of life that every SDK passes over, and a client that leaves ends the turn.
func TestSilence(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	f.gate = make(chan struct{})
	s := serve(t, f)
	ctx, leave := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "POST", s.URL+"/gemini/v1beta/models/m:streamGenerateContent?alt=sse", strings.NewReader(simple))
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	seen := ""
	for buffer := make([]byte, 4096); !strings.HasSuffix(seen, "\n\n\n\n"); {
		n, err := res.Body.Read(buffer)
		if seen += string(buffer[:n]); err != nil {
			t.Fatal(err)
		}
	}
	chunks(t, seen)
	leave()
	for deadline := time.Now().Add(time.Minute); !f.stopped(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the turn goes on without a client")
		}
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script []loop.Event
		parts  []string
		finish string
	}{
		"composed":  {[]loop.Event{loop.Answer{Text: "The model said nothing.", Reason: loop.NoAnswer}}, []string{"The model said nothing."}, "STOP"},
		"cut off":   {[]loop.Event{loop.Text{Delta: "It"}, loop.Answer{Text: "It", Reason: loop.Length}}, []string{"It"}, "MAX_TOKENS"},
		"filtered":  {[]loop.Event{loop.Answer{Reason: loop.Filtered}}, []string{""}, "SAFETY"},
		"said anew": {[]loop.Event{loop.Text{Delta: "It i"}, loop.Notice{Text: "again"}, loop.Text{Delta: "It is."}, loop.Answer{Text: "It is.", Reason: loop.Complete}}, []string{"It is."}, "STOP"},
		"functions": {[]loop.Event{loop.Answer{Reason: loop.ClientCalls, Calls: []model.ToolCall{{ID: "c1", Name: "f", Arguments: `{"a":1}`}}}}, []string{"functionCall"}, "STOP"},
	} {
		_, text := ask(t, serve(t, newFake(c.script...)), "POST", generate, simple)
		got := decoded(t, text)
		if parts := kinds(at(got, "candidates", 0, "content", "parts")); !slices.Equal(parts, c.parts) || at(got, "candidates", 0, "finishReason") != c.finish {
			t.Errorf("%s: %s", name, text)
		}
	}
	for outcome, want := range map[kernel.Outcome]string{kernel.OutcomeError: "OUTCOME_FAILED", kernel.OutcomeTimeout: "OUTCOME_DEADLINE_EXCEEDED", kernel.OutcomeDied: "OUTCOME_FAILED"} {
		_, text := ask(t, serve(t, newFake(loop.Start{Step: 1, Code: "x"}, out(kernel.Error{Traceback: []string{"NameError: x"}}), out(kernel.Done{Outcome: outcome, Message: "why"}),
			loop.Answer{Text: "No.", Reason: loop.Complete})), "POST", generate, simple)
		if !strings.Contains(text, want) || !strings.Contains(text, "NameError: x") {
			t.Errorf("%s: %s", outcome, text)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	f := newFake(loop.Text{Delta: "It"}, loop.Text{Delta: " is"})
	f.ends = problem.New(problem.ModelOverloaded, "the model is overloaded")
	s := serve(t, f)
	status, text := ask(t, s, "POST", generate, simple)
	if got := decoded(t, text); status != 429 && status != 503 || at(got, "error", "code") != float64(status) || at(got, "error", "details", 0, "reason") != "MODEL_OVERLOADED" {
		t.Errorf("%d %s", status, text)
	}
	_, text = ask(t, s, "POST", "/gemini/v1beta/models/m:streamGenerateContent?alt=sse", simple)
	if list := chunks(t, text); len(list) != 2 || at(list[1], "error", "status") == nil || !strings.Contains(text, `data: {"error":`) {
		t.Errorf("%q", text)
	}
	f.refuse = errors.New("kingfisher")
	if status, text = ask(t, s, "POST", generate, simple); status != 500 || strings.Contains(text, "kingfisher") || at(decoded(t, text), "error", "status") != "INTERNAL" {
		t.Errorf("%d %s", status, text)
	}
}

// TestRefused: what is not there is refused by its name, before anything is asked.
func TestRefused(t *testing.T) {
	t.Parallel()
	const asks = `"contents":[{"parts":[{"text":"x"}]}]`
	for body, want := range map[string]string{
		`[]`:                                    "an object",
		`{}`:                                    "contents is not specified",
		`{"contents":[{"parts":[{"text":1}]}]}`: "contents[0].parts[0].text",
		`{"contents":[{"role":"model","parts":[{"text":"x"}]}]}`:                                           "The last of the contents",
		`{"contents":[{"role":"system","parts":[{"text":"x"}]}]}`:                                          "valid role",
		`{"contents":[{"parts":[{"fileData":{"fileUri":"x"}}]}]}`:                                          "fileData",
		`{"contents":[{"parts":[{"toolCall":{}}]}]}`:                                                       "toolCall",
		`{"contents":[{"parts":[{"text":"x","inline_data":{}}]}]}`:                                         "one field",
		`{"contents":[{"parts":[{"inlineData":{"data":"?"}}]}]}`:                                           "base64",
		`{"contents":[{"parts":[{"inlineData":{"data":"AAAA"}}]}]}`:                                        "codeExecution",
		`{"contents":[{"parts":[{"functionResponse":{"name":"f"}}]}]}`:                                     "answers no functionCall",
		`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"parts":[{"text":"x"}]}]}`: "number of function response parts",
		`{"contents":[{"role":"model","parts":[{"codeExecutionResult":{}}]},{"parts":[{"text":"x"}]}]}`:    "executableCode",
		`{` + asks + `,"tools":[{"googleSearch":{}}]}`:                                                     "googleSearch",
		`{` + asks + `,"cachedContent":"x"}`:                                                               "cachedContent",
		`{` + asks + `,"wishes":1}`:                                                                        "wishes",
		`{` + asks + `,"tools":[{"codeExecution":{}}],"generationConfig":{"stopSequences":["x"]}}`:         "stopSequences",
		`{` + asks + `,"generationConfig":{"stopSequences":["1","2","3","4","5","6"]}}`:                    "stopSequences",
		`{` + asks + `,"generationConfig":{"candidateCount":2}}`:                                           "candidateCount",
		`{` + asks + `,"generationConfig":{"temperature":3}}`:                                              "temperature",
		`{` + asks + `,"generation_config":{"max_output_tokens":0}}`:                                       "maxOutputTokens",
		`{` + asks + `,"generationConfig":{"responseMimeType":"text/x.enum"}}`:                             "responseMimeType",
		`{` + asks + `,"generationConfig":{"responseModalities":["IMAGE"]}}`:                               "responseModalities",
		`{` + asks + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}`:                             "ANY",
		`{` + asks + `,"toolConfig":{"functionCallingConfig":{"allowedFunctionNames":["g"]}}}`:             "'g'",
	} {
		f := newFake(worked()...)
		status, text := ask(t, serve(t, f), "POST", generate, body)
		if got := decoded(t, text); status != 400 || at(got, "error", "status") != "INVALID_ARGUMENT" || !strings.Contains(text, want) || len(f.asked) > 0 {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	s := serve(t, newFake())
	for path, want := range map[string]string{
		"/gemini/v1beta/models/m:embedContent": "UNIMPLEMENTED", "/gemini/upload/v1beta/files": "resumable", "/gemini/v1beta/cachedContents": "cachedContents", "/gemini/v1beta/nothing": "NOT_FOUND",
		"/gemini/v1beta/models/m": "NOT_FOUND",
	} {
		if status, text := ask(t, s, "POST", path, "{}"); status < 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// TestRead: what a request says comes to the hub.
func TestRead(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	s := serve(t, f)
	body := fmt.Sprintf(`{"system_instruction":{"parts":[{"text":"Be brief."}]},
		"generationConfig":{"maxOutputTokens":"100","temperature":0.5,"topP":0.9,"thinkingConfig":{"thinkingLevel":"LOW"},"topK":40,"responseMimeType":"application/json","responseSchema":{"type":"ARRAY","items":{"type":"STRING"}}},
		"tools":[{"codeExecution":{}},{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"some_name":{"type":"NUMBER","nullable":true}}}},{"name":"g"}]}],
		"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}},
		"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"text/csv","data":"YSxiCg=="}},{"inlineData":{"mimeType":"image/png","data":"%s"}},{"text":"Ask f."}]},
			{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}}},{"thought":true,"text":"hm"}]},
			{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"result":2}}}]}]}`, strings.NewReplacer("+", "-", "/", "_", "=", "").Replace(pixel))
	if status, text := ask(t, s, "POST", generate, body); status != 200 {
		t.Fatal(text)
	}
	n := f.last(t)
	if !strings.HasPrefix(n.Instructions, "Be brief.") || n.MaxTokens != 100 || *n.Temperature != 0.5 || *n.TopP != 0.9 || n.Effort != "low" || !n.Format.JSON || string(n.Format.Schema) != `{"items":{"type":"string"},"type":"array"}` {
		t.Errorf("%+v", n)
	}
	if diff := cmp.Diff([]model.Tool{{Name: "f", Schema: json.RawMessage(`{"properties":{"some_name":{"type":["number","null"]}},"type":"object"}`)}}, n.Tools); diff != "" || n.Choice.Name != "f" {
		t.Error(diff, n.Choice)
	}
	if diff := cmp.Diff([]model.Message{{Role: model.RoleTool, Content: []model.Content{model.ToolResult{CallID: "call_1", Text: `{"result":2}`}}}}, n.Input); diff != "" || len(n.History) != 2 {
		t.Error(diff)
	}
	if f.files["input_file_0.csv"] != "a,b\n" || len(f.files["input_file_1.png"]) == 0 || !slices.Equal(n.Files, []string{"of input_file_0.csv", "of input_file_1.png"}) {
		t.Errorf("%q %q", f.files, n.Files)
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	s := serve(t, newFake())
	_, text := ask(t, s, "GET", "/gemini/v1beta/models?pageSize=1", "")
	page := decoded(t, text)
	if at(page, "models", 0, "name") != "models/test/scripted" || at(page, "nextPageToken") != "1" {
		t.Error(text)
	}
	if _, text = ask(t, s, "GET", "/gemini/v1beta/models?pageSize=1&pageToken=1", ""); !strings.Contains(text, "test/other") || strings.Contains(text, "nextPageToken") {
		t.Error(text)
	}
	if status, text := ask(t, s, "GET", "/gemini/v1beta/models/scripted", ""); status != 200 || !strings.Contains(text, "models/test/scripted") {
		t.Error(text)
	}
	if status, _ := ask(t, s, "GET", "/gemini/v1beta/models/nobody", ""); status != 404 {
		t.Error(status)
	}
	if _, text = ask(t, s, "POST", "/gemini/v1beta/models/m:countTokens", `{"generateContentRequest":{"model":"models/m","contents":[{"parts":[{"text":"1234567890"}]}]}}`); strings.TrimSpace(text) != `{"totalTokens":7}` {
		t.Error(text)
	}
}

// TestKeys: a key is a header or in the address, as Google's clients have it.
func TestKeys(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/gemini/v1beta/models?key=one", nil)
	r.Header.Set("X-Goog-Api-Key", "two")
	if got := gemini.Surface(gemini.Options{}).Keys(r); !slices.Equal(got, []string{"two", "one"}) {
		t.Error(got)
	}
}

var _ gemini.Hub = (*hub.Hub)(nil)
