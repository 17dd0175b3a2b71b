package anthropic

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cove/internal/llm/model"
	"cove/internal/server/hub"
)

const (
	largestImage = 20 << 20
	largestText  = 256 << 10 // of a file that the model reads itself
	transient    = 24 * time.Hour
)

// input reads the messages of a request.
type input struct {
	s      *server
	c      *call
	python bool
	shell  bool // the code execution tool is that of commands and files
	dry    bool // nothing is stored: only tokens are counted
	// since is the first message whose files are put into the container: those before it were, when they were said.
	since    int
	history  history
	system   []string
	codes    map[string]string    // of server_tool_use blocks, by id
	commands map[string]commanded // of the machine's tools, by id
	lastCode string               // the id of the last server_tool_use block of code
	called   []string             // the ids of calls that code made and that have no result
	resumed  string               // the id of the block whose code goes on now; or ""
	ended    bool                 // the last block of the model's is the result of code
	files    []string             // cove's ids of files for the container
	names    map[string]string    // by id, the names in the workspace of files that do not have their own
	taken    map[string]string    // by name in the workspace, the id
}

// read reads all messages. placed says that the request names the container in which earlier files are already.
func (in *input) read(messages []message, placed bool) error {
	in.codes, in.taken = map[string]string{}, map[string]string{}
	last := ""
	for i, m := range messages {
		if placed && m.Role == "assistant" {
			in.since = i + 1
		}
	}
	for i, m := range messages {
		at := fmt.Sprintf("messages.%d", i)
		var err error
		switch m.Role {
		case "user":
			err = in.user(i, at, m.Content, i == len(messages)-1)
		case "assistant":
			err = in.assistant(at, m.Content)
		case "system":
			in.system = append(in.system, m.Content.words())
			continue
		default:
			err = invalid(at + ".role: Input should be 'user' or 'assistant'")
		}
		if err != nil {
			return err
		}
		last = m.Role
	}
	if last == "assistant" {
		if !in.ended {
			return invalid("messages: This server does not support assistant message prefill. The conversation must end with a user message.")
		}
		in.history.add(model.RoleUser, model.Text{Text: "Go on."}) // the client resends what paused
	}
	if len(in.history.messages) == 0 {
		return invalid("messages: at least one message with content is required")
	}
	if len(in.called) > 0 {
		return unanswered(in.called[0])
	}
	return in.history.check()
}

// user reads what a user says; last says that nothing follows.
func (in *input) user(i int, at string, content blocks, last bool) error {
	var said, ofProgram []model.Content
	for k, b := range content {
		here := fmt.Sprintf("%s.content.%d", at, k)
		if b.Type == "tool_result" {
			r, err := in.result(i, here, b)
			switch {
			case err != nil:
				return err
			case ofCode(r.CallID):
				ofProgram = append(ofProgram, r)
				in.called = slices.DeleteFunc(in.called, func(id string) bool { return id == r.CallID })
			default:
				in.history.add(model.RoleTool, r)
			}
			continue
		}
		c, err := in.part(i, here, b)
		if err != nil {
			return err
		}
		said = append(said, c...)
	}
	if last {
		in.goesOn(ofProgram)
	}
	in.history.add(model.RoleUser, said...)
	return nil
}

// result reads what a tool of the client's gave.
func (in *input) result(i int, at string, b block) (r model.ToolResult, err error) {
	var inner blocks
	if len(b.Content) > 0 && json.Unmarshal(b.Content, &inner) != nil {
		return r, invalid(at + ".content: Input should be a string or a list of content blocks")
	}
	r = model.ToolResult{CallID: b.ToolUseID, IsError: b.IsError}
	for k, one := range inner {
		content, err := in.part(i, fmt.Sprintf("%s.content.%d", at, k), one)
		if err != nil {
			return r, err
		}
		for _, c := range content {
			switch c := c.(type) {
			case model.Text:
				r.Text = strings.TrimPrefix(r.Text+"\n"+c.Text, "\n")
			case model.Image:
				r.Images = append(r.Images, c)
			}
		}
	}
	return r, nil
}

