package anthropic

import (
	"encoding/json"
	"errors"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"cove/internal/llm/model"
)

// answer puts the events of one stream together.
type answer struct {
	calls  []*call
	open   map[int64]int // content block -> call
	reason sdk.StopReason
	usage  model.Usage
}

type call struct {
	id, name  string
	arguments strings.Builder
}

// take returns what an event adds to the answer, or nil. Unknown events and blocks are passed over, as the service's
// documentation asks of clients.
func (a *answer) take(event sdk.MessageStreamEventUnion) model.Part {
	switch event.Type {
	case "message_start":
		u := event.Message.Usage
		a.usage.InputTokens = counted(u.InputTokens) + counted(u.CacheReadInputTokens) + counted(u.CacheCreationInputTokens)
		a.usage.CachedTokens = u.CacheReadInputTokens
	case "content_block_start":
		return a.begin(event)
	case "content_block_delta":
		return a.extend(event)
	case "message_delta":
		a.usage.OutputTokens = event.Usage.OutputTokens
		if event.Delta.StopReason != "" {
			a.reason = event.Delta.StopReason
		}
	}
	return nil
}

// counted is a count whose sum with others fits.
func counted(n int64) int64 { return min(max(n, -1), model.MostTokens) }

func (a *answer) begin(event sdk.MessageStreamEventUnion) model.Part {
	block := event.ContentBlock
	switch block.Type {
	case "text":
		if block.Text != "" {
			return model.TextDelta{Text: block.Text}
		}
	case "thinking":
		if block.Thinking != "" {
			return model.ReasoningDelta{Text: block.Thinking}
		}
	case "tool_use":
		c := &call{id: block.ID, name: block.Name}
		at := len(a.calls)
		a.open[event.Index] = at
		a.calls = append(a.calls, c)
		part := model.CallDelta{Index: at, ID: c.id, Name: c.name}
		// Compatible servers put the whole input here; the original has an empty object.
		if raw := block.JSON.Input.Raw(); isFilledObject(raw) {
			c.arguments.WriteString(raw)
			part.Arguments = raw
		}
		return part
	}
	return nil
}

func isFilledObject(raw string) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(raw), &object) == nil && len(object) > 0
}

func (a *answer) extend(event sdk.MessageStreamEventUnion) model.Part {
	switch delta := event.Delta; {
	case delta.Text != "":
		return model.TextDelta{Text: delta.Text}
	case delta.Thinking != "":
		return model.ReasoningDelta{Text: delta.Thinking}
	case delta.PartialJSON != "":
		at, ok := a.open[event.Index]
		if !ok {
			return nil
		}
		a.calls[at].arguments.WriteString(delta.PartialJSON)
		return model.CallDelta{Index: at, Arguments: delta.PartialJSON}
	}
	return nil
}

// finish returns an error for an answer whose calls cannot be trusted to be whole.
func (a *answer) finish() (model.Finish, error) {
	finish := model.Finish{Reason: model.FinishStop, Usage: a.usage}
	switch a.reason {
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		finish.Reason = model.FinishLength
		return finish, nil
	case sdk.StopReasonRefusal:
		finish.Reason = model.FinishFilter
		return finish, nil
	case sdk.StopReasonEndTurn, sdk.StopReasonStopSequence, sdk.StopReasonToolUse:
	default:
		if len(a.calls) > 0 {
			return finish, errors.New("the service ended the answer with the reason " + string(a.reason))
		}
	}
	for _, c := range a.calls {
		arguments := c.arguments.String()
		if strings.TrimSpace(arguments) == "" {
			arguments = "{}"
		}
		finish.Calls = append(finish.Calls, model.ToolCall{ID: c.id, Name: c.name, Arguments: arguments})
	}
	if len(finish.Calls) > 0 {
		finish.Reason = model.FinishCalls
	}
	return finish, nil
}
