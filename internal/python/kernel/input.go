package kernel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Inputs gets the lines that code asks for from somebody who hears of that by the execution's events.
type Inputs struct {
	// Asking is told of each request before its event tells of it.
	Asking func(number int)
	// Answer waits for the line of a request, without its end. An error means that there is none, and the code gets EOFError. ctx ends with the execution.
	Answer func(ctx context.Context, number int) (string, error)
}

// InputPatience is how long code may wait for input, all in all, where the wait has a bound.
const InputPatience = 24 * time.Hour

// What code may ask for.
const (
	mostAsking    = 8       // requests for input at one time, as of threads
	mostInputs    = 10_000  // requests of an execution of which events tell
	longestPrompt = 4 << 10 // bytes, in an event
)

// inputs are an execution's requests for input.
type inputs struct {
	answers chan answer
	asking  int // requests without an answer
	made    int
}

// answer is what somebody said to a request.
type answer struct {
	number   int  // of the request
	theirs   int  // the kernel's own number of it; 0: it has none
	told     bool // an event has told of the request
	password bool
	value    string
	err      error
}

var errAskedEnough = errors.New("the code has asked for as much as it may")

// ask has a request for input answered.
func (x *execution) ask(s spoken) error {
	if s.ID != x.id || x.req.Input == nil && x.req.Inputs == nil {
		return errors.New("it asked for input that it was not offered")
	}
	if x.inputs.asking >= mostAsking {
		return fmt.Errorf("it asked for input %d times without waiting for an answer", mostAsking)
	}
	x.pauseClock()
	x.inputs.asking++
	x.inputs.made++
	a := answer{number: x.inputs.made, theirs: s.Number, password: s.Password}
	if x.req.Inputs == nil {
		go func() {
			a.value, a.err = x.req.Input(s.Prompt, s.Password)
			x.inputs.answers <- a
		}()
		return nil
	}
	prompt := shortened(s.Prompt, longestPrompt)
	if x.shown += int64(len(prompt)); x.shown > x.limit+errorRoom || a.number > mostInputs {
		a.err = errAskedEnough
		x.inputs.answers <- a
		return nil
	}
	a.told = true
	x.req.Inputs.Asking(a.number)
	x.emit(InputRequest{Number: a.number, Prompt: prompt, Password: s.Password})
	x.calls.running.Go(func() {
		a.value, a.err = x.req.Inputs.Answer(x.calls.ctx, a.number)
		x.inputs.answers <- a
	})
	return nil
}

// hand gives an answer to the code.
func (x *execution) hand(a answer) {
	x.inputs.asking--
	x.resumeClock()
	reply := map[string]any{"type": "input_reply", "id": x.id}
	if a.theirs != 0 {
		reply["number"] = a.theirs
	}
	said := InputReply{Number: a.number, Ended: a.err != nil, Secret: a.password && a.err == nil}
	if a.err != nil {
		reply["eof"] = true
	} else if reply["value"] = a.value; !a.password {
		said.Text = a.value
	}
	if x.shown += int64(len(said.Text)); a.told {
		x.emit(said)
	}
	_ = x.kernel.send(reply)
}

// shortened returns the beginning of a text that is longer than it may be.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}
