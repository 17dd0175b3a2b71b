package loop

import (
	"fmt"
	"math"
	"strings"

	"cove/internal/llm/model"
)

// How much of a conversation is sent again with each model call.
const (
	historyBudget = 200_000 // characters of the whole conversation, for models of which it is not known how much they take
	imageCost     = 4_000   // characters that an image counts for
	keptResults   = 2       // the latest results, never shortened
	shortResult   = 1_000   // characters of an old result beyond the budget
)

// history is the conversation as it is kept. normal and flat make the form in which the model gets it.
type history struct {
	messages []model.Message
	room     int // characters that are sent at most, as far as that can be
}

// add appends a message without blank texts.
func (h *history) add(role model.Role, content ...model.Content) {
	var kept []model.Content
	for _, c := range content {
		if t, ok := c.(model.Text); ok && strings.TrimSpace(t.Text) == "" {
			continue
		}
		kept = append(kept, c)
	}
	if len(kept) > 0 {
		h.messages = append(h.messages, model.Message{Role: role, Content: kept})
	}
}

// callIDs returns the ids of all calls.
func (h *history) callIDs() map[string]bool {
	ids := map[string]bool{}
	for _, m := range h.messages {
		for _, c := range m.Content {
			if call, ok := c.(model.ToolCall); ok {
				ids[call.ID] = true
			}
		}
	}
	return ids
}

func freeID(taken map[string]bool) string {
	for n := len(taken) + 1; ; n++ {
		if id := fmt.Sprintf("cove_call_%d", n); !taken[id] {
			return id
		}
	}
}

// What results of code in a message's text begin with.
const (
	resultHead   = "Result of the code:\n"
	responseHead = "<tool_response>\n"
)

// isResult says whether a message brings results, which may be shortened later.
func isResult(m model.Message) bool {
	if m.Role != model.RoleUser || len(m.Content) == 0 {
		return m.Role == model.RoleTool
	}
	t, ok := m.Content[0].(model.Text)
	return ok && (strings.HasPrefix(t.Text, resultHead) || strings.HasPrefix(t.Text, responseHead))
}

// shorten cuts old results in place until the conversation fits the budget or nothing is left to cut.
func (h *history) shorten() {
	total, kept := 0, -keptResults
	for _, m := range h.messages {
		total += cost(m)
		if isResult(m) {
			kept++
		}
	}
	for n := 0; n < len(h.messages) && total > h.room && kept > 0; n++ {
		if !isResult(h.messages[n]) {
			continue
		}
		kept--
		m := shortened(h.messages[n], shortResult)
		total -= cost(h.messages[n]) - cost(m)
		h.messages[n] = m
	}
}

func cost(m model.Message) int {
	sum := 0
	for _, c := range m.Content {
		switch c := c.(type) {
		case model.Text:
			sum += len(c.Text)
		case model.Image:
			sum += imageCost
		case model.ToolCall:
			sum += len(c.Arguments)
		case model.ToolResult:
			sum += len(c.Text) + imageCost*len(c.Images)
		}
	}
	return sum
}

// squeeze cuts all results, also the latest.
func (h *history) squeeze() {
	h.shortenAll(shortResult)
}

// dropImages removes the images of all results.
func (h *history) dropImages() {
	h.shortenAll(math.MaxInt)
}

func (h *history) shortenAll(limit int) {
	for n, m := range h.messages {
		if isResult(m) {
			h.messages[n] = shortened(m, limit)
		}
	}
}

// shortened returns a result with texts of about limit bytes and without images.
func shortened(m model.Message, limit int) model.Message {
	out := model.Message{Role: m.Role}
	for _, c := range m.Content {
		switch c := c.(type) {
		case model.Text:
			out.Content = append(out.Content, model.Text{Text: cutMiddle(c.Text, limit)})
		case model.ToolResult:
			c.Text, c.Images = cutMiddle(c.Text, limit), nil
			out.Content = append(out.Content, c)
		case model.Image:
		default:
			out.Content = append(out.Content, c)
		}
	}
	if len(out.Content) == 0 {
		return m
	}
	return out
}

// flat returns a conversation without tool calls: code as fenced blocks, results as words of the user. Providers refuse tool calls in a
// conversation for which no tools are declared.
func flat(messages []model.Message) []model.Message {
	var out []model.Message
	names := map[string]string{} // of the functions that were called, by the call's id
	for _, m := range messages {
		role, content := m.Role, []model.Content{}
		if role == model.RoleTool {
			role = model.RoleUser
		}
		for _, c := range m.Content {
			switch c := c.(type) {
			case model.ToolCall:
				names[c.ID] = c.Name
				content = append(content, model.Text{Text: callInWords(c)})
			case model.ToolResult:
				head := resultHead
				if !isPython(names[c.CallID]) {
					head = "Result of " + names[c.CallID] + ":\n"
				}
				content = append(content, model.Text{Text: head + fence("", c.Text)})
				for _, image := range c.Images {
					content = append(content, image)
				}
			default:
				content = append(content, c)
			}
		}
		if last := len(out) - 1; last >= 0 && out[last].Role == role {
			out[last].Content = append(out[last].Content, content...)
			continue
		}
		out = append(out, model.Message{Role: role, Content: content})
	}
	return out
}

func callInWords(c model.ToolCall) string {
	if !isPython(c.Name) {
		return "(called " + c.Name + ")\n" + fence("json", c.Arguments)
	}
	code, err := codeOf(c.Arguments)
	if err != nil {
		code = c.Arguments
	}
	return fence("python", code)
}

// fence puts text into a fenced block that the text itself cannot close.
func fence(info, text string) string {
	ticks := "```"
	for strings.Contains(text, ticks) {
		ticks += "`"
	}
	return ticks + info + "\n" + strings.TrimRight(text, "\n") + "\n" + ticks
}

func fencedResult(text string) string { return resultHead + fence("", text) }
