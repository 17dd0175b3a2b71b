package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cove/internal/llm/model"
)

// A request has to fit into what the model takes at once, its window, with room for the answer: services refuse what does not, and Ollama cuts the beginning off without a word.
// How many tokens a text has is the model's secret; weight estimates it from above.

const (
	answerShare = 4   // the part of the window that is kept for the answer: one of so many
	resultShare = 4   // the part that one result may take
	shortest    = 200 // bytes of a result that is cut to fit

	messageWeight = 12 // of what stands around a message
)

// stepsLeftOut is what the model is told of steps for which the window has no room.
const stepsLeftOut = "(Of this conversation, %d earlier executions with their code are left out, for want of room. Their variables and files are there.)"

// weight is how much of a window a text takes, in thirds of a token: small models have a token for each digit, about one for three letters, and one for a letter of Chinese.
func weight(text string) int {
	w := len(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			w += 2
		case c < 'A' && c != ' ' || c > 'z' && c < 0x80:
			w++
		}
	}
	return w
}

func weigh(messages []model.Message) (sum int) {
	for _, m := range messages {
		sum += messageWeight
		for _, c := range m.Content {
			switch c := c.(type) {
			case model.Text:
				sum += weight(c.Text)
			case model.Image:
				sum += imageCost
			case model.ToolCall:
				sum += weight(c.ID) + weight(c.Name) + weight(c.Arguments)
			case model.ToolResult:
				sum += weight(c.CallID) + weight(c.Text) + imageCost*len(c.Images)
			}
		}
	}
	return sum
}

// CutToTokens returns a text without its middle where it has more than about so many tokens.
func CutToTokens(text string, tokens int64) string { return lightened(text, int(tokens)*charsPerToken) }

// lightened returns text without its middle where it weighs more than most.
func lightened(text string, most int) string {
	if w := weight(text); w > most {
		text = cutMiddle(text, int(int64(len(text))*int64(most)/int64(w)))
	}
	return text
}

// learnWindow asks the model's service for its window where nobody has said how large that is, once so much is to be sent that it may be too small.
func (t *turn) learnWindow(ctx context.Context, weight int) {
	const always = 1500 * charsPerToken // there is room for it beside the instructions
	ask := t.model.Capabilities().Window
	if t.spec.Context > 0 || ask == nil || weight < always {
		return
	}
	if tokens := ask(ctx); tokens > 0 {
		t.spec.Context, t.history.room = tokens, budget(tokens)
	}
}

// warnOfWindow tells the user once of a request that is too long although all was left out of it that may be.
func (t *turn) warnOfWindow(req model.Request) error {
	tokens := model.Estimate(req, 0).InputTokens
	if t.overlong || t.spec.Context <= 0 || tokens <= t.spec.Context {
		return nil
	}
	t.overlong = true
	return t.emit(Notice{fmt.Sprintf("The request has about %s tokens, and the model takes %s at once: its service may cut the beginning off. Give the model a larger window (Ollama: OLLAMA_CONTEXT_LENGTH), or ask with less.",
		grouped(tokens), grouped(t.spec.Context))})
}

// resultWeight is the most that a result may weigh; 0: its bytes are bounded alone.
func (t *turn) resultWeight() int { return int(t.spec.Context) * charsPerToken / resultShare }

// fit returns the conversation as there is room for it beside the instructions and tools of a request: the oldest executions are left out first, then the results are cut.
// What people have said stays as it is.
func (t *turn) fit(messages []model.Message, req model.Request) []model.Message {
	if t.spec.Context <= 0 {
		return messages
	}
	window := int(t.spec.Context) * charsPerToken
	room := window - window/answerShare - weight(req.System)
	for _, tool := range req.Tools {
		room -= weight(tool.Name) + weight(tool.Description) + weight(string(tool.Schema))
	}
	total := weigh(messages)
	if total <= room {
		return messages
	}
	messages, total = withoutSteps(messages, total-room)
	for n := 0; n < len(messages) && total > room; n++ {
		if isResult(messages[n]) {
			before := weigh(messages[n : n+1])
			share := max(before-(total-room), 0) // in thirds of a token
			messages[n] = shortened(messages[n], max(shortest, cost(messages[n])*share/max(before, 1)))
			total -= before - weigh(messages[n:n+1])
		}
	}
	return messages
}

// withoutSteps leaves out executions, the oldest first, until so much is saved, but never the last one. It returns a conversation of its own, and its weight.
func withoutSteps(messages []model.Message, save int) (kept []model.Message, total int) {
	gone, told := 0, -1 // told: the message that says how many are gone
	last := len(messages) - 1
	for last > 0 && messages[last].Role != model.RoleAssistant {
		last--
	}
	for n := 0; n < len(messages); {
		end := n + 1
		for end < len(messages) && isResult(messages[end]) {
			end++
		}
		if save <= 0 || n >= last || messages[n].Role != model.RoleAssistant || end == n+1 {
			kept = append(kept, messages[n:end]...)
			n = end
			continue
		}
		if gone++; gone == 1 {
			told = len(kept) - 1
		}
		save -= weigh(messages[n:end])
		n = end
	}
	if gone > 0 && told >= 0 {
		m := kept[told]
		kept[told] = model.Message{Role: m.Role, Content: append(slices.Clone(m.Content), model.Text{Text: fmt.Sprintf(stepsLeftOut, gone)})}
	}
	return kept, weigh(kept)
}

// repeatedLines is from how many equal lines on a text says how often they come.
const repeatedLines = 5

// folded returns text with each line that repeats told once.
func folded(text string) string {
	var out []string
	lines := strings.Split(text, "\n")
	for n := 0; n < len(lines); {
		same := n + 1
		for same < len(lines) && lines[same] == lines[n] {
			same++
		}
		if times := same - n; times < repeatedLines {
			out = append(out, lines[n:same]...)
		} else {
			out = append(out, lines[n], fmt.Sprintf("[the same line %s times more]", grouped(int64(times-1))))
		}
		n = same
	}
	return strings.Join(out, "\n")
}
