package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
	"cove/internal/server/transcript"
)

const (
	// longestAnswer bounds an answer as it is recorded, in bytes.
	longestAnswer = 64 << 10
	// longestTranscript bounds a transcript, in bytes: events beyond are left out, which its last line says.
	longestTranscript = 16 << 20
)

// hearing takes note of what happens while a task is done.
type hearing struct {
	lines      bytes.Buffer // the transcript
	leftOut    int          // events that did not fit into it
	executions []Execution
	installs   []Install
	answer     *loop.Answer
	said       string // what the last execution showed or printed, for programs that have no model to answer

	began           time.Time // of the present execution
	installing      float64   // seconds of it
	install, run    float64   // seconds of all
	exception       string    // of the present execution
	stdout, shownAs string    // of the present execution
}

func (h *hearing) line(v any) {
	text, err := json.Marshal(v)
	if err == nil {
		h.raw(text)
	}
}

func (h *hearing) raw(text []byte) {
	if h.lines.Len()+len(text) > longestTranscript {
		h.leftOut++
		return
	}
	h.lines.Write(text)
	h.lines.WriteByte('\n')
}

// event hears one event of a turn.
func (h *hearing) event(e loop.Event) error {
	if _, piece := e.(loop.Code); !piece { // Start has the whole
		if text, err := transcript.TurnEvent(e); err == nil {
			h.raw(text)
		}
	}
	switch e := e.(type) {
	case loop.Start:
		h.began, h.installing, h.exception, h.stdout, h.shownAs = time.Now(), 0, "", "", ""
	case loop.Output:
		h.output(e.Event)
	case loop.Answer:
		h.answer = &e
	}
	return nil
}

func (h *hearing) output(e kernel.Event) {
	switch e := e.(type) {
	case kernel.Install:
		if e.Progress == nil {
			h.installed(e)
		}
	case kernel.Stream:
		if e.Name == "stdout" && len(h.stdout) < longestAnswer {
			h.stdout += string(e.Data)
		}
	case kernel.Result:
		h.shownAs, _ = e.Data["text/plain"].(string)
	case kernel.Error:
		h.exception = e.Name
	case kernel.Done:
		ran := min(e.Wall.Seconds(), max(0, time.Since(h.began).Seconds()-h.installing)) // a package may have been installed before the code ran, or while it did
		h.run += ran
		h.executions = append(h.executions, Execution{Outcome: string(e.Outcome), Error: bounded(h.exception, 100), Seconds: ran})
		h.said = strings.TrimSpace(h.stdout + "\n" + h.shownAs)
	}
}

// installed takes note of the packages that were asked for. What is asked for again counts once, as it ended.
func (h *hearing) installed(e kernel.Install) {
	p := e.Provision
	h.installing += p.Seconds
	h.install += p.Seconds
	if p.Restart == "" || e.Restarted {
		for _, one := range p.Installed {
			if one.Asked {
				h.note(Install{Name: one.Name, Version: one.Version, Right: true})
			}
		}
	}
	for _, one := range p.Refused {
		h.note(Install{Name: bounded(one.Name, 200), Code: one.Code})
	}
	if e.Failure != nil {
		h.note(Install{Code: e.Failure.Code})
	}
}

func (h *hearing) note(i Install) {
	for n := range h.installs {
		if h.installs[n].Name == i.Name {
			h.installs[n] = i
			return
		}
	}
	h.installs = append(h.installs, i)
}

// transcript is everything that was heard, one JSON object a line, as docs/events.md has them.
func (h *hearing) transcript() []byte {
	if h.leftOut > 0 {
		fmt.Fprintf(&h.lines, "{\"type\":\"left_out\",\"events\":%d}\n", h.leftOut)
	}
	return h.lines.Bytes()
}
