package hub_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"cove/internal/llm/model"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// asks is the code of a machine that waits for an answer, also while no toy is there.
type asks struct {
	mu     sync.Mutex
	number int
	req    kernel.Request // with what is left of the code
	answer chan string
}

func (y *toy) ask(ctx context.Context, req kernel.Request, name string) {
	a := &y.m.asks
	a.mu.Lock()
	a.number++
	number, answer := a.number, make(chan string, 1)
	a.req, a.answer = req, answer
	a.mu.Unlock()
	req.Tools.Call(ctx, []tool.Call{{Number: number, Name: name, Arguments: []byte("{}")}}, func(_ int, r tool.Result) { answer <- cmp.Or(r.Err, string(r.Value)) })
}

// await waits for the answer, until it comes or the code is parked, and runs the rest of the code.
func (y *toy) await(ctx, whole context.Context, yield func(kernel.Event, error) bool) {
	a := &y.m.asks
	a.mu.Lock()
	req, answer := a.req, a.answer
	a.mu.Unlock()
	for {
		select {
		case text := <-answer:
			if yield(kernel.Stream{Name: "stdout", Data: []byte(text)}, nil) {
				y.run(ctx, whole, req, yield)
			}
			return
		case <-ctx.Done():
			yield(kernel.Done{Outcome: kernel.OutcomeInterrupted, ExitCode: 1, Message: "interrupted", Wall: 1}, nil)
			return
		case <-req.Park():
			if ctx.Err() == nil {
				yield(kernel.Parked{}, nil)
				return
			}
		}
	}
}

func (y *toy) Resume(ctx context.Context, _ kernel.Parked) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		y.m.enter()
		defer y.m.leave()
		y.await(ctx, ctx, yield)
	}
}

// waiting begins a conversation whose code waits for the client, in a session that is paused.
func waiting(t *testing.T, l *life, who auth.Principal) hub.Turn {
	t.Helper()
	turn := l.ask(who, hub.NewTurn{Input: input("go"), CodeTools: []tool.Tool{{Name: "look"}}})
	if turn.State != hub.TurnWaiting || len(turn.Calls) != 1 {
		t.Fatalf("%+v", turn)
	}
	s, err := l.PauseSession(t.Context(), who, turn.Session)
	if err != nil || s.State != hub.SessionPaused {
		t.Fatalf("%v %+v", err, s)
	}
	return turn
}

func results(turn hub.Turn, text string) hub.NewTurn {
	return hub.NewTurn{Parent: turn.ID, CodeTools: []tool.Tool{{Name: "look"}},
		Input: []model.Message{{Role: model.RoleTool, Content: []model.Content{model.ToolResult{CallID: turn.Calls[0].ID, Text: text}}}}}
}

// ended waits for the end of the code that waited.
func (l *life) endOf(who auth.Principal, turn hub.Turn) hub.Execution {
	l.t.Helper()
	id, _, _ := hub.CallOfCode(turn.Calls[0].ID)
	l.wait(who, id)
	e, err := l.Execution(l.t.Context(), who, id)
	if err != nil || !e.State.Final() {
		l.t.Fatalf("%v %+v", err, e)
	}
	return e
}

func TestWaitingCodeGivesItsSessionBack(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "remember one\nask look\nfile a\nask look\nrecall")), words("Done."))
	turn := waiting(t, l, who)
	starts := l.toys.starts
	again := l.ask(who, results(turn, "1"))
	if again.State != hub.TurnWaiting || len(again.Calls) != 1 || l.toys.starts != starts+1 {
		t.Fatalf("%+v, started %d times", again, l.toys.starts)
	}
	if _, err := l.PauseSession(t.Context(), who, turn.Session); err != nil {
		t.Fatal(err)
	}
	behind := l.start(who, turn.Session, "recall") // which loads the session
	beside, err := l.StartExecution(t.Context(), who, hub.NewExecution{Session: turn.Session, Kernel: "other", Code: "say beside"})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := l.wait(who, beside.ID); fmt.Sprint(got) != "[beside]" {
		t.Errorf("another kernel: %v", got)
	}
	if e, err := l.Execution(t.Context(), who, behind.ID); err != nil || e.State != hub.ExecutionQueued {
		t.Errorf("code behind the code that waits: %v %+v", err, e)
	}
	last := l.ask(who, results(again, "2"))
	if last.State != hub.TurnCompleted || last.Answer != "Done." {
		t.Errorf("%+v", last)
	}
	if e := l.endOf(who, turn); e.State != hub.ExecutionState(kernel.OutcomeOK) {
		t.Errorf("%+v", e)
	}
	if got, _ := l.wait(who, behind.ID); fmt.Sprint(got) != "[one]" {
		t.Errorf("the code behind: %v", got)
	}
}

func TestWaitingCodeEndsWithoutItsSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end     func(l *life, who auth.Principal, turn hub.Turn) error
		message string
	}{
		"interrupted": {func(l *life, who auth.Principal, turn hub.Turn) error {
			id, _, _ := hub.CallOfCode(turn.Calls[0].ID)
			_, err := l.InterruptExecution(l.t.Context(), who, id)
			return err
		}, "interrupted while it waited"},
		"cancelled": {func(l *life, who auth.Principal, turn hub.Turn) error {
			_, err := l.CancelTurn(l.t.Context(), who, turn.ID)
			return err
		}, "cancelled"},
		"deleted": {func(l *life, who auth.Principal, turn hub.Turn) error {
			return l.DeleteSession(l.t.Context(), who, turn.Session)
		}, "no such session"},
		"returned": {func(l *life, who auth.Principal, turn hub.Turn) error {
			_, err := l.ReturnSession(l.t.Context(), who, turn.Session, turn.ID)
			return err
		}, "returned to an earlier point"},
		"forsaken": {func(l *life, who auth.Principal, turn hub.Turn) error {
			l.ask(who, hub.NewTurn{Parent: turn.ID, Input: input("something else")})
			return nil
		}, "went on without"},
		"drained": {func(l *life, _ auth.Principal, _ hub.Turn) error { return l.Drain(l.t.Context()) }, "server stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _, who := newTalk(t, calls(python("c1", "ask look")), words("Done."))
			turn := waiting(t, l, who)
			if err := c.end(l, who, turn); err != nil {
				t.Fatal(err)
			}
			if e := l.endOf(who, turn); e.State != hub.ExecutionState(kernel.OutcomeInterrupted) || !strings.Contains(e.Message, c.message) {
				t.Errorf("%+v", e)
			}
			if _, err := l.StartTurn(t.Context(), who, results(turn, "1")); err == nil {
				t.Error("its results are taken")
			}
			l.until("the turn waits no more", func() bool {
				row, err := l.Turn(t.Context(), who, turn.ID)
				return err == nil && row.State == hub.TurnCanceled && strings.Contains(string(row.Problem), "calls_gone") && strings.Contains(string(row.Problem), c.message) && len(row.Calls) == 1
			})
		})
	}
}

// TestATurnOfLostCodeWaitsNoMore kills a server with code that waits: for the results of its first calls, and for those of its second ones.
func TestATurnOfLostCodeWaitsNoMore(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "ask look\nask look")), words("Done."))
	first := waiting(t, l, who)
	second := l.ask(who, results(first, "1"))
	if second.State != hub.TurnWaiting {
		t.Fatalf("%+v", second)
	}
	n := l.killed()
	if row, err := n.Turn(t.Context(), who, second.ID); err != nil || row.State != hub.TurnFailed || !strings.Contains(string(row.Problem), "calls_gone") {
		t.Errorf("the turn whose code is lost: %v %+v", err, row)
	}
	if row, err := n.Turn(t.Context(), who, first.ID); err != nil || row.State != hub.TurnWaiting {
		t.Errorf("the turn that got its results: %v %+v", err, row)
	}
	_, err := n.StartTurn(t.Context(), who, results(second, "1"))
	fails(t, err, "calls_gone")
}

// TestResultsOfUnknownCalls brings results that nothing waits for: they are refused, and the code goes on waiting for its own.
func TestResultsOfUnknownCalls(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "ask look")), words("Done."))
	turn := waiting(t, l, who)
	execution, number, _ := hub.CallOfCode(turn.Calls[0].ID)
	for _, id := range []string{"toolu_unknown", strings.TrimSuffix(turn.Calls[0].ID, fmt.Sprint(number)) + fmt.Sprint(number+7)} {
		wrong := results(turn, "1")
		wrong.Input[0].Content[0] = model.ToolResult{CallID: id, Text: "1"}
		_, err := l.StartTurn(t.Context(), who, wrong)
		fails(t, err, "turn_invalid")
		if err == nil || !strings.Contains(err.Error(), "goes on waiting") {
			t.Errorf("%s: %v", id, err)
		}
		if e, err := l.Execution(t.Context(), who, execution); err != nil || e.State.Final() {
			t.Errorf("after a result of %s: %v %+v", id, err, e)
		}
	}
	if last := l.ask(who, results(turn, "1")); last.State != hub.TurnCompleted || last.Answer != "Done." {
		t.Errorf("%+v", last)
	}
}
