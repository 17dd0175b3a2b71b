package loop_test

import (
	"context"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
)

const (
	block    = "```python\nprint(1)\n```"
	toolCall = `<tool_call>{"name": "python", "arguments": {"code": "print(1)\nx"}}</tool_call>`
)

func TestFencedProtocol(t *testing.T) {
	t.Parallel()
	for _, c := range []turnCase{
		{
			name: "runs a block", fenced: true,
			script:   []says{text("Let me look.\n\n" + block), text("One.")},
			outcomes: map[string][]kernel.Event{"print(1)": prints("1\n")},
			ran:      []string{"print(1)"}, answer: "One.",
			results: []string{"", "Result of the code:\n```\n1\n```"},
		}, {
			name: "ignores what follows the block", fenced: true,
			script: []says{text(block + "\nResult: 7\n\n```python\nprint(2)\n```\nSo it is 7."), text("One.")},
			ran:    []string{"print(1)"}, answer: "One.",
		}, {
			name: "other names of the language", fenced: true,
			script: []says{text("```py\na\n```"), text("~\n``` Python\nb\n```\n"), text("````{.python3}\n```\nc\n````"), text("Ok.")},
			ran:    []string{"a", "b", "```\nc"}, answer: "Ok.",
		}, {
			name: "an indented block", fenced: true,
			script: []says{text("1. x\n  ```python\n  if a:\n      b\n\n  ```"), text("Ok.")},
			ran:    []string{"if a:\n    b"}, answer: "Ok.",
		}, {
			name: "line ends of DOS", fenced: true,
			script: []says{text("```python\r\na\r\n```\r\n"), text("Ok.")},
			ran:    []string{"a"}, answer: "Ok.",
		}, {
			name: "other blocks are words", fenced: true,
			script: []says{text("So:\n```text\n```python\nx\n```\nend")},
			answer: "So:\n```text\n```python\nx\n```\nend",
		}, {
			name: "inline code is words", fenced: true,
			script: []says{text("Use ```python``` or `x` or\n``y`` now")},
			answer: "Use ```python``` or `x` or\n``y`` now",
		}, {
			name: "code in reasoning is not run", fenced: true,
			script: []says{text("<think>\n" + block + "\n</think>\nFour.")},
			answer: "Four.",
		}, {
			name: "a block cut off by length is not run", fenced: true,
			script: []says{text("```python\nimport os\nos.remove('a").ended(model.FinishLength), text("Sorry.")},
			answer: "Sorry.", notices: []string{"cut off"},
			results: []string{"", "was not closed, so nothing was run"},
		}, {
			name: "a fence that may go on is not closed by length", fenced: true,
			script: []says{text("```python\nx = '''\n```").ended(model.FinishLength), text("Sorry.")},
			answer: "Sorry.", notices: []string{"cut off"},
		}, {
			name: "an unclosed block is not run", fenced: true,
			script: []says{text("```python\nprint(1)\n"), text("Sorry.")},
			answer: "Sorry.", notices: []string{"cut off"},
		}, {
			name: "an empty block", fenced: true,
			script: []says{text("```python\n```"), text("Ok.")},
			answer: "Ok.", notices: []string{"could not be used"}, results: []string{"", "the code is empty"},
		}, {
			name: "code shown again in the answer is not run again", fenced: true,
			script: []says{text(block), text("It is 1, by:\n\n" + block)},
			ran:    []string{"print(1)"}, answer: "It is 1, by:",
		}, {
			name: "a call as text", fenced: true,
			script: []says{text("I look.\n" + toolCall + "\nand so on"), text("Ok.")},
			ran:    []string{"print(1)\nx"}, answer: "Ok.", results: []string{"", "<tool_response>\n(the code ran"},
		}, {
			name: "a call that was not offered", fenced: true,
			script: []says{calls("print(1)"), text("Ok.")},
			ran:    []string{"print(1)"}, answer: "Ok.", results: []string{"", "Result of the code"},
		},
	} {
		t.Run(c.name, c.run)
	}
}

