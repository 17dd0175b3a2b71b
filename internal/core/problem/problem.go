// Package problem is cove's error vocabulary: what went wrong, said so that a
// person can act on it. An error is made with New where the knowledge is,
// wrapped with fmt.Errorf("...: %w") on the way up and shown once at the edge.
package problem

import "errors"

// Kind says who has to act and how a surface maps the error (exit code, HTTP status).
type Kind string

// The kinds of problems.
const (
	Invalid     Kind = "invalid"     // the caller's input is wrong; repeating it cannot help
	NotFound    Kind = "not_found"   // the thing named does not exist
	Denied      Kind = "denied"      // credentials or policy forbid it
	Unavailable Kind = "unavailable" // something outside cove is missing or down; may be repeated
	Timeout     Kind = "timeout"     // a deadline passed
	Exhausted   Kind = "exhausted"   // a limit or quota is used up
	Canceled    Kind = "canceled"    // the caller gave up
	Internal    Kind = "internal"    // a fault of cove's own
)

// Code names what happened, for programs: "python_not_found". It stays once it is released. Each is a constant of this package, in codes_*.go; its type
// says its kind, and its comment is its documentation for clients.
type Code interface {
	Kind() Kind
	String() string
	sealed()
}

// Error is a problem with a stable code, a public sentence and, where there is
// one, a next step.
type Error struct {
	Kind    Kind
	Code    string // that of a Code, or what another program sent; see Has
	Message string // one sentence for the user, no trailing period
	Hint    string // the next step, or ""
	Cause   error  // internal detail, never needed to understand Message

	// Inside says that Message comes from a sandbox, so that the paths in it are those that its users know.
	Inside bool
}

// New returns the problem that code names.
func New(code Code, message string) *Error {
	return &Error{Kind: code.Kind(), Code: code.String(), Message: message}
}

// Received returns a problem that another program made, or this one at another time: its code need not be one that is known here.
func Received(kind Kind, code, message string) *Error {
	return &Error{Kind: kind, Code: code, Message: message}
}

// Reworded returns a copy of e that says it in other words.
func (e *Error) Reworded(message string) *Error {
	c := *e
	c.Message, c.Inside = message, false
	return &c
}

// WithHint returns a copy of e that names the next step.
func (e *Error) WithHint(hint string) *Error {
	c := *e
	c.Hint = hint
	return &c
}

// WithCause returns a copy of e that wraps err.
func (e *Error) WithCause(err error) *Error {
	c := *e
	c.Cause = err
	return &c
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Message + ": " + e.Cause.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Cause }

// Of returns the first problem in err's chain, or an Internal one that wraps err.
// It returns nil for a nil error.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return New(Fault, err.Error())
}
