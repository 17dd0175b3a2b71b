package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A recording is a sequence of JSON objects, one for each turn of the model, separated by white space:
//
//	{"parts": [{"text": "I'll read the file."},
//	           {"code": ["import pandas as pd",
//	                     "pd.read_csv('sales.csv')"]}],
//	 "outcome": "error"}
//	{"parts": [{"text": "It grew by 12 %."}]}
//
// A part is {"text": T}, {"reasoning": T}, {"code": T} for a call of the tool "python", or {"call": {"name": N,
// "arguments": {...}}} for any other call. T is a string, or a list of strings as lines. "outcome" is what kind of
// result the last call of the turn had when it was recorded, "ok" or "error"; a turn with a call must have one and a turn
// without must not. "finish" may be "length" or "filter" for an answer that ended so.
type recordedTurn struct {
	Parts   []recordedPart `json:"parts"`
	Outcome string         `json:"outcome,omitempty"`
	Finish  FinishReason   `json:"finish,omitempty"`
}

type recordedPart struct {
	Text      *lines        `json:"text,omitempty"`
	Reasoning *lines        `json:"reasoning,omitempty"`
	Code      *lines        `json:"code,omitempty"`
	Call      *recordedCall `json:"call,omitempty"`
}

type recordedCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

const (
	outcomeOK    = "ok"
	outcomeError = "error"
	pythonTool   = "python"
)

// lines is a text that may be written as a list of its lines.
type lines string

func (l *lines) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*l = lines(text)
		return nil
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		return errors.New("a text is a string or a list of strings")
	}
	*l = lines(strings.Join(list, "\n"))
	return nil
}

func (l lines) MarshalJSON() ([]byte, error) {
	if strings.Contains(string(l), "\n") {
		return plainJSON(strings.Split(string(l), "\n"))
	}
	return plainJSON(string(l))
}

// plainJSON leaves <, > and & as they are: recordings are read by people.
func plainJSON(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

func readRecording(r io.Reader) ([]recordedTurn, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var turns []recordedTurn
	for n := 1; ; n++ {
		var t recordedTurn
		err := dec.Decode(&t)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = t.check()
		}
		if err != nil {
			return nil, fmt.Errorf("turn %d: %w", n, err)
		}
		turns = append(turns, t)
	}
	if len(turns) == 0 {
		return nil, errors.New("it has no turns")
	}
	return turns, nil
}

func (t recordedTurn) check() error {
	for _, p := range t.Parts {
		kinds := 0
		for _, set := range []bool{p.Text != nil, p.Reasoning != nil, p.Code != nil, p.Call != nil} {
			if set {
				kinds++
			}
		}
		if kinds != 1 {
			return errors.New(`a part has exactly one of "text", "reasoning", "code" and "call"`)
		}
	}
	switch {
	case t.Finish != "" && t.Finish != FinishLength && t.Finish != FinishFilter:
		return fmt.Errorf(`"finish" is "length" or "filter", not %q`, t.Finish)
	case t.calls() && t.Outcome != outcomeOK && t.Outcome != outcomeError:
		return fmt.Errorf(`a turn with a call needs an "outcome" of "ok" or "error", not %q`, t.Outcome)
	case !t.calls() && t.Outcome != "":
		return errors.New(`a turn without a call has no "outcome"`)
	}
	return nil
}

// calls reports whether the turn ends in calls that get results.
func (t recordedTurn) calls() bool {
	if t.Finish != "" {
		return false
	}
	for _, p := range t.Parts {
		if p.Code != nil || p.Call != nil {
			return true
		}
	}
	return false
}

// toolCall returns the call of a part, if it is one.
func (p recordedPart) toolCall(id string) (ToolCall, bool) {
	switch {
	case p.Code != nil:
		arguments, _ := plainJSON(map[string]string{"code": string(*p.Code)})
		return ToolCall{ID: id, Name: pythonTool, Arguments: string(arguments)}, true
	case p.Call != nil:
		return ToolCall{ID: id, Name: p.Call.Name, Arguments: string(p.Call.Arguments)}, true
	}
	return ToolCall{}, false
}

func outcomeOf(isError bool) string {
	if isError {
		return outcomeError
	}
	return outcomeOK
}

// lastResult returns the last tool result that came in since the model last spoke, if any did.
func lastResult(req Request) (ToolResult, bool) {
	for i := len(req.Messages) - 1; i >= 0 && req.Messages[i].Role != RoleAssistant; i-- {
		content := req.Messages[i].Content
		for j := len(content) - 1; j >= 0; j-- {
			if r, ok := content[j].(ToolResult); ok {
				return r, true
			}
		}
	}
	return ToolResult{}, false
}
