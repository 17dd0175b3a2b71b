package loop

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"cove/internal/llm/model"
)

// sendableID is an id that every provider takes back.
var sendableID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,40}$`) })

// The largest image that is sent to a model, in bytes of the file; services refuse larger ones.
const sendableImage = 20 << 20

// normal returns a conversation in the form that every provider takes: it begins with the user; no two messages after one another have the
// same role; every call has an id of its own, arguments that are a JSON object, and its result in the message after it; nothing is blank or not UTF-8. A
// conversation in that form already is returned unchanged.
func (t *turn) normal(messages []model.Message) []model.Message {
	n := normalizer{turn: t, taken: map[string]bool{}}
	groups := t.grouped(messages)
	for len(groups) > 0 {
		var said model.Message
		if groups[0].Role == model.RoleAssistant {
			said, groups = groups[0], groups[1:]
		}
		next := slices.IndexFunc(groups, func(m model.Message) bool { return m.Role == model.RoleAssistant })
		if next < 0 {
			next = len(groups)
		}
		n.take(said, groups[:next])
		groups = groups[next:]
	}
	if len(n.out) > 0 && n.out[0].Role != model.RoleUser {
		n.out = slices.Insert(n.out, 0, model.Message{Role: model.RoleUser, Content: []model.Content{model.Text{Text: "(The conversation goes on.)"}}})
	}
	return n.out
}

// grouped has every piece in a message of the role that it belongs to, and joins messages of the same role.
func (t *turn) grouped(messages []model.Message) []model.Message {
	var out []model.Message
	for _, m := range messages {
		for _, c := range m.Content {
			role, c := t.placed(m, c)
			if c == nil {
				continue
			}
			if last := len(out) - 1; last >= 0 && out[last].Role == role {
				out[last].Content = append(out[last].Content, c)
				continue
			}
			out = append(out, model.Message{Role: role, Content: []model.Content{c}})
		}
	}
	return out
}

// placed returns a piece as it may be sent, or nil, and whose message it belongs to.
func (t *turn) placed(m model.Message, c model.Content) (model.Role, model.Content) {
	role := model.RoleUser
	if m.Role == model.RoleAssistant {
		role = m.Role
	}
	switch c := c.(type) {
	case model.Text:
		if strings.TrimSpace(c.Text) == "" {
			return role, nil
		}
		return role, model.Text{Text: strings.ToValidUTF8(c.Text, "\uFFFD")}
	case model.Image:
		switch {
		case role == model.RoleAssistant:
			return role, nil
		case !t.sees() && !isResult(m):
			return role, model.Text{Text: "[an image, which this model cannot see]"}
		case !sendable(c):
			return role, model.Text{Text: "[an image that cannot be shown to you]"}
		}
		return role, c
	case model.ToolCall:
		return model.RoleAssistant, c
	case model.ToolResult:
		c.Text = strings.ToValidUTF8(c.Text, "\uFFFD")
		c.Images = slices.DeleteFunc(slices.Clone(c.Images), func(i model.Image) bool { return !sendable(i) })
		return model.RoleTool, c
	}
	return role, nil
}

func sendable(i model.Image) bool {
	switch i.MIME {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return len(i.Data) > 0 && len(i.Data) <= sendableImage
	}
	return false
}

type normalizer struct {
	turn  *turn
	out   []model.Message
	taken map[string]bool // ids of calls
}

// take adds what the model said and the results after it.
func (n *normalizer) take(said model.Message, behind []model.Message) {
	var words, calls, results, told []model.Content
	var brought []model.ToolResult
	for _, m := range behind {
		for _, c := range m.Content {
			if r, ok := c.(model.ToolResult); ok {
				brought = append(brought, r)
			} else {
				told = append(told, c)
			}
		}
	}
	for _, c := range said.Content {
		call, ok := c.(model.ToolCall)
		if !ok {
			words = append(words, c)
			continue
		}
		result := model.ToolResult{Text: "No result came for this call.", IsError: true}
		if at := slices.IndexFunc(brought, func(r model.ToolResult) bool { return r.CallID == call.ID }); at >= 0 {
			result = brought[at]
			brought = slices.Delete(brought, at, at+1)
		}
		if !sendableID().MatchString(call.ID) || n.taken[call.ID] {
			call.ID = freeID(n.taken)
		}
		n.taken[call.ID] = true
		result.CallID = call.ID
		calls, results = append(calls, n.turn.tidy(call)), append(results, result)
	}
	for _, r := range brought { // a result that no call asked for, as text: nothing is lost
		told = append(told, model.Text{Text: "Result of a call:\n" + fence("", r.Text)})
	}
	n.add(model.RoleAssistant, append(words, calls...))
	n.add(model.RoleTool, results)
	n.add(model.RoleUser, told)
}

func (n *normalizer) add(role model.Role, content []model.Content) {
	if len(content) > 0 {
		n.out = append(n.out, model.Message{Role: role, Content: content})
	}
}