func TestCodeAsTextOfAModelWithTools(t *testing.T) {
	t.Parallel()
	running := "running it"
	for _, c := range []turnCase{
		{
			name:   "the block ends the message",
			script: []says{text("This reads it:\n\n" + block), text(strings.ReplaceAll(block, "1", "2")), text("Ok.")},
			ran:    []string{"print(1)", "print(2)"}, answer: "Ok.", notices: []string{running},
			results: []string{"", "Result of the code:"},
		}, {
			name:   "the message says that it will be run",
			script: []says{text("I'll run this to load the data:\n\n" + block + "\n\nThis prints it."), text("Ok.")},
			ran:    []string{"print(1)"}, answer: "Ok.", notices: []string{running},
		}, {
			name:   "the message says so in Chinese",
			script: []says{text("让我先读取数据：\n\n" + block + "\n\n稍等。"), text("好。")},
			ran:    []string{"print(1)"}, answer: "好。", notices: []string{running},
		}, {
			name:   "an explanation is not run",
			script: []says{text("You print in Python like this:\n\n" + block + "\n\nThat is all.")},
			answer: "You print in Python like this:\n\n" + block + "\n\nThat is all.",
		}, {
			name:   "several blocks are an explanation",
			script: []says{text("Let me check.\n" + block + "\nor\n" + block + "\nboth work.")},
			answer: "Let me check.\n" + block + "\nor\n" + block + "\nboth work.",
		}, {
			name:   "an unclosed block is not run",
			script: []says{text("So:\n```python\nprint(1)")},
			answer: "So:\n```python\nprint(1)",
		}, {
			name:   "a call as text",
			script: []says{text(toolCall), calls("b"), text(toolCall), text("Ok.")},
			ran:    []string{"print(1)\nx", "b", "print(1)\nx"}, answer: "Ok.",
		}, {
			name:   "a call as text that is not closed but complete",
			script: []says{text(strings.TrimSuffix(toolCall, "</tool_call>")), text("Ok.")},
			ran:    []string{"print(1)\nx"}, answer: "Ok.",
		}, {
			name:   "a call as text that is cut off",
			script: []says{text(toolCall[:50]), text("Ok.")},
			answer: "Ok.", notices: []string{"cut off"},
		}, {
			name:   "a call as text of another tool",
			script: []says{text(`<tool_call>{"name":"bash","arguments":{"cmd":"ls"}}</tool_call>`), text("Ok.")},
			answer: "Ok.", notices: []string{"could not be used"}, results: []string{"", "no tool named \"bash\""},
		}, {
			name:   "a call as text that is not JSON",
			script: []says{text("<tool_call>python print(1)</tool_call>"), text("Ok.")},
			answer: "Ok.", notices: []string{"could not be used"}, results: []string{"", "not valid JSON"},
		},
	} {
		t.Run(c.name, c.run)
	}
}

func TestFencedStreamShowsCodeNotText(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{
		"block": "Look:\n```python\nfor i in x:\n    print(i) # ``` not a fence\n```\nOut: 3",
		"call":  "Look:\n" + `<tool_call>{"name":"python","arguments":{"code":"for i in x:\n    print(i) # ` + "```" + ` not a fence\n"}}</tool_call>`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for size := 1; size < 30; size++ {
				first := says{}
				for _, piece := range chunks(message, size) {
					first.parts = append(first.parts, model.TextDelta{Text: piece})
				}
				first.parts = append(first.parts, model.Finish{Reason: model.FinishStop})
				m := &scripted{t: t, script: []says{first, text("Done <b>.")}}
				got := ask(t, newConversation(m, &session{}, loop.DefaultLimits()), "q")
				if got.err != nil {
					t.Fatal(got.err)
				}
				if want := "for i in x:\n    print(i) # ``` not a fence\n"; got.code[1] != want {
					t.Fatalf("in pieces of %d: code %q, want %q", size, got.code[1], want)
				}
				if want := "Look:\nDone <b>."; got.text != want {
					t.Fatalf("in pieces of %d: text %q, want %q", size, got.text, want)
				}
			}
		})
	}
}