// part reads a block of a user's.
func (in *input) part(i int, at string, b block) ([]model.Content, error) {
	switch b.Type {
	case "text":
		if b.Text == "" {
			return nil, invalid(at + ".text: text content blocks must be non-empty")
		}
		return []model.Content{model.Text{Text: b.Text}}, nil
	case "image":
		return in.image(at, b)
	case "document":
		return in.document(i, at, b)
	case "container_upload":
		if !in.python {
			return nil, invalid(at + ": container_upload takes a code execution tool")
		}
		return in.stored(i, at, b.FileID)
	}
	return nil, invalid(at + ".type: This server does not take blocks of the type '" + short(b.Type) + "' here. It takes text, image, document, container_upload and tool_result.")
}

func (in *input) assistant(at string, content blocks) error {
	in.ended = false
	for k, b := range content {
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) != "" {
				in.history.add(model.RoleAssistant, model.Text{Text: b.Text})
			}
		case "tool_use":
			if ofCode(b.ID) {
				in.called = append(in.called, b.ID) // the model has not made this call
				continue
			}
			if b.ID == "" || b.Name == "" {
				return invalid(fmt.Sprintf("%s.content.%d: Field required: id and name", at, k))
			}
			in.ended = false
			in.history.add(model.RoleAssistant, model.ToolCall{ID: b.ID, Name: b.Name, Arguments: model.ArgumentsObject(string(b.Input))})
		case "server_tool_use":
			var code struct{ Code string }
			if json.Unmarshal(b.Input, &code) == nil && b.Name == codeTool {
				in.codes[b.ID], in.lastCode = code.Code, b.ID
			} else if isShell(b.Name) {
				in.command(b)
			}
		case "code_execution_tool_result":
			in.ended = true
			in.executed(b)
		case bashTool + resultKind, editorTool + resultKind:
			in.ended = true
			in.performed(b)
		}
		// Thoughts, and what other tools of Anthropic's servers did in an earlier message, are nothing that the model here can use.
	}
	return nil
}

// executed adds an execution that an earlier message tells of. Code that did not run is left out.
func (in *input) executed(b block) {
	code, known := in.codes[b.ToolUseID]
	var r ran
	if !known || json.Unmarshal(b.Content, &r) != nil || r.ErrorCode == "unavailable" {
		return
	}
	if r.ErrorCode != "" {
		r.Stderr = "The code failed: " + r.ErrorCode
	}
	delete(in.codes, b.ToolUseID)
	if in.python && !in.shell {
		in.history.ran(b.ToolUseID, code, r.printed())
		return
	}
	// A provider does not take calls of a tool that is not offered any more.
	in.history.add(model.RoleAssistant, model.Text{Text: "I ran this code:\n```python\n" + code + "\n```\nIt printed:\n```\n" + r.printed() + "\n```"})
}

func (in *input) image(at string, b block) ([]model.Content, error) {
	var data []byte
	switch {
	case b.Source == nil:
		return nil, invalid(at + ".source: Field required")
	case b.Source.Type == "base64":
		var err error
		if data, err = base64.StdEncoding.DecodeString(b.Source.Data); err != nil {
			return nil, invalid(at + ".source.data: Input should be base64")
		}
	case b.Source.Type == "file":
		file, err := ownFile(b.Source.FileID)
		if err == nil {
			_, data, _, err = in.peek(file, b.Source.FileID, largestImage+1)
		}
		if err != nil {
			return nil, err
		}
	default:
		return nil, noSource(at, b.Source.Type)
	}
	kind := http.DetectContentType(data) // the bytes are trusted, not what the client calls them
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, kind) || len(data) > largestImage {
		return nil, invalid(at + ".source: The image is not a PNG, JPEG, GIF or WebP image of at most 20 MiB")
	}
	return []model.Content{model.Image{MIME: kind, Data: data}}, nil
}

