package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
)

// heard is what a turn of Run told.
type heard struct {
	told
	calls map[int]model.ToolCall // as their events gave them
}

func run(t *testing.T, ctx context.Context, m *scripted, s loop.Executor, l loop.Limits, turn loop.Turn) heard {
	t.Helper()
	h := heard{told: told{code: map[int]string{}}, calls: map[int]model.ToolCall{}}
	for event, err := range loop.Run(ctx, m, s, l, turn) {
		if err != nil {
			h.err = err
			continue
		}
		h.events = append(h.events, event)
		switch e := event.(type) {
		case loop.Call:
			c := h.calls[e.Index]
			if (c.ID == "") == (e.ID == "") || (c.ID == "") == (e.Name == "") {
				t.Errorf("%+v has no id, or it is not the first event of a call", e)
			}
			h.calls[e.Index] = model.ToolCall{ID: c.ID + e.ID, Name: c.Name + e.Name, Arguments: c.Arguments + e.Delta}
		case loop.Code:
			h.code[e.Step] += e.Delta
		case loop.Notice:
			h.notices = append(h.notices, e.Text)
		case loop.Answer:
			h.answer = &e
		}
	}
	if (h.err == nil) == (h.answer == nil) {
		t.Errorf("a turn ends with an answer or an error; got %v and %v", h.answer, h.err)
	}
	return h
}

func user(words string) []model.Message {
	return []model.Message{{Role: model.RoleUser, Content: []model.Content{model.Text{Text: words}}}}
}

func result(id, words string) model.Message {
	return model.Message{Role: model.RoleTool, Content: []model.Content{model.ToolResult{CallID: id, Text: words}}}
}

var look = model.Tool{Name: "look", Description: "Looks.", Schema: []byte(`{"type":"object","properties":{"at":{"type":"string"}}}`)}

func python(id, code string) model.ToolCall {
	return model.ToolCall{ID: id, Name: "python", Arguments: fmt.Sprintf(`{"code":%q}`, code)}
}

func TestRunGoesOnFromAHistory(t *testing.T) {
	t.Parallel()
	plot := []kernel.Event{kernel.Display{Data: kernel.Bundle{"image/png": "aGk="}}, kernel.File{Path: "out.csv", Size: 1500, Created: true}}
	s := &session{files: map[string][]byte{"a (1).csv": []byte("x\n1\n")}, outcomes: map[string][]kernel.Event{"plot": plot, "more": plot[:1]}}
	m := &scripted{t: t, can: tools(), script: []says{calls("plot"), text("One."), calls("more"), text("Two.")}}
	first := run(t, t.Context(), m, s, loop.DefaultLimits(), loop.Turn{Input: user("draw"), Python: true})
	if first.answer == nil || !strings.Contains(m.lastTexts(0), "a (1).csv") {
		t.Fatalf("%v; the model got %s", first.err, m.lastTexts(0))
	}
	s.files["out.csv"] = make([]byte, 1500)
	s.files["new.csv"] = []byte("y\n2\n")
	second := run(t, t.Context(), m, s, loop.DefaultLimits(), loop.Turn{History: first.answer.Messages, Input: user("again"), Python: true})
	if second.err != nil || second.answer.Text != "Two." {
		t.Fatal(second.err)
	}
	asked := m.lastTexts(2)
	if !strings.Contains(asked, "new.csv") || strings.Contains(asked, "out.csv") || strings.Contains(asked, "a (1).csv") || !strings.HasPrefix(asked, "again") {
		t.Errorf("the second question came as %s", asked)
	}
	if got := m.lastTexts(3); !strings.Contains(got, "[figure 2 shown to the user]") {
		t.Errorf("the second figure came as %s", got)
	}
	roles := func(messages []model.Message) (out []model.Role) {
		for _, m := range messages {
			out = append(out, m.Role)
		}
		return out
	}
	want := []model.Role{model.RoleUser, model.RoleAssistant, model.RoleTool, model.RoleAssistant}
	if diff := cmp.Diff([][]model.Role{want, want}, [][]model.Role{roles(first.answer.Messages), roles(second.answer.Messages)}); diff != "" {
		t.Error(diff)
	}
}

