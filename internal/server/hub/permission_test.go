package hub_test

import (
	"fmt"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// asks waits until a call of an execution waits for the user's word.
func (l *life) asks(who auth.Principal, id string) {
	l.t.Helper()
	f, err := l.Follow(l.t.Context(), who, id, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	for n, err := range f {
		if err != nil {
			l.t.Fatal(err)
		}
		if _, ok := n.Event.(kernel.CallAsks); ok {
			return
		}
	}
	l.t.Fatal("the code ended without asking")
}

func TestCallsWaitForTheirUser(t *testing.T) {
	t.Parallel()
	d := desk{auth.LocalProject, make(chan string, 10)}
	l, who, other := newLife(t, func(o *hub.Options) { o.ToolServers, o.Limits.Executions = d, 1 }), someone(auth.LocalProject), someone("prj_other")
	s := l.session(who)
	start := func() hub.Execution {
		t.Helper()
		e, err := l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Code: "call desk.good", Servers: []string{"desk"}, AskBefore: []string{"desk.g*"}})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for _, c := range []struct {
		word tool.Word
		want string
	}{
		{tool.Word{Run: true}, "[7]"},
		{tool.Word{}, "[it was not called: the user refused it]"},
		{tool.Word{Note: "ask me tomorrow"}, "[it was not called: the user refused it, and says: ask me tomorrow]"},
	} {
		e := start()
		l.asks(who, e.ID)
		if len(d.calls) != 0 {
			t.Error("it was called before the user's word")
		}
		// While a user thinks, others run code.
		if printed, _ := l.run(other, l.session(other).ID, "say hello"); fmt.Sprint(printed) != "[hello]" {
			t.Errorf("another project's code said %q", printed)
		}
		_, err := l.ApproveCall(t.Context(), other, e.ID, 1, tool.Word{Run: true})
		fails(t, err, "execution_not_found")
		_, err = l.ApproveCall(t.Context(), who, e.ID, 2, tool.Word{Run: true})
		fails(t, err, "call_not_waiting")
		_, err = l.ApproveCall(t.Context(), who, e.ID, 1, tool.Word{Run: true, Note: "go on"})
		fails(t, err, "invalid_request")
		if _, err := l.ApproveCall(t.Context(), who, e.ID, 1, c.word); err != nil {
			t.Fatal(err)
		}
		_, err = l.ApproveCall(t.Context(), who, e.ID, 1, c.word)
		fails(t, err, "call_not_waiting")
		if printed, done := l.wait(who, e.ID); fmt.Sprint(printed) != c.want || done.Outcome != kernel.OutcomeOK {
			t.Errorf("the code heard %q, %+v", printed, done)
		}
		if c.word.Run {
			<-d.calls
		}
	}
	_, err := l.StartExecution(t.Context(), who, hub.NewExecution{Session: s.ID, Code: "say hello", Servers: []string{"desk"}, AskBefore: []string{"desk.god"}})
	fails(t, err, "tool_invalid")

	// The code ends, and the call with it.
	e := start()
	l.asks(who, e.ID)
	if _, err := l.InterruptExecution(t.Context(), who, e.ID); err != nil {
		t.Fatal(err)
	}
	l.wait(who, e.ID)
	_, err = l.ApproveCall(t.Context(), who, e.ID, 1, tool.Word{Run: true})
	fails(t, err, "call_not_waiting")

	// A server that stops waits for nobody's word.
	e = start()
	l.asks(who, e.ID)
	l.drained(time.Minute)
	if e, err = l.store.Execution(t.Context(), who.Project, e.ID); err != nil || e.State != "ok" || len(d.calls) != 0 {
		t.Errorf("ended as %s, %v, after %d calls", e.State, err, len(d.calls))
	}
}

// Who hears of a call may decide about it before the call has begun to wait.
func TestAWordThatComesEarly(t *testing.T) {
	t.Parallel()
	d := desk{auth.LocalProject, make(chan string, 10)}
	l, who := newLife(t, func(o *hub.Options) { o.ToolServers = d }), someone(auth.LocalProject)
	late := make(chan struct{})
	l.toys.callsLate.Store(&late)
	e, err := l.StartExecution(t.Context(), who, hub.NewExecution{Session: l.session(who).ID, Code: "call desk.good", Servers: []string{"desk"}, AskBefore: []string{"desk.good"}})
	if err != nil {
		t.Fatal(err)
	}
	l.asks(who, e.ID)
	if _, err := l.ApproveCall(t.Context(), who, e.ID, 1, tool.Word{Run: true}); err != nil {
		t.Fatal(err)
	}
	close(late)
	if printed, _ := l.wait(who, e.ID); fmt.Sprint(printed) != "[7]" {
		t.Errorf("the code heard %q", printed)
	}
}

func TestNobodyIsThereToAsk(t *testing.T) {
	t.Parallel()
	d := desk{auth.LocalProject, make(chan string, 10)}
	l, who := newLife(t, func(o *hub.Options) { o.ToolServers, o.Limits.Approval = d, time.Millisecond }), someone(auth.LocalProject)
	e, err := l.StartExecution(t.Context(), who, hub.NewExecution{Session: l.session(who).ID, Code: "call desk.good", Servers: []string{"desk"}, AskBefore: []string{"desk.good"}})
	if err != nil {
		t.Fatal(err)
	}
	if printed, _ := l.wait(who, e.ID); fmt.Sprint(printed) != "[it was not called: nobody said within 1ms whether it may be made]" || len(d.calls) != 0 {
		t.Errorf("the code heard %q", printed)
	}
	if _, err := l.ApproveCall(t.Context(), who, e.ID, 1, tool.Word{Run: true}); !problem.Has(err, problem.CallNotWaiting) {
		t.Error(err)
	}
}
