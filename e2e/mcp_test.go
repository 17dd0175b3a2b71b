package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/testkit/testneeds"
)

// keyed sends a key with each request.
type keyed struct{ key string }

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+k.key)
	return http.DefaultTransport.RoundTrip(r)
}

// mcpAnswer is what a tool said.
type mcpAnswer struct {
	text     string
	pictures int
	links    []string
	failed   bool
	content  map[string]any
}

// mcpSession is a client of the protocol, as the Go SDK has it.
func (s *server) mcpSession(ctx context.Context, key string, told func(string)) (*mcp.ClientSession, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
		told(n.Params.Message)
	}})
	return c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: s.base + "/mcp", HTTPClient: &http.Client{Transport: keyed{key}}}, nil)
}

// TestMCP has the Go SDK's client use each tool.
func TestMCP(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	s := startServer(t, "", testKey(t))
	var mu sync.Mutex
	var progress []string
	client, err := s.mcpSession(t.Context(), s.key, func(message string) {
		mu.Lock()
		defer mu.Unlock()
		progress = append(progress, message)
	})
	if err != nil {
		t.Fatal(err)
	}
	call := func(name string, arguments map[string]any) (a mcpAnswer) {
		t.Helper()
		params := &mcp.CallToolParams{Name: name, Arguments: arguments}
		params.SetProgressToken("token-" + name)
		r, err := client.CallTool(t.Context(), params)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a.failed = r.IsError
		a.content, _ = r.StructuredContent.(map[string]any)
		for _, c := range r.Content {
			switch c := c.(type) {
			case *mcp.TextContent:
				a.text += c.Text
			case *mcp.ImageContent:
				a.pictures++
			case *mcp.ResourceLink:
				a.links = append(a.links, c.URI)
			case *mcp.EmbeddedResource:
				a.links = append(a.links, c.Resource.URI)
			}
		}
		return a
	}
	if tools, err := client.ListTools(t.Context(), nil); err != nil || len(tools.Tools) != 7 {
		t.Fatalf("%v, %+v", err, tools)
	}
	first := call("python", map[string]any{"code": "x = 6\nprint('seen', flush=True)\nopen('a b.csv', 'w').write('n\\n1\\n')\nx * 7"})
	session, _ := first.content["session"].(string)
	if first.failed || !strings.HasPrefix(first.text, "seen\n42\n[session "+session) || first.content["stdout"] != "seen\n" || first.content["result"] != "42" || len(first.links) != 1 || first.links[0] != "cove://"+session+"/a%20b.csv" {
		t.Fatalf("%+v", first)
	}
	if r := call("python", map[string]any{"code": "x", "session": session}); r.text != "6\n" || r.content["outcome"] != "ok" {
		t.Errorf("the next call: %+v", r)
	}
	if r := call("python", map[string]any{"code": "1 / 0", "session": session}); !r.failed || !strings.Contains(r.text, "ZeroDivisionError") || r.content["error"].(map[string]any)["name"] != "ZeroDivisionError" {
		t.Errorf("an error: %+v", r)
	}
	if r := call("python", map[string]any{"code": "from IPython.display import Image\nImage(data=b'\\x89PNG\\r\\n\\x1a\\n', format='png')", "session": session}); r.pictures != 1 {
		t.Errorf("a picture: %+v", r)
	}
	if r := call("python", map[string]any{"code": "while True: pass", "session": session, "timeout_seconds": 1}); !r.failed || !strings.Contains(r.text, "longer than 1s") {
		t.Errorf("endless code: %+v", r)
	}
	if r := call("python", map[string]any{"code": "print('y' * 1_000_000)", "session": session}); len(r.text) > 70_000 || !strings.Contains(r.text, "longer than the") {
		t.Errorf("much output: %d bytes", len(r.text))
	}
	if r := call("write_file", map[string]any{"session": session, "path": "in.txt", "text": "größe"}); r.failed || len(r.links) != 1 {
		t.Errorf("write: %+v", r)
	}
	if r := call("read_file", map[string]any{"session": session, "path": "in.txt"}); r.text != "größe" {
		t.Errorf("read: %+v", r)
	}
	if r := call("list_files", map[string]any{"session": session}); !strings.Contains(r.text, "a b.csv (4 bytes)") || !strings.Contains(r.text, "in.txt") {
		t.Errorf("list: %+v", r)
	}
	read, err := client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: first.links[0]})
	if err != nil || read.Contents[0].Text != "n\n1\n" || !strings.HasPrefix(read.Contents[0].MIMEType, "text/csv") {
		t.Errorf("a resource: %v %+v", err, read)
	}
	if r := call("install_packages", map[string]any{"session": session, "packages": []string{"numpy"}}); r.failed || r.text == "" {
		t.Errorf("install: %+v", r)
	}
	if _, err := client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "cove://" + session + "/../../etc/passwd"}); err == nil {
		t.Error("a file outside of the workspace is read")
	}
	for name, arguments := range map[string]map[string]any{
		"python": {"code": ""}, "read_file": {"session": session, "path": "../../etc/shadow"}, "list_files": {"session": "ses_none"}, "write_file": {"session": session, "path": "x"}, "install_packages": {"session": "", "packages": []string{"six"}},
	} {
		if r := call(name, arguments); !r.failed || r.text == "" {
			t.Errorf("%s with %v: %+v", name, arguments, r)
		}
	}
	mu.Lock()
	if !strings.Contains(strings.Join(progress, " "), "seen") {
		t.Errorf("told meanwhile: %q", progress)
	}
	mu.Unlock()
	if r := call("list_sessions", nil); !strings.Contains(r.text, session) {
		t.Errorf("sessions: %+v", r)
	}
	if r := call("delete_session", map[string]any{"session": session}); r.failed {
		t.Errorf("delete: %+v", r)
	}
	if r := call("python", map[string]any{"code": "x", "session": session}); !r.failed || !strings.Contains(r.text, "no such session") {
		t.Errorf("a session that is gone: %+v", r)
	}
	s.mcpStrangers(session)
	s.mcpWaits()
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		s.mcpAsks(&mcp.StreamableClientTransport{Endpoint: s.base + "/mcp", HTTPClient: &http.Client{Transport: keyed{s.key}}}, version)
	}
}