func TestRunInAFreshSession(t *testing.T) {
	t.Parallel()
	s := &session{files: map[string][]byte{"a.csv": []byte("x\n1\n")}}
	m := &scripted{t: t, can: tools(), script: []says{text("One."), text("Two."), text("Three.")}}
	first := run(t, t.Context(), m, s, loop.DefaultLimits(), loop.Turn{Input: user("what"), Python: true})
	second := run(t, t.Context(), m, s, loop.DefaultLimits(), loop.Turn{History: first.answer.Messages, Input: user("and now"), Python: true, Fresh: true})
	if got := m.lastTexts(1); !strings.Contains(got, "The Python session is a new one") || !strings.Contains(got, "- a.csv") {
		t.Errorf("the model got %s", got)
	}
	forked := &scripted{t: t, can: tools(), script: []says{text("Four.")}}
	run(t, t.Context(), forked, s, loop.DefaultLimits(), loop.Turn{History: first.answer.Messages, Input: user("and now"), Python: true, Fresh: true, Used: true})
	if got := forked.lastTexts(0); !strings.Contains(got, "another one than before") || strings.Contains(got, "lost") || !strings.Contains(got, "- a.csv") {
		t.Errorf("in a session that has run code the model got %s", got)
	}
	history := slices.Concat(first.answer.Messages, second.answer.Messages)
	if run(t, t.Context(), m, s, loop.DefaultLimits(), loop.Turn{History: history, Input: user("then"), Python: true}); strings.Contains(m.lastTexts(2), "a.csv") {
		t.Errorf("the model is told again of a file: %s", m.lastTexts(2))
	}
}

func TestClientFunctions(t *testing.T) {
	t.Parallel()
	asked := model.ToolCall{ID: "c2", Name: "look", Arguments: `{"at":"the sky"}`}
	s := &session{outcomes: map[string][]kernel.Event{"a": prints("from a")}}
	m := &scripted{t: t, can: tools(), script: []says{
		rawCalls(python("c1", "a"), asked, python("c3", "b")), text("It is blue."), text("Nobody said."),
	}}
	turn := loop.Turn{Input: user("look"), Python: true, Tools: []model.Tool{look}}
	first := run(t, t.Context(), m, s, loop.DefaultLimits(), turn)
	if first.err != nil || first.answer.Reason != loop.ClientCalls || first.answer.Steps != 2 {
		t.Fatalf("%+v, %v", first.answer, first.err)
	}
	if diff := cmp.Diff([]model.ToolCall{asked}, first.answer.Calls); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[int]model.ToolCall{0: asked}, first.calls); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[int]string{1: "a", 2: "b"}, first.code); diff != "" {
		t.Error(diff)
	}
	if got := m.requests[0].Tools; len(got) != 2 || got[0].Name != "python" || got[1].Name != "look" {
		t.Errorf("offered %+v", got)
	}

	t.Run("with the result", func(t *testing.T) {
		second := run(t, t.Context(), m, s, loop.DefaultLimits(), loop.Turn{
			History: first.answer.Messages, Python: true, Tools: []model.Tool{look},
			Input: append(user("quick"), result("c2", "blue")),
		})
		if second.err != nil || second.answer.Text != "It is blue." {
			t.Fatal(second.err)
		}
		sent := m.requests[1].Messages
		if got := texts(sent[2]); !strings.Contains(got, "from a\n---\nblue\n---\n") {
			t.Errorf("results %q", got)
		}
		if got := texts(sent[3]); got != "quick" {
			t.Errorf("behind the results comes %q", got)
		}
	})
	t.Run("without the result", func(t *testing.T) {
		if again := run(t, t.Context(), m, s, loop.DefaultLimits(), loop.Turn{History: first.answer.Messages, Python: true, Input: user("so?")}); again.err != nil {
			t.Fatal(again.err)
		}
		if got := texts(m.requests[2].Messages[2]); !strings.Contains(got, "No result came") {
			t.Errorf("results %q", got)
		}
	})
}

