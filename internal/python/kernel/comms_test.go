package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cove/internal/python/kernel"
)

// packageComm is as much of the package comm as a comm needs: what opens one, the class that is to be replaced, and the manager that is told of messages.
const packageComm = `import os
os.makedirs("comm", exist_ok=True)
open("comm/base_comm.py", "w").write('''
class BaseComm:
    def __init__(self, target_name="", data=None, comm_id="", buffers=None, primary=True):
        self.comm_id, self.target_name = comm_id, target_name
        if primary:
            self.publish_msg("comm_open", data=data, buffers=buffers, target_name=target_name)
''')
open("comm/__init__.py", "w").write('''
from . import base_comm
from .base_comm import BaseComm
create_comm = None
class Manager:
    comms = {}
    def comm_open(self, stream, ident, message): print("opened", message["content"]["comm_id"])
    def comm_msg(self, stream, ident, message): print(message["header"]["msg_id"], message["content"]["data"], [bytes(b) for b in message["buffers"]], message["metadata"])
    def comm_close(self, stream, ident, message): print("closed")
manager = Manager()
def get_comm_manager(): return manager
''')`

// TestComms: comms that code opens are told to clients that take them, and clients' messages reach code.
func TestComms(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	does := func(request kernel.Request) (printed string, said []string) {
		t.Helper()
		for ev, err := range k.Execute(t.Context(), request) {
			if err != nil {
				t.Fatal(err)
			}
			switch e := ev.(type) {
			case kernel.Stream:
				printed += string(e.Data)
			case kernel.Display:
				raw, _ := e.Data[kernel.MIMEComm].(json.RawMessage)
				said = append(said, string(raw))
			case kernel.Error:
				t.Fatalf("%s: %v", request.Code, e)
			}
		}
		return printed, said
	}
	client := func(code string) kernel.Request {
		return kernel.Request{Code: code, Payloads: true, Parent: "m-1", Unnumbered: true}
	}
	take := func(text string) kernel.Request {
		return client(fmt.Sprintf("get_ipython().kernel.comms.take(%q)", text))
	}
	if _, said := does(take(`{"kind":"comm_open","content":{"comm_id":"x","target_name":"t"}}`)); len(said) != 1 || !strings.Contains(said[0], `"kind": "comm_close"`) && !strings.Contains(said[0], `"kind":"comm_close"`) {
		t.Errorf("without the package a comm is answered with %q", said)
	}
	does(kernel.Request{Code: packageComm})
	const open = "import comm\nc = comm.create_comm(target_name='t', data={'a': float('nan')}, comm_id='c', buffers=[memoryview(b'\\xff\\x00')])\ncomm.manager.comms['c'] = c"
	_, said := does(client(open))
	var m struct {
		Kind    string
		Content struct {
			ID     string `json:"comm_id"`
			Target string `json:"target_name"`
		}
		Buffers [][]byte
	}
	if len(said) != 1 || json.Unmarshal([]byte(said[0]), &m) != nil || m.Kind != "comm_open" || m.Content.ID != "c" || m.Content.Target != "t" || len(m.Buffers) != 1 || string(m.Buffers[0]) != "\xff\x00" {
		t.Errorf("a comm is opened with %q: %+v", said, m)
	}
	if _, said := does(kernel.Request{Code: open}); len(said) != 0 {
		t.Errorf("a client that takes no comms is told %q", said)
	}
	if printed, _ := does(take(`{"kind":"comm_msg","content":{"comm_id":"c","data":{"x":"é"}},"metadata":{"v":1},"buffers":["AAE="]}`)); printed != `m-1 {'x': 'é'} [b'\x00\x01'] {'v': 1}`+"\n" {
		t.Errorf("code hears %q", printed)
	}
	_, said = does(client("get_ipython().kernel.comms.begin('comm')"))
	var state struct {
		Content struct {
			Count int
			Comms map[string]map[string]string
		}
	}
	if len(said) != 1 || json.Unmarshal([]byte(said[0]), &state) != nil || state.Content.Count != 2 || state.Content.Comms["c"]["target_name"] != "t" {
		t.Errorf("the state is %q", said)
	}
	does(client("get_ipython().kernel.comms.begin('no such folder')"))
	if printed, _ := does(client("import os\nprint(os.path.basename(os.getcwd()), get_ipython().kernel.get_parent()['header']['msg_id'])")); printed != "comm m-1\n" {
		t.Errorf("the code is in %q", printed)
	}
}
