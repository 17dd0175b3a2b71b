package loop_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/machine/workspace"
	"cove/internal/python/kernel"
)

// turnCase is one turn: what the model says, what the code does, and what is to come of it.
type turnCase struct {
	name     string
	fenced   bool // the model cannot call tools
	limits   loop.Limits
	script   []says
	outcomes map[string][]kernel.Event

	ran     []string // codes that ran
	answer  string
	reason  loop.AnswerReason
	results []string // what the last message of each model call must hold; "" says nothing
	notices []string // parts of the notices, in order
}

func (c turnCase) run(t *testing.T) {
	t.Parallel()
	m := &scripted{t: t, can: model.Capabilities{Tools: !c.fenced}, script: c.script}
	s := &session{outcomes: c.outcomes}
	got := ask(t, newConversation(m, s, within(c.limits)), "the question")
	if got.err != nil {
		t.Fatal(got.err)
	}
	if diff := cmp.Diff(c.ran, s.codes()); diff != "" {
		t.Errorf("codes that ran (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c.ran, got.started); diff != "" {
		t.Errorf("codes that were announced (-want +got):\n%s", diff)
	}
	if c.reason == "" {
		c.reason = loop.Complete
	}
	if got.answer.Text != c.answer || got.answer.Reason != c.reason || got.answer.Steps != len(c.ran) {
		t.Errorf("answer %+v, want %q because %s after %d", *got.answer, c.answer, c.reason, len(c.ran))
	}
	if len(m.requests) != len(c.script) {
		t.Errorf("%d model calls, want %d", len(m.requests), len(c.script))
	}
	for n, want := range c.results {
		if n < len(m.requests) && !strings.Contains(m.lastTexts(n), want) {
			t.Errorf("model call %d ends with:\n%s\nwant in it:\n%s", n+1, m.lastTexts(n), want)
		}
	}
	if len(got.notices) != len(c.notices) {
		t.Fatalf("notices %q, want %d", got.notices, len(c.notices))
	}
	for n, want := range c.notices {
		if !strings.Contains(got.notices[n], want) {
			t.Errorf("notice %q, want in it %q", got.notices[n], want)
		}
	}
}

func TestTurn(t *testing.T) {
	t.Parallel()
	for _, c := range []turnCase{
		{
			name:   "answers without code",
			script: []says{text("Paris.")},
			answer: "Paris.",
		}, {
			name:     "runs and answers",
			script:   []says{calls("print(6*7)"), text("It is 42.")},
			outcomes: map[string][]kernel.Event{"print(6*7)": prints("42\n")},
			ran:      []string{"print(6*7)"}, answer: "It is 42.",
			results: []string{"the question", "42"},
		}, {
			name:     "repairs",
			script:   []says{calls("bad"), calls("good"), text("Done.")},
			outcomes: map[string][]kernel.Event{"bad": raises("ValueError", "no"), "good": prints("ok")},
			ran:      []string{"bad", "good"}, answer: "Done.",
			results: []string{"", "ValueError: no", "ok"},
		}, {
			name:     "answers in Chinese",
			script:   []says{calls("print('华东')"), text("增长最快的是华东地区。")},
			outcomes: map[string][]kernel.Event{"print('华东')": prints("华东\n")},
			ran:      []string{"print('华东')"}, answer: "增长最快的是华东地区。",
			results: []string{"", "华东"},
		}, {
			name:   "several calls run in order",
			script: []says{calls("a", "b"), text("Both.")},
			ran:    []string{"a", "b"}, answer: "Both.",
			results: []string{"", "printed nothing)\n---\n(the code ran"},
		}, {
			name:     "after a failed call the rest is not run",
			script:   []says{calls("a", "b", "c"), text("Failed.")},
			outcomes: map[string][]kernel.Event{"a": raises("ValueError", "no")},
			ran:      []string{"a"}, answer: "Failed.",
			results: []string{"", "ValueError: no\n---\nNot run because the previous one failed.\n---\nNot run because"},
			notices: []string{"Not run because the one before it failed: 2 more"},
		}, {
			name:   "an alias of the tool",
			script: []says{rawCalls(model.ToolCall{ID: "1", Name: "code_interpreter", Arguments: `{"code":"a"}`}), text("Ok.")},
			ran:    []string{"a"}, answer: "Ok.",
		}, {
			name:    "an unknown tool",
			script:  []says{rawCalls(model.ToolCall{ID: "1", Name: "bash", Arguments: `{"command":"ls"}`}), text("Ok.")},
			answer:  "Ok.",
			results: []string{"", "only tool is python"}, notices: []string{"could not be used"},
		}, {
			name:    "arguments that are not JSON",
			script:  []says{rawCalls(model.ToolCall{ID: "1", Name: "python", Arguments: `{"code": "a`}), text("Ok.")},
			answer:  "Ok.",
			results: []string{"", "not valid JSON (unexpected end of JSON input)"}, notices: []string{"could not be used"},
		}, {
			name:    "arguments without code",
			script:  []says{rawCalls(model.ToolCall{ID: "1", Name: "python", Arguments: `{"code": 7}`}), text("Ok.")},
			answer:  "Ok.",
			results: []string{"", "hold no code"}, notices: []string{"could not be used"},
		}, {
			name: "calls without ids",
			script: []says{rawCalls(model.ToolCall{Name: "python", Arguments: `{"code":"a"}`},
				model.ToolCall{Name: "python", Arguments: `{"code":"b"}`}), text("Ok.")},
			ran: []string{"a", "b"}, answer: "Ok.",
		}, {
			name:   "code in an answer after the work is shown only",
			script: []says{calls("a"), text("Done with:\n\n```python\na\n```")},
			ran:    []string{"a"}, answer: "Done with:\n\n```python\na\n```",
		},
	} {
		t.Run(c.name, c.run)
	}
}

func TestEndOfTurn(t *testing.T) {
	t.Parallel()
	for _, c := range []turnCase{
		{
			name:   "says nothing after its code",
			script: []says{calls("a"), text(""), text("Here it is.")},
			ran:    []string{"a"}, answer: "Here it is.",
			results: []string{"", "", "Please answer"}, notices: []string{"said nothing"},
		}, {
			name:     "says nothing twice",
			script:   []says{calls("a"), text(""), text(" \n")},
			outcomes: map[string][]kernel.Event{"a": prints("41.5\n")},
			ran:      []string{"a"}, answer: "The model gave no answer. The last result was:\n\n41.5",
			reason: loop.NoAnswer, notices: []string{"said nothing"},
		}, {
			name:   "a retry of the service is told",
			script: []says{{parts: []model.Part{model.Retry{Attempt: 1, Reason: "HTTP 429.", Seconds: 2}, model.TextDelta{Text: "Hi"}, model.Finish{Reason: model.FinishStop}}}},
			answer: "Hi", notices: []string{"The model service failed (HTTP 429); trying again in 2s."},
		}, {
			name:   "reasoning left in the text is not the answer",
			script: []says{text("<think>\n```python\nx\n```\n</think>\n\nFour.")},
			answer: "Four.",
		}, {
			name:   "an answer that was cut off",
			script: []says{text("It is beca").ended(model.FinishLength)},
			answer: "It is beca", reason: loop.Length,
		}, {
			name:   "a refused answer",
			script: []says{text("").ended(model.FinishFilter)},
			answer: "The model's provider refused or filtered the answer.", reason: loop.Filtered,
		},
	} {
		t.Run(c.name, c.run)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		`{"code":"print(1)"}`:                            "print(1)",
		`{"input":"print(1)"}`:                           "print(1)",
		`{"source":"print(1)"}`:                          "print(1)",
		`{"whatever":"print(1)"}`:                        "print(1)",
		`{"code":["a = 1","print(a)"]}`:                  "a = 1\nprint(a)",
		`{"arguments":{"code":"print(1)"}}`:              "print(1)",
		`"print(1)"`:                                     "print(1)",
		"print(1)\nprint(2)":                             "print(1)\nprint(2)",
		"{\"code\":\"a = 1\nprint(a)\"}":                 "a = 1\nprint(a)",
		"```python\nprint(1)\n```":                       "print(1)",
		"{\"code\":\"```py\\nprint(1)\\n```\"}":          "print(1)",
		`{"code":"print('\ud83d\ude00')"}`:               "print('😀')",
		`{"language":"python","code":"print(1)","x":[]}`: "print(1)",
	} {
		t.Run(arguments, func(t *testing.T) {
			t.Parallel()
			m := &scripted{t: t, can: tools(), script: []says{
				rawCalls(model.ToolCall{ID: "1", Name: "python", Arguments: arguments}), text("Ok."),
			}}
			s := &session{}
			got := ask(t, newConversation(m, s, loop.DefaultLimits()), "q")
			if got.err != nil {
				t.Fatal(got.err)
			}
			if diff := cmp.Diff([]string{want}, s.codes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConversationGoesOn(t *testing.T) {
	t.Parallel()
	m := &scripted{t: t, can: tools(), script: []says{calls("a"), text("First."), text("Second.")}}
	s := &session{
		files:    map[string][]byte{"in.csv": []byte("x,y\n1,2\n")},
		outcomes: map[string][]kernel.Event{"a": {kernel.File{Path: "out.csv", Size: 3, Created: true}}},
	}
	i := newConversation(m, s, loop.DefaultLimits())
	first := ask(t, i, "one")
	s.files["out.csv"] = []byte("abc")
	s.files["new.txt"] = []byte("hello\n")
	second := ask(t, i, "two")
	if first.answer.Text != "First." || second.answer.Text != "Second." {
		t.Fatalf("answers %q, %q", first.answer.Text, second.answer.Text)
	}
	if got, want := first.answer.Usage, (model.Usage{InputTokens: 200, OutputTokens: 20}); got != want {
		t.Errorf("usage %v, want %v", got, want)
	}
	if !strings.Contains(m.lastTexts(1), "[files delivered to the user: out.csv (new, 3 bytes)]") {
		t.Errorf("the result names no new file: %s", m.lastTexts(1))
	}
	want := "two\n\nNew or changed files in the working directory:\n\n- new.txt (6 bytes)"
	if diff := cmp.Diff(want, m.lastTexts(2)); diff != "" {
		t.Error(diff)
	}
	if n := len(m.requests[2].Messages); n != 5 {
		t.Errorf("%d messages in the third call, want question, call, result, answer, question", n)
	}
}

func TestSystemPrompt(t *testing.T) {
	t.Parallel()
	prompt := func(can model.Capabilities, s *session) (string, model.Request) {
		m := &scripted{t: t, can: can, script: []says{text("Hi.")}}
		ask(t, newConversation(m, s, loop.DefaultLimits()), "q")
		return m.requests[0].System, m.requests[0]
	}
	native, request := prompt(model.Capabilities{Tools: true, Images: true}, &session{})
	for _, want := range []string{"Python 3.12.4", "numpy 2.1.0, pandas 2.2.3 and 2 others", "/home/user", "no network otherwise", "just import them", `%pip install "name<2"`, "call the tool `python`", "You see the figures", "language of the user's question"} {
		if !strings.Contains(native, want) {
			t.Errorf("the prompt does not say %q:\n%s", want, native)
		}
	}
	if len(request.Tools) != 1 || request.Tools[0].Name != "python" {
		t.Errorf("tools %v", request.Tools)
	}
	fenced, request := prompt(model.Capabilities{}, &session{version: "3.11.2", packages: map[string]string{}})
	for _, want := range []string{"Python 3.11.2", "the standard library only", "```python", "cannot see figures"} {
		if !strings.Contains(fenced, want) {
			t.Errorf("the fenced prompt does not say %q:\n%s", want, fenced)
		}
	}
	if len(request.Tools) != 0 || strings.Contains(fenced, "call the tool") {
		t.Error("a model that cannot call tools is offered one")
	}
	for _, prompt := range []string{native, fenced} {
		if strings.Contains(prompt, "<no value>") || strings.Contains(prompt, "\n\n\n") {
			t.Errorf("the prompt has holes:\n%s", prompt)
		}
	}
}

func TestFiguresGoToModelsThatSee(t *testing.T) {
	t.Parallel()
	png := kernel.Display{Data: kernel.Bundle{
		"image/png":  base64.StdEncoding.EncodeToString([]byte("\x89PNG")),
		"text/plain": "<Figure size 640x480 with 1 Axes>",
	}}
	svg := kernel.Display{Data: kernel.Bundle{"image/svg+xml": "<svg/>"}}
	for _, c := range []struct {
		name string
		can  model.Capabilities
		want int
	}{
		{"sees", model.Capabilities{Tools: true, Images: true}, 4},
		{"does not see", model.Capabilities{Tools: true}, 0},
		{"sees without tools", model.Capabilities{Images: true}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			first := calls("plot")
			if !c.can.Tools {
				first = text("```python\nplot\n```")
			}
			m := &scripted{t: t, can: c.can, script: []says{first, text("A chart.")}}
			s := &session{outcomes: map[string][]kernel.Event{"plot": {svg, png, png, png, png, png}}}
			ask(t, newConversation(m, s, loop.DefaultLimits()), "q")
			last := m.requests[1].Messages[len(m.requests[1].Messages)-1]
			if got := images(last); got != c.want {
				t.Errorf("%d images, want %d", got, c.want)
			}
			for _, want := range []string{"[figure 1 shown to the user]\n[figure 2", "[figure 6 shown to the user]"} {
				if !strings.Contains(texts(last), want) {
					t.Errorf("no %q in %s", want, texts(last))
				}
			}
			if strings.Contains(texts(last), "640x480") {
				t.Error("the figure's text is in the result")
			}
		})
	}
}

func TestOutputIsCutInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, lines := range []int{4000, 400_000} {
		t.Run(fmt.Sprint(lines), func(t *testing.T) {
			t.Parallel()
			testCut(t, strings.Repeat("0123456789 ABC\n0123456789 DEF\n", lines/4), strings.Repeat("数字 ABC\n数字 DEF\n", lines/4))
		})
	}
}

func testCut(t *testing.T, one, two string) {
	t.Helper()
	long := one + two
	m := &scripted{t: t, can: tools(), script: []says{calls("a"), text("Ok.")}}
	s := &session{outcomes: map[string][]kernel.Event{"a": {
		stdout("BEGIN\n"), stdout(one), stdout(two), stderr("END\n"), kernel.Done{Outcome: kernel.OutcomeOK, Dropped: 2_500_000},
	}}}
	ask(t, newConversation(m, s, within(loop.Limits{Result: 2000})), "q")
	got := m.lastTexts(1)
	if len(got) > 2000 || len(got) < 1500 {
		t.Errorf("the result has %d bytes", len(got))
	}
	if !strings.HasPrefix(got, "BEGIN\n") || !strings.Contains(got, "\nEND\n[2.5 MB of output") {
		t.Errorf("beginning or end is lost:\n%s", got)
	}
	var before, cut, after int
	at := strings.Index(got, "[... ")
	if _, err := fmt.Sscanf(strings.ReplaceAll(got[at:], ",", ""), "[... %d characters", &cut); err != nil {
		t.Fatal(err)
	}
	before = len([]rune(got[:at]))
	_, tail, _ := strings.Cut(got[at:], "...]\n")
	tail, _, _ = strings.Cut(tail, "\n[2.5 MB")
	after = len([]rune(tail))
	if total := len([]rune("BEGIN\n" + long + "END")); before+cut+after != total {
		t.Errorf("%d + %d cut + %d characters are not %d", before, cut, after, total)
	}
}

func TestOutputIsMerged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		events []kernel.Event
		want   string
	}{
		{"streams in order", []kernel.Event{stdout("a\n"), stderr("b\n"), stdout("c\n")}, "a\nb\nc"},
		{"value", []kernel.Event{stdout("a"), kernel.Result{Data: kernel.Bundle{"text/plain": "42"}}}, "a\n42"},
		{"progress bars", []kernel.Event{stderr("1%\r50%"), stderr("\r100%\r\n"), stdout("x\r\ny")}, "100%\nx\ny"},
		{"colours", []kernel.Event{stdout("\x1b[31mred\x1b[0m")}, "red"},
		{"markdown", []kernel.Event{kernel.Display{Data: kernel.Bundle{"text/plain": "<IPython.core.display.Markdown object>", "text/markdown": "**b**"}}}, "**b**"},
		{"html alone", []kernel.Event{kernel.Display{Data: kernel.Bundle{"text/html": "<b>"}}}, "[HTML of 3 bytes shown to the user]"},
		{"table", []kernel.Event{kernel.Result{Data: kernel.Bundle{"text/html": "<table>", "text/plain": "   a\n0  1"}}}, "   a\n0  1"},
		{"plotly", []kernel.Event{kernel.Display{Data: kernel.Bundle{"application/vnd.plotly.v1+json": map[string]any{}, "text/html": "x"}}}, "[interactive chart shown to the user]"},
		{"cleared", []kernel.Event{stdout("a"), kernel.ClearOutput{}, stdout("b")}, "b"},
		{"cleared later", []kernel.Event{stdout("a"), kernel.ClearOutput{Wait: true}}, "a"},
		{"updated", []kernel.Event{
			kernel.Display{ID: "1", Data: kernel.Bundle{"text/plain": "old"}}, stdout("x\n"),
			kernel.Display{ID: "1", Update: true, Data: kernel.Bundle{"text/plain": "new"}},
		}, "new\nx"},
		{"updated figure", []kernel.Event{
			kernel.Display{ID: "1", Data: kernel.Bundle{"image/png": "AAAA"}}, kernel.Display{Data: kernel.Bundle{"image/png": "AAAA"}},
			kernel.Display{ID: "1", Update: true, Data: kernel.Bundle{"image/png": "BBBB"}},
		}, "[figure 1 shown to the user]\n[figure 2 shown to the user]"},
		{"not UTF-8", []kernel.Event{stdout("a\xffb")}, "a\uFFFDb"},
		{"nothing", nil, "(the code ran; it printed nothing)"},
		{"bad picture", []kernel.Event{kernel.Display{Data: kernel.Bundle{"image/png": "%%%"}}}, "[figure 1 could not be decoded]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := &scripted{t: t, can: model.Capabilities{Tools: true, Images: true}, script: []says{calls("a"), text("Ok.")}}
			ask(t, newConversation(m, &session{outcomes: map[string][]kernel.Event{"a": c.events}}, loop.DefaultLimits()), "q")
			if diff := cmp.Diff(c.want, m.lastTexts(1)); diff != "" {
				t.Error(diff)
			}
			if n := images(m.requests[1].Messages[2]); n != strings.Count(c.want, "shown to the user]\n[figure")*2 {
				t.Errorf("%d images", n)
			}
		})
	}
}

func TestEndings(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"sales.csv": []byte("a\n"), ".cache/x": []byte("b")}
	for _, c := range []struct {
		name   string
		events []kernel.Event
		want   string
	}{
		{"timeout", []kernel.Event{kernel.Done{Outcome: kernel.OutcomeTimeout}}, "longer than the limit of 2m0s for one execution. Make it faster, or work on a part of the data. Variables and files are kept."},
		{"timeout with loss", []kernel.Event{kernel.Done{Outcome: kernel.OutcomeTimeout, Lost: kernel.LostKernel}}, "Variables and imports are lost, files are kept"},
		{"memory", []kernel.Event{kernel.Done{Outcome: kernel.OutcomeMemory, Lost: kernel.LostKernel}}, "Out of memory"},
		{"died", []kernel.Event{kernel.Done{Outcome: kernel.OutcomeDied, Signal: "SIGSEGV", Lost: kernel.LostKernel}}, "died with SIGSEGV. Variables and imports are lost"},
		{"sandbox", []kernel.Event{kernel.Done{Outcome: kernel.OutcomeSandboxDied, Lost: kernel.LostSession}}, "Everything is lost"},
		{"exit", []kernel.Event{kernel.Done{Outcome: kernel.OutcomeError, ExitCode: 3}}, "exit code 3"},
		{"protocol", []kernel.Event{kernel.Done{Outcome: kernel.OutcomeProtocol, Message: "garbage"}}, "kernel_protocol_error). garbage."},
		{"module", raises("ModuleNotFoundError", "No module named 'torch'"), "Hint: no package that provides torch could be found"},
		{"file", raises("FileNotFoundError", "[Errno 2] No such file or directory: 'x.csv'"), "Hint: the files in the working directory are: sales.csv."},
		{"network", raises("requests.exceptions.ConnectionError", "HTTPSConnectionPool"), "Hint: the sandbox has no network"},
		{"network by words", raises("OSError", "[Errno 101] Network is unreachable"), "Hint: the sandbox has no network"},
		{"the kernel's", []kernel.Event{kernel.Error{Name: "KeyError", Value: "'salse'", Hint: "Did you mean 'sales'?"}, kernel.Done{Outcome: kernel.OutcomeError}}, "Hint: Did you mean 'sales'?"},
		{"encoding", raises("UnicodeDecodeError", "'utf-8' codec"), "Hint: the file is not UTF-8, or it is no text."},
		{"input", raises("EOFError", "EOF when reading a line"), "nobody answers input()"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := &scripted{t: t, can: tools(), script: []says{calls("a"), text("Ok.")}}
			ask(t, newConversation(m, &session{files: files, outcomes: map[string][]kernel.Event{"a": c.events}}, loop.DefaultLimits()), "q")
			result := m.requests[1].Messages[2].Content[0].(model.ToolResult)
			if !result.IsError || !strings.Contains(result.Text, c.want) {
				t.Errorf("error %v, result:\n%s\nwant in it: %s", result.IsError, result.Text, c.want)
			}
		})
	}
	t.Run("no hint where none helps", func(t *testing.T) {
		t.Parallel()
		m := &scripted{t: t, can: tools(), script: []says{calls("a"), text("Ok.")}}
		ask(t, newConversation(m, &session{outcomes: map[string][]kernel.Event{"a": raises("KeyError", "'x'")}}, loop.DefaultLimits()), "q")
		if strings.Contains(m.lastTexts(1), "Hint") {
			t.Error(m.lastTexts(1))
		}
	})
}

