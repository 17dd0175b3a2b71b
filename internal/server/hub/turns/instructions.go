package turns

import (
	"context"
	"strings"

	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// turnInstructions returns what the model of a turn is asked to do: the project's instructions where the turn is to follow them, then the client's.
func (r *Runner) turnInstructions(ctx context.Context, who auth.Principal, n record.NewTurn) (string, error) {
	if !n.InProject || r.o.Instructions == nil {
		return n.Instructions, nil
	}
	project, err := r.o.Instructions(ctx, who.Project)
	if err != nil || strings.TrimSpace(project) == "" {
		return n.Instructions, err
	}
	text := "Instructions for all conversations of this project, which its owner wrote:\n\n" + project
	if strings.TrimSpace(n.Instructions) != "" {
		text += "\n\nInstructions for this question, which go first where the two differ:\n\n" + n.Instructions
	}
	return text, nil
}
