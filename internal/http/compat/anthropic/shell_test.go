package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/machine/workspace"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// machine is a session's: a command "write NAME" writes a file, "hang" runs until its time is over, "fail" ends with 3; all print their line.
type machine struct {
	files  map[string]string
	lines  []string
	killed []string
}

func (f *fakeHub) CreateSession(context.Context, auth.Principal, hub.NewSession) (hub.Session, error) {
	f.machine.files = map[string]string{}
	return hub.Session{ID: f.session}, nil
}

func (f *fakeHub) PutFile(_ context.Context, _ auth.Principal, _, file, name string) (workspace.Entry, error) {
	f.machine.files[f.files[file].Name] = string(f.data[file])
	return workspace.Entry{Path: name}, nil
}

func (f *fakeHub) CheckProgram(context.Context, auth.Principal, string) error { return nil }

func (f *fakeHub) StartProcess(_ context.Context, _ auth.Principal, _ string, start process.Start) (process.Info, error) {
	f.machine.lines = append(f.machine.lines, start.Line)
	if name, ok := strings.CutPrefix(start.Line, "write "); ok {
		f.machine.files[name] = "written"
	}
	return process.Info{ID: start.Line}, nil
}

func (f *fakeHub) FollowProcess(_ context.Context, _ auth.Principal, _, id string, _ int64) (iter.Seq2[process.Event, error], error) {
	return func(yield func(process.Event, error) bool) {
		exit := process.Exit{}
		switch id {
		case "fail":
			exit.Code = 3
		case "hang":
			exit = process.Exit{Signal: "SIGKILL", Reason: process.ForTime}
		case "flood":
			for range 100 {
				if !yield(process.Event{Kind: process.Stderr, Data: []byte(strings.Repeat("x", 10_000))}, nil) {
					return
				}
			}
		case "lost":
			yield(process.Event{}, problem.New(problem.Fault, "the sandbox died"))
			return
		}
		_ = yield(process.Event{Kind: process.Stdout, Data: []byte(id + "\n")}, nil) && yield(process.Event{Kind: process.Ended, Exit: &exit}, nil)
	}, nil
}

func (f *fakeHub) SignalProcess(_ context.Context, _ auth.Principal, _, id, _ string, _ bool) error {
	f.machine.killed = append(f.machine.killed, id)
	return nil
}

func (f *fakeHub) UseFiles(ctx context.Context, _ auth.Principal, _ string, _ hub.FilesUse, use func(context.Context, guestlink.Files) error) error {
	return use(ctx, disk{machine: &f.machine})
}

type tree struct {
	hub.Tree
	*machine
}

func (t tree) List(context.Context, string) (all []workspace.Entry, more bool, err error) {
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		all = append(all, workspace.Entry{Path: name, Size: int64(len(t.files[name]))})
	}
	return all, false, nil
}

func (t tree) Stat(_ context.Context, name string) (workspace.Entry, error) {
	return workspace.Entry{Path: name, Size: int64(len(t.files[name]))}, nil
}

func (t tree) Read(_ context.Context, name string, _, _ int64, w io.Writer) (int64, error) {
	n, err := io.WriteString(w, t.files[name])
	return int64(n), err
}

type disk struct {
	guestlink.Files
	*machine
}

func (d disk) StatPath(_ context.Context, name string, _ bool) (filesystem.Entry, error) {
	if _, ok := d.files[name]; !ok {
		return filesystem.Entry{}, absent(problem.FileNotFound)
	}
	return filesystem.Entry{Path: name, Kind: filesystem.File}, nil
}

type reading struct{ *strings.Reader }

func (reading) Close() error   { return nil }
func (r reading) Whole() int64 { return r.Size() }
func (r reading) Len() int64   { return int64(r.Reader.Len()) }

func (d disk) OpenPath(_ context.Context, name string, _, _ int64) (guestlink.Reading, error) {
	return reading{strings.NewReader(d.files[name])}, nil
}

