package loop

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"

	"cove/internal/code/advice"
	"cove/internal/llm/model"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
)

// Turn is one turn of a conversation that the caller keeps.
type Turn struct {
	// History is the conversation until now, as Answer.Messages gave it, turn after turn. A client may have kept it: what providers would refuse in it is
	// corrected, and a call without a result gets one that says so.
	History []model.Message
	// Input is what comes next: words and images of the user, or results of the functions that the last turn's Calls named.
	Input []model.Message
	// Instructions are the client's own, after cove's.
	Instructions string
	// Python offers the interpreter's tool. Without it the session is not used and may be nil.
	Python bool
	// Fresh says that the session is not the one of History; the model is told so.
	Fresh bool
	// Used says of a Fresh session that code has run in it before, as in a fork: what History speaks of may be there.
	Used bool
	// Rolledback says in a sentence that the session went back to an earlier state, and what was lost by that; the model is told so. "": it did not.
	Rolledback string
	// Screen, where it is set, says what becomes of a program of the model's before it runs; nil: each waits where Approve is set. It is asked again about code that the user
	// has changed.
	Screen func(code string) Screening
	// Approve, where it is set, waits for what the user says about each program of the model's before it runs; an Approval has told of it. Its error ends the
	// turn. The wait does not count against Limits.Time.
	Approve func(ctx context.Context, step int) (Decision, error)
	// Look, where it is set, looks at the model's code when it has run, and says what was found: the user is told all of it, and the model of mistakes and slow
	// forms. It has to return soon after its context ends.
	Look func(ctx context.Context, step int, code string) advice.Report
	// Tools are the client's functions. With a model that cannot call tools, they are a problem. With Python none may be named "python".
	Tools []model.Tool
	// Offered are the functions that code may call by itself, and OfferedGlobals says that they are names of the code's own, to be awaited. The model is told of them.
	Offered        *tool.Set
	OfferedGlobals bool
	// Suspended is code of an earlier turn that goes on before the model is asked, and Resume yields what it emits then, as Executor.Execute. Input need not have words then.
	Suspended *Suspended
	Resume    func(ctx context.Context) iter.Seq2[kernel.Event, error]
	// Kernels is in how many kernels besides the main one the model may have code run, and code of one answer at the same time; 0: none.
	Kernels int
	// Choice holds until the first call. With "none" nothing is run and nothing called; models that cannot call tools take the rest as "auto".
	Choice      model.ToolChoice
	Parallel    *bool
	Context     int64 // tokens that the model takes at once; 0: unknown
	MaxCalls    int   // executions; 0 leaves it to Limits.Steps
	MaxTokens   int   // of each answer; 0 leaves it to the provider
	Temperature *float64
	TopP        *float64
	Format      model.Format // of the last answer's words, which Instructions ask for too
	Effort      string       // see model.Request
	Stop        []string     // texts that end an answer; without Python, whose code they would end
	Extra       map[string]json.RawMessage
}

// Stopped is the error of a turn: why it failed, and what it had added to the conversation.
type Stopped struct {
	Err error
	// Messages are what the turn adds to the conversation, as Answer.Messages; none where no code had run, so that the failed turn leaves the conversation
	// unchanged.
	Messages []model.Message
	Steps    int
	Usage    model.Usage
	Last     model.Usage // as Answer.Last
}

func (s *Stopped) Error() string { return s.Err.Error() }
func (s *Stopped) Unwrap() error { return s.Err }

// Run runs one turn and yields what happens, an Answer last. The error that ends a turn is a *Stopped: a problem of the model, of the session, or one of kind
// Canceled when ctx was cancelled. Leaving the range stops the turn.
func Run(ctx context.Context, m model.Model, s Executor, l Limits, t Turn) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		turn := newTurn(m, s, l, t, yield)
		messages, err := turn.whole(ctx)
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, &Stopped{Err: stopProblem(ctx, err), Messages: messages, Steps: turn.steps, Usage: turn.usage, Last: turn.last})
		}
	}
}

// Check returns the problem with which Run would refuse a turn that is not valid, or that needs what the model is known not to support.
func Check(m model.Model, t Turn) error { return newTurn(m, nil, DefaultLimits(), t, nil).check() }

// learned is what a model has turned out not to support, whatever its description says.
type learned struct {
	fenced bool // code comes as fenced blocks instead of tool calls
	blind  bool // it refused images
}

func newTurn(m model.Model, s Executor, l Limits, spec Turn, yield func(Event, error) bool) *turn {
	t := &turn{model: m, session: s, limits: l, spec: spec, yield: yield, told: map[string]bool{}}
	t.end = deadlineIn(t.limits.Time)
	t.deadline = t.end.add(-min(lastAnswer, t.limits.Time/4))
	t.history.messages, t.history.room = slices.Clone(spec.History), budget(spec.Context)
	if spec.Python {
		t.history.messages = past(t.history.messages, t.history.room)
	}
	t.python = spec.Python && spec.Choice.Mode != "none"
	t.known = recall(spec.History)
	t.learned.fenced = !m.Capabilities().Tools || (t.known.fenced && len(spec.Tools) == 0)
	return t
}

// whole runs the turn and returns what it adds to the conversation, also when the turn failed after code had run.
func (t *turn) whole(ctx context.Context) ([]model.Message, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	mark := len(t.history.messages)
	// Waiting for the kernel has no limit of its own, and a model may take any time: after the deadline the turn only does what takes no time.
	ctx, cancel := t.bound(ctx)
	defer cancel()
	answer, err := t.run(ctx)
	if err != nil && t.steps == 0 {
		return nil, err
	}
	switch {
	case err != nil:
		t.history.add(model.RoleAssistant, model.Text{Text: "(The turn was stopped before an answer.)"})
	case answer.Reason != ClientCalls:
		t.history.add(model.RoleAssistant, model.Text{Text: answer.Text})
	}
	added := slices.Clone(t.history.messages[mark:])
	if err == nil {
		answer.Messages = added
		_ = t.emit(answer)
	}
	return added, err
}
