package jupyter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
	"cove/internal/server/stream"
	"cove/internal/server/transcript"
)

// longestText bounds the text of one message, in bytes. Libraries of WebSockets take no messages of more than 1 MiB unless they are told to, and JSON
// can write a byte in six.
const longestText = 128 << 10

// execution is code of a client that runs.
type execution struct {
	k     *shared
	r     *request
	count int
	asks  executeRequest
	error *kernel.Error // that was shown
	done  *kernel.Done
	// payload is what the client is to do besides.
	payload []any
	// part says that this is an expression of another execution: nothing is told of its value and its error, which end up in value and error.
	part  bool
	value *kernel.Result
	// restarts is how often clients had asked for a new interpreter when it began.
	restarts int
}

type executeRequest struct {
	Code        string                     `json:"code"`
	Silent      bool                       `json:"silent"`
	History     *bool                      `json:"store_history"`
	Expressions map[string]json.RawMessage `json:"user_expressions"`
	Stdin       *bool                      `json:"allow_stdin"`
	Stop        *bool                      `json:"stop_on_error"`
}

func yes(b *bool) bool { return b == nil || *b }

// numbered says whether the execution has a number of its own.
func (in executeRequest) numbered() bool { return !in.Silent && yes(in.History) }

// execute runs code and tells what comes of it.
func (k *shared) execute(r *request) {
	x := &execution{k: k, r: r}
	r.into(&x.asks)
	if err := k.enter(r); err != nil {
		k.fail(r, err)
		x.stopOthers()
		return
	}
	blank := strings.TrimSpace(x.asks.Code) == ""
	if blank && len(x.asks.Expressions) == 0 {
		x.count = k.number()
		x.reply(nil)
		return
	}
	k.mu.Lock()
	if x.asks.numbered() && !blank {
		k.count++
	}
	x.count, x.restarts = k.count, k.restarts
	k.mu.Unlock()
	defer k.run()()
	if !x.asks.Silent && !blank {
		k.publish("execute_input", r.header, map[string]any{"code": x.asks.Code, "execution_count": x.count}, nil)
	}
	over := make(chan struct{})
	defer close(over)
	n := hub.NewExecution{Session: k.place.session.ID, Kernel: k.place.kernel, Code: x.asks.Code, Unnumbered: !x.asks.numbered(), Payloads: true, Parent: r.id}
	if yes(x.asks.Stdin) {
		n.Input = func(prompt string, password bool) (string, error) { return k.ask(over, r, prompt, password) }
	}
	var err error
	if !blank {
		err = x.run(n)
	}
	var values map[string]any
	if err == nil && x.error == nil {
		values, err = x.evaluate(n)
	}
	if err != nil {
		k.fail(r, err)
		x.stopOthers()
		return
	}
	x.reply(values)
}

// run says that code runs, until over is called.
func (k *shared) run() (over func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running, k.stop, k.execution = true, false, ""
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.running, k.execution = false, ""
	}
}

// start starts code. A kernel of a personal session that was begun after the state that the session has gone back to begins anew.
func (x *execution) start(n hub.NewExecution) (hub.Execution, error) {
	e, err := x.k.s.Hub.StartExecution(x.r.ctx, x.r.who, n)
	if !x.k.place.personal || !problem.Has(err, problem.KernelNotFound) {
		return e, err
	}
	if _, err = x.k.s.Hub.StartKernel(x.r.ctx, x.r.who, n.Session, n.Kernel); err != nil {
		return e, err
	}
	x.anew()
	return x.k.s.Hub.StartExecution(x.r.ctx, x.r.who, n)
}

// anew tells clients of a new interpreter.
func (x *execution) anew() {
	x.k.tell(stateRestarting, nil)
	x.k.renewed()
	x.k.tell(stateBusy, nil)
}

func (x *execution) run(n hub.NewExecution) error {
	k := x.k
	e, err := x.start(n)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.execution = e.ID
	stop := k.stop
	k.hide(e.ID, n.Unnumbered)
	k.mu.Unlock()
	if stop { // the interrupt came first
		if _, err := k.s.Hub.InterruptExecution(x.r.ctx, x.r.who, e.ID); err != nil {
			return err
		}
	}
	events, err := k.s.Hub.Follow(x.r.ctx, x.r.who, e.ID, 0)
	if err != nil {
		return err
	}
	for n, err := range stream.Read(events, transcript.ParseEvent) {
		if err != nil {
			return err
		}
		if n.Gap {
			x.note("some of the output is not kept any more")
			continue
		}
		x.take(n.Event)
	}
	if x.done == nil {
		return problem.New(problem.ExecutionUnfinished, "the session did not say how the execution ended")
	}
	return nil
}