func TestClientCallsWithoutIDs(t *testing.T) {
	t.Parallel()
	history := []model.Message{user("x")[0], {Role: model.RoleAssistant, Content: []model.Content{model.ToolCall{ID: "c1", Name: "look", Arguments: "{}"}}}, result("c1", "y")}
	m := &scripted{t: t, can: tools(), script: []says{rawCalls(model.ToolCall{ID: "c1", Name: "look", Arguments: `{"at":`}, model.ToolCall{Name: "look", Arguments: `{}`}), text("ok")}}
	turn := loop.Turn{History: history, Input: user("go"), Tools: []model.Tool{look}}
	got := run(t, t.Context(), m, nil, loop.DefaultLimits(), turn)
	if got.err != nil || len(got.answer.Calls) != 2 {
		t.Fatalf("%+v, %v", got.answer, got.err)
	}
	ids := map[string]bool{"c1": true}
	for n, call := range got.answer.Calls {
		if ids[call.ID] || got.calls[n] != call {
			t.Errorf("call %d is %+v and was told as %+v", n, call, got.calls[n])
		}
		ids[call.ID] = true
	}
	turn.History = slices.Concat(history, user("go"), got.answer.Messages[1:])
	turn.Input = []model.Message{result(got.answer.Calls[1].ID, "second"), result(got.answer.Calls[0].ID, "first")}
	if got := run(t, t.Context(), m, nil, loop.DefaultLimits(), turn); got.err != nil || m.lastTexts(1) != "first\n---\nsecond" {
		t.Errorf("%v: %s", got.err, m.lastTexts(1))
	}
}

// TestClientCallsThatBrokeOff: a call that is made anew has another id than the one that broke off, whatever the service calls it.
func TestClientCallsThatBrokeOff(t *testing.T) {
	t.Parallel()
	broken := says{parts: []model.Part{model.CallDelta{ID: "c1", Name: "look", Arguments: `{"at"`}}, err: problem.New(problem.ModelStreamTruncated, "cut")}
	m := &scripted{t: t, can: tools(), script: []says{broken, rawCalls(model.ToolCall{ID: "c1", Name: "look", Arguments: "{}"})}}
	told := map[string]bool{}
	for event, err := range loop.Run(t.Context(), m, nil, loop.DefaultLimits(), loop.Turn{Input: user("go"), Tools: []model.Tool{look}}) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := event.(type) {
		case loop.Call:
			if e.ID != "" && told[e.ID] {
				t.Errorf("%s is told twice", e.ID)
			}
			told[e.ID] = true
		case loop.Answer:
			if len(e.Calls) != 1 || !told[e.Calls[0].ID] || e.Calls[0].ID == "c1" {
				t.Errorf("told %v, called %+v", told, e.Calls)
			}
		}
	}
}

// TestAnswerFormat: code in fenced blocks must not be kept from coming.
func TestAnswerFormat(t *testing.T) {
	t.Parallel()
	format := model.Format{JSON: true}
	for name, c := range map[string]struct {
		can    model.Capabilities
		script []says
		want   []bool
	}{
		"calls":  {tools(), []says{calls("a"), text("{}")}, []bool{true, true}},
		"fenced": {model.Capabilities{}, []says{text("```python\na\n```"), text("```python\nb\n```"), text("{}")}, []bool{false, false, true}},
	} {
		m := &scripted{t: t, can: c.can, script: c.script}
		got := run(t, t.Context(), m, &session{}, within(loop.Limits{Steps: 1}), loop.Turn{Input: user("x"), Python: true, Format: format})
		for n, want := range c.want {
			if got.err != nil || m.requests[n].Format.JSON != want {
				t.Errorf("%s: request %d has the form %+v; %v", name, n, m.requests[n].Format, got.err)
			}
		}
	}
}

func TestClientCallsEndATurnThatReachedItsLimit(t *testing.T) {
	t.Parallel()
	m := &scripted{t: t, can: tools(), script: []says{rawCalls(python("c1", "a"), python("c2", "b"), model.ToolCall{ID: "c3", Name: "look", Arguments: "{}"})}}
	s := &session{}
	got := run(t, t.Context(), m, s, loop.DefaultLimits(), loop.Turn{Input: user("x"), Python: true, Tools: []model.Tool{look}, MaxCalls: 1})
	if got.err != nil || got.answer.Reason != loop.ClientCalls || len(s.ran) != 1 || len(got.answer.Calls) != 1 {
		t.Fatalf("%+v, %v", got.answer, got.err)
	}
	if last := texts(got.answer.Messages[len(got.answer.Messages)-1]); !strings.Contains(last, "limit of 1 code executions") {
		t.Errorf("the conversation ends with %s", last)
	}
}

func TestMaxCalls(t *testing.T) {
	t.Parallel()
	m := &scripted{t: t, can: tools(), script: []says{calls("a"), calls("b"), text("That is all.")}}
	s := &session{}
	got := run(t, t.Context(), m, s, loop.DefaultLimits(), loop.Turn{Input: user("x"), Python: true, MaxCalls: 1, MaxTokens: 77})
	if got.err != nil || got.answer.Reason != loop.CallLimit || got.answer.Text != "That is all." || len(s.ran) != 1 {
		t.Fatalf("%+v, %v", got.answer, got.err)
	}
	for n, r := range m.requests {
		if r.MaxTokens != 77 {
			t.Errorf("request %d asks for %d tokens", n, r.MaxTokens)
		}
	}
}

