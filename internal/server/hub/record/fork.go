package record

import (
	"context"
)

// TurnCopy is a turn of a fork, and the turn whose steps and events it gets.
type TurnCopy struct {
	Turn
	Of string
}

// ForkStore is what forking conversations needs.
type ForkStore interface {
	// Following returns the turns that go on from one, the oldest first, with ID, Session and Created alone.
	Following(ctx context.Context, project, turn string) ([]Turn, error)
	// AddFork writes a conversation with copies of turns, and of what those have: executions, events, and words that the search finds. Problems: turn_not_found when one of
	// them is not there any more, conversation_too_large when their events have more than most bytes.
	AddFork(ctx context.Context, c Conversation, turns []TurnCopy, most int64) error
}
