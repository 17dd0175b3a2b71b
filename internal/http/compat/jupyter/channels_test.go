package jupyter_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

const patience = 30 * time.Second

type socket struct {
	t    *testing.T
	conn *websocket.Conn
	sent int
}

type frame struct {
	Channel string              `json:"channel"`
	Type    string              `json:"msg_type"`
	Parent  struct{ ID string } `json:"-"`
	Raw     map[string]any      `json:"parent_header"`
	Content map[string]any      `json:"content"`
}

func (g *rig) dial(kernel, session string, protocols ...string) *socket {
	g.t.Helper()
	conn, _, err := websocket.Dial(g.t.Context(), strings.Replace(g.url, "http", "ws", 1)+"/api/kernels/"+kernel+"/channels?token=annskey&session_id="+session, &websocket.DialOptions{Subprotocols: protocols}) //nolint:bodyclose // Dial says that it never needs to be
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(16 << 20)
	return &socket{t: g.t, conn: conn}
}

// screen is a connection to a terminal.
type screen struct{ *socket }

func (g *rig) screen(name string) screen {
	g.t.Helper()
	conn, _, err := websocket.Dial(g.t.Context(), strings.Replace(g.url, "http", "ws", 1)+"/terminals/websocket/"+name+"?token=annskey", nil) //nolint:bodyclose // Dial says that it never needs to be
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = conn.CloseNow() })
	return screen{&socket{t: g.t, conn: conn}}
}

