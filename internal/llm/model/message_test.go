package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
)

func TestMessagesKeepTheirForm(t *testing.T) {
	t.Parallel()
	messages := []model.Message{
		{Role: model.RoleUser, Content: []model.Content{model.Text{Text: "看 <this>"}, model.Image{MIME: "image/png", Data: []byte("\x89PNG")}}},
		{Role: model.RoleAssistant, Content: []model.Content{model.Text{}, model.ToolCall{ID: "c1", Name: "python", Arguments: `{"code":`}, model.ToolCall{ID: "c2", Name: "f"}}},
		{Role: model.RoleTool, Content: []model.Content{
			model.ToolResult{CallID: "c1", Text: "no JSON", IsError: true},
			model.ToolResult{CallID: "c2", Images: []model.Image{{MIME: "image/png", Data: []byte("x")}}}}},
		{Role: model.RoleUser, Content: []model.Content{}},
	}
	text, err := json.Marshal(messages)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"role":"user","content":[{"type":"text","text":"看 \u003cthis\u003e"},{"type":"image","mime":"image/png","data":"iVBORw=="}]},` +
		`{"role":"assistant","content":[{"type":"text","text":""},{"type":"call","id":"c1","name":"python","arguments":"{\"code\":"},` +
		`{"type":"call","id":"c2","name":"f","arguments":""}]},` +
		`{"role":"tool","content":[{"type":"result","text":"no JSON","call_id":"c1","is_error":true},` +
		`{"type":"result","text":"","call_id":"c2","images":[{"mime":"image/png","data":"eA=="}]}]},{"role":"user","content":[]}]`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
	var back []model.Message
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(messages, back); diff != "" {
		t.Error(diff)
	}
	if _, err := json.Marshal(model.Message{Role: model.RoleUser, Content: []model.Content{nil}}); err == nil {
		t.Error("a message with nothing for a piece was written")
	}
}

func TestBadMessagesAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{}`, `{"role":"system","content":[]}`, `{"role":"user","content":"words"}`, `{"role":"user","content":[{"type":"video"}]}`,
		`{"role":"user","content":[{"type":"text"}]}`, `{"role":"user","content":[{"type":"image","mime":"image/png"}]}`,
		`{"role":"user","content":[{"type":"image","mime":"image/png","data":"***"}]}`, `{"role":"assistant","content":[{"type":"call","name":"f","arguments":"{}"}]}`,
		`{"role":"assistant","content":[{"type":"call","id":"c","name":"f"}]}`, `{"role":"tool","content":[{"type":"result","text":""}]}`,
		`{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":""},`, 10_000) + `{"type":"text","text":""}]}`,
	} {
		was := model.Message{Role: model.RoleUser}
		got := was
		err := json.Unmarshal([]byte(text), &got)
		if err == nil || problem.Of(err).Code != "message_invalid" || problem.Of(err).Kind != problem.Invalid {
			t.Errorf("%.80s: %v", text, err)
		}
		if diff := cmp.Diff(was, got); diff != "" {
			t.Errorf("%.80s was read in part: %s", text, diff)
		}
	}
	var m model.Message
	if err := json.Unmarshal([]byte(`{"role":"user","since":"later","content":[{"type":"text","text":"a","mood":"good"}]}`), &m); err != nil {
		t.Errorf("a field of a later version: %v", err)
	}
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","mime":"image/png","data":"eA=="}]}`))
	f.Add([]byte(`{"role":"tool","content":[{"type":"result","text":"","call_id":"c2","images":[{"mime":"image/png","data":"eA=="}]}]}`))
	f.Add([]byte(`{"role":"assistant","content":[{"type":"call","id":"c2","name":"f","arguments":""}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var m, back model.Message
		if json.Unmarshal(text, &m) != nil {
			return
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", text, err)
		}
		if err := json.Unmarshal(again, &back); err != nil {
			t.Fatalf("%q became %q, which cannot be read: %v", text, again, err)
		}
		if diff := cmp.Diff(m, back); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	})
}
