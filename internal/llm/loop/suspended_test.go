package loop_test

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"testing"

	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/llm/tool"
	"cove/internal/python/kernel"
)

// lookups are what code may call in these tests.
func lookups(t *testing.T, n int) *tool.Set {
	t.Helper()
	var all []tool.Tool
	for i := range n {
		all = append(all, tool.Tool{Name: "lookup" + strconv.Itoa(i), Description: "Finds the value of a key.", Parameters: json.RawMessage(`{"type":"object","properties":{"key":{"type":"string"}},"required":["key"]}`)})
	}
	set, err := tool.NewSet(all)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func waits(id string) kernel.Event {
	return kernel.CallsWait{Calls: []kernel.WaitingCall{{ID: id, Name: "lookup", Arguments: `{"key":"a"}`}}}
}

// turnOf runs one turn and returns its answer.
func turnOf(t *testing.T, m model.Model, s loop.Executor, spec loop.Turn) loop.Answer {
	t.Helper()
	spec.Python, spec.Offered = true, lookups(t, 1)
	var answer loop.Answer
	for e, err := range loop.Run(t.Context(), m, s, within(loop.Limits{}), spec) {
		if err != nil {
			t.Fatal(err)
		}
		if a, ok := e.(loop.Answer); ok {
			answer = a
		}
	}
	return answer
}

func asks(words string) []model.Message {
	return []model.Message{{Role: model.RoleUser, Content: []model.Content{model.Text{Text: words}}}}
}

// emits is what code emits after it has its results.
func emits(events ...kernel.Event) func(context.Context) iter.Seq2[kernel.Event, error] {
	return func(context.Context) iter.Seq2[kernel.Event, error] {
		return func(yield func(kernel.Event, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// TestCodeWaitsForTheClient has the first of two programs of one answer wait, beside a function that the model calls itself, and go on twice.
func TestCodeWaitsForTheClient(t *testing.T) {
	t.Parallel()
	both := calls("first()", "second()")
	call := model.ToolCall{ID: "call_own", Name: "ask", Arguments: "{}"}
	finish, _ := both.parts[len(both.parts)-1].(model.Finish)
	finish.Calls = append(finish.Calls, call)
	both.parts = append(both.parts[:len(both.parts)-1], model.CallDelta{Index: 2, ID: call.ID, Name: call.Name, Arguments: "{}"}, finish)
	m := &scripted{t: t, can: tools(), script: []says{both, text("All done.")}}
	s := &session{outcomes: map[string][]kernel.Event{"first()": {stdout("one\n"), waits("call_x_1")}, "second()": prints("two\n")}}
	functions := []model.Tool{{Name: "ask"}}
	a := turnOf(t, m, s, loop.Turn{Input: asks("go"), Tools: functions})
	if a.Reason != loop.ClientCalls || a.Suspended == nil || len(a.Calls) != 2 || a.Calls[0].ID != "call_own" || a.Calls[1].ID != "call_x_1" || a.Suspended.Size() == 0 {
		t.Fatalf("%+v", a)
	}
	own := model.Message{Role: model.RoleTool, Content: []model.Content{model.ToolResult{CallID: "call_own", Text: "yes"}}}
	history := a.Messages
	a = turnOf(t, m, s, loop.Turn{History: history, Input: []model.Message{own}, Tools: functions, Suspended: a.Suspended, Resume: emits(stdout("more\n"), waits("call_x_2"))})
	if a.Suspended == nil || len(a.Calls) != 1 || a.Calls[0].ID != "call_x_2" {
		t.Fatalf("%+v", a)
	}
	history = append(history, a.Messages...)
	a = turnOf(t, m, s, loop.Turn{History: history, Tools: functions, Suspended: a.Suspended, Resume: emits(stdout("end\n"), kernel.Done{Outcome: kernel.OutcomeOK})})
	if a.Text != "All done." || len(m.requests) != 2 || strings.Join(s.codes(), " ") != "first() second()" {
		t.Fatalf("%+v after %d model calls, ran %q", a, len(m.requests), s.codes())
	}
	if got, want := m.lastTexts(1), "one\nmore\nend\n---\ntwo\n---\nyes"; got != want {
		t.Errorf("the model is told %q instead of %q", got, want)
	}
}

// TestCodeInTextWaits has a model without tools write code that waits.
func TestCodeInTextWaits(t *testing.T) {
	t.Parallel()
	m := &scripted{t: t, script: []says{text("I look.\n```python\nlook()\n```"), text("It is 7.")}}
	s := &session{outcomes: map[string][]kernel.Event{"look()": {waits("call_x_1")}}}
	a := turnOf(t, m, s, loop.Turn{Input: asks("go")})
	if a.Suspended == nil {
		t.Fatalf("%+v", a)
	}
	a = turnOf(t, m, s, loop.Turn{History: a.Messages, Suspended: a.Suspended, Resume: emits(stdout("7\n"), kernel.Done{Outcome: kernel.OutcomeOK})})
	if a.Text != "It is 7." || !strings.Contains(m.lastTexts(1), "Result of the code:\n```\n7") {
		t.Errorf("%+v, told %q", a, m.lastTexts(1))
	}
}

// TestCodeWaitsWithoutItsHistory has a client that keeps the conversation leave the code out, or send it back under another id.
func TestCodeWaitsWithoutItsHistory(t *testing.T) {
	t.Parallel()
	for name, history := range map[string][]model.Message{
		"left out": asks("go"),
		"another id": append(asks("go"), model.Message{Role: model.RoleAssistant, Content: []model.Content{
			model.ToolCall{ID: "srvtoolu_1", Name: "python", Arguments: `{"code": "look()"}`}}}),
	} {
		m := &scripted{t: t, can: tools(), script: []says{calls("look()"), text("It is 7.")}}
		s := &session{outcomes: map[string][]kernel.Event{"look()": {waits("call_x_1")}}}
		a := turnOf(t, m, s, loop.Turn{Input: asks("go")})
		a = turnOf(t, m, s, loop.Turn{History: history, Suspended: a.Suspended, Resume: emits(stdout("7\n"), kernel.Done{Outcome: kernel.OutcomeOK}), Input: asks("and in words")})
		messages := m.requests[1].Messages
		if a.Text != "It is 7." || len(messages) != 4 || texts(messages[2]) != "7" || texts(messages[3]) != "and in words" {
			t.Errorf("%s: %+v, told %+v", name, a, messages)
		}
	}
}

func TestFunctionsForCodeInThePrompt(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{2: "`lookup1(key: str)`: Finds the value of a key.", 900: "There are 900 functions for your code"} {
		m := &scripted{t: t, can: tools(), script: []says{text("Hello.")}}
		spec := loop.Turn{Python: true, Input: asks("go"), Offered: lookups(t, n)}
		for _, err := range loop.Run(t.Context(), m, &session{}, within(loop.Limits{}), spec) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := m.requests[0].System; !strings.Contains(got, want) || !strings.Contains(got, "import tools") || len(got) > 25_000 {
			t.Errorf("%d functions: %s", n, got)
		}
	}
}
