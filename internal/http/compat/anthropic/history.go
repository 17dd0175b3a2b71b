package anthropic

import (
	"encoding/json"
	"slices"

	"cove/internal/llm/model"
)

// history builds a conversation out of blocks that come one by one. Contents of one speaker that follow each other become one message, so that calls
// and their results stand as models want them: all calls of an answer in one message, all results in the next.
type history struct {
	messages []model.Message
}

func (h *history) add(role model.Role, content ...model.Content) {
	if len(content) == 0 {
		return
	}
	if n := len(h.messages); n > 0 && h.messages[n-1].Role == role && role != model.RoleUser {
		h.messages[n-1].Content = append(h.messages[n-1].Content, content...)
		return
	}
	h.messages = append(h.messages, model.Message{Role: role, Content: content})
}

// ran adds an execution of code that happened in an earlier message.
func (h *history) ran(id, code, printed string) {
	arguments, _ := json.Marshal(map[string]string{"code": code})
	h.add(model.RoleAssistant, model.ToolCall{ID: id, Name: pythonTool, Arguments: string(arguments)})
	h.add(model.RoleTool, model.ToolResult{CallID: id, Text: printed})
}

// split cuts what the client says now off what was said before: everything after the last thing that the model said.
func (h *history) split() (before, now []model.Message) {
	cut := 0
	for i, m := range h.messages {
		if m.Role != model.RoleAssistant {
			continue
		}
		// The result of an execution belongs to what was said before; the results of the client's tools are the news.
		if cut = i + 1; cut < len(h.messages) && h.messages[cut].Role == model.RoleTool && onlyPython(m) && !waitedFor(h.messages[cut]) {
			cut++
		}
	}
	return h.messages[:cut], h.messages[cut:]
}

func onlyPython(m model.Message) bool {
	return !slices.ContainsFunc(m.Content, func(c model.Content) bool {
		call, ok := c.(model.ToolCall)
		return ok && call.Name != pythonTool
	})
}

// waitedFor says whether a message has results that code waits for.
func waitedFor(m model.Message) bool {
	return slices.ContainsFunc(m.Content, func(c model.Content) bool {
		r, ok := c.(model.ToolResult)
		return ok && ofCode(r.CallID)
	})
}

// check refuses results without calls and calls without results: providers refuse them in words that help nobody.
func (h *history) check() error {
	var open []string
	waits := false // code does, and has no result yet
	for _, m := range h.messages {
		for _, c := range m.Content {
			switch c := c.(type) {
			case model.ToolCall:
				open = append(open, c.ID)
			case model.ToolResult:
				if ofCode(c.CallID) {
					waits = true
					continue
				}
				if !slices.Contains(open, c.CallID) {
					return invalid("messages: unexpected `tool_use_id` found in `tool_result` blocks: " + short(c.CallID) +
						". Each `tool_result` block must have a corresponding `tool_use` block in the previous message.")
				}
				open = slices.DeleteFunc(open, func(id string) bool { return id == c.CallID })
			}
		}
	}
	if len(open) > 0 && !waits {
		return unanswered(open[0])
	}
	return nil
}

func unanswered(call string) error {
	return invalid("messages: `tool_use` ids were found without `tool_result` blocks immediately after: " + short(call) +
		". Each `tool_use` block must have a corresponding `tool_result` block in the next message.")
}
