package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"cove/internal/api"
	"cove/internal/problem"
)

// TestCodeIsLookedAt: what a look at code finds is with the execution, and a project's rules keep code from running.
func TestCodeIsLookedAt(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), testKey(t), "COVE_PACKAGES=minimal")
	session := s.session()
	const code = "import os\nprint(os.path.exists('/root/.aws/credentials'))"
	run := func(more map[string]any) reply {
		t.Helper()
		body := map[string]any{"code": code}
		for k, v := range more {
			body[k] = v
		}
		r, err := s.call(t.Context(), http.MethodPost, "/api/v1/sessions/"+session+"/executions", body)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var e api.Execution
	s.must(http.MethodPost, "/api/v1/sessions/"+session+"/executions", map[string]any{"code": code}, &e)
	if len(e.Cautions) != 1 || e.Cautions[0].Rule != "reads-credentials" || e.Cautions[0].Line != 2 || !e.Cautions[0].Serious || e.State != "ok" {
		t.Errorf("noted: %+v", e)
	}
	var projects struct{ Items []struct{ ID string } }
	s.must(http.MethodGet, "/api/v1/projects", nil, &projects)
	of := "/api/v1/projects/" + projects.Items[0].ID + "/quota"
	quota := func(policy string, rules ...string) {
		t.Helper()
		s.must(http.MethodPut, of, map[string]any{"code": map[string]any{"policy": policy, "rules": rules}}, nil)
		for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) { // quotas are kept in mind for some seconds
			r := run(nil)
			if (policy == "ask") == strings.Contains(string(r.body), string(problem.CodeUnapproved)) && (policy == "refuse") == strings.Contains(string(r.body), string(problem.CodeRefused)) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("with %s: %d %s", policy, r.status, r.body)
			}
		}
	}
	quota("ask")
	if r := run(map[string]any{"approved": true}); r.status/100 != 2 {
		t.Errorf("approved: %d %s", r.status, r.body)
	}
	quota("refuse")
	if r := run(map[string]any{"approved": true}); r.status != http.StatusBadRequest || !strings.Contains(string(r.body), "It names files in which credentials are kept (line 2)") {
		t.Errorf("refused: %d %s", r.status, r.body)
	}
	quota("off")
	s.must(http.MethodPost, "/api/v1/sessions/"+session+"/executions", map[string]any{"code": code}, &e)
	r, err := s.call(t.Context(), http.MethodPut, of, map[string]any{"code": map[string]any{"policy": "ask", "rules": []string{"nonsense"}}})
	if err != nil || !strings.Contains(string(r.body), string(problem.CodeRulesInvalid)) {
		t.Errorf("no such rule: %d %s, %v", r.status, r.body, err)
	}
}
