// Package transcript is the one JSON form of what executions and turns emit: in streams of the API, in the store and in what the command
// line prints with --json. It is described in docs/events.md and stable: fields may be added, never renamed or removed.
package transcript

import (
	"errors"

	"cove/internal/interpreter"
	"cove/internal/kernel"
)

// Event returns the JSON object of an execution's event, its "type" first.
func Event(e kernel.Event) ([]byte, error) { return nil, errors.New("not written yet") }

// TurnEvent returns the JSON object of a turn's event, its "type" first.
func TurnEvent(e interpreter.Event) ([]byte, error) { return nil, errors.New("not written yet") }

// ParseEvent reads what Event wrote. What Event leaves out comes back empty.
func ParseEvent(text []byte) (kernel.Event, error) { return nil, errors.New("not written yet") }

// ParseTurnEvent reads what TurnEvent wrote.
func ParseTurnEvent(text []byte) (interpreter.Event, error) {
	return nil, errors.New("not written yet")
}
