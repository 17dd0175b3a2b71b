package transcript_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
	"cove/internal/server/transcript"
)

var ignoreUnexported = cmpopts.IgnoreUnexported(installation.Provision{})

// events is every kind of event with its documented form.
func events() map[string]kernel.Event {
	failure := problem.New(problem.IndexUnreachable, "no answer").WithHint("try later")
	return map[string]kernel.Event{
		`{"type":"stream","name":"stdout","text":"<b> 你好\n"}`:                    kernel.Stream{Name: "stdout", Data: []byte("<b> 你好\n")},
		`{"type":"stream","data":"/w==","name":"stderr"}`:                        kernel.Stream{Name: "stderr", Data: []byte{0xff}},
		`{"type":"stream","name":"stdout","text":""}`:                            kernel.Stream{Name: "stdout", Data: []byte{}},
		`{"type":"display","data":{},"metadata":{}}`:                             kernel.Display{},
		`{"type":"widgets","closed":["b"],"models":{"a":{"state":{"value":5}}}}`: kernel.Widgets{Models: map[string]any{"a": map[string]any{"state": map[string]any{"value": 5.0}}}, Closed: []string{"b"}},
		`{"type":"clear_output","wait":true}`:                                    kernel.ClearOutput{Wait: true},
		`{"type":"file","created":true,"path":"a b","size":12}`:                  kernel.File{Path: "a b", Size: 12, Created: true},
		`{"type":"display","data":{"application/json":{"n":1.5},"text/plain":"x"},"id":"d","metadata":{"a":[1]},"update":false}`: kernel.Display{
			Data: kernel.Bundle{"text/plain": "x", "application/json": map[string]any{"n": 1.5}}, Metadata: map[string]any{"a": []any{1.0}}, ID: "d"},
		`{"type":"result","count":3,"data":{"text/plain":"7"},"metadata":{}}`:                                  kernel.Result{Count: 3, Data: kernel.Bundle{"text/plain": "7"}},
		`{"type":"error","name":"ValueError","traceback":["a","ValueError: no"],"value":"no"}`:                 kernel.Error{Name: "ValueError", Value: "no", Traceback: []string{"a", "ValueError: no"}},
		`{"type":"error","hint":"Did you mean 'x'?","name":"KeyError","traceback":[],"value":"y"}`:             kernel.Error{Name: "KeyError", Value: "y", Hint: "Did you mean 'x'?"},
		`{"type":"error","name":"E","traceback":[],"value":""}`:                                                kernel.Error{Name: "E"},
		`{"type":"done","exit_code":0,"outcome":"ok","seconds":0.25}`:                                          kernel.Done{Outcome: kernel.OutcomeOK, Wall: 250 * time.Millisecond},
		`{"type":"tool_call","arguments":"{\"a\":1}","name":"q","seconds":0.5}`:                                kernel.ToolCall{Name: "q", Arguments: `{"a":1}`, Wall: time.Second / 2},
		`{"type":"tool_call","arguments":"{}","error":"no","name":"q","seconds":0}`:                            kernel.ToolCall{Name: "q", Arguments: `{}`, Error: "no"},
		`{"type":"tool_call","arguments":"{}","name":"q","number":3,"seconds":0}`:                              kernel.ToolCall{Number: 3, Name: "q", Arguments: `{}`},
		`{"type":"input_request","number":1,"password":false,"prompt":"Your name: "}`:                          kernel.InputRequest{Number: 1, Prompt: "Your name: "},
		`{"type":"input_request","number":2,"password":true,"prompt":"Password: "}`:                            kernel.InputRequest{Number: 2, Prompt: "Password: ", Password: true},
		`{"type":"input_reply","number":1,"text":""}`:                                                          kernel.InputReply{Number: 1},
		`{"type":"input_reply","number":1,"text":"Ada"}`:                                                       kernel.InputReply{Number: 1, Text: "Ada"},
		`{"type":"input_reply","number":2}`:                                                                    kernel.InputReply{Number: 2, Secret: true},
		`{"type":"input_reply","ended":true,"number":3}`:                                                       kernel.InputReply{Number: 3, Ended: true},
		`{"type":"call_asks","arguments":"{\"a\":1}","name":"q","number":3}`:                                   kernel.CallAsks{Number: 3, Name: "q", Arguments: `{"a":1}`},
		`{"type":"install_progress","packages":[],"phase":"resolve"}`:                                          kernel.Install{Progress: &installation.Progress{Phase: "resolve"}},
		`{"type":"install","cached":true,"notes":[],"packages":[],"refused":[],"restarted":false,"seconds":0}`: kernel.Install{Provision: installation.Provision{Cached: true}},
		`{"type":"done","dropped_bytes":9,"exit_code":1,"lost":"kernel","message":"It died","outcome":"kernel_died","seconds":1.000000001,"signal":"SIGSEGV"}`: kernel.Done{
			Outcome: kernel.OutcomeDied, ExitCode: 1, Signal: "SIGSEGV", Message: "It died", Wall: time.Second + 1, Lost: kernel.LostKernel, Dropped: 9},
		`{"type":"install_progress","packages":[{"name":"six","version":"1"}],"phase":"download","received_bytes":5,"total_bytes":10}`: kernel.Install{
			Progress: &installation.Progress{Phase: "download", Packages: []installation.Package{{Name: "six", Version: "1"}}, Received: 5, Total: 10}},
		`{"type":"install","cached":false,"failure":{"code":"index_unreachable","hint":"try later","kind":"unavailable","message":"no answer"},"needs_restart":"numpy",` +
			`"notes":["n"],"packages":[{"name":"six","version":"1","asked":true}],"refused":[{"code":"no_wheel","hint":"h","name":"x","reason":"r"}],"restarted":true,"seconds":1.5}`: kernel.Install{
			Failure: failure, Restarted: true, Provision: installation.Provision{Installed: []installation.Package{{Name: "six", Version: "1", Asked: true}},
				Refused: []installation.Refusal{{Name: "x", Code: "no_wheel", Reason: "r", Hint: "h"}}, Notes: []string{"n"}, Seconds: 1.5, Restart: "numpy"}},
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for want, event := range events() {
		text, err := transcript.Event(event)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(text)); diff != "" {
			t.Error(diff)
		}
		back, err := transcript.ParseEvent(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(event, back, ignoreUnexported); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		output := loop.Output{Step: 3, Event: event}
		wrapped, err := transcript.TurnEvent(output)
		if err != nil || string(wrapped) != `{"type":"output","event":`+want+`,"step":3}` {
			t.Errorf("%s: %v", wrapped, err)
		}
		if again, err := transcript.ParseTurnEvent(wrapped); err != nil || !cmp.Equal(loop.Event(output), again, ignoreUnexported) {
			t.Errorf("%s became %+v, %v", wrapped, again, err)
		}
	}
}

func TestTurnEvents(t *testing.T) {
	t.Parallel()
	for want, event := range map[string]loop.Event{
		`{"type":"text","delta":"a <b>"}`:                              loop.Text{Delta: "a <b>"},
		`{"type":"reasoning","delta":"hm"}`:                            loop.Reasoning{Delta: "hm"},
		`{"type":"code","delta":"1+","step":2}`:                        loop.Code{Step: 2, Delta: "1+"},
		`{"type":"start","code":"1+1","step":2}`:                       loop.Start{Step: 2, Code: "1+1"},
		`{"type":"start","code":"1+1","kernel":"a","step":2}`:          loop.Start{Step: 2, Code: "1+1", Kernel: "a"},
		`{"type":"notice","text":"Again."}`:                            loop.Notice{Text: "Again."},
		`{"type":"call","delta":"","id":"c1","index":1,"name":"look"}`: loop.Call{Index: 1, ID: "c1", Name: "look"},
		`{"type":"call","delta":"{\"a\"","index":1}`:                   loop.Call{Index: 1, Delta: `{"a"`},
		`{"type":"answer","reason":"complete","steps":2,"text":"42","usage":{"input_tokens":7,"output_tokens":8}}`: loop.Answer{
			Text: "42", Reason: loop.Complete, Steps: 2, Usage: model.Usage{InputTokens: 7, OutputTokens: 8}},
		`{"type":"answer","calls":[{"id":"c1","name":"look","arguments":"{}"}],"reason":"client_calls","steps":0,"text":"","usage":{"input_tokens":0,"output_tokens":0}}`: loop.Answer{
			Reason: loop.ClientCalls, Calls: []model.ToolCall{{ID: "c1", Name: "look", Arguments: "{}"}}},
	} {
		text, err := transcript.TurnEvent(event)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(text)); diff != "" {
			t.Error(diff)
		}
		if back, err := transcript.ParseTurnEvent(text); err != nil || !cmp.Equal(event, back) {
			t.Errorf("%s became %+v, %v", text, back, err)
		}
	}
	answer := loop.Answer{Messages: []model.Message{{Role: model.RoleUser, Content: []model.Content{model.Text{Text: "secret"}}}}}
	if text, err := transcript.TurnEvent(answer); err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("%s, %v: the conversation is not a part of the answer's event", text, err)
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	p := problem.New(problem.QuotaTokens, "no tokens left").WithHint("wait").WithCause(errors.New("inside"))
	text, err := transcript.Failure(p)
	if want := `{"type":"failure","code":"quota_tokens","hint":"wait","kind":"exhausted","message":"no tokens left"}`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
	back, ok := transcript.ParseFailure(text)
	if diff := cmp.Diff(p.WithCause(nil), back); !ok || diff != "" {
		t.Error(diff)
	}
	if p, ok := transcript.ParseFailure([]byte(`{"type":"failure","kind":"odd"}`)); !ok || p.Kind != problem.Internal {
		t.Errorf("a kind that is not known became %+v", p)
	}
	if p, ok := transcript.ParseFailure([]byte(`{"type":"notice","text":"x"}`)); ok {
		t.Errorf("a notice became %+v", p)
	}
}

