package hub

import (
	"context"
	"time"

	"cove/internal/auth"
)

// NewExecution says what to run.
type NewExecution struct {
	Session string
	Kernel  string // "" is "main"
	Code    string
	Timeout time.Duration // 0: the server's
	// Once makes a repeated call with the same word (an idempotency key) return the execution that the first one made.
	Once string
}

// StartExecution has code run, in its turn, whether or not anybody follows. Needs auth.SessionsExecute.
func (h *Hub) StartExecution(ctx context.Context, who auth.Principal, n NewExecution) (Execution, error) {
	return Execution{}, errTodo
}

// Execution returns an execution. Needs auth.SessionsRead.
func (h *Hub) Execution(ctx context.Context, who auth.Principal, id string) (Execution, error) {
	return Execution{}, errTodo
}

// Executions lists executions, the newest first. Needs auth.SessionsRead.
func (h *Hub) Executions(ctx context.Context, who auth.Principal, f ExecutionFilter, p Page) (Listing[Execution], error) {
	return Listing[Execution]{}, errTodo
}

// InterruptExecution stops an execution, also one that waits. It returns at once. Needs auth.SessionsExecute.
func (h *Hub) InterruptExecution(ctx context.Context, who auth.Principal, id string) (Execution, error) {
	return Execution{}, errTodo
}

// Follow yields the events of an execution with Seq above after, from the store as far as they are old, then as they happen, and ends
// behind the Done. A follower that does not keep up slows nobody and costs no memory. Needs auth.SessionsRead.
func (h *Hub) Follow(ctx context.Context, who auth.Principal, id string, after int64) (Follower[Event], error) {
	return nil, errTodo
}
