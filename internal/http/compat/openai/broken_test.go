package openai_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

// brokenOff is a turn whose first answer breaks off, in the middle of code, and is asked for again.
func brokenOff() []loop.Event {
	return []loop.Event{
		loop.Text{Delta: "The total is 4"}, loop.Code{Step: 1, Delta: "print("}, loop.Notice{Text: "broke off"},
		loop.Text{Delta: "The sum: 4"}, loop.Notice{Text: "broke off again"},
		loop.Text{Delta: "The total is 42."}, loop.Answer{Text: "The total is 42.", Reason: loop.Complete},
	}
}

// TestBrokenAnswers shows that a client that gets a whole answer gets only what holds; a stream names everything that it announced.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	s := serve(t, newFake(brokenOff()...))
	_, whole, _ := ask(t, s, "POST", "/v1/responses", `{"model":"m","input":"Q",`+python+`}`)
	_, again, _ := ask(t, s, "GET", "/v1/responses/"+at(whole, "id").(string), "")
	for name, answer := range map[string]map[string]any{"created": whole, "retrieved": again} {
		if output := at(answer, "output").([]any); len(output) != 1 || at(output[0], "content", 0, "text") != "The total is 42." {
			t.Errorf("%s: %v", name, answer)
		}
	}
	_, text, _ := raw(t, s, "POST", "/v1/responses", `{"model":"m","input":"Q","stream":true,`+python+`}`)
	got := frames(t, text)
	checkStream(t, got)
	if output := at(got[len(got)-1].data, "response", "output").([]any); len(output) != 4 || at(output[1], "status") != "incomplete" || at(output[2], "status") != "incomplete" {
		t.Errorf("%v", output)
	}
	_, chat, _ := ask(t, s, "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Q"}],"tools":[{"type":"code_interpreter"}]}`)
	if content := at(chat, "choices", 0, "message", "content"); content != "The total is 42." || at(chat, "choices", 0, "message", "code_interpreter_calls") != nil {
		t.Errorf("%v", chat)
	}
}

// TestCallsThatBrokeOff has a client's function called, half, and called again: a client must not run the half one.
func TestCallsThatBrokeOff(t *testing.T) {
	t.Parallel()
	f := newFake(loop.Call{ID: "call_a", Name: "f", Delta: `{"n":`}, loop.Notice{Text: "broke off"},
		loop.Call{ID: "call_b", Name: "f", Delta: `{"n":`}, loop.Call{Delta: "1}"},
		loop.Answer{Reason: loop.ClientCalls, Calls: []model.ToolCall{{ID: "call_b", Name: "f", Arguments: `{"n":1}`}}})
	s := serve(t, f)
	_, whole, _ := ask(t, s, "POST", "/v1/responses", `{"model":"m","input":"Q",`+python+`}`)
	if output := at(whole, "output").([]any); len(output) != 1 || at(output[0], "call_id") != "call_b" || at(output[0], "arguments") != `{"n":1}` {
		t.Errorf("%v", output)
	}
	_, text, _ := raw(t, s, "POST", "/v1/responses", `{"model":"m","input":"Q","stream":true,`+python+`}`)
	got := frames(t, text)
	checkStream(t, got)
	if output := at(got[len(got)-1].data, "response", "output").([]any); len(output) != 2 || at(output[0], "status") != "incomplete" {
		t.Errorf("%v", output)
	}
	_, text, _ = raw(t, s, "POST", "/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"Q"}],"tools":[{"type":"code_interpreter"}]}`)
	if strings.Contains(text, "call_a") || strings.Count(text, `"tool_calls":[`) != 1 || !strings.Contains(text, `"arguments":"{\"n\":1}"`) {
		t.Errorf("%s", text)
	}
}

