package interpreter

import (
	"math"
	"slices"
	"strings"

	"cove/internal/model"
)

// How much of a conversation is sent again with each model call.
const (
	historyBudget = 200_000 // characters of the whole conversation
	imageCost     = 4_000   // characters that an image counts for
	keptResults   = 2       // the latest results, never shortened
	shortResult   = 1_000   // characters of an old result beyond the budget
)

// history is the conversation as the model gets it.
type history struct {
	messages []model.Message
	results  map[int]bool // indices of the messages that bring results of executions
}

func (h *history) mark() int { return len(h.messages) }

func (h *history) rollback(mark int) {
	for n := mark; n < len(h.messages); n++ {
		delete(h.results, n)
	}
	h.messages = h.messages[:mark]
}

// add appends a message. Blank texts are left out, and words of the user that follow words of the user join them,
// because some providers refuse the one or the other.
func (h *history) add(role model.Role, content ...model.Content) {
	var kept []model.Content
	for _, c := range content {
		if t, ok := c.(model.Text); ok && strings.TrimSpace(t.Text) == "" {
			continue
		}
		kept = append(kept, c)
	}
	last := len(h.messages) - 1
	switch {
	case len(kept) == 0:
	case last >= 0 && role == model.RoleUser && h.messages[last].Role == role:
		joined := slices.Concat(h.messages[last].Content, kept)
		h.messages[last] = model.Message{Role: role, Content: joined}
	default:
		h.messages = append(h.messages, model.Message{Role: role, Content: kept})
	}
}

// addResult appends a message that brings results and may be shortened later.
func (h *history) addResult(role model.Role, content ...model.Content) {
	h.add(role, content...)
	if h.results == nil {
		h.results = map[int]bool{}
	}
	h.results[len(h.messages)-1] = true
}

// shorten cuts old results in place until the conversation fits the budget or nothing is left to cut.
func (h *history) shorten() {
	total := 0
	for _, m := range h.messages {
		total += cost(m)
	}
	kept := len(h.results) - keptResults
	for n := 0; n < len(h.messages) && total > historyBudget && kept > 0; n++ {
		if !h.results[n] {
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

// squeeze cuts all results, however new.
func (h *history) squeeze() {
	for n := range h.results {
		h.messages[n] = shortened(h.messages[n], shortResult)
	}
}

// dropImages removes the images of all results.
func (h *history) dropImages() {
	for n := range h.results {
		h.messages[n] = shortened(h.messages[n], math.MaxInt)
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

// flat returns the conversation without tool calls: code as fenced blocks, results as words of the user. Providers
// refuse tool calls in a conversation for which no tools are declared.
func (h *history) flat() []model.Message {
	var out []model.Message
	for _, m := range h.messages {
		role, content := m.Role, []model.Content{}
		if role == model.RoleTool {
			role = model.RoleUser
		}
		for _, c := range m.Content {
			switch c := c.(type) {
			case model.ToolCall:
				code, err := codeOf(c.Arguments)
				if err != nil {
					code = c.Arguments
				}
				content = append(content, model.Text{Text: fence("python", code)})
			case model.ToolResult:
				content = append(content, model.Text{Text: fencedResult(c.Text)})
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

// fence puts text into a fenced block that the text itself cannot close.
func fence(info, text string) string {
	ticks := "```"
	for strings.Contains(text, ticks) {
		ticks += "`"
	}
	return ticks + info + "\n" + strings.TrimRight(text, "\n") + "\n" + ticks
}

func fencedResult(text string) string { return "Result of the code:\n" + fence("", text) }
