package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/llm/model"
	"cove/internal/server/hub"
)

// oneSession is what a server says of one.
const oneSession = `{"id":"ses_06f1k3t3y4m0v8s2k5r7w9x1z4","name":"lab","state":"active","packages":"standard","memory_bytes":2147483648,"cpus":2,"idle_seconds":900,"executions":3,` +
	`"disk_bytes":1048576,"created_at":"2026-11-21T10:00:00Z","used_at":"2026-11-21T11:00:00Z","project":"prj_1","user":"usr_1","metadata":{},"forked_from":"ses_06f1k3t3y4m0v8s2k5r7w9x1z3"}`

// someSessions is a server with these sessions that answers anything else with its first one, and notes what was asked.
func someSessions(t *testing.T, asked *[]string, list ...string) func(args ...string) result {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		*asked = append(*asked, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/api/v1")+" "+string(text))
		w.Header().Set("Content-Type", "application/json")
		answer := oneSession
		switch {
		case strings.HasSuffix(r.URL.Path, "/sessions"):
			answer = `{"items":[` + strings.Join(list, ",") + `]}`
		case strings.HasSuffix(r.URL.Path, "/points"):
			answer = `{"items":[{"id":"snp_1","saved_at":"2026-11-21T10:30:00Z","executions":2,"before":[],"bytes":5,"present":false},` +
				`{"id":"snp_2","saved_at":"2026-11-21T11:00:00Z","executions":3,"before":[],"bytes":5,"present":true}]}`
		case strings.HasSuffix(r.URL.Path, "/kernels"):
			answer = `{"items":[{"name":"main"},{"name":"other"}]}`
		case strings.HasSuffix(r.URL.Path, "/me"):
			answer = `{"user":"usr_1","project":"prj_1","role":"member"}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return func(args ...string) result {
		return run(t, &scripted{}, nil, append(args, "--server", server.URL, "--key", "cove_x")...)
	}
}

// TestSessionsOfAServer wants them in the columns and the JSON of this machine's, by name and by id.
func TestSessionsOfAServer(t *testing.T) {
	t.Parallel()
	var asked []string
	nameless := strings.Replace(strings.Replace(oneSession, `"name":"lab"`, `"name":""`, 1), "z4\"", "z5\"", 1)
	do := someSessions(t, &asked, oneSession, nameless)
	r := do("session", "ls")
	rows := strings.Split(r.out, "\n")
	if len(rows) != 4 || !strings.HasPrefix(rows[0], "NAME                            STATE    LAST USED         SIZE     EXECUTIONS  PYTHON") || !strings.HasPrefix(rows[1], "lab       ") ||
		!strings.Contains(rows[1], "running") || !strings.Contains(rows[1], "1.0 MiB  3           standard") || !strings.HasPrefix(rows[2], "ses_06f1k3t3y4m0v8s2k5r7w9x1z5") {
		t.Errorf("the table is\n%s%s", r.out, r.err)
	}
	var shown []map[string]any
	if err := json.Unmarshal([]byte(do("session", "ls", "--json").out), &shown); err != nil || shown[0]["name"] != "lab" || shown[0]["state"] != "running" || shown[0]["executions"] != 3.0 || shown[0]["undo"] != nil ||
		shown[0]["engine"] != nil || shown[0]["server"] == nil {
		t.Errorf("as JSON: %v, %v", shown, err)
	}
	for _, name := range []string{"lab", "ses_06f1k3t3y4m0v8s2k5r7w9x1z4"} {
		out := do("session", "show", name).out
		for _, want := range []string{"name          lab", "state         running", "undo 1        2026-11-21", "(after 2 executions)", "kernels       main, other", "paused when   after 15m", "forked from   ses_06f1k3t3y4m0v8s2k5r7w9x1z3"} {
			if !strings.Contains(out, want) {
				t.Errorf("show %s lacks %q:\n%s", name, want, out)
			}
		}
	}
	for want, args := range map[string][]string{
		"session lab is paused; that took ":                                       {"session", "pause", "lab"},
		"session lab is in memory already; it is paused again after 15m":          {"session", "resume", "lab"},
		"(after 2 executions); undos left: 1":                                     {"session", "undo", "lab"},
		"session new goes on from where lab is: 2026-11-21":                       {"session", "fork", "lab", "new"},
		"{\n  \"removed\": [\n    \"lab\"\n  ]\n}":                                {"session", "rm", "lab", "--json"},
		"ses_06f1k3t3y4m0v8s2k5r7w9x1z4\",\n    \"ses_06f1k3t3y4m0v8s2k5r7w9x1z5": {"session", "rm", "--all", "--json"},
	} {
		if r := do(args...); r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("%v: exit code %d, %q, %q; want %q", args, r.code, r.out, r.err, want)
		}
	}
	if r := do("session", "resume", "lab", "--for", "2h"); r.code != 0 || asked[len(asked)-1] != `PATCH /sessions/ses_06f1k3t3y4m0v8s2k5r7w9x1z4 {"idle_seconds":7200}` {
		t.Errorf("%s: asked %q", r.err, asked[len(asked)-1])
	}
}

// TestWhatIsNotKnownOfSessions wants no size where nothing was saved yet, and what it means that a session is lost.
func TestWhatIsNotKnownOfSessions(t *testing.T) {
	t.Parallel()
	var asked []string
	unsaved := strings.Replace(oneSession, `"disk_bytes":1048576`, `"disk_bytes":0`, 1)
	lost := strings.Replace(strings.Replace(oneSession, `"state":"active"`, `"state":"lost"`, 1), `"name":"lab"`, `"name":"gone"`, 1)
	do := someSessions(t, &asked, unsaved, lost)
	if out := do("session", "ls").out; strings.Contains(out, "0 B") || !strings.Contains(out, "-        3") || !strings.Contains(out, "lost") {
		t.Errorf("%s", out)
	}
	if r := do("session", "show", "gone"); !strings.Contains(r.out, "what used it last ended before it saved") {
		t.Errorf("%s%s", r.out, r.err)
	}
}

// TestMistakesWithSessionsOfAServer wants nothing to be done where it is not sure to which session.
func TestMistakesWithSessionsOfAServer(t *testing.T) {
	t.Parallel()
	var asked []string
	do := someSessions(t, &asked, oneSession, strings.Replace(oneSession, "z4\"", "z5\"", 1))
	for want, args := range map[string][]string{
		`2 sessions with the name "lab"`:       {"session", "rm", "lab"},
		"ses_06f1k3t3y4m0v8s2k5r7w9x1z5":       {"session", "undo", "lab"},
		`no session "la"`:                      {"session", "show", "la"},
		`a session "lab" already`:              {"session", "fork", "ses_06f1k3t3y4m0v8s2k5r7w9x1z4", "lab"},
		"--check is for this machine only":     {"session", "resume", "lab", "--check"},
		"--memory is for this machine only":    {"session", "resume", "lab", "--memory", "1G"},
		"--engine is for this machine only":    {"session", "resume", "lab", "--engine", "local"},
		"--for must be above 0":                {"session", "resume", "lab", "--for", "0"},
		"give the names of sessions, or --all": {"session", "rm"},
	} {
		if r := do(args...); r.code != 125 || !strings.Contains(r.err, want) {
			t.Errorf("%v: exit code %d, %q; want %q", args, r.code, r.err, want)
		}
	}
	for _, one := range asked {
		if !strings.HasPrefix(one, "GET ") {
			t.Errorf("the server was asked to %s", one)
		}
	}
}

// TestTheListOfModels wants the default first, what the settings say of each, and what the provider does not say to be no failure.
func TestTheListOfModels(t *testing.T) {
	t.Parallel()
	var silent error
	list := []hub.ModelInfo{{ID: "openai/a", Provider: "openai", Default: true, About: model.About{Context: 400_000, Vision: new(true), Price: &model.Price{Input: 1_250_000, Output: 10_000_000, Currency: "USD"}}}, {ID: "openai/b"}}
	do := func(args ...string) result {
		return run(t, &scripted{}, func(_ string, p *cli.Program) {
			p.Models = func(context.Context, config.Config, string) ([]hub.ModelInfo, error, error) { return list, silent, nil }
		}, args...)
	}
	if r := do("models"); r.out != "  MODEL     CONTEXT  IMAGES  PRICE OF A MILLION TOKENS\n* openai/a  400000   yes     1.25 in, 10 out USD\n  openai/b  -        -       -\n" {
		t.Errorf("%s%s", r.out, r.err)
	}
	var shown []map[string]any
	if err := json.Unmarshal([]byte(do("models", "--json").out), &shown); err != nil || shown[0]["default"] != true || shown[0]["context_tokens"] != 400_000.0 || shown[1]["price"] != nil {
		t.Errorf("%v, %v", shown, err)
	}
	silent, list = errors.New("refused"), list[:1]
	if r := do("models"); r.code != 0 || !strings.Contains(r.out, "* openai/a") || !strings.Contains(r.err, "does not say which models it has: refused") {
		t.Errorf("%d %s%s", r.code, r.out, r.err)
	}
}
