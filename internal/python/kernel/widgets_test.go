package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cove/internal/python/kernel"
)

// packageWidgets is as much of ipywidgets as telling states needs: widgets with ids, states and comms, and one that captures output.
const packageWidgets = packageComm + `
os.makedirs("ipywidgets/widgets", exist_ok=True)
open("ipywidgets/__init__.py", "w").write("from .widgets.widget_output import Output\nfrom .widgets.widget import Widget\n")
open("ipywidgets/widgets/__init__.py", "w").write("")
open("ipywidgets/widgets/widget.py", "w").write('''
import comm
_instances = {}
class Widget:
    def __init__(self, id, **state):
        self.model_id, self.values = id, {"_view_name": "V", **state}
        self.comm = comm.create_comm(target_name="jupyter.widget", comm_id=id, data={"state": self.values})
        _instances[id] = comm.manager.comms[id] = self
    def get_state(self):
        return {k: "IPY_MODEL_" + v.model_id if isinstance(v, Widget) else ["IPY_MODEL_" + one.model_id for one in v] if k == "children" else v for k, v in self.values.items()}
    def _get_embed_state(self):
        return {"model_name": type(self).__name__, "model_module": "m", "model_module_version": "1", "state": self.get_state()}
    @property
    def value(self):
        return self.values.get("value")
    @value.setter
    def value(self, new):
        self.values["value"] = new
        self.comm.publish_msg("comm_msg", {"method": "update", "state": {"value": new}})
    def close(self):
        del _instances[self.model_id], comm.manager.comms[self.model_id]
        self.comm.publish_msg("comm_close")
    def _repr_mimebundle_(self, **kwargs):
        return {"text/plain": "W(%s)" % self.model_id, "application/vnd.jupyter.widget-view+json": {"model_id": self.model_id}}
''')
open("ipywidgets/widgets/widget_output.py", "w").write('''
from .widget import Widget
class Output(Widget):
    def __init__(self, id):
        super().__init__(id, outputs=())
    @property
    def outputs(self):
        return self.values["outputs"]
    @outputs.setter
    def outputs(self, new):
        self.values["outputs"] = new
        self.comm.publish_msg("comm_msg", {"method": "update", "state": {}})
    def __enter__(self):
        print("plain")
    def __exit__(self, *error):
        pass
''')
open("comm/__init__.py", "a").write('''
def handed(self, stream, ident, message):
    one = self.comms[message["content"]["comm_id"]]
    one.comm.publish_msg("comm_msg", {"method": "echo_update", "state": {}})
    one.values["value"] = message["content"]["data"]["state"]["value"]
Manager.comm_msg = handed
''')`

// told is what an execution tells of widgets, the last state of each.
type told struct {
	printed, model string
	models         map[string]map[string]any
	closed         []string
	before         bool // the states came before the view
}

func tellsOf(t *testing.T, k *kernel.Kernel, request kernel.Request) told {
	t.Helper()
	out := told{models: map[string]map[string]any{}}
	for ev, err := range k.Execute(t.Context(), request) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := ev.(type) {
		case kernel.Stream:
			out.printed += string(e.Data)
		case kernel.Result:
			out.before = len(out.models) > 0
			out.model = e.Told.Text
		case kernel.Widgets:
			out.closed = append(out.closed, e.Closed...)
			for id, raw := range e.Models {
				var model struct {
					State map[string]any `json:"state"`
				}
				if err := json.Unmarshal(raw.(json.RawMessage), &model); err != nil {
					t.Fatal(err)
				}
				out.models[id] = model.State
			}
		case kernel.Error:
			t.Fatalf("%s: %v", request.Code, e)
		}
	}
	return out
}

