package record

import (
	"encoding/json"
	"slices"
	"strings"

	"cove/internal/core/problem"
)

// Check returns the problem of a conversation's record that is not valid, or nil.
func (c Conversation) Check() error {
	invalid := func(message string) error { return problem.New(problem.ConversationInvalid, message) }
	switch {
	case len(c.Title) > LongestName:
		return invalid("the title is longer than 200 bytes")
	case len(c.Source) > LongestName:
		return invalid("the source is longer than 200 bytes")
	case c.Approval != ApprovalNever && c.Approval != ApprovalAlways:
		return invalid("the approval is neither never nor always")
	}
	if fault := metadataFault(c.Metadata); fault != "" {
		return invalid(fault)
	}
	return nil
}

// SurfaceOwn says whether a name in metadata is of what a surface keeps for itself.
func SurfaceOwn(name string) bool {
	return slices.ContainsFunc([]string{"openai.", "daytona.", "e2b.", "jupyter.", "sandboxai."}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// IsStep says whether the events of an execution are in the stream of its turn alone.
func (e Execution) IsStep() bool { return e.Turn != "" && !e.Detached }

// MarkFailed gives a turn the final state of one that ended with a problem.
func (t *Turn) MarkFailed(p *problem.Error) *problem.Error {
	if t.State = TurnFailed; p.Kind == problem.Canceled {
		t.State = TurnCanceled
	}
	t.Problem, _ = json.Marshal(map[string]any{"kind": p.Kind, "code": p.Code, "message": p.Message, "hint": p.Hint})
	return p
}

// AsStored returns the turn as the store gets it: a hidden turn without its texts.
func (t Turn) AsStored() Turn {
	if t.Hidden {
		t.Prompt, t.Foreign = "", nil
	}
	return t
}
