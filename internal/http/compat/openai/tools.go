package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cove/internal/llm/model"
	"cove/internal/llm/tool"
	"cove/internal/machine/egress"
	"cove/internal/server/hub"
)

// pythonTool is what the interpreter calls its tool, as OpenAI's models know theirs.
const pythonTool = "python"

// toolbox is what a request says of tools.
type toolbox struct {
	python    bool
	container container
	functions []model.Tool
	programs  bool        // code may call functions itself
	callable  []tool.Tool // those that it may call
	choice    model.ToolChoice
	rawTools  []json.RawMessage
	rawChoice json.RawMessage
}

// container is where code runs: one that exists, or one that is made or found.
type container struct {
	id     string   // of OpenAI's, or ""
	files  []string // cove's ids
	memory int64    // bytes; 0: not said
	// network is where code may connect to; nil: nowhere.
	network *hub.Network
}

// readTools reads "tools" and "tool_choice".
func (s *server) readTools(f *form) toolbox {
	t := toolbox{rawTools: []json.RawMessage{}}
	for i, raw := range f.list("tools") {
		one := f.object(fmt.Sprintf("tools[%d]", i), raw)
		s.readTool(&t, one)
		f.take(one)
		t.rawTools = append(t.rawTools, shownTool(one, raw))
	}
	t.checkNames(f)
	if len(t.callable) > 0 && !t.programs {
		f.fail(invalid("tools", "invalid_value", "Invalid 'tools': a function that allows the caller '"+programmatic+"' needs the tool '"+programTool+"' in the list."))
	}
	t.rawChoice = json.RawMessage(`"auto"`)
	if f.has("tool_choice") {
		t.rawChoice = f.raw["tool_choice"]
		t.readChoice(f)
	}
	return t
}

// checkNames refuses functions that cannot be told apart.
func (t *toolbox) checkNames(f *form) {
	taken := map[string]bool{}
	for _, function := range t.functions {
		switch {
		case function.Name == pythonTool && t.python:
			f.fail(invalid("tools", "invalid_value", "Invalid value: 'python' is the name of the code interpreter's own tool. Choose another one."))
		case taken[function.Name]:
			f.fail(invalid("tools", "invalid_value", "Invalid 'tools': there are two functions with the name '"+short(function.Name)+"'."))
		}
		taken[function.Name] = true
	}
}

// take takes over what is wrong in an inner object.
func (f *form) take(inner *form) {
	if inner.err != nil {
		f.fail(inner.err)
	}
}

// shownTool is a tool as responses repeat it: what the client left out of a function is there with the value that counts.
func shownTool(tool *form, raw json.RawMessage) json.RawMessage {
	if tool.err != nil || tool.text("type") != "function" {
		return withoutSecrets(raw)
	}
	whole := map[string]json.RawMessage{"description": json.RawMessage("null"), "parameters": json.RawMessage("null"), "strict": json.RawMessage("false")}
	for name, value := range tool.raw {
		if name != "strict" || tool.has(name) {
			whole[name] = value
		}
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return raw
	}
	return text
}

// withoutSecrets is a tool without the values of its container's secrets: what is shown is stored, too.
func withoutSecrets(raw json.RawMessage) json.RawMessage {
	var t map[string]any
	if json.Unmarshal(raw, &t) != nil {
		return raw
	}
	container, _ := t["container"].(map[string]any)
	policy, _ := container["network_policy"].(map[string]any)
	secrets, _ := policy["domain_secrets"].([]any)
	if len(secrets) == 0 {
		return raw
	}
	for _, s := range secrets {
		if secret, ok := s.(map[string]any); ok {
			delete(secret, "value")
		}
	}
	text, err := json.Marshal(t)
	if err != nil {
		return json.RawMessage(`{"type":"code_interpreter"}`)
	}
	return text
}

func (s *server) readTool(t *toolbox, tool *form) {
	switch kind := tool.needed("type"); kind {
	case "code_interpreter":
		tool.only("type", "container", "allowed_callers")
		t.python = true
		t.container = s.readContainer(tool)
	case programTool:
		tool.only("type")
		t.python, t.programs = true, true
	case "function":
		tool.only("type", "name", "description", "parameters", "strict", "async", "defer_loading", "allowed_callers", "output_schema", "function")
		t.addFunction(tool)
	case "":
	default:
		tool.fail(notOneOf(tool.path("type"), kind, []string{"code_interpreter", "function", programTool}))
	}
}

func (t *toolbox) addFunction(f *form) {
	name := f.needed("name")
	schema := json.RawMessage(`{"type":"object","properties":{}}`)
	if f.has("parameters") {
		f.object("parameters", f.raw["parameters"])
		schema = f.raw["parameters"]
	}
	direct, program := true, false
	if callers := f.texts("allowed_callers"); len(callers) > 0 {
		direct, program = slices.Contains(callers, "direct"), slices.Contains(callers, programmatic)
		for _, c := range callers {
			if c != "direct" && c != programmatic {
				f.fail(notOneOf(f.path("allowed_callers"), c, []string{"direct", programmatic}))
			}
		}
	}
	if direct {
		t.functions = append(t.functions, model.Tool{Name: name, Description: f.text("description"), Schema: schema, Strict: f.yes("strict")})
	}
	if program {
		t.callable = append(t.callable, tool.Tool{Name: name, Description: f.text("description"), Parameters: schema, Result: f.raw["output_schema"]})
	}
}

