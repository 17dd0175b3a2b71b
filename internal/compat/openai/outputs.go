package openai

import (
	"strings"

	"cove/internal/kernel"
)

// output is an element of a code_interpreter_call's outputs.
type output struct {
	Type string `json:"type"` // "logs" or "image"
	Logs string `json:"logs,omitempty"`
	URL  string `json:"url,omitempty"`
}

// outputs gathers what an execution printed and showed: texts in the order in which they came, pictures between them.
type outputs struct {
	list     []output
	displays map[string]int // by display id, the index in list
	clear    bool           // with the next output
}

func (o *outputs) add(e kernel.Event) {
	switch e := e.(type) {
	case kernel.Stream:
		o.logs(string(e.Data))
	case kernel.Result:
		o.show(e.Data, "", false)
	case kernel.Display:
		o.show(e.Data, e.ID, e.Update)
	case kernel.Error:
		o.logs(strings.Join(e.Traceback, "\n") + "\n")
	case kernel.ClearOutput:
		if e.Wait {
			o.clear = true
			return
		}
		o.reset()
	case kernel.Done:
		if e.Outcome != kernel.OutcomeOK && e.Outcome != kernel.OutcomeError && e.Message != "" {
			o.logs(e.Message + "\n")
		}
	}
}

func (o *outputs) reset() { o.list, o.displays, o.clear = nil, nil, false }

func (o *outputs) logs(text string) {
	if text == "" {
		return
	}
	if o.clear {
		o.reset()
	}
	text = strings.ToValidUTF8(text, "\ufffd")
	if n := len(o.list); n > 0 && o.list[n-1].Type == "logs" && !o.displayed(n-1) {
		o.list[n-1].Logs += text
		return
	}
	o.list = append(o.list, output{Type: "logs", Logs: text})
}

// displayed says whether an element may be replaced by an update, so that nothing else may be written into it.
func (o *outputs) displayed(index int) bool {
	for _, at := range o.displays {
		if at == index {
			return true
		}
	}
	return false
}

func (o *outputs) show(data kernel.Bundle, id string, update bool) {
	shown, ok := shownAs(data)
	if !ok {
		return
	}
	if at, known := o.displays[id]; known && update {
		o.list[at] = shown
		return
	}
	if shown.Type == "logs" && id == "" {
		o.logs(shown.Logs)
		return
	}
	if o.clear {
		o.reset()
	}
	o.list = append(o.list, shown)
	if id != "" {
		if o.displays == nil {
			o.displays = map[string]int{}
		}
		o.displays[id] = len(o.list) - 1
	}
}

// shownAs picks the form of a rich object that OpenAI's outputs have room for.
func shownAs(data kernel.Bundle) (output, bool) {
	for _, mime := range []string{"image/png", "image/jpeg", "image/gif", "image/webp"} {
		if encoded, ok := data[mime].(string); ok && encoded != "" {
			return output{Type: "image", URL: "data:" + mime + ";base64," + strings.Join(strings.Fields(encoded), "")}, true
		}
	}
	for _, mime := range []string{"text/plain", "text/markdown", "text/html"} {
		if text, ok := data[mime].(string); ok && text != "" {
			return output{Type: "logs", Logs: text + "\n"}, true
		}
	}
	return output{}, false
}

// statusOfDone says how OpenAI calls an execution's end. An exception is a normal end: the traceback is in the logs.
func statusOfDone(d kernel.Done) string {
	switch d.Outcome {
	case kernel.OutcomeOK, kernel.OutcomeError:
		return statusCompleted
	case kernel.OutcomeInterrupted, kernel.OutcomeRestart:
		return statusIncomplete
	}
	return statusFailed
}