func (s screen) write(text string) {
	s.t.Helper()
	if err := s.conn.Write(s.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
}

func (s screen) read() string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	_, text, err := s.conn.Read(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

func (s *socket) send(channel, kind, content string) string {
	s.t.Helper()
	s.sent++
	id := fmt.Sprintf("m%d", s.sent)
	text := fmt.Sprintf(`{"channel":%q,"header":{"msg_id":%q,"msg_type":%q,"own":[1]},"parent_header":{},"metadata":{},"content":%s,"buffers":{}}`, channel, id, kind, content)
	if err := s.conn.Write(s.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *socket) read() (f frame, err error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	_, text, err := s.conn.Read(ctx)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	return f, err
}

// next reads up to a message that answers id and is of a kind.
func (s *socket) next(id, kind string) frame {
	s.t.Helper()
	for {
		f, err := s.read()
		if err != nil {
			s.t.Fatalf("no %s for %s: %v", kind, id, err)
		}
		parent, _ := f.Raw["msg_id"].(string)
		if parent == id && f.Type == kind {
			return f
		}
	}
}

// all returns what answers a request, in words.
func (s *socket) all(id string) string {
	s.t.Helper()
	var words []string
	idle, replied := false, false
	for !idle || !replied {
		f, err := s.read()
		if err != nil {
			s.t.Fatal(err)
		}
		if f.Raw["msg_id"] != id {
			continue
		}
		if f.Raw["own"] == nil {
			s.t.Errorf("the parent is not as it was sent: %v", f.Raw)
		}
		text, _ := json.Marshal(f.Content)
		words = append(words, f.Channel+" "+f.Type+" "+string(text))
		idle = idle || f.Content["execution_state"] == "idle"
		replied = replied || strings.HasSuffix(f.Type, "_reply")
	}
	return strings.Join(words, "\n")
}

func TestWhatCodeEmits(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	events := map[string][]kernel.Event{
		"ok": {
			kernel.Stream{Name: "stdout", Data: []byte("a<b\xff")}, kernel.Display{ID: "d", Data: kernel.Bundle{"text/plain": "1", "application/vnd.cove.table+json": json.RawMessage("{}")}},
			kernel.Display{ID: "d", Update: true, Data: kernel.Bundle{"application/json": json.RawMessage(`{"a":[1]}`)}}, kernel.ClearOutput{Wait: true}, kernel.File{Path: "x"},
			kernel.Result{Count: 7, Data: kernel.Bundle{"text/plain": "2"}}, kernel.Done{Outcome: kernel.OutcomeOK, Dropped: 5},
		},
		"bad":  {kernel.Error{Name: "ValueError", Value: "no", Traceback: []string{"ValueError: no"}, Hint: "do it so"}, kernel.Done{Outcome: kernel.OutcomeError, ExitCode: 1}},
		"exit": {kernel.Done{Outcome: kernel.OutcomeError, ExitCode: 3}},
		"dead": {kernel.Done{Outcome: kernel.OutcomeMemory, Lost: kernel.LostKernel, Message: "too much memory"}},
	}
	g.script = func(n hub.NewExecution, emit func(kernel.Event), _ <-chan struct{}) {
		for _, e := range events[n.Code] {
			emit(e)
		}
	}
	s := g.dial(g.kernel(), "one")
	for _, c := range []struct{ code, want string }{
		{"ok", `iopub status {"execution_state":"busy"}
iopub execute_input {"code":"ok","execution_count":1}
iopub stream {"name":"stdout","text":"a\u003cb` + "\uFFFD" + `"}
iopub display_data {"data":{"text/plain":"1"},"metadata":{},"transient":{"display_id":"d"}}
iopub update_display_data {"data":{"application/json":{"a":[1]}},"metadata":{},"transient":{"display_id":"d"}}
iopub clear_output {"wait":true}
iopub execute_result {"data":{"text/plain":"2"},"execution_count":7,"metadata":{},"transient":{}}
iopub stream {"name":"stderr","text":"cove: 5 bytes of output beyond the limit were dropped\n"}
shell execute_reply {"execution_count":7,"payload":[],"status":"ok","user_expressions":{}}
iopub status {"execution_state":"idle"}`},
		{"bad", `iopub status {"execution_state":"busy"}
iopub execute_input {"code":"bad","execution_count":8}
iopub error {"ename":"ValueError","evalue":"no","traceback":["ValueError: no","Hint: do it so"]}
shell execute_reply {"ename":"ValueError","evalue":"no","execution_count":8,"payload":[],"status":"error","traceback":["ValueError: no","Hint: do it so"],"user_expressions":{}}
iopub status {"execution_state":"idle"}`},
		{"exit", `iopub status {"execution_state":"busy"}
iopub execute_input {"code":"exit","execution_count":9}
iopub error {"ename":"SystemExit","evalue":"the code ended with exit code 3","traceback":["SystemExit: the code ended with exit code 3"]}
shell execute_reply {"ename":"SystemExit","evalue":"the code ended with exit code 3","execution_count":9,"payload":[],"status":"error","traceback":["SystemExit: the code ended with exit code 3"],"user_expressions":{}}
iopub status {"execution_state":"idle"}`},
		{"dead", `iopub status {"execution_state":"busy"}
iopub execute_input {"code":"dead","execution_count":10}
iopub error {"ename":"MemoryError","evalue":"too much memory","traceback":["MemoryError: too much memory"]}
shell execute_reply {"ename":"MemoryError","evalue":"too much memory","execution_count":10,"payload":[],"status":"error","traceback":["MemoryError: too much memory"],"user_expressions":{}}
iopub status {"execution_state":"idle"}`},
	} {
		if got := s.all(s.send("shell", "execute_request", `{"code":"`+c.code+`"}`)); got != c.want {
			t.Errorf("%s is\n%s\nand not\n%s", c.code, got, c.want)
		}
	}
	if got := s.all(s.send("", "execute_request", `{"code":"ok","silent":true}`)); !strings.Contains(got, `"status":"ok"`) || strings.Contains(got, "execute_result") {
		t.Errorf("silent: %s", got)
	}
	if n := g.asked[len(g.asked)-1]; !n.Unnumbered || !n.Payloads || n.Input == nil {
		t.Errorf("the hub was asked for %+v", n)
	}
	g.refuse = problem.New(problem.QuotaCPU, "the day's time is used up")
	if got := s.all(s.send("shell", "execute_request", `{"code":"ok"}`)); strings.Count(got, "quota_cpu") != 4 {
		t.Errorf("what is refused: %s", got)
	}
}

func TestOtherRequests(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	s := g.dial(g.kernel(), "one")
	for _, c := range []struct{ kind, content, want string }{
		{"kernel_info_request", "{}", `"protocol_version":"5.3"`},
		{"complete_request", `{"code":"math.sq","cursor_pos":7}`, `{"cursor_end":7,"cursor_start":5,"matches":["sqrt"],"metadata":{},"status":"ok"}`},
		{"inspect_request", `{"code":"x","cursor_pos":1}`, `{"data":{},"found":false,"metadata":{},"status":"ok"}`},
		{"is_complete_request", `{"code":"x"}`, `{"indent":"","status":"unknown"}`},
		{"history_request", `{"output":true}`, `[[1,1,["first",null]],[1,2,["second",null]]]`},
		{"comm_info_request", "{}", `{"comms":{},"status":"ok"}`},
		{"strange_request", "{}", `"status":"error"`},
		{"execute_request", `{"code":" "}`, `"status":"ok"`},
	} {
		for _, channel := range []string{"shell", "control"} {
			if got := s.all(s.send(channel, c.kind, c.content)); !strings.Contains(got, c.want) || !strings.Contains(got, channel+" "+strings.Replace(c.kind, "request", "reply", 1)) {
				t.Errorf("%s on %s: %s", c.kind, channel, got)
			}
		}
	}
	close(g.revoked)
	if got := s.all(s.send("shell", "execute_request", `{"code":"1"}`)); !strings.Contains(got, "unauthenticated") || len(g.asked) > 0 {
		t.Errorf("with a revoked key: %s", got)
	}
}

// TestOrder: code waits for the code before it, is not run when that fails, and an interrupt reaches what runs.
func TestOrder(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	began := make(chan struct{}, 1)
	g.script = func(n hub.NewExecution, emit func(kernel.Event), stopped <-chan struct{}) {
		if n.Code == "slow" {
			began <- struct{}{}
			<-stopped
			emit(kernel.Error{Name: "KeyboardInterrupt", Traceback: []string{"KeyboardInterrupt"}})
			emit(kernel.Done{Outcome: kernel.OutcomeInterrupted})
			return
		}
		emit(kernel.Done{Outcome: kernel.OutcomeOK})
	}
	id := g.kernel()
	s, other := g.dial(id, "one"), g.dial(id, "two")
	other.all(other.send("control", "kernel_info_request", "{}")) // it is connected
	slow, next := s.send("shell", "execute_request", `{"code":"slow"}`), s.send("shell", "execute_request", `{"code":"next"}`)
	<-began
	if status, _, v := g.ask("GET", "/api/kernels/"+id+"?token=annskey", ""); status != 200 || v.(map[string]any)["execution_state"] != "busy" || v.(map[string]any)["connections"] != 2.0 {
		t.Errorf("the kernel is %v", v)
	}
	if got := s.all(s.send("control", "debug_request", "{}")); !strings.HasPrefix(got, `iopub status {"execution_state":"busy"}`) || !strings.HasSuffix(got, `iopub status {"execution_state":"idle"}`) {
		t.Errorf("a request on control meanwhile: %s", got)
	}
	if _, _, v := g.ask("GET", "/api/kernels/"+id+"?token=annskey", ""); v.(map[string]any)["execution_state"] != "busy" {
		t.Errorf("behind that the kernel is %v", v)
	}
	if got := s.next(s.send("control", "interrupt_request", "{}"), "interrupt_reply").Content["status"]; got != "ok" {
		t.Errorf("the interrupt is %v", got)
	}
	if got := s.next(slow, "execute_reply").Content["ename"]; got != "KeyboardInterrupt" {
		t.Errorf("what ran ends with %v", got)
	}
	if got := s.next(next, "execute_reply").Content["status"]; got != "aborted" {
		t.Errorf("what waited is %v", got)
	}
	if f := other.next(slow, "error"); f.Content["ename"] != "KeyboardInterrupt" {
		t.Errorf("the other client sees %+v", f)
	}
	if got := s.next(s.send("shell", "execute_request", `{"code":"again"}`), "execute_reply").Content["status"]; got != "ok" {
		t.Errorf("what comes then is %v", got)
	}
	slow = s.send("shell", "execute_request", `{"code":"slow"}`)
	<-began
	if got := s.next(s.send("control", "shutdown_request", `{"restart":true}`), "shutdown_reply").Content["restart"]; got != true {
		t.Errorf("a new interpreter: %v", got)
	}
	s.next(slow, "execute_reply")
	s.send("shell", "shutdown_request", "{}")
	for {
		if f, err := other.read(); err != nil {
			if websocket.CloseStatus(err) != websocket.StatusNormalClosure {
				t.Errorf("the connection ends with %v", err)
			}
			break
		} else if f.Type == "execute_reply" {
			t.Errorf("another client's reply came: %+v", f)
		}
	}
	if status, _, _ := g.ask("GET", "/api/kernels/"+id+"?token=annskey", ""); status != 404 {
		t.Errorf("a kernel that was shut down: %d", status)
	}
}

func TestInput(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.script = func(n hub.NewExecution, emit func(kernel.Event), _ <-chan struct{}) {
		text, err := n.Input("who? ", true)
		emit(kernel.Stream{Name: "stdout", Data: fmt.Appendf(nil, "%s %v", text, err)})
		emit(kernel.Done{Outcome: kernel.OutcomeOK})
	}
	id := g.kernel()
	s, other := g.dial(id, "one"), g.dial(id, "two")
	asks := s.send("shell", "execute_request", `{"code":"x"}`)
	if f := s.next(asks, "input_request"); f.Channel != "stdin" || f.Content["prompt"] != "who? " || f.Content["password"] != true {
		t.Errorf("the request is %+v", f)
	}
	other.send("stdin", "input_reply", `{"value":"Bob"}`)
	other.next(other.send("control", "kernel_info_request", "{}"), "kernel_info_reply")
	s.send("stdin", "input_reply", `{"value":"Ann"}`)
	if got := s.next(asks, "stream").Content["text"]; got != "Ann <nil>" {
		t.Errorf("the input is %v", got)
	}
	asks = s.send("shell", "execute_request", `{"code":"x"}`)
	s.next(asks, "input_request")
	_ = s.conn.CloseNow()
	if got := other.next(asks, "stream").Content["text"]; got != " EOF" {
		t.Errorf("without the client the input is %v", got)
	}
}

// TestAClientComesBack: what came while a client was away is sent to it, and to no other.
func TestAClientComesBack(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	began, let := make(chan struct{}, 1), make(chan struct{})
	g.script = func(_ hub.NewExecution, emit func(kernel.Event), _ <-chan struct{}) {
		began <- struct{}{}
		<-let
		emit(kernel.Stream{Name: "stdout", Data: []byte("late")})
		emit(kernel.Done{Outcome: kernel.OutcomeOK})
	}
	id := g.kernel()
	s := g.dial(id, "one")
	ran := s.send("shell", "execute_request", `{"code":"x"}`)
	<-began
	_ = s.conn.CloseNow()
	state := func(name string) any {
		_, _, v := g.ask("GET", "/api/kernels/"+id+"?token=annskey", "")
		return v.(map[string]any)[name]
	}
	eventually(t, func() bool { return state("connections") == 0.0 })
	close(let)
	eventually(t, func() bool { return state("execution_state") == "idle" })
	back := g.dial(id, "one")
	if got := back.next(ran, "stream").Content["text"]; got != "late" {
		t.Errorf("what was kept is %v", got)
	}
	back.next(ran, "execute_reply")
	again := g.dial(id, "one") // in the place of the one before
	if _, err := back.read(); err != nil && websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("the connection that was replaced ends with %v", err)
	}
	close(g.stopping)
	for {
		if _, err := again.read(); err != nil {
			if websocket.CloseStatus(err) != websocket.StatusNormalClosure {
				t.Errorf("a server that stops ends connections with %v", err)
			}
			break
		}
	}
}

func TestWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	id := g.kernel()
	parts := func(of ...string) []byte {
		at := 8 * (len(of) + 2)
		frame := binary.LittleEndian.AppendUint64(nil, uint64(len(of)+1))
		for _, p := range of {
			frame = binary.LittleEndian.AppendUint64(frame, uint64(at))
			at += len(p)
		}
		frame = binary.LittleEndian.AppendUint64(frame, uint64(at))
		return append(frame, strings.Join(of, "")...)
	}
	good := parts("shell", `{"msg_id":"a","msg_type":"kernel_info_request"}`, "{}", "{}", "{}", "a buffer")
	far := append([]byte(nil), good...)
	binary.LittleEndian.PutUint64(far[16:], 1<<40)
	buffers := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 1), 8)
	for name, c := range map[string]struct {
		protocol string
		kind     websocket.MessageType
		frame    []byte
		taken    bool
	}{
		"parts":             {"v1.kernel.websocket.jupyter.org", websocket.MessageBinary, good, true},
		"too few parts":     {"v1.kernel.websocket.jupyter.org", websocket.MessageBinary, parts("shell", "{}", "{}", "{}"), false},
		"a far part":        {"v1.kernel.websocket.jupyter.org", websocket.MessageBinary, far, false},
		"a short frame":     {"v1.kernel.websocket.jupyter.org", websocket.MessageBinary, []byte("short"), false},
		"no JSON":           {"", websocket.MessageText, []byte("{"), false},
		"no id":             {"", websocket.MessageText, []byte(`{"header":{"msg_type":"kernel_info_request"}}`), false},
		"a long header":     {"", websocket.MessageText, []byte(`{"header":{"msg_id":"a","msg_type":"kernel_info_request","x":"` + strings.Repeat("x", 40<<10) + `"}}`), false},
		"deep JSON":         {"", websocket.MessageText, []byte(strings.Repeat("[", 1000)), false},
		"JSON with buffers": {"", websocket.MessageBinary, append(buffers, `{"header":{"msg_id":"a","msg_type":"kernel_info_request"}}`...), true},
		"bad buffers":       {"", websocket.MessageBinary, []byte("\x00\x00\x00\xff"), false},
		"a large frame":     {"", websocket.MessageText, []byte(`{"x":"` + strings.Repeat("x", 9<<20) + `"}`), false},
	} {
		var protocols []string
		if c.protocol != "" {
			protocols = []string{c.protocol}
		}
		s := g.dial(id, "", protocols...)
		if s.conn.Subprotocol() != c.protocol {
			t.Errorf("%s: the protocol is %q", name, s.conn.Subprotocol())
		}
		_ = s.conn.Write(t.Context(), c.kind, c.frame)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, text, err := s.conn.Read(ctx)
		cancel()
		if (err == nil) != c.taken {
			t.Errorf("%s: %v %s", name, err, text)
		}
		_ = s.conn.CloseNow()
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come to that")
		}
	}
}
