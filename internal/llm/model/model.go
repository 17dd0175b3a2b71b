// Package model is the contract between cove and language models: one
// streaming call, content in parts. Adapters live in sub-packages, one per wire format.
package model

import (
	"context"
	"encoding/json"
	"iter"
)

// Model is a language model behind a provider.
type Model interface {
	// Name is PROVIDER/NAME, as --model takes it.
	Name() string
	Capabilities() Capabilities
	// Stream asks the model and yields what it says as it says it. A complete answer ends with exactly
	// one Finish and no error. Every failure, also one in mid-stream, is a *problem.Error that says what to do;
	// a stream that ends without Finish is one. Breaking off the range or cancelling ctx stops the request.
	Stream(ctx context.Context, req Request) iter.Seq2[Part, error]
}

// Capabilities say what a model can take part in.
type Capabilities struct {
	Tools  bool // native tool calls; without them the fenced-block protocol is used
	Images bool // sees image parts
	Extra  bool // takes Request.Extra
	// Window returns how many tokens the model takes at once, 0 where its service does not say; nil: there is nobody to ask. It may have the model loaded, which takes as long as that does.
	Window func(ctx context.Context) int64
}

// Request is one call of a model: the whole conversation so far.
type Request struct {
	System    string
	Messages  []Message
	Tools     []Tool
	MaxTokens int // of the answer; 0 leaves it to the provider
	// What follows is passed on to providers that know it; zero values leave it to them.
	Choice      ToolChoice
	Parallel    *bool // several calls in one answer
	Temperature *float64
	TopP        *float64
	Stop        []string // texts that end the answer
	Format      Format
	Effort      string // of its reasoning, in the provider's words: "low", "medium", "high" and others
	// Extra are parameters that this package has no words for, by their names on the wire: top_k, chat_template_kwargs. Only a model whose
	// Capabilities have Extra gets them; none of them is one that an adapter sets itself.
	Extra map[string]json.RawMessage
}

// Format is a form that the answer's words have; zero is any. A provider that cannot bind its models to it leaves it out, so a caller that sets it asks
// for it in words too.
type Format struct {
	JSON   bool            // one JSON object
	Schema json.RawMessage // a JSON Schema that it fits, or nil
	Name   string          // of the schema
	Strict bool            // the schema is held exactly; providers take only some schemas then
}

// ToolChoice says whether the model has to call a tool: Mode is "" (the provider's default), "auto", "none" or "required"; Name is the one
// function that it has to call.
type ToolChoice struct {
	Mode string
	Name string
}

// Tool is a function that the model may call. Schema is a JSON Schema object.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
	Strict      bool // the arguments are to fit exactly, where the provider can see to that
}

// Role says who speaks.
type Role string

// The roles. Tool results are sent as RoleTool, one message per round with one ToolResult per call.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one contribution to the conversation.
type Message struct {
	Role    Role
	Content []Content
}

// Content is a piece of a message: Text, Image, ToolCall or ToolResult.
type Content interface{ content() }

// Text is plain text, usually Markdown.
type Text struct{ Text string }

// Image is a picture in its file encoding, e.g. MIME "image/png".
type Image struct {
	MIME string `json:"mime"`
	Data []byte `json:"data"`
}

// ToolCall is a call that the model made, with its complete arguments (a JSON object as text).
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// ToolResult answers the call with the same ID. Images are left out by adapters whose model does not see.
type ToolResult struct {
	CallID  string
	Text    string
	Images  []Image
	IsError bool
}

func (Text) content()       {}
func (Image) content()      {}
func (ToolCall) content()   {}
func (ToolResult) content() {}

// Part is one element of a streamed answer: TextDelta, ReasoningDelta, CallDelta, Retry or Finish.
type Part interface{ part() }

// TextDelta continues the answer's text.
type TextDelta struct{ Text string }

// ReasoningDelta continues the model's visible reasoning; it is shown, never sent back.
type ReasoningDelta struct{ Text string }

// CallDelta continues a tool call. Index tells calls of one answer apart, from 0; ID and Name are set on the first
// delta of a call and may be empty later; Arguments is a piece of the JSON text.
type CallDelta struct {
	Index     int
	ID        string
	Name      string
	Arguments string
}

// Retry says that a failed attempt is being repeated; nothing of the failed attempt had been yielded before it.
type Retry struct {
	Attempt int    // the attempt that failed, from 1
	Reason  string // a short sentence
	Seconds float64
}

// Finish ends a complete answer. Calls holds the complete tool calls; it is empty unless Reason is FinishCalls.
type Finish struct {
	Reason FinishReason
	Calls  []ToolCall
	Usage  Usage
}

// FinishReason says why the model stopped.
type FinishReason string

// The finish reasons.
const (
	FinishStop   FinishReason = "stop"
	FinishCalls  FinishReason = "tool_calls"
	FinishLength FinishReason = "length" // cut off at the token limit; a tool call in it is not complete
	FinishFilter FinishReason = "filter" // refused or filtered by the provider
)

func (TextDelta) part()      {}
func (ReasoningDelta) part() {}
func (CallDelta) part()      {}
func (Retry) part()          {}
func (Finish) part()         {}