// TestAnswerCutOffBeforeItsFirstWord happens to models that think for longer than the client's limit lets them: asking again would be cut off too.
func TestAnswerCutOffBeforeItsFirstWord(t *testing.T) {
	t.Parallel()
	thinks := says{parts: []model.Part{model.ReasoningDelta{Text: "Hm"}, model.Finish{Reason: model.FinishLength, Usage: usage()}}}
	m := &scripted{t: t, can: tools(), script: []says{thinks}}
	got := run(t, t.Context(), m, &session{}, loop.DefaultLimits(), loop.Turn{Input: user("x"), Python: true, MaxTokens: 20})
	if got.err != nil || got.answer.Reason != loop.Length || !strings.Contains(got.answer.Text, "limit of tokens") {
		t.Errorf("%+v, %v", got.answer, got.err)
	}
}

func TestWishesAreSent(t *testing.T) {
	t.Parallel()
	warm, parallel := 0.3, false
	m := &scripted{t: t, can: tools(), script: []says{calls("a"), text("ok")}}
	got := run(t, t.Context(), m, &session{}, loop.DefaultLimits(), loop.Turn{
		Input: user("x"), Python: true, Choice: model.ToolChoice{Name: "code_interpreter"}, Parallel: &parallel, Temperature: &warm, TopP: &warm, Instructions: "Speak Latin.",
	})
	if got.err != nil {
		t.Fatal(got.err)
	}
	for n, r := range m.requests {
		want := model.ToolChoice{}
		if n == 0 {
			want.Name = "python" // once is enough
		}
		if r.Choice != want || r.Parallel != &parallel || r.Temperature != &warm || r.TopP != &warm {
			t.Errorf("request %d: %+v", n, r)
		}
		if !strings.Contains(r.System, "isolated sandbox") || !strings.HasSuffix(r.System, "\n\nSpeak Latin.") {
			t.Errorf("request %d: system prompt %s", n, r.System)
		}
	}
}

func TestNothingIsCalledWithoutLeave(t *testing.T) {
	t.Parallel()
	history := []model.Message{user("x")[0], {Role: model.RoleAssistant, Content: []model.Content{
		python("c1", "1+1"), model.ToolCall{ID: "c2", Name: "look", Arguments: `{"at":"it"}`}}}, result("c1", "2"), result("c2", "seen")}
	for name, turn := range map[string]loop.Turn{
		"choice none": {Python: true, Tools: []model.Tool{look}, Choice: model.ToolChoice{Mode: "none"}},
		"plain chat":  {Instructions: "Be brief."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &scripted{t: t, can: tools(), script: []says{text("```python\nprint(1)\n```\nLet me run it.")}}
			turn.History, turn.Input = history, user("go on")
			var s loop.Executor
			if turn.Python {
				s = &session{}
			}
			got := run(t, t.Context(), m, s, loop.DefaultLimits(), turn)
			if got.err != nil || got.answer.Steps != 0 || !strings.HasPrefix(got.answer.Text, "```python") {
				t.Fatalf("%+v, %v", got.answer, got.err)
			}
			req := m.requests[0]
			if len(req.Tools) != 0 || (req.System != "Be brief.") != turn.Python {
				t.Errorf("offered %+v with %q", req.Tools, req.System)
			}
			all := texts(req.Messages[1]) + texts(req.Messages[2])
			for _, want := range []string{"```python\n1+1", "(called look)", "Result of the code:\n```\n2", "Result of look:\n```\nseen", "go on"} {
				if !strings.Contains(all, want) {
					t.Errorf("%q is not in %s", want, all)
				}
			}
		})
	}
}