func noSource(at, kind string) error {
	return invalid(at + ".source.type: This server does not take a source of the type '" + short(kind) + "': it fetches no addresses. Send base64 or text, or upload a file.")
}

// document gives a text to the model, and other files to the code.
func (in *input) document(i int, at string, b block) ([]model.Content, error) {
	switch {
	case b.Source == nil:
		return nil, invalid(at + ".source: Field required")
	case b.Source.Type == "text":
		return []model.Content{model.Text{Text: strings.TrimSpace("Document " + b.Title + ":\n" + b.Source.Data)}}, nil
	case b.Source.Type == "file":
		return in.stored(i, at, b.Source.FileID)
	case b.Source.Type != "base64":
		return nil, noSource(at, b.Source.Type)
	case !in.python:
		return nil, invalid(at + ": Without a code execution tool, which can open the document, this server takes documents that are plain text only")
	}
	data, err := base64.StdEncoding.DecodeString(b.Source.Data)
	switch {
	case err != nil:
		return nil, invalid(at + ".source.data: Input should be base64")
	case int64(len(data)) > in.s.MaxFile:
		return nil, tooLarge(in.s.MaxFile)
	}
	if i < in.since || in.dry {
		return nil, nil
	}
	name := fileName(b.Title)
	if name == "" {
		name = "document.pdf"
	}
	record, err := in.s.Hub.AddFile(in.c.Context(), in.c.who, hub.NewFile{Name: name, Purpose: "user_data", Life: transient}, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return in.place(record), nil
}

// stored takes a stored file: into the container, or, without one, a text into the conversation.
func (in *input) stored(i int, at, id string) ([]model.Content, error) {
	file, err := ownFile(id)
	if err != nil {
		return nil, err
	}
	if !in.python {
		record, data, whole, err := in.peek(file, id, largestText)
		switch {
		case err != nil:
			return nil, err
		case !whole || !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
			return nil, invalid(at + ": The file is not a text of at most 256 KiB. Add a code execution tool, which can open it.")
		}
		return []model.Content{model.Text{Text: "File " + record.Name + ":\n" + string(data)}}, nil
	}
	record, err := in.s.Hub.File(in.c.Context(), in.c.who, file)
	switch {
	case err != nil && i < in.since:
		return nil, nil // it was put into the container, and may have been deleted since
	case err != nil:
		return nil, named(err, noFile(id))
	}
	content := in.place(record)
	if i < in.since {
		in.files = slices.DeleteFunc(in.files, func(f string) bool { return f == file })
	}
	return content, nil
}

// place has a file put into the workspace. It tells the model when the file cannot have its own name there, because another one has it.
func (in *input) place(record hub.File) []model.Content {
	if slices.Contains(in.files, record.ID) {
		return nil
	}
	name := record.Name
	for n := 2; in.taken[name] != "" && in.taken[name] != record.ID; n++ {
		name = fmt.Sprintf("%d_%s", n, record.Name)
	}
	in.taken[name] = record.ID
	in.files = append(in.files, record.ID)
	if name == record.Name {
		return nil
	}
	if in.names == nil {
		in.names = map[string]string{}
	}
	in.names[record.ID] = name
	return []model.Content{model.Text{Text: fmt.Sprintf("[The file that is attached here as %q has the name %q in the workspace.]", record.Name, name)}}
}

// peek reads the beginning of a stored file and says whether that is all.
func (in *input) peek(file, foreign string, limit int64) (hub.File, []byte, bool, error) {
	record, content, err := in.s.Hub.OpenFile(in.c.Context(), in.c.who, file)
	if err != nil {
		return record, nil, false, named(err, noFile(foreign))
	}
	defer func() { _ = content.Close() }()
	data, err := io.ReadAll(io.LimitReader(content, limit))
	return record, data, record.Size <= limit, err
}
