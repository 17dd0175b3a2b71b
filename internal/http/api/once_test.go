package api_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

func TestRepeatedRequests(t *testing.T) {
	t.Parallel()
	const word = "Idempotency-Key: one"
	w := newWorld(t, nil)
	path := api.Prefix + "/sessions"
	first := w.do(t, "POST", path, `{"name":"a"}`, word)
	again := w.do(t, "POST", path, `{"name":"a"}`, word)
	if first.status != 201 || again.status != 201 || first.body != again.body || w.hub.calls != 1 || again.header.Get("Idempotency-Replayed") != "true" ||
		again.header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v\n%+v\n%d calls", first, again, w.hub.calls)
	}
	wantProblem(t, w.do(t, "POST", path, `{"name":"b"}`, word), 422, "idempotency_mismatch")
	if w.do(t, "POST", path, `{"name":"a"}`, "Idempotency-Key: two"); w.hub.calls != 2 {
		t.Error("another word is another request")
	}
	w.who.Project = "prj_other"
	if w.do(t, "POST", path, `{"name":"a"}`, word); w.hub.calls != 3 {
		t.Error("another caller's word counts")
	}
	wantProblem(t, w.do(t, "POST", path, `{}`, "Idempotency-Key: "+strings.Repeat("x", 201)), 422, "invalid_request")

	// A failure is not kept.
	w = newWorld(t, nil)
	w.hub.fail = problem.New(problem.QuotaSessions, "enough")
	wantProblem(t, w.do(t, "POST", path, `{}`, word), 429, "quota_sessions")
	w.hub.fail = nil
	if got := w.do(t, "POST", path, `{}`, word); got.status != 201 {
		t.Errorf("%d %s", got.status, got.body)
	}

	// The hub knows executions by the word.
	w = newWorld(t, nil)
	for range 2 {
		if got := w.do(t, "POST", create+"?background=true", `{"code":"1"}`, word); got.status != 202 {
			t.Errorf("%d %s", got.status, got.body)
		}
		if n := w.hub.last()[0].(hub.NewExecution); n.Once != "one" {
			t.Errorf("the hub got the word %q", n.Once)
		}
	}
	wantProblem(t, w.do(t, "POST", create+"?background=true", `{"code":"2"}`, word), 422, "idempotency_mismatch")
}

func TestRepeatedUploads(t *testing.T) {
	t.Parallel()
	const word = "Idempotency-Key: one"
	w := newWorld(t, nil)
	path := api.Prefix + "/files?name=x.csv"
	first := w.do(t, "POST", path, "a,b", word)
	again := w.do(t, "POST", path, "a,b", word)
	if first.status != 201 || again.status != 201 || first.body != again.body || w.hub.calls != 1 || again.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("%+v\n%+v\n%d calls", first, again, w.hub.calls)
	}
	wantProblem(t, w.do(t, "POST", path, "a,c", word), 422, "idempotency_mismatch")
	wantProblem(t, w.do(t, "POST", path, "a,bc", word), 422, "idempotency_mismatch")
	w.hub.fail = problem.New(problem.QuotaDisk, "enough")
	wantProblem(t, w.do(t, "POST", path, "x", "Idempotency-Key: two"), 507, "quota_disk")
	w.hub.fail = nil
	if got := w.do(t, "POST", path, "y", "Idempotency-Key: two"); got.status != 201 {
		t.Errorf("a failure was kept: %d %s", got.status, got.body)
	}
}

// formOf is a file as a client sends it in a form, whose boundary is another one each time.
func formOf(t *testing.T, purpose, name, content string) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	f := multipart.NewWriter(&b)
	if err := f.WriteField("purpose", purpose); err != nil {
		t.Fatal(err)
	}
	part, err := f.CreateFormFile("file", name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(part, content); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), "Content-Type: " + f.FormDataContentType()
}

func TestRepeatedForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	send := func(purpose, name, content string) reply {
		body, kind := formOf(t, purpose, name, content)
		return w.do(t, "POST", api.Prefix+"/files", body, kind, "Idempotency-Key: one")
	}
	first, again := send("data", "x.csv", "a,b"), send("data", "x.csv", "a,b")
	if first.status != 201 || again.status != 201 || first.body != again.body || w.hub.calls != 1 || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%+v\n%+v\n%d calls", first, again, w.hub.calls)
	}
	for _, other := range []reply{send("data", "x.csv", "a,c"), send("data", "y.csv", "a,b"), send("other", "x.csv", "a,b")} {
		wantProblem(t, other, 422, "idempotency_mismatch")
	}
}

// An upload that is sent again while the first one runs is told so, and not that it were another.
func TestUploadsThatAreRepeatedTooEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.hub.adding = make(chan struct{})
	const word = "Idempotency-Key: one"
	path := api.Prefix + "/files?name=x.csv"
	ended := make(chan reply)
	go func() { ended <- w.do(t, "POST", path, "a,b", word) }()
	w.hub.adding <- struct{}{} // it has begun
	early := w.do(t, "POST", path, "a,b", word)
	w.hub.adding <- struct{}{} // and may end
	wantProblem(t, early, 409, "idempotency_in_progress")
	if early.header.Get("Retry-After") == "" {
		t.Error("it does not say when to come again")
	}
	if first := <-ended; first.status != 201 {
		t.Errorf("%d %s", first.status, first.body)
	}
	if got := w.do(t, "POST", path, "a,b", word); got.status != 201 || w.hub.calls != 1 {
		t.Errorf("%d %s, %d calls", got.status, got.body, w.hub.calls)
	}
}

// TestRefusedRequestsLeaveNothing, however long they are: anybody with a key can send many. It measures memory and is alone therefore.
func TestRefusedRequestsLeaveNothing(t *testing.T) { //nolint:paralleltest // see above
	handler := api.New(api.Options{Hub: &fakeHub{}})
	send := func(word, query string) int {
		r := httptest.NewRequestWithContext(auth.With(t.Context(), auth.Local()), "POST", api.Prefix+"/sessions"+query, strings.NewReader(`{}`))
		r.Header.Set("Idempotency-Key", word)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	if status := send("first", ""); status != 201 { // the oldest of all: what is after it is not forgotten by age
		t.Fatalf("%d", status)
	}
	before := inUse()
	const requests, length = 1000, 50_000
	for i := range requests {
		if status := send(fmt.Sprint("word-", i), "?"+strings.Repeat("x", length)); status != 422 {
			t.Fatalf("%d", status)
		}
	}
	if grown := inUse() - before; grown > requests*length/10 {
		t.Errorf("%d refused requests hold %d bytes", requests, grown)
	}
	runtime.KeepAlive(handler)
}

func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestRepeatedRequestsAreForgotten(t *testing.T) {
	t.Parallel()
	now := then
	w := newWorld(t, func(o *api.Options) { o.Now = func() time.Time { return now } })
	for range 2 {
		w.do(t, "POST", api.Prefix+"/sessions", `{}`, "Idempotency-Key: one")
		now = now.Add(25 * time.Hour)
	}
	if w.hub.calls != 2 {
		t.Errorf("%d calls", w.hub.calls)
	}
}
