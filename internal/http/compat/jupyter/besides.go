package jupyter

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

// mostExpressions is how many expressions of one request are evaluated: each of them is an execution of the hub's.
const mostExpressions = 32

// mostHidden is of how many executions it is known that they took no number.
const mostHidden = 10_000

// payloadOf is a payload of the reply to an execute_request, of a kind that is known, or nil. Code makes what it likes of it; so it is made anew of what belongs there.
func payloadOf(b kernel.Bundle) map[string]any {
	raw, there := b[kernel.MIMEPayload]
	if !there {
		return nil
	}
	text, err := json.Marshal(raw)
	var p struct {
		Source  string         `json:"source"`
		Data    map[string]any `json:"data"`
		Start   int            `json:"start"`
		Text    string         `json:"text"`
		Replace bool           `json:"replace"`
	}
	if err != nil || json.Unmarshal(text, &p) != nil {
		return nil
	}
	switch p.Source {
	case "page":
		return map[string]any{"source": p.Source, "data": shown(p.Data), "start": p.Start}
	case "set_next_input":
		return map[string]any{"source": p.Source, "text": p.Text, "replace": p.Replace}
	}
	return nil
}

// evaluate returns the values of the expressions that the client wants, in the form of Jupyter's protocol. like is the execution that they follow. An expression that fails has its error for a value.
func (x *execution) evaluate(like hub.NewExecution) (map[string]any, error) {
	values := map[string]any{}
	for n, name := range slices.Sorted(maps.Keys(x.asks.Expressions)) {
		var code string
		switch {
		case n >= mostExpressions:
			values[name] = failedValue("ValueError", fmt.Sprintf("a request has at most %d user_expressions", mostExpressions))
			continue
		case json.Unmarshal(x.asks.Expressions[name], &code) != nil:
			values[name] = failedValue("TypeError", "an expression is a string")
			continue
		}
		one := &execution{k: x.k, r: x.r, part: true, count: x.count, restarts: x.restarts}
		one.asks.Silent = true
		like.Code, like.Unnumbered = "(\n"+code+"\n)", true // in parentheses it is an expression, and neither a statement nor a magic
		if err := one.run(like); err != nil {
			return nil, err
		}
		x.payload = append(x.payload, one.payload...)
		values[name] = one.asValue()
		if one.done.Lost != kernel.LostNothing || one.done.Outcome == kernel.OutcomeInterrupted {
			return values, nil
		}
	}
	return values, nil
}

func (x *execution) asValue() map[string]any {
	switch {
	case x.error != nil:
		return map[string]any{"status": "error", "ename": x.error.Name, "evalue": x.error.Value, "traceback": x.error.Traceback}
	case x.value == nil:
		return map[string]any{"status": "ok", "data": map[string]any{"text/plain": "None"}, "metadata": map[string]any{}}
	}
	return map[string]any{"status": "ok", "data": shown(x.value.Data), "metadata": orEmpty(x.value.Metadata)}
}

func failedValue(name, text string) map[string]any {
	return map[string]any{"status": "error", "ename": name, "evalue": text, "traceback": []string{name + ": " + text}}
}

// hide notes that an execution is none of the inputs of before. The caller holds mu.
func (k *shared) hide(execution string, hidden bool) {
	if !hidden {
		return
	}
	if k.hidden == nil || len(k.hidden) >= mostHidden {
		k.hidden = map[string]bool{}
	}
	k.hidden[execution] = true
}

func (k *shared) isHidden(execution string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.hidden[execution]
}
