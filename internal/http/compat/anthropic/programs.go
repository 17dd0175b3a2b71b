package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

// Programmatic tool calling: code calls the client's tools itself, as async functions of their names.
// https://platform.claude.com/docs/en/agents-and-tools/tool-use/programmatic-tool-calling

// programmaticTools are the versions of the code execution tool whose code may call tools. That of shellTools is Python then, as that of the others.
func programmaticTools() []string {
	return []string{"code_execution_20260120", "code_execution_20260521", shellTools}
}

// allow reads who may call a tool of the client's: the model, code, or both.
func (r *request) allow(at int, t toolSpec) error {
	ofModel, ofCode := len(t.Callers) == 0, false
	for _, c := range t.Callers {
		switch {
		case c == direct:
			ofModel = true
		case slices.Contains(programmaticTools(), c):
			ofCode = true
		default:
			return invalid(fmt.Sprintf("tools.%d.allowed_callers: Input should be 'direct' or one of %s", at, strings.Join(programmaticTools(), ", ")))
		}
	}
	if ofModel {
		r.functions = append(r.functions, model.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema, Strict: t.Strict})
	}
	if ofCode {
		r.callable = append(r.callable, tool.Tool{Name: t.Name, Description: t.Description, Parameters: t.Schema})
	}
	return nil
}

// checkCallers refuses tools for code without code that may call them.
func (r *request) checkCallers() error {
	if len(r.callable) > 0 && r.caller == "" {
		return invalid("tools: A tool with a code execution tool among its allowed_callers needs that tool in the list, as " + programmaticTools()[0])
	}
	return nil
}

// ofCode says whether a call was made by code.
func ofCode(call string) bool {
	_, _, ok := hub.CallOfCode(call)
	return ok
}

// goesOn brings results for code of the last message, which waits for them.
func (in *input) goesOn(results []model.Content) {
	if len(results) == 0 {
		return
	}
	if code, ok := in.codes[in.lastCode]; ok {
		arguments, _ := json.Marshal(map[string]string{"code": code})
		in.resumed = in.lastCode
		in.history.add(model.RoleAssistant, model.ToolCall{ID: in.resumed, Name: pythonTool, Arguments: string(arguments)})
	}
	in.history.add(model.RoleTool, results...)
}

// goOn has the result of code that goes on follow the block of an earlier message that began it.
func (a *answer) goOn(e loop.Start) error {
	if err := a.close(); err != nil {
		return err
	}
	a.running, a.ran = newExecution(a.resumed, e.Step), true
	a.running.add(kernel.Stream{Name: "stdout", Data: []byte(e.Printed)})
	a.said.Reset()
	a.sure = len(a.blocks)
	return nil
}

// callerOf says who made a call.
func (a *answer) callerOf(call string) object {
	if !ofCode(call) || a.running == nil {
		return object{"type": direct}
	}
	return object{"type": a.caller, "tool_id": a.running.id}
}
