package openai

import (
	"encoding/json"
	"slices"

	"cove/internal/llm/model"
)

// history builds a conversation out of items that come one by one. Contents of one speaker that follow each other become one message, so that
// calls and their results stand as models want them: all calls of an answer in one message, all results in the next.
type history struct {
	messages []model.Message
}

func (h *history) add(role model.Role, content ...model.Content) {
	if len(content) == 0 {
		return
	}
	// Users' messages stay apart: a client that sends two means two.
	if n := len(h.messages); n > 0 && h.messages[n-1].Role == role && role != model.RoleUser {
		h.messages[n-1].Content = append(h.messages[n-1].Content, content...)
		return
	}
	h.messages = append(h.messages, model.Message{Role: role, Content: content})
}

// ran adds an execution of code that happened in an earlier response.
func (h *history) ran(id, code string, result model.ToolResult) {
	arguments, _ := json.Marshal(map[string]string{"code": code})
	h.add(model.RoleAssistant, model.ToolCall{ID: id, Name: pythonTool, Arguments: string(arguments)})
	result.CallID = id
	h.add(model.RoleTool, result)
}

// split cuts what the client says now off what was said before: everything after the last thing that the model said.
func (h *history) split() (before, now []model.Message) {
	last := -1
	for i, m := range h.messages {
		if m.Role == model.RoleAssistant {
			last = i
		}
	}
	// The result of an execution belongs to what was said before; the results of the client's functions are the news.
	cut := last + 1
	if last >= 0 && cut < len(h.messages) && h.messages[cut].Role == model.RoleTool && onlyPython(h.messages[last]) {
		cut++
	}
	if cut >= len(h.messages) {
		return nil, h.messages
	}
	return h.messages[:cut], h.messages[cut:]
}

func onlyPython(m model.Message) bool {
	return !slices.ContainsFunc(m.Content, func(c model.Content) bool {
		call, ok := c.(model.ToolCall)
		return ok && call.Name != pythonTool
	})
}

// orphan returns the id of a result without the call before it, or "".
func (h *history) orphan() string {
	called := map[string]bool{}
	for _, m := range h.messages {
		for _, c := range m.Content {
			switch c := c.(type) {
			case model.ToolCall:
				called[c.ID] = true
			case model.ToolResult:
				if !called[c.CallID] {
					return c.CallID
				}
			}
		}
	}
	return ""
}

// unanswered returns the id of a call without a result, or "". Providers refuse such conversations in words that help nobody.
func (h *history) unanswered() string {
	open := []string{}
	for _, m := range h.messages {
		for _, c := range m.Content {
			switch c := c.(type) {
			case model.ToolCall:
				open = append(open, c.ID)
			case model.ToolResult:
				open = slices.DeleteFunc(open, func(id string) bool { return id == c.CallID })
			}
		}
	}
	if len(open) == 0 {
		return ""
	}
	return open[0]
}
