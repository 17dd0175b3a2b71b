package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cove/internal/llm/model/modeltest"
	"cove/internal/server/auth"
)

// wordsIn are the strings that an answer has, in its headers and its body, which could be secrets: long, and without spaces.
func wordsIn(r reply) (all []string) {
	wordPattern := regexp.MustCompile(`[A-Za-z0-9._~+/:@%=-]{16,400}`)
	for _, values := range r.header {
		for _, v := range values {
			all = append(all, wordPattern.FindAllString(v, -1)...)
		}
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			all = append(all, wordPattern.FindAllString(v, -1)...)
			for part := range strings.SplitSeq(v, "/") { // of an address
				all = append(all, wordPattern.FindAllString(part, -1)...)
			}
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for key, one := range v {
				all = append(all, wordPattern.FindAllString(key, -1)...)
				walk(one)
			}
		}
	}
	var body any
	if json.Unmarshal(r.body, &body) == nil {
		walk(body)
	} else {
		all = append(all, wordPattern.FindAllString(string(r.body), -1)...)
	}
	return all
}

// send makes a request with headers of its own, from an address of its own.
func (w *world) send(method, path, body string, header ...string) reply {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	w.from++
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", w.from>>16, w.from>>8&255, w.from&255))
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return reply{r.StatusCode, r.Header, text}
}

// machines are sandboxes of a project on each surface that has some.
type machines struct{ session, e2b, daytona, kernel, terminal string }

func (w *world) machines(key, session string) machines {
	w.t.Helper()
	m := machines{session: session}
	one := func(path, body, field string, header ...string) string {
		w.t.Helper()
		r := w.send("POST", path, body, header...)
		var answer map[string]any
		if r.status/100 == 2 {
			r.into(w.t, &answer)
		}
		text, _ := answer[field].(string)
		if text == "" {
			w.t.Fatalf("%s: %d %s", path, r.status, r.body)
		}
		return text
	}
	bearer := []string{"Authorization", "Bearer " + key}
	m.e2b = one("/sandboxes", `{"templateID":"base","timeout":3600}`, "sandboxID", "X-API-Key", key)
	m.daytona = one("/daytona/sandbox", `{}`, "id", bearer...)
	m.kernel = one("/jupyter/api/kernels", `{}`, "id", bearer...)
	m.terminal = one("/jupyter/api/terminals", `{}`, "name", bearer...)
	return m
}

// looks are what one may ask who only reads, with a key.
func (m machines) looks() (paths []string) {
	for _, path := range []string{"/sandboxes", "/v2/sandboxes", "/sandboxes/{e2b}", "/sandboxes/{e2b}/metrics", "/sandboxes/{e2b}/logs", "/snapshots", "/templates", "/v2/templates", "/volumes",
		"/daytona/sandbox", "/daytona/sandbox/paginated", "/daytona/sandbox/{daytona}", "/daytona/sandbox/{daytona}/ports/8000/preview-url", "/daytona/sandbox/{daytona}/ports/8000/signed-preview-url",
		"/daytona/sandbox/{daytona}/signing-key", "/daytona/sandbox/{daytona}/build-logs-url", "/daytona/sandbox/{daytona}/toolbox-proxy-url", "/daytona/sandbox/{daytona}/forks", "/daytona/snapshots", "/daytona/config",
		"/daytona/toolbox/{daytona}/toolbox/process/session", "/daytona/toolbox/{daytona}/toolbox/process/pty", "/daytona/toolbox/{daytona}/toolbox/process/interpreter/context", "/daytona/toolbox/{daytona}/toolbox/work-dir",
		"/jupyter/api/status", "/jupyter/api/kernels", "/jupyter/api/kernels/{kernel}", "/jupyter/api/sessions", "/jupyter/api/contents", "/jupyter/api/terminals", "/jupyter/api/terminals/{terminal}", "/jupyter/api/me",
		"/v1/containers", "/v1/files", "/v1/models", "/dify/v1/sandbox/dependencies"} {
		paths = append(paths, strings.NewReplacer("{e2b}", m.e2b, "{daytona}", m.daytona, "{kernel}", m.kernel, "{terminal}", m.terminal).Replace(path))
	}
	return paths
}