// take tells of one event.
func (x *execution) take(event kernel.Event) {
	switch e := event.(type) {
	case kernel.Stream:
		x.text(e.Name, e.Data)
	case kernel.Display:
		if m := commOf(e.Data); m != nil {
			x.said(m)
			return
		}
		if p := payloadOf(e.Data); p != nil {
			x.payload = append(x.payload, p)
			return
		}
		content := map[string]any{"data": shown(e.Data), "metadata": orEmpty(e.Metadata), "transient": map[string]any{}}
		kind := "display_data"
		if e.ID != "" {
			content["transient"] = map[string]any{"display_id": e.ID}
		}
		if e.Update {
			kind = "update_display_data"
		}
		x.publish(kind, content)
	case kernel.Result:
		if x.part {
			x.value = &e
		}
		if x.asks.Silent {
			return
		}
		if x.asks.numbered() && e.Count > 0 {
			x.count = e.Count
			x.k.renumber(e.Count)
		}
		x.publish("execute_result", map[string]any{"data": shown(e.Data), "metadata": orEmpty(e.Metadata), "execution_count": x.count, "transient": map[string]any{}})
	case kernel.Error:
		x.fail(e)
	case kernel.ClearOutput:
		x.publish("clear_output", map[string]any{"wait": e.Wait})
	case kernel.Install:
		x.installed(e)
	case kernel.Rollback:
		x.note(e.String())
	case kernel.Done:
		x.end(e)
	}
}

func (x *execution) publish(kind string, content map[string]any) {
	x.k.publish(kind, x.r.header, content, nil)
}

// text tells what code wrote, in pieces that clients take.
func (x *execution) text(name string, data []byte) {
	data = bytes.ToValidUTF8(data, []byte("\uFFFD"))
	for len(data) > 0 {
		n := min(len(data), longestText)
		for n < len(data) && !utf8.RuneStart(data[n]) {
			n--
		}
		x.publish("stream", map[string]any{"name": name, "text": string(data[:n])})
		data = data[n:]
	}
}

// note tells what is to be known of the execution and is not the code's output.
func (x *execution) note(text string) { x.text("stderr", []byte("cove: "+text+"\n")) }

func (x *execution) fail(e kernel.Error) {
	if e.Traceback == nil {
		e.Traceback = []string{}
	}
	if e.Hint != "" {
		e.Traceback = append(e.Traceback, "Hint: "+e.Hint)
	}
	x.error = &e
	if x.part {
		return
	}
	x.publish("error", map[string]any{"ename": e.Name, "evalue": e.Value, "traceback": e.Traceback})
}

// installed tells why something could not be installed. What could is there, and code of notebooks expects no word of that.
func (x *execution) installed(e kernel.Install) {
	for _, one := range e.Provision.Refused {
		x.note(one.Name + " was not installed: " + one.Reason)
	}
	if e.Failure != nil {
		x.note("packages were not installed: " + sentence(e.Failure))
	}
}

// end tells how an execution ended that did not end by itself.
func (x *execution) end(d kernel.Done) {
	x.done = &d
	if d.Dropped > 0 {
		x.note(fmt.Sprintf("%d bytes of output beyond the limit were dropped", d.Dropped))
	}
	if d.Outcome == kernel.OutcomeOK || d.Outcome == kernel.OutcomeError && x.error != nil {
		return
	}
	if x.error == nil || d.Outcome != kernel.OutcomeInterrupted { // an interrupt's exception says it all
		text := d.Message
		if text == "" {
			text = fmt.Sprintf("the code ended with exit code %d", d.ExitCode)
		}
		x.fail(kernel.Error{Name: nameOf(d.Outcome), Value: text, Traceback: []string{nameOf(d.Outcome) + ": " + text}})
	}
	if d.Lost != kernel.LostNothing && !x.k.restartedSince(x.restarts) { // clients that asked for it know
		x.anew()
	}
}

// nameOf is an outcome as the name of an exception, which clients expect.
func nameOf(o kernel.Outcome) string {
	switch o {
	case kernel.OutcomeTimeout:
		return "TimeoutError"
	case kernel.OutcomeInterrupted:
		return "KeyboardInterrupt"
	case kernel.OutcomeMemory:
		return "MemoryError"
	case kernel.OutcomeError:
		return "SystemExit"
	}
	return "DeadKernelError"
}

// reply ends the execution. values are those of the expressions.
func (x *execution) reply(values map[string]any) {
	content := map[string]any{"status": "ok", "execution_count": x.count, "payload": append([]any{}, x.payload...), "user_expressions": orEmpty(values)}
	if x.error != nil {
		content["status"], content["ename"], content["evalue"], content["traceback"] = "error", x.error.Name, x.error.Value, x.error.Traceback
		x.stopOthers()
	}
	x.k.reply(x.r, content)
}

// stopOthers has code that waits not run, since code before it failed.
func (x *execution) stopOthers() {
	if !yes(x.asks.Stop) {
		return
	}
	x.k.mu.Lock()
	defer x.k.mu.Unlock()
	for _, r := range x.k.queue {
		r.aborted = r.aborted || r.kind == "execute_request"
	}
}

// shown is what clients can show of a bundle: cove's own types are for its page.
func shown(b kernel.Bundle) map[string]any {
	out := map[string]any{}
	for mime, value := range b {
		if !strings.Contains(mime, "/vnd.cove.") {
			out[mime] = value
		}
	}
	return out
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
