package interpreter

import (
	"context"
	"errors"
	"iter"

	"cove/internal/model"
)

// Turn is one turn of a conversation that somebody else keeps.
type Turn struct {
	// History is the conversation until now, as Answer.Messages gave it, turn after turn.
	History []model.Message
	// Input is what comes next: words and images of the user, or results of the functions that the last turn's Calls named.
	Input []model.Message
	// Instructions are the client's own, behind cove's.
	Instructions string
	// Python offers the interpreter's tool. Without it the session is not used and may be nil.
	Python      bool
	Tools       []model.Tool // the client's functions
	Choice      model.ToolChoice
	Parallel    *bool
	MaxCalls    int // executions; 0: Limits.Steps
	MaxTokens   int // of each answer; 0 leaves it to the provider
	Temperature *float64
	TopP        *float64
}

// Run runs one turn and yields what happens, as Interpreter.Ask does.
func Run(ctx context.Context, m model.Model, s Session, l Limits, t Turn) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) { yield(nil, errors.New("not written yet")) }
}
