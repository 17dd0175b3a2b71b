package sandboxai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
	"cove/internal/server/transcript"
)

const (
	// farewell bounds the interruption of what a client has left.
	farewell = 10 * time.Second
	// lateness is how long after its time limit a program's end has to be heard of.
	lateness = 5 * time.Second
)

// output is what code has written: as one text in the order in which it was written, or as two.
type output struct {
	all, out, err strings.Builder
	room          int64 // bytes
	cut           bool
}

func (o *output) stdout(text string) { o.add(&o.out, text) }
func (o *output) stderr(text string) { o.add(&o.err, text) }

func (o *output) add(to *strings.Builder, text string) {
	if int64(len(text)) > o.room {
		text, o.cut = text[:o.room], true
	}
	o.room -= int64(len(text))
	_, _ = o.all.WriteString(text)
	_, _ = to.WriteString(text)
}

// say tells the user what cove knows of the end, whatever room is left.
func (o *output) say(message string) {
	_, _ = o.all.WriteString(message + "\n")
	_, _ = o.err.WriteString(message + "\n")
}

// answer is the output as clients read it, split or not.
func (o *output) answer(split bool, most int64) map[string]any {
	if o.cut {
		o.say(fmt.Sprintf("the output is longer than the %d bytes that are shown; write it into a file", most))
	}
	text := func(b *strings.Builder) string { return strings.ToValidUTF8(b.String(), "\ufffd") }
	if split {
		return map[string]any{"stdout": text(&o.out), "stderr": text(&o.err)}
	}
	return map[string]any{"output": text(&o.all)}
}

// runCell runs code as IPython does: what it writes, "Out[1]: " before its last value, and a traceback are one text. The number is always 1, as at SandboxAI, whose shell keeps no history.
func (s *server) runCell(c *call) error {
	var in struct {
		Code  string `json:"code"`
		Split bool   `json:"split_output"`
	}
	b, err := s.about(c, &in)
	if err != nil {
		return err
	}
	e, err := s.Hub.StartExecution(c.Context(), c.who, hub.NewExecution{Session: b.session, Code: in.Code, Timeout: s.Timeout, Environment: b.variables()})
	if err != nil {
		return err
	}
	out := &output{room: s.MaxOutput}
	ended, err := s.followCell(c, e.ID, out)
	if !ended { // the client has left, and its next code is not to wait
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), farewell)
		defer cancel()
		_, _ = s.Hub.InterruptExecution(ctx, c.who, e.ID) // it may have ended
	}
	if err == nil {
		write(c.w, http.StatusOK, out.answer(in.Split, s.MaxOutput))
	}
	return err
}

// about reads a request for a sandbox.
func (s *server) about(c *call, in any) (sandbox, error) {
	if err := s.read(c, in); err != nil {
		return sandbox{}, err
	}
	return s.find(c, c.PathValue("name"))
}

func (s *server) followCell(c *call, execution string, out *output) (ended bool, err error) {
	events, err := s.Hub.Follow(c.Context(), c.who, execution, 0)
	if err != nil {
		return false, err
	}
	for n, err := range events {
		if err != nil {
			return ended, err
		}
		if n.Gap {
			out.cut = true
			continue
		}
		event, err := transcript.ParseEvent(n.Event)
		if err != nil {
			return ended, err
		}
		if d, ok := event.(kernel.Done); ok {
			ended = true
			if d.Outcome != kernel.OutcomeOK && d.Outcome != kernel.OutcomeError {
				out.say(d.Message)
			}
			continue
		}
		out.take(event)
	}
	if !ended {
		return false, errors.Join(c.Context().Err(), problem.New(problem.Fault, "the session did not say how the code ended"))
	}
	return true, nil
}

// take takes what an event says. IPython writes values and tracebacks to the standard output.
func (o *output) take(e kernel.Event) {
	switch e := e.(type) {
	case kernel.Stream:
		if e.Name == "stderr" {
			o.stderr(string(e.Data))
		} else {
			o.stdout(string(e.Data))
		}
	case kernel.Display:
		if plain, ok := e.Data["text/plain"].(string); ok {
			o.stdout(plain + "\n")
		}
	case kernel.Result:
		if plain, ok := e.Data["text/plain"].(string); ok {
			if strings.Contains(plain, "\n") {
				plain = "\n" + plain
			}
			o.stdout("Out[1]: " + plain + "\n")
		}
	case kernel.Rollback:
		o.stderr(e.String() + "\n")
	case kernel.Error:
		o.stdout(strings.Join(e.Traceback, "\n") + "\n")
		if e.Hint != "" {
			o.stdout(e.Hint + "\n")
		}
	}
}

// runCommand runs a line of a shell.
func (s *server) runCommand(c *call) error {
	var in struct {
		Command string `json:"command"`
		Split   bool   `json:"split_output"`
	}
	b, err := s.about(c, &in)
	if err == nil {
		err = s.Hub.CheckProgram(c.Context(), c.who, "") // the rules for code are Python's
	}
	if err != nil {
		return err
	}
	start := process.Start{Line: in.Command, Env: b.variables(), Followed: true, Timeout: s.Timeout}
	p, err := s.Hub.StartProcess(c.Context(), c.who, b.session, start)
	if err != nil {
		return err
	}
	out := &output{room: s.MaxOutput}
	exit, err := s.followCommand(c, b.session, p.ID, out)
	if exit == nil {
		_ = s.Hub.SignalProcess(context.WithoutCancel(c.Context()), c.who, b.session, p.ID, "KILL", true) // it may have ended
	}
	if err != nil {
		return err
	}
	switch exit.Reason {
	case process.ForTime:
		out.say("the command ran for longer than it may")
	case process.ForMemory:
		out.say("the command used more memory than the sandbox may have")
	}
	a := out.answer(in.Split, s.MaxOutput)
	a["return_code"] = exit.Status()
	write(c.w, http.StatusOK, a)
	return nil
}

// followCommand returns how a program ended; nil where that is not known.
func (s *server) followCommand(c *call, session, id string, out *output) (*process.Exit, error) {
	// The limit is kept inside the sandbox, which code may have made slow.
	ctx, cancel := context.WithTimeoutCause(c.Context(), s.Timeout+lateness, problem.New(problem.Overloaded, "the sandbox does not end the command in time"))
	defer cancel()
	events, err := s.Hub.FollowProcess(ctx, c.who, session, id, 0)
	if err != nil {
		return nil, err
	}
	for e, err := range events {
		if err != nil {
			return nil, errors.Join(context.Cause(ctx), err)
		}
		switch e.Kind {
		case process.Stdout:
			out.stdout(string(e.Data))
		case process.Stderr:
			out.stderr(string(e.Data))
		case process.Gap:
			out.cut = true
		case process.Ended:
			if e.Exit != nil {
				return e.Exit, nil
			}
		}
	}
	return nil, errors.Join(context.Cause(ctx), problem.New(problem.Fault, "the session did not say how the command ended"))
}