func TestGuessesAfterTheBlockAreNotPaidFor(t *testing.T) {
	t.Parallel()
	endless := says{parts: []model.Part{model.TextDelta{Text: block + "\nOutput:"}, model.TextDelta{Text: " 7"}}, hang: true}
	m := &scripted{t: t, script: []says{endless, text("One.")}}
	got := ask(t, newConversation(m, &session{}, loop.DefaultLimits()), "q")
	if got.answer == nil || got.answer.Text != "One." || m.finished != 1 {
		t.Errorf("answer %v, error %v, %d streams to their end", got.answer, got.err, m.finished)
	}
}

func TestToolsUnsupported(t *testing.T) {
	t.Parallel()
	refused := says{err: problem.New(problem.ToolsUnsupported, "the model does not support tools")}
	m := &scripted{t: t, can: tools(), script: []says{refused, text(block), text("One."), text("Two.")}}
	s := &session{}
	i := newConversation(m, s, loop.DefaultLimits())
	got := ask(t, i, "q")
	if got.answer == nil || got.answer.Text != "One." || len(s.ran) != 1 || len(got.notices) != 1 {
		t.Fatalf("%+v", got)
	}
	ask(t, i, "q2")
	for n, request := range m.requests[1:] {
		if len(request.Tools) != 0 || !strings.Contains(request.System, "```python") {
			t.Errorf("call %d still offers the tool", n+2)
		}
	}
	never := &scripted{t: t, script: []says{refused}}
	if got := ask(t, newConversation(never, s, loop.DefaultLimits()), "q"); problem.Of(got.err).Code != "tools_unsupported" {
		t.Errorf("without tools the error must not be asked away: %v", got.err)
	}
}

func TestCodeAsTextAfterCalls(t *testing.T) {
	t.Parallel()
	m := &scripted{t: t, can: tools(), script: []says{calls("a"), text("Done."), text("It was:\n\n" + block)}}
	s := &session{}
	i := newConversation(m, s, loop.DefaultLimits())
	ask(t, i, "q")
	if got := ask(t, i, "Show me the code."); got.answer == nil || len(s.ran) != 1 || !strings.HasSuffix(got.answer.Text, block) {
		t.Errorf("ran %v, answer %v", s.codes(), got.answer)
	}
}

func TestModelThatTakesLessThanItSaid(t *testing.T) {
	t.Parallel()
	png := kernel.Display{Data: kernel.Bundle{"image/png": "AAAA"}}
	for code, check := range map[string]func(first, second model.Message) bool{
		"images_unsupported": func(first, second model.Message) bool {
			return images(first) == 1 && images(second) == 0 && texts(first) == texts(second)
		},
		"model_context_too_long": func(first, second model.Message) bool {
			return len(texts(first)) > 5000 && len(texts(second)) <= 1000
		},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			refused := says{err: problem.Received(problem.Invalid, code, "no")}
			m := &scripted{t: t, can: model.Capabilities{Tools: true, Images: true}, script: []says{calls("a"), refused, text("Ok.")}}
			s := &session{outcomes: map[string][]kernel.Event{"a": {stdout(strings.Repeat("x", 6000)), png}}}
			got := ask(t, newConversation(m, s, loop.DefaultLimits()), "q")
			if got.answer == nil || got.answer.Text != "Ok." || len(got.notices) != 1 {
				t.Fatalf("answer %v, error %v, notices %q", got.answer, got.err, got.notices)
			}
			if first, second := m.requests[1].Messages[2], m.requests[2].Messages[2]; !check(first, second) {
				t.Errorf("first:\n%v\nthen:\n%v", first, second)
			}
			stubborn := &scripted{t: t, can: model.Capabilities{Tools: true, Images: true}, last: &refused}
			if got := ask(t, newConversation(stubborn, s, loop.DefaultLimits()), "q"); problem.Of(got.err).Code != code || len(stubborn.requests) != 2 {
				t.Errorf("after %d model calls: %v", len(stubborn.requests), got.err)
			}
		})
	}
}

