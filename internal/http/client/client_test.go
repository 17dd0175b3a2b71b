package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/http/client"
	"cove/internal/llm/loop"
	"cove/internal/machine/workspace"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/hub/hubtest"
)

const (
	key       = "cove_secret_canary_0123456789"
	session   = "ses_00000000000000000000000001"
	execution = "exe_00000000000000000000000001"
	turn      = "trn_00000000000000000000000001"
)

// fakeHub has what the tests ask for; everything else would panic.
type fakeHub struct {
	api.Hub
	events  []hub.Numbered[hub.Event]
	answer  error // of a turn
	mu      sync.Mutex
	made    []string
	content map[string]string
}

func (h *fakeHub) CreateSession(_ context.Context, _ auth.Principal, n hub.NewSession) (hub.Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.made = append(h.made, n.Name)
	return hub.Session{ID: session, Name: n.Name}, nil
}

func (h *fakeHub) Session(_ context.Context, _ auth.Principal, id string) (hub.Session, error) {
	if id != session {
		return hub.Session{}, problem.New(problem.SessionNotFound, "there is no such session").WithHint("list them")
	}
	return hub.Session{ID: id}, nil
}

func (h *fakeHub) Sessions(_ context.Context, _ auth.Principal, _ hub.SessionFilter, p hub.Page) (hub.Listing[hub.Session], error) {
	if p.After == "2" {
		return hub.Listing[hub.Session]{Items: []hub.Session{{ID: "c"}}}, nil
	}
	return hub.Listing[hub.Session]{Items: []hub.Session{{ID: "a"}, {ID: "b"}}, Next: "2"}, nil
}

func (h *fakeHub) ChangeSession(context.Context, auth.Principal, string, hub.SessionChange) (hub.Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.made = append(h.made, "change")
	return hub.Session{}, nil
}

func (h *fakeHub) StartExecution(_ context.Context, _ auth.Principal, n hub.NewExecution) (hub.Execution, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.made, n.Once) {
		h.made = append(h.made, n.Once)
	}
	return hub.Execution{ID: execution, Session: n.Session, Code: n.Code}, nil
}

func (h *fakeHub) Follow(_ context.Context, _ auth.Principal, id string, after int64) (hub.Follower[json.RawMessage], error) {
	if id != execution {
		return nil, problem.New(problem.ExecutionNotFound, "there is no such execution")
	}
	return hubtest.Events(func(yield func(hub.Numbered[hub.Event], error) bool) {
		for _, n := range h.events {
			if n.Seq > after && !yield(n, nil) {
				return
			}
		}
	}), nil
}

func (h *fakeHub) Execution(_ context.Context, _ auth.Principal, id string) (hub.Execution, error) {
	return hub.Execution{ID: id, State: hub.ExecutionLost, Events: int64(len(h.events))}, nil
}

func (h *fakeHub) StartTurn(_ context.Context, _ auth.Principal, n hub.NewTurn) (hub.Turn, error) {
	return hub.Turn{ID: turn, Conversation: "cnv", Prompt: n.Prompt}, nil
}

func (h *fakeHub) FollowTurn(_ context.Context, _ auth.Principal, _ string, after int64) (hub.Follower[json.RawMessage], error) {
	return hubtest.TurnEvents(func(yield func(hub.Numbered[hub.TurnEvent], error) bool) {
		if after < 1 && !yield(hub.Numbered[hub.TurnEvent]{Seq: 1, Event: loop.Text{Delta: "a"}}, nil) {
			return
		}
		if h.answer != nil {
			yield(hub.Numbered[hub.TurnEvent]{}, h.answer)
			return
		}
		yield(hub.Numbered[hub.TurnEvent]{Seq: 2, Event: loop.Answer{Text: "a", Reason: loop.Complete}}, nil)
	}), nil
}

func (h *fakeHub) Install(_ context.Context, _ auth.Principal, _ string, requirements []string, told func(installation.Progress)) (installation.Provision, error) {
	if requirements[0] == "bad" {
		return installation.Provision{}, problem.New(problem.PackageUnknown, "there is no such package")
	}
	told(installation.Progress{Phase: "download"})
	return installation.Provision{Installed: []installation.Package{{Name: requirements[0], Version: "1"}}}, nil
}

