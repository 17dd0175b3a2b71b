package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

const (
	create = api.Prefix + "/sessions/" + session + "/executions"
	follow = api.Prefix + "/executions/" + execution + "/events"
	form   = "Content-Type: application/x-www-form-urlencoded" // as curl -d has it
)

func TestStreamIsExact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	got := w.do(t, "POST", create, `{"code":"1+1"}`, form, "Accept: text/event-stream")
	head, rest, _ := strings.Cut(got.body, "id: 1\n")
	if !strings.HasPrefix(head, "retry: 1000\n\nevent: execution\ndata: {\"type\":\"execution\",\"execution\":{\"id\":\""+execution) || strings.Contains(head, "id: ") {
		t.Errorf("it begins with %s", head)
	}
	want := `event: stream
data: {"type":"stream","name":"stdout","text":"hi\n"}

id: 2
event: result
data: {"type":"result","count":1,"data":{"text/plain":"2"},"metadata":{}}

id: 3
event: done
data: {"type":"done","exit_code":0,"outcome":"ok","seconds":0}

`
	if rest != want {
		t.Errorf("got\n%s\nwanted\n%s", rest, want)
	}
	for name, value := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no", "Location": "/api/v1/executions/" + execution} {
		if got.header.Get(name) != value {
			t.Errorf("%s: %q", name, got.header.Get(name))
		}
	}
}

// TestProcessInOneAnswer starts a process and gets its events in the same answer.
func TestProcessInOneAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const at = api.Prefix + "/sessions/" + session + "/processes"
	got := w.do(t, "POST", at, `{"line":"cat"}`, "Accept: text/event-stream")
	order := []string{"event: process\ndata: {\"type\":\"process\",\"process\":{\"id\":\"" + started, "id: 12\nevent: stdout\n", "event: exit\n"}
	for last, part := 0, 0; part < len(order); part++ {
		at := strings.Index(got.body, order[part])
		if got.status != 200 || at < last {
			t.Fatalf("no %s behind what comes before it:\n%d %s", order[part], got.status, got.body)
		}
		last = at
	}
	if got := w.do(t, "POST", at+"?stream=true", `{"line":"cat"}`, "Idempotency-Key: one"); got.status != 422 || !strings.Contains(got.body, "Idempotency-Key") {
		t.Errorf("a stream that is to be repeated: %d %s", got.status, got.body)
	}
	for of, want := range map[string]string{"?of=stdout": "é", "": "\xff\x00", "?of=stderr": ""} { // it has a terminal
		if got := w.do(t, "GET", at+"/"+started+"/output"+of, ""); got.status != 200 || got.body != want {
			t.Errorf("the bytes of %q alone: %d %q", of, got.status, got.body)
		}
	}
	w.hub.fail = problem.New(problem.ProgramMissing, "there is no program cat")
	if got := w.do(t, "POST", at+"?stream=true", `{"line":"cat"}`); got.status < 400 || !strings.Contains(got.body, "program_missing") {
		t.Errorf("a program that is not there: %d %s", got.status, got.body)
	}
}

func TestManners(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		query, accept string
		status        int
		kind          string
	}{
		"curl":           {"", "*/*", 200, "application/json"},
		"nothing said":   {"", "", 200, "application/json"},
		"either":         {"", "application/json, text/event-stream;q=0.5", 200, "text/event-stream"},
		"no events":      {"", "text/event-stream;q=0, */*", 200, "application/json"},
		"any text":       {"", "text/*", 200, "application/json"},
		"asked":          {"?stream=true", "application/json", 200, "text/event-stream"},
		"accept events":  {"", "text/event-stream", 200, "text/event-stream"},
		"wait":           {"?wait=true", "*/*", 200, "application/json"},
		"accept json":    {"", "application/json", 200, "application/json"},
		"background":     {"?background=true", "*/*", 202, "application/json"},
		"contradictions": {"?background=true&wait=true", "*/*", 422, "application/problem+json"},
	}
	for name, test := range tests {
		for _, path := range []string{create, api.Prefix + "/turns"} {
			t.Run(name+path, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, nil)
				body := `{"code":"1"}`
				if strings.HasSuffix(path, "turns") {
					body = `{"prompt":"1"}`
				}
				got := w.do(t, "POST", path+test.query, body, "Accept: "+test.accept)
				if got.status != test.status || got.header.Get("Content-Type") != test.kind {
					t.Errorf("%d %s %s", got.status, got.header.Get("Content-Type"), got.body)
				}
				if strings.Contains(test.query, "wait") && got.status == 200 {
					var one struct{ Events []map[string]any }
					if err := json.Unmarshal([]byte(got.body), &one); err != nil || len(one.Events) < 2 {
						t.Errorf("%v: %s", err, got.body)
					}
				}
			})
		}
	}
}

