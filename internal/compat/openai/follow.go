package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"cove/internal/auth"
	"cove/internal/hub"
	"cove/internal/problem"
	"cove/internal/transcript"
)

// step is what the follower of a turn brings: an event, or the error that ended the turn.
type step struct {
	event hub.Numbered[hub.TurnEvent]
	err   error
}

// steps has a turn's events come through a channel, so that somebody can wait for something else at the same time. It is closed behind the last.
func (s *server) steps(ctx context.Context, who auth.Principal, turn string) (<-chan step, error) {
	follow, err := s.Hub.FollowTurn(ctx, who, turn, 0)
	if err != nil {
		return nil, err
	}
	out := make(chan step)
	go func() {
		defer close(out)
		for e, err := range hub.Read(follow, transcript.ParseTurnEvent) {
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
	if turn.State == hub.TurnQueued {
		t.response.Status = statusQueued
	}
	if !turn.State.Final() && turn.Events == 0 {
		return t, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	follow, err := s.Hub.FollowTurn(ctx, who, turn.ID, 0)
	if err != nil {
		return nil, err
	}
	for e, err := range hub.Read(follow, transcript.ParseTurnEvent) {
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
		return problem.New(problem.Canceled, "canceled", "the response was cancelled")
	case hub.TurnLost:
		return problem.New(problem.Unavailable, "turn_lost", "the server was restarted while it made this response")
	}
	var p struct{ Kind, Code, Message, Hint string }
	if json.Unmarshal(t.Problem, &p) == nil && p.Message != "" {
		return problem.New(problem.Kind(p.Kind), p.Code, p.Message).WithHint(p.Hint)
	}
	return problem.New(problem.Unavailable, "turn_lost", "the events of this response are not kept any more")
}

// sse writes a stream of server-sent events.
type sse struct {
	w       http.ResponseWriter
	control *http.ResponseController
	after   int64 // events up to this number are left out
	begun   bool
}

// slowest is how long a client may take to read what was written. One that takes longer is cut off; it can come back for the rest.
const slowest = time.Minute

func newSSE(w http.ResponseWriter, after int64) *sse {
	return &sse{w: w, control: http.NewResponseController(w), after: after}
}

func (o *sse) begin() {
	if o.begun {
		return
	}
	o.begun = true
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	o.w.WriteHeader(http.StatusOK)
	_ = o.write(nil)
}

func (o *sse) write(text []byte) error {
	// Not every writer knows deadlines; one that does not is no reason to fail.
	if err := o.control.SetWriteDeadline(time.Now().Add(slowest)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := o.w.Write(text); err != nil {
		return err
	}
	return o.control.Flush()
}

func (o *sse) send(e event) error {
	if e.Sequence <= o.after {
		return nil
	}
	return o.data(e.Type, e)
}

// data writes one event, under a name where there is one.
func (o *sse) data(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	frame := make([]byte, 0, len(text)+len(name)+32)
	if name != "" {
		frame = append(append(append(frame, "event: "...), name...), '\n')
	}
	frame = append(append(append(frame, "data: "...), text...), "\n\n"...)
	o.begin()
	return o.write(frame)
}

// comment keeps proxies and clients from giving up on a silent stream.
func (o *sse) comment() error {
	o.begin()
	return o.write([]byte(": \n\n"))
}
