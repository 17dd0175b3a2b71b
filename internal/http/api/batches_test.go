package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// batchHub runs code that says how it goes: "ok", "wrong", "refused", "busy" (there is room the second time) and "hang".
type batchHub struct {
	*fakeHub
	mu                 sync.Mutex
	running, most      int
	begun, made, ended int
	asked              map[string]int
	code               map[string]string // by execution
	free               chan struct{}     // "hang" ends with it
}

func (h *batchHub) CreateSession(_ context.Context, _ auth.Principal, n hub.NewSession) (hub.Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.made++
	return hub.Session{ID: fmt.Sprintf("ses_%d", h.made), Name: n.Name}, nil
}

func (h *batchHub) DeleteSession(context.Context, auth.Principal, string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended++
	return nil
}

func (h *batchHub) StartExecution(_ context.Context, _ auth.Principal, n hub.NewExecution) (hub.Execution, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[n.Code]++
	switch {
	case n.Code == "refused":
		return hub.Execution{}, problem.New(problem.CodeRefused, "not this")
	case strings.HasPrefix(n.Code, "busy") && h.asked[n.Code] == 1:
		return hub.Execution{}, problem.New(problem.QueueFull, "later")
	}
	h.begun++
	h.running++
	h.most = max(h.most, h.running)
	id := fmt.Sprintf("exe_%d", h.begun)
	h.code[id] = n.Code
	return hub.Execution{ID: id, Session: n.Session, Code: n.Code}, nil
}

func (h *batchHub) Execution(_ context.Context, _ auth.Principal, id string) (hub.Execution, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	state := kernel.OutcomeOK
	if h.code[id] == "wrong" {
		state = kernel.OutcomeError
	}
	return hub.Execution{ID: id, Code: h.code[id], State: hub.ExecutionState(state), Events: 1}, nil
}

func (h *batchHub) Follow(ctx context.Context, _ auth.Principal, id string, _ int64) (hub.Follower[json.RawMessage], error) {
	return func(yield func(hub.Numbered[json.RawMessage], error) bool) {
		h.mu.Lock()
		code := h.code[id]
		h.mu.Unlock()
		defer func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.running--
		}()
		wait := time.NewTimer(20 * time.Millisecond)
		defer wait.Stop()
		free := h.free
		if code != "hang" {
			free = make(chan struct{})
		} else {
			wait.Stop()
		}
		select {
		case <-wait.C:
		case <-free:
		case <-ctx.Done():
			yield(hub.Numbered[json.RawMessage]{}, ctx.Err())
			return
		}
		yield(hub.Numbered[json.RawMessage]{Seq: 1, Event: json.RawMessage(`{"type":"done","outcome":"ok"}`)}, nil)
	}, nil
}

func newBatchWorld(t *testing.T) (*world, *batchHub) {
	h := &batchHub{asked: map[string]int{}, code: map[string]string{}, free: make(chan struct{})}
	w := newWorld(t, func(o *api.Options) {
		h.fakeHub, _ = o.Hub.(*fakeHub)
		o.Hub, o.Heartbeat = h, 10*time.Millisecond
	})
	return w, h
}

type batchLine struct {
	Type      string
	Index     int
	Label     string
	OK        bool
	Succeeded int
	Failed    int
	NotBegun  int `json:"not_begun"`
	Execution any
	Turn      any
	Problem   *struct{ Code string }
}

func linesOf(t *testing.T, body string) (lines []batchLine) {
	t.Helper()
	for l := range strings.Lines(body) {
		var line batchLine
		if err := json.Unmarshal([]byte(l), &line); err != nil {
			t.Fatalf("%v in %q", err, l)
		}
		if line.Type != "running" {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestBatch: an item that fails ends no other, no more run at once than was asked for, results come as items end, and sessions that were made go.
func TestBatch(t *testing.T) {
	t.Parallel()
	w, h := newBatchWorld(t)
	time.AfterFunc(time.Second, func() { close(h.free) })
	got := w.do(t, "POST", api.Prefix+"/batches", `{"at_once":3,"items":[{"code":"hang"},{"code":"wrong","label":"w"},{"code":"refused"},{"code":"busy"},{"prompt":"What?"},{"code":"ok"},{"code":"ok 2"}]}`)
	lines := linesOf(t, got.body)
	if got.status != 200 || got.header.Get("Content-Type") != "application/x-ndjson" || len(lines) != 6+7+1 {
		t.Fatalf("%d %v %s", got.status, got.header, got.body)
	}
	results := map[int]batchLine{}
	last := -1
	for _, l := range lines {
		if l.Type == "result" {
			results[l.Index], last = l, l.Index
		}
	}
	for n, want := range []bool{true, false, false, true, true, true, true} {
		if results[n].OK != want {
			t.Errorf("item %d: %+v", n, results[n])
		}
	}
	if results[1].Label != "w" || results[2].Problem == nil || results[2].Problem.Code != "code_refused" || results[4].Turn == nil || last != 0 {
		t.Errorf("%+v, the last is %d", results, last)
	}
	if end := lines[len(lines)-1]; end.Type != "end" || end.Succeeded != 5 || end.Failed != 2 || end.NotBegun != 0 {
		t.Errorf("%+v", end)
	}
	if h.most > 3 || h.made != 6 || h.ended != 6 || h.asked["busy"] != 2 {
		t.Errorf("%d at once, %d sessions made and %d deleted, %v", h.most, h.made, h.ended, h.asked)
	}
}

// TestBatchLeft: when the client leaves, nothing more begins, and the session of what goes on is kept.
func TestBatchLeft(t *testing.T) {
	t.Parallel()
	w, h := newBatchWorld(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+api.Prefix+"/batches", strings.NewReader(`{"at_once":1,"items":[{"code":"ok"},{"code":"hang"},{"code":"ok 2"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	begun := 0
	for lines := bufio.NewScanner(answer.Body); begun < 2 && lines.Scan(); {
		if strings.Contains(lines.Text(), `"type":"begun"`) {
			begun++
		}
	}
	leave()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		h.mu.Lock()
		running := h.running
		h.mu.Unlock()
		if running == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it is still followed")
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.begun != 2 || h.made != 2 || h.ended != 1 {
		t.Errorf("%d begun, %d sessions made and %d deleted", h.begun, h.made, h.ended)
	}
}

func TestBatchRefusals(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"items":[]}`: "items", `{"items":[{}]}`: "either code or a prompt", `{"items":[{"code":"1","prompt":"x"}]}`: "either code or a prompt", `{"items":[{"code":"1"}],"at_once":33}`: "at_once",
		`{"items":[{"code":"1"}],"session":"` + session + `","make":{}}`: "body.make",
	} {
		w, h := newBatchWorld(t)
		if got := w.do(t, "POST", api.Prefix+"/batches", body); got.status != 400 && got.status != 422 || !strings.Contains(got.body, want) || h.begun > 0 {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	w, h := newBatchWorld(t)
	w.who.Scopes = []auth.Action{auth.SessionsExecute, auth.SessionsRead, auth.SessionsWrite}
	got := w.do(t, "POST", api.Prefix+"/batches", `{"items":[{"code":"ok"},{"prompt":"What?"}]}`)
	wantProblem(t, got, 403, "forbidden")
	if h.begun > 0 {
		t.Error("something has begun without all rights")
	}
	if got := w.do(t, "POST", api.Prefix+"/batches", `{"items":[{"code":"ok"}]}`, "Accept: text/event-stream"); !strings.Contains(got.body, "event: result\n") || !strings.Contains(got.body, "event: end\n") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
