package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"cove/internal/llm/loop"
	"cove/internal/python/display"
	"cove/internal/python/kernel"
)

// code continues the code that the model is writing.
func (a *answer) code(delta string) error {
	if a.open != "server_tool_use" {
		if err := a.openCode(); err != nil {
			return err
		}
	}
	a.text.WriteString(delta)
	return a.delta("input_json_delta", "partial_json", escaped(delta))
}

func (a *answer) openCode() error {
	if err := a.close(); err != nil {
		return err
	}
	id := newID(codePrefix)
	about := func() object {
		return object{"id": id, "name": codeTool, "input": object{}, "caller": object{"type": direct}}
	}
	if err := a.start("server_tool_use", about(), about()); err != nil {
		return err
	}
	return a.delta("input_json_delta", "partial_json", `{"code": "`)
}

// escaped is text as it is within a string of JSON.
func escaped(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted[1 : len(quoted)-1])
}

// started says that code runs: e has it as it is, whatever was written before.
func (a *answer) started(e loop.Start) error {
	if e.Resumed {
		return a.goOn(e)
	}
	written := a.text.String()
	if a.open != "server_tool_use" {
		written = ""
	}
	if a.open == "server_tool_use" && !strings.HasPrefix(e.Code, written) && strings.TrimSpace(e.Code) != strings.TrimSpace(written) {
		if err := a.dropCode(); err != nil {
			return err
		}
		written = ""
	}
	if a.open != "server_tool_use" {
		if err := a.openCode(); err != nil {
			return err
		}
	}
	if more := strings.TrimPrefix(e.Code, written); strings.HasPrefix(e.Code, written) && more != "" {
		if err := a.delta("input_json_delta", "partial_json", escaped(more)); err != nil {
			return err
		}
	}
	a.running, a.ran = newExecution(idOf(a.block), e.Step), true
	a.said.Reset()
	a.block["input"] = object{"code": e.Code}
	err := a.endCode()
	a.sure = len(a.blocks)
	return err
}

func (a *answer) endCode() error {
	if err := a.delta("input_json_delta", "partial_json", `"}`); err != nil {
		return err
	}
	return a.stop()
}

func idOf(b object) string {
	id, _ := b["id"].(string)
	return id
}

// dropCode ends code that is not run. A stream has told of it, so that it gets a result; a whole message leaves it out.
func (a *answer) dropCode() error {
	if !a.stream {
		a.open = ""
		return nil
	}
	id := idOf(a.block)
	if err := a.endCode(); err != nil {
		return err
	}
	return a.codeResult(id, object{"type": "code_execution_tool_result_error", "error_code": "unavailable"})
}

// refused tells that rules did not let code run.
func (a *answer) refused(e loop.Refused) error {
	if a.open != "server_tool_use" {
		if err := a.code(e.Code); err != nil {
			return err
		}
	}
	id := idOf(a.block)
	a.block["input"] = object{"code": a.text.String()}
	if err := a.endCode(); err != nil {
		return err
	}
	why := strings.TrimSpace("The code was not run. " + e.Why + " " + e.Note)
	return a.codeResult(id, object{"type": "code_execution_result", "stdout": "", "stderr": why, "return_code": 1, "content": []object{}})
}

func (a *answer) codeResult(id string, content object) error {
	err := a.whole("code_execution_tool_result", object{"tool_use_id": id, "content": content, "caller": object{"type": direct}})
	a.sure = len(a.blocks)
	return err
}

// output takes what an execution emits, its end included.
func (a *answer) output(e loop.Output) error {
	x := a.running
	if x == nil || x.step != e.Step {
		return nil
	}
	done, ok := e.Event.(kernel.Done)
	if !ok {
		x.add(e.Event)
		return nil
	}
	a.running = nil
	switch done.Outcome {
	case kernel.OutcomeTimeout:
		return a.codeResult(x.id, object{"type": "code_execution_tool_result_error", "error_code": "execution_time_exceeded"})
	case kernel.OutcomeSandboxDied, kernel.OutcomeInterrupted:
		return a.codeResult(x.id, object{"type": "code_execution_tool_result_error", "error_code": "unavailable"})
	}
	files := []object{}
	ids, notes := a.keep(x)
	for _, id := range ids {
		files = append(files, object{"type": "code_execution_output", "file_id": id})
	}
	if done.Message != "" && done.Outcome != kernel.OutcomeOK && done.Outcome != kernel.OutcomeError {
		notes = append(notes, done.Message)
	}
	if x.screen.Cut {
		notes = append(notes, "[The output is longer than what is shown; write it into a file.]")
	}
	stderr := x.screen.Stderr()
	for _, note := range notes {
		stderr += note + "\n"
	}
	return a.codeResult(x.id, object{"type": "code_execution_result", "stdout": x.screen.Stdout(), "stderr": stderr, "return_code": returnCode(done), "content": files})
}

// returnCode is what a shell would say.
func returnCode(d kernel.Done) int {
	switch {
	case d.Outcome == kernel.OutcomeOK:
		return 0
	case d.Outcome == kernel.OutcomeMemory:
		return 137 // killed
	case d.ExitCode != 0:
		return d.ExitCode
	}
	return 1
}

// execution gathers what code printed, showed and wrote.
type execution struct {
	id     string
	step   int
	screen display.Screen
	files  []string // paths in the workspace
}

func newExecution(id string, step int) *execution {
	return &execution{id: id, step: step, screen: display.Screen{Room: roomForText, Pictures: mostPictures, PictureRoom: roomForPictures}}
}

func (x *execution) add(e kernel.Event) {
	x.screen.Add(e)
	if file, ok := e.(kernel.File); ok && !strings.HasPrefix(file.Path, ".") && !strings.Contains(file.Path, "/.") && !slices.Contains(x.files, file.Path) {
		x.files = append(x.files, file.Path)
	}
}
