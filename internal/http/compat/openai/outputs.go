package openai

import (
	"strings"

	"cove/internal/python/display"
	"cove/internal/python/kernel"
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
	open     *growing       // the text of the last in list, which goes on; or nil
}

// all returns what was gathered until now.
func (o *outputs) all() []output {
	if o.open != nil {
		o.list[len(o.list)-1].Logs = o.open.String()
	}
	return o.list
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
	case kernel.Rollback:
		o.logs("[" + e.String() + "]\n")
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

func (o *outputs) reset() { *o = outputs{} }

func (o *outputs) logs(text string) {
	if text == "" {
		return
	}
	if o.clear {
		o.reset()
	}
	if o.open == nil {
		o.open = grown("")
		o.list = append(o.list, output{Type: "logs"})
	}
	o.open.WriteString(strings.ToValidUTF8(text, "\ufffd"))
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
	o.list = append(o.all(), shown)
	o.open = nil // an update may replace what is shown, so nothing else is written into it
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
	if text := display.Text(data); text != "" {
		return output{Type: "logs", Logs: text + "\n"}, true
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
