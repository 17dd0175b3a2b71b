package openai_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/internal/http/compat/openai"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
	"cove/internal/testkit/testneeds"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const python = `"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]`

func done(o kernel.Outcome) kernel.Done { return kernel.Done{Outcome: o, Wall: time.Millisecond} }

// worked is a turn that runs code, makes a file and a picture, and answers.
func worked() []loop.Event {
	return []loop.Event{
		loop.Reasoning{Delta: "Let me "}, loop.Reasoning{Delta: "think."},
		loop.Text{Delta: "I will compute."},
		loop.Code{Step: 1, Delta: "print("}, loop.Code{Step: 1, Delta: "6*7)"},
		loop.Start{Step: 1, Code: "print(6*7)"},
		loop.Output{Step: 1, Event: kernel.Stream{Name: "stdout", Data: []byte("4")}},
		loop.Output{Step: 1, Event: kernel.Stream{Name: "stdout", Data: []byte("2\n")}},
		loop.Output{Step: 1, Event: kernel.Display{Data: kernel.Bundle{"image/png": pixel + "\n", "text/plain": "<Figure>"}}},
		loop.Output{Step: 1, Event: kernel.File{Path: "out/表.csv", Size: 3, Created: true}},
		loop.Output{Step: 1, Event: kernel.File{Path: "plot.png", Size: 3, Created: true}},
		loop.Output{Step: 1, Event: done(kernel.OutcomeOK)},
		loop.Text{Delta: "答案 is 42: [table](sandbox:/mnt/data/"}, loop.Text{Delta: "out/表.csv)."},
		loop.Answer{Text: "答案 is 42: [table](sandbox:/mnt/data/out/表.csv).", Reason: loop.Complete, Steps: 1,
			Usage: model.Usage{InputTokens: 11, OutputTokens: 7}},
	}
}

// frame is one event as it came.
type frame struct {
	name string
	data map[string]any
}

func frames(t *testing.T, text string) []frame {
	t.Helper()
	var out []frame
	var name string
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if n, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = n
		}
		if d, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			f := frame{name: name}
			if err := json.Unmarshal([]byte(d), &f.data); err != nil {
				t.Fatalf("%s: %v", d, err)
			}
			out = append(out, f)
		}
	}
	return out
}

var ids = regexp.MustCompile(`(resp|cntr|conv|msg|ci|fc|rs)_[0-9a-z]{26}`)

// TestStreamGolden compares a whole stream, byte by byte, with what clients were seen to understand.
func TestStreamGolden(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []loop.Event
		err    error
		body   string
	}{
		"worked": {worked(), nil, `"include":["code_interpreter_call.outputs"],"metadata":{"a":"b"},`},
		"plain":  {[]loop.Event{loop.Text{Delta: "Hi"}, loop.Answer{Text: "Hi", Reason: loop.Complete}}, nil, ``},
		"composed": {[]loop.Event{loop.Start{Step: 1, Code: "1"}, loop.Output{Step: 1, Event: done(kernel.OutcomeTimeout)},
			loop.Answer{Text: "The limit was reached.", Reason: loop.TokenLimit, Steps: 1}}, nil, ``},
		"dropped": {[]loop.Event{loop.Code{Step: 1, Delta: "a"}, loop.Notice{Text: "cut"}, loop.Code{Step: 1, Delta: "b"},
			loop.Start{Step: 1, Code: "b"}, loop.Output{Step: 1, Event: kernel.Error{Name: "E", Value: "v", Traceback: []string{"Traceback", "E: v"}}},
			loop.Output{Step: 1, Event: done(kernel.OutcomeError)}, loop.Answer{Text: "It failed.", Reason: loop.Complete}}, nil, ``},
		"functions": {[]loop.Event{loop.Call{Index: 0, ID: "call_1", Name: "weather", Delta: `{"city":`}, loop.Call{Index: 0, Delta: `"Rome"}`},
			loop.Answer{Reason: loop.ClientCalls, Calls: []model.ToolCall{{ID: "call_1", Name: "weather", Arguments: `{"city":"Rome"}`}}}}, nil, ``},
		"failed": {[]loop.Event{loop.Text{Delta: "Let me"}, loop.Code{Step: 1, Delta: "x"}},
			problem.New(problem.ModelUnavailable, "the model went away"), ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.script = func(hub.NewTurn) ([]loop.Event, error) { return c.events, c.err }
			status, text, header := raw(t, serve(t, f), "POST", "/v1/responses", `{"model":"m","input":"Q","stream":true,`+c.body+python+`}`)
			if status != 200 || header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
				t.Fatalf("%d %s %s", status, header, text)
			}
			checkStream(t, frames(t, text))
			text = ids.ReplaceAllString(text, "${1}_ID")
			path := filepath.Join("testdata", name+".sse")
			if *update {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), text); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// checkStream holds what clients demand of every stream: see the table of what they tolerate.
