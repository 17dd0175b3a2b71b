package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"unicode/utf8"

	"cove/internal/interpreter"
	"cove/internal/kernel"
	"cove/internal/problem"
)

// record is one line of --json output. Its fields are documented in docs/events.md and stable: fields may be added,
// never renamed or removed.
type record map[string]any

// line is the record as JSON with its type first, for people who read along.
func (r record) line() ([]byte, error) {
	rest := maps.Clone(r)
	delete(rest, "type")
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(rest); err != nil {
		return nil, err
	}
	head := fmt.Sprintf("{\"type\":%q", r["type"])
	if len(rest) > 0 {
		head += ","
	}
	return append([]byte(head), bytes.TrimSuffix(text.Bytes()[1:], []byte("\n"))...), nil
}

// MarshalJSON writes a record inside a record the same way.
func (r record) MarshalJSON() ([]byte, error) {
	if r["type"] == nil {
		return json.Marshal(map[string]any(r))
	}
	return r.line()
}

// eventRecord is the line for one kernel event.
func eventRecord(e kernel.Event) record {
	switch e := e.(type) {
	case kernel.Stream:
		r := record{"type": "stream", "name": e.Name}
		if utf8.Valid(e.Data) {
			r["text"] = string(e.Data)
		} else {
			r["data"] = e.Data // encoding/json writes []byte as base64
		}
		return r
	case kernel.Display:
		r := record{"type": "display", "data": notNil(e.Data), "metadata": notNil(e.Metadata)}
		if e.ID != "" {
			r["id"] = e.ID
			r["update"] = e.Update
		}
		return r
	case kernel.Result:
		return record{"type": "result", "count": e.Count, "data": notNil(e.Data), "metadata": notNil(e.Metadata)}
	case kernel.Error:
		return record{"type": "error", "name": e.Name, "value": e.Value, "traceback": append([]string{}, e.Traceback...)}
	case kernel.ClearOutput:
		return record{"type": "clear_output", "wait": e.Wait}
	case kernel.File:
		return record{"type": "file", "path": e.Path, "size": e.Size, "created": e.Created}
	case kernel.Install:
		return installRecord(e)
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

func doneRecord(d kernel.Done) record {
	r := record{"type": "done", "outcome": d.Outcome, "exit_code": d.ExitCode, "seconds": d.Wall.Seconds()}
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

// interpreterRecord is the line for one event of a question.
func interpreterRecord(e interpreter.Event) record {
	switch e := e.(type) {
	case interpreter.Text:
		return record{"type": "text", "delta": e.Delta}
	case interpreter.Reasoning:
		return record{"type": "reasoning", "delta": e.Delta}
	case interpreter.Code:
		return record{"type": "code", "step": e.Step, "delta": e.Delta}
	case interpreter.Start:
		return record{"type": "start", "step": e.Step, "code": e.Code}
	case interpreter.Output:
		return record{"type": "output", "step": e.Step, "event": eventRecord(e.Event)}
	case interpreter.Notice:
		return record{"type": "notice", "text": e.Text}
	case interpreter.Answer:
		return record{"type": "answer", "text": e.Text, "reason": e.Reason, "steps": e.Steps,
			"usage": record{"input_tokens": e.Usage.InputTokens, "output_tokens": e.Usage.OutputTokens}}
	}
	return nil
}

// savedRecord is the line for one file that was put into the out folder.
func savedRecord(s saved) record {
	return record{"type": "saved", "path": s.Path, "size": s.Size, "from": s.From}
}

// failureRecord is the line for a failure of cove's own.
func failureRecord(err error) record {
	p := problem.Of(err)
	return record{"type": "failure", "kind": p.Kind, "code": p.Code, "message": message(err), "hint": p.Hint}
}

// lines writes records, one a line.
type lines struct{ to io.Writer }

func (l lines) write(r record) error {
	if r == nil {
		return nil
	}
	text, err := r.line()
	if err != nil {
		return err
	}
	_, err = l.to.Write(append(text, '\n'))
	return err
}
