package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// WidgetMove is what a person does with a widget: sets parts of its state, or something else that its code understands, such as a click.
type WidgetMove struct {
	Widget  string          // its id
	State   json.RawMessage // an object; nil: none
	Content json.RawMessage // nil: none
}

// Bounds of what is sent to a widget.
const (
	longestMove   = 256 << 10
	longestWidget = 128
)

// Widgets returns the states of a kernel's widgets, as Variables does, and without what is redacted. It needs auth.SessionsRead.
func (m *Manager) Widgets(ctx context.Context, who auth.Principal, session, name string) (w kernel.WidgetStates, err error) {
	err = m.inspectKernel(ctx, who, auth.SessionsRead, session, name, func(ctx context.Context, l Live) error {
		if w, err = l.Widgets(ctx, name); err != nil {
			return err
		}
		if out, found := m.RedactionIn(ctx, who.Project, who.Key, session).Any(w.Models); found != nil {
			w.Models = out.(map[string]any)
		}
		return nil
	})
	return w, err
}

// MoveWidget hands what a person does with a widget to its code, as an execution: in order with all other code, under the same limits, recorded, and with events that tell what comes of it. It
// needs auth.SessionsExecute. Problems: invalid_request, and those of StartExecution.
func (m *Manager) MoveWidget(ctx context.Context, who auth.Principal, session, name string, move WidgetMove) (record.Execution, error) {
	code, err := move.code()
	if err != nil {
		return record.Execution{}, err
	}
	return m.StartExecution(ctx, who, NewExecution{Session: session, Kernel: name, Code: code, Unnumbered: true, Widgets: true, Approved: true, Unheard: true})
}

// code is a call of the kernel's object for comms, which is in no list of what people and models have run.
func (m WidgetMove) code() (string, error) {
	state, content := bytes.TrimSpace(m.State), bytes.TrimSpace(m.Content)
	if m.Widget == "" || len(m.Widget) > longestWidget || strings.ContainsFunc(m.Widget, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", problem.New(problem.InvalidRequest, "the id of a widget is a text of at most 128 characters without spaces")
	}
	if len(state)+len(content) > longestMove {
		return "", problem.New(problem.InvalidRequest, fmt.Sprintf("what is sent to a widget is at most %d KiB", longestMove>>10))
	}
	if len(state) == 0 == (len(content) == 0) || len(state) > 0 && state[0] != '{' {
		return "", problem.New(problem.InvalidRequest, "either parts of the widget's state are sent, or a content").WithHint(`send {"state": {"value": 5}}`)
	}
	data := map[string]any{"method": "custom", "content": json.RawMessage(content)}
	if len(state) > 0 {
		data = map[string]any{"method": "update", "state": json.RawMessage(state), "buffer_paths": []string{}}
	}
	text, err := json.Marshal(map[string]any{"kind": "comm_msg", "content": map[string]any{"comm_id": m.Widget, "data": data}})
	if err != nil {
		return "", problem.New(problem.InvalidRequest, "what is sent to a widget is no JSON").WithCause(err)
	}
	literal, err := json.Marshal(string(text)) // a string of JSON is one of Python
	if err != nil {
		return "", err
	}
	return WidgetCode + string(literal) + ")", nil
}

// WidgetCode begins the code of executions that hand a message to a widget.
const WidgetCode = "get_ipython().kernel.comms.take("
