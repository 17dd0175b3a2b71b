package librechat

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/machine/workspace"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// noHub has nothing: what a test asks of it is refused before.
type noHub struct{ Hub }

func (noHub) Files(context.Context, auth.Principal, string, hub.Page) (l hub.Listing[hub.File], err error) {
	return l, nil
}

func (noHub) File(context.Context, auth.Principal, string) (hub.File, error) {
	return hub.File{Purpose: "somebody's"}, nil
}

func (noHub) Tree(context.Context, auth.Principal, string, bool, func(context.Context, hub.Tree) error) error {
	return problem.New(problem.SessionNotFound, "there is no such session")
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	h := New(Options{Hub: noHub{}})
	id := strings.Repeat("a", 21)
	for name, c := range map[string]struct {
		role               auth.Role
		method, path, body string
		status             int
		code               string
	}{
		"nobody":            {"", "POST", "exec", `{}`, 401, "unauthenticated"},
		"a viewer":          {auth.Viewer, "POST", "exec", `{"lang":"py","code":"1"}`, 403, "forbidden"},
		"no JSON":           {auth.Owner, "POST", "exec", `{`, 422, "invalid_request"},
		"no code":           {auth.Owner, "POST", "exec", `{"lang":"py"}`, 422, "invalid_request"},
		"another language":  {auth.Owner, "POST", "exec", `{"lang":"rs","code":"1"}`, 422, "invalid_request"},
		"args":              {auth.Owner, "POST", "exec", `{"lang":"py","code":"1","args":[1]}`, 422, "invalid_request"},
		"too many files":    {auth.Owner, "POST", "exec", `{"lang":"py","code":"1","files":[` + strings.Repeat(`{},`, 200) + `{}]}`, 422, "invalid_request"},
		"a long hint":       {auth.Owner, "POST", "exec", `{"lang":"py","code":"1","runtime_session_hint":"` + strings.Repeat("x", 1001) + `"}`, 422, "invalid_request"},
		"no form":           {auth.Owner, "POST", "upload", `{}`, 422, "invalid_request"},
		"no such storage":   {auth.Owner, "GET", "files/" + id, ``, 404, "file_not_found"},
		"another's file":    {auth.Owner, "GET", "download/" + id + "/" + id, ``, 404, "file_not_found"},
		"no id":             {auth.Owner, "GET", "sessions/x/objects/y", ``, 404, "file_not_found"},
		"nothing there":     {auth.Owner, "GET", "nothing", ``, 404, "route_not_found"},
		"a file to be gone": {auth.Owner, "DELETE", "files/" + id + "/" + id, ``, 404, "file_not_found"},
	} {
		ctx := t.Context()
		if c.role != "" {
			who := auth.Local()
			who.Role = c.role
			ctx = auth.With(ctx, who)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, c.method, "/librechat/"+c.path, strings.NewReader(c.body)))
		var got struct{ Error, Message string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != c.status || got.Error != c.code || got.Message == "" {
			t.Errorf("%s: %d %s, %v", name, w.Code, w.Body, err)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/librechat/health", nil))
	if w.Code != 200 {
		t.Errorf("health: %d", w.Code)
	}
}

func TestRefusalsThatPassBy(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	Refuse(w, problem.New(problem.QueueFull, "too many"))
	if w.Code != 429 || w.Body.String() != `{"error":"rate_limited","message":"too many","retry_after_seconds":5}` || w.Header().Get("Retry-After") != "5" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestPlaces: a file is put below the workspace, whatever its name says.
// TestProgramsOutputIsBounded has a program write more than an answer has room for, to both of its streams, and bytes that are no text.
func TestProgramsOutputIsBounded(t *testing.T) {
	t.Parallel()
	var a answer
	out := newText(10)
	out.stdout("a\xff")
	out.stderr("w")
	if out.into(&a); a.Stdout != "a\ufffd" || a.Stderr != "w" || a.Message != nil {
		t.Errorf("%q, %q, %v", a.Stdout, a.Stderr, a.Message)
	}
	out.stdout("much more than there is room for")
	out.stderr("nor is there room for this")
	if out.into(&a); a.Stdout != "a\ufffdmuch mo" || !strings.HasPrefix(a.Stderr, "w\n") || a.Message == nil || !strings.Contains(a.Stderr, "10 bytes") || strings.Contains(a.Stderr, "nor") {
		t.Errorf("%q, %q, %v", a.Stdout, a.Stderr, a.Message)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"a.csv": "a.csv", "/mnt/data/b/a.csv": "b/a.csv", "../../etc/passwd": "etc/passwd", "/x": "x", "": "id", "..": "id"} {
		if got := (input{ID: "id", Name: name}).place(); got != want {
			t.Errorf("%q is put at %q", name, got)
		}
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	at := time.Unix(1, 0)
	before := []workspace.Entry{{Path: "a", Stamp: "1"}, {Path: "b", Stamp: "1"}, {Path: "c", Modified: at}, {Path: "gone"}}
	after := []workspace.Entry{{Path: "a", Stamp: "1"}, {Path: "b", Stamp: "2"}, {Path: "c", Modified: at.Add(1)}, {Path: "new"}}
	all := ""
	for _, e := range changed(before, after) {
		all += e.Path + " "
	}
	if all != "b c new " {
		t.Error(all)
	}
	if n := len(changed(nil, make([]workspace.Entry, 1000))); n != mostOutputs {
		t.Errorf("%d files are named", n)
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	var a answer
	a.exit(process.Exit{Signal: "SIGKILL", Reason: process.ForTime})
	if a.Code != 137 || *a.Signal != "SIGKILL" || !strings.Contains(a.Stderr, "longer") {
		t.Errorf("%+v", a)
	}
	a = answer{}
	a.done(kernel.Done{Outcome: kernel.OutcomeTimeout, Message: "too long"})
	if a.Code != 1 || *a.Message != "too long" {
		t.Errorf("%+v", a)
	}
	a = answer{}
	if a.done(kernel.Done{Outcome: kernel.OutcomeError, ExitCode: 3}); a.Code != 3 || a.Message != nil {
		t.Errorf("%+v", a)
	}
}
