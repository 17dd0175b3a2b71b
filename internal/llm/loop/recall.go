package loop

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"cove/internal/llm/model"
)

// everythingLost begins the sentence that tells the model that its files are gone.
const everythingLost = "Everything is lost:"

// recollection is what can be read from a conversation about its earlier turns.
type recollection struct {
	files   map[string]bool // the workspace files that the model was told of, as "name (size)"
	unnamed int             // files of which it was told only the number
	figures int             // shown so far
	called  bool            // the model called the tool as it should
	fenced  bool            // code came as text
}

var (
	figureNote = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[figure ([0-9]{1,6}) shown to the user\]`) })
	moreFiles  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^- and| and) ([0-9]{1,9}) more`) })
)

// recall reads a conversation. A mistake in it has one consequence: the model is told something twice or not at all.
func recall(messages []model.Message) recollection {
	r := recollection{files: map[string]bool{}}
	for _, m := range messages {
		for _, c := range m.Content {
			switch c := c.(type) {
			case model.ToolCall:
				if isPython(c.Name) {
					_, err := codeOf(c.Arguments)
					r.called = r.called || err == nil
				}
			case model.ToolResult:
				r.result(c.Text)
			case model.Text:
				switch {
				case m.Role != model.RoleUser:
				case isResult(m):
					r.fenced = true
					r.result(c.Text)
				default:
					r.listed(c.Text)
				}
			}
		}
	}
	r.fenced = r.fenced && !r.called
	return r
}

func (r *recollection) result(text string) {
	for _, note := range figureNote().FindAllStringSubmatch(text, -1) {
		number, _ := strconv.Atoi(note[1])
		r.figures = max(r.figures, number)
	}
	for line := range strings.Lines(text) {
		switch {
		case strings.Contains(line, everythingLost):
			clear(r.files)
			r.unnamed = 0
		case strings.HasPrefix(line, deliveredHead):
			line = strings.NewReplacer("(new, ", "(", "(changed, ", "(").Replace(strings.TrimPrefix(line, deliveredHead))
			for file := range strings.SplitSeq(line, "), ") {
				name, _, _ := strings.Cut(file, ")")
				r.files[name+")"] = true
			}
			r.more(line)
		}
	}
}

// listed reads the listing below the user's words.
func (r *recollection) listed(text string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, everythingLost) {
			clear(r.files)
			r.unnamed = 0
		}
		entry, ok := strings.CutPrefix(line, "- ")
		if !ok {
			continue
		}
		// The end of the name is not certain: a name may contain brackets.
		for at := range min(len(entry), 1000) {
			if entry[at] == ')' {
				r.files[entry[:at+1]] = true
			}
		}
		r.more(line)
	}
}

func (r *recollection) more(line string) {
	if more := moreFiles().FindStringSubmatch(line); more != nil {
		number, _ := strconv.Atoi(more[1])
		r.unnamed += number
	}
}
