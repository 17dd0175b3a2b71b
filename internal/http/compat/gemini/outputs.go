package gemini

import (
	"encoding/base64"
	"fmt"
	"strings"

	"cove/internal/python/display"
	"cove/internal/python/kernel"
)

// Bounds of what one execution's parts have.
const (
	largestOutput = 1 << 20 // bytes of text; more is cut in the middle
	mostOutputs   = 10_000
	mostFigures   = 20
	largestFigure = 8 << 20 // bytes in base64
)

// figure is a picture that code showed. Its data is in base64.
type figure struct{ kind, data string }

// outputs gathers what an execution printed and showed.
type outputs struct {
	list  []shown
	clear bool // with the next output
	size  int  // bytes of text in list
	cut   int  // bytes that were left out
}

// shown is one output: a text, of stderr or not, or a figure.
type shown struct {
	text   []byte
	errors bool
	figure *figure
	id     string // of a display that may be updated
}

func (o *outputs) add(e kernel.Event) {
	switch e := e.(type) {
	case kernel.Stream:
		o.print(string(e.Data), e.Name == "stderr")
	case kernel.Result:
		o.show(e.Data, "", false)
	case kernel.Display:
		o.show(e.Data, e.ID, e.Update)
	case kernel.Error:
		o.print(strings.Join(e.Traceback, "\n")+"\n", true)
	case kernel.Rollback:
		o.print("["+e.String()+"]\n", false)
	case kernel.ClearOutput:
		o.clear = true
		if !e.Wait {
			o.fresh()
		}
	}
}

func (o *outputs) fresh() {
	if o.clear {
		*o = outputs{}
	}
}

func (o *outputs) print(text string, errors bool) {
	if text == "" {
		return
	}
	o.fresh()
	// The end tells more than the middle, above all of an error; so errors have room of their own.
	room := largestOutput - o.size
	if errors {
		room += largestOutput / 4
	}
	if len(o.list) >= mostOutputs {
		room = 0
	}
	if len(text) > room {
		kept := max(room, 0)
		o.cut += len(text) - kept
		text = text[:kept]
	}
	if text == "" {
		return
	}
	o.size += len(text)
	if n := len(o.list); n > 0 && o.list[n-1].figure == nil && o.list[n-1].id == "" && o.list[n-1].errors == errors {
		o.list[n-1].text = append(o.list[n-1].text, text...)
		return
	}
	o.list = append(o.list, shown{text: []byte(text), errors: errors})
}

func (o *outputs) show(data kernel.Bundle, id string, update bool) {
	s, ok := shownAs(data)
	if !ok {
		return
	}
	o.fresh()
	s.id = id
	if update {
		for n := range o.list {
			if id != "" && o.list[n].id == id {
				if o.size+len(s.text)-len(o.list[n].text) > largestOutput || s.figure != nil && o.list[n].figure == nil && o.figures() >= mostFigures {
					return
				}
				o.size += len(s.text) - len(o.list[n].text)
				o.list[n] = s
				return
			}
		}
	}
	if s.figure == nil && id == "" {
		o.print(string(s.text), false)
		return
	}
	if o.size+len(s.text) > largestOutput || len(o.list) >= mostOutputs {
		o.cut += len(s.text)
		return
	}
	if s.figure != nil && o.figures() >= mostFigures {
		o.print("[A figure was left out: there are more than "+fmt.Sprint(mostFigures)+".]\n", false)
		return
	}
	o.size += len(s.text)
	o.list = append(o.list, s)
}

func (o *outputs) figures() (n int) {
	for _, s := range o.list {
		if s.figure != nil {
			n++
		}
	}
	return n
}

// shownAs picks the form of a rich object that Google's parts have room for.
func shownAs(data kernel.Bundle) (shown, bool) {
	for _, kind := range []string{"image/png", "image/jpeg", "image/gif", "image/webp"} {
		encoded, ok := data[kind].(string)
		if !ok || encoded == "" {
			continue
		}
		encoded = strings.Join(strings.Fields(encoded), "")
		if _, err := base64.StdEncoding.DecodeString(encoded); err != nil || len(encoded) > largestFigure {
			return shown{text: []byte("[A figure was left out: it is too large.]\n")}, true
		}
		return shown{figure: &figure{kind, encoded}}, true
	}
	if text := display.Text(data); text != "" {
		return shown{text: []byte(text + "\n")}, true
	}
	return shown{}, false
}

// result says how an execution ended, as a codeExecutionResult, and what it showed. Of code that ran well, Google gives what it printed, without stderr.
func (o *outputs) result(id string, d kernel.Done) (*codeResult, []figure) {
	r := &codeResult{Outcome: "OUTCOME_FAILED", ID: id}
	switch d.Outcome {
	case kernel.OutcomeOK:
		r.Outcome = "OUTCOME_OK"
	case kernel.OutcomeTimeout:
		r.Outcome = "OUTCOME_DEADLINE_EXCEEDED"
	}
	var text strings.Builder
	var figures []figure
	for _, s := range o.list {
		switch {
		case s.figure != nil:
			figures = append(figures, *s.figure)
		case !s.errors || d.Outcome != kernel.OutcomeOK:
			text.Write(s.text)
		}
	}
	if o.cut > 0 || d.Dropped > 0 {
		fmt.Fprintf(&text, "\n[%d bytes of output were left out.]\n", int64(o.cut)+d.Dropped)
	}
	if d.Outcome != kernel.OutcomeOK && d.Outcome != kernel.OutcomeError && d.Message != "" {
		text.WriteString(d.Message + "\n")
	}
	r.Output = strings.ToValidUTF8(text.String(), "\ufffd")
	return r, figures
}
