package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/http/api"
	"cove/internal/http/client"
	"cove/internal/llm/model/modeltest"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
	"cove/internal/testkit/testneeds"
)

// TestCodeWaitsWithoutItsSession pauses sessions whose code waits for its client.
func TestCodeWaitsWithoutItsSession(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(codeToolsModel)
	environment := []string{"OPENAI_BASE_URL=" + upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted", "COVE_POOL=0"}
	s := startServer(t, "", testKey(t), environment...)
	t.Run("goes on", func(t *testing.T) { parkedGoesOn(t, s) })
	t.Run("others", func(t *testing.T) { parkedBesideOthers(t, s.client()) })
	t.Run("ends", func(t *testing.T) { parkedEnds(t, s) })
	t.Run("nobody brings results", func(t *testing.T) {
		c := startServer(t, "", testKey(t), append(slices.Clone(environment), "COVE_RESULTS_WAIT=4s")...).client()
		turn := waitingTurn(t, c, `x = 7; import tools; print(tools.add(a=1, b=2))`)
		paused(t, c, turn)
		e := finalExecution(t, c, turn.Calls[0].Execution)
		if e.State != "interrupted" || !strings.Contains(e.Message, "nobody brought within 4s") {
			t.Errorf("%+v", e)
		}
		if _, err := bring(t, c, turn, "3"); err == nil || !strings.Contains(err.Error(), "nobody brought within 4s") {
			t.Errorf("a result that comes too late: %v", err)
		}
		if got := printedIn(t, c, turn.Session, "print(x)"); got != "7\n" {
			t.Errorf("%q", got)
		}
	})
}

// waitingTurn runs a turn whose program waits for one call.
func waitingTurn(t *testing.T, c *client.Client, program string) api.Turn {
	t.Helper()
	turn, _, err := asked(t.Context(), c, "", api.NewTurn{Prompt: "<<<" + program + ">>>", Tools: adding()})
	if err != nil || len(turn.Calls) != 1 {
		t.Fatalf("%v %+v", err, turn)
	}
	return turn
}

// paused pauses the session of a turn.
func paused(t *testing.T, c *client.Client, turn api.Turn) {
	t.Helper()
	if s, err := c.PauseSession(t.Context(), turn.Session); err != nil || s.State != "paused" {
		t.Fatalf("%v %+v", err, s)
	}
}

// bring brings the result of a turn's only call.
func bring(t *testing.T, c *client.Client, turn api.Turn, result string) (api.Turn, error) {
	t.Helper()
	next, _, err := asked(t.Context(), c, turn.Conversation, api.NewTurn{Results: []api.Result{{Call: turn.Calls[0].ID, Text: result}}, Tools: adding()})
	return next, err
}

func finalExecution(t *testing.T, c *client.Client, id string) api.Execution {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if e, err := c.Execution(t.Context(), id); err != nil {
			t.Fatal(err)
		} else if e.State.Final() {
			return e
		}
	}
	t.Fatal("the execution did not end")
	return api.Execution{}
}

// printedIn runs code and returns what it printed.
func printedIn(t *testing.T, c *client.Client, session, code string) string {
	t.Helper()
	_, events, err := c.Run(t.Context(), session, api.NewExecution{Code: code})
	if err != nil {
		t.Fatal(err)
	}
	return printedBy(t, events)
}

func printedBy(t *testing.T, events func(func(kernel.Event, error) bool)) (printed string) {
	t.Helper()
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case kernel.Stream:
			printed += string(e.Data)
		case kernel.Error:
			printed += e.Name
		}
	}
	return printed
}

func parkedGoesOn(t *testing.T, s *server) {
	c := s.client()
	turn := waitingTurn(t, c, `
import tools, threading
def count(most):
    total, seen = 0, []
    for n in range(most):
        total = tools.add(a=total, b=n)
        seen.append(n)
        print("step", n, total)
    return total, seen
def write():
    written.wait(1)
    for n in range(30000):
        print("thread", n)
written = threading.Event()
open("made.txt", "w").write("by code that waits")
worker = threading.Thread(target=write)
worker.start()
result = count(4)
worker.join()
print(result)`)
	total, execution := 0, turn.Calls[0].Execution
	for n := range 4 {
		paused(t, c, turn)
		if left := sandboxtest.Processes(t, "runsc-sandbox", s.runtime); len(left) != 0 {
			t.Errorf("hop %d: sandboxes of a paused session: %v", n, left)
		}
		total += n
		next, err := bring(t, c, turn, fmt.Sprint(total))
		if err != nil || n < 3 && len(next.Calls) != 1 {
			t.Fatalf("hop %d: %v %+v", n, err, next)
		}
		turn = next
	}
	if turn.State != "completed" || !strings.Contains(turn.Answer, "(6, [0, 1, 2, 3])") {
		t.Errorf("%+v", turn)
	}
	if got := printedIn(t, c, turn.Session, "print(result, open('made.txt').read())"); got != "(6, [0, 1, 2, 3]) by code that waits\n" {
		t.Errorf("%q", got)
	}
	printed, files := "", 0
	for event, err := range c.Follow(t.Context(), execution, 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := event.(type) {
		case kernel.Stream:
			printed += string(e.Data)
		case kernel.File:
			files++
		}
	}
	if strings.Count(printed, "thread ") != 30000 || strings.Count(printed, "step ") != 4 || files != 1 {
		t.Errorf("%d lines of a thread's, %d steps, %d files", strings.Count(printed, "thread "), strings.Count(printed, "step "), files)
	}
}