func (d disk) WritePath(_ context.Context, name string, r io.Reader, _ filesystem.Set, _ bool) (filesystem.Entry, error) {
	data, err := io.ReadAll(r)
	d.files[name] = string(data)
	return filesystem.Entry{}, err
}

// calls is an answer of the model's that calls tools: name and arguments by turns, in pieces.
func calls(texts ...string) (parts []model.Part) {
	end := model.Finish{Reason: model.FinishCalls, Usage: model.Usage{InputTokens: 10, OutputTokens: 5}}
	for n := 0; n < len(texts); n += 2 {
		call := model.ToolCall{ID: fmt.Sprintf("call_%d", n/2), Name: texts[n], Arguments: texts[n+1]}
		half := len(call.Arguments) / 2
		parts = append(parts, model.CallDelta{Index: n / 2, ID: call.ID, Name: call.Name, Arguments: call.Arguments[:half]}, model.CallDelta{Index: n / 2, Arguments: call.Arguments[half:]})
		end.Calls = append(end.Calls, call)
	}
	return append(parts, end)
}

func says(text string) []model.Part {
	return []model.Part{model.TextDelta{Text: text}, model.Finish{Reason: model.FinishStop, Usage: model.Usage{InputTokens: 10, OutputTokens: 5}}}
}

const (
	withShell = `"model": "claude-x", "max_tokens": 9, "tools": [{"type": "code_execution_20250825", "name": "code_execution"}, {"name": "weather", "input_schema": {"type": "object"}}]`
	bash      = "bash_code_execution"
	editor    = "text_editor_code_execution"
)

type shellMessage struct {
	Content []struct {
		Type, ID, Name, Text string
		Input                map[string]any
		ToolUseID            string `json:"tool_use_id"`
		Content              struct {
			Type, Stdout, Stderr string
			ErrorCode            string `json:"error_code"`
			ErrorMessage         string `json:"error_message"`
			ReturnCode           int    `json:"return_code"`
			FileType             string `json:"file_type"`
			Content              any
			Lines                []string
			NumLines             int   `json:"num_lines"`
			StartLine            int   `json:"start_line"`
			TotalLines           int   `json:"total_lines"`
			IsFileUpdate         *bool `json:"is_file_update"`
			OldStart             int   `json:"old_start"`
		}
	}
	StopReason string `json:"stop_reason"`
	Container  *struct{ ID string }
	Usage      struct {
		Output int64 `json:"output_tokens"`
	}
}

// shellAsk has the model go through a script, and returns the message.
func shellAsk(t *testing.T, f *fakeHub, messages string) (m shellMessage) {
	t.Helper()
	status, body := ask(t, f, "POST", "/v1/messages", `{`+withShell+`, "messages": `+messages+`}`)
	if err := json.Unmarshal([]byte(body), &m); err != nil || status != 200 {
		t.Fatalf("%d %v %s", status, err, body)
	}
	return m
}

const question = `[{"role": "user", "content": "Q"}]`

func TestShell(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.script = [][]model.Part{calls(bash, `{"command": "write a.csv"}`), calls(bash, `{"command": "fail"}`), says("Done.")}
	m := shellAsk(t, f, question)
	if len(m.Content) != 5 || m.StopReason != "end_turn" || m.Container == nil || m.Usage.Output != 15 {
		t.Fatalf("%+v", m)
	}
	use, result, failed := m.Content[0], m.Content[1], m.Content[3]
	if use.Type != "server_tool_use" || use.Name != bash || use.Input["command"] != "write a.csv" || result.ToolUseID != use.ID || result.Type != "bash_code_execution_tool_result" || result.Content.Stdout != "write a.csv\n" {
		t.Errorf("%+v %+v", use, result)
	}
	if files, _ := result.Content.Content.([]any); len(files) != 1 || !strings.Contains(fmt.Sprint(files), "file_") || len(f.files) != 1 {
		t.Errorf("files %v, kept %v", result.Content.Content, f.files)
	}
	if failed.Content.ReturnCode != 3 || m.Content[4].Text != "Done." {
		t.Errorf("%+v", m.Content)
	}
	last := f.passed[2].Messages
	if len(last) != 5 || !strings.Contains(fmt.Sprint(last[2]), "files written: a.csv") || !strings.Contains(fmt.Sprint(last[4]), "exit status 3") {
		t.Errorf("the model was told %+v", last)
	}
}

