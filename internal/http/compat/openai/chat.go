package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"cove/internal/http/bodybudget"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// chatRequest is POST /v1/chat/completions, read and checked.
type chatRequest struct {
	toolbox
	model    string
	stream   bool
	usage    bool // a last chunk with the usage
	in       *input
	system   string
	max      int
	temp     *float64
	topP     *float64
	stop     []string
	format   model.Format
	parallel *bool
	effort   string
	extra    map[string]json.RawMessage
}

func (s *server) chat(c *call) error {
	f, err := s.readForm(c)
	if err != nil {
		return err
	}
	r, err := s.readChat(c, f)
	if err != nil {
		return err
	}
	bodybudget.Decoded(c.Context())
	if r.python {
		return s.chatTurn(c, r)
	}
	return s.chatModel(c, r)
}

func (s *server) readChat(c *call, f *form) (*chatRequest, error) {
	extra := f.extra("messages", "model", "frequency_penalty", "logprobs", "max_completion_tokens", "max_tokens", "n", "presence_penalty", "prompt_cache_key",
		"safety_identifier", "seed", "store", "temperature", "top_logprobs", "top_p", "parallel_tool_calls", "user", "audio", "logit_bias", "metadata",
		"modalities", "moderation", "prompt_cache_retention", "reasoning_effort", "service_tier", "stop", "stream_options", "verbosity", "function_call",
		"functions", "prediction", "prompt_cache_options", "response_format", "tool_choice", "tools", "web_search_options", "stream", "access_programs")
	// What would change the answer and cannot be passed on is refused; what tunes it is not.
	for _, name := range []string{"audio", "functions", "function_call", "web_search_options", "prediction", "moderation"} {
		if f.has(name) {
			f.fail(unsupported(name, "Unsupported parameter: '"+name+"' is not supported by this server."))
		}
	}
	if n := f.integer("n", 1); n != nil && *n != 1 {
		f.fail(invalid("n", "unsupported_value", "Unsupported value: 'n' does not support "+fmt.Sprint(*n)+" with this server. Only 1 is supported."))
	}
	if f.yes("logprobs") {
		f.fail(unsupported("logprobs", "Unsupported parameter: 'logprobs' is not supported by this server."))
	}
	r := &chatRequest{model: f.needed("model"), stream: f.yes("stream"), temp: f.decimal("temperature", 2), topP: f.decimal("top_p", 1),
		parallel: f.boolean("parallel_tool_calls"), effort: f.short("reasoning_effort"), extra: extra}
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		if n := f.integer(name, 1); n != nil {
			r.max = int(min(*n, 1<<30))
		}
	}
	if f.has("stream_options") {
		o := f.object("stream_options", f.raw["stream_options"])
		r.usage = o.yes("include_usage")
		f.take(o)
	}
	f.flattenTools()
	r.toolbox = s.readTools(f)
	r.stop = f.stops(r.python)
	if f.has("response_format") {
		format := f.object("response_format", f.raw["response_format"])
		r.format = format.format()
		f.take(format)
	}
	r.system = inWords(r.format)
	if f.err != nil {
		return nil, f.err
	}
	r.in = &input{s: s, c: c, python: r.python}
	if err := r.in.bring(r.container.files); err != nil {
		return nil, err
	}
	return r, r.readMessages(f)
}

// flattenTools brings Chat Completions' {"type":"function","function":{...}} into the form of Responses.
func (f *form) flattenTools() {
	tools := f.list("tools")
	for i, raw := range tools {
		var tool struct {
			Type     string                     `json:"type"`
			Function map[string]json.RawMessage `json:"function"`
		}
		if json.Unmarshal(raw, &tool) != nil || tool.Type != "function" || tool.Function == nil {
			continue
		}
		tool.Function["type"] = json.RawMessage(`"function"`)
		if text, err := json.Marshal(tool.Function); err == nil {
			tools[i] = text
		}
	}
	if len(tools) > 0 {
		if text, err := json.Marshal(tools); err == nil {
			f.raw["tools"] = text
		}
	}
}

// stops reads "stop": a text or up to four. Beside the interpreter they would end code in the middle.
func (f *form) stops(python bool) []string {
	if !f.has("stop") {
		return nil
	}
	if python {
		f.fail(unsupported("stop", "Unsupported parameter: 'stop' is not supported with the code_interpreter tool."))
	}
	if kindOf(f.raw["stop"]) == "a string" {
		return []string{f.text("stop")}
	}
	list := f.texts("stop")
	if len(list) > 4 {
		f.fail(tooMany("stop", 4, len(list)))
	}
	return list
}

func (r *chatRequest) readMessages(f *form) error {
	if !f.has("messages") {
		return missing("messages")
	}
	for i, raw := range f.list("messages") {
		m := f.object(fmt.Sprintf("messages[%d]", i), raw)
		if f.err != nil {
			break
		}
		if err := r.readMessage(m); err != nil {
			return err
		}
		f.take(m)
	}
	r.system = join(append([]string{r.system}, r.in.developer...)...)
	if f.err == nil && len(r.in.history.messages) == 0 {
		return invalid("messages", "", "The messages have nothing for the model to answer: add a message of the user.")
	}
	return f.err
}