func checkStream(t *testing.T, got []frame) {
	t.Helper()
	added, parts, finished := map[float64]string{}, map[string]bool{}, map[string]bool{}
	response := at(got[0].data, "response", "id")
	for n, f := range got {
		if f.data["type"] != f.name || f.data["sequence_number"] != float64(n) {
			t.Errorf("event %d is %s with %v, number %v", n, f.name, f.data["type"], f.data["sequence_number"])
		}
		if _, bad := f.data["error"]; bad {
			t.Errorf("event %d has a top-level error key, which ends openai-go's stream", n)
		}
		if r, ok := f.data["response"].(map[string]any); ok && r["id"] != response {
			t.Errorf("event %d is of response %v, not %v", n, r["id"], response)
		}
		index, id := f.data["output_index"], f.data["item_id"]
		switch f.name {
		case "response.output_item.added":
			if index != float64(len(added)) {
				t.Errorf("event %d adds item %v after %d", n, index, len(added))
			}
			id, _ := at(f.data, "item", "id").(string)
			added[float64(len(added))] = id
		case "response.content_part.added":
			parts[fmt.Sprint(id)] = true
		case "response.output_text.delta", "response.reasoning_text.delta":
			if !parts[fmt.Sprint(id)] {
				t.Errorf("event %d continues a part that was not added", n)
			}
		case "response.output_item.done":
			finished[fmt.Sprint(at(f.data, "item", "id"))] = true
		}
		if id != nil && added[index.(float64)] != id {
			t.Errorf("event %d (%s) is of item %v, which is not number %v", n, f.name, id, index)
		}
	}
	last := got[len(got)-1]
	output, _ := at(last.data, "response", "output").([]any)
	if len(output) != len(added) || len(finished) != len(added) {
		t.Errorf("%d items were added, %d finished, and %d are in the response", len(added), len(finished), len(output))
	}
	for _, item := range output {
		if item := item.(map[string]any); item["type"] == "code_interpreter_call" {
			_, code := item["code"]
			if _, outputs := item["outputs"]; !code || !outputs {
				t.Errorf("an item misses a key that must be there: %v", item)
			}
		}
	}
	if got[0].name != "response.created" || got[1].name != "response.in_progress" || !strings.HasPrefix(last.name, "response.") {
		t.Errorf("it begins %s, %s and ends %s", got[0].name, got[1].name, last.name)
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	s := serve(t, f)
	_, text, _ := raw(t, s, "POST", "/v1/responses", `{"model":"m","input":"Q","stream":true,"include":["code_interpreter_call.outputs"],`+python+`}`)
	id := at(frames(t, text)[0].data, "response", "id").(string)
	for _, after := range []int{0, 5, 17} {
		_, rest, _ := raw(t, s, "GET", fmt.Sprintf("/v1/responses/%s?stream=true&starting_after=%d&include[]=code_interpreter_call.outputs", id, after), "")
		_, want, _ := strings.Cut(text, fmt.Sprintf(`"sequence_number":%d,`, after))
		_, want, _ = strings.Cut(want, "\n\n")
		if rest != want {
			t.Errorf("after %d:\n%s", after, cmp.Diff(want, rest))
		}
	}
	_, retrieved, _ := ask(t, s, "GET", "/v1/responses/"+id+"?include[]=code_interpreter_call.outputs", "")
	all := frames(t, text)
	if diff := cmp.Diff(all[len(all)-1].data["response"], any(retrieved)); diff != "" {
		t.Errorf("the retrieved response is another than the streamed one:\n%s", diff)
	}
	if _, without, _ := ask(t, s, "GET", "/v1/responses/"+id, ""); at(without, "output", 2, "outputs") != nil || at(without, "output", 2, "type") != "code_interpreter_call" {
		t.Errorf("outputs were sent to a client that did not ask: %v", at(without, "output", 2))
	}
}

func TestLiveOutputIsOptional(t *testing.T) {
	t.Parallel()
	s := serve(t, newFake(worked()...))
	for _, header := range []string{"", "1"} {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/v1/responses", strings.NewReader(`{"model":"m","input":"Q","stream":true,`+python+`}`))
		req.Header.Set("Authorization", "Bearer owner")
		req.Header.Set("X-Stream-Output", header)
		text := do(t, s, req)
		if got := strings.Count(text, "event: response.code_interpreter_call.output.delta"); got != len(header)*2 {
			t.Errorf("%q: %d live events", header, got)
		}
		checkStream(t, frames(t, text))
	}
}

func do(t *testing.T, s *httptest.Server, req *http.Request) string {
	t.Helper()
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var b strings.Builder
	lines := bufio.NewReader(res.Body)
	if _, err := lines.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	f.gate = make(chan struct{})
	s := serve(t, f, func(o *openai.Options) { o.Heartbeat = time.Millisecond })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/responses", strings.NewReader(`{"model":"m","input":"Q","stream":true,`+python+`}`))
	req.Header.Set("Authorization", "Bearer owner")
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	beats, last := 0, ""
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), ":") {
			if beats++; beats == 3 {
				close(f.gate)
			}
		}
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			last = name
		}
	}
	if beats < 3 || last != "response.completed" {
		t.Errorf("%d heartbeats, the last event is %q", beats, last)
	}
}

