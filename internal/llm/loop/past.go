package loop

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cove/internal/llm/model"
)

// What a conversation's earlier turns become before they are sent again. The last one stays as it is: the next question is often about its result. Of those
// before, variables and files are in the session still, so their results need not be told in full. A turn changes once, when it is not the last one any
// more, so that what providers have cached of the conversation is of use until there.
const (
	pastResult   = 800 // bytes of a result of code
	pastListing  = 300 // bytes of a file's description
	pastRows     = 2   // of a table
	pastKept     = 2   // turns that are never reduced to words
	pastGroup    = 5   // turns that are reduced to words, or left out, at once: more seldom than with each turn
	pastImage    = "[an image that was shown here]"
	pastRepaired = "(code that failed is left out)"
)

// charsPerToken is how many characters a token has at least in words and code of English, and in Chinese about 1; half of a model's tokens is kept for what comes.
const charsPerToken = 3

// budget is how many characters of a conversation are sent to a model that takes so many tokens at once; 0: it is not known.
func budget(tokens int64) int {
	if tokens <= 0 {
		return historyBudget
	}
	return int(min(historyBudget, tokens*charsPerToken/2))
}

// past returns the messages of earlier turns as they are sent within a budget of characters.
func past(messages []model.Message, room int) []model.Message {
	turns := turnsOf(messages)
	for n := range max(len(turns)-1, 0) {
		turns[n] = brief(turns[n])
	}
	words := 0
	for words < len(turns)-pastKept && costs(turns) > room {
		to := min(words+pastGroup, len(turns)-pastKept)
		for n := words; n < to; n++ {
			turns[n] = inWords(turns[n])
		}
		words = to
	}
	out := 0
	for out < words && costs(turns[out:]) > room {
		out = min(out+pastGroup, words)
	}
	var kept []model.Message
	if out > 0 {
		kept = append(kept, model.Message{Role: model.RoleUser, Content: []model.Content{model.Text{Text: fmt.Sprintf("(%d earlier turns of this conversation are left out.)", out)}}})
	}
	return slices.Concat(append([][]model.Message{kept}, turns[out:]...)...)
}

// turnsOf splits a conversation before each message in which the user speaks.
func turnsOf(messages []model.Message) [][]model.Message {
	var turns [][]model.Message
	from := 0
	for n := 1; n < len(messages); n++ {
		if speaks(messages[n]) && !speaks(messages[n-1]) {
			turns, from = append(turns, messages[from:n]), n
		}
	}
	if from < len(messages) {
		turns = append(turns, messages[from:])
	}
	return turns
}

func speaks(m model.Message) bool { return m.Role == model.RoleUser && !isResult(m) }

func costs(turns [][]model.Message) int {
	sum := 0
	for _, turn := range turns {
		for _, m := range turn {
			sum += cost(m)
		}
	}
	return sum
}

// brief returns a turn with short results and listings, without images, and without code that failed before other code did not.
func brief(turn []model.Message) []model.Message {
	repaired := repairedCalls(turn)
	var out []model.Message
	for _, m := range turn {
		var content []model.Content
		for _, c := range m.Content {
			switch c := c.(type) {
			case model.Text:
				switch {
				case isResult(m):
					content = append(content, model.Text{Text: briefResult(c.Text)})
				case m.Role == model.RoleUser:
					content = append(content, model.Text{Text: briefListing(c.Text)})
				default:
					content = append(content, c)
				}
			case model.Image:
				if !isResult(m) {
					content = append(content, model.Text{Text: pastImage})
				}
			case model.ToolCall:
				if !repaired[c.ID] {
					content = append(content, c)
				}
			case model.ToolResult:
				if !repaired[c.CallID] {
					c.Text, c.Images = briefResult(c.Text), nil
					content = append(content, c)
				}
			default:
				content = append(content, c)
			}
		}
		if len(content) == 0 && m.Role == model.RoleAssistant {
			content = []model.Content{model.Text{Text: pastRepaired}}
		}
		if len(content) > 0 {
			out = append(out, model.Message{Role: m.Role, Content: content})
		}
	}
	return out
}

// repairedCalls are the ids of the calls of code that failed and after which other code did not.
func repairedCalls(turn []model.Message) map[string]bool {
	var failed []string
	repaired := map[string]bool{}
	names := map[string]string{}
	for _, m := range turn {
		for _, c := range m.Content {
			switch c := c.(type) {
			case model.ToolCall:
				names[c.ID] = c.Name
			case model.ToolResult:
				switch {
				case !isPython(names[c.CallID]):
				case c.IsError:
					failed = append(failed, c.CallID)
				default:
					for _, id := range failed {
						repaired[id] = true
					}
					failed = nil
				}
			}
		}
	}
	return repaired
}

var (
	frameHead = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\[DataFrame: [0-9]+ rows × [0-9]+ columns\]$`) })
	chartHead = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(\[(?:figure [0-9]+|interactive chart) shown to the user\].*?) It shows:$`)
	})
)

// briefResult shortens a result by what is in it: of tables the shape, the columns and the first rows remain, of figures that they were shown.
func briefResult(text string) string {
	var out []string
	rows, inChart := -1, false // rows of a table that were seen; -1: outside of one
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		inChart = inChart && strings.HasPrefix(line, "  ")
		switch head := chartHead().FindStringSubmatch(line); {
		case inChart:
		case head != nil:
			inChart, rows = true, -1
			out = append(out, head[1])
		case frameHead().MatchString(line):
			rows = 0
			out = append(out, line)
		case rows >= 0 && strings.HasPrefix(line, "["): // dtypes, more columns, missing values
			if rows > pastRows+1 {
				out = append(out, "…")
			}
			rows = -1
			out = append(out, cutEnd(line, pastListing))
		case rows > pastRows:
			rows++
		case rows >= 0:
			rows++
			out = append(out, cutEnd(line, pastListing))
		default:
			out = append(out, line)
		}
	}
	return cutMiddle(strings.Join(out, "\n"), pastResult)
}

// The lines that begin what is told below the user's words (prompts/user.md).
const (
	listingHead   = "iles in the working directory:\n"
	variablesHead = "Variables in the session:\n"
)

// briefListing shortens the descriptions of files, and leaves out the variables, of which newer words are told.
func briefListing(text string) string {
	if at := strings.LastIndex(text, "\n"+variablesHead); at >= 0 {
		text = strings.TrimRight(text[:at], "\n")
	}
	words, listing, found := strings.Cut(text, listingHead)
	if !found {
		return text
	}
	var out strings.Builder
	out.WriteString(words + listingHead)
	room := pastListing
	for line := range strings.Lines(listing) {
		if strings.HasPrefix(line, "- ") {
			room = pastListing
		} else if room -= len(line); room < 0 && strings.Trim(line, " `\n") != "" {
			continue // but for the end of a fence
		}
		out.WriteString(line)
	}
	return strings.TrimRight(out.String(), "\n")
}

// inWords returns what was said in a turn: the user's words and the answer.
func inWords(turn []model.Message) []model.Message {
	var out []model.Message
	for n, m := range turn {
		last := n == len(turn)-1
		if !speaks(m) && (m.Role != model.RoleAssistant || !last) {
			continue
		}
		var content []model.Content
		for _, c := range m.Content {
			if t, ok := c.(model.Text); ok {
				if words, _, found := strings.Cut(t.Text, "\n\nFiles in the working directory:\n"); found {
					t.Text = words
				}
				content = append(content, t)
			}
		}
		if len(content) > 0 {
			out = append(out, model.Message{Role: m.Role, Content: content})
		}
	}
	return out
}
