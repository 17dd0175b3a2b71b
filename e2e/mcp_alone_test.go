package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/testkit/testneeds"
)

// mcpHome has cove mcp without a server, as programs start it, on folders of its own.
type mcpHome struct {
	t   *testing.T
	dir string
}

func newMCPHome(t *testing.T) mcpHome {
	t.Helper()
	testneeds.Asked(t, testneeds.Sandboxes)
	return mcpHome{t, t.TempDir()}
}

func (h mcpHome) command(args ...string) *exec.Cmd {
	cmd := inSession(h.t, h.dir, args...)
	cmd.Env = append(cmd.Env, "COVE_DATABASE="+filepath.Join(h.dir, "cove.db"), "COVE_SERVER=", "COVE_KEY=")
	return cmd
}

// run runs a command of the user's, and returns all that it says.
func (h mcpHome) run(args ...string) string {
	out, _ := h.command(args...).CombinedOutput()
	return string(out)
}

// session is what `cove session ls` says of a session.
func (h mcpHome) session(name string) (s struct {
	Name, State string
	Head        struct{ Executions int }
}) {
	h.t.Helper()
	out, err := h.command("session", "show", "--json", name).Output()
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil || !strings.Contains(h.run("session", "ls"), name) {
		h.t.Fatalf("%v: %s", err, out)
	}
	return s
}

// untilSaved waits until all that code has done so far is saved.
func (h mcpHome) untilSaved(session string, executions int) {
	h.t.Helper()
	for begun := time.Now(); h.session(session).Head.Executions < executions; time.Sleep(100 * time.Millisecond) {
		if time.Since(begun) > testneeds.Patience {
			h.t.Fatalf("it is not saved: %+v", h.session(session))
		}
	}
}

// mcpClient is a program of the Go SDK's that has started the command.
type mcpClient struct {
	*mcp.ClientSession
	t    *testing.T
	cmd  *exec.Cmd
	said *strings.Builder
}

func (h mcpHome) start() mcpClient {
	h.t.Helper()
	c := mcpClient{t: h.t, cmd: h.command("mcp"), said: &strings.Builder{}}
	c.cmd.Stderr = c.said
	var err error
	if c.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(h.t.Context(), &mcp.CommandTransport{Command: c.cmd, TerminateDuration: testneeds.Patience}, nil); err != nil {
		h.t.Fatalf("%v: %s", err, c.said)
	}
	return c
}

// python runs code, in a new session where it is "".
func (c mcpClient) python(session, code string) (text, of string, failed bool) {
	c.t.Helper()
	arguments := map[string]any{"code": code}
	if session != "" {
		arguments["session"] = session
	}
	r, err := c.CallTool(c.t.Context(), &mcp.CallToolParams{Name: "python", Arguments: arguments})
	if err != nil {
		c.t.Fatalf("%v: %s", err, c.said)
	}
	for _, one := range r.Content {
		if one, ok := one.(*mcp.TextContent); ok {
			text += one.Text
		}
	}
	if said, ok := r.StructuredContent.(map[string]any); ok {
		of, _ = said["session"].(string)
	}
	return text, of, r.IsError
}

// leave closes the command's standard input, which has to be enough.
func (c mcpClient) leave() {
	c.t.Helper()
	if err := c.Close(); err != nil || !c.cmd.ProcessState.Success() {
		c.t.Errorf("%v, %v: %s", err, c.cmd.ProcessState, c.said)
	}
}