func TestShellErrors(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{`{"command": "hang"}`: "execution_time_exceeded", `{"command": "lost"}`: "unavailable", `{}`: "invalid_tool_input", `no`: "invalid_tool_input"} {
		f := newFake()
		f.script = [][]model.Part{calls(bash, arguments), says("So be it.")}
		if m := shellAsk(t, f, question); m.Content[1].Content.Type != "bash_code_execution_tool_result_error" || m.Content[1].Content.ErrorCode != want {
			t.Errorf("%s: %+v", arguments, m.Content)
		}
		if arguments == `{"command": "lost"}` && len(f.machine.killed) != 1 {
			t.Error("a command that cannot be followed goes on")
		}
	}
	f := newFake()
	f.script = [][]model.Part{calls(bash, `{"command": "flood"}`), says("Much.")}
	if m := shellAsk(t, f, question); len(m.Content[1].Content.Stderr) > 130<<10 || !strings.Contains(m.Content[1].Content.Stderr, "more bytes are not shown") {
		t.Errorf("%d bytes", len(m.Content[1].Content.Stderr))
	}
	for _, c := range f.passed[1].Messages[2].Content {
		if len(c.(model.ToolResult).Text) > 21<<10 {
			t.Errorf("the model is told %d bytes", len(c.(model.ToolResult).Text))
		}
	}
}

func TestEditor(t *testing.T) {
	t.Parallel()
	f := newFake()
	step := func(arguments string) []model.Part { return calls(editor, arguments) }
	f.script = [][]model.Part{
		step(`{"command": "create", "path": "a.txt", "file_text": "one\ntwo\nthree\n"}`), step(`{"command": "create", "path": "a.txt", "file_text": "one\ntwo\nthree\nfour\n"}`),
		step(`{"command": "view", "path": "a.txt", "view_range": [2, 3]}`), step(`{"command": "str_replace", "path": "a.txt", "old_str": "two", "new_str": "zwei\ndrei"}`),
		step(`{"command": "view", "path": "none.txt"}`), step(`{"command": "str_replace", "path": "a.txt", "old_str": "e", "new_str": ""}`), step(`{"command": "undo", "path": "a.txt"}`),
		step(`{"command": "view", "path": "a.txt", "view_range": [9, 10]}`), says("Done."),
	}
	m := shellAsk(t, f, question)
	at := func(n int) any { return m.Content[2*n+1].Content }
	first, second, view, replaced := m.Content[1].Content, m.Content[3].Content, m.Content[5].Content, m.Content[7].Content
	if *first.IsFileUpdate || !*second.IsFileUpdate || first.Type != "text_editor_code_execution_create_result" || m.Content[1].Type != "text_editor_code_execution_tool_result" {
		t.Errorf("create: %+v %+v", first, second)
	}
	if view.Content != "two\nthree" || view.NumLines != 2 || view.StartLine != 2 || view.TotalLines != 4 || view.FileType != "text" {
		t.Errorf("view: %+v", view)
	}
	if !slices.Equal(replaced.Lines, []string{"-two", "+zwei", "+drei"}) || replaced.OldStart != 2 || f.machine.files["a.txt"] != "one\nzwei\ndrei\nthree\nfour\n" {
		t.Errorf("replace: %+v %q", replaced, f.machine.files["a.txt"])
	}
	for n, want := range map[int]string{4: "file_not_found", 5: "invalid_tool_input", 6: "invalid_tool_input", 7: "invalid_tool_input"} {
		if c := m.Content[2*n+1].Content; c.ErrorCode != want || c.ErrorMessage == "" || c.Type != "text_editor_code_execution_tool_result_error" {
			t.Errorf("%d: %+v", n, at(n))
		}
	}
}