func TestBadEventsAreRefused(t *testing.T) {
	t.Parallel()
	codes := map[string]string{
		`{"type":"stream","name":"stdlog","text":"x"}`: "event_invalid", `{"type":"stream","name":"stdout"}`: "event_invalid",
		`{"type":"stream","name":"stdout","data":"*"}`: "event_invalid", `{"type":"file","path":"","size":1}`: "event_invalid",
		`{"type":"file","path":"a","size":-1}`: "event_invalid", `{"type":"done","outcome":"","seconds":1}`: "event_invalid",
		`{"type":"done","outcome":"ok","seconds":1e300}`: "event_invalid", `{"type":"done","outcome":"ok","seconds":-1}`: "event_invalid",
		`{"type":"done","outcome":"ok","lost":"mind"}`: "event_invalid", `{"type":"result","data":[]}`: "event_invalid",
		`{"type":"telepathy"}`: "event_unknown", `{}`: "event_unknown", `{"type":7}`: "event_invalid", `[]`: "event_invalid", ``: "event_invalid",
		`{"type":"install_progress","phase":"resolve","received_bytes":-1}`: "event_invalid",
	}
	for text, code := range codes {
		if e, err := transcript.ParseEvent([]byte(text)); err == nil || problem.Of(err).Code != code {
			t.Errorf("%s became %+v, %v, want %s", text, e, err, code)
		}
	}
	for text, code := range map[string]string{
		`{"type":"code","step":-1,"delta":""}`: "event_invalid", `{"type":"output","step":1,"event":{"type":"odd"}}`: "event_unknown", `{"type":"output","step":1}`: "event_invalid",
		`{"type":"failure"}`: "event_unknown", `{"type":"answer","steps":"many"}`: "event_invalid", `{"type":"done","outcome":"ok"}`: "event_unknown", `nul`: "event_invalid",
	} {
		if e, err := transcript.ParseTurnEvent([]byte(text)); err == nil || problem.Of(err).Code != code {
			t.Errorf("%s became %+v, %v, want %s", text, e, err, code)
		}
	}
	if text, err := transcript.Event(nil); err == nil {
		t.Errorf("nothing became %s", text)
	}
	if text, err := transcript.TurnEvent(loop.Output{Step: 1}); err == nil {
		t.Errorf("an output of nothing became %s", text)
	}
	if text, err := transcript.Event(kernel.Display{Data: kernel.Bundle{"x": math.NaN()}}); err == nil {
		t.Errorf("what JSON cannot say became %s", text)
	}
}