// mcpWaits has code wait for an answer that comes with another call: of the same call and key alone, once, and not when its session is gone.
func (s *server) mcpWaits() {
	s.t.Helper()
	connect := func(key string) *mcp.ClientSession {
		c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
			Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}}, MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		})
		client, err := c.Connect(s.t.Context(), &mcp.StreamableClientTransport{Endpoint: s.base + "/mcp", HTTPClient: &http.Client{Transport: keyed{key}}}, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		return client
	}
	client := connect(s.key)
	call := func(client *mcp.ClientSession, name string, arguments map[string]any, state string, answers mcp.InputResponseMap) *mcp.CallToolResult {
		r, err := client.CallTool(s.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments, RequestState: state, InputResponses: answers})
		if err != nil {
			s.t.Fatal(err)
		}
		return r
	}
	says := mcp.InputResponseMap{"input": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "Ada"}}}
	made := call(client, "python", map[string]any{"code": "1"}, "", nil).StructuredContent.(map[string]any)
	code := map[string]any{"code": "input('Who? ')", "session": made["session"]}
	asks := func() string {
		r := call(client, "python", code, "", nil)
		if !r.NeedsInput() || r.RequestState == "" {
			s.t.Fatalf("it does not ask: %+v", r)
		}
		return r.RequestState
	}
	state := asks()
	reply, err := s.call(s.t.Context(), http.MethodPost, "/api/v1/keys", map[string]any{"name": "other"})
	var other struct{ Text string }
	if reply.into(s.t, &other); err != nil || other.Text == "" {
		s.t.Fatalf("%v %s", err, reply.body)
	}
	if r := call(connect(other.Text), "python", code, state, says); !r.IsError {
		s.t.Error("another key answers")
	}
	if r := call(client, "python", map[string]any{"code": "1", "session": made["session"]}, state, says); !r.IsError {
		s.t.Error("another call answers")
	}
	if r := call(client, "python", code, state, nil); !r.NeedsInput() || r.RequestState != state {
		s.t.Errorf("without an answer it is not asked once more: %+v", r)
	}
	if r := call(client, "python", code, state, says); r.IsError || r.StructuredContent.(map[string]any)["result"] != "'Ada'" {
		s.t.Errorf("%+v", r)
	}
	if r := call(client, "python", code, state, says); !r.IsError {
		s.t.Error("an answer is taken twice")
	}
	state = asks()
	if r := call(client, "delete_session", map[string]any{"session": made["session"]}, "", nil); r.IsError {
		s.t.Errorf("%+v", r)
	}
	if r := call(client, "python", code, state, says); !r.IsError {
		s.t.Errorf("the session is gone, and the code has ended well: %+v", r)
	}
}

