package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/llm/model/modeltest"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/testkit/testneeds"
)

const toolSecret = "tool-secret-9f8e7d6c"

// toolPlace is what servers of tools run in.
type toolPlace struct {
	file   string // of the settings
	files  string // a folder that one of them serves
	repo   string // a repository of git
	marker string // in the command line of one
	web    *httptest.Server
	model  *modeltest.Server // that has code run as its user says
	waits  chan struct{}     // receives when a call of web.wait has begun
}

// newToolPlace sets up four servers from PyPI and npm, and one at an address.
func newToolPlace(t *testing.T) *toolPlace {
	t.Helper()
	p := &toolPlace{files: t.TempDir(), repo: t.TempDir(), marker: "marker-" + filepath.Base(t.TempDir()), waits: make(chan struct{}, 100)}
	p.marker += fmt.Sprint(time.Now().UnixNano())
	if err := os.WriteFile(filepath.Join(p.files, "note.txt"), []byte("from the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("sh", "-c", `cd "$0" && git init -q . && git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m "the first commit"`, p.repo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	python := filepath.Join(pythonFolder(t, filepath.Join("testdata", "sdk", "toolservers")), "venv", "bin", "python")
	node, modules := nodeFolder(t, filepath.Join("testdata", "sdk", "toolserversjs"))
	script := func(name string) string {
		return filepath.Join(modules, "node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	}
	p.serveWeb(t)
	p.model = modeltest.NewServer()
	t.Cleanup(p.model.Close)
	p.model.Decide(codeToolsModel)
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"time":       map[string]any{"command": python, "args": []string{"-m", "mcp_server_time", "--local-timezone", "UTC"}},
		"git":        map[string]any{"command": python, "args": []string{"-m", "mcp_server_git", "--repository", p.repo}, "tools": []string{"git_log", "git_status"}},
		"files":      map[string]any{"command": node, "args": []string{script("filesystem"), p.files}},
		"everything": map[string]any{"command": node, "args": []string{script("everything"), "stdio", p.marker}, "env": map[string]string{"API_TOKEN": "${TOOL_SECRET}"}},
		"web":        map[string]any{"url": p.web.URL + "/mcp", "headers": map[string]string{"Authorization": "Bearer ${TOOL_SECRET}"}, "ask": []string{"er*"}},
		"broken":     map[string]any{"command": "no-such-program-" + p.marker},
		"theirs":     map[string]any{"command": python, "projects": []string{"prj_somebody"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	p.file = filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(p.file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// serveWeb serves tools to who has the secret.
func (p *toolPlace) serveWeb(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)
	type empty struct{}
	add := func(name string, perform func(ctx context.Context, r *mcp.CallToolRequest) string) {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(ctx context.Context, r *mcp.CallToolRequest, _ empty) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: perform(ctx, r)}}}, nil, nil
		})
	}
	add("who", func(_ context.Context, r *mcp.CallToolRequest) string { return r.Extra.Header.Get("Authorization") })
	add("erase", func(context.Context, *mcp.CallToolRequest) string { return "erased" })
	add("wait", func(ctx context.Context, _ *mcp.CallToolRequest) string {
		p.waits <- struct{}{}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Minute):
		}
		return "late"
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{PropagateRequestCancellation: true})
	p.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+toolSecret {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		p.web.CloseClientConnections()
		p.web.Close()
	})
}

