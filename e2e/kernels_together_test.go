package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"cove/internal/http/api"
	"cove/internal/llm/loop"
	"cove/internal/llm/model/modeltest"
	"cove/internal/python/kernel"
	"cove/internal/testkit/testneeds"
)

// TestProgramsOfOneAnswerRunTogether has a model call the interpreter three times at once. Each program waits for the other two, so that none would end if they ran one after the other.
func TestProgramsOfOneAnswerRunTogether(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	const program = `
import os, time
name = %q
open(name + ".txt", "w").close()
until = time.monotonic() + 240
while not all(os.path.exists(n + ".txt") for n in ("main", "north", "south")):
    assert time.monotonic() < until, "alone"
    time.sleep(0.01)
print(name, "met the others")`
	upstream.Decide(func(_ int, r modeltest.Request) modeltest.Turn {
		results := 0
		for _, m := range r.Messages() {
			if m["role"] == "tool" {
				results++
			}
		}
		call := func(kernel, code string) modeltest.Call {
			return modeltest.Call{Name: "python", Arguments: fmt.Sprintf(`{"code":%q,"kernel":%q}`, code, kernel)}
		}
		switch results {
		case 0:
			return modeltest.Turn{Calls: []modeltest.Call{call("main", fmt.Sprintf(program, "main")), call("north", fmt.Sprintf(program, "north")), call("south", fmt.Sprintf(program, "south"))}}
		case 3: // a kernel keeps its variables
			return modeltest.Turn{Calls: []modeltest.Call{call("south", "print(name)"), call("", "print(name)")}}
		}
		return modeltest.Say("Done.")
	})
	s := startServer(t, "", testKey(t), "OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted")
	turn, all, err := asked(t.Context(), s.client(), "", api.NewTurn{Prompt: "Go.", Kernels: 2})
	if err != nil || turn.State != "completed" || turn.Steps != 5 {
		t.Fatalf("%v %+v", err, turn)
	}
	var told []string
	for _, e := range all {
		switch e := e.(type) {
		case loop.Start:
			told = append(told, fmt.Sprintf("%d in %q", e.Step, e.Kernel))
		case loop.Output:
			if out, ok := e.Event.(kernel.Stream); ok {
				told = append(told, fmt.Sprintf("%d: %s", e.Step, strings.TrimSpace(string(out.Data))))
			}
		}
	}
	want := `1 in "", 1: main met the others, 2 in "north", 2: north met the others, 3 in "south", 3: south met the others, 4 in "south", 4: south, 5 in "", 5: main`
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("told %s", got)
	}
	var list struct{ Items []api.Execution }
	s.must("GET", "/api/v1/executions?turn="+turn.ID+"&order=oldest", nil, &list)
	kernels := map[string]int{}
	for _, e := range list.Items {
		kernels[e.Kernel]++
		if e.State != "ok" {
			t.Errorf("%+v", e)
		}
	}
	if fmt.Sprint(kernels) != "map[main:2 north:1 south:2]" {
		t.Errorf("ran in %v", kernels)
	}
	if r, err := s.call(t.Context(), "POST", "/api/v1/turns", map[string]any{"prompt": "Go.", "kernels": 2, "tools": adding()}); err != nil || r.code() != "turn_invalid" {
		t.Errorf("kernels and functions for code: %v %s", err, r.body)
	}
}
