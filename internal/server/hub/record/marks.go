package record

import (
	"time"
)

// TurnMarks are what people did after a turn that changes how it is to be read.
type TurnMarks struct {
	Undone *Undone `json:"undone,omitempty"`
	Reruns []Rerun `json:"reruns,omitempty"` // of its steps, in their order
}

// Undone says of a turn that what follows it goes on with the variables and files from before an earlier one, or from before itself.
type Undone struct {
	From    string    `json:"from"`    // the turn from before which they are
	Session string    `json:"session"` // that has them
	At      time.Time `json:"at"`
}

// Rerun is a step that a person ran again, with other code or as it was, which the answer does not know of.
type Rerun struct {
	Step      int       `json:"step"`
	Execution string    `json:"execution"`
	Session   string    `json:"session,omitempty"` // in which it ran; "": noted by a version that did not keep it
	At        time.Time `json:"at"`
}

// UndoneTo returns what follows a turn goes on with, or nil.
func (t Turn) UndoneTo() *Undone {
	if t.Marks == nil {
		return nil
	}
	return t.Marks.Undone
}

// Rating is what a person says of an answer.
type Rating struct {
	Good   bool      `json:"good"`
	Reason string    `json:"reason,omitempty"`
	User   string    `json:"user"`
	At     time.Time `json:"at"`
}