func (p *toolPlace) environment() []string {
	return []string{"COVE_TOOLS_FILE=" + p.file, "TOOL_SECRET=" + toolSecret, "OPENAI_BASE_URL=" + p.model.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted"}
}

// withTools starts code that may call servers, and returns the id of its execution.
func (s *server) withTools(session, code string, servers ...string) string {
	s.t.Helper()
	var e struct{ ID string }
	s.must("POST", "/api/v1/sessions/"+session+"/executions?background=true", map[string]any{"code": code, "tool_servers": servers}, &e)
	return e.ID
}

// toEnd waits for the end of an execution, and returns its events.
func (s *server) toEnd(execution string) []event {
	s.t.Helper()
	response, err := s.request(s.t.Context(), "GET", "/api/v1/executions/"+execution+"/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	all, err := events(response.Body, nil)
	if err != nil {
		s.t.Error(err)
	}
	return all
}

// toolCalls are the calls in a record: the name of the tool, and whether it failed.
func toolCalls(all []event) (calls []string) {
	for _, e := range all {
		if e.data["type"] == "tool_call" {
			text := fmt.Sprint(e.data["name"])
			if e.data["error"] != nil {
				text += " failed"
			}
			calls = append(calls, text)
		}
	}
	return calls
}

func TestToolServers(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	p := newToolPlace(t)
	s := startServer(t, "", testKey(t), p.environment()...)
	for name, test := range map[string]func(*testing.T, *server, *toolPlace){"real servers": realToolServers, "credentials": toolCredentials, "the list": toolServerList, "approval": toolApproval} {
		t.Run(name, func(t *testing.T) {
			test(t, &server{command: &command{t: t}, base: s.base, key: s.key, log: s.log}, p)
		})
	}
}

// realToolServers calls servers from PyPI and npm, one call after the other, and together.
func realToolServers(t *testing.T, s *server, p *toolPlace) {
	code := fmt.Sprintf(`
import asyncio, tools
berlin = tools.time_get_current_time("Europe/Berlin")
print(berlin["timezone"])
print("the first commit" in tools.git_git_log(repo_path=%q))
print(tools.files_read_text_file(path=%q)["content"])
async def all():
    return await asyncio.gather(*[tools.aio.everything_get_sum(a=n, b=1) for n in range(40)], tools.aio.web_who())
sums = await all()
print(sums[39], sums[40])
print(tools.everything_get_structured_content(location="New York")["conditions"] != "")
print([type(part).__name__ for part in tools.everything_get_tiny_image()])
try:
    tools.files_read_text_file("/etc/shadow")
except tools.ToolError as error:
    print("refused")
print(hasattr(tools, "git_git_commit"), tools.time_convert_time.__doc__.splitlines()[0])
`, p.repo, filepath.Join(p.files, "note.txt"))
	all := s.toEnd(s.withTools(s.session(), code, "time", "git", "files", "everything", "web"))
	want := "Europe/Berlin\nTrue\nfrom the host\nThe sum of 39 and 1 is 40. [secret]\nTrue\n['str', 'dict', 'str']\nrefused\nFalse Convert time between timezones\n"
	if printed(all) != want || outcome(all) != "ok" {
		t.Errorf("%s\n%v", printed(all), all[len(all)-1].data)
	}
	if calls := toolCalls(all); len(calls) != 47 {
		t.Errorf("%d calls are in the record: %v", len(calls), calls)
	}
}

// toolApproval asks before calls: those that the file of tool servers names, and those that the request does.
func toolApproval(t *testing.T, s *server, p *toolPlace) {
	var e struct{ ID string }
	code := "import asyncio, tools\nprint(await asyncio.gather(tools.aio.web_erase(), tools.aio.web_who(), tools.aio.web_erase(), return_exceptions=True))"
	s.must("POST", "/api/v1/sessions/"+s.session()+"/executions?background=true", map[string]any{"code": code, "tool_servers": []string{"web"}, "ask_before": []string{"web.who"}}, &e)
	response, err := s.request(t.Context(), "GET", "/api/v1/executions/"+e.ID+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	words := map[string]map[string]any{"1": {"run": true}, "2": {"run": false, "note": "who is nobody's business"}, "3": {"run": false}}
	all, err := events(response.Body, func(one event) bool {
		if one.data["type"] == "call_asks" {
			number := fmt.Sprint(one.data["number"])
			s.must("POST", "/api/v1/executions/"+e.ID+"/calls/"+number+"/approve", words[number], nil)
			if again, err := s.call(t.Context(), "POST", "/api/v1/executions/"+e.ID+"/calls/"+number+"/approve", words[number]); err != nil || again.code() != "call_not_waiting" {
				t.Errorf("a second word: %v %s", err, again.body)
			}
		}
		return false
	})
	want := "['erased', ToolError(\"web.who: it was not called: the user refused it, and says: who is nobody's business\"), ToolError('web.erase: it was not called: the user refused it')]\n"
	if err != nil || printed(all) != want || outcome(all) != "ok" {
		t.Errorf("%v: %s", err, printed(all))
	}
	run := func(args ...string) string {
		cmd := exec.Command(sandboxtest.Binary(t), append([]string{args[0], "-q", "--tools", "web"}, args[1:]...)...)
		cmd.Env = append(os.Environ(), append(p.environment(), "COVE_KEY="+s.key)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	for _, where := range [][]string{{"--server", s.base}, {"--server", "", "-o", t.TempDir()}} {
		where = append([]string{"run"}, where...)
		out := run(append(where, "-c", "import tools\ntry:\n    tools.web_erase()\nexcept tools.ToolError as error:\n    print(error)")...)
		if !strings.Contains(out, "nobody could be asked: there is no terminal") || !strings.Contains(out, "--allow-tools web.erase") {
			t.Errorf("%v, without a terminal: %s", where, out)
		}
		if out := run(append(where, "--allow-tools", "web.e*", "-c", "import tools\nprint(tools.web_erase())")...); out != "erased\n" {
			t.Errorf("%v, allowed beforehand: %s", where, out)
		}
		if out := run(append(where, "--ask-tools", "web.*", "-c", "import tools\nprint(tools.web_who())")...); !strings.Contains(out, "there is no terminal") {
			t.Errorf("%v, asked before: %s", where, out)
		}
		// A model's code, too.
		where[0] = "ask"
		question := "<<<import tools\nprint(tools.web_erase())>>>"
		if out := run(append(where, "--allow-tools", "web.erase", question)...); !strings.Contains(out, "It says: erased") {
			t.Errorf("%v, allowed to a model's code: %s", where, out)
		}
		if out := run(append(where, question)...); !strings.Contains(out, "It says: ") || !strings.Contains(out, "nobody could be asked") {
			t.Errorf("%v, not allowed to a model's code: %s", where, out)
		}
	}
}

// toolCredentials looks for the secret of servers everywhere that code can.
func toolCredentials(t *testing.T, s *server, _ *toolPlace) {
	all := s.toEnd(s.withTools(s.session(), `
import glob, os, tools
secret = "".join(reversed("`+reversed(toolSecret)+`"))
seen = []
def look(where, text):
    if secret in str(text):
        seen.append(where)
look("a result", tools.everything_get_env())
look("a result of the web", tools.web_who())
look("variables", dict(os.environ))
look("the module", [getattr(f, "__doc__", "") for f in vars(tools).values()])
for call in (lambda: tools.everything_get_sum(a="x", b=[]), lambda: tools.everything_get_resource_reference(resourceType="none", resourceId=-1), lambda: tools.web_who(x=1)):
    try:
        look("a result", call())
    except Exception as error:
        look("an error", repr(error))
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/*") + glob.glob("/tmp/*") + glob.glob("/run/*") + glob.glob("/etc/*"):
    try:
        look(path, open(path, "rb").read(1 << 20).decode("latin-1"))
    except OSError:
        pass
print(seen, "[secret]" in tools.everything_get_env())
`, "everything", "web"))
	if printed(all) != "[] True\n" || outcome(all) != "ok" {
		t.Errorf("%s %v", printed(all), all[len(all)-1].data)
	}
	for _, path := range []string{"/api/v1/tool-servers", "/api/v1/audit?limit=100", "/api/v1/executions?limit=100"} {
		r, err := s.call(t.Context(), "GET", path, nil)
		if err != nil || r.status != 200 || strings.Contains(string(r.body), toolSecret) {
			t.Errorf("%s: %v %d, or it has the secret", path, err, r.status)
		}
	}
	if strings.Contains(s.log.String(), toolSecret) {
		t.Error("the log has the secret")
	}
	// What was not asked for is not there, and what is not this project's is not found.
	all = s.toEnd(s.withTools(s.session(), "import tools\nprint([n for n in dir(tools) if n.startswith('web') or n.startswith('time')])", "web"))
	if printed(all) != "['web_erase', 'web_wait', 'web_who']\n" {
		t.Errorf("%s", printed(all))
	}
	for _, name := range []string{"theirs", "nothing"} {
		r, err := s.call(t.Context(), "POST", "/api/v1/sessions/"+s.session()+"/executions", map[string]any{"code": "1", "tool_servers": []string{name}})
		if err != nil || r.status != 404 || r.code() != "tool_server_not_found" {
			t.Errorf("%s: %v %d %s", name, err, r.status, r.body)
		}
	}
}

func reversed(text string) string {
	out := []byte(text)
	for i := range len(out) / 2 {
		out[i], out[len(out)-1-i] = out[len(out)-1-i], out[i]
	}
	return string(out)
}

// toolServerKilled kills a server, and cuts the connection to another, in the middle of a call.
func toolServerKilled(t *testing.T, s *server, p *toolPlace) {
	code := `
import tools
try:
    tools.everything_trigger_long_running_operation(duration=55, steps=1)
except tools.ToolError as error:
    print(error, flush=True)
try:
    tools.web_wait()
except tools.ToolError as error:
    print(error)
print(tools.everything_get_sum(a=1, b=2), tools.web_who())
`
	e := s.withTools(s.session(), code, "everything", "web")
	following, cancel := context.WithCancel(t.Context())
	defer cancel()
	killed := make(chan struct{})
	go func() { // until the call is over: it may have begun after a kill
		defer close(killed)
		again := time.NewTicker(3 * time.Second)
		defer again.Stop()
		for {
			select {
			case <-following.Done(): // nor later: the server is begun anew by the call that follows
				return
			case <-again.C:
			}
			for _, pid := range pidsOf(t, p.marker) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}()
	<-p.waits
	cancel()
	<-killed // the server is started anew by the call after this one, and lives
	p.web.CloseClientConnections()
	all := s.toEnd(e)
	lines := strings.Split(printed(all), "\n")
	if outcome(all) != "ok" || len(lines) != 4 || !strings.Contains(lines[0], "the tool server everything") || !strings.Contains(lines[1], "the tool server web failed to answer, ended, or lost its connection in the middle of the call") || lines[2] != "The sum of 1 and 2 is 3. [secret]" {
		t.Errorf("%s %v", printed(all), all[len(all)-1].data)
	}
	if calls := toolCalls(all); len(calls) != 4 || calls[0] != "everything.trigger-long-running-operation failed" || calls[1] != "web.wait failed" {
		t.Errorf("the record has %v", calls)
	}
}

// pidsOf are the processes with a word in their command line.
func pidsOf(t *testing.T, word string) (out []int) {
	t.Helper()
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), word) || strings.HasPrefix(string(text), "cove-tool-server") {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(path, "/proc/%d/", &pid); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// toolUsersKilled ends the kernel, the session and the client in the middle of a call, and interrupts one.
func toolUsersKilled(t *testing.T, s *server, p *toolPlace) {
	const waits = "import tools\ntools.web_wait()"
	for name, c := range map[string]struct {
		code string
		end  func(session, execution string)
		want string
	}{
		"the kernel":   {"import os, threading, tools\nthreading.Timer(3, lambda: os.kill(os.getpid(), 9)).start()\ntools.web_wait()", func(string, string) {}, "kernel_died"},
		"interrupted":  {waits, func(_, e string) { s.must("POST", "/api/v1/executions/"+e+"/interrupt", nil, nil) }, "interrupted"},
		"the session":  {waits, func(id, _ string) { s.must("DELETE", "/api/v1/sessions/"+id, nil, nil) }, ""},
		"late, itself": {"import tools, threading\nthreading.Thread(target=tools.web_wait, daemon=True).start()\nimport time\ntime.sleep(2)", func(string, string) {}, "ok"},
	} {
		session := s.session()
		e := s.withTools(session, c.code, "web")
		<-p.waits
		c.end(session, e)
		var got struct{ State string }
		for end := time.Now().Add(patience); got.State == "" || got.State == "running" || got.State == "queued"; time.Sleep(50 * time.Millisecond) {
			s.must("GET", "/api/v1/executions/"+e, nil, &got)
			if time.Now().After(end) {
				t.Fatalf("%s: it is still %s", name, got.State)
			}
		}
		all := s.toEnd(e)
		if how := outcome(all); how == "" || how == "two ends" || c.want != "" && how != c.want {
			t.Errorf("%s: it ended as %q, %s: %s", name, how, got.State, printed(all))
		}
	}
	var audit struct {
		Items []struct{ Action, Detail, Outcome string }
	}
	lost := 0
	for end := time.Now().Add(patience); lost < 4 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		s.must("GET", "/api/v1/audit?limit=100", nil, &audit)
		lost = 0
		for _, row := range audit.Items {
			if row.Action == "tool.call" && row.Detail == "web.wait" && row.Outcome == "tool_failed" {
				lost++
			}
		}
	}
	if lost < 4 {
		t.Errorf("%d calls that were lost are in the audit log", lost)
	}
	// A client that leaves in the middle ends nothing.
	session := s.session()
	ctx, leave := context.WithCancel(t.Context())
	response, err := s.request(ctx, "POST", "/api/v1/sessions/"+session+"/executions?stream=true", map[string]any{"code": "import tools, time\ntools.everything_echo(message='x')\ntime.sleep(1)\nprint(tools.everything_echo(message='after'))", "tool_servers": []string{"everything"}})
	if err != nil {
		t.Fatal(err)
	}
	var id string
	_, _ = events(response.Body, func(e event) bool {
		if e.name == "execution" {
			made, _ := e.data["execution"].(map[string]any)
			id, _ = made["id"].(string)
		}
		return e.data["type"] == "tool_call"
	})
	leave()
	_ = response.Body.Close()
	if all := s.toEnd(id); printed(all) != "Echo: after\n" || outcome(all) != "ok" {
		t.Errorf("a client has left: %s %s", printed(all), outcome(all))
	}
}

// toolServerList looks at what clients and the command line are told.
func toolServerList(t *testing.T, s *server, p *toolPlace) {
	var list struct {
		Items []struct {
			Name    string
			Tools   []struct{ Name, Function string }
			Problem *struct{ Code string }
		}
	}
	s.must("GET", "/api/v1/tool-servers", nil, &list)
	got := map[string]int{}
	for _, one := range list.Items {
		if got[one.Name] = len(one.Tools); one.Problem != nil && one.Problem.Code == "tool_server_unreachable" {
			got[one.Name] = -1
		}
	}
	if len(got) != 6 || got["time"] != 2 || got["git"] != 2 || got["web"] != 3 || got["files"] < 10 || got["broken"] != -1 {
		t.Errorf("listed %v", got)
	}
	run := func(code int, args ...string) string {
		t.Helper()
		cmd := exec.Command(sandboxtest.Binary(t), args...)
		cmd.Env = append(os.Environ(), append(p.environment(), "COVE_KEY="+s.key)...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != code {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := run(1, "tools", "--server", s.base); !strings.Contains(out, "  tools.time_get_current_time(timezone)\n") || !strings.Contains(out, "broken\n  cannot be used") {
		t.Errorf("cove tools --server: %s", out)
	}
	if out := run(1, "tools", "--server", "", "broken", "web"); !strings.Contains(out, "  tools.web_who()\n") || !strings.Contains(out, "executable file not found") || strings.Contains(out, toolSecret) {
		t.Errorf("cove tools: %s", out)
	}
	code := "import tools\nprint(tools.web_who())"
	if out := run(0, "run", "-q", "--server", s.base, "--tools", "web", "-c", code); out != "[secret]\n" {
		t.Errorf("cove run --server: %s", out)
	}
	if out := run(0, "run", "-q", "--server", "", "-o", t.TempDir(), "--tools", "web", "--tools", "time", "-c", code); out != "[secret]\n" {
		t.Errorf("cove run: %s", out)
	}
	if out := run(125, "run", "-q", "--server", "", "-o", t.TempDir(), "--tools", "broken", "-c", code); !strings.Contains(out, "cannot be used") {
		t.Errorf("cove run with a server that does not start: %s", out)
	}
}

// TestToolServersAndKills ends one after the other of those who take part in a call, in the middle of it, and cove itself last.
func TestToolServersAndKills(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	p, dir, key := newToolPlace(t), t.TempDir(), testKey(t)
	s := startServer(t, dir, key, p.environment()...)
	toolUsersKilled(t, s, p)
	toolServerKilled(t, s, p)
	session := s.session()
	e := s.withTools(session, "import tools\ntools.everything_echo(message='x')\ntools.web_wait()", "everything", "web")
	<-p.waits
	if len(pidsOf(t, p.marker)) == 0 {
		t.Error("there is no process to be left")
	}
	s.kill()
	for end := time.Now().Add(patience); len(pidsOf(t, p.marker)) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a tool server outlives cove")
		}
	}
	s = startServer(t, dir, key, p.environment()...)
	var got struct{ State string }
	s.must("GET", "/api/v1/executions/"+e, nil, &got)
	if all := s.toEnd(e); got.State != "lost" || outcome(all) != "lost" {
		t.Errorf("it is %s, and ended as %q", got.State, outcome(all))
	}
	all := s.toEnd(s.withTools(s.session(), "import tools\nprint(tools.everything_echo(message='again'))", "everything"))
	if printed(all) != "Echo: again\n" {
		t.Errorf("afterwards: %s", printed(all))
	}
	s.stop().ended(t, 0)
	if left := pidsOf(t, p.marker); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}
