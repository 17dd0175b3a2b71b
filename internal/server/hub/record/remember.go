package record

import (
	"context"
	"time"
)

// Rememberer keeps idempotency keys.
type Rememberer interface {
	// Remember records until a time that word (of a project, and made for one kind of request) stands for the thing id. When the word already stands for
	// something, that is returned and nothing is changed.
	Remember(ctx context.Context, project, word, request, id string, until time.Time) (thatPrint, thatID string, err error)
	// Remembered returns what word stands for, "" for nothing.
	Remembered(ctx context.Context, project, word string) (request, id string, err error)
}