func TestSessionErrorEndsTheTurn(t *testing.T) {
	t.Parallel()
	lost := problem.Received(problem.Unavailable, "sandbox_gone", "the sandbox is gone")
	m := &scripted{t: t, can: tools(), script: []says{calls("a", "b"), text("Again.")}}
	s := &session{errs: map[string]error{"a": fmt.Errorf("execute: %w", lost)}}
	i := newConversation(m, s, loop.DefaultLimits())
	got := ask(t, i, "q")
	if !errors.Is(got.err, lost) {
		t.Fatalf("error %v", got.err)
	}
	if len(s.ran) != 1 {
		t.Errorf("ran %v", s.codes())
	}
	if again := ask(t, i, "and now?"); again.answer == nil || again.answer.Text != "Again." {
		t.Errorf("the conversation does not go on: %v", again.err)
	}
}

func TestModelErrorLeavesNoTrace(t *testing.T) {
	t.Parallel()
	wrong := problem.New(problem.ModelAuth, "the key is wrong")
	m := &scripted{t: t, can: tools(), script: []says{{err: wrong}, text("Hi.")}}
	s := &session{files: map[string][]byte{"a.txt": []byte("x\n")}}
	i := newConversation(m, s, loop.DefaultLimits())
	if got := ask(t, i, "first"); !errors.Is(got.err, wrong) {
		t.Fatalf("error %v", got.err)
	}
	ask(t, i, "second")
	if got := m.lastTexts(1); len(m.requests[1].Messages) != 1 || !strings.Contains(got, "a.txt") || strings.Contains(got, "first") {
		t.Errorf("the second question comes as:\n%s", got)
	}
}

