// Package loop is the loop between a language model and a session: ask the model, run the code that it writes,
// read the outcome, repair, answer. It knows neither HTTP nor terminals; what happens is told as events.
//
// Run runs one turn of a conversation that its caller keeps. Beside the interpreter's tool the model may be offered functions of the client; Run returns calls
// of these, and does not run them.
//
// The interpreter's tool is python. A model that cannot call tools writes a fenced block instead. When a model that can
// call tools writes code as text, it is run in these cases only:
//   - it is a <tool_call>{...}</tool_call> element, which a server without a tool parser lets through;
//   - nothing has run in this turn yet, the model has not called the tool in this conversation yet, the message has a
//     closed ```python block, and the block either ends the message or is the only one in a message that says that the
//     model is going to run it. From then on the conversation uses the fenced protocol.
//
// So code that an answer merely shows, after the work was done, is not run.
package loop

import (
	"context"
	"errors"
	"iter"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/workspace"
	"cove/internal/python/kernel"
)

// Executor runs the code that the model writes: what the interpreter needs of a session.
type Executor interface {
	// Execute runs code and yields what it emits, a kernel.Done last. An error means that the session cannot go on. It is called again while code runs beside it.
	Execute(ctx context.Context, p Program) iter.Seq2[kernel.Event, error]
	// Files lists the workspace's files. Paths are relative to it, sizes in bytes; Created has no meaning.
	Files(ctx context.Context) ([]kernel.File, error)
	// ReadFile returns at most the first limit bytes of a workspace file.
	ReadFile(ctx context.Context, path string, limit int64) ([]byte, error)
	// Tell says what a model is told of workspace files, in the order of the paths. Everything in it comes from the sandbox, bounded.
	Tell(ctx context.Context, paths []string) ([]workspace.Told, error)
	// Variables returns the variables of the kernel that runs the code, the newest last. Everything in them comes from the sandbox.
	Variables(ctx context.Context) (kernel.Variables, error)
	// Python returns the version of the session's Python and the versions of its packages by distribution name.
	Python() (version string, packages map[string]string)
	// May returns what code may do beyond its sandbox's own files: the rules by which it may connect to other machines, nil where it reaches nothing, and whether it may become root,
	// with sudo, and change the system.
	May() (reach []string, root bool)
}

// Program is code of the model's that is to run.
type Program struct {
	Step    int // the Start with this number tells of it, perhaps later
	Code    string
	Edited  bool          // it is not the model's own
	Kernel  string        // that it runs in, which is started where it is not there; "": the main one
	Timeout time.Duration // wall clock; 0: none
	Beside  bool          // other code runs at the same time, and its events are taken at once, to be told later
}

// Limits bound one turn. 0 is no limit; those that must not be without one have to be above 0, and say so. Start from DefaultLimits.
type Limits struct {
	Steps     int           // executions, and attempts at one that could not be run; above 0
	Tokens    int64         // input and output of all model calls together; estimated where the provider does not say
	Time      time.Duration // of the whole turn: model calls, retries, code, and the last answer from what is known, for which a part is kept back
	Execution time.Duration // of one execution
	Result    int           // bytes of one tool result, as sent to the model; above 0
	NoInstall bool          // the session does not install what code imports
}

// DefaultLimits are the limits without settings.
func DefaultLimits() Limits {
	return Limits{Steps: 20, Tokens: 1_000_000, Time: 15 * time.Minute, Execution: 120 * time.Second, Result: 16000}
}

// Check returns a problem for a limit that must be above 0 and is not, or is below 0.
func (l Limits) Check() error {
	switch {
	case l.Steps < 1 || l.Result < 1:
		return problem.New(problem.ConfigInvalid, "a turn's limits of steps and of the bytes of a result must be above 0")
	case l.Tokens < 0 || l.Time < 0 || l.Execution < 0:
		return problem.New(problem.ConfigInvalid, "a turn's limits of tokens and of time must be 0 or more")
	}
	return nil
}

// errStopped says that the consumer has left the range over the events.
var errStopped = errors.New("the consumer of the turn's events has left")

// stopProblem says why a turn failed; when ctx has ended, that is the reason, whatever failed first.
func stopProblem(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return problem.New(problem.TurnTimeout, "the time limit of the question was reached").WithCause(err)
	default:
		return problem.New(problem.GivenUp, "the question was stopped before it was answered").WithCause(err)
	}
}
