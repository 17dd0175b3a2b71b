package anthropic

import (
	"encoding/json"
	"strings"

	"cove/internal/llm/model"
)

// openCall names the block of a call that the model is writing; see answer.open.
const openCall = "call"

// callPart is a call that the model is writing.
type callPart struct {
	id, name string
	sent     strings.Builder // of the arguments, to the client
	waiting  strings.Builder // of them, until the block can be open
	begun    bool
}

// piece passes on a piece of what the model says, as it comes.
func (a *answer) piece(p model.Part) error {
	switch p := p.(type) {
	case model.TextDelta:
		return a.say(p.Text)
	case model.ReasoningDelta:
		return a.think(p.Text)
	case model.CallDelta:
		if a.stream { // of a whole message, calls come when they are complete
			return a.callPiece(p)
		}
	}
	return nil
}

// callPiece passes on a piece of a call's arguments. Only one block is open at a time: a call that begins before another one's arguments are complete waits until the end.
func (a *answer) callPiece(d model.CallDelta) error {
	if a.writing == nil {
		a.writing = map[int]*callPart{}
	}
	p := a.writing[d.Index]
	if p == nil {
		p = &callPart{}
		a.writing[d.Index] = p
	}
	if p.name == "" {
		p.name = d.Name
	}
	if p.id == "" {
		p.id = d.ID
	}
	p.waiting.WriteString(d.Arguments)
	if !p.begun {
		if p.name == "" || a.open == openCall && !json.Valid([]byte(a.current.sent.String())) {
			return nil
		}
		if err := a.openPart(p); err != nil {
			return err
		}
	}
	if a.open != openCall || a.current != p {
		return nil
	}
	return a.flushPart(p)
}

func (a *answer) flushPart(p *callPart) error {
	more := p.waiting.String()
	if more == "" {
		return nil
	}
	p.waiting.Reset()
	p.sent.WriteString(more)
	return a.delta("input_json_delta", "partial_json", more)
}

// openPart opens the block of a call: of the machine's tools the server's own, of all others the client's.
func (a *answer) openPart(p *callPart) error {
	if err := a.close(); err != nil {
		return err
	}
	kind := "tool_use"
	if isShell(p.name) {
		kind, p.id = "server_tool_use", newID(codePrefix)
	} else if p.id == "" {
		p.id = newID(callPrefix)
	}
	about := func() object {
		return object{"id": p.id, "name": p.name, "input": object{}, "caller": a.callerOf(p.id)}
	}
	p.begun = true
	if err := a.start(kind, about(), about()); err != nil {
		return err
	}
	a.open, a.current = openCall, p
	return nil
}

// settle completes the blocks of the calls, and returns their ids.
func (a *answer) settle(calls []model.ToolCall) (ids []string, err error) {
	for n, call := range calls {
		p := a.writing[n]
		if p == nil || p.name != call.Name {
			p = &callPart{name: call.Name, id: call.ID}
		}
		arguments := model.ArgumentsObject(call.Arguments)
		if !p.begun {
			if err := a.openPart(p); err != nil {
				return nil, err
			}
		}
		ids = append(ids, p.id)
		if a.open != openCall || a.current != p {
			continue // it was complete before the next one began
		}
		a.block["input"] = json.RawMessage(arguments)
		if rest, ok := strings.CutPrefix(arguments, p.sent.String()); ok && rest != "" {
			p.waiting.Reset()
			p.waiting.WriteString(rest)
		}
		if err := a.flushPart(p); err != nil {
			return nil, err
		}
		if err := a.stop(); err != nil {
			return nil, err
		}
	}
	a.writing = nil
	if a.open == openCall { // a call that was cut off
		return ids, a.stop()
	}
	return ids, nil
}
