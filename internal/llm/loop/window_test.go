package loop_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/llm/model/modeltest"
	"cove/internal/machine/workspace"
	"cove/internal/python/kernel"
)

func tokensOfRequest(req model.Request) int {
	sum := modeltest.Tokens(req.System)
	for _, tool := range req.Tools {
		sum += modeltest.Tokens(tool.Name, tool.Description, string(tool.Schema))
	}
	for _, m := range req.Messages {
		sum += modeltest.MessageTokens
		for _, c := range m.Content {
			switch c := c.(type) {
			case model.Text:
				sum += modeltest.Tokens(c.Text)
			case model.ToolCall:
				sum += modeltest.Tokens(c.ID, c.Name, c.Arguments)
			case model.ToolResult:
				sum += modeltest.Tokens(c.CallID, c.Text)
			}
		}
	}
	return sum
}

// longResults are outputs as programs have them, each longer than a small model takes at once.
func longResults() [][]kernel.Event {
	rows := func(row func(n int) string) string {
		var b strings.Builder
		for n := range 5000 {
			b.WriteString(row(n) + "\n")
		}
		return b.String()
	}
	fails := []string{"Traceback (most recent call last):"}
	for n := range 400 {
		fails = append(fails, fmt.Sprintf("  File \"<cell 1>\", line %d, in f%d", n, n), "    f()")
	}
	return [][]kernel.Event{
		{stdout(rows(func(n int) string { return fmt.Sprintf("row %d %d", n, n*n) }))},
		{stdout(rows(func(n int) string { return fmt.Sprintf("华南,茶叶,%d.%02d", n, n%100) }))},
		{stdout(rows(func(n int) string { return fmt.Sprintf("the words of line %d, which say nothing new", n) }))},
		{stdout(rows(func(int) string { return "hello" }))},
		{stdout(rows(func(n int) string { return fmt.Sprintf("{\"a\": [%d, \"é\"], \"b\": null}", n) })), kernel.Error{Name: "E", Value: "x", Traceback: append(fails, "E: x")}, kernel.Done{Outcome: kernel.OutcomeError, ExitCode: 1}},
		{kernel.Result{Data: kernel.Bundle{"text/plain": strings.Repeat("0.123456789 ", 20_000)}}},
	}
}

// TestRequestsFitTheWindow runs fifty programs with long results in one turn, and goes on in a second one. There is room for an answer beside each request.
func TestRequestsFitTheWindow(t *testing.T) {
	t.Parallel()
	for _, window := range []int64{8192, 16_384, 32_768} {
		for _, can := range []model.Capabilities{{Tools: true}, {}} {
			m := &scripted{t: t, can: can}
			s := &session{outcomes: map[string][]kernel.Event{}}
			results := longResults()
			for n := range 50 {
				code := fmt.Sprintf("step_%d = compute(%d)\n%s", n, n, strings.Repeat("x = x + 1  # and so on\n", 12))
				s.outcomes[strings.TrimSpace(code)] = results[n%len(results)]
				s.outcomes[code] = results[n%len(results)]
				if can.Tools {
					m.script = append(m.script, calls(code))
				} else {
					m.script = append(m.script, text("I look at it.\n\n```python\n"+code+"```\n"))
				}
			}
			m.script = append(m.script, text("Done."), text("Again."))
			c := newConversation(m, s, within(loop.Limits{Steps: 60}))
			c.window = window
			for _, question := range []string{"What is in it?", "And now?"} {
				if got := ask(t, c, question); got.err != nil {
					t.Fatal(got.err)
				}
			}
			if len(s.ran) != 50 {
				t.Fatalf("%d programs ran", len(s.ran))
			}
			most := 0
			for n, req := range m.requests {
				tokens := tokensOfRequest(req)
				if most = max(most, tokens); int64(tokens) > window-1024 {
					t.Errorf("with room for %d tokens, request %d (tools %t) has %d", window, n+1, can.Tools, tokens)
				}
				if last := len(s.ran); n > 0 && n < last && !strings.Contains(fmt.Sprint(req.Messages), fmt.Sprintf("step_%d ", n-1)) {
					t.Errorf("request %d (tools %t) does not have the last program", n+1, can.Tools)
				}
				if !strings.Contains(fmt.Sprint(req.Messages), "What is in it?") {
					t.Errorf("request %d (tools %t) does not have the question", n+1, can.Tools)
				}
			}
			t.Logf("with room for %d tokens (tools %t) the longest of %d requests has %d", window, can.Tools, len(m.requests), most)
		}
	}
}

