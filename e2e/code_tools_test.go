package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cove/internal/http/api"
	"cove/internal/http/client"
	"cove/internal/llm/loop"
	"cove/internal/llm/model/modeltest"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/python/kernel"
	"cove/internal/testkit/testneeds"
)

// codeToolsModel runs the program that the user's words have between marks, and then says what came of it.
func codeToolsModel(_ int, r modeltest.Request) modeltest.Turn {
	program, printed, asked := "", "", false
	for _, m := range r.Messages() {
		text := modeltest.Request{Body: map[string]any{"messages": []any{m}}}.Text()
		if _, rest, ok := strings.Cut(text, "<<<"); ok && m["role"] == "user" {
			program, _, _ = strings.Cut(rest, ">>>")
			printed, asked = "", false
		} else if m["role"] == "tool" {
			printed, asked = text, true
		}
	}
	if !asked {
		return modeltest.Run(program)
	}
	return modeltest.Say("It says: " + printed)
}

// client is a client of the server's own interface.
func (s *server) client() *client.Client { return client.New(s.base, s.key) }

// adding are the caller's functions for code.
func adding() []api.Tool {
	return []api.Tool{
		{Name: "add", Description: "Adds two numbers.", Callers: []string{"code"},
			Parameters: []byte(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`), Returns: []byte(`{"type":"integer"}`)},
		{Name: "fetch", Callers: []string{"code"}, Parameters: []byte(`{"type":"object","properties":{"what":{"type":"string"}},"required":["what"]}`)},
	}
}

// asked runs a turn to its end.
func asked(ctx context.Context, c *client.Client, conversation string, n api.NewTurn) (api.Turn, []loop.Event, error) {
	turn, events, err := c.Ask(ctx, conversation, n)
	if err != nil {
		return turn, nil, err
	}
	var all []loop.Event
	for e, err := range events {
		if err != nil {
			return turn, all, err
		}
		all = append(all, e)
	}
	turn, err = c.Turn(ctx, turn.ID)
	return turn, all, err
}

// TestCodeCallsTheClientsFunctions has code wait in the middle for what its client does, over several turns, and end well or badly.
func TestCodeCallsTheClientsFunctions(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(codeToolsModel)
	dir, key := t.TempDir(), testKey(t)
	environment := []string{"OPENAI_BASE_URL=" + upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted"}
	s := startServer(t, dir, key, environment...)
	t.Run("goes on", func(t *testing.T) { codeGoesOn(t, s, upstream) })
	t.Run("ends", func(t *testing.T) { codeEnds(t, s, environment) })
	c := s.client()
	turn, _, err := asked(t.Context(), c, "", api.NewTurn{Prompt: `<<<import tools; print(tools.add(a=1, b=2))>>>`, Tools: adding()})
	if err != nil || len(turn.Calls) != 1 {
		t.Fatalf("%v %+v", err, turn)
	}
	s.kill()
	s = startServer(t, dir, key, environment...)
	_, _, err = asked(t.Context(), s.client(), turn.Conversation, api.NewTurn{Results: []api.Result{{Call: turn.Calls[0].ID, Text: "3"}}, Tools: adding()})
	if err == nil || !strings.Contains(err.Error(), "does not wait for their results") {
		t.Errorf("a result behind a restart: %v", err)
	}
	if turn, _, err = asked(t.Context(), s.client(), turn.Conversation, api.NewTurn{Prompt: "<<<print(1)>>>", Tools: adding()}); err != nil || turn.Answer != "It says: 1" {
		t.Errorf("%v %+v", err, turn)
	}
}

func codeGoesOn(t *testing.T, s *server, upstream *modeltest.Server) {
	c := s.client()
	before := len(upstream.Requests())
	turn, events, err := asked(t.Context(), c, "", api.NewTurn{Prompt: `<<<
import asyncio, tools
print("before")
a = tools.add(a=1, b=2)
b, c = await asyncio.gather(tools.aio.add(a=a, b=10), tools.aio.add(a=a, b=20))
try:
    tools.fetch(what="the moon")
except tools.ToolError as e:
    print(e)
print(a, b, c)>>>`, Tools: adding()})
	if err != nil || turn.State != "waiting" || len(turn.Calls) != 1 || turn.Calls[0].Name != "add" || turn.Calls[0].Arguments != `{"a": 1, "b": 2}` || turn.Calls[0].Execution == "" {
		t.Fatalf("%v %+v", err, turn)
	}
	if !slices.ContainsFunc(events, func(e loop.Event) bool {
		o, _ := e.(loop.Output)
		printed, ok := o.Event.(kernel.Stream)
		return ok && string(printed.Data) == "before\n"
	}) {
		t.Errorf("what was printed before a call was not told before: %v", events)
	}
	if asks := upstream.Requests()[before].Text(); !strings.Contains(asks, "`add(a: int, b: int) -> int`: Adds two numbers.") || strings.Contains(fmt.Sprint(upstream.Requests()[before].Tools()), "add") {
		t.Errorf("the model is told: %s", asks)
	}
	execution := turn.Calls[0].Execution
	if turn, _, err = asked(t.Context(), c, turn.Conversation, api.NewTurn{Results: []api.Result{{Call: turn.Calls[0].ID, Text: "3"}}, Tools: adding()}); err != nil || len(turn.Calls) != 2 || turn.Calls[1].Execution != execution {
		t.Fatalf("%v %+v", err, turn)
	}
	results := []api.Result{{Call: turn.Calls[1].ID, Text: "23"}, {Call: turn.Calls[0].ID, Text: "13"}}
	if turn, _, err = asked(t.Context(), c, turn.Conversation, api.NewTurn{Results: results, Tools: adding()}); err != nil || len(turn.Calls) != 1 || turn.Calls[0].Name != "fetch" {
		t.Fatalf("%v %+v", err, turn)
	}
	turn, events, err = asked(t.Context(), c, turn.Conversation, api.NewTurn{Results: []api.Result{{Call: turn.Calls[0].ID, Text: "it is too far", Error: true}}, Tools: adding()})
	if err != nil || turn.State != "completed" || turn.Answer != "It says: before\nfetch: it is too far\n3 13 23" {
		t.Errorf("%v %+v", err, turn)
	}
	if start, ok := events[0].(loop.Start); !ok || !start.Resumed {
		t.Errorf("the turn begins with %#v", events[0])
	}
	if asks := len(upstream.Requests()) - before; asks != 2 {
		t.Errorf("the model was asked %d times", asks)
	}
	e, err := c.Execution(t.Context(), execution)
	if err != nil || e.State != "ok" {
		t.Errorf("%v %+v", err, e)
	}
	recorded, printed := "", ""
	for event, err := range c.Follow(t.Context(), execution, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if stream, ok := event.(kernel.Stream); ok {
			printed += string(stream.Data)
		}
		recorded += fmt.Sprintf("%T%+v\n", event, event)
	}
	if strings.Count(recorded, "ToolCall{") != 4 || strings.Count(recorded, "CallsWait{") != 3 || printed != "before\nfetch: it is too far\n3 13 23\n" || !strings.Contains(recorded, "Outcome:ok") {
		t.Errorf("the record of the execution: %s", recorded)
	}
}

func codeEnds(t *testing.T, s *server, environment []string) {
	c := s.client()
	ask := func() api.Turn {
		turn, _, err := asked(t.Context(), c, "", api.NewTurn{Prompt: `<<<import tools; x = 7; print(tools.add(a=1, b=2))>>>`, Tools: adding()})
		if err != nil || len(turn.Calls) != 1 {
			t.Fatalf("%v %+v", err, turn)
		}
		return turn
	}
	t.Run("the conversation goes on without", func(t *testing.T) {
		turn := ask()
		next, _, err := asked(t.Context(), c, turn.Conversation, api.NewTurn{Prompt: "<<<print(x)>>>", Tools: adding()})
		if err != nil || next.Answer != "It says: 7" {
			t.Errorf("%v %+v", err, next)
		}
		if _, _, err := asked(t.Context(), c, turn.Conversation, api.NewTurn{Results: []api.Result{{Call: turn.Calls[0].ID, Text: "3"}}, Tools: adding()}); err == nil || !strings.Contains(err.Error(), "went on without") {
			t.Errorf("a result that comes too late: %v", err)
		}
	})
	t.Run("the turn is cancelled", func(t *testing.T) {
		turn := ask()
		if _, err := c.CancelTurn(t.Context(), turn.ID); err != nil {
			t.Fatal(err)
		}
		_, _, err := asked(t.Context(), c, turn.Conversation, api.NewTurn{Results: []api.Result{{Call: turn.Calls[0].ID, Text: "3"}}, Tools: adding()})
		if err == nil || !strings.Contains(err.Error(), "does not wait for their results") {
			t.Errorf("a result for a turn that was cancelled: %v", err)
		}
	})
	t.Run("the session is deleted", func(t *testing.T) {
		turn := ask()
		if err := c.DeleteSession(t.Context(), turn.Session); err != nil {
			t.Fatal(err)
		}
		if _, _, err := asked(t.Context(), c, turn.Conversation, api.NewTurn{Results: []api.Result{{Call: turn.Calls[0].ID, Text: "3"}}, Tools: adding()}); err == nil {
			t.Error("a result for code of a deleted session is taken")
		}
		if e, err := c.Execution(t.Context(), turn.Calls[0].Execution); err != nil || !e.State.Final() {
			t.Errorf("%v %+v", err, e)
		}
	})
	t.Run("twice", func(t *testing.T) {
		turn := ask()
		bring := func() error {
			_, _, err := asked(t.Context(), c, turn.Conversation, api.NewTurn{Results: []api.Result{{Call: turn.Calls[0].ID, Text: "3"}}, Tools: adding()})
			return err
		}
		if err := bring(); err != nil {
			t.Error(err)
		}
		if err := bring(); err == nil {
			t.Error("a result is taken twice")
		}
	})
	t.Run("a bad result", func(t *testing.T) {
		turn := ask()
		next, _, err := asked(t.Context(), c, turn.Conversation, api.NewTurn{Results: []api.Result{{Call: turn.Calls[0].ID, Text: "three"}}, Tools: adding()})
		if err != nil || !strings.Contains(next.Answer, "the result does not fit") {
			t.Errorf("%v %+v", err, next)
		}
	})
	t.Run("the sandbox dies", func(t *testing.T) {
		turn := ask()
		for _, pid := range sandboxtest.Processes(t, "runsc-sandbox", s.runtime) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
			if e, err := c.Execution(t.Context(), turn.Calls[0].Execution); err != nil || e.State.Final() {
				break
			}
		}
		next, _, err := asked(t.Context(), c, turn.Conversation, api.NewTurn{Results: []api.Result{{Call: turn.Calls[0].ID, Text: "3"}}, Tools: adding()})
		// Who brings results in the moment in which the end is recorded hears of it from the model.
		if told := err == nil && strings.Contains(next.Answer, "The sandbox died"); !told && (err == nil || !strings.Contains(err.Error(), "sandbox_died")) {
			t.Errorf("a result for code whose sandbox died: %v %+v", err, next)
		}
		if next, _, err = asked(t.Context(), c, turn.Conversation, api.NewTurn{Prompt: "<<<print(5)>>>", Tools: adding()}); err != nil || !strings.Contains(next.Answer, "5") {
			t.Errorf("%v %+v", err, next)
		}
	})
	t.Run("nobody brings results", func(t *testing.T) {
		own := startServer(t, "", testKey(t), append(slices.Clone(environment), "COVE_RESULTS_WAIT=1s")...)
		c := own.client()
		turn, _, err := asked(t.Context(), c, "", api.NewTurn{Prompt: `<<<import tools; print(tools.add(a=1, b=2))>>>`, Tools: adding()})
		if err != nil || len(turn.Calls) != 1 {
			t.Fatalf("%v %+v", err, turn)
		}
		for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
			if e, err := c.Execution(t.Context(), turn.Calls[0].Execution); err != nil || e.State.Final() {
				break
			}
		}
		_, _, err = asked(t.Context(), c, turn.Conversation, api.NewTurn{Results: []api.Result{{Call: turn.Calls[0].ID, Text: "3"}}, Tools: adding()})
		if err == nil || !strings.Contains(err.Error(), "nobody brought within 1s") {
			t.Errorf("a result behind the patience: %v", err)
		}
	})
}