func (s *server) readContainer(tool *form) container {
	var c container
	switch {
	case !tool.has("container"):
		// The field is required at OpenAI. Chat Completions, where the tool is ours alone, has none.
	case kindOf(tool.raw["container"]) == "a string":
		c.id = tool.text("container")
	default:
		inner := tool.object("container", tool.raw["container"])
		inner.only("type", "file_ids", "memory_limit", "network_policy")
		if kind := inner.needed("type"); kind != "auto" && inner.err == nil {
			inner.fail(notOneOf(inner.path("type"), kind, []string{"auto"}))
		}
		c.files = ownFiles(inner, "file_ids")
		c.memory = s.memory(inner)
		c.network = readNetwork(inner)
		tool.take(inner)
	}
	return c
}

func ownFiles(f *form, name string) []string {
	var out []string
	for _, id := range f.texts(name) {
		file, err := ownFile(id)
		if err != nil {
			f.fail(invalid(f.path(name), "", "No such File object: "+short(id)))
		}
		out = append(out, file)
	}
	return out
}

// memory reads "memory_limit". More than the server gives is refused, not cut down: the client would rely on it.
func (s *server) memory(f *form) int64 {
	limit := f.choice("memory_limit", "1g", "4g", "16g", "64g")
	if limit == "" || f.err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(limit[:len(limit)-1], 10, 64)
	bytes := n << 30
	if s.Memory > 0 && bytes > s.Memory {
		f.fail(invalid(f.path("memory_limit"), "invalid_value", fmt.Sprintf("Invalid '%s': this server gives a container at most %d MiB of memory, "+
			"but got '%s'.", f.path("memory_limit"), s.Memory>>20, limit)))
	}
	return bytes
}

// readNetwork reads "network_policy". A container gets what it asks for within what the operator allows. A secret of a domain stands where code writes its name, as "Bearer $NAME", in a header of a request to that domain.
func readNetwork(f *form) *hub.Network {
	if !f.has("network_policy") {
		return nil
	}
	policy := f.object("network_policy", f.raw["network_policy"])
	var n *hub.Network
	switch kind := policy.needed("type"); kind {
	case "disabled", "":
		policy.only("type")
	case "allowlist":
		policy.only("type", "allowed_domains", "domain_secrets")
		n = &hub.Network{Allow: policy.texts("allowed_domains")}
		for i, raw := range policy.list("domain_secrets") {
			secret := policy.object(fmt.Sprintf("domain_secrets[%d]", i), raw)
			secret.only("domain", "name", "value")
			n.Credentials = append(n.Credentials, egress.Credential{Host: strings.ToLower(secret.needed("domain")), Name: secret.needed("name"), Value: secret.needed("value")})
			policy.take(secret)
		}
		if len(n.Allow) == 0 && policy.err == nil {
			policy.fail(missing(policy.path("allowed_domains")))
		}
	default:
		policy.fail(notOneOf(policy.path("type"), kind, []string{"disabled", "allowlist"}))
	}
	f.take(policy)
	return n
}

// readChoice reads "tool_choice" in all its forms.
func (t *toolbox) readChoice(f *form) {
	if kindOf(t.rawChoice) == "a string" {
		t.choice.Mode = f.choice("tool_choice", "none", "auto", "required")
		if t.choice.Mode == "required" && !t.python && len(t.functions) == 0 {
			f.fail(invalid("tool_choice", "", "Tool choice 'required' must be specified with 'tools' parameter."))
		}
		return
	}
	c := f.object("tool_choice", t.rawChoice)
	switch kind := c.needed("type"); kind {
	case "code_interpreter", programTool:
		if !t.python || kind == programTool && !t.programs {
			c.fail(notAmongTools(kind))
		}
		t.choice = model.ToolChoice{Name: pythonTool}
	case "function":
		name := c
		if c.has("function") { // as in Chat Completions
			name = c.object("function", c.raw["function"])
		}
		t.choice = model.ToolChoice{Name: name.needed("name")}
		c.take(name)
		if c.err == nil && !t.knows(t.choice.Name) {
			c.fail(notAmongTools(t.choice.Name))
		}
	case "allowed_tools":
		t.readAllowed(c)
	default:
		c.fail(notOneOf("tool_choice.type", kind, []string{"allowed_tools", "code_interpreter", "function", programTool}))
	}
	f.take(c)
}

func notAmongTools(name string) error {
	return invalid("tool_choice", "", "Tool choice '"+short(name)+"' not found in 'tools' parameter.")
}

func (t *toolbox) knows(name string) bool {
	return slices.ContainsFunc(t.functions, func(f model.Tool) bool { return f.Name == name })
}

// readAllowed narrows the tools to those that are listed.
func (t *toolbox) readAllowed(c *form) {
	if c.has("allowed_tools") { // as in Chat Completions
		inner := c.object("allowed_tools", c.raw["allowed_tools"])
		t.readAllowed(inner)
		c.take(inner)
		return
	}
	t.choice.Mode = c.choice("mode", "auto", "required")
	python, names := false, []string{}
	for i, raw := range c.list("tools") {
		tool := c.object(fmt.Sprintf("tools[%d]", i), raw)
		switch tool.needed("type") {
		case "code_interpreter", programTool:
			python = true
		case "function":
			if tool.has("function") {
				tool = tool.object("function", tool.raw["function"])
			}
			names = append(names, tool.needed("name"))
		}
		c.take(tool)
	}
	t.python = t.python && python
	t.functions = slices.DeleteFunc(slices.Clone(t.functions), func(f model.Tool) bool { return !slices.Contains(names, f.Name) })
}
