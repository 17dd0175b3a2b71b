package hub

import (
	"context"
	"strings"

	"cove/internal/server/auth"
)

// turnInstructions returns what the model of a turn is asked to do: the project's instructions where the turn is to follow them, then the client's.
func (h *Hub) turnInstructions(ctx context.Context, who auth.Principal, n NewTurn) (string, error) {
	if !n.InProject || h.o.Instructions == nil {
		return n.Instructions, nil
	}
	project, err := h.o.Instructions(ctx, who.Project)
	if err != nil || strings.TrimSpace(project) == "" {
		return n.Instructions, err
	}
	text := "Instructions for all conversations of this project, which its owner wrote:\n\n" + project
	if strings.TrimSpace(n.Instructions) != "" {
		text += "\n\nInstructions for this question, which go first where the two differ:\n\n" + n.Instructions
	}
	return text, nil
}
