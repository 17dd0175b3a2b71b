package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"cove/internal/llm/model"
)

// commanded is a call of the machine's in an earlier message.
type commanded struct{ name, arguments string }

// command keeps a call of the machine's until its result comes.
func (in *input) command(b block) {
	if in.commands == nil {
		in.commands = map[string]commanded{}
	}
	in.commands[b.ID] = commanded{b.Name, model.ArgumentsObject(string(b.Input))}
}

// performed adds what an earlier message tells of the machine's tools: as a call where they are offered, otherwise in words. What was not done is left out.
func (in *input) performed(b block) {
	call, known := in.commands[b.ToolUseID]
	var r struct {
		ran
		Message string   `json:"error_message"`
		Content any      `json:"content"`
		Lines   []string `json:"lines"`
		Update  *bool    `json:"is_file_update"`
	}
	if !known || json.Unmarshal(b.Content, &r) != nil || r.ErrorCode == "unavailable" {
		return
	}
	delete(in.commands, b.ToolUseID)
	var told string
	text, viewed := r.Content.(string)
	switch {
	case r.ErrorCode != "":
		told = strings.TrimSpace("Error (" + r.ErrorCode + "): " + r.Message)
	case call.name == bashTool:
		told = r.printed()
	case viewed:
		told = text
	case r.Update != nil:
		told = "The file was written."
	default:
		told = strings.Join(r.Lines, "\n")
	}
	told = shorter(told)
	if in.shell {
		in.history.add(model.RoleAssistant, model.ToolCall{ID: b.ToolUseID, Name: call.name, Arguments: call.arguments})
		in.history.add(model.RoleTool, model.ToolResult{CallID: b.ToolUseID, Text: told, IsError: r.ErrorCode != ""})
		return
	}
	in.history.add(model.RoleAssistant, model.Text{Text: fmt.Sprintf("I used the tool %s with %s. It gave:\n```\n%s\n```", call.name, call.arguments, told)})
}
