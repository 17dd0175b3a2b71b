package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"cove/internal/testkit/testneeds"
)

// TestAdministrationOfAServer does each command for sessions and for administration with a server, in pipes, by the names and the ids that the commands before have printed.
func TestAdministrationOfAServer(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t), "COVE_QUOTA_PROJECT_TOKENS=5000")
	as := func(key string, args ...string) result {
		c := newCommand(t, args...)
		c.setenv("COVE_SERVER="+s.base, "COVE_KEY="+key)
		return c.run()
	}
	has := func(want string, args ...string) string {
		t.Helper()
		r := as(s.key, args...)
		if r.code != 0 || !strings.Contains(r.stdout+r.stderr, want) {
			t.Errorf("%v: %+v, want %q", args, r, want)
		}
		return strings.TrimSuffix(r.stdout, "\n")
	}
	t.Run("accounts", func(t *testing.T) {
		project := has("prj_", "project", "add", "lab")
		has("usr_", "user", "add", "ada", "--project", "lab", "--role", "admin")
		has("is member in", "project", "member", "lab", "ada", "member")
		has(`{"live_sessions":2`, "project", "quota", "lab", "--sessions", "2")
		has(project, "project", "ls")
		has(s.base+"/#invitation=", "user", "invite", "--project", "lab")
		key := has("cove_", "key", "create", "--name", "ada's", "--user", "ada", "--project", "lab", "--scope", "sessions:read,keys:manage")
		has("not listed: 1 key of other projects", "key", "ls")
		has("lab", "key", "ls", "--all-projects")
		has("ada", "user", "ls", "--json")
		if r := as(key, "user", "ls"); r.code != 125 || !strings.Contains(r.stderr, "server:manage") {
			t.Errorf("what the key may not do: %+v", r)
		}
		var keys []struct{ ID, Project string }
		if err := json.Unmarshal([]byte(as(key, "key", "ls", "--json").stdout), &keys); err != nil || len(keys) != 1 || keys[0].Project != project {
			t.Errorf("%+v, %v", keys, err)
		}
		has("is revoked", "key", "revoke", key)
		if r := as(key, "session", "ls"); r.code != 125 {
			t.Errorf("a key that was revoked: %+v", r)
		}
		has("is removed", "user", "rm", "ada")
		has("user.delete", "audit", "--action", "user")
		has(`"action":"key.create"`, "audit", "--json", "--limit", "100")
		has("", "models", "--json")
	})
	has("", "run", "-q", "--session", "lab", "-c", "x = 1")
	var list []struct {
		ID, Name, State string
		Executions      int
	}
	if err := json.Unmarshal([]byte(has("lab", "session", "ls", "--json")), &list); err != nil || len(list) != 1 || list[0].Name != "lab" || list[0].State != "running" || list[0].Executions != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	id := list[0].ID
	has("EXECUTIONS", "session", "ls")
	has("kernels       main", "session", "show", id)
	s.must(http.MethodPost, "/api/v1/sessions/"+id+"/points", nil, nil)
	has("", "run", "-q", "--session", "lab", "-c", "x = 2")
	has("session lab is paused; that took ", "session", "pause", "lab")
	has("is paused already", "session", "pause", id)
	has("session copy goes on from where lab is", "session", "fork", "lab", "copy")
	has("session copy is in memory", "session", "resume", "copy", "--for", "2h")
	has("2h without use", "session", "show", "copy")
	has("session lab is as it was at ", "session", "undo", "lab")
	if out := has("", "run", "-q", "--session", "lab", "-c", "x"); out != "1" {
		t.Errorf("after undo x is %q", out)
	}
	if out := has("", "run", "-q", "--session", "copy", "-c", "x"); out != "2" {
		t.Errorf("in the fork x is %q", out)
	}
	has("EXECUTIONS", "usage")
	for _, c := range []struct{ flag, value, want string }{{"--cpus", "999", "are more than the server's machine has"}, {"--memory", "900G", "of memory that a session of this server may have"}} {
		if r := as(s.key, "run", c.flag, c.value, "-c", "1"); r.code != 125 || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: %+v", c.flag, r)
		}
	}
	has(`"copy"`, "session", "rm", "copy", "--json")
	has("", "session", "rm", "--all")
	has("there are no sessions", "session", "ls")
}
