package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/llm/model"
	"cove/internal/llm/tool"
)

// body is what a client sends to POST /v1/messages. What is not named here beside ignored is refused.
type body struct {
	Model       string            `json:"model"`
	Messages    []message         `json:"messages"`
	MaxTokens   *int64            `json:"max_tokens"`
	System      blocks            `json:"system"`
	Stream      bool              `json:"stream"`
	Temperature *float64          `json:"temperature"`
	TopP        *float64          `json:"top_p"`
	Stop        []string          `json:"stop_sequences"`
	Tools       []json.RawMessage `json:"tools"`
	Choice      *choice           `json:"tool_choice"`
	Container   *container        `json:"container"`
	Thinking    *struct {
		Type    string `json:"type"`
		Display string `json:"display"`
	} `json:"thinking"`
	Output *struct {
		Effort string  `json:"effort"`
		Format *format `json:"format"`
	} `json:"output_config"`
	Format *format           `json:"output_format"` // its name in the beta
	MCP    []json.RawMessage `json:"mcp_servers"`
}

type message struct {
	Role    string `json:"role"`
	Content blocks `json:"content"`
}

type choice struct {
	Type     string `json:"type"`
	Name     string `json:"name"`
	Disabled bool   `json:"disable_parallel_tool_use"`
}

type format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// ignored are parameters that only tune what is asked of Anthropic's own servers.
func ignored() []string {
	return []string{"metadata", "service_tier", "inference_geo", "cache_control", "top_k", "context_management", "betas", "speed", "user_profile_id"}
}

// known are the parameters that are read.
func known() []string {
	return []string{"model", "messages", "max_tokens", "system", "stream", "temperature", "top_p", "stop_sequences", "tools", "tool_choice", "container",
		"thinking", "output_config", "output_format", "mcp_servers"}
}

// container is "container": an id, or an object that has one.
type container struct {
	ID     string            `json:"id"`
	Skills []json.RawMessage `json:"skills"`
}

// UnmarshalJSON reads both forms.
func (c *container) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &c.ID)
	}
	type plain container
	return json.Unmarshal(text, (*plain)(c))
}

// request is a body, read and checked.
type request struct {
	body
	python    bool // the code execution tool is offered
	shell     bool // it is that of commands and files
	functions []model.Tool
	callable  []tool.Tool // those that code may call
	caller    string      // the code execution tool whose code may call them; ""
	choice    model.ToolChoice
	parallel  *bool
	format    model.Format
	effort    string
	thinks    bool // what the model thinks is shown
}

// read reads and checks a request. Without counted, it need not say how long the answer may be.
func (s *server) read(c *call, counted bool) (*request, error) {
	text, err := bodybudget.Read(c.Context(), bodybudget.Bounded(c.w, c.Body, s.MaxBody))
	if err != nil {
		_, large := errors.AsType[*http.MaxBytesError](err)
		if _, refused := errors.AsType[*problem.Error](err); large || refused {
			return nil, err
		}
		return nil, invalid("The request body could not be read.")
	}
	var names map[string]json.RawMessage
	if json.Unmarshal(text, &names) != nil || names == nil {
		return nil, invalid("The request body is not valid JSON: a JSON object is expected.")
	}
	if _, ok := names["thread"]; ok { // the libraries send it by themselves, and go on without when they are told so
		return nil, unsupportedThread()
	}
	for name := range names {
		if !slices.Contains(known(), name) && !slices.Contains(ignored(), name) {
			return nil, invalid(short(name) + ": Extra inputs are not permitted")
		}
	}
	r := &request{}
	if err := json.Unmarshal(text, &r.body); err != nil {
		return nil, wrongForm(err)
	}
	if err := r.check(counted); err != nil {
		return nil, err
	}
	return r, nil
}

// wrongForm says where a value does not have the type that it should have.
func wrongForm(err error) error {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return invalid(short(wrong.Field) + ": Input should be a valid " + kindOfGo(wrong.Type.Kind().String()))
	}
	return invalid("The request body is not valid: " + short(err.Error()))
}

func kindOfGo(kind string) string {
	switch {
	case kind == "string":
		return "string"
	case kind == "bool":
		return "boolean"
	case kind == "slice":
		return "list"
	case strings.HasPrefix(kind, "int"):
		return "integer"
	case strings.HasPrefix(kind, "float"):
		return "number"
	}
	return "object"
}

func (r *request) check(counted bool) error {
	switch {
	case r.Model == "":
		return invalid("model: Field required")
	case len(r.Messages) == 0:
		return invalid("messages: at least one message is required")
	case counted && r.MaxTokens == nil:
		return invalid("max_tokens: Field required")
	case r.MaxTokens != nil && *r.MaxTokens < 1:
		return invalid("max_tokens: Input should be greater than or equal to 1")
	case r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > 1):
		return invalid("temperature: Input should be from 0 to 1")
	case r.TopP != nil && (*r.TopP < 0 || *r.TopP > 1):
		return invalid("top_p: Input should be from 0 to 1")
	case len(r.MCP) > 0:
		return invalid("mcp_servers: This server does not connect to MCP servers for a message. Call their tools in the client, as tools of its own.")
	case r.Container != nil && len(r.Container.Skills) > 0:
		return invalid("container.skills: This server has no skills. Put what they have into the system prompt, or into files (container_upload).")
	}
	if r.Thinking != nil {
		switch r.Thinking.Type {
		case "enabled", "adaptive":
			r.thinks = r.Thinking.Display != "omitted"
		case "disabled":
		default:
			return invalid("thinking.type: Input should be 'enabled', 'adaptive' or 'disabled'")
		}
	}
	if err := r.readTools(); err != nil {
		return err
	}
	if r.python && len(r.Stop) > 0 {
		return invalid("stop_sequences: They cannot be used with the code execution tool: they would end code in the middle.")
	}
	return errors.Join(r.readChoice(), r.readFormat())
}

