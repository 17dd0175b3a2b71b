package openai

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

// options are what a client may choose about a stream.
type options struct {
	outputs bool // include code_interpreter_call.outputs
	live    bool // extra events with what code prints while it runs; OpenAI has none, and some of its clients stop at unknown events
	whole   bool // leave void items out: the client has not seen them begin
}

// translation turns a turn's events into OpenAI's. What it sends depends on the turn, its events and the options alone, so that a place in a
// stream means the same whenever it is asked for.
type translation struct {
	options
	response response
	turn     string
	send     func(event) error
	place    func() string // the id of the container, asked for when code first appears

	sequence  int64
	items     []*item
	open      *item         // the message or the reasoning that is being said
	codes     map[int]*item // by step
	calls     map[int]*item // by index
	container string
	running   *outputs
	programs  bool            // code is told of as programs
	program   string          // the call_id of the one that runs
	said      strings.Builder // the text since the last execution
	since     int             // the index of the first item since then
	files     []string
	failed    error // how the turn failed
	ran       bool  // code was started
	gap       bool  // events are lost
	at        time.Time
}

func newTranslation(t hub.Turn, k kept, o options, send func(event) error) *translation {
	return &translation{options: o, response: newResponse(t, k), turn: t.ID, send: send, container: containerID(t.Session), programs: hasPrograms(k.Echo.Tools),
		place: func() string { return "" }, codes: map[int]*item{}, calls: map[int]*item{}, at: t.Created}
}

func rawList() []json.RawMessage { return []json.RawMessage{} }

func orRaw(raw json.RawMessage, otherwise string) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(otherwise)
	}
	return raw
}

func (t *translation) emit(e event) error {
	e.Sequence = t.sequence
	t.sequence++
	return t.send(e)
}

// about is an event of an item.
func (t *translation) about(i *item, kind string) event {
	return event{Type: kind, OutputIndex: &i.index, ItemID: i.id}
}

// inPart is an event of an item's only content part.
func (t *translation) inPart(i *item, kind string) event {
	e := t.about(i, kind)
	e.ContentIndex = new(0)
	return e
}

// begin sends what every stream begins with.
func (t *translation) begin() error {
	for _, kind := range []string{"response.created", "response.in_progress"} {
		if err := t.emit(event{Type: kind, Response: t.snapshot()}); err != nil {
			return err
		}
	}
	return nil
}

func (t *translation) snapshot() *response {
	r := t.response
	r.Output = make([]any, 0, len(t.items))
	for _, i := range t.shown() {
		r.Output = append(r.Output, i.json(t.outputs))
	}
	return &r
}

// shown are the items of the response. A stream's clients want every item that was announced in the response at its end.
func (t *translation) shown() []*item {
	if !t.whole {
		return t.items
	}
	return slices.DeleteFunc(slices.Clone(t.items), func(i *item) bool { return i.void })
}

// take translates one event of the turn.
func (t *translation) take(e loop.Event) error {
	switch e := e.(type) {
	case loop.Text:
		return t.text(e.Delta)
	case loop.Reasoning:
		return t.think(e.Delta)
	case loop.Code:
		return t.code(e)
	case loop.Start:
		return t.start(e)
	case loop.Output:
		return t.output(e)
	case loop.Call:
		return t.call(e)
	case loop.Notice, loop.Refused:
		return t.notice()
	case loop.Answer:
		return t.answer(e)
	}
	return nil
}

// notice ends what was begun: code that was written until now and has not been started is not run, and the words are said again.
func (t *translation) notice() error {
	for _, i := range t.items[t.since:] {
		i.void = i.void || i.message != nil || i.reasoning != nil
	}
	t.said.Reset()
	return errors.Join(t.close(statusIncomplete), t.dropAll())
}

// add announces an item.
func (t *translation) add(i *item) error {
	i.index = len(t.items)
	t.items = append(t.items, i)
	return t.emit(event{Type: "response.output_item.added", OutputIndex: &i.index, Item: i.json(false)})
}

// finish says that an item is as it stays.
func (t *translation) finish(i *item, status string) error {
	i.done = true
	i.setStatus(status)
	return t.emit(event{Type: "response.output_item.done", OutputIndex: &i.index, Item: i.json(t.outputs)})
}

func (t *translation) newID(prefix string) string { return itemID(prefix, t.turn, len(t.items)) }

func (t *translation) text(delta string) error {
	if t.open == nil || t.open.message == nil {
		// Blank lines between code and words are not worth a message of their own.
		if strings.TrimSpace(delta) == "" {
			return nil
		}
		if err := t.close(statusCompleted); err != nil {
			return err
		}
		id := t.newID("msg")
		i := &item{id: id, message: &message{ID: id, Type: "message", Role: "assistant", Status: statusInProgress, Content: []textPart{}}}
		if err := t.add(i); err != nil {
			return err
		}
		t.open = i
		e := t.inPart(i, "response.content_part.added")
		e.Part = newTextPart()
		i.message.Content = []textPart{newTextPart()}
		if err := t.emit(e); err != nil {
			return err
		}
	}
	t.said.WriteString(delta)
	t.open.message.Content[0].Text.WriteString(delta)
	e := t.inPart(t.open, "response.output_text.delta")
	e.Delta, e.Logprobs = &delta, &[]struct{}{}
	return t.emit(e)
}

