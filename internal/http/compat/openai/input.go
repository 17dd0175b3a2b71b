package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// input reads the items of a request into a conversation, files and what is kept.
type input struct {
	s         *server
	c         *call
	python    bool // files go into the workspace; without it the model is shown what can be shown
	dry       bool // items are checked and kept whole for later
	history   history
	items     []json.RawMessage // as they are kept: with ids, and without what is large
	developer []string
	prompt    []string                // the user's words
	files     []attached              // for the workspace
	named     []namedFile             // the names that are taken in the workspace
	placed    []string                // the containers of the executions that the items tell of
	seen      map[string]*translation // of earlier turns whose items were asked for
}

const mostItems = 5000

// read takes "input": a string or a list of items.
func (in *input) read(f *form, name string, raw json.RawMessage) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		quoted, _ := json.Marshal(map[string]string{"role": "user", "content": text})
		return in.item(f.object(name, quoted))
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return wrongType(f.path(name), "one of a string or array of input items", raw)
	}
	if len(list) > mostItems {
		return tooMany(f.path(name), mostItems, len(list))
	}
	for i, raw := range list {
		item := f.object(fmt.Sprintf("%s[%d]", name, i), raw)
		if f.err != nil {
			return f.err
		}
		if err := in.item(item); err != nil {
			return err
		}
	}
	return nil
}

func (in *input) item(f *form) error {
	kind := f.text("type")
	if kind == "" {
		kind = "message"
	}
	if f.text("id"); f.err != nil {
		return f.err
	}
	var err error
	switch kind {
	case "message":
		err = in.message(f)
	case "code_interpreter_call":
		err = in.execution(f)
	case "function_call":
		call := model.ToolCall{ID: f.needed("call_id"), Name: f.needed("name"), Arguments: f.needed("arguments")}
		in.history.add(model.RoleAssistant, call)
		in.keep(f, "fc", nil)
	case "function_call_output":
		err = in.functionResult(f)
	case "program":
		in.program(f)
	case "program_output":
		in.programOutput(f)
	case "reasoning":
		// It is shown and not sent back: models do not want to read their old thoughts.
		in.keep(f, "rs", nil)
	case "item_reference":
		err = in.referred(f)
	case "compaction":
		err = in.compaction(f)
	default:
		err = notOneOf(f.path("type"), kind, []string{"message", "code_interpreter_call", "function_call", "function_call_output",
			"program", "program_output", "reasoning", "item_reference", "compaction"})
	}
	if f.err != nil {
		return f.err
	}
	return err
}

func (in *input) message(f *form) error {
	role := f.needed("role")
	content, parts, err := in.content(f)
	if err != nil {
		return err
	}
	switch role {
	case "user":
		in.history.add(model.RoleUser, content...)
		in.prompt = append(in.prompt, words(content))
	case "assistant":
		in.history.add(model.RoleAssistant, content...)
	case "system", "developer":
		in.developer = append(in.developer, words(content))
	default:
		return notOneOf(f.path("role"), role, []string{"assistant", "system", "developer", "user"})
	}
	in.keep(f, "msg", map[string]any{"type": "message", "role": role, "status": "completed", "content": parts})
	return f.err
}

func words(content []model.Content) string {
	var out []string
	for _, c := range content {
		if t, ok := c.(model.Text); ok {
			out = append(out, t.Text)
		}
	}
	return strings.Join(out, "\n")
}

// execution takes code that an earlier response ran, as a client that keeps the conversation itself sends it back.
func (in *input) execution(f *form) error {
	id, container := f.text("id"), f.text("container_id")
	if container == "" && !in.dry {
		if found, err := in.find(id); err == nil && found.code != nil {
			container = found.code.ContainerID
		}
	}
	in.ranIn(container)
	if id == "" {
		id = ident.New("ci")
	}
	var outputs []output
	if f.has("outputs") && json.Unmarshal(f.raw["outputs"], &outputs) != nil {
		return wrongType(f.path("outputs"), "an array of objects", f.raw["outputs"])
	}
	result := resultOf(outputs)
	if !f.has("outputs") {
		result.Text = in.remembered(id)
	}
	// Code that broke off was not run.
	if code := f.text("code"); f.text("status") != statusIncomplete || len(outputs) > 0 {
		in.history.ran(id, code, result)
	}
	in.keep(f, "ci", nil)
	return nil
}

