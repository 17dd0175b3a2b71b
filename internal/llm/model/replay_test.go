package model_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/llm/model/modeltest"
)

const recording = `
{"parts": [{"reasoning": "A file."}, {"text": "I'll read\nthe file."},
           {"code": ["import pandas as pd", "pd.read_csv('销售.csv')"]}],
 "outcome": "error"}
{"parts": [{"code": "1 < 2"}, {"call": {"name": "look", "arguments": {"at": 3}}}], "outcome": "ok"}
{"parts": [{"text": "华东地区增长最快，一共增长了百分之十二。"}]}
`

// after returns the request that follows a turn whose calls ended as given.
func after(h heard, failed ...bool) model.Request {
	req := ask("go")
	var calls, results []model.Content
	for i, c := range h.finishes[0].Calls {
		calls = append(calls, c)
		results = append(results, model.ToolResult{CallID: c.ID, Text: "out", IsError: failed[min(i, len(failed)-1)]})
	}
	req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Content: calls}, model.Message{Role: model.RoleTool, Content: results})
	return req
}

func replay(t *testing.T, text string) *model.Replay {
	t.Helper()
	r, err := model.NewReplay("replay:test", strings.NewReader(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReplay(t *testing.T) {
	t.Parallel()
	r := replay(t, recording)
	first := listen(r.Stream(t.Context(), ask("go")))
	if first.text != "I'll read\nthe file." || first.reasoning != "A file." || first.problem != nil {
		t.Fatalf("first turn %+v", first)
	}
	want := `{"code":"import pandas as pd\npd.read_csv('销售.csv')"}`
	if calls := first.finishes[0].Calls; len(calls) != 1 || calls[0].Arguments != want || first.arguments[0] != want {
		t.Fatalf("calls %+v, deltas %q", calls, first.arguments)
	}
	if len(first.parts) < 10 {
		t.Errorf("only %d parts: the replay does not look alive", len(first.parts))
	}
	second := listen(r.Stream(t.Context(), after(first, true)))
	if second.problem != nil || len(second.finishes[0].Calls) != 2 || second.finishes[0].Calls[1].Name != "look" {
		t.Fatalf("second turn %+v", second)
	}
	if second.finishes[0].Calls[0].ID == first.finishes[0].Calls[0].ID {
		t.Error("an id is used twice")
	}
	if problem.Of(r.Finished()).Code != "replay_mismatch" {
		t.Errorf("finished with a turn left: %v", r.Finished())
	}
	third := listen(r.Stream(t.Context(), after(second, true, false)))
	if third.problem != nil || third.text != "华东地区增长最快，一共增长了百分之十二。" || third.finishes[0].Reason != model.FinishStop {
		t.Fatalf("third turn %+v", third)
	}
	if err := r.Finished(); err != nil {
		t.Error(err)
	}
	if more := listen(r.Stream(t.Context(), ask("more"))); more.code() != "replay_mismatch" || !strings.Contains(more.problem.Message, "3 turns") {
		t.Errorf("a fourth turn: %+v", more)
	}
}

func TestReplayMismatch(t *testing.T) {
	t.Parallel()
	const failing = `{"parts":[{"code":"1/0"}],"outcome":"error"} {"parts":[{"text":"sorry"}]}`
	const succeeding = `{"parts":[{"code":"1"}],"outcome":"ok"} {"parts":[{"text":"1"}]}`
	const silent = `{"parts":[{"text":"a"}]} {"parts":[{"text":"b"}]}`
	withResult := ask("go")
	withResult.Messages = append(withResult.Messages, model.Message{Role: model.RoleTool, Content: []model.Content{model.ToolResult{}}})
	cases := map[string]struct {
		recording string
		next      func(heard) model.Request
		says      string // "" for a match
	}{
		"error as recorded":      {failing, func(h heard) model.Request { return after(h, true) }, ""},
		"success as recorded":    {succeeding, func(h heard) model.Request { return after(h, false) }, ""},
		"no call as recorded":    {silent, func(heard) model.Request { return ask("and?") }, ""},
		"success, not an error":  {failing, func(h heard) model.Request { return after(h, false) }, "with success, and with an error when"},
		"error, not a success":   {succeeding, func(h heard) model.Request { return after(h, true) }, "with an error, and with success when"},
		"call without a result":  {succeeding, func(heard) model.Request { return ask("go") }, "no result"},
		"result without a call":  {silent, func(heard) model.Request { return withResult }, "no tool"},
		"remark after the error": {failing, func(h heard) model.Request { return remark(after(h, true)) }, ""},
		"remark, wrong outcome":  {succeeding, func(h heard) model.Request { return remark(after(h, true)) }, "with an error"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := replay(t, c.recording)
			h := listen(r.Stream(t.Context(), c.next(listen(r.Stream(t.Context(), ask("go"))))))
			if c.says == "" && (h.problem != nil || len(h.finishes) != 1) {
				t.Errorf("problem %v, finishes %v", h.problem, h.finishes)
			}
			if c.says != "" && (h.code() != "replay_mismatch" || !strings.Contains(h.problem.Message, c.says) || len(h.parts) != 0) {
				t.Errorf("problem %v, parts %v, want %q", h.problem, h.parts, c.says)
			}
		})
	}
}

// remark appends a user message, as an interpreter may.
func remark(req model.Request) model.Request {
	req.Messages = append(req.Messages, model.Message{Role: model.RoleUser, Content: []model.Content{model.Text{Text: "One step is left."}}})
	return req
}

func TestReplayInvalid(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"":                                    "no turns",
		"{":                                   "turn 1",
		`{"parts":[{"code":"1"}]}`:            `needs an "outcome"`,
		`{"parts":[{"text":"1"}]} {"part":1}`: "turn 2",
		`{"parts":[{"text":"1"}],"outcome":"ok"}`:      "no \"outcome\"",
		`{"parts":[{"text":"1","code":"2"}]}`:          "exactly one",
		`{"parts":[{"code":"1"}],"outcome":"maybe"}`:   "maybe",
		`{"parts":[{"text":3}]}`:                       "list of strings",
		`{"parts":[{"text":"1"}],"finish":"whenever"}`: "whenever",
	}
	for text, want := range cases {
		_, err := model.NewReplay("replay:x", strings.NewReader(text), 0)
		if p := problem.Of(err); p == nil || p.Code != "replay_invalid" || !strings.Contains(p.Message, want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := model.OpenReplay(filepath.Join(t.TempDir(), "none"), 0); problem.Of(err).Code != "replay_not_found" {
		t.Errorf("no file: %v", err)
	}
}

func TestReplayCanceled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "r.json")
	if err := os.WriteFile(path, []byte(recording), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := model.OpenReplay(path, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if h := listen(r.Stream(ctx, ask("go"))); h.code() != "model_deadline" || r.Name() != "replay:"+path {
		t.Errorf("problem %v", h.problem)
	}
}

func TestRecordAndReplay(t *testing.T) {
	t.Parallel()
	server := modeltest.NewServer(
		modeltest.Turn{Reasoning: []string{"h", "m"}, Text: []string{"Let ", "me."}, Calls: []modeltest.Call{{Code: "a = '<b>'\nprint(a)"}}},
		modeltest.Turn{Calls: []modeltest.Call{{Name: "look", Arguments: `{"at":3}`}}},
		modeltest.Say("完成"),
	)
	t.Cleanup(server.Close)
	var out strings.Builder
	live := model.Record(wires["openai"](server, model.Limits{}), &out)
	talk := func(m model.Model) []heard {
		first := listen(m.Stream(t.Context(), ask("go")))
		second := listen(m.Stream(t.Context(), after(first, true)))
		return []heard{first, second, listen(m.Stream(t.Context(), after(second, false)))}
	}
	said := talk(live)
	again := talk(replay(t, out.String()))
	for i := range said {
		if again[i].problem != nil {
			t.Fatalf("turn %d: %v in %s", i, again[i].problem, out.String())
		}
		if diff := cmp.Diff([]string{said[i].text, said[i].reasoning, strings.Join(said[i].arguments, "")},
			[]string{again[i].text, again[i].reasoning, strings.Join(again[i].arguments, "")}); diff != "" {
			t.Errorf("turn %d: %s", i, diff)
		}
	}
	if !strings.Contains(out.String(), `["a = '<b>'","print(a)"]`) {
		t.Errorf("not written for people: %s", out.String())
	}
	if h := talk2(t, replay(t, out.String())); h.code() != "replay_mismatch" {
		t.Errorf("another outcome: %v", h.problem)
	}
}

// talk2 lets the first call succeed, which failed when it was recorded.
func talk2(t *testing.T, m model.Model) heard {
	return listen(m.Stream(t.Context(), after(listen(m.Stream(t.Context(), ask("go"))), false)))
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestRecordThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	h := listen(model.Record(replay(t, `{"parts":[{"text":"a"}]}`), fullDisk{}).Stream(t.Context(), ask("go")))
	if h.code() != "record_failed" || len(h.finishes) != 0 {
		t.Errorf("problem %v, finishes %v", h.problem, h.finishes)
	}
}
