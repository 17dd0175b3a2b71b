package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
	"cove/internal/testkit/testneeds"
)

// TestOutputs shows what becomes of what code prints and shows.
func TestOutputs(t *testing.T) {
	t.Parallel()
	stream := func(text string) kernel.Event { return kernel.Stream{Name: "stdout", Data: []byte(text)} }
	image := func(id string, update bool) kernel.Event {
		return kernel.Display{ID: id, Update: update, Data: kernel.Bundle{"image/png": "QUJD\nRA==", "text/plain": "<Figure>"}}
	}
	for name, c := range map[string]struct {
		events []kernel.Event
		status string
		want   string
	}{
		"texts are joined":       {[]kernel.Event{stream("a"), kernel.Stream{Name: "stderr", Data: []byte("b")}, done(kernel.OutcomeOK)}, "completed", `[logs:ab]`},
		"pictures stand between": {[]kernel.Event{stream("a"), image("", false), stream("b"), done(kernel.OutcomeOK)}, "completed", `[logs:a image:data:image/png;base64,QUJDRA== logs:b]`},
		"a result is a line":     {[]kernel.Event{kernel.Result{Data: kernel.Bundle{"text/plain": "42", "text/html": "<b>42</b>"}}, done(kernel.OutcomeOK)}, "completed", `[logs:42` + "\n" + `]`},
		"an exception is output": {[]kernel.Event{kernel.Error{Name: "E", Traceback: []string{"Traceback", "E"}}, done(kernel.OutcomeError)}, "completed", "[logs:Traceback\nE\n]"},
		"updates replace":        {[]kernel.Event{kernel.Display{ID: "d", Data: kernel.Bundle{"text/plain": "1"}}, stream("x"), image("d", true), done(kernel.OutcomeOK)}, "completed", `[image:data:image/png;base64,QUJDRA== logs:x]`},
		"clearing":               {[]kernel.Event{stream("a"), kernel.ClearOutput{}, stream("b"), kernel.ClearOutput{Wait: true}, stream("c"), done(kernel.OutcomeOK)}, "completed", `[logs:c]`},
		"a timeout fails":        {[]kernel.Event{stream("a\n"), kernel.Done{Outcome: kernel.OutcomeTimeout, Message: "it took too long"}}, "failed", "[logs:a\nit took too long\n]"},
		"an interrupt":           {[]kernel.Event{done(kernel.OutcomeInterrupted)}, "incomplete", `[]`},
		"bytes that are no text": {[]kernel.Event{stream("\xff!"), done(kernel.OutcomeOK)}, "completed", "[logs:\ufffd!]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := []loop.Event{loop.Start{Step: 1, Code: "x"}}
			for _, e := range c.events {
				script = append(script, loop.Output{Step: 1, Event: e})
			}
			f := newFake(append(script, loop.Answer{Text: "x", Reason: loop.Complete, Steps: 1})...)
			_, answer, _ := ask(t, serve(t, f), "POST", "/v1/responses", `{"model":"m","input":"Q","include":["code_interpreter_call.outputs"],`+python+`}`)
			got := []string{}
			list, _ := at(answer, "output", 0, "outputs").([]any)
			for _, o := range list {
				got = append(got, fmt.Sprint(at(o, "type"), ":", at(o, "logs"), at(o, "url")))
			}
			text := strings.ReplaceAll("["+strings.Join(got, " ")+"]", "<nil>", "")
			if text != c.want || at(answer, "output", 0, "status") != c.status {
				t.Errorf("%v %q, want %q", at(answer, "output", 0, "status"), text, c.want)
			}
		})
	}
}