// remembered returns what an earlier execution printed when the client does not send it.
func (in *input) remembered(id string) string {
	if found, err := in.find(id); err == nil && found.code != nil {
		return resultOf(found.code.all).Text
	}
	return "(The output was not kept.)"
}

func resultOf(outputs []output) model.ToolResult {
	var r model.ToolResult
	for _, o := range outputs {
		if o.Type == "logs" {
			r.Text += o.Logs
			continue
		}
		if image, ok := dataImage(o.URL); ok {
			r.Images = append(r.Images, image)
		}
	}
	if r.Text == "" {
		r.Text = "(no output)"
	}
	return r
}

func (in *input) functionResult(f *form) error {
	result := model.ToolResult{CallID: f.needed("call_id")}
	switch {
	case !f.has("output"):
		return missing(f.path("output"))
	case kindOf(f.raw["output"]) == "an array":
		inner := &form{at: f.at, raw: map[string]json.RawMessage{"content": f.raw["output"]}}
		content, _, err := in.content(inner)
		if err != nil {
			return err
		}
		result.Text = words(content)
		for _, c := range content {
			if image, ok := c.(model.Image); ok {
				result.Images = append(result.Images, image)
			}
		}
	default:
		result.Text = f.text("output")
	}
	in.history.add(model.RoleTool, result)
	in.keep(f, "fco", nil)
	return f.err
}

// keep notes an item for input_items: with an id, and changed as change says.
func (in *input) keep(f *form, prefix string, change map[string]any) {
	item := map[string]any{}
	for name, value := range f.raw {
		item[name] = value
	}
	for name, value := range change {
		item[name] = value
	}
	if f.text("id") == "" {
		item["id"] = ident.New(prefix)
	}
	if text, err := json.Marshal(item); err == nil {
		in.items = append(in.items, text)
	}
}

// referred takes an item of an earlier response by its id.
func (in *input) referred(f *form) error {
	id := f.needed("id")
	if f.err != nil {
		return f.err
	}
	found, err := in.find(id)
	if err != nil {
		return err
	}
	switch {
	case found.message != nil:
		in.history.add(model.RoleAssistant, model.Text{Text: found.message.Content[0].Text.String()})
	case found.code != nil:
		in.ranIn(found.code.ContainerID)
		in.history.ran(id, found.code.Code.String(), resultOf(found.code.all))
	case found.program != nil:
		in.history.add(model.RoleAssistant, callOfProgram(found.program.CallID, found.program.Code))
	case found.output != nil:
		in.history.add(model.RoleTool, model.ToolResult{CallID: found.output.CallID, Text: found.output.Result})
	case found.call != nil:
		in.history.add(model.RoleAssistant, model.ToolCall{ID: found.call.CallID, Name: found.call.Name, Arguments: found.call.Arguments.String()})
	}
	text, err := json.Marshal(found.json(true))
	if err == nil {
		in.items = append(in.items, text)
	}
	return err
}

// find returns an output item of an earlier response.
func (in *input) find(id string) (*item, error) {
	turn, ok := ownItem(id)
	if !ok {
		return nil, noItem(id)
	}
	tr, known := in.seen[turn]
	if !known {
		t, err := in.s.Hub.Turn(in.c.Context(), in.c.who, turn)
		if err != nil {
			return nil, named(err, noItem(id))
		}
		if tr, err = in.s.replay(in.c.Context(), in.c.who, t, options{outputs: true}); err != nil {
			return nil, err
		}
		if in.seen == nil {
			in.seen = map[string]*translation{}
		}
		in.seen[turn] = tr
	}
	for _, it := range tr.items {
		if it.id == id && (it.message == nil || len(it.message.Content) > 0) {
			return it, nil
		}
	}
	return nil, noItem(id)
}

// attach has a stored file put into the workspace. It has to be the caller's. What it is called there comes with it, or "" without a workspace.
func (in *input) attach(at, file string) (record hub.File, name string, err error) {
	if record, err = in.s.Hub.File(in.c.Context(), in.c.who, file); err != nil {
		if problem.Of(err).Kind == problem.NotFound {
			err = invalid(at, "", "No such File object: "+fileID(file))
		}
		return hub.File{}, "", err
	}
	if in.python {
		name = in.put(record, false)
	}
	return record, name, nil
}

// inWorkspace says whether what the client sends can be put into a workspace by this caller.
func (in *input) inWorkspace() bool { return in.python && in.c.who.May(auth.FilesWrite) }
