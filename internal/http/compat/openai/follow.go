package openai

import (
	"context"
	"encoding/json"
	"net/http"

	"cove/internal/core/problem"
	"cove/internal/http/sse"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/stream"
	"cove/internal/server/transcript"
)

// step is what the follower of a turn brings: an event, or the error that ended the turn.
type step struct {
	event hub.Numbered[hub.TurnEvent]
	err   error
}

// steps has a turn's events come through a channel, so that somebody can wait for something else at the same time. It is closed after the last.
func (s *server) steps(ctx context.Context, who auth.Principal, turn string) (<-chan step, error) {
	follow, err := s.Hub.FollowTurn(ctx, who, turn, 0)
	if err != nil {
		return nil, err
	}
	out := make(chan step)
	go func() {
		defer close(out)
		for e, err := range stream.Read(follow, transcript.ParseTurnEvent) {
			select {
			case out <- step{e, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return out, nil
}

// placeOf asks for the session of a turn, which may be made after the turn has begun.
func (s *server) placeOf(ctx context.Context, who auth.Principal, turn string) func() string {
	return func() string {
		t, err := s.Hub.Turn(ctx, who, turn)
		if err != nil {
			return ""
		}
		return containerID(t.Session)
	}
}

// feed gives one step to a translation and says whether it was the last.
func (t *translation) feed(st step) (bool, error) {
	if st.err != nil {
		return true, t.end(st.err)
	}
	if st.event.Gap || st.event.Event == nil {
		t.gap = t.gap || st.event.Gap
		return false, nil
	}
	t.at = st.event.At
	err := t.take(st.event.Event)
	return t.response.Status != statusInProgress && t.response.Status != statusQueued, err
}

// replay translates what a turn has emitted until now, and to its end when it has ended.
func (s *server) replay(ctx context.Context, who auth.Principal, turn hub.Turn, o options) (*translation, error) {
	t := newTranslation(turn, keptOf(turn), o, func(event) error { return nil })
	t.place = s.placeOf(ctx, who, turn.ID)
	if !turn.State.Final() && turn.Events == 0 {
		return t, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	follow, err := s.Hub.FollowTurn(ctx, who, turn.ID, 0)
	if err != nil {
		return nil, err
	}
	for e, err := range stream.Read(follow, transcript.ParseTurnEvent) {
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		over, err := t.feed(step{e, err})
		if err != nil || over || !turn.State.Final() && e.Seq >= turn.Events {
			return t, err
		}
	}
	if turn.State.Final() && t.response.Status == statusInProgress {
		return t, t.end(endProblem(turn))
	}
	return t, nil
}

// endProblem is why a turn ended whose events do not tell it any more.
func endProblem(t hub.Turn) error {
	switch t.State {
	case hub.TurnCanceled:
		return problem.New(problem.GivenUp, "the response was cancelled")
	case hub.TurnLost:
		return problem.New(problem.TurnLost, "the server was restarted while it made this response")
	}
	var p struct{ Kind, Code, Message, Hint string }
	if json.Unmarshal(t.Problem, &p) == nil && p.Message != "" {
		return problem.Received(problem.Kind(p.Kind), p.Code, p.Message).WithHint(p.Hint)
	}
	return problem.New(problem.TurnLost, "the events of this response are not kept any more")
}

// outlet is the stream of events that answers a request, once it has begun.
type outlet struct {
	w     http.ResponseWriter
	to    *sse.Writer // nil until it begins
	after int64       // events up to this number are left out
}

func newOutlet(w http.ResponseWriter, after int64) *outlet { return &outlet{w: w, after: after} }

func (o *outlet) begun() bool { return o.to != nil }

func (o *outlet) begin() {
	if !o.begun() {
		_ = o.write(nil)
	}
}

func (o *outlet) write(text []byte) error {
	if !o.begun() {
		o.to = sse.NewWriter(o.w)
		o.w.Header().Set("Content-Type", sse.ContentType+"; charset=utf-8") // as OpenAI's
		o.w.WriteHeader(http.StatusOK)
	}
	_, err := o.to.Write(text)
	return err
}

func (o *outlet) send(e event) error {
	if e.Sequence <= o.after {
		return nil
	}
	return o.data(e.Type, e)
}

// data writes one event, under a name where there is one.
func (o *outlet) data(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return o.write(sse.Event{Name: name, Data: text}.Append(nil))
}

func (o *outlet) comment() error { return o.write([]byte(sse.Comment)) }