func TestFollowingGoesOn(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		query, header string
		want          string // ids
	}{
		"from the beginning":  {"", "", "1 2 3"},
		"after":               {"?after=1", "", "2 3"},
		"header":              {"", "Last-Event-ID: 2", "3"},
		"header before after": {"?after=1", "Last-Event-ID: 2", "3"},
		"nothing left":        {"", "Last-Event-ID: 3", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			var headers []string
			if test.header != "" {
				headers = append(headers, test.header)
			}
			got := w.do(t, "GET", follow+test.query, "", headers...)
			var ids []string
			for line := range strings.SplitSeq(got.body, "\n") {
				if id, ok := strings.CutPrefix(line, "id: "); ok {
					ids = append(ids, id)
				}
			}
			if strings.Join(ids, " ") != test.want {
				t.Errorf("got %q", ids)
			}
		})
	}
	w := newWorld(t, nil)
	for _, bad := range []string{"x", "-1", "1.5", "99999999999999999999"} {
		wantProblem(t, w.do(t, "GET", follow, "", "Last-Event-ID: "+bad), 422, "invalid_request")
	}
	wantProblem(t, w.do(t, "GET", api.Prefix+"/executions/exe_other/events", ""), 404, "execution_not_found")
}

func TestAServerThatEndsTellsItsFollowers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.hub.follow = func(ctx context.Context, _ int64) hub.Follower[hub.Event] {
		return func(yield func(hub.Numbered[hub.Event], error) bool) {
			if !yield(hub.Numbered[hub.Event]{Seq: 1, Event: kernel.Stream{Name: "stdout", Data: []byte("a")}}, nil) {
				return
			}
			ctx.Value(endKey{}).(context.CancelCauseFunc)(problem.New(problem.Draining, "the server is stopping"))
			<-ctx.Done()
			yield(hub.Numbered[hub.Event]{}, problem.New(problem.GivenUp, "nobody follows any more"))
		}
	}
	got := w.do(t, "GET", follow, "")
	if !strings.Contains(got.body, "id: 1\n") || !strings.HasSuffix(got.body, "\n\n") || !strings.Contains(got.body, `event: failure`) || !strings.Contains(got.body, `"code":"draining"`) {
		t.Errorf("the stream is %q", got.body)
	}
}

func TestGapsAndFailuresAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.hub.events = []hub.Numbered[hub.Event]{{Seq: 1, Event: kernel.Stream{Name: "stdout", Data: []byte("a")}}, {Seq: 40, Gap: true}, {Seq: 41, Event: kernel.Stream{Name: "stdout", Data: []byte("b")}}}
	w.hub.ends = problem.New(problem.Draining, "the server ends").WithHint("try again")
	got := w.do(t, "GET", follow, "")
	if !strings.Contains(got.body, "id: 40\nevent: gap\ndata: {\"type\":\"gap\",\"after\":1,\"until\":40}\n\nid: 41\n") {
		t.Error(got.body)
	}
	if !strings.HasSuffix(got.body, "event: failure\ndata: {\"type\":\"failure\",\"code\":\"draining\",\"hint\":\"try again\",\"kind\":\"unavailable\",\"message\":\"the server ends\"}\n\n") {
		t.Error(got.body)
	}
	w.hub.ends = fmt.Errorf("open /var/lib/private: no")
	if got := w.do(t, "GET", follow, ""); strings.Contains(got.body, "private") || !strings.Contains(got.body, `"code":"internal"`) {
		t.Error(got.body)
	}
}

// A stream that ends before its end, as when the server does, says so; one whose end the client has does not.
func TestStreamsThatAreCutSaySo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.hub.events = w.hub.events[:2] // of three
	if got := w.do(t, "GET", follow, ""); !strings.HasSuffix(strings.TrimSpace(got.body), `"message":"the stream was cut off before its end"}`) || !strings.Contains(got.body, `"code":"stream_cut"`) {
		t.Error(got.body)
	}
	if got := w.do(t, "GET", follow, "", "Last-Event-ID: 3"); strings.Contains(got.body, "failure") {
		t.Error(got.body)
	}
	wantProblem(t, w.do(t, "POST", create+"?wait=true", `{"code":"1"}`), 503, "stream_cut")
}