// TestWindowIsLearned has the model's service say how much the model takes, which is asked when there may be too little room.
func TestWindowIsLearned(t *testing.T) {
	t.Parallel()
	asked := 0
	can := model.Capabilities{Tools: true, Window: func(context.Context) int64 { asked++; return 4096 }}
	m := &scripted{t: t, can: can, script: []says{calls("short"), calls("long"), text("Done.")}}
	s := &session{outcomes: map[string][]kernel.Event{"short": {stdout("1\n")}, "long": longResults()[0]}}
	if got := ask(t, newConversation(m, s, loop.DefaultLimits()), "q"); got.err != nil || len(got.notices) > 0 {
		t.Fatal(got.err, got.notices)
	}
	if tokens := tokensOfRequest(m.requests[2]); asked != 1 || tokens > 4096 {
		t.Errorf("asked %d times, and the request has %d tokens", asked, tokens)
	}
	m = &scripted{t: t, can: can, script: []says{text("Done.")}}
	if got := ask(t, newConversation(m, s, loop.DefaultLimits()), strings.Repeat("a long question ", 2000)); len(got.notices) != 1 || !strings.Contains(got.notices[0], "OLLAMA_CONTEXT_LENGTH") {
		t.Errorf("of a question that is too long: %q", got.notices)
	}
}

func TestRepeatedLinesAreToldOnce(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		strings.Repeat("hello\n", 5000):               "hello\n[the same line 4,999 times more]",
		"a\nb\nb\nb\nb\nc\n":                          "a\nb\nb\nb\nb\nc",
		"a\n" + strings.Repeat("b\n", 5) + "c\n":      "a\nb\n[the same line 4 times more]\nc",
		strings.Repeat("\n", 100) + "end\n":           "\n[the same line 99 times more]\nend",
		strings.Repeat("x\n", 6) + "\n" + "y\nx\nx\n": "x\n[the same line 5 times more]\n\ny\nx\nx",
	} {
		m := &scripted{t: t, can: model.Capabilities{Tools: true}, script: []says{calls("a"), text("Ok.")}}
		ask(t, newConversation(m, &session{outcomes: map[string][]kernel.Event{"a": {stdout(output)}}}, loop.DefaultLimits()), "q")
		if got := m.lastTexts(1); got != want {
			t.Errorf("%.20q: %q, want %q", output, got, want)
		}
	}
}

// TestManyFilesHaveTheSameShare describes more files than there is room for: short descriptions stay whole, and each long one has its beginning.
func TestManyFilesHaveTheSameShare(t *testing.T) {
	t.Parallel()
	for _, window := range []int64{0, 8192} {
		s := &session{files: map[string][]byte{}, told: map[string]workspace.Told{}}
		for n := range 27 {
			name := fmt.Sprintf("f%02d.csv", n)
			one := workspace.Told{What: "2 columns of " + name, Lines: []string{"first of " + name}}
			if n%3 > 0 {
				for range 20 {
					one.Lines = append(one.Lines, strings.Repeat("word ", 20))
				}
			}
			s.files[name], s.told[name] = []byte("a"), one
		}
		m := &scripted{t: t, can: tools(), script: []says{text("Ok.")}}
		c := newConversation(m, s, loop.DefaultLimits())
		c.window = window
		ask(t, c, "q")
		prompt := texts(m.requests[0].Messages[0])
		for n := range 27 {
			name := fmt.Sprintf("f%02d.csv", n)
			if !strings.Contains(prompt, "2 columns of "+name) || window == 0 && !strings.Contains(prompt, "first of "+name) || n%3 == 0 && !strings.Contains(prompt, "first of "+name) {
				t.Errorf("with room for %d tokens %s is described as in\n%.400s", window, name, prompt[max(strings.Index(prompt, name), 0):])
			}
		}
		if most := map[int64]int{0: 30 << 10, 8192: 9000}[window]; len(prompt) > most {
			t.Errorf("with room for %d tokens the prompt has %d bytes", window, len(prompt))
		}
	}
}