// TestWordsBesideCalls shows that what a model says before it calls both kinds of tools comes once, also when the code cannot be run.
func TestWordsBesideCalls(t *testing.T) {
	t.Parallel()
	begun := []loop.Event{loop.Text{Delta: "Both."}, loop.Code{Step: 1, Delta: "1"}, loop.Call{ID: "call_a", Name: "f", Delta: `{}`}}
	end := loop.Answer{Text: "Both.", Reason: loop.ClientCalls, Calls: []model.ToolCall{{ID: "call_a", Name: "f", Arguments: `{}`}}}
	for want, middle := range map[string][]loop.Event{
		"message completed, code_interpreter_call completed, function_call completed": {loop.Start{Step: 1, Code: "1"}, loop.Output{Step: 1, Event: done(kernel.OutcomeOK)}},
		"message completed, function_call completed":                                  {loop.Notice{Text: "could not be used"}},
	} {
		s := serve(t, newFake(append(slices.Concat(begun, middle), end)...))
		_, answer, _ := ask(t, s, "POST", "/v1/responses", `{"model":"m","input":"Q",`+python+`}`)
		var kinds []string
		for _, item := range at(answer, "output").([]any) {
			kinds = append(kinds, fmt.Sprint(at(item, "type"), " ", at(item, "status")))
		}
		if got := strings.Join(kinds, ", "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestFailureBeforeCode is an error with a status, which clients know how to treat; what was half said is not an answer.
func TestFailureBeforeCode(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.script = func(hub.NewTurn) ([]loop.Event, error) {
		return []loop.Event{loop.Text{Delta: "The"}, loop.Code{Step: 1, Delta: "x"}},
			problem.New(problem.ModelOverloaded, "it is overloaded").WithHint("choose another model with --model")
	}
	status, answer, header := ask(t, serve(t, f), "POST", "/v1/responses", `{"model":"m","input":"Q",`+python+`}`)
	if status != 503 || at(answer, "error", "type") != "server_error" || at(answer, "error", "message") != "The provider of the model is overloaded." || header.Get("X-Should-Retry") != "false" {
		t.Errorf("%d %v %v", status, answer, header)
	}
}

// TestFailureCodes are those that a stream's last event has.
func TestFailureCodes(t *testing.T) {
	t.Parallel()
	for code, p := range map[string]*problem.Error{
		"server_error":        problem.New(problem.ModelOverloaded, "it is overloaded"),
		"rate_limit_exceeded": problem.New(problem.ModelRateLimited, "slow down"),
		"insufficient_quota":  problem.New(problem.QuotaTokens, "no tokens are left today"),
		"invalid_prompt":      problem.New(problem.ModelContextTooLong, "it is too long"),
	} {
		f := newFake()
		f.script = func(hub.NewTurn) ([]loop.Event, error) {
			return []loop.Event{loop.Text{Delta: "x"}}, p
		}
		_, text, _ := raw(t, serve(t, f), "POST", "/v1/responses", `{"model":"m","input":"Q","stream":true}`)
		got := frames(t, text)
		if last := got[len(got)-1]; last.name != "response.failed" || at(last.data, "response", "error", "code") != code {
			t.Errorf("%s: %s %v", code, last.name, last.data)
		}
	}
}

// TestAddedItems shows that items that were added to a conversation reach the model once, whatever becomes of the response that was to be first.
func TestAddedItems(t *testing.T) {
	t.Parallel()
	f := newFake()
	down := problem.New(problem.ModelOverloaded, "it is overloaded")
	f.script = func(hub.NewTurn) ([]loop.Event, error) {
		return []loop.Event{loop.Text{Delta: "x"}}, down
	}
	s := serve(t, f)
	_, talk, _ := ask(t, s, "POST", "/v1/conversations", `{"items":[{"role":"developer","content":"D"},{"role":"user","content":"My name is Ada."}]}`)
	id := at(talk, "id").(string)
	say := func(words string, more string) int {
		status, _, _ := ask(t, s, "POST", "/v1/responses", `{"model":"m","input":"`+words+`","conversation":"`+id+`"`+more+`}`)
		return status
	}
	texts := func() string {
		_, page, _ := ask(t, s, "GET", "/v1/conversations/"+id+"/items?order=asc", "")
		var out []string
		for _, item := range at(page, "data").([]any) {
			out = append(out, fmt.Sprint(at(item, "content", 0, "text")))
		}
		return strings.Join(out, "|")
	}
	input := func() string {
		f.mu.Lock()
		defer f.mu.Unlock()
		n := f.asked[len(f.asked)-1]
		text, _ := json.Marshal(n.Input)
		return n.Instructions + " " + strings.Join(strings.Split(string(text), `"`), "")
	}
	for range 2 {
		if status := say("first", ""); status != 503 {
			t.Fatalf("%d", status)
		}
	}
	if got := texts(); got != "D|My name is Ada." {
		t.Errorf("after a failure the conversation has %s", got)
	}
	f.mu.Lock()
	f.script = func(hub.NewTurn) ([]loop.Event, error) {
		return []loop.Event{loop.Text{Delta: "Hi"}, loop.Answer{Text: "Hi", Reason: loop.Complete}}, nil
	}
	f.mu.Unlock()
	// One that is not stored takes nothing away.
	for _, words := range []string{"hidden", "second"} {
		more := map[string]string{"hidden": `,"store":false`}[words]
		if status := say(words, more); status != 200 || strings.Count(input(), "My name is Ada.") != 1 || !strings.HasPrefix(input(), "D [") || !strings.Contains(input(), words) {
			t.Errorf("%d %s", status, input())
		}
	}
	if status := say("third", ""); status != 200 || strings.Contains(input(), "Ada") {
		t.Errorf("%d %s", status, input())
	}
	if got := texts(); got != "D|My name is Ada.|second|Hi|third|Hi" {
		t.Errorf("the conversation has %s", got)
	}
}

// TestItemsAddedAtOnce has two clients add items at the same time: none gets lost.
func TestItemsAddedAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, newFake())
	_, talk, _ := ask(t, s, "POST", "/v1/conversations", `{}`)
	id := at(talk, "id").(string)
	added := make(chan struct{})
	const clients = 8
	for n := range clients {
		go func() {
			defer func() { added <- struct{}{} }()
			ask(t, s, "POST", "/v1/conversations/"+id+"/items", fmt.Sprintf(`{"items":[{"role":"user","content":"%d"}]}`, n))
		}()
	}
	for range clients {
		<-added
	}
	_, page, _ := ask(t, s, "GET", "/v1/conversations/"+id+"/items?limit=100", "")
	if got := len(at(page, "data").([]any)); got != clients {
		t.Errorf("%d of %d items are there", got, clients)
	}
}

// TestASlowConversationHoldsNoOther has the database take its time with one conversation.
func TestASlowConversationHoldsNoOther(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := serve(t, f)
	_, slow, _ := ask(t, s, "POST", "/v1/conversations", `{}`)
	_, quick, _ := ask(t, s, "POST", "/v1/conversations", `{}`)
	add := func(talk map[string]any) int {
		status, _, _ := ask(t, s, "POST", "/v1/conversations/"+at(talk, "id").(string)+"/items", `{"items":[{"role":"user","content":"x"}]}`)
		return status
	}
	gate := make(chan struct{})
	f.mu.Lock()
	f.changing = map[string]chan struct{}{ident.Conversation + "_" + ident.Body(at(slow, "id").(string)): gate}
	f.mu.Unlock()
	slowly, quickly := make(chan int, 1), make(chan int, 1)
	go func() { slowly <- add(slow) }()
	<-gate
	go func() { quickly <- add(quick) }()
	select {
	case status := <-quickly:
		if status != 200 {
			t.Errorf("the other is a %d", status)
		}
	case <-time.After(time.Minute):
		t.Error("the other conversation waits")
	}
	gate <- struct{}{}
	if status := <-slowly; status != 200 {
		t.Errorf("the slow one is a %d", status)
	}
}

func TestInputItemsPages(t *testing.T) {
	t.Parallel()
	s := serve(t, newFake(loop.Answer{Text: "x", Reason: loop.Complete}))
	_, answer, _ := ask(t, s, "POST", "/v1/responses", `{"model":"m","input":[{"role":"user","content":"0"},{"role":"user","content":"1"},{"role":"user","content":"2"}]}`)
	path := "/v1/responses/" + at(answer, "id").(string) + "/input_items"
	var got []string
	for after := ""; ; {
		_, page, _ := ask(t, s, "GET", path+"?order=asc&limit=2"+after, "")
		for _, item := range at(page, "data").([]any) {
			got = append(got, fmt.Sprint(at(item, "content", 0, "text")))
		}
		got = append(got, fmt.Sprint(at(page, "has_more")))
		if at(page, "has_more") != true {
			break
		}
		after = "&after=" + at(page, "last_id").(string)
	}
	if all := strings.Join(got, " "); all != "0 1 true 2 false" {
		t.Errorf("%s", all)
	}
	if status, _, _ := ask(t, s, "GET", path+"?limit=101", ""); status != 400 {
		t.Errorf("a page of 101: %d", status)
	}
}