// mcpAsks has code ask a client's user, in a version of the protocol.
func (s *server) mcpAsks(over mcp.Transport, version string) {
	s.t.Helper()
	var asked atomic.Int32
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		if asked.Add(1) == 1 && strings.Contains(q.Params.Message, "Your name?") {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "Ada"}}, nil
		}
		return &mcp.ElicitResult{Action: "cancel"}, nil
	}})
	client, err := c.Connect(s.t.Context(), over, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := client.CallTool(s.t.Context(), &mcp.CallToolParams{Name: "python", Arguments: map[string]any{"code": "print('Hello', input('Your name? '))\ninput()"}})
	if err != nil {
		s.t.Fatalf("%s: %v", version, err)
	}
	said, _ := r.StructuredContent.(map[string]any)
	if said["stdout"] != "Hello Ada\n" || !r.IsError || said["error"].(map[string]any)["name"] != "EOFError" || asked.Load() != 2 {
		s.t.Errorf("%s: %+v, asked %d times", version, said, asked.Load())
	}
	if err := client.Close(); err != nil {
		s.t.Errorf("%s: %v", version, err)
	}
}

// mcpStrangers has clients without a key, and with another project's, get nothing.
func (s *server) mcpStrangers(session string) {
	s.t.Helper()
	if _, err := s.mcpSession(s.t.Context(), "no key", func(string) {}); err == nil {
		s.t.Error("a client without a key has connected")
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} { // there is no authorization server
		if r := s.with("", http.MethodGet, path, ""); r.status != 404 {
			s.t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if r := s.with("", http.MethodPost, "/mcp", callPython); r.status != 401 || r.header.Get("WWW-Authenticate") != `Bearer realm="cove"` {
		s.t.Errorf("without a key: %d %v", r.status, r.header)
	}
	r, err := s.call(s.t.Context(), http.MethodPost, "/mcp", json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_files","arguments":{"session":"`+session+`"}}}`))
	if err != nil || r.status < 400 && strings.Contains(string(r.body), `"isError":false`) {
		s.t.Errorf("a request without the headers of the protocol: %v %d %s", err, r.status, r.body)
	}
}

// TestMCPOnStdio has a program that starts its servers itself use a server through the command.
func TestMCPOnStdio(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	s := startServer(t, "", testKey(t))
	cmd := exec.Command(sandboxtest.Binary(t), "mcp", "--server", s.base)
	cmd.Env = append(os.Environ(), "COVE_KEY="+s.key)
	var told atomic.Int32
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { told.Add(1) }})
	client, err := c.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	params := &mcp.CallToolParams{Name: "python", Arguments: map[string]any{"code": "print('on its way', flush=True)\n6 * 7"}}
	params.SetProgressToken("one")
	r, err := client.CallTool(t.Context(), params)
	if err != nil || r.IsError || r.StructuredContent.(map[string]any)["result"] != "42" {
		t.Fatalf("%v %+v", err, r)
	}
	s.until("progress", func() (string, bool) { return "none", told.Load() > 0 }) // the library hands notifications on beside answers
	session, _ := r.StructuredContent.(map[string]any)["session"].(string)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		time.Sleep(time.Second)
		cancel()
	}()
	if _, err := client.CallTool(ctx, &mcp.CallToolParams{Name: "python", Arguments: map[string]any{"code": "while True: pass", "session": session}}); err == nil {
		t.Error("endless code has ended")
	}
	if r, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "python", Arguments: map[string]any{"code": "'on'", "session": session}}); err != nil || r.IsError {
		t.Errorf("behind code that was cancelled: %v %+v", err, r)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		asks := exec.Command(sandboxtest.Binary(t), "mcp", "--server", s.base)
		asks.Env = cmd.Env
		s.mcpAsks(&mcp.CommandTransport{Command: asks}, version)
	}
}

// TestClientsMCP has the protocol's Python and TypeScript SDKs, as they are published, use a server.
func TestClientsMCP(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t))
	for _, c := range []struct {
		name    string
		command func(t *testing.T, source string) *exec.Cmd
		told    string
	}{{"mcp", pythonSDK, "ok mcp (Python)"}, {"mcpjs", nodeSDK, "ok mcp (TypeScript)"}} {
		t.Run(c.name, func(t *testing.T) {
			cmd := c.command(t, filepath.Join("testdata", "sdk", c.name))
			cmd.Env = append(os.Environ(), "COVE_TEST_URL="+s.base+"/mcp", "COVE_TEST_KEY="+s.key, "PYTHONDONTWRITEBYTECODE=")
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), c.told) {
				t.Errorf("%v\n%s\nthe server: %s", err, out, s.log)
			}
		})
	}
}
