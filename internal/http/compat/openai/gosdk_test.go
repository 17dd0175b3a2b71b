package openai_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

func client(t *testing.T, f *fakeHub, more ...option.RequestOption) *sdk.Client {
	s := serve(t, f)
	c := sdk.NewClient(append([]option.RequestOption{option.WithBaseURL(s.URL + "/v1"), option.WithAPIKey("owner"), option.WithMaxRetries(0)}, more...)...)
	return &c
}

func autoPython() []responses.ToolUnionParam {
	return []responses.ToolUnionParam{{OfCodeInterpreter: &responses.ToolCodeInterpreterParam{Container: responses.ToolCodeInterpreterContainerUnionParam{
		OfCodeInterpreterToolAuto: &responses.ToolCodeInterpreterContainerCodeInterpreterContainerAutoParam{}}}}}
}

func newParams(prompt string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt(prompt)}, Tools: autoPython(),
		Include: []responses.ResponseIncludable{"code_interpreter_call.outputs"}}
}

func TestGoCreateAndStream(t *testing.T) {
	t.Parallel()
	c := client(t, newFake(worked()...))
	res, err := c.Responses.New(t.Context(), newParams("Q"))
	if err != nil {
		t.Fatal(err)
	}
	if got := res.OutputText(); !strings.HasSuffix(got, "答案 is 42: [table](sandbox:/mnt/data/out/表.csv).") || res.Usage.TotalTokens != 18 || res.Status != "completed" {
		t.Errorf("%q %+v %s", got, res.Usage, res.Status)
	}
	call := res.Output[2].AsCodeInterpreterCall()
	if call.Code != "print(6*7)" || call.Outputs[0].AsLogs().Logs != "42\n" || !strings.HasPrefix(call.Outputs[1].AsImage().URL, "data:image/png;base64,") {
		t.Errorf("%+v", call)
	}
	cited := res.Output[3].AsMessage().Content[0].AsOutputText().Annotations
	if len(cited) != 2 || cited[0].AsContainerFileCitation().Filename != "表.csv" || cited[0].ContainerID != call.ContainerID {
		t.Errorf("%+v", cited)
	}
	stream := c.Responses.NewStreaming(t.Context(), newParams("Q"))
	code, last := "", responses.ResponseStreamEventUnion{}
	for stream.Next() {
		last = stream.Current()
		if d, ok := last.AsAny().(responses.ResponseCodeInterpreterCallCodeDeltaEvent); ok {
			code += d.Delta
		}
	}
	if stream.Err() != nil || code != "print(6*7)" || last.Type != "response.completed" || last.Response.OutputText() != res.OutputText() {
		t.Errorf("%v %q %s", stream.Err(), code, last.Type)
	}
}

