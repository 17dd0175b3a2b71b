package e2e_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cove/internal/testkit/testneeds"
)

// notebookFrame is a message of a kernel's WebSocket.
type notebookFrame struct {
	Channel string `json:"channel"`
	Type    string `json:"msg_type"`
	Header  struct {
		ID   string `json:"msg_id"`
		Type string `json:"msg_type"`
	} `json:"header"`
	Parent struct {
		ID string `json:"msg_id"`
	} `json:"parent_header"`
	Content map[string]any `json:"content"`
}

// notebook is a client of a kernel, in one of the two framings.
type notebook struct {
	t      *testing.T
	conn   *websocket.Conn
	binary bool
	sent   int
}

func (s *server) notebook(kernel, session string, binary bool) *notebook {
	s.t.Helper()
	o := &websocket.DialOptions{}
	if binary {
		o.Subprotocols = []string{"v1.kernel.websocket.jupyter.org"}
	}
	conn, _, err := websocket.Dial(s.t.Context(), strings.Replace(s.base, "http", "ws", 1)+"/jupyter/api/kernels/"+kernel+"/channels?session_id="+session+"&token="+s.key, o) //nolint:bodyclose // Dial says that it never needs to be
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(16 << 20)
	return &notebook{t: s.t, conn: conn, binary: binary}
}

// send sends a request and returns its id.
func (n *notebook) send(channel, kind string, content map[string]any) string {
	n.t.Helper()
	n.sent++
	id := fmt.Sprintf("%p-%d", n, n.sent)
	head := map[string]any{"msg_id": id, "msg_type": kind, "username": "e2e", "session": "e2e", "date": "", "version": "5.3"}
	var frame []byte
	how := websocket.MessageText
	if n.binary {
		how = websocket.MessageBinary
		parts := [][]byte{[]byte(channel)}
		for _, v := range []any{head, map[string]any{}, map[string]any{}, content} {
			text, _ := json.Marshal(v)
			parts = append(parts, text)
		}
		at := 8 * (len(parts) + 2)
		frame = binary.LittleEndian.AppendUint64(nil, uint64(len(parts)+1))
		for _, p := range parts {
			frame = binary.LittleEndian.AppendUint64(frame, uint64(at))
			at += len(p)
		}
		frame = binary.LittleEndian.AppendUint64(frame, uint64(at))
		for _, p := range parts {
			frame = append(frame, p...)
		}
	} else {
		frame, _ = json.Marshal(map[string]any{"channel": channel, "header": head, "parent_header": map[string]any{}, "metadata": map[string]any{}, "content": content, "buffers": map[string]any{}})
	}
	if err := n.conn.Write(n.t.Context(), how, frame); err != nil {
		n.t.Fatal(err)
	}
	return id
}

func (n *notebook) read() (f notebookFrame) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	kind, frame, err := n.conn.Read(ctx)
	if err != nil {
		n.t.Fatal(err)
	}
	if (kind == websocket.MessageBinary) != n.binary {
		n.t.Fatalf("a frame is of the other kind: %s", frame)
	}
	if !n.binary {
		if err := json.Unmarshal(frame, &f); err != nil || f.Type != f.Header.Type {
			n.t.Fatalf("%v: %s", err, frame)
		}
		return f
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(frame[8*(i+1):]) }
	part := func(i int) []byte { return frame[at(i):at(i+1)] }
	f.Channel = string(part(0))
	for i, into := range map[int]any{1: &f.Header, 2: &f.Parent, 4: &f.Content} {
		if err := json.Unmarshal(part(i), into); err != nil {
			n.t.Fatal(err)
		}
	}
	f.Type = f.Header.Type
	return f
}

// until reads what answers a request up to the kernel's being idle and the reply.
func (n *notebook) until(id string) (all []notebookFrame) {
	n.t.Helper()
	idle, replied := false, false
	for !idle || !replied {
		f := n.read()
		if f.Parent.ID != id {
			continue
		}
		all = append(all, f)
		idle = idle || f.Type == "status" && f.Content["execution_state"] == "idle"
		replied = replied || strings.HasSuffix(f.Type, "_reply")
	}
	return all
}

func (n *notebook) run(code string) []notebookFrame {
	n.t.Helper()
	return n.until(n.send("shell", "execute_request", map[string]any{"code": code, "silent": false, "store_history": true, "allow_stdin": false, "stop_on_error": true}))
}

// began waits until code of a request has written something.
func (n *notebook) began(id string) {
	n.t.Helper()
	for {
		if f := n.read(); f.Parent.ID == id && f.Type == "stream" {
			return
		}
	}
}