// FuzzParse checks that what is read can be written, and then reads the same.
func FuzzParse(f *testing.F) {
	for text := range events() {
		f.Add([]byte(text))
		f.Add([]byte(`{"type":"output","event":` + text + `,"step":3}`))
	}
	f.Add([]byte(`{"type":"answer","calls":[{"id":"c1","name":"look","arguments":"{}"}],"reason":"client_calls","steps":0,"text":"","usage":{"input_tokens":0}}`))
	f.Add([]byte(`{"type":"call","delta":"","id":"c1","index":1,"name":"look"}`))
	f.Add([]byte(`{"type":"failure","kind":"internal","code":"x","message":"y","hint":"z"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, ok := transcript.ParseFailure(text); ok {
			if _, err := transcript.Failure(p); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
		if e, err := transcript.ParseEvent(text); err == nil {
			stable(t, e, transcript.Event, transcript.ParseEvent)
		}
		if e, err := transcript.ParseTurnEvent(text); err == nil {
			stable(t, e, transcript.TurnEvent, transcript.ParseTurnEvent)
		}
	})
}

func stable[E any](t *testing.T, e E, write func(E) ([]byte, error), parse func([]byte) (E, error)) {
	t.Helper()
	text, err := write(e)
	if err != nil {
		t.Fatalf("%+v was read and cannot be written: %v", e, err)
	}
	back, err := parse(text)
	if err != nil {
		t.Fatalf("%s cannot be read again: %v", text, err)
	}
	again, err := write(back)
	if err != nil || string(again) != string(text) {
		t.Errorf("%s became %s, %v", text, again, err)
	}
}

func TestTextOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event kernel.Event
		want  string
	}{
		{kernel.Stream{Name: "stdout", Data: []byte("a\n")}, "a\n"},
		{kernel.Error{Name: "KeyError", Value: "'x'"}, "\nKeyError: 'x'\n"},
		{kernel.Result{Data: kernel.Bundle{"text/plain": "42"}}, "\n42\n"},
		{kernel.Display{Data: kernel.Bundle{"image/png": "aGk="}}, ""},
		{kernel.Done{Outcome: kernel.OutcomeOK}, ""},
	} {
		alone, err := transcript.Event(c.event)
		if err != nil {
			t.Fatal(err)
		}
		step, err := transcript.TurnEvent(loop.Output{Step: 1, Event: c.event})
		if err != nil {
			t.Fatal(err)
		}
		if got, inTurn := transcript.TextOf(alone), transcript.TextOf(step); got != c.want || inTurn != c.want {
			t.Errorf("%T reads %q, in a turn %q; want %q", c.event, got, inTurn, c.want)
		}
	}
	if got := transcript.TextOf([]byte(`{"type":"notice","text":"x"}`)) + transcript.TextOf([]byte("\xff")); got != "" {
		t.Errorf("what code did not emit reads %q", got)
	}
}
