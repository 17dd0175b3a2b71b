package e2e_test

import (
	"strings"
	"testing"
	"time"

	"cove/internal/http/api"
	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

// TestCodeOfAServerIsShownBeforeItRuns has a server's code wait for a word on the user's terminal: because of --ask, and because its conversation wants it.
func TestCodeOfAServerIsShownBeforeItRuns(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(sdkModel)
	s := startServer(t, "", testKey(t), "OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted")
	const question = "Run this? [y]es, [n]o and why, [e]dit: "
	ask := func(keys string, code int, args ...string) (*onTerminal, api.Turn) {
		t.Helper()
		c := newTerminal(t, append([]string{"ask", "--server", s.base, "--key", s.key}, args...)...)
		c.begin(t)
		c.types(t, question, keys)
		c.left(t, code)
		var all api.List[api.Conversation]
		s.must("GET", "/api/v1/conversations", nil, &all)
		var turns api.List[api.Turn]
		s.must("GET", "/api/v1/conversations/"+all.Items[0].ID+"/turns", nil, &turns)
		return c, turns.Items[len(turns.Items)-1]
	}
	ran := func(turn api.Turn) (n int) {
		t.Helper()
		var steps api.List[api.Execution]
		s.must("GET", "/api/v1/executions?turn="+turn.ID, nil, &steps)
		return len(steps.Items)
	}
	c, turn := ask("y\r", 0, "--ask", "compute")
	if !strings.Contains(c.shown.String(), "The answer is 42.") || ran(turn) != 1 {
		t.Errorf("%d ran; the terminal shows:\n%s", ran(turn), c.shown.String())
	}
	// The conversation goes on asking, without the flag.
	if _, next := ask("n it is late\r", 0, "--continue", turn.Conversation, "compute"); ran(next) != 0 || next.Parent != turn.ID {
		t.Errorf("%d ran of %+v", ran(next), next)
	}
	_, last := ask("\x03", 130, "--ask", "compute")
	for end := time.Now().Add(patience); last.State == "running" && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		s.must("GET", "/api/v1/turns/"+last.ID, nil, &last) // a request to cancel is answered before the turn has ended
	}
	if ran(last) != 0 || last.State != "canceled" {
		t.Errorf("%d ran of %+v", ran(last), last)
	}
}
