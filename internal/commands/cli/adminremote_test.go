package cli_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/http/api"
	"cove/internal/server/auth"
)

// served is the real API on a database, and how the command line reaches both.
type served struct {
	t        *testing.T
	address  string
	database string
	key      string // of the local user, an admin of the server
}

func withAPI(t *testing.T) *served {
	t.Helper()
	s := &served{t: t, database: filepath.Join(t.TempDir(), "cove.db")}
	r, err := records(t.Context(), s.database, config.Default(environment), cli.RecordsOptions{Command: "test"})
	if err != nil {
		t.Fatal(err)
	}
	_, s.key, err = r.Accounts.CreateKey(t.Context(), auth.Local(), auth.NewKey{Name: "first"})
	if err != nil {
		t.Fatal(err)
	}
	handler := api.New(api.Options{Hub: r.Hub, Accounts: r.Accounts, Audit: r.Audit, ProjectQuota: api.Quota{Tokens: 5000}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		who, err := r.Accounts.Authenticate(req.Context(), strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "))
		if err != nil {
			t.Error(err)
		}
		handler.ServeHTTP(w, req.WithContext(auth.With(req.Context(), who)))
	}))
	s.address = server.URL
	t.Cleanup(func() {
		server.Close()
		r.Accounts.Wait()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// as runs a command on the server with a key.
func (s *served) as(key string, args ...string) result {
	s.t.Helper()
	return run(s.t, &scripted{}, func(_ string, p *cli.Program) {
		p.Config.Remote.Server, p.Config.Remote.Key = s.address, key
	}, args...)
}

// must is as with the key of an admin, of a command that succeeds; it returns the output without its end of line.
func (s *served) must(args ...string) string {
	s.t.Helper()
	r := s.as(s.key, args...)
	if r.code != 0 {
		s.t.Fatalf("%v: exit code %d: %s", args, r.code, r.err)
	}
	return strings.TrimSuffix(r.out, "\n")
}

// TestAdministrationByTheAPI does with a server all that the commands do with the database of this machine, and finds the same there.
func TestAdministrationByTheAPI(t *testing.T) {
	t.Parallel()
	s := withAPI(t)
	project, user := s.must("project", "add", "lab"), s.must("user", "add", "ada", "--project", "lab", "--role", "admin")
	if !strings.HasPrefix(project, "prj_") || !strings.HasPrefix(user, "usr_") {
		t.Errorf("%q and %q", project, user)
	}
	ada := s.must("key", "create", "--name", "ada's", "--project", "lab", "--user", "ada", "--expires", "30d")
	if hex := s.must("key", "create", "--name", "for E2B", "--e2b"); !strings.HasPrefix(hex, "e2b_") {
		t.Errorf("the key is %q", hex)
	}
	if out := s.must("project", "member", "lab", "ada", "owner"); out != "ada is owner in lab" {
		t.Error(out)
	}
	if out := s.must("project", "quota", "lab", "--sessions", "3"); out != `the quota of lab is {"live_sessions":3,"tokens_per_day":5000}` {
		t.Errorf("what was not given is not the server's default: %s", out)
	}
	if out := s.must("project", "quota", "lab", "--cpu-seconds", "60"); !strings.Contains(out, `"live_sessions":3,"cpu_seconds_per_day":60,"tokens_per_day":5000`) {
		t.Error(out)
	}
	if out := s.must("user", "invite", "--project", "lab", "--role", "viewer"); !strings.HasPrefix(out, s.address+"/#invitation=") {
		t.Error(out)
	}
	for _, args := range [][]string{{"user", "ls", "--json"}, {"project", "ls", "--json"}, {"key", "ls", "--json"}, {"key", "ls", "--json", "--project", "lab"}, {"key", "ls", "--json", "--all-projects"},
		{"user", "ls"}, {"project", "ls"}, {"key", "ls"}, {"key", "ls", "--all-projects"}, {"audit", "--action", "key"}, {"audit", "--json", "--project", "lab"}, {"usage", "--json"}, {"usage", "--models"}} {
		var there, here result
		for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // when a key was last used is written a moment later
			there = s.as(s.key, append([]string{}, args...)...)
			here = run(t, &scripted{}, func(_ string, p *cli.Program) { p.Records = recordsAt(s.database) }, args...)
			if there.out == here.out || time.Now().After(end) {
				break
			}
		}
		if there.code != 0 || there.out != here.out || there.err != here.err {
			t.Errorf("%v: on the server\n%s%s\nhere\n%s%s", args, there.out, there.err, here.out, here.err)
		}
	}
	if r := s.as(s.key, "key", "ls"); !strings.Contains(r.err, "not listed: 1 key of other projects; --all-projects lists all") {
		t.Errorf("nothing is said of other projects' keys: %s", r.err)
	}
	var keys []struct{ ID, Project, Name string }
	if err := json.Unmarshal([]byte(s.as(ada, "key", "ls", "--json").out), &keys); err != nil || len(keys) != 1 || keys[0].Project != project {
		t.Errorf("ada sees the keys %+v (%v)", keys, err)
	}
	if out := s.must("key", "revoke", keys[0].ID); out != "key "+keys[0].ID+" (ada's) is revoked" {
		t.Error(out)
	}
	if out := s.must("user", "rm", "ada"); !strings.Contains(out, "removed") {
		t.Error(out)
	}
}

// TestRightsOfAKey wants what a key may not do to be refused with the right that is missing, and what is for this machine alone by its name.
func TestRightsOfAKey(t *testing.T) {
	t.Parallel()
	s := withAPI(t)
	s.must("user", "add", "ada")
	member := s.must("key", "create", "--name", "a", "--user", "ada")
	reader := s.must("key", "create", "--name", "r", "--scope", "sessions:read")
	for _, c := range []struct {
		key  string
		args []string
		want string
	}{
		{member, []string{"user", "ls"}, "server:manage"},
		{member, []string{"user", "add", "eve"}, "server:manage"},
		{member, []string{"user", "rm", "ada"}, "server:manage"},
		{member, []string{"user", "invite"}, "users:manage"},
		{member, []string{"project", "add", "x"}, "server:manage"},
		{member, []string{"project", "quota", "local", "--sessions", "1"}, "server:manage"},
		{member, []string{"project", "member", "local", "ada", "owner"}, "users:manage"},
		{member, []string{"key", "ls", "--all-projects"}, "server:manage"},
		{member, []string{"key", "create", "--name", "x", "--user", "local"}, "for their own use only"},
		{member, []string{"audit"}, "audit:read"},
		{member, []string{"usage", "--project", "none"}, "no such project"},
		{reader, []string{"usage"}, "usage:read"},
		{reader, []string{"key", "ls"}, "keys:manage"},
		{reader, []string{"key", "create", "--name", "x"}, "keys:manage"},
		{s.key, []string{"key", "create", "--name", "x", "--holder", "y"}, "--holder is for this machine only"},
		{s.key, []string{"key", "ls", "--config", "x.toml"}, "--config is for this machine only"},
		{s.key, []string{"key", "ls", "--project", "a", "--all-projects"}, "exclude each other"},
		{"", []string{"key", "create", "--name", "x"}, "--server ''"},
	} {
		if r := s.as(c.key, c.args...); r.code != 125 || !strings.Contains(r.err, c.want) {
			t.Errorf("%v: exit code %d, %q, want %q", c.args, r.code, r.err, c.want)
		}
	}
	if r := s.as(member, "project", "ls"); r.code != 0 || !strings.Contains(r.out, "local") {
		t.Errorf("a member sees no project: %s%s", r.out, r.err)
	}
}

// recordsAt opens that database.
func recordsAt(file string) func(context.Context, config.Config, cli.RecordsOptions) (*cli.Records, error) {
	return func(ctx context.Context, c config.Config, o cli.RecordsOptions) (*cli.Records, error) {
		return records(ctx, file, c, o)
	}
}
