package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// attach brings a session of the caller's own.
func (l *life) attach(who auth.Principal, id string) (hub.Session, *toy) {
	l.t.Helper()
	y := &toy{m: l.toys, lost: make(chan struct{})}
	s, err := l.AttachSession(l.t.Context(), who, hub.Attachment{ID: id, Name: "lab"}, y)
	if err != nil {
		l.t.Fatal(err)
	}
	return s, y
}

// detach gives it back.
func (l *life) detach(who auth.Principal, id string, state hub.SessionState) {
	l.t.Helper()
	ended := 0
	err := l.DetachSession(l.t.Context(), who, id, func() (hub.SessionState, string) { ended++; return state, "because" })
	if err != nil || ended != 1 {
		l.t.Errorf("detached %d times: %v", ended, err)
	}
}

// attend runs code and returns what it printed and how it ended.
func (l *life) attend(ctx context.Context, who auth.Principal, session, code string) (hub.Execution, []string, kernel.Done, error) {
	var printed []string
	var done kernel.Done
	e, err := l.RunExecution(ctx, who, session, kernel.Request{Code: code}, func(event kernel.Event) error {
		switch event := event.(type) {
		case kernel.Stream:
			printed = append(printed, string(event.Data))
		case kernel.Done:
			done = event
		}
		return nil
	})
	return e, printed, done, err
}

func TestASessionThatTheCallerBrings(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	id := ident.New(ident.Session)
	s, _ := l.attach(who, id)
	e, printed, done, err := l.attend(t.Context(), who, s.ID, "say hello\nremember one\nrecall")
	if err != nil || fmt.Sprint(printed) != "[hello one]" || done.Outcome != kernel.OutcomeOK {
		t.Errorf("%v %+v %v", printed, done, err)
	}
	// It is recorded as any other.
	if got, ended := l.wait(who, e.ID); fmt.Sprint(got) != "[hello one]" || ended.Outcome != kernel.OutcomeOK {
		t.Errorf("recorded is %v %+v", got, ended)
	}
	// What takes sessions out of memory leaves it alone.
	l.SaveUnsaved(t.Context())
	if n := l.InMemory(); n != 1 {
		t.Errorf("%d sessions are in memory", n)
	}
	if row, err := l.Session(t.Context(), who, s.ID); err != nil || row.State != hub.SessionActive || row.Executions != 1 {
		t.Errorf("%+v %v", row, err)
	}
	_, err = l.AttachSession(t.Context(), who, hub.Attachment{ID: id}, &toy{m: l.toys})
	fails(t, err, "session_attached")
	l.detach(who, s.ID, hub.SessionPaused)
	if row, err := l.Session(t.Context(), who, s.ID); err != nil || row.State != hub.SessionPaused || row.Reason != "because" || row.Executions != 1 || row.Name != "lab" {
		t.Errorf("%+v %v", row, err)
	}
	// And goes on under the same id.
	l.attach(who, id)
	if _, printed, _, err := l.attend(t.Context(), who, id, "say again"); err != nil || fmt.Sprint(printed) != "[again]" {
		t.Errorf("%v %v", printed, err)
	}
	l.detach(who, id, hub.SessionPaused)
	if row, err := l.Session(t.Context(), who, id); err != nil || row.Executions != 2 {
		t.Errorf("%+v %v", row, err)
	}
	if err := l.DetachSession(t.Context(), who, id, func() (hub.SessionState, string) { return hub.SessionPaused, "" }); err == nil {
		t.Error("detached twice")
	}
}

func TestACallerWhoHearsEachEvent(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, func(o *hub.Options) { o.Limits.Stream = 100_000 }), someone(auth.LocalProject)
	s, _ := l.attach(who, ident.New(ident.Session))
	defer l.detach(who, s.ID, hub.SessionPaused)

	// More than is kept is heard whole; the record has its beginning and its end, and a gap.
	e, printed, done, err := l.attend(t.Context(), who, s.ID, "flood 50")
	if err != nil || len(printed) != 50 || done.Outcome != kernel.OutcomeOK {
		t.Errorf("heard %d, %+v, %v", len(printed), done, err)
	}
	recorded, err := l.Recorded(t.Context(), who, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	kept, gaps, size := 0, 0, 0
	for n, err := range recorded {
		if err != nil {
			t.Fatal(err)
		}
		if kept, size = kept+1, size+len(n.Event); n.Gap {
			gaps++
		}
	}
	if gaps != 1 || size < 90_000 || size > 130_000 || kept > 20 {
		t.Errorf("recorded: %d events of %d bytes, %d gaps", kept, size, gaps)
	}

	// Whoever does not want to hear more stops the code.
	enough := errors.New("enough")
	e, err = l.RunExecution(t.Context(), who, s.ID, kernel.Request{Code: "say one\nwait for-ever"}, func(kernel.Event) error { return enough })
	if !errors.Is(err, enough) || e.State != hub.ExecutionState(kernel.OutcomeInterrupted) {
		t.Errorf("%+v %v", e, err)
	}
	// So does the end of the caller's context.
	ctx, cancel := context.WithCancel(t.Context())
	ended := kernel.Done{}
	e, err = l.RunExecution(ctx, who, s.ID, kernel.Request{Code: "say one\nwait for-ever"}, func(event kernel.Event) error {
		cancel()
		if d, ok := event.(kernel.Done); ok {
			ended = d
		}
		return nil
	})
	if err != nil || ended.Outcome != kernel.OutcomeInterrupted || e.State != hub.ExecutionState(kernel.OutcomeInterrupted) {
		t.Errorf("%+v %+v %v", e, ended, err)
	}
}

func TestATurnOfACallerInTheProcess(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "say a\nremember one")), words("It said a."), calls(python("c2", "wait for-ever")))
	s, y := l.attach(who, ident.New(ident.Session))
	var kinds []string
	turn, err := l.RunTurn(t.Context(), who, hub.NewTurn{Session: s.ID, Input: input("Say a."), Source: "test"}, func(e hub.TurnEvent) error {
		kinds = append(kinds, strings.TrimPrefix(fmt.Sprintf("%T", e), "loop."))
		return nil
	})
	if got := strings.Join(kinds, " "); err != nil || !strings.HasPrefix(got, "Code Start Output Output Text ") || !strings.HasSuffix(got, " Answer") || turn.State != hub.TurnCompleted || turn.Answer != "It said a." {
		t.Errorf("%s: %+v %v", kinds, turn, err)
	}
	if !slices.Equal(y.words, []string{"one"}) {
		t.Errorf("another session was used: it has %v", y.words)
	}
	// The record is a turn's like any other.
	events, err := l.hear(who, turn.ID)
	if err != nil || len(events) != len(kinds) {
		t.Errorf("%d events are recorded, %v", len(events), err)
	}
	if kept, err := l.Turn(t.Context(), who, turn.ID); err != nil || kept.State != hub.TurnCompleted || len(kept.Messages) == 0 || kept.Session != s.ID {
		t.Errorf("%+v %v", kept, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	var ran atomic.Bool
	turn, err = l.RunTurn(ctx, who, hub.NewTurn{Session: s.ID, Parent: turn.ID, Input: input("Wait.")}, func(e hub.TurnEvent) error {
		if _, ok := e.(loop.Start); ok {
			ran.Store(true)
			cancel()
		}
		return nil
	})
	if p := problem.Of(err); p == nil || p.Kind != problem.Canceled || turn.State != hub.TurnCanceled || !ran.Load() {
		t.Errorf("%+v %v", turn, err)
	}
	l.detach(who, s.ID, hub.SessionDeleted)
}
