package api

import (
	"context"
	"encoding/json"
	"net/http"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// WidgetStates are the states of a kernel's widgets.
type WidgetStates struct {
	Models map[string]any `json:"models" doc:"By id, in the form in which notebooks have them: model_name, model_module, model_module_version, state, and buffers in base64"`
	More   int64          `json:"more" doc:"How many there are beside them"`
	Busy   bool           `json:"busy,omitempty" doc:"The kernel runs code, and says nothing before that has ended"`
}

// WidgetMove is what a person does with a widget.
type WidgetMove struct {
	State   json.RawMessage `json:"state,omitempty" doc:"An object: the parts of its state that are set" example:"{\"value\": 5}"`
	Content json.RawMessage `json:"content,omitempty" doc:"In the place of a state: a message that its code understands, such as a click of a button" example:"{\"event\": \"click\"}"`
}

type moveWidget struct {
	KernelPath
	Widget string `path:"widget" maxLength:"128" doc:"Its id, which is the model_id of its view"`
	Body   WidgetMove
}

func (s *server) addWidgets() {
	const tag, kernelAt = "kernels", "/sessions/{session}/kernels/{kernel}"
	errors := []problem.Code{problem.SessionNotFound, problem.KernelNotFound}
	add(s, operation{id: "widget.list", method: http.MethodGet, path: kernelAt + "/widgets", tag: tag, action: auth.SessionsRead, summary: "Read the states of a kernel's widgets",
		about: "Those of ipywidgets, the newest first, at most 3 MiB; none while the kernel runs code (`busy`). Nothing is shown or moved by it; a widget of the session's own may run its own code to say what its state is.", errors: errors,
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/kernels/main/widgets`},
		func(ctx context.Context, who auth.Principal, in *KernelPath) (WidgetStates, error) {
			out, err := s.o.Hub.Widgets(ctx, who, in.Session, in.Kernel)
			if problem.Has(err, problem.SessionBusy) {
				return WidgetStates{Models: map[string]any{}, Busy: true}, nil
			}
			if out.Models == nil {
				out.Models = map[string]any{}
			}
			return WidgetStates{Models: out.Models, More: out.More}, err
		})
	add(s, operation{id: "widget.move", method: http.MethodPost, path: kernelAt + "/widgets/{widget}", tag: tag, action: auth.SessionsExecute, summary: "Move a widget",
		about:  "Sets parts of its state, or sends it a message, as a person does who moves a slider or clicks a button. Its callbacks run in the session. The answer comes at once; it is an execution like any other, in order with all other code, and its events have what comes of it: `widgets` with the new states, and what callbacks print. A widget that is no more is in `closed` of these.",
		errors: []problem.Code{problem.SessionNotFound, problem.KernelNotFound, problem.InvalidRequest, problem.QueueFull, problem.QuotaExecutions},
		example: `curl -H "Authorization: Bearer $KEY" \
  $COVE/sessions/$SESSION/kernels/main/widgets/0123456789abcdef -d '{"state":{"value":5}}'`},
		func(ctx context.Context, who auth.Principal, in *moveWidget) (Execution, error) {
			out, err := s.o.Hub.MoveWidget(ctx, who, in.Session, in.Kernel, hub.WidgetMove{Widget: in.Widget, State: in.Body.State, Content: in.Body.Content})
			return executionOf(out), err
		})
}
