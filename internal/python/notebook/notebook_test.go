package notebook_test

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
	"cove/internal/python/notebook"
)

func out(step int, e kernel.Event) loop.Event { return loop.Output{Step: step, Event: e} }

// hostile is a turn with everything that a notebook can show, and what nobody should send.
func hostile() notebook.Document {
	events := []loop.Event{
		loop.Text{Delta: "I look "}, loop.Text{Delta: "first."},
		loop.Code{Step: 1, Delta: "1/"},
		loop.Start{Step: 1, Code: "%pip install cowsay\nif True:\n    !ls\nprint('a')"},
		out(1, kernel.Stream{Name: "stdout", Data: []byte("a\n")}),
		out(1, kernel.Stream{Name: "stdout", Data: []byte("b\xff\n")}),
		out(1, kernel.Stream{Name: "stderr", Data: []byte("careful\n")}),
		out(1, kernel.Display{ID: "one", Data: kernel.Bundle{"text/plain": "first"}}),
		out(1, kernel.Display{ID: "one", Update: true, Data: kernel.Bundle{"image/png": "iVBORw0=", "text/plain": "<Figure>"}}),
		out(1, kernel.Display{Data: kernel.Bundle{"text/plain": "", kernel.MIMEComm: map[string]any{"kind": "comm_msg"}}}),
		out(1, kernel.Result{Count: 7, Data: kernel.Bundle{"application/json": map[string]any{"x": 1.0}, "text/html": "<b>\n</b>", "text/plain": []any{"odd"}}}),
		out(1, kernel.File{Path: "made.csv"}),
		out(1, kernel.Done{Outcome: kernel.OutcomeOK}),
		loop.Start{Step: 2, Code: "```\n1/0"},
		out(2, kernel.Stream{Name: "stdout", Data: []byte("gone")}),
		out(2, kernel.ClearOutput{}),
		out(2, kernel.Error{Name: "ZeroDivisionError", Value: "division by zero", Traceback: []string{"Traceback", "ZeroDivisionError: division by zero"}}),
		out(2, kernel.Done{Outcome: kernel.OutcomeError, ExitCode: 1}),
		loop.Start{Step: 3, Code: "while True: pass"},
		out(3, kernel.Done{Outcome: kernel.OutcomeTimeout, Message: "it ran for too long"}),
		loop.Text{Delta: "It is\rdone."},
	}
	return notebook.Document{Title: "流失\n# x", Python: "3.11.7", Files: []string{"a`b\n.csv"}, Turns: []notebook.Turn{notebook.ReadTurn("流失？\nimport os", "It is\rdone.", events)}}
}

// TestOutdatedAnswers says in each format that an answer does not know of a step that ran again.
func TestOutdatedAnswers(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(io.Writer, notebook.Document) error{
		"ipynb": notebook.WriteIPYNB, "python": notebook.WritePython,
		"markdown": func(w io.Writer, d notebook.Document) error { return notebook.WriteMarkdownFigures(w, d, 0) },
		"html":     func(w io.Writer, d notebook.Document) error { return notebook.WriteHTML(w, d, 0) },
	} {
		for _, outdated := range []bool{false, true} {
			var out bytes.Buffer
			err := write(&out, notebook.Document{Turns: []notebook.Turn{{Prompt: "How many?", Answer: "It is 42.", Outdated: outdated}}})
			if at := strings.Index(out.String(), "was written before a step was run again"); err != nil || at >= 0 != outdated || at > strings.Index(out.String(), "It is 42.") {
				t.Errorf("%s: outdated %t: %v\n%s", name, outdated, err, &out)
			}
		}
	}
}

func TestReadTurn(t *testing.T) {
	t.Parallel()
	turn := hostile().Turns[0]
	if len(turn.Blocks) != 4 || turn.Blocks[0].Text != "I look first." || turn.Blocks[1].Cell == nil {
		t.Fatalf("the blocks are %+v", turn.Blocks)
	}
	first, second := turn.Blocks[1].Cell, turn.Blocks[2].Cell
	if len(first.Outputs) != 4 || string(first.Outputs[0].Stream.Data) != "a\nb\xff\n" || first.Outputs[2].Display.Data["image/png"] == nil {
		t.Errorf("the first cell shows %+v", first.Outputs)
	}
	if len(second.Outputs) != 1 || second.Outputs[0].Error == nil {
		t.Errorf("what was cleared is shown: %+v", second.Outputs)
	}
	if len(first.Files) != 1 || turn.Blocks[3].Cell.Outcome != kernel.OutcomeTimeout {
		t.Errorf("files %v, outcome %s", first.Files, turn.Blocks[3].Cell.Outcome)
	}
}