func (r *chatRequest) readMessage(m *form) error {
	role := m.needed("role")
	if role == "tool" {
		content, _, err := r.chatContent(m)
		r.in.history.add(model.RoleTool, model.ToolResult{CallID: m.needed("tool_call_id"), Text: words(content)})
		return err
	}
	var content []model.Content
	if m.has("content") {
		var err error
		if content, _, err = r.chatContent(m); err != nil {
			return err
		}
	}
	switch role {
	case "user":
		r.in.history.add(model.RoleUser, content...)
		r.in.prompt = append(r.in.prompt, words(content))
	case "system", "developer":
		r.in.developer = append(r.in.developer, words(content))
	case "assistant":
		r.in.history.add(model.RoleAssistant, content...)
		for i, raw := range m.list("tool_calls") {
			call := m.object(fmt.Sprintf("tool_calls[%d]", i), raw)
			function := call.object("function", call.raw["function"])
			r.in.history.add(model.RoleAssistant, model.ToolCall{ID: call.needed("id"), Name: function.needed("name"), Arguments: function.text("arguments")})
			call.take(function)
			m.take(call)
		}
	default:
		return notOneOf(m.path("role"), role, []string{"assistant", "developer", "system", "tool", "user"})
	}
	return m.err
}

// chatContent reads content whose parts have Chat Completions' names.
func (r *chatRequest) chatContent(m *form) ([]model.Content, []any, error) {
	if kindOf(m.raw["content"]) == "an array" {
		parts := m.list("content")
		for i, raw := range parts {
			parts[i] = renamed(raw)
		}
		if text, err := json.Marshal(parts); err == nil {
			m.raw["content"] = text
		}
	}
	return r.in.content(m)
}

// renamed is a part of Chat Completions as one of Responses.
func renamed(raw json.RawMessage) json.RawMessage {
	var part map[string]json.RawMessage
	if json.Unmarshal(raw, &part) != nil {
		return raw
	}
	switch string(part["type"]) {
	case `"image_url"`:
		part["type"] = json.RawMessage(`"input_image"`)
	case `"file"`:
		if json.Unmarshal(part["file"], &part) != nil {
			return raw
		}
		part["type"] = json.RawMessage(`"input_file"`)
	default:
		return raw
	}
	text, err := json.Marshal(part)
	if err != nil {
		return raw
	}
	return text
}

// chatTurn runs the loop on the server. Its turn is kept while it runs and not afterwards: the client keeps the conversation.
func (s *server) chatTurn(c *call, r *chatRequest) error {
	if id := r.in.history.unanswered(); id != "" && !r.in.history.resumes() {
		return invalid("messages", "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "+
			"No message answers '"+short(id)+"'.")
	}
	for _, action := range []auth.Action{auth.ConversationsWrite, auth.ConversationsRead} {
		if err := c.who.Require(action); err != nil {
			return err
		}
	}
	session := ""
	switch {
	case r.container.id != "":
		found, err := s.container(c, r.container.id)
		if err != nil {
			return err
		}
		session = found.ID
	case r.container.memory > 0 || r.container.network != nil:
		made, err := s.Hub.CreateSession(c.Context(), c.who, hub.NewSession{Memory: r.container.memory, Network: r.container.network})
		if err != nil {
			return err
		}
		session = made.ID
	}
	n := hub.NewTurn{Session: session, Model: r.model, Prompt: strings.TrimSpace(strings.Join(r.in.prompt, "\n")),
		Instructions: r.system, Tools: r.functions, CodeTools: r.callable, Choice: r.choice, Parallel: r.parallel, MaxTokens: r.max, Temperature: r.temp, TopP: r.topP, Format: r.format,
		Effort: r.effort, Extra: r.extra, Source: source, Unattended: true, Hidden: true, Once: c.Header.Get("Idempotency-Key")}
	n.Files, n.Names = r.in.filesOf()
	n.History, n.Input = r.in.history.split()
	turn, err := s.Hub.StartTurn(c.Context(), c.who, n)
	if err != nil {
		return chatRefused(err, r.model)
	}
	out := s.newChat(c, r, "chatcmpl-"+strings.TrimPrefix(responseID(turn.ID), responsePrefix))
	out.container = containerID(turn.Session)
	return s.followChat(c, turn, out)
}

func chatRefused(err error, name string) error {
	f := refused(err, &request{echo: echo{Model: name}})
	if x := faultOf(f); x.code == "model_not_found" {
		return noModel(name)
	}
	return f
}

// chatModel passes the request on to the model.
func (s *server) chatModel(c *call, r *chatRequest) error {
	m, err := s.Hub.OpenModel(c.Context(), c.who, r.model)
	if err != nil {
		return chatRefused(err, r.model)
	}
	if err := loop.CheckExtra(m, r.extra); err != nil {
		return err
	}
	out := s.newChat(c, r, chatID())
	if err = s.passOn(c, r, m, out); out.out != nil && out.out.begun() {
		return nil // there is nobody to tell, or it was told
	}
	return err
}
