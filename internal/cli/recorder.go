package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"time"

	"cove/internal/auth"
	"cove/internal/config"
	"cove/internal/hub"
	"cove/internal/ident"
	"cove/internal/interpreter"
	"cove/internal/kernel"
	"cove/internal/problem"
	"cove/internal/transcript"
)

const (
	// recordedBytes bounds what one turn leaves in the history; what is beyond is left out, ends of executions excepted.
	recordedBytes = 16 << 20
	// recordingTime bounds how long a command waits for its history to be written.
	recordingTime = 10 * time.Second
	recordBatch   = 256
)

// recorder notes what happens in turns of this process and writes it into the database when a turn is over: a server that starts meanwhile
// must not take it for one of its own that was lost. A nil one records nothing.
type recorder struct {
	p       *Program
	records chan opened // the database, as soon as it is open
	have    *opened

	conversation hub.Conversation
	known        bool // the conversation is in the database
	parent       string
	turn         *recording
}

type opened struct {
	records *Records
	err     error
}

// recording is one turn.
type recording struct {
	turn       hub.Turn
	events     []hub.StoredEvent
	executions []hub.Execution
	bytes      int
	left       int64 // bytes that were left out
	answer     *interpreter.Answer
}

// newRecorder opens the database beside what else is started. It goes on with g when that is given.
func (p *Program) newRecorder(ctx context.Context, c config.Config, g *goingOn) *recorder {
	if p.Records == nil || !c.Store.History {
		return nil
	}
	r := &recorder{p: p, records: make(chan opened, 1)}
	if g != nil {
		r.conversation, r.known, r.parent = g.conversation, true, g.parent
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordingTime)
		defer cancel()
		records, err := p.Records(ctx, c)
		r.records <- opened{records, err}
	}()
	return r
}

// open waits for the database; what is wrong with it is said once.
func (r *recorder) open() *Records {
	if r.have == nil {
		o := <-r.records
		r.have = &o
		if o.err != nil {
			r.complain(o.err)
		}
	}
	return r.have.records
}

func (r *recorder) complain(err error) {
	fmt.Fprintf(r.p.Err, "cove: this is not kept in the history: %s\n", oneLine(message(err)))
}

func (r *recorder) close() {
	if r == nil {
		return
	}
	if records := r.open(); records != nil {
		_ = records.Close()
		r.have.records = nil
	}
}

// renew has the next turn begin a conversation.
func (r *recorder) renew() {
	if r != nil {
		r.conversation, r.known, r.parent = hub.Conversation{}, false, ""
	}
}

// begin notes that a turn begins. Meta is what the conversation is to remember, such as the names of files.
func (r *recorder) begin(prompt, modelName string, meta map[string]string) {
	if r == nil {
		return
	}
	who, now := auth.Local(), time.Now().UTC()
	if r.conversation.ID == "" {
		r.conversation = hub.Conversation{ID: ident.New(ident.Conversation), Project: who.Project, User: who.User, Title: titleOf(prompt), Created: now, Source: "cli"}
	}
	if len(meta) > 0 {
		merged := maps.Clone(r.conversation.Metadata)
		if merged == nil {
			merged = map[string]string{}
		}
		maps.Copy(merged, meta)
		r.conversation.Metadata = merged
	}
	r.conversation.Model, r.conversation.Used = modelName, now
	r.turn = &recording{turn: hub.Turn{ID: ident.New(ident.Turn), Project: who.Project, User: who.User, Conversation: r.conversation.ID, Parent: r.parent,
		State: hub.TurnRunning, Model: modelName, Prompt: prompt, Created: now}}
}

// titleOf is the beginning of a question as one line.
func titleOf(prompt string) string {
	const longest = 80
	runes := []rune(oneLine(prompt))
	if len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return string(runes)
}

