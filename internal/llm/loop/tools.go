package loop

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
)

// check returns the problem of a turn that is not valid, or nil.
func (t *turn) check() error {
	if err := t.limits.Check(); err != nil {
		return err
	}
	names := map[string]bool{}
	if t.spec.Python {
		names[toolName] = true
	}
	for n, tool := range t.spec.Tools {
		var schema map[string]any
		switch {
		case !validName().MatchString(tool.Name):
			return problem.New(problem.ToolInvalid, fmt.Sprintf("function %d has the name %.80q, which is not valid", n+1, tool.Name)).
				WithHint("use up to 64 letters, digits, _ and -")
		case t.spec.Python && tool.Name == toolName:
			return problem.New(problem.ToolNameTaken, "a function cannot be named python, because that is the name of the code interpreter").
				WithHint("give the function another name, or leave the interpreter out")
		case names[tool.Name]:
			return problem.New(problem.ToolInvalid, "there are two functions named "+tool.Name).WithHint("give each its own name")
		case len(tool.Schema) > 0 && (json.Unmarshal(tool.Schema, &schema) != nil || schema == nil):
			return problem.New(problem.ToolInvalid, "the parameters of the function "+tool.Name+" are not a JSON Schema object").
				WithHint(`send something like {"type": "object", "properties": {}}`)
		}
		names[tool.Name] = true
	}
	if t.learned.fenced && len(t.spec.Tools) > 0 && t.spec.Choice.Mode != "none" {
		return t.noFunctions(nil)
	}
	if err := CheckExtra(t.model, t.spec.Extra); err != nil {
		return err
	}
	if t.spec.Kernels < 0 || t.spec.Kernels > MostKernels {
		return problem.New(problem.TurnInvalid, fmt.Sprintf("code runs in 1 to %d kernels besides the main one, not in %d", MostKernels, t.spec.Kernels))
	}
	if t.spec.Offered.Len() > 0 && !t.spec.Python {
		return problem.New(problem.ToolInvalid, "functions for code are offered, but no code can run").WithHint("offer the code interpreter, too, or have the model call them")
	}
	if len(t.normal(t.spec.Input)) == 0 && t.spec.Suspended == nil {
		return problem.New(problem.InputEmpty, "there is nothing to answer: the input is empty").WithHint("send the user's words")
	}
	return t.checkChoice(names)
}

// CheckExtra refuses parameters that the model's provider does not take. Problems: parameter_unknown.
func CheckExtra(m model.Model, extra map[string]json.RawMessage) error {
	if len(extra) == 0 || m.Capabilities().Extra {
		return nil
	}
	name := slices.Min(slices.Collect(maps.Keys(extra)))
	return problem.New(problem.ParameterUnknown, fmt.Sprintf("the model's provider does not take the parameter %.80q", name)).WithHint("leave it out")
}

func (t *turn) checkChoice(names map[string]bool) error {
	choice := t.spec.Choice
	switch choice.Mode {
	case "", "auto", "none", "required":
	default:
		return problem.New(problem.ToolChoiceInvalid, fmt.Sprintf("%.40q is not a tool choice", choice.Mode)).WithHint("use auto, none or required")
	}
	switch {
	case choice.Name != "" && !names[choice.Name] && (!t.spec.Python || !isPython(choice.Name)):
		return problem.New(problem.ToolChoiceInvalid, fmt.Sprintf("the tool choice names %.80q, which is not among the tools", choice.Name)).
			WithHint("name one of the tools of the request")
	case choice.Mode == "required" && len(names) == 0:
		return problem.New(problem.ToolChoiceInvalid, "the tool choice requires a call, but there are no tools").WithHint("offer one")
	}
	return nil
}

// noFunctions is the problem of a model that cannot call the client's functions.
func (t *turn) noFunctions(cause error) error {
	return problem.New(problem.ToolsUnsupported, t.model.Name()+" cannot call functions").
		WithHint("leave the functions out (the code interpreter works with this model), or choose another model").WithCause(cause)
}

func (t *turn) isClient(name string) bool {
	for _, tool := range t.spec.Tools {
		if tool.Name == name {
			return true
		}
	}
	return false
}

// offered returns the tools of the next request.
func (t *turn) offered() []model.Tool {
	if t.spec.Choice.Mode == "none" || t.learned.fenced {
		return nil
	}
	var out []model.Tool
	if t.python {
		schema := toolSchema
		if t.spec.Kernels > 0 {
			schema = kernelsSchema
		}
		out = append(out, model.Tool{Name: toolName, Description: render("tool.md", t.spec.Kernels), Schema: json.RawMessage(schema)})
	}
	for _, tool := range t.spec.Tools {
		if len(tool.Schema) == 0 {
			tool.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		out = append(out, tool)
	}
	return out
}

// choice returns the client's tool choice, with the interpreter's tool under its own name.
func (t *turn) choice() model.ToolChoice {
	choice := t.spec.Choice
	if t.python && !t.isClient(choice.Name) && isPython(choice.Name) {
		choice.Name = toolName
	}
	return choice
}

// unknownTool is a sentence for the model.
func (t *turn) unknownTool(name string) error {
	var names []string
	for _, tool := range t.spec.Tools {
		names = append(names, tool.Name)
	}
	switch {
	case t.python && len(names) == 0:
		return unknownTool(name)
	case t.python:
		names = append([]string{toolName}, names...)
	case len(names) == 0:
		return fmt.Errorf("there is no tool named %q; there are no tools, answer in words", cutEnd(name, 60))
	}
	return fmt.Errorf("there is no tool named %q; the tools are %s", cutEnd(name, 60), strings.Join(names, ", "))
}
