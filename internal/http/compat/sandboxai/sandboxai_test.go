package sandboxai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// fakeHub has the sessions that it was given, and makes more.
type fakeHub struct {
	Hub
	sessions []hub.Session
	full     bool
}

func (f *fakeHub) Sessions(_ context.Context, _ auth.Principal, filter hub.SessionFilter, _ hub.Page) (all hub.Listing[hub.Session], err error) {
	for _, s := range f.sessions {
		if s.Metadata[placeEntry] == filter.Meta[placeEntry] {
			all.Items = append(all.Items, s)
		}
	}
	return all, nil
}

func (f *fakeHub) CreateSession(_ context.Context, _ auth.Principal, n hub.NewSession) (hub.Session, error) {
	if f.full {
		return hub.Session{}, problem.New(problem.QuotaSessions, "there are too many sessions")
	}
	s := hub.Session{ID: "session_01", Metadata: n.Metadata, Network: n.Network}
	f.sessions = append(f.sessions, s)
	return s, nil
}

func (f *fakeHub) DeleteSession(context.Context, auth.Principal, string) error {
	f.sessions[0].State = hub.SessionDeleted
	return nil
}

func (f *fakeHub) WidestNetwork(context.Context, auth.Principal) (*hub.Network, error) {
	return &hub.Network{Allow: []string{"example.com"}}, nil
}

func (f *fakeHub) StartExecution(context.Context, auth.Principal, hub.NewExecution) (hub.Execution, error) {
	return hub.Execution{}, errors.New("kingfisher")
}

func ask(t *testing.T, f *fakeHub, role auth.Role, method, path, body string) (status int, answer map[string]any) {
	t.Helper()
	ctx := t.Context()
	if role != "" {
		who := auth.Local()
		who.Role = role
		ctx = auth.With(ctx, who)
	}
	w := httptest.NewRecorder()
	Surfaces(Options{Hub: f, MaxBody: 1 << 10})[0].Handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, prefix+path, strings.NewReader(body)))
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
	}
	return w.Code, answer
}

func TestSandboxes(t *testing.T) {
	t.Parallel()
	f := &fakeHub{}
	status, made := ask(t, f, auth.Owner, "POST", "one/sandboxes", `{"name":"lab","spec":{"image":"substratusai/sandboxai-box:v0.2.0","env":{"A":"1"}}}`)
	if status != 201 || made["name"] != "lab" || made["uid"] != "01" || f.sessions[0].Network == nil {
		t.Errorf("made: %d %v, %+v", status, made, f.sessions)
	}
	if status, got := ask(t, f, auth.Owner, "GET", "one/sandboxes/lab", ""); status != 200 || got["uid"] != "01" || got["spec"].(map[string]any)["env"].(map[string]any)["A"] != "1" {
		t.Errorf("got: %d %v", status, got)
	}
	if status, _ := ask(t, f, auth.Owner, "GET", "two/sandboxes/lab", ""); status != 404 {
		t.Errorf("of another space: %d", status)
	}
	if status, _ := ask(t, f, auth.Owner, "POST", "one/sandboxes", `{"name":"lab","spec":{}}`); status != 409 {
		t.Errorf("of the same name: %d", status)
	}
	if status, _ := ask(t, f, auth.Owner, "DELETE", "one/sandboxes/lab", ""); status != 204 {
		t.Errorf("deleted: %d", status)
	}
	if status, _ := ask(t, f, auth.Owner, "GET", "one/sandboxes/lab", ""); status != 404 {
		t.Errorf("one that was deleted: %d", status)
	}
	if _, made := ask(t, f, auth.Owner, "POST", "one/sandboxes", `{"spec":{}}`); !strings.HasPrefix(made["name"].(string), "sbx-") {
		t.Errorf("without a name: %v", made)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	there := hub.Session{ID: "session_01", Metadata: map[string]string{placeEntry: "one/lab", specEntry: "{}"}}
	for name, c := range map[string]struct {
		role               auth.Role
		method, path, body string
		status             int
		says               string
	}{
		"nobody":         {"", "POST", "one/sandboxes", `{}`, 401, "KEY@HOST"},
		"a viewer":       {auth.Viewer, "POST", "one/sandboxes", `{}`, 403, ""},
		"no JSON":        {auth.Owner, "POST", "one/sandboxes", `{`, 422, "not what"},
		"a long body":    {auth.Owner, "POST", "one/sandboxes", `{"name":"` + strings.Repeat("x", 2000) + `"}`, 413, "longer"},
		"a name":         {auth.Owner, "POST", "one/sandboxes", `{"name":"../x","spec":{}}`, 422, "names of spaces"},
		"a space":        {auth.Owner, "POST", "%2E%2E/sandboxes", `{"spec":{}}`, 422, "names of spaces"},
		"an image":       {auth.Owner, "POST", "one/sandboxes", `{"spec":{"image":"debian"}}`, 422, "no image debian"},
		"a variable":     {auth.Owner, "POST", "one/sandboxes", `{"spec":{"env":{"A B":"1"}}}`, 400, "A B"},
		"no sessions":    {auth.Owner, "POST", "one/sandboxes", `{"spec":{}}`, 429, "too many sessions"},
		"no sandbox":     {auth.Owner, "POST", "one/sandboxes/two/tools:run_ipython_cell", `{"code":"1"}`, 404, "no sandbox"},
		"a fault":        {auth.Owner, "POST", "one/sandboxes/lab/tools:run_ipython_cell", `{"code":"1"}`, 500, ""},
		"another tool":   {auth.Owner, "POST", "one/sandboxes/lab/tools:run", `{}`, 404, "nothing at"},
		"another method": {auth.Owner, "PUT", "one/sandboxes/lab", `{}`, 404, "nothing at"},
	} {
		status, got := ask(t, &fakeHub{sessions: []hub.Session{there}, full: true}, c.role, c.method, c.path, c.body)
		if text, _ := got["message"].(string); status != c.status || !strings.Contains(text, c.says) || text == "" || strings.Contains(text, "kingfisher") {
			t.Errorf("%s: %d %v", name, status, got)
		}
	}
}

// TestOutput: what code emits becomes one text as IPython writes it, or two, within a bound.
func TestOutput(t *testing.T) {
	t.Parallel()
	o := &output{room: 60}
	for _, e := range []kernel.Event{
		kernel.Stream{Name: "stdout", Data: []byte("a\xff")}, kernel.Stream{Name: "stderr", Data: []byte("w")}, kernel.Result{Data: kernel.Bundle{"text/plain": "42"}},
		kernel.Result{Data: kernel.Bundle{"text/plain": "1\n2"}}, kernel.Error{Traceback: []string{"E: x"}, Hint: "do so"}, kernel.ClearOutput{},
	} {
		o.take(e)
	}
	if got := o.answer(false, 60)["output"]; got != "a\ufffdwOut[1]: 42\nOut[1]: \n1\n2\nE: x\ndo so\n" {
		t.Errorf("%q", got)
	}
	if got := o.answer(true, 60); got["stderr"] != "w" || got["output"] != nil {
		t.Errorf("%q", got)
	}
	o.stdout(strings.Repeat("x", 100))
	if got := o.answer(false, 60)["output"].(string); len(got) > 160 || !strings.Contains(got, "60 bytes") {
		t.Errorf("%q", got)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{"cove:k": "k", "k:": "k", "": "", ":": ""} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		if header != "" {
			name, password, _ := strings.Cut(header, ":")
			r.SetBasicAuth(name, password)
		}
		if got := strings.Join(keys(r), " "); got != want {
			t.Errorf("%q: %q", header, got)
		}
	}
}