// opens returns what somebody can do who has no key and knows a word: run code, or reach a port.
func (w *world) opens(m machines, word string) (what []string) {
	w.t.Helper()
	inside := []string{"E2b-Sandbox-Id", m.e2b, "E2b-Sandbox-Port", "49999"}
	agent := []string{"E2b-Sandbox-Id", m.e2b, "E2b-Sandbox-Port", "49983"}
	for name, r := range map[string]reply{
		"run code in E2B's sandbox":          w.send("POST", "/execute", `{"code":"1"}`, append(inside, "X-Access-Token", word)...),
		"run code by E2B's traffic token":    w.send("POST", "/execute", `{"code":"1"}`, append(inside, "e2b-traffic-access-token", word)...),
		"read a file of E2B's sandbox":       w.send("GET", "/files?path=/etc/hostname&username=user", "", append(agent, "X-Access-Token", word)...),
		"run code by a key":                  w.send("POST", "/api/v1/sessions/"+m.session+"/executions", `{"code":"1"}`, "Authorization", "Bearer "+word),
		"run a command of Daytona's by key":  w.send("POST", "/daytona/toolbox/"+m.daytona+"/toolbox/process/execute", `{"command":"true"}`, "Authorization", "Bearer "+word),
		"run a command in Daytona's sandbox": w.send("POST", "/daytona/toolbox/"+m.daytona+"/toolbox/process/execute", `{"command":"true"}`, "X-Daytona-Preview-Token", word),
		"start a kernel":                     w.send("POST", "/jupyter/api/kernels?token="+url.QueryEscape(word), `{}`),
		"start a kernel by a cookie":         w.send("POST", "/jupyter/api/kernels", `{}`, "Cookie", "cove="+word+"; __Host-cove="+word),
		"call a tool":                        w.send("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Session-Id", word, "Accept", "application/json, text/event-stream"),
	} {
		if r.status/100 == 2 {
			what = append(what, name)
		}
	}
	if r := w.send("GET", "/p/"+url.PathEscape(word)+"/", ""); r.status != http.StatusNotFound && r.status != http.StatusUnauthorized && r.status != http.StatusBadRequest {
		what = append(what, fmt.Sprintf("reach a port (%d)", r.status))
	}
	return what
}

// TestWhatViewersAreTold takes every answer that somebody gets who may only look, on every surface, and tries what is in it: nothing there lets him do more than look. The same walk by an owner finds
// what does.
func TestWhatViewersAreTold(t *testing.T) {
	t.Parallel()
	all, _ := operations()
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(func(int, modeltest.Request) modeltest.Turn { return modeltest.Say("Hello!") })
	s := startServer(t, "", testKey(t), "OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted", "COVE_POOL=1",
		"COVE_REQUESTS_PER_SECOND=0", "COVE_PROJECT_REQUESTS_PER_SECOND=0", "COVE_TRUSTED_PROXIES=127.0.0.1")
	w := &world{server: s, t: t}
	project := w.make(w.key, "POST", "/api/v1/projects", `{"name":"a"}`, "id")
	_, owners := w.member(project, auth.Owner)
	holder, viewers := w.member(project, auth.Viewer)
	home := w.tenant("a", project, owners, holder)
	for _, word := range []string{"session", "process", "execution", "link", "turn", "share", "response", "container", "incoming"} {
		home.object(word)
	}
	w.make(owners, "POST", "/api/v1/sessions/"+home.object("session")+"/links", `{"purpose":"port","port":8000}`, "code")
	m := w.machines(owners, home.object("session"))
	for name, c := range map[string]caller{
		"viewer": {name: "viewer", key: viewers, who: auth.Principal{Role: auth.Viewer}, home: home},
		"owner":  {name: "owner", key: owners, who: auth.Principal{Role: auth.Owner}, home: home},
	} {
		from, answers := map[string]string{}, 0
		note := func(path string, r reply) {
			answers++
			for _, word := range wordsIn(r) {
				if word != c.key {
					from[word] = path
				}
			}
		}
		for _, o := range all {
			if o.method == http.MethodGet && c.may(o.needs) && !strings.HasPrefix(o.id, "port.") {
				note(o.path, w.call(c, o, nil, false))
			}
		}
		for _, path := range m.looks() {
			note(path, w.send("GET", path, "", "Authorization", "Bearer "+c.key, "X-API-Key", c.key))
		}
		found := map[string][]string{}
		for _, word := range slices.Sorted(maps.Keys(from)) {
			if what := w.opens(m, word); len(what) > 0 {
				found[from[word]] = append(found[from[word]], what...)
			}
		}
		t.Logf("%s: %d answers, %d words that could be secrets", name, answers, len(from))
		switch {
		case name == "viewer" && len(found) > 0:
			t.Errorf("a viewer is told what opens more: %q", found)
		case name == "owner" && (len(found["/sandboxes/"+m.e2b]) == 0 || len(found["/daytona/sandbox/"+m.daytona+"/ports/8000/preview-url"]) == 0):
			t.Errorf("an owner is told nothing that opens a sandbox: %q", found)
		}
	}
}