func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	broken := problem.New(problem.ModelStreamTruncated, "the stream ended early")
	partial := calls("rm -rf")
	partial.parts = partial.parts[:2]
	partial.err = broken
	wrong := problem.New(problem.ModelAuth, "wrong key")
	for _, c := range []struct {
		name    string
		script  []says
		answer  string
		code    string
		notices int
	}{
		{"half a call", []says{partial, text("Ok.")}, "Ok.", "", 1},
		{"half an answer", []says{{parts: []model.Part{model.TextDelta{Text: "It i"}}, err: broken}, text("Ok.")}, "Ok.", "", 1},
		{"a timeout between words", []says{{parts: []model.Part{model.TextDelta{Text: "It i"}}, err: problem.Received(problem.Timeout, "model_idle", "no word for 60 s")}, text("Ok.")}, "Ok.", "", 1},
		{"no finish", []says{{parts: []model.Part{model.TextDelta{Text: "It i"}}}, text("Ok.")}, "Ok.", "", 1},
		{"twice", []says{partial, partial}, "", "model_stream_truncated", 1},
		{"not before the first word", []says{{err: problem.New(problem.ModelUnavailable, "503")}}, "", "model_unavailable", 0},
		{"not when it cannot help", []says{{parts: []model.Part{model.TextDelta{Text: "It i"}}, err: wrong}}, "", "model_auth", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := &scripted{t: t, can: tools(), script: c.script}
			s := &session{}
			got := ask(t, newConversation(m, s, loop.DefaultLimits()), "q")
			if len(s.ran) != 0 {
				t.Errorf("ran %v", s.codes())
			}
			if len(got.notices) != c.notices {
				t.Errorf("notices %q", got.notices)
			}
			if c.code != "" {
				if p := problem.Of(got.err); p == nil || p.Code != c.code {
					t.Errorf("error %v, want %s", got.err, c.code)
				}
			} else if got.answer == nil || got.answer.Text != c.answer {
				t.Errorf("answer %v, error %v", got.answer, got.err)
			}
		})
	}
}

func TestStopped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		script []says
		hang   map[string]bool
		at     func(loop.Event) bool // when the user gives up
	}{
		{"while the model thinks", []says{{parts: []model.Part{model.TextDelta{Text: "Hm"}}, hang: true}}, nil, func(e loop.Event) bool {
			_, ok := e.(loop.Text)
			return ok
		}},
		{"while code runs", []says{calls("loop", "b")}, map[string]bool{"loop": true}, func(e loop.Event) bool {
			_, ok := e.(loop.Start)
			return ok
		}},
		{"between", []says{calls("a"), text("never")}, nil, func(e loop.Event) bool {
			_, ok := e.(loop.Output)
			return ok
		}},
	} {
		t.Run(c.name+", by cancelling", func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m := &scripted{t: t, can: tools(), script: c.script, last: new(text("Again."))}
			i := newConversation(m, &session{hang: c.hang}, loop.DefaultLimits())
			var last error
			for event, err := range i.Ask(ctx, "q") {
				if last = err; err == nil && c.at(event) {
					cancel()
				}
			}
			if p := problem.Of(last); p == nil || p.Kind != problem.Canceled {
				t.Fatalf("error %v", last)
			}
			m.script = nil
			if got := ask(t, i, "and now?"); got.answer == nil || got.answer.Text != "Again." {
				t.Errorf("the conversation does not go on: %v", got.err)
			}
		})
		t.Run(c.name+", by leaving", func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			m := &scripted{t: t, can: tools(), script: c.script, last: new(text("Again."))}
			i := newConversation(m, &session{}, loop.DefaultLimits())
			for event, err := range i.Ask(ctx, "q") {
				if err != nil {
					t.Fatal(err)
				}
				if c.at(event) {
					break
				}
			}
			cancel()
			m.script = nil
			if got := ask(t, i, "and now?"); got.answer == nil || got.answer.Text != "Again." {
				t.Errorf("the conversation does not go on: %v", got.err)
			}
		})
	}
	t.Run("before it began", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		m := &scripted{t: t, can: tools(), script: []says{{hang: true}}}
		if got := askContext(t, ctx, newConversation(m, &session{}, loop.DefaultLimits()), "q"); problem.Of(got.err).Kind != problem.Canceled {
			t.Errorf("error %v", got.err)
		}
	})
}