func (t *translation) think(delta string) error {
	if t.open == nil || t.open.reasoning == nil {
		if err := t.close(statusCompleted); err != nil {
			return err
		}
		id := t.newID("rs")
		i := &item{id: id, reasoning: &reasoning{ID: id, Type: "reasoning", Status: statusInProgress, Summary: []struct{}{}, Content: []reasoningPart{}}}
		if err := t.add(i); err != nil {
			return err
		}
		t.open = i
		e := t.inPart(i, "response.content_part.added")
		e.Part = newReasoningPart()
		i.reasoning.Content = []reasoningPart{newReasoningPart()}
		if err := t.emit(e); err != nil {
			return err
		}
	}
	t.open.reasoning.Content[0].Text.WriteString(delta)
	e := t.inPart(t.open, "response.reasoning_text.delta")
	e.Delta = &delta
	return t.emit(e)
}

// close ends the message or the reasoning that is being said, if any.
func (t *translation) close(status string) error {
	i := t.open
	if i == nil {
		return nil
	}
	t.open = nil
	if i.reasoning != nil {
		part := i.reasoning.Content[0]
		done := t.inPart(i, "response.reasoning_text.done")
		done.Text = new(part.Text.String())
		return t.closePart(i, done, part, status)
	}
	part := &i.message.Content[0]
	for n := range part.Annotations {
		e := t.inPart(i, "response.output_text.annotation.added")
		e.AnnotationIndex, e.Annotation = &n, &part.Annotations[n]
		if err := t.emit(e); err != nil {
			return err
		}
	}
	done := t.inPart(i, "response.output_text.done")
	done.Text, done.Logprobs = new(part.Text.String()), &[]struct{}{}
	return t.closePart(i, done, *part, status)
}

func (t *translation) closePart(i *item, done event, part any, status string) error {
	closed := t.inPart(i, "response.content_part.done")
	closed.Part = part
	return errors.Join(t.emit(done), t.emit(closed), t.finish(i, status))
}

// call translates the pieces of a call of one of the client's functions.
func (t *translation) call(e loop.Call) error {
	i := t.calls[e.Index]
	if i == nil || e.Name != "" {
		if err := t.close(statusCompleted); err != nil {
			return err
		}
		if i != nil && !i.done { // the answer broke off, and the call is made anew
			i.void = true
			if err := t.finish(i, statusIncomplete); err != nil {
				return err
			}
		}
		id := t.newID("fc")
		i = &item{id: id, call: &functionCall{ID: id, Type: "function_call", Status: statusInProgress, CallID: e.ID, Name: e.Name, Arguments: grown(""), Caller: callerOf(e.ID)}}
		t.calls[e.Index] = i
		if err := t.add(i); err != nil {
			return err
		}
	}
	if e.Delta == "" {
		return nil
	}
	i.call.Arguments.WriteString(e.Delta)
	d := t.about(i, "response.function_call_arguments.delta")
	d.Delta = &e.Delta
	return t.emit(d)
}

// end tells how a turn ended that has no answer.
func (t *translation) end(err error) error {
	t.failed = err
	p := problem.Of(err)
	status, kind := statusFailed, "response.failed"
	if p.Kind == problem.Canceled {
		status, kind = statusCancelled, "response.incomplete"
	}
	if err := t.finishAll(); err != nil {
		return err
	}
	t.response.Status = status
	if status == statusFailed {
		t.response.Error = responseErrorOf(faultOf(err))
	}
	return t.emit(event{Type: kind, Response: t.snapshot()})
}

// finishAll closes what is open when nothing more comes.
func (t *translation) finishAll() error {
	if err := errors.Join(t.close(statusIncomplete), t.dropAll()); err != nil {
		return err
	}
	for _, i := range t.items {
		if i.done {
			continue
		}
		i.void = i.call != nil // a call of the client's function that is not complete is none
		if i.code != nil && t.running != nil {
			i.code.all = t.running.all()
		}
		if err := t.finish(i, statusIncomplete); err != nil {
			return err
		}
	}
	return nil
}

// live tells what code prints while it runs, for those who asked.
func (t *translation) tellLive(i *item, e kernel.Event) error {
	stream, ok := e.(kernel.Stream)
	if !ok || !t.live {
		return nil
	}
	out := t.about(i, "response.code_interpreter_call.output.delta")
	text := strings.ToValidUTF8(string(stream.Data), "\ufffd")
	out.Stream, out.Delta = stream.Name, &text
	return t.emit(out)
}