func (h *fakeHub) Tree(ctx context.Context, _ auth.Principal, _ string, _ bool, use func(context.Context, hub.Tree) error) error {
	return use(ctx, tree{h: h})
}

type tree struct {
	hub.Tree
	h *fakeHub
}

func (t tree) Write(_ context.Context, path string, r io.Reader) (workspace.Entry, error) {
	text, err := io.ReadAll(r)
	t.h.content[path] = string(text)
	return workspace.Entry{Path: path, Size: int64(len(text))}, err
}

func (t tree) Stat(_ context.Context, path string) (workspace.Entry, error) {
	return workspace.Entry{Path: path, Size: int64(len(t.h.content[path]))}, nil
}

func (t tree) Read(_ context.Context, path string, offset, _ int64, w io.Writer) (int64, error) {
	_, err := io.WriteString(w, t.h.content[path][offset:])
	return 0, err
}

// front stands for what is between a client and the interface: it checks the key, and may do mischief.
type front struct {
	next     http.Handler
	mischief func(w http.ResponseWriter, r *http.Request, n int) bool // true: it answered; n counts requests from 1
	mu       sync.Mutex
	seen     []string
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.seen = append(f.seen, r.Method+" "+r.URL.Path+" "+r.Header.Get("Idempotency-Key"))
	n := len(f.seen)
	f.mu.Unlock()
	if f.mischief != nil && f.mischief(w, r, n) {
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+key {
		api.Refuse(w, r, problem.New(problem.Unauthenticated, "the key is not valid"))
		return
	}
	f.next.ServeHTTP(w, r.WithContext(auth.With(r.Context(), auth.Local())))
}

func (f *front) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

func serve(t *testing.T, h *fakeHub, mischief func(http.ResponseWriter, *http.Request, int) bool) (*client.Client, *front, string) {
	t.Helper()
	f := &front{next: api.New(api.Options{Hub: h, Version: "7"}), mischief: mischief}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	c := client.New(server.URL, key)
	t.Cleanup(c.Close)
	return c, f, server.URL
}

func count(n int) []hub.Numbered[hub.Event] {
	var out []hub.Numbered[hub.Event]
	for i := range n {
		out = append(out, hub.Numbered[hub.Event]{Seq: int64(i + 1), At: time.Unix(1, 0), Event: kernel.Stream{Name: "stdout", Data: fmt.Append(nil, i+1, "\n")}})
	}
	return append(out, hub.Numbered[hub.Event]{Seq: int64(n + 1), Event: kernel.Done{Outcome: kernel.OutcomeOK}})
}

// breaking cuts the connection after some bytes of the answer.
type breaking struct {
	http.ResponseWriter
	left int
}

func (b *breaking) Unwrap() http.ResponseWriter { return b.ResponseWriter }
func (b *breaking) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		_, _ = b.ResponseWriter.Write(p[:len(p)+b.left])
		_ = http.NewResponseController(b.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return b.ResponseWriter.Write(p)
}

func printed(t *testing.T, e kernel.Event) string {
	t.Helper()
	s, ok := e.(kernel.Stream)
	if !ok {
		return fmt.Sprintf("%T", e)
	}
	return string(s.Data)
}

// Whatever breaks the connection, every event comes once and in order.
func TestRunSurvivesBrokenConnections(t *testing.T) {
	t.Parallel()
	h := &fakeHub{events: count(200)}
	var f *front
	c, f, _ := serve(t, h, func(w http.ResponseWriter, r *http.Request, n int) bool {
		if n%4 == 3 {
			panic(http.ErrAbortHandler) // no answer at all
		}
		cut := &breaking{ResponseWriter: w, left: 1500 + 517*n}
		r = r.WithContext(auth.With(r.Context(), auth.Local()))
		f.next.ServeHTTP(cut, r)
		return true
	})
	e, events, err := c.Run(t.Context(), session, api.NewExecution{Code: "1"})
	if err != nil || e.ID != execution {
		t.Fatal(err)
	}
	next := 1
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%d\n", next)
		if next == 201 {
			want = "kernel.Done"
		}
		if got := printed(t, e); got != want {
			t.Fatalf("got %q, wanted %q", got, want)
		}
		next++
	}
	if n := len(f.requests()); next != 202 || n < 4 {
		t.Errorf("%d events in %d connections", next-1, n)
	}
}

