package openai

import (
	"encoding/json"
	"errors"
	"slices"

	"cove/internal/core/ident"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

// Programmatic tool calling: code calls the client's functions itself. OpenAI's is JavaScript that a model of theirs writes; here it is Python, in the container of the code interpreter. A client of the feature runs
// functions and sends code back unread, so that it need not know.
// https://developers.openai.com/api/docs/guides/tools-programmatic-tool-calling has the items; the types are those of openai-python 3.57.

const (
	programTool  = "programmatic_tool_calling"
	programmatic = "programmatic" // an element of allowed_callers
)

// program is code that runs and may call functions.
type program struct {
	ID          string `json:"id"`
	Type        string `json:"type"`
	CallID      string `json:"call_id"`
	Code        string `json:"code"`
	Fingerprint string `json:"fingerprint"`
}

// programOutput is what came of a program.
type programOutput struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Result string `json:"result"`
	Status string `json:"status"`
}

// caller says who made a call of a function.
type caller struct {
	Type     string `json:"type"`
	CallerID string `json:"caller_id,omitempty"` // of a program: its call_id
}

// programCall is the call_id of the program that an execution is.
func programCall(execution string) string { return "call_" + ident.Body(execution) }

// callerOf says which program made a call; nil: the model did.
func callerOf(call string) *caller {
	if execution, _, ok := hub.CallOfCode(call); ok {
		return &caller{Type: "program", CallerID: programCall(execution)}
	}
	return nil
}

// hasPrograms says whether a response's tools have programs.
func hasPrograms(tools []json.RawMessage) bool {
	return slices.ContainsFunc(tools, func(raw json.RawMessage) bool {
		var t struct {
			Type string `json:"type"`
		}
		return json.Unmarshal(raw, &t) == nil && t.Type == programTool
	})
}

// startProgram announces code as a program. Code that goes on was announced by the response before.
func (t *translation) startProgram(e loop.Start) error {
	if err := t.close(statusCompleted); err != nil {
		return err
	}
	t.ran, t.running, t.since = true, &outputs{}, len(t.items)
	t.said.Reset()
	t.program = programCall(e.Execution)
	if e.Resumed {
		t.running.add(kernel.Stream{Name: "stdout", Data: []byte(e.Printed)})
		return nil
	}
	id := t.newID("prog")
	i := &item{id: id, program: &program{ID: id, Type: "program", CallID: t.program, Code: e.Code, Fingerprint: ident.Body(e.Execution)}}
	t.since++
	return errors.Join(t.add(i), t.finish(i, statusCompleted))
}

// endProgram tells what came of a program.
func (t *translation) endProgram(done kernel.Done) error {
	result := resultOf(t.running.all()).Text
	t.running = nil
	id := t.newID("progout")
	i := &item{id: id, output: &programOutput{ID: id, Type: "program_output", CallID: t.program, Result: result, Status: statusInProgress}}
	t.since++
	return errors.Join(t.add(i), t.finish(i, statusOfDone(done)))
}

// program takes a program of an earlier response, as a client that keeps the conversation itself sends it back.
func (in *input) program(f *form) {
	in.history.add(model.RoleAssistant, callOfProgram(f.needed("call_id"), f.needed("code")))
	in.keep(f, "prog", nil)
}

func callOfProgram(id, code string) model.ToolCall {
	arguments, _ := json.Marshal(map[string]string{"code": code})
	return model.ToolCall{ID: id, Name: pythonTool, Arguments: string(arguments)}
}

func (in *input) programOutput(f *form) {
	in.history.add(model.RoleTool, model.ToolResult{CallID: f.needed("call_id"), Text: f.text("result")})
	in.keep(f, "progout", nil)
}

// resumes says whether what the client says now are results that a program waits for.
func (h *history) resumes() bool {
	if len(h.messages) == 0 {
		return false
	}
	return slices.ContainsFunc(h.messages[len(h.messages)-1].Content, func(c model.Content) bool {
		r, ok := c.(model.ToolResult)
		_, _, ofCode := hub.CallOfCode(r.CallID)
		return ok && ofCode && !h.answered(r.CallID)
	})
}

// answered says whether the program that made a call has ended.
func (h *history) answered(call string) bool {
	id := callerOf(call).CallerID
	return slices.ContainsFunc(h.messages, func(m model.Message) bool {
		return slices.ContainsFunc(m.Content, func(c model.Content) bool {
			r, ok := c.(model.ToolResult)
			return ok && r.CallID == id
		})
	})
}