// parkedBesideOthers has others use the session of code that waits, and forks of it.
func parkedBesideOthers(t *testing.T, c *client.Client) {
	turn := waitingTurn(t, c, "x = 7\nimport tools\nprint(tools.add(a=1, b=2))\nx = 8")
	paused(t, c, turn)
	copied, err := c.ForkSession(t.Context(), turn.Session, api.NewSession{})
	if err != nil {
		t.Fatal(err)
	}
	if got := printedIn(t, c, copied.ID, "print(x)"); got != "7\n" {
		t.Errorf("a copy: %q", got)
	}
	if kernels, err := c.Kernels(t.Context(), turn.Session); err != nil || len(kernels) != 1 || !kernels[0].Busy {
		t.Errorf("%v %+v", err, kernels)
	}
	if _, err := c.StartKernel(t.Context(), turn.Session, "beside"); err != nil {
		t.Fatal(err)
	}
	_, events, err := c.Run(t.Context(), turn.Session, api.NewExecution{Code: "print(6 * 7)", Kernel: "beside"})
	if err != nil || printedBy(t, events) != "42\n" {
		t.Errorf("another kernel: %v", err)
	}
	behind, err := c.StartExecution(t.Context(), turn.Session, api.NewExecution{Code: "print(x)"})
	if err != nil || behind.State != "queued" {
		t.Fatalf("%v %+v", err, behind)
	}
	next, err := bring(t, c, turn, "3")
	if err != nil || next.Answer != "It says: 3" {
		t.Fatalf("%v %+v", err, next)
	}
	if got := printedBy(t, c.Follow(t.Context(), behind.ID, 0)); got != "8\n" {
		t.Errorf("the code behind: %q", got)
	}
}

// parkedEnds ends code that waits in sessions that are paused.
func parkedEnds(t *testing.T, s *server) {
	c := s.client()
	const program = "x = 7; import tools; print(tools.add(a=1, b=2))"
	gone := func(t *testing.T, turn api.Turn, state hub.ExecutionState, message string) {
		t.Helper()
		if e := finalExecution(t, c, turn.Calls[0].Execution); e.State != state || !strings.Contains(e.Message, message) {
			t.Errorf("%+v", e)
		}
		if _, err := bring(t, c, turn, "3"); err == nil {
			t.Error("its results are taken")
		}
	}
	t.Run("the session is deleted", func(t *testing.T) {
		turn := waitingTurn(t, c, program)
		paused(t, c, turn)
		if err := c.DeleteSession(t.Context(), turn.Session); err != nil {
			t.Fatal(err)
		}
		gone(t, turn, "interrupted", "")
	})
	t.Run("the kernel is restarted", func(t *testing.T) {
		turn := waitingTurn(t, c, program)
		paused(t, c, turn)
		if _, err := c.RestartKernel(t.Context(), turn.Session, "main"); err != nil {
			t.Fatal(err)
		}
		gone(t, turn, "interrupted", "")
		if got := printedIn(t, c, turn.Session, "print('x' in globals())"); got != "False\n" {
			t.Errorf("%q", got)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		turn := waitingTurn(t, c, program)
		paused(t, c, turn)
		if _, err := c.Interrupt(t.Context(), turn.Calls[0].Execution); err != nil {
			t.Fatal(err)
		}
		gone(t, turn, "interrupted", "")
		if got := printedIn(t, c, turn.Session, "print(x)"); got != "7\n" {
			t.Errorf("%q", got)
		}
	})
	t.Run("interrupted in memory", func(t *testing.T) {
		turn := waitingTurn(t, c, "x = 7\nimport tools\ntry:\n    tools.add(a=1, b=2)\nfinally:\n    x = 8")
		time.Sleep(1500 * time.Millisecond) // until it is parked; it ends in the same way if it is not
		if _, err := c.Interrupt(t.Context(), turn.Calls[0].Execution); err != nil {
			t.Fatal(err)
		}
		gone(t, turn, "interrupted", "")
		if got := printedIn(t, c, turn.Session, "print(x)"); got != "8\n" {
			t.Errorf("%q", got)
		}
	})
	t.Run("the session goes back", func(t *testing.T) {
		turn := waitingTurn(t, c, program)
		paused(t, c, turn)
		s.must("POST", "/api/v1/sessions/"+turn.Session+"/undo", map[string]any{"to": turn.ID}, nil)
		gone(t, turn, "interrupted", "returned to an earlier point")
		if got := printedIn(t, c, turn.Session, "print('x' in globals())"); got != "False\n" {
			t.Errorf("%q", got)
		}
	})
	t.Run("it does not end when it is interrupted", func(t *testing.T) {
		turn := waitingTurn(t, c, "x = 7\nimport tools, time, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint(tools.add(a=1, b=2))")
		paused(t, c, turn)
		if _, err := c.CancelTurn(t.Context(), turn.ID); err != nil {
			t.Fatal(err)
		}
		gone(t, turn, "interrupted", "cancelled")
		if got := printedIn(t, c, turn.Session, "print('x' in globals())"); got != "False\n" {
			t.Errorf("%q", got)
		}
	})
}
