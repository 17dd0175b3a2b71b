package openai

import (
	"errors"
	"slices"
	"strings"

	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
)

// code translates a piece of the code that the model is writing.
func (t *translation) code(e loop.Code) error {
	if t.programs {
		return nil // a program is told of as a whole
	}
	i := t.codes[e.Step]
	if i == nil || i.done {
		var err error
		if i, err = t.addCode(e.Step); err != nil {
			return err
		}
	}
	i.code.Code.WriteString(e.Delta)
	d := t.about(i, "response.code_interpreter_call_code.delta")
	d.Delta = &e.Delta
	return t.emit(d)
}

func (t *translation) addCode(step int) (*item, error) {
	if err := t.close(statusCompleted); err != nil {
		return nil, err
	}
	if t.container == "" {
		t.container = t.place()
	}
	id := t.newID("ci")
	i := &item{id: id, code: &codeCall{ID: id, Type: "code_interpreter_call", Status: statusInProgress, ContainerID: t.container, Code: grown("")}}
	t.codes[step] = i
	return i, errors.Join(t.add(i), t.emit(t.about(i, "response.code_interpreter_call.in_progress")))
}

func (t *translation) codeDone(i *item) error {
	done := t.about(i, "response.code_interpreter_call_code.done")
	done.Code = new(i.code.Code.String())
	return t.emit(done)
}

// dropAll ends the calls whose code was not started.
func (t *translation) dropAll() error {
	for _, i := range t.items {
		if i.code == nil || i.done || i.code.Status != statusInProgress {
			continue
		}
		i.void = true
		if err := errors.Join(t.codeDone(i), t.finish(i, statusIncomplete)); err != nil {
			return err
		}
	}
	return nil
}

func (t *translation) start(e loop.Start) error {
	if t.programs {
		return t.startProgram(e)
	}
	i := t.codes[e.Step]
	if i == nil || i.done {
		var err error
		if i, err = t.addCode(e.Step); err != nil {
			return err
		}
	}
	if err := t.close(statusCompleted); err != nil {
		return err
	}
	if i.code.Code.Len() == 0 && e.Code != "" {
		d := t.about(i, "response.code_interpreter_call_code.delta")
		d.Delta = &e.Code
		if err := t.emit(d); err != nil {
			return err
		}
	}
	i.code.Code = grown(e.Code)
	i.code.Status = "interpreting"
	t.ran, t.running, t.since = true, &outputs{}, len(t.items)
	t.said.Reset()
	return errors.Join(t.codeDone(i), t.emit(t.about(i, "response.code_interpreter_call.interpreting")))
}

func (t *translation) output(e loop.Output) error {
	i := t.codes[e.Step]
	if t.running == nil || !t.programs && (i == nil || i.done) {
		return nil
	}
	t.running.add(e.Event)
	switch e := e.Event.(type) {
	case kernel.File:
		if !hidden(e.Path) {
			t.files = append(slices.DeleteFunc(t.files, func(f string) bool { return f == e.Path }), e.Path)
		}
	case kernel.Done:
		if t.programs {
			return t.endProgram(e)
		}
		i.code.all = t.running.all()
		t.running = nil
		status := statusOfDone(e)
		if status == statusCompleted {
			if err := t.emit(t.about(i, "response.code_interpreter_call.completed")); err != nil {
				return err
			}
		}
		return t.finish(i, status)
	}
	if t.programs {
		return nil
	}
	return t.tellLive(i, e.Event)
}

// answer ends the response.
func (t *translation) answer(a loop.Answer) error {
	if err := t.finalText(a); err != nil {
		return err
	}
	status, reason := endOf(a.Reason)
	if err := t.close(status); err != nil {
		return err
	}
	if err := t.endCalls(a); err != nil {
		return err
	}
	if err := t.finishAll(); err != nil {
		return err
	}
	t.response.Status = status
	if reason != "" {
		t.response.Details = &struct {
			Reason string `json:"reason"`
		}{reason}
	}
	if status == statusCompleted {
		t.response.CompletedAt = new(t.at.Unix())
	}
	u := &usage{InputTokens: a.Usage.InputTokens, OutputTokens: a.Usage.OutputTokens, TotalTokens: a.Usage.Total()}
	u.InputDetails.CachedTokens, u.OutputDetails.ReasoningTokens = a.Usage.CachedTokens, a.Usage.ReasoningTokens
	t.response.Usage = u
	return t.emit(event{Type: "response." + status, Response: t.snapshot()})
}

// finalText sees to it that the answer's text is there, also where cove composed it, and cites the files in it.
func (t *translation) finalText(a loop.Answer) error {
	said, want := strings.TrimSpace(t.said.String()), strings.TrimSpace(a.Text)
	open := t.open != nil && t.open.message != nil
	switch {
	case want == "" || said == want:
	case a.Reason == loop.ClientCalls: // what goes with calls came before them
		for _, i := range t.items {
			if i.message != nil && strings.TrimSpace(i.message.Content[0].Text.String()) == want {
				i.void = false
			}
		}
	case said == "" || !open:
		if err := t.text(a.Text); err != nil {
			return err
		}
	case strings.HasPrefix(want, said):
		if err := t.text(strings.TrimPrefix(want, said)); err != nil {
			return err
		}
	}
	if t.open != nil && t.open.message != nil {
		part := &t.open.message.Content[0]
		if t.gap && want != "" {
			part.Text = grown(a.Text) // the pieces are not all there; the whole is
		}
		part.Annotations = cite(part.Text.String(), t.container, t.files)
	}
	return nil
}

// endCalls completes the calls of the client's functions.
func (t *translation) endCalls(a loop.Answer) error {
	for n, call := range a.Calls {
		i := t.calls[n]
		if i == nil {
			if err := t.call(loop.Call{Index: n, ID: call.ID, Name: call.Name, Delta: call.Arguments}); err != nil {
				return err
			}
			i = t.calls[n]
		}
		i.call.CallID, i.call.Name, i.call.Arguments = call.ID, call.Name, grown(call.Arguments)
		done := t.about(i, "response.function_call_arguments.done")
		done.Name, done.Arguments = call.Name, &call.Arguments
		if err := errors.Join(t.emit(done), t.finish(i, statusCompleted)); err != nil {
			return err
		}
	}
	return nil
}

// endOf says how OpenAI calls the end of a turn.
func endOf(r loop.AnswerReason) (status, reason string) {
	switch r {
	case loop.TokenLimit, loop.Length:
		return statusIncomplete, "max_output_tokens"
	case loop.Filtered:
		return statusIncomplete, "content_filter"
	case loop.TimeLimit:
		return statusIncomplete, "time_limit"
	}
	return statusCompleted, ""
}
