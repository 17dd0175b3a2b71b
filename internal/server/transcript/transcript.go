// Package transcript is the one JSON form of what executions and turns emit: in streams of the API, in the store and in what the command
// line prints with --json. It is described in docs/events.md and stable: fields may be added, never renamed or removed.
package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
)

// Record is one JSON object with its "type" among its members.
type Record map[string]any

// MarshalJSON writes the type first, for people who read along, and the rest by name.
func (r Record) MarshalJSON() ([]byte, error) {
	if r["type"] == nil {
		return json.Marshal(map[string]any(r))
	}
	rest := maps.Clone(r)
	delete(rest, "type")
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]any(rest)); err != nil {
		return nil, fmt.Errorf("write an event as JSON: %w", err)
	}
	head := fmt.Sprintf("{\"type\":%q", r["type"])
	if len(rest) > 0 {
		head += ","
	}
	return append([]byte(head), bytes.TrimSuffix(text.Bytes()[1:], []byte("\n"))...), nil
}

// Event returns the JSON object of an execution's event, its "type" first.
func Event(e kernel.Event) ([]byte, error) { return written(eventRecord(e), e) }

// TurnEvent returns the JSON object of a turn's event, its "type" first. Messages of an Answer are left out.
func TurnEvent(e loop.Event) ([]byte, error) { return written(turnRecord(e), e) }

// Failure returns the JSON object that ends a turn or an execution in which cove or a service failed. Its message is p's without the cause.
func Failure(p *problem.Error) ([]byte, error) {
	r := failureRecord(p, p.Message)
	r["type"] = "failure"
	return r.MarshalJSON()
}

func written(r Record, of any) ([]byte, error) {
	if r == nil {
		return nil, fmt.Errorf("an event of type %T has no form in JSON", of)
	}
	return r.MarshalJSON()
}

func failureRecord(p *problem.Error, message string) Record {
	return Record{"kind": p.Kind, "code": p.Code, "message": message, "hint": p.Hint}
}

func eventRecord(e kernel.Event) Record {
	switch e := e.(type) {
	case kernel.Stream:
		r := Record{"type": "stream", "name": e.Name}
		if utf8.Valid(e.Data) {
			r["text"] = string(e.Data)
		} else {
			r["data"] = e.Data // encoding/json writes []byte as base64
		}
		return r
	case kernel.Display:
		r := Record{"type": "display", "data": notNil(e.Data), "metadata": notNil(e.Metadata)}
		if e.ID != "" {
			r["id"] = e.ID
			r["update"] = e.Update
		}
		return r
	case kernel.Result:
		return Record{"type": "result", "count": e.Count, "data": notNil(e.Data), "metadata": notNil(e.Metadata)}
	case kernel.Widgets:
		return Record{"type": "widgets", "models": notNil(e.Models), "closed": notNone(e.Closed)}
	case kernel.Error:
		r := Record{"type": "error", "name": e.Name, "value": e.Value, "traceback": append([]string{}, e.Traceback...)}
		if e.Hint != "" {
			r["hint"] = e.Hint
		}
		return r
	case kernel.ClearOutput:
		return Record{"type": "clear_output", "wait": e.Wait}
	case kernel.File:
		return Record{"type": "file", "path": e.Path, "size": e.Size, "created": e.Created}
	case kernel.Install:
		return installRecord(e)
	case kernel.Rollback:
		return rollbackRecord(e)
	case kernel.ToolCall:
		r := Record{"type": "tool_call", "name": e.Name, "arguments": e.Arguments, "seconds": e.Wall.Seconds()}
		if e.Number != 0 {
			r["number"] = e.Number
		}
		if e.Error != "" {
			r["error"] = e.Error
		}
		return r
	case kernel.CallAsks:
		return Record{"type": "call_asks", "number": e.Number, "name": e.Name, "arguments": e.Arguments}
	case kernel.InputRequest:
		return Record{"type": "input_request", "number": e.Number, "prompt": e.Prompt, "password": e.Password}
	case kernel.InputReply:
		r := Record{"type": "input_reply", "number": e.Number}
		if e.Ended {
			r["ended"] = true
		} else if !e.Secret {
			r["text"] = e.Text
		}
		return r
	case kernel.CallsWait:
		calls := make([]Record, 0, len(e.Calls))
		for _, c := range e.Calls {
			calls = append(calls, Record{"id": c.ID, "name": c.Name})
		}
		return Record{"type": "calls_wait", "calls": calls}
	case kernel.Done:
		return doneRecord(e)
	}
	return nil
}

func notNil[M ~map[string]any](m M) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

