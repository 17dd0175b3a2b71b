package anthropic

import (
	"context"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/server/stream"
	"cove/internal/server/transcript"
)

// step is one thing that happens to an answer; over says that it was the last. Its error, where it does not come of writing, ends the answer.
type step struct {
	apply func(*answer) (over bool, err error)
	err   error
}

// steps yields what happens, until yield returns false.
type steps func(ctx context.Context, c *call, yield func(step) bool)

// turnSteps are the events of a turn.
func (s *server) turnSteps(turn string) steps {
	return func(ctx context.Context, c *call, yield func(step) bool) {
		follow, err := s.Hub.FollowTurn(ctx, c.who, turn, 0)
		if err != nil {
			yield(step{err: err})
			return
		}
		for e, err := range stream.Read(follow, transcript.ParseTurnEvent) {
			if err == nil && (e.Gap || e.Event == nil) {
				continue
			}
			if !yield(step{func(a *answer) (bool, error) { return a.take(e.Event) }, err}) || err != nil {
				return
			}
		}
	}
}

// modelSteps are the parts of a model's answer.
func modelSteps(m model.Model, req model.Request) steps {
	return func(ctx context.Context, _ *call, yield func(step) bool) {
		for p, err := range m.Stream(ctx, req) {
			if !yield(step{func(a *answer) (bool, error) { return a.part(p) }, err}) {
				return
			}
		}
	}
}

// pump applies step after step until the last; pings fill a silence. It says whether what it follows has ended.
func (s *server) pump(c *call, a *answer, all steps) (ended bool, err error) {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	next := make(chan step)
	go func() {
		defer close(next)
		all(ctx, c, func(st step) bool {
			select {
			case next <- st:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	beat := time.NewTicker(s.Heartbeat)
	defer beat.Stop()
	settled := time.NewTimer(s.Settle) // what fails at once fails with a status; then the client is told that it is being answered
	defer settled.Stop()
	for {
		select {
		case <-c.Context().Done():
			return false, nil
		case <-settled.C:
			err = a.begin()
		case <-beat.C:
			err = a.beat()
		case st, ok := <-next:
			if c.Context().Err() != nil {
				return false, nil
			}
			if !ok {
				st.err = problem.New(problem.TurnLost, "the answer broke off")
			}
			if st.err != nil {
				return true, a.fail(st.err)
			}
			beat.Reset(s.Heartbeat)
			ended, err = st.apply(a)
		}
		if ended || err != nil {
			return ended, err
		}
	}
}

// beat fills a silence of a stream.
func (a *answer) beat() error {
	if !a.stream {
		return nil
	}
	return a.ping()
}
