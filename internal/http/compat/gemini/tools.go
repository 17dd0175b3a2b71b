package gemini

import (
	"encoding/json"
	"slices"

	"cove/internal/llm/model"
)

// Bounds of a request.
const (
	mostTools     = 128
	mostFunctions = 512
)

// toolbox is what a request says of tools.
type toolbox struct {
	python    bool
	functions []model.Tool
	choice    model.ToolChoice
}

func readTools(o object) toolbox {
	var t toolbox
	for _, tool := range o.objects("tools", mostTools) {
		for name := range tool.fields {
			switch name {
			case "codeExecution":
				tool.object(name).only()
				t.python = true
			case "functionDeclarations":
				t.declare(tool)
			default:
				o.fail(lacking(short(tool.path(name)), "It has the tools codeExecution and functionDeclarations."))
			}
		}
	}
	if len(t.functions) > mostFunctions {
		o.fail(invalid("There are %d functions; this server takes at most %d.", len(t.functions), mostFunctions))
	}
	if o.has("toolConfig") {
		t.configure(o.object("toolConfig"))
	}
	return t
}

func (t *toolbox) declare(tool object) {
	for _, f := range tool.objects("functionDeclarations", mostFunctions) {
		f.only("name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "behavior")
		schema := json.RawMessage(`{"type":"object","properties":{}}`)
		switch {
		case f.has("parametersJsonSchema"):
			f.object("parametersJsonSchema")
			schema = f.fields["parametersJsonSchema"]
		case f.has("parameters"):
			schema = f.schema("parameters")
		}
		t.functions = append(t.functions, model.Tool{Name: f.needed("name"), Description: f.text("description"), Schema: schema})
	}
}

// configure reads "toolConfig". What it says is about functions: code may be run whatever the mode is.
func (t *toolbox) configure(o object) {
	o.only("functionCallingConfig", "retrievalConfig", "includeServerSideToolInvocations")
	if !o.has("functionCallingConfig") {
		return
	}
	c := o.object("functionCallingConfig")
	c.only("mode", "allowedFunctionNames", "streamFunctionCallArguments")
	allowed := c.texts("allowedFunctionNames")
	for _, name := range allowed {
		if !slices.ContainsFunc(t.functions, func(f model.Tool) bool { return f.Name == name }) {
			c.fail(invalid("'%s' names '%s', which is not among the functionDeclarations.", c.path("allowedFunctionNames"), short(name)))
		}
	}
	switch mode := c.text("mode"); mode {
	case "", "MODE_UNSPECIFIED", "AUTO":
	case "NONE":
		t.functions = nil
		return
	case "VALIDATED", "ANY":
		if mode == "ANY" && len(t.functions) == 0 {
			c.fail(invalid("The mode ANY needs functionDeclarations."))
		}
		if mode == "ANY" {
			t.choice.Mode = "required"
		}
		if len(allowed) > 0 {
			t.functions = slices.DeleteFunc(t.functions, func(f model.Tool) bool { return !slices.Contains(allowed, f.Name) })
		}
		if mode == "ANY" && len(allowed) == 1 {
			t.choice = model.ToolChoice{Name: allowed[0]}
		}
	default:
		c.fail(invalid("Invalid value at '%s': \"%s\". Modes are AUTO, ANY, NONE and VALIDATED.", c.path("mode"), short(mode)))
	}
}