// An event that comes alone is not held back, silence is broken, and a client that leaves ends the following.
func TestEventsComeAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *api.Options) { o.Heartbeat = 20 * time.Millisecond })
	next, gone := make(chan kernel.Stream), make(chan struct{})
	w.hub.follow = func(ctx context.Context, after int64) hub.Follower[hub.Event] {
		return func(yield func(hub.Numbered[hub.Event], error) bool) {
			defer close(gone)
			for seq := after + 1; ; seq++ {
				select {
				case e := <-next:
					if !yield(hub.Numbered[hub.Event]{Seq: seq, Event: e}, nil) {
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", w.url+follow, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	read := func(want string) { // would hang if it were held back
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Errorf("the stream ended before %q", want)
	}
	read("retry:")
	for i := range 3 {
		text := fmt.Sprintf("piece %d", i)
		next <- kernel.Stream{Name: "stdout", Data: []byte(text)}
		read(text)
	}
	read(": still here")
	leave()
	<-gone
}

// What a client does not take waits where it is: its producer is asked for no more than fits between.
func TestAClientThatDoesNotReadHoldsItsProducer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const big = 10_000
		release := make(chan struct{})
		var taken, ended int
		h := &fakeHub{follow: func(context.Context, int64) hub.Follower[hub.Event] {
			return func(yield func(hub.Numbered[hub.Event], error) bool) {
				event := hub.Event(kernel.Stream{Name: "stdout", Data: bytes.Repeat([]byte("x"), big)})
				for taken < 1000*big && yield(hub.Numbered[hub.Event]{Seq: int64(taken + 1), Event: event}, nil) {
					taken += big
				}
				ended++
			}
		}}
		r := httptest.NewRequestWithContext(auth.With(t.Context(), auth.Local()), "GET", follow, nil)
		go api.New(api.Options{Hub: h}).ServeHTTP(&blocked{ResponseRecorder: httptest.NewRecorder(), release: release}, r)
		synctest.Wait()
		if taken > 64<<10+big {
			t.Errorf("%d bytes were taken for a client that does not read", taken)
		}
		close(release) // the client is cut off
		synctest.Wait()
		if ended != 1 {
			t.Error("what it followed is not let go of")
		}
	})
}

// blocked is an answer that nobody takes.
type blocked struct {
	*httptest.ResponseRecorder
	release chan struct{}
}

func (b *blocked) Write([]byte) (int, error) {
	<-b.release
	return 0, os.ErrDeadlineExceeded
}

func TestEventsThatComeTogetherGoTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const count = 20_000
	w.hub.follow = func(context.Context, int64) hub.Follower[hub.Event] {
		var events []hub.Event
		for i := range count {
			events = append(events, kernel.Stream{Name: "stdout", Data: fmt.Appendf(nil, "%d\n", i)})
		}
		return follower(numbered(append(events, kernel.Done{Outcome: kernel.OutcomeOK})...), 0, nil)
	}
	got := w.do(t, "GET", follow, "")
	if n := strings.Count(got.body, "event: stream\n"); n != count || !strings.Contains(got.body, fmt.Sprintf("id: %d\nevent: done\n", count+1)) {
		t.Errorf("%d events", n)
	}
}

func TestTurnsFailInTheirStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.hub.turns = w.hub.turns[:1]
	w.hub.turnEnds = problem.New(problem.ModelUnavailable, "the model does not answer")
	got := w.do(t, "POST", api.Prefix+"/turns", `{"prompt":"?"}`, "Accept: text/event-stream")
	if !strings.Contains(got.body, "event: text\n") || !strings.Contains(got.body, "event: failure\n") || !strings.Contains(got.body, `"code":"model_unavailable"`) {
		t.Error(got.body)
	}
	// waited for, the turn itself says how it ended
	if got := w.do(t, "POST", api.Prefix+"/turns?wait=true", `{"prompt":"?"}`); got.status != 200 || !strings.Contains(got.body, `"state":"completed"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A client that does not take its answer is no fault of the server's, whatever the answer is.
func TestAnswersThatNobodyTakes(t *testing.T) {
	t.Parallel()
	handler := api.New(api.Options{Hub: &fakeHub{tree: map[string][]byte{"a.csv": []byte("abc")}}})
	release := make(chan struct{})
	close(release)
	for _, path := range []string{"/sessions", "/sessions/" + session, "/sessions/none", "/sessions/" + session + "/files", "/sessions/" + session + "/files/a.csv", "/executions?limit=0", "/docs", "/nothing"} {
		w := &blocked{ResponseRecorder: httptest.NewRecorder(), release: release}
		handler.ServeHTTP(w, httptest.NewRequestWithContext(auth.With(t.Context(), auth.Local()), "GET", api.Prefix+path, nil)) // panics, if it is one
	}
}
