package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

// requestTokens estimates the tokens of what a model sees of a request.
func requestTokens(t *testing.T, r modeltest.Request) int {
	t.Helper()
	tools, err := json.Marshal(r.Body["tools"])
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{r.Text(), string(tools)}
	for _, m := range r.Messages() {
		calls, _ := m["tool_calls"].([]any)
		for _, one := range calls {
			call, _ := one.(map[string]any)
			function, _ := call["function"].(map[string]any)
			arguments, _ := function["arguments"].(string)
			texts = append(texts, "execute", arguments)
		}
	}
	return modeltest.MessageTokens*len(r.Messages()) + modeltest.Tokens(texts...)
}

// TestRequestsFitASmallWindow has a model with a window of 8,192 tokens run fifty real programs in one turn: tables, tracebacks, logs, help, warnings, Chinese, binary data, failures. No request is longer than the window, and
// each has the question, the newest program and something of its result.
func TestRequestsFitASmallWindow(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	const window = 8192
	text, err := os.ReadFile("testdata/window/programs.txt")
	if err != nil {
		t.Fatal(err)
	}
	programs := strings.Split(strings.TrimSpace(string(text)), "\n---\n")
	if len(programs) != 50 {
		t.Fatalf("there are %d programs", len(programs))
	}
	var turns []modeltest.Turn
	for _, program := range programs {
		turns = append(turns, modeltest.Run(program))
	}
	turns = append(turns, modeltest.Say("Done."))
	c, server := asking(t, "openai/scripted", turns, "--max-steps", "60", "What do the programs print?")
	c.setenv("COVE_MODELS_ABOUT=openai/scripted context=8192", "COVE_PACKAGES=standard")
	c.run().ended(t, 0)
	requests, most := server.Requests(), 0
	if len(requests) != 51 {
		t.Fatalf("the model was asked %d times", len(requests))
	}
	for n, r := range requests {
		tokens := requestTokens(t, r)
		if most = max(most, tokens); tokens > window {
			t.Errorf("request %d has %d tokens", n+1, tokens)
		}
		if !strings.Contains(r.Text(), "What do the programs print?") {
			t.Errorf("request %d is without the question", n+1)
		}
		if n == 0 {
			continue
		}
		messages := r.Messages()
		if result, _ := messages[len(messages)-1]["content"].(string); len(result) < 5 {
			t.Errorf("request %d has of the result %q", n+1, result)
		}
		if called, _ := json.Marshal(messages[len(messages)-2]); !strings.Contains(string(called), fmt.Sprintf("# program %d\\", n)) {
			t.Errorf("request %d is without the last program: %.300s", n+1, called)
		}
	}
	t.Logf("the longest of %d requests has about %d tokens", len(requests), most)
}