// typesOf are the types of messages, with what is worth knowing of them.
func typesOf(all []notebookFrame) string {
	var out []string
	for _, f := range all {
		word := f.Type
		switch f.Type {
		case "status":
			word = fmt.Sprint(f.Content["execution_state"])
		case "stream":
			word = fmt.Sprintf("%v:%q", f.Content["name"], f.Content["text"])
		case "execute_result", "display_data", "update_display_data":
			data, _ := f.Content["data"].(map[string]any)
			word = fmt.Sprintf("%s:%v", f.Type, data["text/plain"])
		case "error":
			word = fmt.Sprintf("error:%v", f.Content["ename"])
		case "execute_reply":
			word = fmt.Sprintf("execute_reply:%v:%v", f.Content["status"], f.Content["execution_count"])
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

type notebookKernel struct {
	ID, Name     string
	State        string `json:"execution_state"`
	Connections  int
	LastActivity string `json:"last_activity"`
}

// TestJupyter has a client of ours do what notebooks do, in both framings.
func TestJupyter(t *testing.T) {
	testneeds.FullTier(t)
	dir := t.TempDir()
	s := startServer(t, dir, testKey(t))
	var kept string
	for _, binary := range []bool{false, true} {
		t.Run(fmt.Sprintf("binary=%v", binary), func(t *testing.T) {
			var k notebookKernel
			s.must(http.MethodPost, "/jupyter/api/kernels", nil, &k)
			kept = k.ID
			n := s.notebook(k.ID, "one", binary)
			n.t = t
			if got := typesOf(n.until(n.send("shell", "kernel_info_request", nil))); got != "busy kernel_info_reply idle" {
				t.Errorf("kernel_info: %s", got)
			}
			for _, c := range []struct{ code, want string }{
				{"x = 6\nprint('hello')", `busy execute_input stdout:"hello\n" execute_reply:ok:1 idle`},
				{"x * 7", "busy execute_input execute_result:42 execute_reply:ok:2 idle"},
				{"import sys\nsys.stderr.write('oh\\n');", `busy execute_input stderr:"oh\n" execute_reply:ok:3 idle`},
				{"from IPython.display import display\nh = display('a', display_id=True)\nh.update('b')", "busy execute_input display_data:'a' update_display_data:'b' execute_reply:ok:4 idle"},
				{"1/0", "busy execute_input error:ZeroDivisionError execute_reply:error:5 idle"},
				{"raise SystemExit(3)", "busy execute_input error:SystemExit execute_reply:error:6 idle"},
			} {
				if got := typesOf(n.run(c.code)); got != c.want {
					t.Errorf("%s\nis %s\nand not %s", c.code, got, c.want)
				}
			}
			silent := n.until(n.send("shell", "execute_request", map[string]any{"code": "y = 1\ny", "silent": true, "store_history": false}))
			if got := typesOf(silent); got != "busy execute_reply:ok:6 idle" {
				t.Errorf("silent: %s", got)
			}
			if got := typesOf(n.run("x + y")); got != "busy execute_input execute_result:7 execute_reply:ok:7 idle" {
				t.Errorf("behind the silent one: %s", got)
			}
			askAndInterrupt(t, n, s, k.ID)
			editing(t, n)
			besides(t, n)
			restarts(t, n, s, k.ID)
		})
	}
	keptByRestart(t, s, dir, kept, document(t, s))
}

func askAndInterrupt(t *testing.T, n *notebook, s *server, id string) {
	t.Helper()
	asks := n.send("shell", "execute_request", map[string]any{"code": "print('you are ' + input('who? '))", "allow_stdin": true})
	for f := n.read(); ; f = n.read() {
		if f.Type == "input_request" && f.Parent.ID == asks && f.Content["prompt"] == "who? " {
			break
		}
	}
	n.send("stdin", "input_reply", map[string]any{"value": "Ann"})
	if got := typesOf(n.until(asks)); !strings.Contains(got, `stdout:"you are Ann\n"`) {
		t.Errorf("input: %s", got)
	}
	for name, interrupt := range map[string]func(){
		"REST":    func() { s.must(http.MethodPost, "/jupyter/api/kernels/"+id+"/interrupt", nil, nil) },
		"control": func() { n.send("control", "interrupt_request", nil) },
	} {
		slow := n.send("shell", "execute_request", map[string]any{"code": "import time\nprint('began')\ntime.sleep(600)", "stop_on_error": true})
		next := n.send("shell", "execute_request", map[string]any{"code": "print('never')"})
		n.began(slow)
		interrupt()
		if got := typesOf(n.until(slow)); !strings.Contains(got, "error:KeyboardInterrupt") || !strings.Contains(got, "execute_reply:error") {
			t.Errorf("%s: what was interrupted is %s", name, got)
		}
		if got := typesOf(n.until(next)); !strings.Contains(got, "execute_reply:aborted") || strings.Contains(got, "never") {
			t.Errorf("%s: what waited is %s", name, got)
		}
	}
}

func editing(t *testing.T, n *notebook) {
	t.Helper()
	last := func(kind string, content map[string]any) map[string]any {
		for _, f := range n.until(n.send("shell", kind, content)) {
			if f.Type == strings.Replace(kind, "_request", "_reply", 1) {
				return f.Content
			}
		}
		return nil
	}
	n.run("import math")
	if got := fmt.Sprint(last("complete_request", map[string]any{"code": "math.sq", "cursor_pos": 7})); !strings.Contains(got, "sqrt") {
		t.Errorf("completions: %s", got)
	}
	if got := fmt.Sprint(last("inspect_request", map[string]any{"code": "math.sqrt", "cursor_pos": 9, "detail_level": 0})); !strings.Contains(got, "square root") {
		t.Errorf("inspection: %s", got)
	}
	if got := last("is_complete_request", map[string]any{"code": "for i in range(3):"})["status"]; got != "incomplete" {
		t.Errorf("a loop's head is %v", got)
	}
	if got := fmt.Sprint(last("history_request", map[string]any{"hist_access_type": "tail", "n": 1})); !strings.Contains(got, "import math") {
		t.Errorf("history: %s", got)
	}
	if got := fmt.Sprint(last("comm_info_request", nil)); !strings.Contains(got, "comms:map[]") {
		t.Errorf("comms: %s", got)
	}
	if got := last("debug_request", nil)["status"]; got != "error" {
		t.Errorf("a debugger's request is %v", got)
	}
}

// besides has what a reply tells besides output: pages of the pager, text for the next cell, values of expressions, and inputs of before.
func besides(t *testing.T, n *notebook) {
	t.Helper()
	reply := func(kind string, content map[string]any) (all []notebookFrame, last map[string]any) {
		all = n.until(n.send("shell", kind, content))
		for _, f := range all {
			if strings.HasSuffix(f.Type, "_reply") {
				last = f.Content
			}
		}
		return all, last
	}
	for code, want := range map[string]string{"zip?": "source:page", "get_ipython().set_next_input('z = 1')": "map[replace:false source:set_next_input text:z = 1]"} {
		all, last := reply("execute_request", map[string]any{"code": code})
		if got := fmt.Sprint(last["payload"]); !strings.Contains(got, want) || strings.Contains(typesOf(all), "stream") || strings.Contains(typesOf(all), "display_data") {
			t.Errorf("%s has the payload %s: %s", code, got, typesOf(all))
		}
	}
	all, last := reply("execute_request", map[string]any{"code": "seven = 7", "user_expressions": map[string]any{"good": "seven * 6", "bad": "nowhere", "odd": "seven = 8", "none": "print('said')"}})
	values, _ := last["user_expressions"].(map[string]any)
	for name, want := range map[string]string{"good": "text/plain:42", "bad": "ename:NameError", "odd": "ename:SyntaxError", "none": "text/plain:None"} {
		if got := fmt.Sprint(values[name]); !strings.Contains(got, want) {
			t.Errorf("the expression %q is %s", name, got)
		}
	}
	if got := typesOf(all); strings.Contains(got, "error") || strings.Contains(got, "execute_result") || !strings.Contains(got, `stdout:"said\n"`) {
		t.Errorf("beside the expressions: %s", got)
	}
	_, last = reply("history_request", map[string]any{"hist_access_type": "search", "pattern": "seven = ?", "raw": true})
	found, _ := last["history"].([]any)
	if len(found) != 1 {
		t.Fatalf("found is %v", last)
	}
	line := found[0].([]any)
	_, last = reply("history_request", map[string]any{"hist_access_type": "range", "session": line[0], "start": line[1], "stop": line[1].(float64) + 5, "raw": true})
	if got := fmt.Sprint(last["history"]); got != fmt.Sprintf("[[%v %v seven = 7]]", line[0], line[1]) { // expressions are no inputs
		t.Errorf("the range is %s", got)
	}
}

func restarts(t *testing.T, n *notebook, s *server, id string) {
	t.Helper()
	var k notebookKernel
	s.must(http.MethodPost, "/jupyter/api/kernels/"+id+"/restart", map[string]any{}, &k)
	if k.ID != id || k.Connections != 1 {
		t.Errorf("the kernel is %+v", k)
	}
	if got := typesOf(n.run("'x' in globals()")); got != "busy execute_input execute_result:False execute_reply:ok:1 idle" {
		t.Errorf("behind a restart: %s", got)
	}
	// What comes while a client is gone is there when it comes again.
	slow := n.send("shell", "execute_request", map[string]any{"code": "import os, time\nprint('began')\nwhile not os.path.exists('go'): time.sleep(.01)\nprint('over')\nx = 6"})
	n.began(slow)
	_ = n.conn.CloseNow()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if s.must(http.MethodGet, "/jupyter/api/kernels/"+id, nil, &k); k.Connections == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the connection does not end")
		}
	}
	if k.State != "busy" {
		t.Errorf("the kernel is %s", k.State)
	}
	other := s.notebook(id, "two-"+id, n.binary)
	other.t = t
	touched := other.send("shell", "execute_request", map[string]any{"code": "x"})
	s.must(http.MethodPut, "/api/v1/sessions/"+s.newestSession()+"/files/go", []byte("now"), nil)
	if got := typesOf(other.until(touched)); !strings.Contains(got, "execute_result:6") {
		t.Errorf("another client gets %s", got)
	}
}

// newestSession is the newest session, which the kernel is that a test has just made.
func (s *server) newestSession() string {
	s.t.Helper()
	var list struct{ Items []struct{ ID string } }
	s.must(http.MethodGet, "/api/v1/sessions", nil, &list)
	for _, one := range list.Items {
		return one.ID
	}
	s.t.Fatal("there is no session")
	return ""
}

// keptByRestart stops the server, and finds a kernel and its variables in the next one.
func keptByRestart(t *testing.T, s *server, dir, id, document string) {
	t.Helper()
	if r := s.stop(); r.code != 0 {
		t.Fatalf("the server ended with %d", r.code)
	}
	s = startServer(t, dir, s.key)
	var k notebookKernel
	s.must(http.MethodGet, "/jupyter/api/kernels/"+id, nil, &k)
	beside := s.notebook(document, "four", false)
	if got := typesOf(beside.run("word")); got != "busy execute_input execute_result:'beside' execute_reply:ok:4 idle" {
		t.Errorf("a document's kernel behind a restart of the server: %s", got)
	}
	s.must(http.MethodDelete, "/jupyter/api/kernels/"+document, nil, nil)
	n := s.notebook(id, "three", false)
	if got := typesOf(n.run("x")); !strings.Contains(got, "execute_result:6") {
		t.Errorf("behind a restart of the server: %s", got)
	}
	s.must(http.MethodDelete, "/jupyter/api/kernels/"+id, nil, nil)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, _, err := n.conn.Read(ctx)
		cancel()
		if websocket.CloseStatus(err) == websocket.StatusNormalClosure {
			break
		}
		if err != nil {
			t.Fatalf("the connection to a deleted kernel ends with %v", err)
		}
	}
	if r, err := s.call(t.Context(), http.MethodGet, "/jupyter/api/kernels/"+id, nil); err != nil || r.status != http.StatusNotFound || !strings.Contains(string(r.body), `"message"`) {
		t.Errorf("a deleted kernel: %v %d %s", err, r.status, r.body)
	}
}

// TestClientsJupyter has programs for Jupyter, as they are published, use a server's kernels.
func TestClientsJupyter(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t))
	for _, c := range []struct {
		name    string
		command func(t *testing.T, source string) *exec.Cmd
		told    string
	}{
		{"jupyterclients", pythonSDK, "ok jupyter_server as a gateway's client"},
		{"jupyterjs", nodeSDK, "ok files and terminals"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := c.command(t, filepath.Join("testdata", "sdk", c.name))
			cmd.Env = append(os.Environ(), "COVE_TEST_URL="+s.base+"/jupyter", "COVE_TEST_KEY="+s.key, "PYTHONDONTWRITEBYTECODE=", "JUPYTER_PLATFORM_DIRS=1", "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), c.told) {
				t.Errorf("%v\n%s\nthe server: %s", err, out, s.log)
			}
			var left []notebookKernel
			s.must(http.MethodGet, "/jupyter/api/kernels", nil, &left)
			if len(left) > 0 {
				t.Errorf("kernels are left: %+v", left)
			}
		})
	}
}
