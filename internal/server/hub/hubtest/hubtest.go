// Package hubtest helps to test surfaces with a hub that is none.
package hubtest

import (
	"encoding/json"

	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
	"cove/internal/server/transcript"
)

// Events writes an execution's events as the hub's followers have them.
func Events(f hub.Follower[kernel.Event]) hub.Follower[json.RawMessage] {
	return written(f, transcript.Event)
}

// TurnEvents writes a turn's events as the hub's followers have them.
func TurnEvents(f hub.Follower[loop.Event]) hub.Follower[json.RawMessage] {
	return written(f, transcript.TurnEvent)
}

func written[E any](f hub.Follower[E], encode func(E) ([]byte, error)) hub.Follower[json.RawMessage] {
	return func(yield func(hub.Numbered[json.RawMessage], error) bool) {
		for n, err := range f {
			out := hub.Numbered[json.RawMessage]{Seq: n.Seq, At: n.At, Gap: n.Gap}
			if err == nil && !n.Gap {
				out.Event, err = encode(n.Event)
			}
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}