// TestMCPWithoutAServer has a program use the command that is in its settings, and its user take up what it has made.
func TestMCPWithoutAServer(t *testing.T) {
	t.Parallel()
	h := newMCPHome(t)
	first := h.start()
	if tools, err := first.ListTools(t.Context(), nil); err != nil || len(tools.Tools) != 7 {
		t.Fatalf("%v %+v", err, tools)
	}
	text, lab, failed := first.python("", "x = 41\nopen('a.txt', 'w').write('kept')\nx + 1")
	if failed || !strings.HasPrefix(text, "42\n") {
		t.Fatalf("%s: %s", text, first.said)
	}
	if text, _, _ := first.python(lab, "x += 1; x"); text != "42\n" {
		t.Error(text)
	}
	second := h.start() // as a program does that starts the command twice
	if text, _, failed := second.python(lab, "x"); !failed || !strings.Contains(text, fmt.Sprintf("is used by cove mcp (process %d); wait until", first.cmd.Process.Pid)) {
		t.Errorf("a session that another one has: %s", text)
	}
	if text, _, failed := second.python("", "1"); failed {
		t.Errorf("a session of its own: %s", text)
	}
	if said := h.run("run", "--session", lab, "-c", "x"); !strings.Contains(said, "is in use by process ") || !strings.Contains(said, "(cove mcp)") {
		t.Errorf("a command that wants the session: %s", said)
	}
	first.leave()
	if text, _, _ := second.python(lab, "x"); text != "42\n" {
		t.Errorf("the session is free: %s", text)
	}
	second.leave()
	if s := h.session(lab); s.State != "paused" {
		t.Errorf("%+v", s)
	}
	if said := h.run("run", "--session", lab, "-c", "x += 1; x, open('a.txt').read()"); said != "(43, 'kept')\n" {
		t.Errorf("the user goes on with it: %s", said)
	}
	third := h.start()
	if text, _, _ := third.python(lab, "x"); text != "43\n" {
		t.Errorf("and the next one: %s", text)
	}
	third.leave()
	if said := first.said.String() + second.said.String() + third.said.String(); strings.Contains(said, "level=") || strings.Contains(said, "error") {
		t.Error(said)
	}
}

// TestMCPWithoutAServerEnds kills the command, and its client, while code runs. What was saved before is there, and what was lost is told.
func TestMCPWithoutAServerEnds(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	h := newMCPHome(t)
	c := h.start()
	text, lab, failed := c.python("", "x = 1")
	if failed {
		t.Fatal(text)
	}
	h.untilSaved(lab, 1)
	if text, _, _ := c.python(lab, "x = 2; x"); text != "2\n" {
		t.Error(text)
	}
	_ = c.cmd.Process.Kill()
	_ = c.Close()
	c = h.start()
	text, _, _ = c.python(lab, "print(x)")
	told := strings.Contains(text, "The session went back to its state of ")
	if saved, before := strings.HasSuffix(text, "2\n"), strings.HasSuffix(text, "1\n"); !saved && (!told || !before) {
		t.Errorf("after a kill: %s", text)
	}
	c.leave()
	for k, end := range []func(*exec.Cmd, io.Closer, io.Closer){
		func(cmd *exec.Cmd, _, _ io.Closer) { _ = cmd.Process.Signal(syscall.SIGTERM) },
		func(_ *exec.Cmd, in, out io.Closer) { _, _ = in.Close(), out.Close() }, // its client is killed
		func(_ *exec.Cmd, _, out io.Closer) { _ = out.Close() },                 // and something else has its standard input
	} {
		h.interrupted(lab, 10+k, end)
		if said := h.run("run", "--session", lab, "-c", "x"); said != fmt.Sprintln(10+k) {
			t.Errorf("way %d to end it: %s", k, said)
		}
	}
}

// interrupted ends the command while code runs that has set x.
func (h mcpHome) interrupted(session string, x int, end func(cmd *exec.Cmd, in, out io.Closer)) {
	h.t.Helper()
	cmd := h.command("mcp")
	in, err := cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		h.t.Fatal(err)
	}
	code, _ := json.Marshal(fmt.Sprintf("x = %d\nprint('set', flush=True)\nwhile True: pass", x))
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"python","arguments":{"session":"`+session+`","code":`+string(code)+`},"_meta":{"progressToken":1}}}
`)
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), `"set"`); {
		if !json.Valid(lines.Bytes()) {
			h.t.Errorf("standard output has %s", lines.Bytes())
		}
	}
	end(cmd, in, out)
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	ctx, cancel := context.WithTimeout(h.t.Context(), testneeds.Patience)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
		h.t.Fatal("it does not end")
	}
}