func (r *request) readFormat() error {
	wanted := r.Format
	if r.Output != nil {
		r.effort = short(r.Output.Effort)
		if r.Output.Format != nil {
			wanted = r.Output.Format
		}
	}
	if wanted == nil {
		return nil
	}
	if wanted.Type != "json_schema" || len(wanted.Schema) == 0 {
		return invalid("output_config.format.type: Input should be 'json_schema', with a schema")
	}
	r.format = model.Format{JSON: true, Schema: wanted.Schema, Name: "answer", Strict: true}
	return nil
}

// system is what the model is instructed, with what its answer has to look like.
func (r *request) system(more []string) string {
	text := r.System.words()
	for _, m := range more {
		text = strings.TrimSpace(text + "\n\n" + m)
	}
	if len(r.format.Schema) > 0 {
		text = strings.TrimSpace(text + "\n\nAnswer with one JSON value that fits this JSON Schema, and with nothing else:\n" + string(r.format.Schema))
	}
	return text
}

// tokens is how long an answer may be; 0: not said.
func (r *request) tokens() int {
	if r.MaxTokens == nil {
		return 0
	}
	return int(min(*r.MaxTokens, 1<<30))
}

const (
	codeTool   = "code_execution"
	pythonTool = "python" // what the interpreter calls its tool
	direct     = "direct"
)

// codeTools are the versions of the code execution tool. All but one are the same Python here, which keeps its variables; shellTools is commands and files.
func codeTools() []string {
	return []string{"code_execution_20250522", "code_execution_20250825", "code_execution_20260120", "code_execution_20260521"}
}

// toolSpec is an element of "tools".
type toolSpec struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict"`
	Callers     []string        `json:"allowed_callers"`
}

func (r *request) readTools() error {
	taken := map[string]bool{}
	for i, raw := range r.Tools {
		var t toolSpec
		if json.Unmarshal(raw, &t) != nil {
			return invalid(fmt.Sprintf("tools.%d: Input should be a valid tool", i))
		}
		switch {
		case slices.Contains(codeTools(), t.Type):
			if t.Name != codeTool {
				return invalid(fmt.Sprintf("tools.%d.name: Input should be 'code_execution'", i))
			}
			r.python, r.shell = true, t.Type == shellTools
			if slices.Contains(programmaticTools(), t.Type) {
				r.caller = t.Type
			}
		case t.Type != "" && t.Type != "custom":
			return invalid(fmt.Sprintf("tools.%d.type: This server has no tool '%s'. It has %s, and tools that the client defines itself ('custom').",
				i, short(t.Type), strings.Join(codeTools(), ", ")))
		case t.Name == "":
			return invalid(fmt.Sprintf("tools.%d.name: Field required", i))
		case len(t.Schema) == 0:
			return invalid(fmt.Sprintf("tools.%d.input_schema: Field required", i))
		default:
			if err := r.allow(i, t); err != nil {
				return err
			}
		}
		if taken[t.Name] {
			return invalid("tools: Tool names must be unique.")
		}
		taken[t.Name] = true
	}
	if len(r.callable) > 0 {
		r.shell = false
	}
	if r.shell && (taken[bashTool] || taken[editorTool]) {
		return invalid("tools: '" + bashTool + "' and '" + editorTool + "' are the tools of " + shellTools + ". Give the tool another name.")
	}
	if r.python && taken[pythonTool] {
		return invalid("tools: 'python' is the name of what runs the code of the code execution tool. Give the tool another name.")
	}
	return r.checkCallers()
}

func (r *request) readChoice() error {
	if r.Choice == nil {
		return nil
	}
	if r.Choice.Disabled {
		r.parallel = new(false)
	}
	switch r.Choice.Type {
	case "auto", "none":
		r.choice.Mode = r.Choice.Type
	case "any":
		r.choice.Mode = "required"
	case "tool":
		r.choice.Name = r.Choice.Name
		if r.python && r.choice.Name == codeTool {
			r.choice.Name = pythonTool
			if r.shell {
				r.choice.Name = bashTool
			}
		}
	default:
		return invalid("tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'")
	}
	if r.Choice.Type == "tool" && r.choice.Name != pythonTool && (!r.shell || r.choice.Name != bashTool) && !slices.ContainsFunc(r.functions, func(t model.Tool) bool { return t.Name == r.choice.Name }) {
		return invalid("tool_choice.name: Tool '" + short(r.Choice.Name) + "' not found in provided tools")
	}
	if r.choice.Mode == "required" && len(r.functions) == 0 && !r.python {
		return invalid("tool_choice: It can only be used with tools")
	}
	return nil
}
