package anthropic

import (
	"encoding/json"
	"strings"
)

// block is a content block of a request; Type says which of the fields count.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Title     string          `json:"title"`
	Source    *source         `json:"source"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"` // of results: blocks, or one result
	IsError   bool            `json:"is_error"`
	FileID    string          `json:"file_id"`
}

// source is where an image or a document comes from.
type source struct {
	Type   string `json:"type"` // base64, text, file; url and content are refused
	Data   string `json:"data"`
	FileID string `json:"file_id"`
}

// ran is the result of an execution, as this server and Anthropic's write it.
type ran struct {
	Type      string `json:"type"`
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	ErrorCode string `json:"error_code"`
}

// printed is what the model is told of a result.
func (r ran) printed() string {
	text := r.Stdout
	if text != "" && !strings.HasSuffix(text, "\n") && r.Stderr != "" {
		text += "\n"
	}
	if text += r.Stderr; text == "" {
		text = "(no output)"
	}
	return text
}

// blocks are content: a string, which is one text block, or a list.
type blocks []block

// UnmarshalJSON reads both forms.
func (b *blocks) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		var s string
		err := json.Unmarshal(text, &s)
		*b = blocks{{Type: "text", Text: s}}
		return err
	}
	return json.Unmarshal(text, (*[]block)(b))
}

// words are the texts of the blocks.
func (b blocks) words() string {
	var texts []string
	for _, one := range b {
		if one.Text != "" {
			texts = append(texts, one.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}