// TestShellGoesOn: what a message tells of commands is what the model hears in the next, and calls of the client's tools end a message.
func TestShellGoesOn(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.script = [][]model.Part{calls("weather", `{"city": "Rome"}`, bash, `{"command": "ls"}`)}
	m := shellAsk(t, f, question)
	if len(m.Content) != 3 || m.StopReason != "tool_use" || m.Content[0].Type != "tool_use" || m.Content[0].Input["city"] != "Rome" || m.Content[2].Content.Stdout != "ls\n" {
		t.Fatalf("%+v", m)
	}
	f = newFake()
	f.script = [][]model.Part{says("It rains.")}
	shellAsk(t, f, `[{"role": "user", "content": "Q"}, {"role": "assistant", "content": [
		{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
		{"type": "server_tool_use", "id": "srvtoolu_1", "name": "bash_code_execution", "input": {"command": "ls"}},
		{"type": "bash_code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {"type": "bash_code_execution_result", "stdout": "a.csv\n", "stderr": "", "return_code": 0, "content": []}},
		{"type": "server_tool_use", "id": "srvtoolu_2", "name": "text_editor_code_execution", "input": {"command": "view", "path": "a"}},
		{"type": "text_editor_code_execution_tool_result", "tool_use_id": "srvtoolu_2", "content": {"type": "text_editor_code_execution_view_result", "file_type": "text", "content": "seen"}}]},
		{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"}]}]`)
	told := fmt.Sprintf("%+v", f.passed[0].Messages)
	for _, want := range []string{"a.csv", "seen", "rain", `{"command": "ls"}`} {
		if !strings.Contains(told, want) {
			t.Errorf("no %s in %s", want, told)
		}
	}
}

func TestShellPauses(t *testing.T) {
	t.Parallel()
	f := newFake()
	for range 30 {
		f.script = append(f.script, calls(bash, `{"command": "ls"}`))
	}
	if m := shellAsk(t, f, question); m.StopReason != "pause_turn" || len(f.machine.lines) != 20 {
		t.Errorf("%s behind %d commands", m.StopReason, len(f.machine.lines))
	}
}

// TestShellStream: the input of calls comes as the model writes it, and blocks are complete before the next begins.
func TestShellStream(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.script = [][]model.Part{calls(bash, `{"command": "ls"}`, "weather", `{"city": "Rome"}`)}
	status, body := ask(t, f, "POST", "/v1/messages", `{`+withShell+`, "stream": true, "messages": `+question+`}`)
	var kinds []string
	inputs := map[int]string{}
	for _, l := range strings.Split(body, "\n") {
		text, ok := strings.CutPrefix(l, "data: ")
		var e struct {
			Type  string
			Index int
			Block struct{ Type string } `json:"content_block"`
			Delta struct {
				Partial string `json:"partial_json"`
			}
		}
		if !ok || json.Unmarshal([]byte(text), &e) != nil {
			continue
		}
		kinds = append(kinds, strings.TrimSuffix(e.Type+" "+e.Block.Type, " "))
		inputs[e.Index] += e.Delta.Partial
	}
	want := []string{"message_start", "ping", "content_block_start server_tool_use", "content_block_delta", "content_block_delta", "content_block_stop",
		"content_block_start tool_use", "content_block_delta", "content_block_delta", "content_block_stop",
		"content_block_start bash_code_execution_tool_result", "content_block_stop", "message_delta", "message_stop"}
	if status != 200 || !slices.Equal(kinds, want) || inputs[0] != `{"command": "ls"}` || inputs[1] != `{"city": "Rome"}` {
		t.Errorf("%d %q %v", status, kinds, inputs)
	}
}