func TestOldResultsAreShortened(t *testing.T) {
	t.Parallel()
	var script []says
	outcomes := map[string][]kernel.Event{}
	for n := range 6 {
		code := fmt.Sprintf("step%d", n)
		script = append(script, calls(code))
		outcomes[code] = prints(strings.Repeat("x", 90_000))
	}
	m := &scripted{t: t, can: tools(), script: append(script, text("Ok."))}
	ask(t, newConversation(m, &session{outcomes: outcomes}, within(loop.Limits{Result: 100_000})), "q")
	var sizes []int
	for _, message := range m.requests[6].Messages {
		if message.Role == model.RoleTool {
			sizes = append(sizes, len(texts(message)))
		}
	}
	for n, got := range sizes {
		if short := got <= 1000; short != (n < 4) {
			t.Errorf("result %d of %d has %d bytes", n+1, len(sizes), got)
		}
	}
}

// TestTheHintOfAnEncoding says what the first look says, of the file that the traceback names.
func TestTheHintOfAnEncoding(t *testing.T) {
	t.Parallel()
	wrong := []kernel.Event{kernel.Error{Name: "UnicodeDecodeError", Value: "'utf-8' codec", Traceback: []string{"----> 1 pd.read_csv('b.csv')"}}, kernel.Done{Outcome: kernel.OutcomeError}}
	files := map[string][]byte{"a.csv": []byte("x"), "b.csv": []byte("x"), "c.csv": []byte("x")}
	told := map[string]workspace.Told{
		"a.csv": {What: `1 row × 1 column, not UTF-8: read it with encoding="cp949"`}, "b.csv": {What: `1 row × 1 column, not UTF-8: read it with encoding="gb18030"`}, "c.csv": {What: "1 row × 1 column"},
	}
	m := &scripted{t: t, can: tools(), script: []says{calls("a"), text("Ok.")}}
	ask(t, newConversation(m, &session{files: files, told: told, outcomes: map[string][]kernel.Event{"a": wrong}}, loop.DefaultLimits()), "q")
	const want = `Hint: b.csv is not UTF-8: read it with encoding="gb18030".`
	if result := m.requests[1].Messages[2].Content[0].(model.ToolResult); !strings.Contains(result.Text, want) {
		t.Errorf("%q has no %q", result.Text, want)
	}
}
