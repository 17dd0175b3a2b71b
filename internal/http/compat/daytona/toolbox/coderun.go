package toolbox

import (
	"context"
	_ "embed" // node.js, show.py
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/python/displaysetup"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
	"cove/internal/server/transcript"
)

const (
	mostCharts = 50
	mostShown  = 200 // results beside the charts
)

// nodeRunner runs JavaScript, and TypeScript where Node.js can, that comes as its input.
//
//go:embed node.js
var nodeRunner string

// closeFigures has figures closed that were shown.
//
//go:embed show.py
var closeFigures string

type codeRequest struct {
	Code     string            `json:"code"`
	Language string            `json:"language"`
	Args     []string          `json:"argv"`
	Env      map[string]string `json:"envs"`
	Timeout  *float64          `json:"timeout"`
}

// codeAnswer is the answer to code. Results are of cove: what the code showed, by MIME types, which Daytona's clients find among the additional properties.
type codeAnswer struct {
	ExitCode  int                          `json:"exitCode"`
	Result    string                       `json:"result"`
	Artifacts *artifacts                   `json:"artifacts,omitempty"`
	Results   []map[string]json.RawMessage `json:"results,omitempty"`
}

type artifacts struct {
	Charts []chart `json:"charts"`
}

// codeRun runs code in an interpreter of its own.
func (t *Toolbox) codeRun(c *call) error {
	in := codeRequest{Language: c.s.Language}
	if err := c.read(&in); err != nil {
		return err
	}
	limit, err := timeLimit(in.Timeout)
	if err != nil {
		return err
	}
	if err := process.CheckEnvironment(in.Env); err != nil {
		return invalid(problem.Of(err).Message)
	}
	if strings.TrimSpace(in.Code) == "" {
		return invalid("code: there is nothing to run")
	}
	switch in.Language {
	case "", "python":
		return t.runPython(c, in, limit)
	case "javascript", "typescript":
		args := append([]string{"bash", "-c", `exec 2>&1; exec node -e "$0" "$@"`, nodeRunner, in.Language}, in.Args...)
		return t.answer(c, process.Start{Args: args, Dir: c.s.Work, Env: c.s.environment(in.Env), Timeout: limit}, []byte(in.Code))
	}
	return invalid(fmt.Sprintf("language: %.40q is not there; there are python, javascript and typescript", in.Language))
}

// runPython runs Python in a kernel that lives for this request: what code imports is installed, figures come as data, and the rules for code hold.
func (t *Toolbox) runPython(c *call, in codeRequest, limit time.Duration) error {
	name, stop, err := t.ownKernel(c)
	if err != nil {
		return err
	}
	defer stop()
	env := c.s.environment(in.Env)
	if _, err := t.o.Hub.StartExecution(c.Context(), c.who, hub.NewExecution{Session: c.id(), Kernel: name, Code: displaysetup.Setup + closeFigures, Unheard: true, Program: "setup.py", Args: []string{c.s.Work}, Environment: env, Unnumbered: true}); err != nil {
		return err
	}
	if limit == 0 {
		limit = longestRun
	}
	started, err := t.o.Hub.StartExecution(c.Context(), c.who, hub.NewExecution{Session: c.id(), Kernel: name, Code: in.Code, Program: "main.py", Args: in.Args, Timeout: limit})
	if err != nil {
		return err
	}
	run := &codeOutcome{}
	if err := t.follow(c, started.ID, run.event); err != nil {
		return err
	}
	if run.done.Outcome == kernel.OutcomeTimeout {
		return timedOut()
	}
	answer := codeAnswer{ExitCode: run.exitCode(), Result: run.out.String(), Results: run.shown}
	if len(run.charts) > 0 {
		answer.Artifacts = &artifacts{run.charts}
	}
	reply(c.w, http.StatusOK, answer)
	return nil
}

// follow has tell take the events of an execution until its end, and interrupts it when the client leaves.
func (t *Toolbox) follow(c *call, id string, tell func(e kernel.Event, text json.RawMessage)) error {
	ended := false
	defer func() {
		if !ended {
			ctx, cancel := context.WithTimeout(c.lasting(), killGrace)
			defer cancel()
			_, _ = t.o.Hub.InterruptExecution(ctx, c.who, id) // it may have ended by now
		}
	}()
	events, err := t.o.Hub.Follow(c.Context(), c.who, id, 0)
	if err != nil {
		return err
	}
	for n, err := range events {
		if err != nil {
			return err
		}
		if n.Gap {
			continue
		}
		e, err := transcript.ParseEvent(n.Event)
		if err != nil {
			continue // of a later version
		}
		tell(e, n.Event)
		if _, last := e.(kernel.Done); last {
			ended = true
		}
	}
	if !ended {
		return &fault{http.StatusInternalServerError, "", "the execution could not be followed to its end"}
	}
	return nil
}

// codeOutcome is what comes of code.
type codeOutcome struct {
	out    output
	charts []chart
	shown  []map[string]json.RawMessage
	size   int
	failed bool
	done   kernel.Done
}

func (o *codeOutcome) event(e kernel.Event, text json.RawMessage) {
	switch e := e.(type) {
	case kernel.Stream:
		o.out.add(e.Data)
	case kernel.Error:
		o.failed = true
		o.out.add([]byte(strings.Join(e.Traceback, "\n") + "\n"))
	case kernel.Rollback:
		o.out.add([]byte(e.String() + "\n"))
	case kernel.Display:
		if !e.Update {
			o.show(text)
		}
	case kernel.Result:
		o.show(text)
	case kernel.Done:
		o.done = e
		if e.Dropped > 0 {
			o.out.add(fmt.Appendf(nil, "\n[%d more bytes of output are left out]\n", e.Dropped))
		}
		if e.Message != "" && !o.failed {
			o.out.add([]byte(e.Message + "\n"))
		}
	}
}

// show takes what code showed, with a chart where it is a figure.
func (o *codeOutcome) show(text json.RawMessage) {
	data := bundle(text)
	if figure, png := data[displaysetup.ChartMIME], data["image/png"]; len(figure) > 0 && len(o.charts) < mostCharts {
		o.charts = append(o.charts, chartOf(figure, png))
	}
	plain := shown(data)
	if o.size += len(text); len(plain) > 0 && len(o.shown) < mostShown && o.size <= mostOutput {
		o.shown = append(o.shown, plain)
	}
}

// bundle is the data of an event that shows something, as the code said it.
func bundle(text json.RawMessage) map[string]json.RawMessage {
	var raw struct {
		Data map[string]json.RawMessage `json:"data"`
	}
	if json.Unmarshal(text, &raw) != nil {
		return nil
	}
	return raw.Data
}

// shown is a bundle without what is for cove's and E2B's clients alone.
func shown(data map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for mime, value := range data {
		if !strings.Contains(mime, "/vnd.cove.") && !strings.Contains(mime, "/vnd.e2b.") {
			out[mime] = value
		}
	}
	return out
}

// exitCode is what the interpreter's process would have ended with.
func (o *codeOutcome) exitCode() int {
	switch o.done.Outcome {
	case kernel.OutcomeOK, kernel.OutcomeError:
		return o.done.ExitCode
	case kernel.OutcomeInterrupted:
		return 130
	case kernel.OutcomeMemory:
		return 137
	}
	if n, err := process.ParseSignal(o.done.Signal); err == nil {
		return 128 + int(n)
	}
	return max(o.done.ExitCode, 1)
}
