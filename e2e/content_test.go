package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/testkit/testneeds"
)

// TestCodeIsLookedAt: what a look at code finds is with the execution, and a project's rules keep code from running.
func TestCodeIsLookedAt(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
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
	for _, approved := range []bool{false, true} {
		c := newCommand(t, append([]string{"run", "--server", s.base, "-c", code}, map[bool][]string{true: {"--approved"}}[approved]...)...)
		c.setenv("COVE_KEY=" + s.key)
		if r := c.run(); approved != (r.code == 0) || approved == strings.Contains(r.stderr, "look at the code, and add --approved") {
			t.Errorf("cove run, approved %v: %+v", approved, r)
		}
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

// TestSecretsAreTakenOut prints keys in several ways: they are in no event, in no record and in nothing that a model is told, and are counted.
func TestSecretsAreTakenOut(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), testKey(t), "COVE_PACKAGES=minimal")
	session := s.session()
	const made = "import random, sys, time\nrandom.seed(1)\nkey = 'AK' + 'IA' + ''.join(random.choices('ABCDEFGHIJKLMNOP', k=16))\nopen('key.txt', 'w').write(key)\n"
	var e api.Execution
	s.must(http.MethodPost, "/api/v1/sessions/"+session+"/executions", map[string]any{"code": made + "print('the key is', key)\nprint(key[:9], end='', flush=True); time.sleep(0.2); print(key[9:])\nprint('x' * 70000 + ' ' + key, file=sys.stderr)\nraise ValueError(key)"}, &e)
	_, text := files{t, s, session}.send(http.MethodGet, "/api/v1/sessions/"+session+"/fs/content?path=key.txt", nil)
	key := string(text)
	if len(key) != 20 {
		t.Fatalf("the file has %q", key)
	}
	all := ""
	for _, event := range e.Events {
		all += string(event)
	}
	if strings.Contains(all, key) || strings.Contains(all, key[9:]) || strings.Count(all, "[redacted aws-access-key]") < 4 || e.Redacted["aws-access-key"] < 4 || e.State != "error" {
		t.Errorf("%v, %s: %.2000s", e.Redacted, e.State, all)
	}
	again, err := s.call(t.Context(), http.MethodGet, "/api/v1/executions/"+e.ID, nil)
	if err != nil || strings.Contains(string(again.body), key) || !strings.Contains(string(again.body), `"redacted":{"aws-access-key":`) {
		t.Errorf("the record: %s, %v", again.body, err)
	}
	if got := s.says(session, "print(open('key.txt').read() == key)\n{'k': key}"); got != "True\n" {
		t.Errorf("code itself has %q", got)
	}
	const odd = "import IPython\nprint('\\x1b[31m' + key + '\\x1b[0m')\nIPython.display.display({'text/plain': 'x', 'text/' + key: 'y'}, raw=True, metadata={'a': {key: [key]}})\nraise type(key, (Exception,), {})('x')"
	s.must(http.MethodPost, "/api/v1/sessions/"+session+"/executions", map[string]any{"code": odd}, &e)
	all = ""
	for _, event := range e.Events {
		all += string(event)
	}
	if strings.Contains(all, key) || e.Redacted["aws-access-key"] < 5 || !strings.Contains(all, `"text/[redacted aws-access-key]":"y"`) {
		t.Errorf("in odd places: %v: %.2000s", e.Redacted, all)
	}
	if seen := s.must(http.MethodGet, "/api/v1/sessions/"+session+"/kernels/main/variables", nil, nil); strings.Contains(string(seen.body), key) || !strings.Contains(string(seen.body), "[redacted aws-access-key]") {
		t.Errorf("the variables: %s", seen.body)
	}
	off := startServer(t, t.TempDir(), testKey(t), "COVE_PACKAGES=minimal", "COVE_REDACT=off")
	if got := off.says(off.session(), made+"print(key)"); got != key+"\n" {
		t.Errorf("where nothing is taken out: %q", got)
	}
}