func TestGapsAreTold(t *testing.T) {
	t.Parallel()
	h := &fakeHub{events: []hub.Numbered[hub.Event]{{Seq: 5, Gap: true}, {Seq: 6, Event: kernel.Done{Outcome: kernel.OutcomeOK}}}}
	c, _, _ := serve(t, h, nil)
	var got []string
	for e, err := range c.Follow(t.Context(), execution, 2) {
		if g, ok := errors.AsType[*client.Gap](err); ok {
			got = append(got, fmt.Sprintf("gap %d-%d", g.After, g.Until))
			continue
		}
		got = append(got, fmt.Sprintf("%T %v", e, err))
	}
	if !slices.Equal(got, []string{"gap 2-5", "kernel.Done <nil>"}) {
		t.Errorf("%q", got)
	}
}

func TestFollowingEnds(t *testing.T) {
	t.Parallel()
	c, _, _ := serve(t, &fakeHub{events: count(3)[:2]}, nil) // no end
	var last error
	for _, err := range c.Follow(t.Context(), execution, 0) {
		last = err
	}
	if p := problem.Of(last); last == nil || p.Code != "stream_ended" {
		t.Errorf("%v", last)
	}
	for _, err := range c.Follow(t.Context(), "exe_other", 0) {
		last = err
	}
	if problem.Of(last).Code != "execution_not_found" {
		t.Errorf("%v", last)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range c.Follow(ctx, execution, 0) {
		last = err
		cancel()
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("%v", last)
	}
	for _, err := range c.Follow(t.Context(), execution, 0) {
		if err != nil {
			t.Error(err)
		}
		break // lets go of the connection
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	h := &fakeHub{}
	c, _, _ := serve(t, h, nil)
	ask := func(conversation string) (got []string, last error) {
		one, events, err := c.Ask(t.Context(), conversation, api.NewTurn{Prompt: "?"})
		if err != nil || one.ID != turn || one.Prompt != "?" {
			t.Fatalf("%+v %v", one, err)
		}
		for e, err := range events {
			got = append(got, fmt.Sprintf("%T", e))
			last = err
		}
		return got, last
	}
	for _, conversation := range []string{"", "cnv_1"} {
		if got, err := ask(conversation); err != nil || !slices.Equal(got, []string{"loop.Text", "loop.Answer"}) {
			t.Errorf("%q %v", got, err)
		}
	}
	h.answer = problem.New(problem.ModelAuth, "the model's key is not right").WithHint("set it")
	if _, err := ask(""); problem.Of(err).Code != "model_auth" || problem.Of(err).Hint != "set it" || problem.Of(err).Kind != problem.Denied {
		t.Errorf("%v", err)
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	c, _, _ := serve(t, &fakeHub{}, nil)
	var phases []string
	got, err := c.Install(t.Context(), session, []string{"polars"}, func(i kernel.Install) { phases = append(phases, i.Progress.Phase) })
	if err != nil || len(got.Provision.Installed) != 1 || got.Provision.Installed[0].Name != "polars" {
		t.Errorf("%+v %v", got, err)
	}
	if len(phases) > 1 { // progress is told while there is time for it
		t.Errorf("%q", phases)
	}
	if _, err := c.Install(t.Context(), session, []string{"bad"}, nil); problem.Of(err).Code != "package_unknown" {
		t.Errorf("%v", err)
	}
}

func TestErrorsAreTheServers(t *testing.T) {
	t.Parallel()
	c, _, address := serve(t, &fakeHub{}, nil)
	_, err := c.Session(t.Context(), "ses_other")
	if p := problem.Of(err); p.Kind != problem.NotFound || p.Code != "session_not_found" || p.Message != "there is no such session" || p.Hint != "list them" {
		t.Errorf("%+v", p)
	}
	if _, err := client.New(address, "wrong").Session(t.Context(), session); problem.Of(err).Code != "unauthenticated" {
		t.Errorf("%v", err)
	}
	if v, err := client.New(address+"/api/v1/", key).Version(t.Context()); err != nil || v.Version != "7" {
		t.Errorf("%v %v", v, err)
	}
}

// No failure of any kind has the key in its words, and nobody but the server gets it.
func TestKeyStaysSecret(t *testing.T) {
	t.Parallel()
	var leaked []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked = append(leaked, r.Header.Get("Authorization")) }))
	defer other.Close()
	answers := map[string]http.HandlerFunc{
		"server_unexpected": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"server_unexpected, by a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
		"server_unreachable": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"internal":           func(w http.ResponseWriter, r *http.Request) { api.Refuse(w, r, problem.Of(errors.New("oops"))) },
	}
	for code, answer := range answers {
		server := httptest.NewServer(answer)
		_, err := client.New(server.URL, key).Session(t.Context(), session)
		server.Close()
		want, _, _ := strings.Cut(code, ",")
		if err == nil || problem.Of(err).Code != want || strings.Contains(fmt.Sprintf("%+v", err), "canary") {
			t.Errorf("%s: %v", code, err)
		}
	}
	for _, address := range []string{"", "localhost:8080", "ftp://x", "http://", "http://" + key + "@host", "::"} {
		if _, err := client.New(address, key).Version(t.Context()); err == nil || problem.Of(err).Code != "server_address" || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v", address, err)
		}
	}
	if len(leaked) > 0 {
		t.Errorf("another server got %q", leaked)
	}
}

