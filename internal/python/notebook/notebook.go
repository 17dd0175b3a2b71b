// Package notebook writes conversations as documents that live on without cove: Jupyter notebooks (nbformat 4.5), Markdown, programs. What
// it is given comes from a model and a sandbox, and is data: nothing in it becomes part of the document's structure.
package notebook

import (
	"slices"
	"strings"
	"time"

	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
)

// Document is a conversation.
type Document struct {
	Title   string
	Python  string // the version that the code ran with, or ""
	Created time.Time
	Files   []string // that the person brought, which the code may read
	Turns   []Turn
}

// Turn is a question and everything until its answer.
type Turn struct {
	Prompt string
	Blocks []Block
	Answer string
	// Outdated says that a step of it, or one before it, ran again after the answer was written.
	Outdated bool
}

// outdatedNote is said before an answer that is outdated.
const outdatedNote = "*This answer was written before a step was run again with changes.*"

// answer returns the answer with what is to be said of it first.
func (t Turn) answer() string {
	if t.Answer == "" || !t.Outdated {
		return t.Answer
	}
	return outdatedNote + "\n\n" + t.Answer
}

// Block is what the model said between executions, or one execution.
type Block struct {
	Text string
	Cell *Cell // nil: Text
}

// Cell is one execution.
type Cell struct {
	Code    string
	Edited  bool // the user changed the model's code before it ran
	Outputs []Output
	Outcome kernel.Outcome // "" while it is not known
	Message string         // a sentence where the outcome needs one
	Wall    time.Duration
	Files   []kernel.File // that it created or changed

	cleared bool // by what is shown next
}

// Output is what a person is shown of an execution. One field is set.
type Output struct {
	Stream  *kernel.Stream
	Display *kernel.Display
	Result  *kernel.Result
	Error   *kernel.Error
}

// ReadTurn puts the events of a turn into the order of a document. answer is left out of the blocks.
func ReadTurn(prompt, answer string, events []loop.Event) Turn {
	t := Turn{Prompt: prompt, Answer: answer}
	var words strings.Builder
	speak := func() {
		if text := strings.TrimSpace(words.String()); text != "" {
			t.Blocks = append(t.Blocks, Block{Text: text})
		}
		words.Reset()
	}
	var last *Cell
	for _, e := range events {
		switch e := e.(type) {
		case loop.Text:
			words.WriteString(e.Delta)
		case loop.Start:
			speak()
			last = &Cell{Code: e.Code, Edited: e.Edited}
			t.Blocks = append(t.Blocks, Block{Cell: last})
		case loop.Output:
			if last != nil {
				last.Add(e.Event)
			}
		}
	}
	if strings.TrimSpace(words.String()) != strings.TrimSpace(answer) {
		speak()
	}
	return t
}

// Add puts an event where a notebook shows it: streams continue, updates replace, clearing clears.
func (c *Cell) Add(e kernel.Event) {
	switch e := e.(type) {
	case kernel.Stream:
		c.clear(c.cleared)
		c.stream(e)
	case kernel.Display:
		if _, comm := e.Data[kernel.MIMEComm]; comm {
			return // what a widget says is nothing that is shown
		}
		c.clear(c.cleared)
		c.display(e)
	case kernel.Result:
		c.clear(c.cleared)
		c.Outputs = append(c.Outputs, Output{Result: &e})
	case kernel.Error:
		c.clear(c.cleared)
		c.Outputs = append(c.Outputs, Output{Error: &e})
	case kernel.InputRequest:
		c.clear(c.cleared)
		c.stream(kernel.Stream{Name: "stdout", Data: []byte(e.Prompt)})
	case kernel.InputReply:
		c.stream(kernel.Stream{Name: "stdout", Data: []byte(e.Typed())})
	case kernel.ClearOutput:
		c.clear(!e.Wait)
		c.cleared = e.Wait
	case kernel.File:
		c.Files = slices.DeleteFunc(c.Files, func(f kernel.File) bool { return f.Path == e.Path })
		c.Files = append(c.Files, e)
	case kernel.Done:
		c.Outcome, c.Message, c.Wall = e.Outcome, e.Message, e.Wall
	}
}

func (c *Cell) clear(now bool) {
	if now {
		c.Outputs, c.cleared = nil, false
	}
}

func (c *Cell) stream(s kernel.Stream) {
	if n := len(c.Outputs); n > 0 && c.Outputs[n-1].Stream != nil && c.Outputs[n-1].Stream.Name == s.Name {
		last := c.Outputs[n-1].Stream
		last.Data = append(last.Data, s.Data...)
		return
	}
	c.Outputs = append(c.Outputs, Output{Stream: &kernel.Stream{Name: s.Name, Data: slices.Clone(s.Data)}})
}

func (c *Cell) display(d kernel.Display) {
	if d.Update && d.ID != "" {
		for k := range c.Outputs {
			if old := c.Outputs[k].Display; old != nil && old.ID == d.ID {
				c.Outputs[k].Display = &d
			}
		}
		return
	}
	c.Outputs = append(c.Outputs, Output{Display: &d})
}

// Cells returns the executions of the document in their order.
func (d Document) Cells() []*Cell {
	var out []*Cell
	for _, t := range d.Turns {
		for _, b := range t.Blocks {
			if b.Cell != nil {
				out = append(out, b.Cell)
			}
		}
	}
	return out
}
