package gemini

import (
	"encoding/json"
	"fmt"
	"slices"

	"cove/internal/llm/model"
)

// pythonTool is what the interpreter calls its tool in a conversation.
const pythonTool = "python"

// history builds a conversation out of parts that come one by one. Contents of one speaker that follow each other become one message, so that calls and their results stand as models want
// them: all calls of an answer in one message, all results in the next.
type history struct {
	messages []model.Message
	open     []model.ToolCall // of the client's functions, without a result
	runs     int              // executions
	calls    int              // of the client's functions
}

func (h *history) add(role model.Role, content ...model.Content) {
	// Users' messages stay apart: a client that sends two means two.
	if n := len(h.messages); n > 0 && h.messages[n-1].Role == role && role != model.RoleUser {
		h.messages[n-1].Content = append(h.messages[n-1].Content, content...)
		return
	}
	h.messages = append(h.messages, model.Message{Role: role, Content: content})
}

// ran adds an execution of code. Its result is added to when more of it comes.
func (h *history) ran(code string) {
	h.runs++
	arguments, _ := json.Marshal(map[string]string{"code": code})
	id := fmt.Sprintf("code_%d", h.runs)
	h.add(model.RoleAssistant, model.ToolCall{ID: id, Name: pythonTool, Arguments: string(arguments)})
	h.add(model.RoleTool, model.ToolResult{CallID: id, Text: noOutput})
}

// noOutput stands for the result of code without one.
const noOutput = "(no output)"

// result is that of the last execution, when nothing else came since; or nil.
func (h *history) result(change func(*model.ToolResult)) bool {
	if len(h.messages) == 0 || h.runs == 0 {
		return false
	}
	last := &h.messages[len(h.messages)-1]
	n := len(last.Content) - 1
	r, ok := last.Content[n].(model.ToolResult)
	if !ok || r.CallID != fmt.Sprintf("code_%d", h.runs) {
		return false
	}
	change(&r)
	last.Content[n] = r
	return true
}

// called adds a call of one of the client's functions.
func (h *history) called(id, name, arguments string) {
	h.calls++
	if id == "" || slices.ContainsFunc(h.open, func(c model.ToolCall) bool { return c.ID == id }) {
		id = fmt.Sprintf("call_%d", h.calls)
	}
	call := model.ToolCall{ID: id, Name: name, Arguments: arguments}
	h.open = append(h.open, call)
	h.add(model.RoleAssistant, call)
}

// answered adds the result of a call: of the one with the id, or else of the first open one of that name. It says whether there is one.
func (h *history) answered(id, name string, result model.ToolResult) bool {
	at := slices.IndexFunc(h.open, func(c model.ToolCall) bool { return id != "" && c.ID == id })
	if at < 0 {
		at = slices.IndexFunc(h.open, func(c model.ToolCall) bool { return c.Name == name })
	}
	if at < 0 {
		return false
	}
	result.CallID = h.open[at].ID
	h.open = slices.Delete(h.open, at, at+1)
	h.add(model.RoleTool, result)
	return true
}

// split cuts what the client says now off what was said before: everything after the last thing that the model said or ran.
func (h *history) split() (before, now []model.Message) {
	cut := 0
	for i, m := range h.messages {
		if m.Role == model.RoleAssistant || m.Role == model.RoleTool && isRun(m) {
			cut = i + 1
		}
	}
	return h.messages[:cut], h.messages[cut:]
}

func isRun(m model.Message) bool {
	r, ok := m.Content[0].(model.ToolResult)
	return ok && len(r.CallID) > 5 && r.CallID[:5] == "code_"
}