func TestOnlyWhatMayBeRepeatedIs(t *testing.T) {
	t.Parallel()
	busy := func(w http.ResponseWriter, r *http.Request, n int) bool {
		if n%3 == 0 {
			return false
		}
		if n%3 == 2 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Retry-After", "0")
		api.Refuse(w, r, problem.New(problem.DatabaseUnavailable, "the database is down"))
		w.Header().Del("Retry-After")
		return true
	}
	h := &fakeHub{}
	c, f, _ := serve(t, h, func(w http.ResponseWriter, r *http.Request, n int) bool {
		if n%3 == 1 { // the problem's Retry-After is seconds; the test has no time for them
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		return busy(w, r, n)
	})
	if _, err := c.CreateSession(t.Context(), api.NewSession{Name: "once"}); err != nil || !slices.Equal(h.made, []string{"once"}) {
		t.Errorf("%v %q", err, h.made)
	}
	seen := f.requests()
	if len(seen) != 3 || seen[0] != seen[1] || seen[1] != seen[2] || len(strings.Fields(seen[0])) != 3 {
		t.Errorf("%q", seen)
	}
	if _, err := c.Session(t.Context(), session); err != nil || len(f.requests()) != 6 {
		t.Errorf("%v %q", err, f.requests())
	}
	if _, err := c.ChangeSession(t.Context(), session, api.SessionChange{}); problem.Of(err).Code != "server_unexpected" || len(f.requests()) != 7 {
		t.Errorf("%v %q", err, f.requests())
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	c, _, _ := serve(t, &fakeHub{}, nil)
	var ids []string
	for s, err := range c.Sessions(t.Context(), client.SessionFilter{State: "paused"}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	if !slices.Equal(ids, []string{"a", "b", "c"}) {
		t.Errorf("%q", ids)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	h := &fakeHub{content: map[string]string{}}
	broken := false
	var f *front
	c, f, _ := serve(t, h, func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if broken {
			f.next.ServeHTTP(&breaking{ResponseWriter: w, left: 5}, r.WithContext(auth.With(r.Context(), auth.Local())))
		}
		return broken
	})
	const name = "data/100% näher?.csv"
	if e, err := c.Upload(t.Context(), session, name, strings.NewReader("0123456789")); err != nil || e.Path != name || h.content[name] != "0123456789" {
		t.Errorf("%+v %v", e, err)
	}
	var to bytes.Buffer
	if n, err := c.Download(t.Context(), session, name, &to); err != nil || n != 10 || to.String() != "0123456789" {
		t.Errorf("%d %v %s", n, err, &to)
	}
	broken = true
	if _, err := c.Download(t.Context(), session, name, io.Discard); problem.Of(err).Code != "server_unreachable" {
		t.Errorf("half a file passed for a file: %v", err)
	}
}

// TestUntrusted wants a certificate that nobody vouches for to be told apart from a server that is not there.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	_, err := client.New(server.URL, key).Version(t.Context())
	if p := problem.Of(err); p == nil || p.Code != "server_untrusted" || !strings.Contains(p.Hint, "SSL_CERT_FILE") {
		t.Errorf("got %v", err)
	}
}