func TestBadTurnsAreRefused(t *testing.T) {
	t.Parallel()
	named := func(name string) []model.Tool { return []model.Tool{{Name: name}} }
	for name, c := range map[string]struct {
		turn   loop.Turn
		fenced bool
		code   string
	}{
		"a name that is taken":     {turn: loop.Turn{Python: true, Tools: named("python")}, code: "tool_name_taken"},
		"a name that is none":      {turn: loop.Turn{Tools: named("a b")}, code: "tool_invalid"},
		"one name twice":           {turn: loop.Turn{Tools: append(named("a"), named("a")...)}, code: "tool_invalid"},
		"parameters that are none": {turn: loop.Turn{Tools: []model.Tool{{Name: "a", Schema: []byte(`[]`)}}}, code: "tool_invalid"},
		"an unknown choice":        {turn: loop.Turn{Choice: model.ToolChoice{Mode: "maybe"}}, code: "tool_choice_invalid"},
		"a choice of nothing":      {turn: loop.Turn{Choice: model.ToolChoice{Mode: "required"}}, code: "tool_choice_invalid"},
		"an unknown function":      {turn: loop.Turn{Tools: named("a"), Choice: model.ToolChoice{Name: "b"}}, code: "tool_choice_invalid"},
		"Python that is not there": {turn: loop.Turn{Tools: named("a"), Choice: model.ToolChoice{Name: "python"}}, code: "tool_choice_invalid"},
		"no function calls":        {turn: loop.Turn{Tools: named("a")}, fenced: true, code: "tools_unsupported"},
		"nothing said":             {turn: loop.Turn{Input: user(" \n")}, code: "input_empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &scripted{t: t, can: model.Capabilities{Tools: !c.fenced}}
			if c.turn.Input == nil {
				c.turn.Input = user("x")
			}
			got := run(t, t.Context(), m, &session{}, loop.DefaultLimits(), c.turn)
			if p := problem.Of(got.err); p == nil || p.Code != c.code || p.Kind != problem.Invalid || p.Hint == "" {
				t.Errorf("%v, want %s", got.err, c.code)
			}
		})
	}
}

func TestAFunctionMayBeNamedPythonWithoutTheInterpreter(t *testing.T) {
	t.Parallel()
	m := &scripted{t: t, can: tools(), script: []says{rawCalls(python("c1", "1"))}}
	got := run(t, t.Context(), m, nil, loop.DefaultLimits(), loop.Turn{Input: user("x"), Tools: []model.Tool{{Name: "python"}}})
	if got.err != nil || got.answer.Reason != loop.ClientCalls || got.calls[0] != python("c1", "1") {
		t.Errorf("%+v, %v", got, got.err)
	}
}

func TestModelsThatTurnOutNotToCallFunctions(t *testing.T) {
	t.Parallel()
	refusal := problem.New(problem.ToolsUnsupported, "scripted cannot call tools")
	m := &scripted{t: t, can: tools(), script: []says{{err: refusal}}}
	got := run(t, t.Context(), m, &session{}, loop.DefaultLimits(), loop.Turn{Input: user("x"), Python: true, Tools: []model.Tool{look}})
	if p := problem.Of(got.err); p == nil || p.Code != "tools_unsupported" || !strings.Contains(p.Hint, "leave the functions out") {
		t.Errorf("%v", got.err)
	}
}

func TestImagesOfTheUser(t *testing.T) {
	t.Parallel()
	input := []model.Message{{Role: model.RoleUser, Content: []model.Content{
		model.Image{MIME: "image/png", Data: []byte("x")}, model.Image{MIME: "image/tiff", Data: []byte("x")}, model.Text{Text: "what?"}}}}
	for _, sees := range []bool{true, false} {
		m := &scripted{t: t, can: model.Capabilities{Tools: true, Images: sees}, script: []says{text("A cat.")}}
		if got := run(t, t.Context(), m, nil, loop.DefaultLimits(), loop.Turn{Input: input}); got.err != nil {
			t.Fatal(got.err)
		}
		sent := m.requests[0].Messages[0]
		want, said := 1, "[an image that cannot be shown to you]\n---\nwhat?"
		if !sees {
			want, said = 0, "[an image, which this model cannot see]\n---\n[an image, which this model cannot see]\n---\nwhat?"
		}
		if images(sent) != want || texts(sent) != said {
			t.Errorf("sees %v: %d images and %q", sees, images(sent), texts(sent))
		}
	}
}

