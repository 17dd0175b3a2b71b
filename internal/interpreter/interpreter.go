// Package interpreter is the loop between a language model and a session: ask the model, run the code that it writes,
// read the outcome, repair, answer. It knows neither HTTP nor terminals; what happens is told as events.
//
// The model has one tool, python. A model that cannot call tools writes a fenced block instead. When a model that can
// call tools writes code as text, it is run in these cases only:
//   - it is a <tool_call>{...}</tool_call> element, which a server without a tool parser lets through;
//   - nothing has run in this turn yet, the model has not called the tool in this conversation yet, the message has a
//     closed ```python block, and the block either ends the message or is the only one in a message that says that the
//     model is going to run it. From then on the conversation uses the fenced protocol.
//
// So code that an answer merely shows, after the work was done, is not run.
package interpreter

import (
	"context"
	"errors"
	"iter"
	"time"

	"cove/internal/kernel"
	"cove/internal/model"
	"cove/internal/problem"
)

// Session is what the interpreter needs of a session.
type Session interface {
	// Execute runs code and yields what it emits, a kernel.Done last. An error means that the session cannot go on.
	Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error]
	// Files lists the workspace's files. Paths are relative to it, sizes in bytes; Created has no meaning.
	Files(ctx context.Context) ([]kernel.File, error)
	// ReadFile returns at most the first limit bytes of a workspace file.
	ReadFile(ctx context.Context, path string, limit int64) ([]byte, error)
	// Python returns the version of the session's Python and the versions of its packages by distribution name.
	Python() (version string, packages map[string]string)
}

// Limits bound one turn. A zero field takes the default of DefaultLimits; a negative one of Tokens means no limit.
type Limits struct {
	Steps     int           // executions, and attempts at one that could not be run
	Tokens    int64         // input and output of all model calls together; estimated where the provider does not say
	Time      time.Duration // of the whole turn, without the last answer when it is reached
	Execution time.Duration // of one execution
	Result    int           // bytes of one tool result, as sent to the model
	NoInstall bool          // the session does not install what code imports
}

// DefaultLimits are the limits of an interpreter that is given none.
func DefaultLimits() Limits {
	return Limits{Steps: 20, Tokens: 1_000_000, Time: 15 * time.Minute, Execution: 120 * time.Second, Result: 16000}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	if l.Steps <= 0 {
		l.Steps = d.Steps
	}
	if l.Tokens == 0 {
		l.Tokens = d.Tokens
	}
	if l.Time <= 0 {
		l.Time = d.Time
	}
	if l.Execution <= 0 {
		l.Execution = d.Execution
	}
	if l.Result <= 0 {
		l.Result = d.Result
	}
	return l
}

// Interpreter holds one conversation between a model and a session. It serves one turn at a time.
type Interpreter struct {
	model   model.Model
	session Session
	limits  Limits

	history history
	fenced  bool             // code comes as fenced blocks instead of tool calls
	called  bool             // the model called the tool as it should
	blind   bool             // the model refused images
	seen    map[string]int64 // sizes of the workspace files that the model was told of
	figures int              // figures shown in the conversation so far
	calls   int              // calls numbered so far, for those that come without an id
}

// New returns an interpreter with an empty conversation.
func New(m model.Model, s Session, l Limits) *Interpreter {
	return &Interpreter{
		model: m, session: s, limits: l.orDefault(),
		fenced: !m.Capabilities().Tools,
		seen:   map[string]int64{},
	}
}

// Ask runs one turn and yields what happens, an Answer last. Asking again continues the conversation, also after a turn
// that failed. An error ends the turn: a problem of the model, of the session, or one of kind Canceled when ctx was
// cancelled. Breaking off the range stops the turn.
func (i *Interpreter) Ask(ctx context.Context, prompt string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		t := &turn{Interpreter: i, deadline: time.Now().Add(i.limits.Time), yield: yield}
		mark := i.history.mark()
		answer, err := t.run(ctx, prompt)
		if err == nil {
			t.history.add(model.RoleAssistant, model.Text{Text: answer.Text})
			_ = t.emit(answer)
			return
		}
		t.abandon(mark)
		if !errors.Is(err, errStopped) {
			yield(nil, stopProblem(ctx, err))
		}
	}
}

// errStopped says that the range over the events was broken off.
var errStopped = errors.New("the turn's events are not wanted any more")

// stopProblem says why a turn failed; when ctx ended, that is the reason whatever broke first.
func stopProblem(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return problem.New(problem.Timeout, "turn_timeout", "the time given to the question is over").WithCause(err)
	default:
		return problem.New(problem.Canceled, "canceled", "the question was stopped before it was answered").WithCause(err)
	}
}
