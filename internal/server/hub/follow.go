package hub

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/http/bodybudget"
	"cove/internal/server/auth"
	"cove/internal/server/stream"
	"cove/internal/server/transcript"
)

// Follower is the events of an execution or a turn from one number on, as package transcript writes them; see stream.Read.
type Follower[E any] = stream.Follower[E]

// Numbered is an event with its place in its stream.
type Numbered[E any] = stream.Numbered[E]

// Follow yields the events of an execution with Seq above after, from the store as far as they are old, then as they happen, and ends
// after the Done. A follower that does not keep up slows nobody and costs no memory. Needs auth.SessionsRead.
func (h *Hub) Follow(ctx context.Context, who auth.Principal, id string, after int64) (Follower[json.RawMessage], error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return nil, err
	}
	e, err := h.toFollow(ctx, who.Project, id)
	if err != nil {
		return nil, err
	}
	events := h.streams.Follow(ctx, h.executionEvents(e), after)
	if e.IsStep() {
		events = outputs(events)
	}
	return events, bodybudget.Recall(ctx, stream.PageSize)
}

// FollowTurn yields the events of a turn with Seq above after, as Follow does for an execution. It ends after the loop.Answer, or
// with the error that ended the turn, also when it ended long ago. Needs auth.ConversationsRead.
func (h *Hub) FollowTurn(ctx context.Context, who auth.Principal, id string, after int64) (Follower[json.RawMessage], error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return nil, err
	}
	t, err := h.turn(ctx, who.Project, id)
	if err != nil {
		return nil, err
	}
	return untilFailure(h.streams.Follow(ctx, h.turnEvents(t), after)), bodybudget.Recall(ctx, stream.PageSize)
}

// Recorded yields what is stored of a turn or an execution (its id) until now, and does not wait for more. Needs auth.ConversationsRead for a turn and
// auth.SessionsRead for an execution.
func (h *Hub) Recorded(ctx context.Context, who auth.Principal, id string) (Follower[json.RawMessage], error) {
	var from stream.Source
	if ident.Valid(ident.Turn, id) {
		t, err := h.Turn(ctx, who, id)
		if err != nil {
			return nil, err
		}
		from = h.turnEvents(t)
	} else {
		e, err := h.Execution(ctx, who, id)
		if err != nil {
			return nil, err
		}
		from = h.executionEvents(e)
	}
	return h.streams.Recorded(ctx, from), nil
}

// toFollow returns what has to be known of an execution to follow it. For one that runs here the store is not asked.
func (h *Hub) toFollow(ctx context.Context, project, execution string) (Execution, error) {
	h.mu.Lock()
	t := h.executions[execution]
	h.mu.Unlock()
	if t != nil && t.project == project {
		return Execution{ID: execution, Project: project, Turn: t.of, Detached: t.apart, Owner: h.work.OwnerID()}, nil
	}
	return h.work.Store.Execution(ctx, project, execution)
}

// executionEvents says where the events of an execution are: those of a turn's step are in the turn's stream.
func (h *Hub) executionEvents(e Execution) stream.Source {
	switch {
	case e.IsStep() && e.Owner == h.work.OwnerID():
		return stream.Source{Stream: e.Turn, Part: e.ID}
	case e.IsStep():
		return stream.Source{Stream: e.Turn, Part: e.ID, Ended: h.turnEnded(e.Project, e.Turn)}
	case e.Owner == h.work.OwnerID(), e.State.Final():
		return stream.Source{Stream: e.ID}
	}
	return stream.Source{Stream: e.ID, Ended: func(ctx context.Context) (bool, error) {
		now, err := h.work.Store.Execution(ctx, e.Project, e.ID)
		return endedOrDeleted(now.State.Final(), err)
	}}
}

// turnEvents says where the events of a turn are.
func (h *Hub) turnEvents(t Turn) stream.Source {
	if t.State.Final() || t.Owner == h.work.OwnerID() {
		return stream.Source{Stream: t.ID}
	}
	return stream.Source{Stream: t.ID, Ended: h.turnEnded(t.Project, t.ID)}
}

func (h *Hub) turnEnded(project, turn string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		return endedOrDeleted(h.work.Store.TurnEnded(ctx, project, turn))
	}
}

// endedOrDeleted counts a record that was deleted as one that has ended.
func endedOrDeleted(ended bool, err error) (bool, error) {
	if problem.Is(err, problem.NotFound) {
		return true, nil
	}
	return ended, err
}

// isEnd says whether an event is the last one of an execution or a turn.
func isEnd(e stream.Event) bool {
	return slices.Contains([]string{"done", "answer", "failure"}, transcript.TypeOf(e.Body))
}

// outputs picks what an execution emitted from the events of its turn, and ends after the Done.
func outputs(turn Follower[json.RawMessage]) Follower[json.RawMessage] {
	return func(yield func(Numbered[json.RawMessage], error) bool) {
		for n, err := range turn {
			last := false
			if err == nil && !n.Gap {
				if n.Event = transcript.OutputOf(n.Event); n.Event == nil {
					continue
				}
				last = transcript.TypeOf(n.Event) == "done"
			}
			if !yield(n, err) || err != nil || last {
				return
			}
		}
	}
}

// untilFailure turns the failure that ends a turn into an error.
func untilFailure(events Follower[json.RawMessage]) Follower[json.RawMessage] {
	return func(yield func(Numbered[json.RawMessage], error) bool) {
		for n, err := range events {
			if err == nil && transcript.TypeOf(n.Event) == "failure" {
				if p, ok := transcript.ParseFailure(n.Event); ok {
					n.Event, err = nil, p
				}
			}
			if !yield(n, err) || err != nil {
				return
			}
		}
	}
}

// delivery measures for operators how late events reach a follower.
type delivery struct {
	t    *telemetry.Telemetry
	kind string // of stream
}

// observe returns what observes a follower of an execution or a turn.
func observe(ctx context.Context, id string) stream.Observer {
	t := telemetry.From(ctx)
	if t == nil {
		return nil
	}
	if ident.Valid(ident.Turn, id) {
		return delivery{t: t, kind: spanTurn}
	}
	return delivery{t: t, kind: spanExecution}
}

func (d delivery) Delivered(after time.Duration) { d.t.Observe(telemetry.Delivery, after, d.kind) }

func (d delivery) Gap() { d.t.Count(telemetry.Gaps, 1) }