func TestStoppedTurnsLeaveWhatWasDone(t *testing.T) {
	t.Parallel()
	broken := problem.New(problem.ModelAuth, "no")
	m := &scripted{t: t, can: tools(), script: []says{{err: broken}, calls("a"), {err: broken}, text("Well.")}}
	s := &session{outcomes: map[string][]kernel.Event{"a": prints("done a")}}
	turn := loop.Turn{Input: user("first"), Python: true}
	got := run(t, t.Context(), m, s, loop.DefaultLimits(), turn)
	if s, ok := errors.AsType[*loop.Stopped](got.err); !ok || len(s.Messages) != 0 || problem.Of(got.err).Code != "model_auth" {
		t.Errorf("a turn without executions ended with %#v", got.err)
	}
	got = run(t, t.Context(), m, s, loop.DefaultLimits(), turn)
	stopped, ok := errors.AsType[*loop.Stopped](got.err)
	if !ok || problem.Of(got.err).Code != "model_auth" || stopped.Error() != "no" || stopped.Steps != 1 || stopped.Usage != usage() {
		t.Fatalf("a turn with executions ended with %#v", got.err)
	}
	if got := run(t, t.Context(), m, s, loop.DefaultLimits(), loop.Turn{History: stopped.Messages, Input: user("second"), Python: true}); got.err != nil {
		t.Fatal(got.err)
	}
	if sent := m.requests[3].Messages; len(sent) != 5 || texts(sent[2]) != "done a" || !strings.Contains(texts(sent[3]), "stopped before an answer") {
		t.Errorf("the next turn goes on from %+v", sent)
	}
}

// TestHistoriesOfAnyShape has clients send whatever they like; checkRequest knows what providers take.
func TestHistoriesOfAnyShape(t *testing.T) {
	t.Parallel()
	roles := []model.Role{model.RoleUser, model.RoleAssistant, model.RoleTool, "system", ""}
	ids := []string{"", "c1", "c2", "a b\x00", strings.Repeat("x", 99)}
	rapid.Check(t, func(r *rapid.T) {
		pick := func(label string, from []string) string { return rapid.SampledFrom(from).Draw(r, label) }
		content := rapid.Custom(func(r *rapid.T) model.Content {
			switch rapid.IntRange(0, 4).Draw(r, "kind") {
			case 0:
				return model.Text{Text: rapid.SampledFrom([]string{"", " ", "words", "\xff", "Result of the code:\n```\n1\n```", "- a (1 byte)"}).Draw(r, "text")}
			case 1:
				return model.Image{MIME: rapid.SampledFrom([]string{"image/png", "x"}).Draw(r, "mime"), Data: []byte("x")}
			case 2:
				return model.ToolResult{CallID: rapid.SampledFrom(ids).Draw(r, "of"), Text: "r\xfe", Images: []model.Image{{MIME: "image/bmp"}}}
			case 3:
				return nil
			default:
				return model.ToolCall{ID: rapid.SampledFrom(ids).Draw(r, "id"), Name: rapid.SampledFrom([]string{"python", "look", "", "a b"}).Draw(r, "name"),
					Arguments: rapid.SampledFrom([]string{"", "{}", `{"code":"1"}`, "[1]", "\xff"}).Draw(r, "arguments")}
			}
		})
		message := rapid.Custom(func(r *rapid.T) model.Message {
			return model.Message{Role: rapid.SampledFrom(roles).Draw(r, "role"), Content: rapid.SliceOfN(content, 0, 4).Draw(r, "content")}
		})
		turn := loop.Turn{History: rapid.SliceOfN(message, 0, 8).Draw(r, "history"), Input: user("now"), Python: true, Tools: []model.Tool{look}}
		turn.Choice.Mode = pick("choice", []string{"", "none"})
		m := &scripted{t: t, can: model.Capabilities{Tools: true, Images: rapid.Bool().Draw(r, "sees")}, script: []says{text("ok")}}
		if got := run(t, t.Context(), m, &session{}, loop.DefaultLimits(), turn); got.err != nil {
			r.Fatalf("%v", got.err)
		}
		if t.Failed() {
			r.Fatalf("a history became an invalid request: %+v", m.requests[0].Messages)
		}
	})
}

// TestStop: texts that end an answer are for answers in words; they would end code in the middle.
func TestStop(t *testing.T) {
	t.Parallel()
	for _, python := range []bool{false, true} {
		m := &scripted{t: t, can: tools(), script: []says{text("ok")}}
		run(t, t.Context(), m, &session{}, loop.DefaultLimits(), loop.Turn{Input: user("go"), Python: python, Stop: []string{"END"}})
		if got := len(m.requests[0].Stop); got != map[bool]int{false: 1, true: 0}[python] {
			t.Errorf("with Python %v: %d texts", python, got)
		}
	}
}