// watch passes events on and notes them.
func (r *recorder) watch(events iter.Seq2[interpreter.Event, error]) iter.Seq2[interpreter.Event, error] {
	if r == nil || r.turn == nil {
		return events
	}
	return func(yield func(interpreter.Event, error) bool) {
		for e, err := range events {
			if err == nil {
				r.turn.note(e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (t *recording) note(e interpreter.Event) {
	now := time.Now().UTC()
	stored := hub.StoredEvent{Stream: t.turn.ID, Seq: int64(len(t.events) + 1), At: now}
	final := false
	var err error
	switch e := e.(type) {
	case interpreter.Start:
		t.start(e, now)
		stored.Step = e.Step
		stored.Body, err = transcript.TurnEvent(e)
	case interpreter.Output:
		if i, ok := e.Event.(kernel.Install); ok && i.Progress != nil || len(t.executions) == 0 {
			return // what is over soon is no history
		}
		x := &t.executions[len(t.executions)-1]
		stored.Execution, stored.Step = x.ID, e.Step
		stored.Body, err = transcript.TurnEvent(e)
		if d, ok := e.Event.(kernel.Done); ok {
			final = true
			finish(x, d, now)
		}
	case interpreter.Answer:
		t.answer, final = &e, true
		stored.Body, err = transcript.TurnEvent(e)
	default:
		stored.Body, err = transcript.TurnEvent(e)
	}
	if err != nil {
		return
	}
	if !final && t.bytes+len(stored.Body) > recordedBytes {
		t.left += int64(len(stored.Body))
		return
	}
	t.bytes += len(stored.Body)
	t.events = append(t.events, stored)
	if n := len(t.executions); n > 0 && stored.Execution != "" {
		t.executions[n-1].Events = stored.Seq
	}
}

func (t *recording) start(e interpreter.Start, now time.Time) {
	who := auth.Local()
	t.executions = append(t.executions, hub.Execution{ID: ident.New(ident.Execution), Project: who.Project, User: who.User, Kernel: "main", Turn: t.turn.ID, Step: e.Step,
		Code: e.Code, State: hub.ExecutionRunning, Created: now, Started: now})
}

func finish(x *hub.Execution, d kernel.Done, now time.Time) {
	x.State, x.ExitCode, x.Message, x.Lost = hub.ExecutionState(d.Outcome), d.ExitCode, d.Message, d.Lost
	x.Wall, x.Dropped, x.Finished = d.Wall, d.Dropped, now
}

// end writes the turn. failed is why there is no answer. Its trouble is a warning and nothing more.
func (r *recorder) end(failed error) {
	if r == nil || r.turn == nil {
		return
	}
	t := r.turn
	r.turn = nil
	records := r.open()
	if records == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), recordingTime)
	defer cancel()
	t.close(failed)
	if err := r.write(ctx, records.Store, t); err != nil {
		r.complain(err)
		return
	}
	r.parent = t.turn.ID
}

// close gives the turn and every execution of it their final states.
func (t *recording) close(failed error) {
	now := time.Now().UTC()
	for k := range t.executions {
		if !t.executions[k].State.Final() {
			t.executions[k].State, t.executions[k].Finished = hub.ExecutionState(kernel.OutcomeInterrupted), now
			t.executions[k].Message = "it was stopped before its end was known"
		}
	}
	t.turn.Finished, t.turn.Steps, t.turn.Events = now, len(t.executions), int64(len(t.events))
	if stopped, ok := errors.AsType[*interpreter.Stopped](failed); ok {
		t.turn.Messages, t.turn.Usage, t.turn.Steps = stopped.Messages, stopped.Usage, stopped.Steps
	}
	switch p := problem.Of(failed); {
	case t.answer != nil:
		a := t.answer
		t.turn.State, t.turn.Answer, t.turn.Reason = hub.TurnCompleted, a.Text, string(a.Reason)
		t.turn.Messages, t.turn.Usage, t.turn.Steps = a.Messages, a.Usage, a.Steps
	case p == nil || p.Kind == problem.Canceled:
		t.turn.State = hub.TurnCanceled
	default:
		t.turn.State = hub.TurnFailed
		text, err := json.Marshal(map[string]any{"kind": p.Kind, "code": p.Code, "message": message(failed), "hint": p.Hint})
		if err == nil {
			t.turn.Problem = text
		}
	}
}

func (r *recorder) write(ctx context.Context, s hub.Store, t *recording) error {
	if err := r.writeConversation(ctx, s); err != nil {
		return err
	}
	begun := t.turn
	begun.State, begun.Answer, begun.Finished = hub.TurnRunning, "", time.Time{}
	if err := s.AddTurn(ctx, begun); err != nil {
		return err
	}
	for from := 0; from < len(t.events); from += recordBatch {
		if err := s.AddEvents(ctx, t.events[from:min(from+recordBatch, len(t.events))]); err != nil {
			return err
		}
	}
	var failed []error
	for _, x := range t.executions {
		begun := x
		begun.State, begun.Finished = hub.ExecutionRunning, time.Time{}
		if err := s.AddExecution(ctx, begun); err != nil {
			failed = append(failed, err)
			continue
		}
		_, err := s.FinishExecution(ctx, x, nil)
		failed = append(failed, err)
	}
	_, err := s.FinishTurn(ctx, t.turn, nil)
	return errors.Join(append(failed, err)...)
}

func (r *recorder) writeConversation(ctx context.Context, s hub.Store) error {
	c := r.conversation
	if !r.known {
		if err := s.AddConversation(ctx, c); err != nil {
			return err
		}
		r.known = true
		return nil
	}
	_, err := s.UpdateConversation(ctx, c.Project, c.ID, func(old *hub.Conversation) error {
		old.Model, old.Metadata = c.Model, c.Metadata
		return nil
	})
	return err
}
