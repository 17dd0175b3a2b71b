package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// lineFor is what code gets for a request; false: nobody hears of it any more.
func lineFor(ctx context.Context, inputs *kernel.Inputs, r kernel.InputRequest, yield func(kernel.Event, error) bool) (string, bool) {
	if inputs == nil {
		return "nobody can be asked", true
	}
	inputs.Asking(r.Number)
	if !yield(r, nil) {
		return "", false
	}
	text, err := inputs.Answer(ctx, r.Number)
	reply := kernel.InputReply{Number: r.Number, Ended: err != nil, Secret: r.Password && err == nil}
	if !r.Password {
		reply.Text = text
	}
	if err != nil {
		text = "EOF: " + err.Error()
	}
	return text, yield(reply, nil)
}

// askingFor starts code that asks, and waits until it does so for the last time.
func (l *life) askingFor(who auth.Principal, session, code string) hub.Execution {
	l.t.Helper()
	e, err := l.StartExecution(l.t.Context(), who, hub.NewExecution{Session: session, Code: code, Asks: true})
	if err != nil {
		l.t.Fatal(err)
	}
	l.asksFor(who, e.ID, 1)
	return e
}

// asksFor waits until an execution asks for a line.
func (l *life) asksFor(who auth.Principal, id string, number int) {
	l.t.Helper()
	f, err := l.Follow(l.t.Context(), who, id, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	for n, err := range f {
		if err != nil {
			l.t.Fatal(err)
		}
		if r, ok := n.Event.(kernel.InputRequest); ok && r.Number == number {
			return
		}
	}
	l.t.Fatal("the code ended without asking")
}

// told returns what the events of an execution tell of input.
func (l *life) told(who auth.Principal, id string) (events []kernel.Event) {
	l.t.Helper()
	f, err := l.Follow(l.t.Context(), who, id, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	for n, err := range f {
		if err != nil {
			l.t.Fatal(err)
		}
		switch n.Event.(type) {
		case kernel.InputRequest, kernel.InputReply:
			events = append(events, n.Event)
		}
	}
	return events
}

func TestInputIsAnsweredByEvents(t *testing.T) {
	t.Parallel()
	l, who, other := newLife(t, func(o *hub.Options) { o.Limits.Executions, o.Redaction = 1, hub.Redaction{Kinds: []string{"emails"}} }), someone(auth.LocalProject), someone("prj_other")
	viewer := who
	viewer.Role = auth.Viewer
	s := l.session(who)
	e := l.askingFor(who, s.ID, "input Name of ada@example.com:\ngetpass Password:\ninput Last:")
	// While somebody thinks, others run code.
	if printed, _ := l.run(other, l.session(other).ID, "say hello"); fmt.Sprint(printed) != "[hello]" {
		t.Errorf("another project's code said %q", printed)
	}
	answer := func(who auth.Principal, id string, number int, r hub.InputReply) error {
		_, err := l.AnswerInput(t.Context(), who, id, number, r)
		return err
	}
	for _, c := range []struct {
		who    auth.Principal
		number int
		reply  hub.InputReply
		want   string
	}{
		{other, 1, hub.InputReply{Text: "Eve"}, "execution_not_found"},
		{viewer, 1, hub.InputReply{Text: "Eve"}, "forbidden"},
		{who, 2, hub.InputReply{Text: "Ada"}, "input_not_waiting"},
		{who, 1, hub.InputReply{Text: "Ada\nEve"}, "invalid_request"},
		{who, 1, hub.InputReply{Text: "Ada\rEve"}, "invalid_request"},
		{who, 1, hub.InputReply{Text: "Ada", End: true}, "invalid_request"},
		{who, 1, hub.InputReply{Text: strings.Repeat("x", 64<<10+1)}, "invalid_request"},
		{who, 1, hub.InputReply{Text: "a\xffb"}, "invalid_request"},
	} {
		fails(t, answer(c.who, e.ID, c.number, c.reply), c.want)
	}
	fails(t, answer(who, "exe_"+strings.Repeat("0", 26), 1, hub.InputReply{}), "execution_not_found")

	// Of two answers at once, one counts.
	var all sync.WaitGroup
	won := make(chan string, 10)
	for n := range 10 {
		all.Go(func() {
			text := fmt.Sprint("Ada ", n, " ada@example.com")
			if err := answer(who, e.ID, 1, hub.InputReply{Text: text}); err == nil {
				won <- text
			} else if !problem.Has(err, problem.InputNotWaiting) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(won) != 1 {
		t.Fatalf("%d answers counted", len(won))
	}
	l.asksFor(who, e.ID, 2)
	if err := answer(who, e.ID, 2, hub.InputReply{Text: "sesame"}); err != nil {
		t.Error(err)
	}
	l.asksFor(who, e.ID, 3)
	if err := answer(who, e.ID, 3, hub.InputReply{End: true}); err != nil {
		t.Error(err)
	}
	text := <-won
	printed, done := l.wait(who, e.ID)
	if got := strings.Join(printed, "|"); done.Outcome != kernel.OutcomeOK || !strings.HasPrefix(got, strings.TrimSuffix(text, "ada@example.com")) || !strings.HasSuffix(got, "|sesame|EOF: somebody ended the input") {
		t.Errorf("the code got %q, %+v", printed, done)
	}
	told := l.told(who, e.ID)
	if len(told) != 6 || strings.Contains(fmt.Sprint(told), "example.com") || strings.Contains(fmt.Sprint(told[2:]), "sesame") {
		t.Errorf("the events tell %+v", told)
	} else if told[3] != (kernel.InputReply{Number: 2, Secret: true}) || told[5] != (kernel.InputReply{Number: 3, Ended: true}) {
		t.Errorf("the events tell %+v", told)
	}
	fails(t, answer(who, e.ID, 3, hub.InputReply{Text: "late"}), "input_not_waiting")
	rows, err := l.store.Rows(t.Context(), audit.Query{Project: who.Project, Limit: 100})
	if err != nil || !slices.Contains(l.auditedLast(who, 100), "execution.input ok") {
		t.Errorf("the audit log has %v, %v", l.auditedLast(who, 100), err)
	}
	for _, row := range rows {
		if row.Action == "execution.input" && (strings.Contains(row.Detail, "Ada") || strings.Contains(row.Detail, "sesame")) {
			t.Errorf("the audit log has the text: %+v", row)
		}
	}

	// Code that was not offered input gets none.
	if printed, _ := l.run(who, s.ID, "input ?"); fmt.Sprint(printed) != "[nobody can be asked]" {
		t.Errorf("it got %q", printed)
	}
	// The code ends, and the request with it.
	e = l.askingFor(who, s.ID, "input ?")
	if _, err := l.InterruptExecution(t.Context(), who, e.ID); err != nil {
		t.Fatal(err)
	}
	l.wait(who, e.ID)
	fails(t, answer(who, e.ID, 1, hub.InputReply{Text: "late"}), "input_not_waiting")
	// A server that stops waits for nobody.
	e = l.askingFor(who, s.ID, "input ?\ninput ?")
	l.drained(time.Minute)
	if e, err := l.store.Execution(t.Context(), who.Project, e.ID); err != nil || e.State != "ok" {
		t.Errorf("ended as %s, %v", e.State, err)
	}
}

// TestInputThatNobodyAnswers waits once, and not for what is asked after that.
func TestInputThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, func(o *hub.Options) { o.Limits.Approval = time.Millisecond }), someone(auth.LocalProject)
	e := l.askingFor(who, l.session(who).ID, "input ?\ninput ?")
	if printed, done := l.wait(who, e.ID); fmt.Sprint(printed) != "[EOF: nobody said anything in time EOF: nobody is there to answer]" || done.Outcome != kernel.OutcomeOK {
		t.Errorf("the code got %q, %+v", printed, done)
	}
	if _, err := l.AnswerInput(t.Context(), who, e.ID, 1, hub.InputReply{Text: "late"}); !problem.Has(err, problem.InputNotWaiting) {
		t.Error(err)
	}
}

// TestInputOfAServerThatDies is lost with the execution.
func TestInputOfAServerThatDies(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	e := l.askingFor(who, l.session(who).ID, "input ?")
	stored(t, l, e.ID, 1)
	next := l.killed()
	if e, err := next.Execution(t.Context(), who, e.ID); err != nil || e.State != hub.ExecutionLost {
		t.Errorf("it is %s, %v", e.State, err)
	}
	_, err := next.AnswerInput(t.Context(), who, e.ID, 1, hub.InputReply{Text: "late"})
	fails(t, err, "input_not_waiting")
	if told := next.told(who, e.ID); len(told) != 1 {
		t.Errorf("the events tell %+v", told)
	}
}
