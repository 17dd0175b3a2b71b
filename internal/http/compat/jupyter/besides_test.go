package jupyter_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

// TestExpressions has a request's expressions evaluated behind its code, each as an execution that takes no number.
func TestExpressions(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.script = func(n hub.NewExecution, emit func(kernel.Event), _ <-chan struct{}) {
		done := kernel.Done{Outcome: kernel.OutcomeOK}
		switch strings.Trim(n.Code, "(\n)") {
		case "x":
			emit(kernel.Result{Count: 9, Data: kernel.Bundle{"text/plain": "6", "application/vnd.cove.table+json": json.RawMessage("{}")}})
		case "bad":
			emit(kernel.Error{Name: "NameError", Value: "no", Traceback: []string{"NameError: no"}})
			done = kernel.Done{Outcome: kernel.OutcomeError, ExitCode: 1}
		}
		emit(done)
	}
	s := g.dial(g.kernel(), "one")
	reply := s.next(s.send("shell", "execute_request", `{"code":"pass","user_expressions":{"a":"x","b":"bad","c":"none","d":7}}`), "execute_reply")
	got, _ := json.Marshal(reply.Content["user_expressions"])
	const want = `{"a":{"data":{"text/plain":"6"},"metadata":{},"status":"ok"},` +
		`"b":{"ename":"NameError","evalue":"no","status":"error","traceback":["NameError: no"]},` +
		`"c":{"data":{"text/plain":"None"},"metadata":{},"status":"ok"},` +
		`"d":{"ename":"TypeError","evalue":"an expression is a string","status":"error","traceback":["TypeError: an expression is a string"]}}`
	if string(got) != want || reply.Content["status"] != "ok" || reply.Content["execution_count"] != 1.0 {
		t.Errorf("%s\nand not\n%s\n%v", got, want, reply.Content)
	}
	if n := g.asked[len(g.asked)-1]; !n.Unnumbered || n.Code != "(\nnone\n)" {
		t.Errorf("an expression is run as %+v", n)
	}
	// Only the reply tells of them, and code that fails has none.
	for code, want := range map[string]string{"": `"user_expressions":{"a":{"data"`, "bad": `"user_expressions":{}`} {
		said := s.all(s.send("shell", "execute_request", `{"code":"`+code+`","user_expressions":{"a":"x"}}`))
		if !strings.Contains(said, want) || strings.Contains(said, "execute_result") {
			t.Errorf("%q: %s", code, said)
		}
	}
	many := map[string]string{}
	for i := range 40 {
		many[fmt.Sprint(i)] = "x"
	}
	text, _ := json.Marshal(map[string]any{"code": "", "user_expressions": many})
	before := len(g.asked)
	if said := s.all(s.send("shell", "execute_request", string(text))); strings.Count(said, "at most 32") != 2*8 || len(g.asked) != before+32 {
		t.Errorf("%d executions: %s", len(g.asked)-before, said)
	}
}

// TestPayloads has what a client is to do after a cell come in the reply, made of known members alone.
func TestPayloads(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.script = func(_ hub.NewExecution, emit func(kernel.Event), _ <-chan struct{}) {
		for _, payload := range []string{
			`{"source":"page","data":{"text/plain":"help","text/vnd.cove.told":"-"},"start":2,"more":1}`, `{"source":"set_next_input","text":"1","replace":true}`,
			`{"source":"ask_exit"}`, `{"source":7}`, `[]`,
		} {
			emit(kernel.Display{Data: kernel.Bundle{"text/plain": "shown", kernel.MIMEPayload: json.RawMessage(payload)}})
		}
		emit(kernel.Done{Outcome: kernel.OutcomeOK})
	}
	s := g.dial(g.kernel(), "one")
	said := s.all(s.send("shell", "execute_request", `{"code":"x?"}`))
	const want = `"payload":[{"data":{"text/plain":"help"},"source":"page","start":2},{"replace":true,"source":"set_next_input","text":"1"}]`
	if !strings.Contains(said, want) || strings.Count(said, "display_data") != 3 || strings.Contains(said, "vnd.cove") {
		t.Error(said)
	}
}
