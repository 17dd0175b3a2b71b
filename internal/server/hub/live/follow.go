package live

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
	"cove/internal/server/hub/record"
	"cove/internal/server/stream"
	"cove/internal/server/transcript"
)

// Follower is the events of an execution or a turn from one number on, as package transcript writes them; see stream.Read.
type Follower[E any] = stream.Follower[E]

// Numbered is an event with its place in its stream.
type Numbered[E any] = stream.Numbered[E]

// Follow yields the events of an execution with Seq above after, from the store as far as they are old, then as they happen, and ends
// after the Done. A follower that does not keep up slows nobody and costs no memory. Needs auth.SessionsRead.
func (m *Manager) Follow(ctx context.Context, who auth.Principal, id string, after int64) (Follower[json.RawMessage], error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return nil, err
	}
	e, err := m.toFollow(ctx, who.Project, id)
	if err != nil {
		return nil, err
	}
	events := m.Streams.Follow(ctx, m.ExecutionEvents(e), after)
	if e.IsStep() {
		events = outputs(events)
	}
	return events, bodybudget.Recall(ctx, stream.PageSize)
}

// toFollow returns what has to be known of an execution to follow it. For one that runs here the store is not asked.
func (m *Manager) toFollow(ctx context.Context, project, execution string) (record.Execution, error) {
	m.mu.Lock()
	t := m.executions[execution]
	m.mu.Unlock()
	if t != nil && t.project == project {
		return record.Execution{ID: execution, Project: project, Turn: t.of, Detached: t.apart, Owner: m.work.OwnerID()}, nil
	}
	return m.work.Store.Execution(ctx, project, execution)
}

// ExecutionEvents says where the events of an execution are: those of a turn's step are in the turn's stream.
func (m *Manager) ExecutionEvents(e record.Execution) stream.Source {
	switch {
	case e.IsStep() && e.Owner == m.work.OwnerID():
		return stream.Source{Stream: e.Turn, Part: e.ID}
	case e.IsStep():
		return stream.Source{Stream: e.Turn, Part: e.ID, Ended: m.turnEnded(e.Project, e.Turn)}
	case e.Owner == m.work.OwnerID(), e.State.Final():
		return stream.Source{Stream: e.ID}
	}
	return stream.Source{Stream: e.ID, Ended: func(ctx context.Context) (bool, error) {
		now, err := m.work.Store.Execution(ctx, e.Project, e.ID)
		return endedOrDeleted(now.State.Final(), err)
	}}
}

// TurnEvents says where the events of a turn are.
func (m *Manager) TurnEvents(t record.Turn) stream.Source {
	if t.State.Final() || t.Owner == m.work.OwnerID() {
		return stream.Source{Stream: t.ID}
	}
	return stream.Source{Stream: t.ID, Ended: m.turnEnded(t.Project, t.ID)}
}

func (m *Manager) turnEnded(project, turn string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		return endedOrDeleted(m.work.Store.TurnEnded(ctx, project, turn))
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

// UntilFailure turns the failure that ends a turn into an error.
func UntilFailure(events Follower[json.RawMessage]) Follower[json.RawMessage] {
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
		return delivery{t: t, kind: SpanTurn}
	}
	return delivery{t: t, kind: spanExecution}
}

func (d delivery) Delivered(after time.Duration) { d.t.Observe(telemetry.Delivery, after, d.kind) }

func (d delivery) Gap() { d.t.Count(telemetry.Gaps, 1) }
