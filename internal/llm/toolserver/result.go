package toolserver

import (
	"encoding/json"
	"strings"

	"cove/internal/llm/tool"
)

// mostBlocks is how many blocks of content a result may have.
const mostBlocks = 1000

// answer is the result of a tool, as the protocol has it (CallToolResult).
type answer struct {
	Content    json.RawMessage `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	Failed     bool            `json:"isError"`
	Type       string          `json:"resultType"` // "input_required": the tool asks for something first
}

// block is a part of a result.
type block struct {
	Type     string    `json:"type"`
	Text     string    `json:"text"`
	Data     string    `json:"data"` // base64
	MIMEType string    `json:"mimeType"`
	URI      string    `json:"uri"`
	Name     string    `json:"name"`
	About    string    `json:"description"`
	Resource *resource `json:"resource"`
}

type resource struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType"`
	Text     string `json:"text"`
	Bytes    string `json:"blob"` // base64
}

// result is what code gets of an answer: the structured content; else the content, which is the text of one block of text, and otherwise what each block is.
func result(raw json.RawMessage) tool.Result {
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return tool.Failed("the tool answered with what is no result")
	}
	if a.Type == "input_required" {
		return tool.Failed("the tool asks for input, which code cannot give it")
	}
	var texts []string
	values := []any{}
	most := mostBlocks + 1
	err := elements(a.Content, most, func(d *json.Decoder) error {
		var b block
		if err := d.Decode(&b); err != nil {
			return err
		}
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
		values = append(values, b.value())
		return nil
	})
	if err != nil || len(values) == most {
		return tool.Failed("the tool answered with what is no result, or one of too many parts")
	}
	if a.Failed {
		return tool.Failed(strings.Join(texts, "\n"))
	}
	if len(a.Structured) > 0 && string(a.Structured) != "null" {
		return tool.Result{Value: a.Structured}
	}
	var value any = values
	switch len(values) {
	case 0:
		value = nil
	case 1:
		value = values[0]
	}
	text, err := json.Marshal(value)
	if err != nil {
		return tool.Failed("the tool answered with what is no result")
	}
	return tool.Result{Value: text}
}

// value is what code gets of a block: a text, or a dict.
func (b block) value() any {
	out := map[string]any{"type": printable(b.Type)}
	add := func(key, text string) {
		if text != "" {
			out[key] = text
		}
	}
	switch b.Type {
	case "text":
		return b.Text
	case "image", "audio":
		add("data", b.Data)
		add("mimeType", b.MIMEType)
	case "resource":
		if r := b.Resource; r != nil {
			add("uri", r.URI)
			add("mimeType", r.MIMEType)
			add("text", r.Text)
			add("data", r.Bytes)
		}
	default: // resource_link, and what there may be in later versions
		add("uri", b.URI)
		add("name", b.Name)
		add("description", b.About)
		add("mimeType", b.MIMEType)
		add("text", b.Text)
		add("data", b.Data)
	}
	return out
}
