package model

import (
	"bytes"
	"encoding/json"
	"fmt"

	"cove/internal/core/problem"
)

// maxPieces bounds the pieces of a message, and the images of a result, that are read from JSON.
const maxPieces = 10_000

// piece is the JSON form of every Content; Type says which, and so which of the fields count.
type piece struct {
	Type      string  `json:"type"`
	Text      *string `json:"text,omitempty"`      // text, result
	MIME      string  `json:"mime,omitempty"`      // image
	Data      []byte  `json:"data,omitempty"`      // image, in base64
	ID        string  `json:"id,omitempty"`        // call
	Name      string  `json:"name,omitempty"`      // call
	Arguments *string `json:"arguments,omitempty"` // call
	CallID    string  `json:"call_id,omitempty"`   // result
	Images    []Image `json:"images,omitempty"`    // result
	IsError   bool    `json:"is_error,omitempty"`  // result
}

// MarshalJSON writes the form in which conversations are kept. It is stable: fields may be added, never renamed or removed.
//
//	{"role": "user" | "assistant" | "tool", "content": [
//	    {"type": "text", "text"},
//	    {"type": "image", "mime", "data"},
//	    {"type": "call", "id", "name", "arguments"},
//	    {"type": "result", "call_id", "text", "images": [{"mime", "data"}], "is_error": true}]}
//
// Data is in base64; arguments is the text that the model wrote, whether or not it is JSON.
func (m Message) MarshalJSON() ([]byte, error) {
	out := struct {
		Role    Role    `json:"role"`
		Content []piece `json:"content"`
	}{m.Role, make([]piece, 0, len(m.Content))}
	for _, c := range m.Content {
		p, err := pieceOf(c)
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, p)
	}
	return json.Marshal(out)
}

func pieceOf(c Content) (piece, error) {
	switch c := c.(type) {
	case Text:
		return piece{Type: "text", Text: &c.Text}, nil
	case Image:
		return piece{Type: "image", MIME: c.MIME, Data: c.Data}, nil
	case ToolCall:
		return piece{Type: "call", ID: c.ID, Name: c.Name, Arguments: &c.Arguments}, nil
	case ToolResult:
		return piece{Type: "result", CallID: c.CallID, Text: &c.Text, Images: c.Images, IsError: c.IsError}, nil
	default:
		return piece{}, fmt.Errorf("a message has a %T in it", c)
	}
}

// UnmarshalJSON reads what MarshalJSON wrote. A role or a type that is not known and a piece without what makes it one are refused; fields that
// are not known are passed over. Problems are of kind Invalid with code "message_invalid".
func (m *Message) UnmarshalJSON(text []byte) error {
	var in struct {
		Role    Role    `json:"role"`
		Content []piece `json:"content"`
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&in); err != nil {
		return invalidMessage("it does not have the form of one").WithCause(err)
	}
	if in.Role != RoleUser && in.Role != RoleAssistant && in.Role != RoleTool {
		return invalidMessage(fmt.Sprintf("%.40q is not a role", in.Role))
	}
	if len(in.Content) > maxPieces {
		return invalidMessage(fmt.Sprintf("it has %d pieces, but may have at most %d", len(in.Content), maxPieces))
	}
	content := make([]Content, 0, len(in.Content))
	for i, p := range in.Content {
		c := p.content()
		if c == nil {
			return invalidMessage(fmt.Sprintf("its piece %d (%.40q) is not complete, or of no known type", i, p.Type))
		}
		content = append(content, c)
	}
	*m = Message{Role: in.Role, Content: content}
	return nil
}

// content returns nil for a piece that is none.
func (p piece) content() Content {
	switch {
	case p.Type == "text" && p.Text != nil:
		return Text{Text: *p.Text}
	case p.Type == "image" && p.MIME != "" && len(p.Data) > 0:
		return Image{MIME: p.MIME, Data: p.Data}
	case p.Type == "call" && p.ID != "" && p.Name != "" && p.Arguments != nil:
		return ToolCall{ID: p.ID, Name: p.Name, Arguments: *p.Arguments}
	case p.Type == "result" && p.CallID != "" && p.Text != nil && len(p.Images) <= maxPieces:
		return ToolResult{CallID: p.CallID, Text: *p.Text, Images: p.Images, IsError: p.IsError}
	}
	return nil
}

func invalidMessage(what string) *problem.Error {
	return problem.New(problem.MessageInvalid, "a message of the conversation cannot be read: "+what)
}