func doneRecord(d kernel.Done) Record {
	r := Record{"type": "done", "outcome": d.Outcome, "exit_code": d.ExitCode, "seconds": d.Wall.Seconds()}
	optional := map[string]string{"signal": d.Signal, "message": d.Message, "lost": string(d.Lost)}
	for name, value := range optional {
		if value != "" {
			r[name] = value
		}
	}
	if d.Dropped > 0 {
		r["dropped_bytes"] = d.Dropped
	}
	return r
}

func rollbackRecord(e kernel.Rollback) Record {
	r := Record{"type": "rollback", "at": e.At.UTC(), "to": nil, "reason": e.Reason, "executions": notNone(e.Executions), "files": notNone(e.Files)}
	if !e.To.IsZero() {
		r["to"] = e.To.UTC()
	}
	if e.More > 0 {
		r["more_executions"] = e.More
	}
	return r
}

// installRecord leaves out where the layer is, which concerns nobody outside.
func installRecord(e kernel.Install) Record {
	if e.Progress != nil {
		return progressRecord(*e.Progress)
	}
	refused := []Record{}
	for _, one := range e.Provision.Refused {
		refused = append(refused, Record{"name": one.Name, "code": one.Code, "reason": one.Reason, "hint": one.Hint})
	}
	r := Record{
		"type": "install", "packages": notNone(e.Provision.Installed), "refused": refused, "notes": notNone(e.Provision.Notes),
		"seconds": e.Provision.Seconds, "cached": e.Provision.Cached, "restarted": e.Restarted,
	}
	if e.Provision.Restart != "" {
		r["needs_restart"] = e.Provision.Restart
	}
	if e.Failure != nil {
		// Why an installation failed is often only in the cause: what an index or a builder said.
		r["failure"] = failureRecord(e.Failure, e.Failure.Error())
	}
	return r
}

func progressRecord(p installation.Progress) Record {
	r := Record{"type": "install_progress", "phase": p.Phase, "packages": notNone(p.Packages)}
	if p.Received > 0 || p.Total > 0 {
		r["received_bytes"], r["total_bytes"] = p.Received, p.Total
	}
	return r
}

func notNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func turnRecord(e loop.Event) Record {
	switch e := e.(type) {
	case loop.Text:
		return Record{"type": "text", "delta": e.Delta}
	case loop.Reasoning:
		return Record{"type": "reasoning", "delta": e.Delta}
	case loop.Code:
		return Record{"type": "code", "step": e.Step, "delta": e.Delta}
	case loop.Start:
		r := Record{"type": "start", "step": e.Step, "code": e.Code}
		if e.Edited {
			r["edited"] = true
		}
		if e.Resumed {
			r["resumed"] = true
		}
		for name, text := range map[string]string{"kernel": e.Kernel, "printed": e.Printed, "execution": e.Execution} {
			if text != "" {
				r[name] = text
			}
		}
		return r
	case loop.Approval:
		return withWhy(Record{"type": "approval", "step": e.Step, "code": e.Code}, e.Why)
	case loop.Refused:
		r := withWhy(Record{"type": "refused", "step": e.Step, "note": e.Note}, e.Why)
		if e.Code != "" {
			r["code"] = e.Code
		}
		return r
	case loop.Output:
		event := eventRecord(e.Event)
		if event == nil {
			return nil
		}
		return Record{"type": "output", "step": e.Step, "event": event}
	case loop.Findings:
		return Record{"type": "findings", "step": e.Step, "items": notNone(e.Items), "notes": notNone(e.Notes)}
	case loop.Call:
		r := Record{"type": "call", "index": e.Index, "delta": e.Delta}
		if e.ID != "" || e.Name != "" {
			r["id"], r["name"] = e.ID, e.Name
		}
		return r
	case loop.Notice:
		return Record{"type": "notice", "text": e.Text}
	case loop.Answer:
		return answerRecord(e)
	}
	return nil
}

// usageRecord has what is not zero beside the two counts that everybody wants to see.
func usageRecord(u model.Usage) Record {
	r := Record{"input_tokens": u.InputTokens, "output_tokens": u.OutputTokens}
	if u.CachedTokens > 0 {
		r["cached_tokens"] = u.CachedTokens
	}
	if u.ReasoningTokens > 0 {
		r["reasoning_tokens"] = u.ReasoningTokens
	}
	if u.Estimated {
		r["estimated"] = true
	}
	return r
}

func answerRecord(e loop.Answer) Record {
	r := Record{"type": "answer", "text": e.Text, "reason": e.Reason, "steps": e.Steps,
		"usage": usageRecord(e.Usage)}
	if len(e.Calls) > 0 {
		r["calls"] = e.Calls
	}
	return r
}

// withWhy adds what in code calls for a look, where there is such a thing.
func withWhy(r Record, why string) Record {
	if why != "" {
		r["why"] = why
	}
	return r
}