// TestDisconnect shows that a client that goes away cancels its response, but not one in the background.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body     string
		canceled bool
	}{
		"stream": {`{"model":"m","input":"Q","stream":true,` + python + `}`, true},
		"whole":  {`{"model":"m","input":"Q",` + python + `}`, true},
		"chat":   {`{"model":"m","messages":[{"role":"user","content":"Q"}],"stream":true,` + python + `}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(worked()...)
			f.gate = make(chan struct{})
			s := serve(t, f)
			ctx, cancel := context.WithCancel(t.Context())
			path := "/v1/responses"
			if name == "chat" {
				path = "/v1/chat/completions"
			}
			req, _ := http.NewRequestWithContext(ctx, "POST", s.URL+path, strings.NewReader(c.body))
			req.Header.Set("Authorization", "Bearer owner")
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				res, err := s.Client().Do(req)
				if err == nil {
					_, _ = bufio.NewReader(res.Body).ReadString('\x00')
					_ = res.Body.Close()
				}
			}()
			turn := f.first(t)
			cancel()
			<-ended
			select {
			case <-turn.canceled:
			case <-time.After(testneeds.Patience):
				t.Error("the turn goes on")
			}
		})
	}
}

// first waits for the first turn.
func (f *fakeHub) first(t *testing.T) *fakeTurn {
	t.Helper()
	for deadline := time.Now().Add(testneeds.Patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		f.mu.Lock()
		if len(f.order) > 0 {
			turn := f.turns[f.order[0]]
			f.mu.Unlock()
			return turn
		}
		f.mu.Unlock()
	}
	t.Fatal("no turn began")
	return nil
}

// TestGap has events lost on the way: what is said at the end is whole all the same.
func TestGap(t *testing.T) {
	t.Parallel()
	f := newFake(loop.Text{Delta: "The answer"}, nil, loop.Text{Delta: "42."},
		loop.Answer{Text: "The answer is 42.", Reason: loop.Complete})
	_, text, _ := raw(t, serve(t, f), "POST", "/v1/responses", `{"model":"m","input":"Q","stream":true,`+python+`}`)
	got := frames(t, text)
	checkStream(t, got)
	if last := got[len(got)-1]; at(last.data, "response", "output", 0, "content", 0, "text") != "The answer is 42." {
		t.Errorf("%v", last.data)
	}
}