// TestGoKeepsGoing is the life of responses: retrieve, go on from one, list what was sent, delete.
func TestGoKeepsGoing(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	c := client(t, f)
	first, err := c.Responses.New(t.Context(), newParams("Q"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Responses.Get(t.Context(), first.ID, responses.ResponseGetParams{})
	if err != nil || again.OutputText() != first.OutputText() {
		t.Fatalf("%v %+v", err, again)
	}
	next := newParams("And now?")
	next.PreviousResponseID = param.NewOpt(first.ID)
	next.Instructions = param.NewOpt("Be short.")
	second, err := c.Responses.New(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	asked := f.asked[1]
	if "resp_"+asked.Parent[4:] != first.ID || len(asked.History) != 0 || len(asked.Input) != 1 || asked.Instructions != "Be short." {
		t.Errorf("%+v", asked)
	}
	if a, b := first.Output[2].ContainerID, second.Output[2].ContainerID; a != b || a == "" {
		t.Errorf("the chain has containers %q and %q", a, b)
	}
	items, err := c.Responses.InputItems.List(t.Context(), second.ID, responses.InputItemListParams{})
	if err != nil || len(items.Data) != 1 || items.Data[0].Content.OfInputItemContentList[0].Text != "And now?" {
		t.Errorf("%v %+v", err, items)
	}
	if err := c.Responses.Delete(t.Context(), first.ID); err != nil {
		t.Error(err)
	}
	_, err = c.Responses.Get(t.Context(), first.ID, responses.ResponseGetParams{})
	if e, ok := errors.AsType[*sdk.Error](err); !ok || e.StatusCode != 404 || !strings.Contains(e.Message, "not found") {
		t.Errorf("%v", err)
	}
	bad := newParams("Q")
	bad.PreviousResponseID = param.NewOpt(first.ID)
	_, err = c.Responses.New(t.Context(), bad)
	if e, ok := errors.AsType[*sdk.Error](err); !ok || e.StatusCode != 400 || e.Code != "previous_response_not_found" || e.Param != "previous_response_id" {
		t.Errorf("%v", err)
	}
}

func TestGoBackground(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	f.gate = make(chan struct{})
	c := client(t, f)
	p := newParams("Q")
	p.Background = param.NewOpt(true)
	res, err := c.Responses.New(t.Context(), p)
	if err != nil || res.Status != "in_progress" || !res.Background {
		t.Fatalf("%v %+v", err, res)
	}
	if res, err = c.Responses.Cancel(t.Context(), res.ID); err != nil || res.Status != "cancelled" {
		t.Fatalf("%v %s", err, res.Status)
	}
	if res, err = c.Responses.Cancel(t.Context(), res.ID); err != nil || res.Status != "cancelled" {
		t.Errorf("cancelled again: %v %s", err, res.Status)
	}
	close(f.gate)
	sync, err := c.Responses.New(t.Context(), newParams("Q"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.Responses.Cancel(t.Context(), sync.ID); err == nil {
		t.Error("a response that is not in the background was cancelled")
	}
	if res, err = c.Responses.New(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	stream := c.Responses.GetStreaming(t.Context(), res.ID, responses.ResponseGetParams{})
	last := ""
	for stream.Next() {
		last = stream.Current().Type
	}
	if stream.Err() != nil || last != "response.completed" {
		t.Errorf("%v %s", stream.Err(), last)
	}
}

func TestGoConversations(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	c := client(t, f)
	talk, err := c.Conversations.New(t.Context(), conversations.ConversationNewParams{Metadata: map[string]string{"a": "b"},
		Items: []responses.ResponseInputItemUnionParam{{OfMessage: &responses.EasyInputMessageParam{Role: "user", Content: responses.EasyInputMessageContentUnionParam{OfString: param.NewOpt("My name is Ada.")}}}}})
	if err != nil || !strings.HasPrefix(talk.ID, "conv_") {
		t.Fatalf("%v %+v", err, talk)
	}
	p := newParams("What is my name?")
	p.Conversation = responses.ResponseNewParamsConversationUnion{OfString: param.NewOpt(talk.ID)}
	res, err := c.Responses.New(t.Context(), p)
	if err != nil || res.Conversation.ID != talk.ID {
		t.Fatalf("%v %+v", err, res)
	}
	if in := f.asked[0].Input; len(in) != 2 || in[0].Content[0] != (model.Text{Text: "My name is Ada."}) {
		t.Errorf("%+v", in)
	}
	if _, err = c.Responses.New(t.Context(), p); err != nil || len(f.asked[1].Input) != 1 {
		t.Errorf("%v: what was added is said again: %+v", err, f.asked[1].Input)
	}
	items := c.Conversations.Items.ListAutoPaging(t.Context(), talk.ID, conversations.ItemListParams{Order: "asc", Limit: param.NewOpt(int64(3))})
	var kinds []string
	for items.Next() {
		kinds = append(kinds, items.Current().Type)
	}
	if got := strings.Join(kinds, " "); items.Err() != nil || got != "message message reasoning message code_interpreter_call message message reasoning message code_interpreter_call message" {
		t.Errorf("%v %s", items.Err(), got)
	}
	if talk, err = c.Conversations.Update(t.Context(), talk.ID, conversations.ConversationUpdateParams{Metadata: map[string]string{"c": "d"}}); err != nil || talk.Metadata.(map[string]any)["c"] != "d" {
		t.Errorf("%v %+v", err, talk)
	}
	if gone, err := c.Conversations.Delete(t.Context(), talk.ID); err != nil || !gone.Deleted {
		t.Errorf("%v %+v", err, gone)
	}
	if _, err = c.Conversations.Get(t.Context(), talk.ID); err == nil {
		t.Error("a deleted conversation is there")
	}
}

func TestGoContainersAndFiles(t *testing.T) {
	t.Parallel()
	f := newFake()
	c := client(t, f)
	stored, err := c.Files.New(t.Context(), sdk.FileNewParams{File: sdk.File(strings.NewReader("a,b\n"), "in.csv", "text/csv"), Purpose: "user_data",
		ExpiresAfter: sdk.FileNewParamsExpiresAfter{Seconds: 7200}})
	if err != nil || stored.Bytes != 4 || stored.Filename != "in.csv" || stored.ExpiresAt == 0 {
		t.Fatalf("%v %+v", err, stored)
	}
	box, err := c.Containers.New(t.Context(), sdk.ContainerNewParams{Name: "box", FileIDs: []string{stored.ID}, MemoryLimit: "4g",
		ExpiresAfter: sdk.ContainerNewParamsExpiresAfter{Anchor: "last_active_at", Minutes: 20}})
	if err != nil || box.Status != "running" || box.MemoryLimit != "4g" || box.ExpiresAfter.Minutes != 20 {
		t.Fatalf("%v %+v", err, box)
	}
	up, err := c.Containers.Files.New(t.Context(), box.ID, sdk.ContainerFileNewParams{File: sdk.File(strings.NewReader("hello"), "a b.txt", "text/plain")})
	if err != nil || up.Path != "/mnt/data/a b.txt" || up.Source != "user" || up.Bytes != 5 {
		t.Fatalf("%v %+v", err, up)
	}
	if _, err := c.Containers.Files.New(t.Context(), box.ID, sdk.ContainerFileNewParams{FileID: param.NewOpt(stored.ID)}); err != nil {
		t.Fatal(err)
	}
	f.trees["ses_"+box.ID[5:]].files["deep/er/made.txt"] = []byte("made")
	var paths []string
	files := c.Containers.Files.ListAutoPaging(t.Context(), box.ID, sdk.ContainerFileListParams{Limit: param.NewOpt(int64(2))})
	for files.Next() {
		paths = append(paths, files.Current().Path+" "+files.Current().Source)
	}
	if got := strings.Join(paths, ", "); files.Err() != nil || got != "/mnt/data/a b.txt user, /mnt/data/deep/er/made.txt assistant, /mnt/data/in.csv user" {
		t.Errorf("%v %s", files.Err(), got)
	}
	res, err := c.Containers.Files.Content.Get(t.Context(), box.ID, up.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if text, err := io.ReadAll(res.Body); err != nil || string(text) != "hello" {
		t.Errorf("%v %q", err, text)
	}
	if err := c.Containers.Files.Delete(t.Context(), box.ID, up.ID); err != nil {
		t.Error(err)
	}
	if _, err := c.Containers.Files.Get(t.Context(), box.ID, up.ID); err == nil {
		t.Error("a deleted file is there")
	}
	boxes, err := c.Containers.List(t.Context(), sdk.ContainerListParams{})
	if err != nil || len(boxes.Data) != 1 || boxes.Data[0].ID != box.ID {
		t.Errorf("%v %+v", err, boxes)
	}
	if err := c.Containers.Delete(t.Context(), box.ID); err != nil {
		t.Error(err)
	}
}

func TestGoFiles(t *testing.T) {
	t.Parallel()
	c := client(t, newFake())
	for _, name := range []string{"1", "2", "3", "4", "5"} {
		if _, err := c.Files.New(t.Context(), sdk.FileNewParams{File: sdk.File(strings.NewReader("x"+name), name, "text/plain"), Purpose: "assistants"}); err != nil {
			t.Fatal(err)
		}
	}
	var names string
	var last string
	all := c.Files.ListAutoPaging(t.Context(), sdk.FileListParams{Order: "asc", Limit: param.NewOpt(int64(3))})
	for all.Next() {
		names += all.Current().Filename
		last = all.Current().ID
	}
	if all.Err() != nil || names != "12345" {
		t.Errorf("%v %s", all.Err(), names)
	}
	res, err := c.Files.Content(t.Context(), last)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if text, _ := io.ReadAll(res.Body); string(text) != "x5" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%q %v", text, res.Header)
	}
	if gone, err := c.Files.Delete(t.Context(), last); err != nil || !gone.Deleted {
		t.Errorf("%v %+v", err, gone)
	}
	_, err = c.Files.Get(t.Context(), last)
	if e, ok := errors.AsType[*sdk.Error](err); !ok || e.StatusCode != 404 || e.Message != "No such File object: "+last {
		t.Errorf("%v", err)
	}
	models, err := c.Models.List(t.Context())
	if err != nil || models.Data[0].ID != "test/scripted" {
		t.Errorf("%v %+v", err, models)
	}
	if m, err := c.Models.Get(t.Context(), "test/scripted"); err != nil || m.OwnedBy != "test" {
		t.Errorf("%v %+v", err, m)
	}
}

// TestGoErrors shows what clients see of what goes wrong.
func TestGoErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuse, fails error
		status        int
		code, kind    string
	}{
		"rate":     {fails: problem.New(problem.ModelRateLimited, "slow down"), status: 429, code: "rate_limit_exceeded", kind: "rate_limit_error"},
		"quota":    {refuse: problem.New(problem.QuotaTokens, "no tokens are left"), status: 429, code: "insufficient_quota", kind: "insufficient_quota"},
		"model":    {fails: problem.New(problem.ModelUnknown, "no such model"), status: 400, code: "model_not_found", kind: "invalid_request_error"},
		"busy":     {refuse: problem.New(problem.TurnRunning, "a turn runs"), status: 409, code: "conversation_locked", kind: "invalid_request_error"},
		"draining": {refuse: problem.New(problem.Draining, "the server stops"), status: 503, code: "draining", kind: "server_error"},
		"fault":    {refuse: errors.New("secret detail"), status: 500, code: "server_error", kind: "server_error"},
		"key":      {fails: problem.New(problem.ModelAuth, "refused"), status: 500, code: "model_auth", kind: "server_error"},
		"role":     {refuse: problem.New(problem.Forbidden, "no"), status: 403, code: "insufficient_permissions", kind: "permission_error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.refuse = c.refuse
			f.script = func(hub.NewTurn) ([]loop.Event, error) { return nil, c.fails }
			cl := client(t, f)
			_, err := cl.Responses.New(t.Context(), newParams("Q"))
			e, ok := errors.AsType[*sdk.Error](err)
			if !ok || e.StatusCode != c.status || e.Code != c.code || e.Type != c.kind || strings.Contains(e.Message, "secret") {
				t.Errorf("%v", err)
			}
			stream := cl.Responses.NewStreaming(t.Context(), newParams("Q"))
			for stream.Next() {
				t.Errorf("an event: %s", stream.Current().Type)
			}
			if e, ok := errors.AsType[*sdk.Error](stream.Err()); !ok || e.StatusCode != c.status {
				t.Errorf("streamed: %v", stream.Err())
			}
		})
	}
	c := client(t, newFake(), option.WithAPIKey("nobody"))
	if _, err := c.Models.List(t.Context()); !strings.Contains(err.Error(), "401") {
		t.Errorf("%v", err)
	}
}

// TestFailureAfterCode shows that a response that failed after code had run is not an error that clients would repeat.
func TestFailureAfterCode(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.script = func(hub.NewTurn) ([]loop.Event, error) {
		return []loop.Event{loop.Start{Step: 1, Code: "pay()"}, loop.Output{Step: 1, Event: done(kernel.OutcomeOK)}},
			problem.New(problem.ModelUnavailable, "the model went away")
	}
	c := client(t, f, option.WithMaxRetries(2))
	res, err := c.Responses.New(t.Context(), newParams("Q"))
	if err != nil || res.Status != "failed" || res.Error.Code != "server_error" || res.Output[0].AsCodeInterpreterCall().Code != "pay()" {
		t.Errorf("%v %+v", err, res)
	}
	if len(f.asked) != 1 {
		t.Errorf("%d requests", len(f.asked))
	}
}