func TestIPYNB(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	if err := notebook.WriteIPYNB(&text, hostile()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		NBFormat int `json:"nbformat"`
		Minor    int `json:"nbformat_minor"`
		Cells    []struct {
			Type    string `json:"cell_type"`
			ID      string
			Source  []string
			Outputs []map[string]any
		}
	}
	if err := json.Unmarshal(text.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.NBFormat != 4 || got.Minor != 5 || len(got.Cells) != 7 {
		t.Fatalf("format %d.%d with %d cells", got.NBFormat, got.Minor, len(got.Cells))
	}
	seen := map[string]bool{}
	for _, c := range got.Cells {
		if c.ID == "" || seen[c.ID] {
			t.Errorf("the id %q is not its own", c.ID)
		}
		seen[c.ID] = true
	}
	outputs := got.Cells[3].Outputs
	if len(outputs) != 4 || outputs[0]["output_type"] != "stream" || outputs[3]["output_type"] != "execute_result" {
		t.Fatalf("the outputs are %v", outputs)
	}
	if data := outputs[3]["data"].(map[string]any); data["text/plain"] != `["odd"]` || data["application/json"].(map[string]any)["x"] != 1.0 {
		t.Errorf("the data is %v", data)
	}
	if data := outputs[2]["data"].(map[string]any); data["image/png"] != "iVBORw0=" {
		t.Errorf("the figure is %v", data)
	}
	if last := got.Cells[5].Outputs; len(last) != 1 || !strings.Contains(last[0]["text"].([]any)[0].(string), "too long") {
		t.Errorf("the end by time is told as %v", last)
	}
}

// TestIPYNBIsValidWhateverIsShown checks what the schema of the format says of a bundle: any JSON for ^application/(.*\+)?json$, text for the rest.
func TestIPYNBIsValidWhateverIsShown(t *testing.T) {
	t.Parallel()
	object, deep := map[string]any{"a": []any{1.0, nil}}, any("end")
	for range 5_000 {
		deep = []any{deep}
	}
	cell := notebook.Cell{Code: "x"}
	cell.Add(kernel.Display{
		Data: kernel.Bundle{
			"application/json": object, "application/vnd.x+json": []any{object}, "application/a\nb+json": object, "text/x+json": object, "image/png": object,
			"+json": object, "": object, "text/html": nil, "text/plain": "a\x00\xff\r\nb", "application/deep+json": deep, "text/deep": deep,
		},
		Metadata: map[string]any{"deep": deep},
	})
	var text bytes.Buffer
	if err := notebook.WriteIPYNB(&text, notebook.Document{Turns: []notebook.Turn{{Blocks: []notebook.Block{{Cell: &cell}}}}}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Cells []struct {
			Outputs []struct{ Data, Metadata map[string]any }
		}
	}
	if err := json.Unmarshal(text.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	data := got.Cells[0].Outputs[0].Data
	free := regexp.MustCompile(`^application/(.*\+)?json$`)
	for kind, value := range data {
		_, isText := value.(string)
		lines, isList := value.([]any)
		isList = isList && !slices.ContainsFunc(lines, func(line any) bool { _, ok := line.(string); return !ok })
		if !isText && !isList && !free.MatchString(kind) {
			t.Errorf("%q has %v, which is no text", kind, value)
		}
	}
	if len(data) != 9 || data["application/deep+json"] != nil || len(got.Cells[0].Outputs[0].Metadata) != 0 {
		t.Errorf("the bundle is %v", data)
	}
}

func TestClearingWaitsForWhatIsShownNext(t *testing.T) {
	t.Parallel()
	line := func(text string) kernel.Event { return kernel.Stream{Name: "stdout", Data: []byte(text)} }
	for name, c := range map[string]struct {
		events []kernel.Event
		want   string
	}{
		"at once":             {[]kernel.Event{line("a"), kernel.ClearOutput{}}, ""},
		"nothing comes":       {[]kernel.Event{line("a"), kernel.ClearOutput{Wait: true}, kernel.Done{}}, "a"},
		"something comes":     {[]kernel.Event{line("a"), kernel.ClearOutput{Wait: true}, line("b"), line("c")}, "bc"},
		"then at once, a new": {[]kernel.Event{line("a"), kernel.ClearOutput{Wait: true}, kernel.ClearOutput{}, line("b"), line("c")}, "bc"},
	} {
		var cell notebook.Cell
		for _, e := range c.events {
			cell.Add(e)
		}
		if got := cell.Text(); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestPython wants every line that is no code of the cells to be a comment, whatever the texts hold.
func TestPython(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	if err := notebook.WritePython(&text, hostile()); err != nil {
		t.Fatal(err)
	}
	code := map[string]bool{"if True:": true, "    pass  # !ls": true, "print('a')": true, "```": true, "1/0": true, "while True: pass": true, "": true}
	for line := range strings.SplitSeq(text.String(), "\n") {
		if !strings.HasPrefix(line, "#") && !code[line] {
			t.Errorf("the line %q is neither code nor a comment", line)
		}
	}
	text.Reset()
	magic := notebook.Document{Turns: []notebook.Turn{{Blocks: []notebook.Block{{Cell: &notebook.Cell{Code: "%%bash\rrm -r x\r\nls"}}}}}}
	if err := notebook.WritePython(&text, magic); err != nil || text.String() != "\n# %%\n# %%bash\n# rm -r x\n# ls\n" {
		t.Errorf("a magic became %q, %v", text.String(), err)
	}
}

func TestPythonKeepsMagic(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	if err := notebook.WritePython(&text, hostile()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "# %pip install cowsay\n") || strings.Contains(text.String(), "\r") {
		t.Errorf("the program is\n%s", text.String())
	}
}

// TestMarkdownIsNotLeftOpen: what a model did not finish does not swallow what follows.
func TestMarkdownIsNotLeftOpen(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"Use:\n```python\nx = 1":       "Use:\n```python\nx = 1\n```\n\n",
		"```\na\n```\nand\n~~~~ text":  "```\na\n```\nand\n~~~~ text\n~~~~\n\n",
		"````\n```\nstill\n```\n":      "````\n```\nstill\n```\n````\n\n",
		"```\na\n````  ":               "```\na\n````  \n\n",
		"`inline` ``` and ```x``` end": "`inline` ``` and ```x``` end\n\n",
		"```x``` is inline":            "```x``` is inline\n\n",
		"    ``` indented code":        "    ``` indented code\n\n",
	} {
		var text bytes.Buffer
		if err := notebook.WriteMarkdown(&text, notebook.Document{Turns: []notebook.Turn{{Answer: answer}}}); err != nil {
			t.Fatal(err)
		}
		if text.String() != want {
			t.Errorf("%q became %q", answer, text.String())
		}
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	if err := notebook.WriteMarkdown(&text, hostile()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# 流失 # x\n", "## 流失？ import os\n", "````python\n```\n1/0\n````\n", "[figure]", "ZeroDivisionError: division by zero", "[it ran for too long]", "`a'b .csv`"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("there is no %q in\n%s", want, text.String())
		}
	}
}

func TestWhatWasTypedIsShown(t *testing.T) {
	t.Parallel()
	var c notebook.Cell
	for _, e := range []kernel.Event{
		kernel.InputRequest{Number: 1, Prompt: "Name: "}, kernel.InputReply{Number: 1, Text: "Ada"},
		kernel.InputRequest{Number: 2, Prompt: "Password: ", Password: true}, kernel.InputReply{Number: 2, Secret: true},
		kernel.InputRequest{Number: 3, Prompt: "More: "}, kernel.InputReply{Number: 3, Ended: true},
	} {
		c.Add(e)
	}
	if len(c.Outputs) != 1 || c.Outputs[0].Stream == nil || string(c.Outputs[0].Stream.Data) != "Name: Ada\nPassword: ········\nMore: \n" {
		t.Errorf("a notebook shows %+v", c.Outputs)
	}
}
