package loop

import (
	"cove/internal/code/advice"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
)

// Event is one thing that happens in a turn. It is a closed sum type: Text, Reasoning, Code, Approval, Refused, Start, Output,
// Findings, Call, Notice and Answer.
type Event interface{ event() }

// Text continues the model's words, as they stream.
type Text struct{ Delta string }

// Reasoning continues the model's visible reasoning.
type Reasoning struct{ Delta string }

// Code continues the code that the model is writing for the execution Step. When it turns out that the code is not to
// be run (the call was cut off, an earlier call failed), a Notice says so, no Start follows and the number is used again.
type Code struct {
	Step  int // executions of the turn, from 1
	Delta string
}

// Start says that an execution begins. Code is complete; it is what runs, whatever the Code deltas were.
type Start struct {
	Step   int
	Code   string
	Edited bool   // by the user: it is not what the model wrote
	Kernel string // that it runs in; "": the main one
	// Resumed says that it is the code of an earlier turn, which goes on where it waited for the client.
	Resumed bool
	Printed string // of code that goes on: what it has printed before, in the middle of which much may be cut out
	// Execution is the id of the execution, where executions have records. Run does not set it.
	Execution string
}

// Approval says that code of the model's waits for the user's word, see Turn.Approve. A Start with the same Step follows, or a Refused.
type Approval struct {
	Step int
	Code string
	Why  string // what in it calls for a look, where not all code waits; or ""
}

// Refused says that the user did not want the code of the Approval with the same Step to run, or that rules did not let it run. The number is not used again.
type Refused struct {
	Step int
	Note string // the user's, for the model; or ""
	Why  string // what in the code the rules are about; "": the user refused it
	Code string // that the rules are about, where no Approval told of it
}

// Output is something that the execution Step emitted, its kernel.Done included.
type Output struct {
	Step  int
	Event kernel.Event
}

// Findings says what a look at the code of an execution found; see Turn.Look. It comes after the execution's kernel.Done, at most once.
type Findings struct {
	Step  int
	Items []advice.Finding // by line
	Notes []string         // what could not be looked at, and why
}

// Call continues a call of one of the client's functions. ID and Name are set in the first event of a call. It is not run: the turn ends
// with an Answer that has the complete calls. When an answer broke off and is asked for again, its numbers are used again.
type Call struct {
	Index int // of the call in the turn, from 0
	ID    string
	Name  string
	Delta string // of the arguments, which are the text of a JSON object
}

// Notice tells the user in one line about a retry, a fallback or a repair of the conversation.
type Notice struct{ Text string }

// Answer ends a turn that did not fail. It comes exactly once, last.
type Answer struct {
	// Text is the final answer: what the model said after the last execution, or a sentence that cove composed when
	// the model said nothing.
	Text   string
	Reason AnswerReason
	Steps  int // executions that ran
	// Calls are the client's functions that the model called, when Reason is ClientCalls: the next turn brings their results.
	Calls []model.ToolCall
	// Suspended is the code that waits for the results of those Calls that it made itself; nil: the model made all. It is for Turn.Suspended of the next turn.
	Suspended *Suspended
	// Messages is what the turn adds to the conversation, its input included, for the next turn's Turn.History. Results in it may have been shortened.
	Messages []model.Message
	// Usage sums what the provider said; it is zero when the provider does not say.
	Usage model.Usage
	// Last is what the last request to the model took by itself, estimated where the provider does not say; zero when none was answered.
	Last model.Usage
}

// AnswerReason says why the turn ended with its answer.
type AnswerReason string

// The answer reasons.
const (
	Complete   AnswerReason = "complete"    // the model had nothing more to run
	StepLimit  AnswerReason = "step_limit"  // Limits.Steps was reached
	TokenLimit AnswerReason = "token_limit" // Limits.Tokens was reached
	TimeLimit  AnswerReason = "time_limit"  // Limits.Time was reached
	Length     AnswerReason = "length"      // the model's answer, or its calls again and again, were cut off
	Filtered   AnswerReason = "filtered"    // the provider refused or filtered the answer
	Repeated   AnswerReason = "repeated"    // the model kept sending the same failing code
	NoAnswer   AnswerReason = "no_answer"   // the model said nothing; cove composed the answer

	ClientCalls AnswerReason = "client_calls" // the model called functions of the client
	CallLimit   AnswerReason = "call_limit"   // Turn.MaxCalls was reached
)

func (Text) event()      {}
func (Reasoning) event() {}
func (Code) event()      {}
func (Start) event()     {}
func (Approval) event()  {}
func (Refused) event()   {}
func (Output) event()    {}
func (Findings) event()  {}
func (Call) event()      {}
func (Notice) event()    {}
func (Answer) event()    {}
