package jupyter_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

// TestComms: what code says in a comm goes to clients, with its buffers, and what a client says goes to code.
func TestComms(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	says := func(emit func(kernel.Event), text string) {
		emit(kernel.Display{Data: kernel.Bundle{kernel.MIMEComm: json.RawMessage(text)}})
	}
	g.script = func(n hub.NewExecution, emit func(kernel.Event), _ <-chan struct{}) {
		switch {
		case n.Code == "open":
			says(emit, `{"kind":"comm_open","content":{"comm_id":"c","target_name":"jupyter.widget","data":{"state":1}},"metadata":{"version":"2"},"buffers":["/w=="]}`)
			says(emit, `{"kind":"comm_open","content":{"comm_id":"d","target_name":"other"}}`)
			says(emit, `{"kind":"shutdown_reply","content":{"comm_id":"c"}}`)
			says(emit, `[`)
		case strings.HasPrefix(n.Code, `get_ipython().kernel.comms.take("`):
			var text string
			_ = json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimPrefix(n.Code, "get_ipython().kernel.comms.take("), ")")), &text)
			emit(kernel.Stream{Name: "stdout", Data: []byte(text)})
			says(emit, `{"kind":"comm_close","content":{"comm_id":"c"}}`)
		}
		emit(kernel.Done{Outcome: kernel.OutcomeOK})
	}
	s := g.dial(g.kernel(), "one")
	id := s.send("shell", "execute_request", `{"code":"open"}`)
	s.next(id, "execute_input")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	kind, data, err := s.conn.Read(ctx)
	if err != nil || kind != websocket.MessageBinary {
		t.Fatalf("%v %v %s", kind, err, data)
	}
	at := func(i int) uint32 { return binary.BigEndian.Uint32(data[4*i:]) }
	if text := string(data[at(1):at(2)]); at(0) != 2 || string(data[at(2):]) != "\xff" || !strings.Contains(text, `"msg_type":"comm_open"`) || !strings.Contains(text, `"metadata":{"version":"2"}`) || !strings.Contains(text, `"data":{"state":1}`) {
		t.Errorf("a comm is opened with %q", data)
	}
	if got := s.all(id); strings.Contains(got, "shutdown") || !strings.Contains(got, `"target_name":"other"`) {
		t.Errorf("the code says %s", got)
	}
	if got := s.all(s.send("shell", "comm_info_request", `{"target_name":"jupyter.widget"}`)); !strings.Contains(got, `{"comms":{"c":{"target_name":"jupyter.widget"}},"status":"ok"}`) {
		t.Errorf("there are %s", got)
	}
	id = s.send("shell", "comm_msg", `{"comm_id":"c","data":{"method":"update","word":"\"<\u2028"}}`)
	var said map[string]any
	if err := json.Unmarshal([]byte(s.next(id, "stream").Content["text"].(string)), &said); err != nil || said["kind"] != "comm_msg" || said["content"].(map[string]any)["data"].(map[string]any)["word"] != "\"<\u2028" {
		t.Errorf("%v: code hears %v", err, said)
	}
	s.next(id, "comm_close")
	if got := s.all(s.send("shell", "comm_info_request", "{}")); !strings.Contains(got, `{"comms":{"d":{"target_name":"other"}},"status":"ok"}`) {
		t.Errorf("then there are %s", got)
	}
	g.refuse = problem.New(problem.QuotaCPU, "the day's time is used up")
	if f := s.next(s.send("shell", "comm_msg", `{"comm_id":"d","data":{}}`), "stream"); !strings.Contains(f.Content["text"].(string), "the day's time is used up") {
		t.Errorf("what is refused: %+v", f)
	}
}