// TestWidgets: a client that shows widgets is told the states of what a view needs before it, of what changes, and of what is closed; one that moves a widget has its code hear it.
func TestWidgets(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	tellsOf(t, k, kernel.Request{Code: packageWidgets})
	shows := func(code string) told {
		t.Helper()
		return tellsOf(t, k, kernel.Request{Code: code, Widgets: true, Model: true})
	}
	const first = "import ipywidgets as w\na = w.Widget('a', value=1, description='size')\nb = w.Widget('b', children=[a])\nother = w.Widget('c')\nb"
	got := shows(first)
	if !got.before || got.models["a"]["value"] != 1.0 || got.models["b"] == nil || got.models["c"] == nil {
		t.Errorf("what is shown tells %+v", got)
	}
	if !strings.Contains(got.model, "W(b)") || !strings.Contains(got.model, "Widget 'size' with the value 1") {
		t.Errorf("a model is told %q", got.model)
	}
	// An execution is whole by itself.
	if got := shows("b"); !got.before || got.models["a"] == nil || got.models["c"] != nil {
		t.Errorf("what is shown again tells %+v", got)
	}
	if got := shows("for i in range(500): a.value = i"); got.models["a"]["value"] != 499.0 || len(got.models) != 1 {
		t.Errorf("what changes tells %+v", got)
	}
	if got := tellsOf(t, k, kernel.Request{Code: "b"}); len(got.models) > 0 || got.model != "" {
		t.Errorf("a client that shows no widgets is told %+v", got)
	}
	move := `get_ipython().kernel.comms.take('{"kind":"comm_msg","content":{"comm_id":%q,"data":{"method":"update","state":{"value":7}}}}')`
	if got := shows(fmt.Sprintf(move, "a") + "\nprint(a.value)"); got.printed != "7\n" || got.models["a"]["value"] != 7.0 {
		t.Errorf("what is moved tells %+v", got)
	}
	if got := shows(fmt.Sprintf(move, "none")); len(got.closed) != 1 || got.closed[0] != "none" {
		t.Errorf("a widget that is not there tells %+v", got)
	}
	states, err := k.Widgets(t.Context())
	if err != nil || len(states.Models) != 3 || states.More != 0 {
		t.Errorf("the states are %+v, %v", states, err)
	}
	if got := shows("a.close()"); len(got.closed) != 1 || got.closed[0] != "a" {
		t.Errorf("what is closed tells %+v", got)
	}
	if got := shows("w.Widget('large', value='x' * 5_000_000)\nw.Widget('small', value=2)"); len(got.models["large"]) != 0 || got.models["small"]["value"] != 2.0 {
		t.Error("a state that is too large hides others, or is told")
	}
}

// TestOutputWidgetKeeps: an Output widget keeps what is shown inside where the client shows widgets, and leaves it to the client elsewhere.
func TestOutputWidgetKeeps(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	tellsOf(t, k, kernel.Request{Code: packageWidgets + "\nimport ipywidgets\no = ipywidgets.Output('o')\nimport sys\nfrom IPython.display import display, clear_output"})
	shows := func(code string) (string, []map[string]any) {
		t.Helper()
		got := tellsOf(t, k, kernel.Request{Code: code, Widgets: true})
		var outputs []map[string]any
		text, _ := json.Marshal(got.models["o"]["outputs"])
		_ = json.Unmarshal(text, &outputs)
		return got.printed, outputs
	}
	printed, outputs := shows("print('out')\nwith o:\n    print('in')\n    print('more')\n    print('bad', file=sys.stderr)\n    display(7)\nprint('after')")
	if printed != "out\nafter\n" || len(outputs) != 3 || outputs[0]["text"] != "in\nmore\n" || outputs[1]["name"] != "stderr" || outputs[2]["output_type"] != "display_data" {
		t.Errorf("it prints %q and keeps %v", printed, outputs)
	}
	if printed, outputs = shows("with o:\n    clear_output(wait=True)\nwith o:\n    print('new')"); printed != "" || len(outputs) != 1 || outputs[0]["text"] != "new\n" {
		t.Errorf("cleared, it prints %q and keeps %v", printed, outputs)
	}
	if printed, outputs = shows("with o:\n    1/0\nprint('goes on')"); printed != "goes on\n" || len(outputs) != 2 || outputs[1]["ename"] != "ZeroDivisionError" {
		t.Errorf("an error prints %q and keeps %v", printed, outputs)
	}
	if _, outputs = shows("with o:\n    clear_output()\n    for i in range(100_000): print('x' * 100)"); len(outputs) != 2 || len(outputs[0]["text"].(string)) > 1<<20 || !strings.Contains(outputs[1]["text"].(string), "not kept") {
		t.Errorf("very much is %d outputs", len(outputs))
	}
	if printed, _ = shows("sys.stdout.write('still here')"); !strings.HasPrefix(printed, "still here") {
		t.Errorf("afterwards it prints %q", printed)
	}
	if got := tellsOf(t, k, kernel.Request{Code: "with o:\n    print('in')"}); got.printed != "plain\nin\n" {
		t.Errorf("elsewhere it prints %q", got.printed)
	}
}