// TestCitations counts characters, finds both names of the workspace, and does not cite what the code did not make.
func TestCitations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"See [p](sandbox:/mnt/data/p.png).":                              "p.png 8-31, q r.csv 33-33",
		"图😀: sandbox:/mnt/data/p.png, and more":                          "p.png 4-27, q r.csv 37-37",
		"[q](sandbox:/home/user/q%20r.csv) [p](sandbox:/mnt/data/p.png)": "q r.csv 4-32, p.png 38-61",
		"[other](sandbox:/mnt/data/../../etc/passwd)":                    "p.png 43-43, q r.csv 43-43",
		"**sandbox:/mnt/data/p.png** sandbox:/mnt/data/p.png":            "p.png 2-25, p.png 28-51, q r.csv 51-51",
	} {
		f := newFake(loop.Start{Step: 1, Code: "x"},
			loop.Output{Step: 1, Event: kernel.File{Path: "p.png"}}, loop.Output{Step: 1, Event: kernel.File{Path: "q r.csv"}},
			loop.Output{Step: 1, Event: kernel.File{Path: ".cache/x"}}, loop.Output{Step: 1, Event: kernel.File{Path: "a/.x"}},
			loop.Output{Step: 1, Event: done(kernel.OutcomeOK)}, loop.Answer{Text: text, Reason: loop.Complete, Steps: 1})
		_, answer, _ := ask(t, serve(t, f), "POST", "/v1/responses", `{"model":"m","input":"Q",`+python+`}`)
		list, _ := at(answer, "output", 1, "content", 0, "annotations").([]any)
		var got []string
		for _, a := range list {
			got = append(got, fmt.Sprintf("%v %v-%v", at(a, "filename"), at(a, "start_index"), at(a, "end_index")))
		}
		if all := strings.Join(got, ", "); all != want {
			t.Errorf("%s\n got  %s\n want %s", text, all, want)
		}
	}
}

// TestManyPieces would take minutes if every piece made all that came before it be copied.
func TestManyPieces(t *testing.T) {
	t.Parallel()
	pieces := 100_000
	if !testneeds.MoreThanQuick() {
		pieces = 20_000
	}
	script := []loop.Event{loop.Start{Step: 1, Code: "x"}}
	for range pieces {
		script = append(script, loop.Output{Step: 1, Event: kernel.Stream{Name: "stdout", Data: []byte("a line\n")}})
	}
	script = append(script, loop.Output{Step: 1, Event: done(kernel.OutcomeOK)})
	for range pieces {
		script = append(script, loop.Text{Delta: "a word "})
	}
	script = append(script, loop.Answer{Text: strings.Repeat("a word ", pieces), Reason: loop.Complete, Steps: 1})
	s := serve(t, newFake(script...))
	_, answer, _ := ask(t, s, "POST", "/v1/responses", `{"model":"m","input":"Q","include":["code_interpreter_call.outputs"],`+python+`}`)
	if got := at(answer, "output", 0, "outputs", 0, "logs"); got != strings.Repeat("a line\n", pieces) {
		t.Errorf("the output has %d bytes", len(fmt.Sprint(got)))
	}
	if got := at(answer, "output", 1, "content", 0, "text"); got != strings.Repeat("a word ", pieces) {
		t.Errorf("the text has %d bytes", len(fmt.Sprint(got)))
	}
	_, answer, _ = ask(t, s, "POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Q"}],"tools":[{"type":"code_interpreter"}]}`)
	if got := fmt.Sprint(at(answer, "choices", 0, "message", "content")); got != strings.Repeat("a word ", pieces) {
		t.Errorf("the chat's answer has %d bytes", len(got))
	}
}

// FuzzRequest feeds what is not a request to the surface: it must answer, with a status of the client's making.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{`{}`, `{"model":"m","input":[{"content":[{}]}]}`, `{"model":"m","input":[{"type":"function_call"}]}`, `{"model":"m","input":"x","tools":[{"type":"code_interpreter","container":{}}]}`,
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":{"url":"data:,"}}]}],"text":{"format":{"type":"json_schema"}},"tool_choice":{"type":"allowed_tools"}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		hub := newFake(loop.Answer{Text: "x", Reason: loop.Complete})
		s := serve(t, hub)
		for _, path := range []string{"/v1/responses", "/v1/conversations", "/v1/containers", "/v1/chat/completions"} {
			status, text, _ := raw(t, s, "POST", path, body)
			if status >= 500 || !json.Valid([]byte(text)) && !strings.HasPrefix(text, "event:") && !strings.HasPrefix(text, "data:") {
				t.Errorf("%s %q: %d %s", path, body, status, text)
			}
		}
	})
}
