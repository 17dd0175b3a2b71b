package model_test

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/llm/model/anthropic"
	"cove/internal/llm/model/modeltest"
	"cove/internal/llm/model/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// heard is a whole stream, put together.
type heard struct {
	text, reasoning string
	arguments       []string // by index of the call
	retries         []model.Retry
	finishes        []model.Finish
	parts           []model.Part
	problem         *problem.Error
}

func (h heard) code() string {
	if h.problem == nil {
		return ""
	}
	return h.problem.Code
}

func (h *heard) add(part model.Part, err error) {
	if err != nil {
		h.problem = problem.Of(err)
		return
	}
	h.parts = append(h.parts, part)
	switch p := part.(type) {
	case model.TextDelta:
		h.text += p.Text
	case model.ReasoningDelta:
		h.reasoning += p.Text
	case model.CallDelta:
		for len(h.arguments) <= p.Index {
			h.arguments = append(h.arguments, "")
		}
		h.arguments[p.Index] += p.Arguments
	case model.Retry:
		h.retries = append(h.retries, p)
	case model.Finish:
		h.finishes = append(h.finishes, p)
	}
}

func listen(stream iter.Seq2[model.Part, error]) heard {
	var h heard
	for part, err := range stream {
		h.add(part, err)
	}
	return h
}

// wires are the ways to a scripted server.
var wires = map[string]func(s *modeltest.Server, limits model.Limits) model.Model{
	"openai": func(s *modeltest.Server, limits model.Limits) model.Model {
		return openai.New(openai.Options{Model: "scripted", BaseURL: s.OpenAIURL(), APIKey: "sk-secret-key", Images: model.SightOn, Limits: limits, HTTPClient: s.Client()})
	},
	"anthropic": func(s *modeltest.Server, limits model.Limits) model.Model {
		return anthropic.New(anthropic.Options{Model: "scripted", BaseURL: s.AnthropicURL(), APIKey: "sk-secret-key", Images: model.SightOn, Limits: limits, HTTPClient: s.Client()})
	},
}

// onEachWire runs a test against both wire formats.
func onEachWire(t *testing.T, test func(t *testing.T, connect func(model.Limits, ...modeltest.Turn) (model.Model, *modeltest.Server))) {
	t.Helper()
	for name, dial := range wires {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, func(limits model.Limits, turns ...modeltest.Turn) (model.Model, *modeltest.Server) {
				server := modeltest.NewServer(turns...)
				t.Cleanup(server.Close)
				if limits.Sleep == nil {
					limits.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
				}
				return dial(server, limits), server
			})
		})
	}
}

func ask(text string) model.Request {
	return model.Request{
		System:   "You run Python.",
		Messages: []model.Message{{Role: model.RoleUser, Content: []model.Content{model.Text{Text: text}}}},
		Tools:    []model.Tool{{Name: "python", Description: "Runs code.", Schema: json.RawMessage(`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"]}`)}},
	}
}

func TestAnswerOfText(t *testing.T) {
	t.Parallel()
	onEachWire(t, func(t *testing.T, connect func(model.Limits, ...modeltest.Turn) (model.Model, *modeltest.Server)) {
		m, server := connect(model.Limits{}, modeltest.Turn{Reasoning: []string{"想", "一想"}, Text: []string{"华东地区", "增长最快 📈"}, Input: 7, Output: 5})
		h := listen(m.Stream(t.Context(), ask("哪个地区增长最快？")))
		if h.problem != nil || h.text != "华东地区增长最快 📈" || h.reasoning != "想一想" {
			t.Fatalf("heard %q, thought %q, problem %v", h.text, h.reasoning, h.problem)
		}
		want := model.Finish{Reason: model.FinishStop, Usage: model.Usage{InputTokens: 7, OutputTokens: 5}}
		if len(h.finishes) != 1 || h.finishes[0].Reason != want.Reason || h.finishes[0].Usage != want.Usage || len(h.finishes[0].Calls) != 0 {
			t.Errorf("finishes %+v, want one %+v", h.finishes, want)
		}
		requests := server.Requests()
		if len(requests) != 1 || !strings.Contains(requests[0].Text(), "哪个地区增长最快？") || !strings.Contains(requests[0].Text(), "You run Python.") {
			t.Errorf("requests %+v", requests)
		}
		if !slices.Equal(requests[0].Tools(), []string{"python"}) || requests[0].Model() != "scripted" {
			t.Errorf("tools %v, model %q", requests[0].Tools(), requests[0].Model())
		}
	})
}

func TestToolCall(t *testing.T) {
	t.Parallel()
	const code = "print(\"总计\\n\", 'a\\\\b', \"😀\")\n"
	onEachWire(t, func(t *testing.T, connect func(model.Limits, ...modeltest.Turn) (model.Model, *modeltest.Server)) {
		for fragment := 1; fragment <= 3; fragment++ {
			for _, ascii := range []bool{false, true} {
				call := modeltest.Call{Code: code, Fragment: fragment, ASCII: ascii}
				m, _ := connect(model.Limits{}, modeltest.Turn{Text: []string{"Let me look."}, Calls: []modeltest.Call{call, {Name: "other", Arguments: `{"x":1}`}}})
				h := listen(m.Stream(t.Context(), ask("go")))
				if h.problem != nil || len(h.finishes) != 1 {
					t.Fatalf("finishes %v, problem %v", h.finishes, h.problem)
				}
				finish := h.finishes[0]
				if finish.Reason != model.FinishCalls || len(finish.Calls) != 2 || finish.Calls[1].Name != "other" || finish.Calls[1].Arguments != `{"x":1}` {
					t.Fatalf("finish %+v", finish)
				}
				var arguments struct{ Code string }
				if err := json.Unmarshal([]byte(finish.Calls[0].Arguments), &arguments); err != nil || arguments.Code != code {
					t.Errorf("code %q (%v), want %q", arguments.Code, err, code)
				}
				if h.arguments[0] != finish.Calls[0].Arguments || h.arguments[1] != finish.Calls[1].Arguments {
					t.Errorf("deltas %q do not add up to %+v", h.arguments, finish.Calls)
				}
				if finish.Calls[0].ID == "" || finish.Calls[0].ID == finish.Calls[1].ID {
					t.Errorf("ids of %+v", finish.Calls)
				}
			}
		}
	})
}

func TestCutOffCallIsNeverFinished(t *testing.T) {
	t.Parallel()
	run := modeltest.Run("import os\nprint(os.listdir('.'))")
	with := func(change func(*modeltest.Turn)) modeltest.Turn {
		turn := run
		change(&turn)
		return turn
	}
	cases := map[string]struct {
		turn   modeltest.Turn
		code   string
		reason model.FinishReason
	}{
		"token limit in the call":   {with(func(t *modeltest.Turn) { t.CutCall = true }), "", model.FinishLength},
		"stream ends in the call":   {with(func(t *modeltest.Turn) { t.CutAfter = 6 }), "model_stream_truncated", ""},
		"stream ends before reason": {with(func(t *modeltest.Turn) { t.Dialect = &modeltest.Dialect{NoFinish: true} }), "model_stream_truncated", ""},
		"connection breaks":         {with(func(t *modeltest.Turn) { t.TruncateAfter = 1100 }), "model_stream_truncated", ""},
		"not JSON":                  {with(func(t *modeltest.Turn) { t.MalformedAfter = 6 }), "model_stream_malformed", ""},
		"error event":               {with(func(t *modeltest.Turn) { t.ErrorAfter = 6 }), "model_overloaded", ""},
		"silence":                   {with(func(t *modeltest.Turn) { t.StallAfter = 6 }), "model_stalled", ""},
		"reason nobody knows":       {with(func(t *modeltest.Turn) { t.Finish = "abort" }), "model_stream_truncated", ""},
	}
	onEachWire(t, func(t *testing.T, connect func(model.Limits, ...modeltest.Turn) (model.Model, *modeltest.Server)) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var limits model.Limits
				if c.turn.StallAfter > 0 {
					limits.Stall = 100 * time.Millisecond
				}
				m, server := connect(limits, c.turn)
				h := listen(m.Stream(t.Context(), ask("go")))
				if h.code() != c.code {
					t.Fatalf("problem %v, want code %q", h.problem, c.code)
				}
				if len(h.arguments) == 0 {
					t.Fatal("the call had not begun: the case shows nothing")
				}
				for _, finish := range h.finishes {
					if len(finish.Calls) != 0 || finish.Reason != c.reason {
						t.Errorf("finish %+v, want %q without calls", finish, c.reason)
					}
				}
				if c.reason != "" && len(h.finishes) != 1 || c.code != "" && len(h.finishes) != 0 {
					t.Errorf("%d finishes", len(h.finishes))
				}
				if n := len(server.Requests()); n != 1 {
					t.Errorf("asked %d times although something had been yielded", n)
				}
			})
		}
	})
}

func TestFailureIsASentence(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		turn  modeltest.Turn
		kind  problem.Kind
		code  string
		says  string // in the message
		hints string // in the hint
	}{
		"wrong key":      {modeltest.Error(401, "authentication_error", "Incorrect API key provided: sk-secret-key."), problem.Denied, "model_auth", "refused the key (401)", "_API_KEY"},
		"forbidden":      {modeltest.Error(403, "permission_error", "no access"), problem.Denied, "model_auth", "no access", "_API_KEY"},
		"unknown model":  {modeltest.Error(404, "not_found_error", "model: scripted"), problem.NotFound, "model_unknown", `no model named "scripted"`, "/models"},
		"unknown (400)":  {modeltest.Error(400, "model_not_found", "no such thing"), problem.NotFound, "model_unknown", `"scripted"`, "--model"},
		"wrong path":     {modeltest.Turn{Fault: modeltest.Fault{Status: 404, Body: "404 page not found\n"}}, problem.Invalid, "model_base_url", "no model service", "_BASE_URL"},
		"too long":       {modeltest.Error(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens."), problem.Exhausted, "model_context_too_long", "longer than", "longer context"},
		"no quota":       {modeltest.Error(429, "insufficient_quota", "You exceeded your current quota."), problem.Exhausted, "model_quota_exhausted", "no quota left", "billing"},
		"no money":       {modeltest.Error(402, "payment", "Insufficient Balance"), problem.Exhausted, "model_quota_exhausted", "no quota left", "billing"},
		"no tools":       {modeltest.Error(400, "invalid_request_error", "scripted does not support tools"), problem.Invalid, "tools_unsupported", "cannot call tools", "fenced"},
		"bad request":    {modeltest.Error(400, "invalid_request_error", "temperature: too hot"), problem.Invalid, "model_request_rejected", "too hot", "--model"},
		"a web page":     {modeltest.HTMLPage(), problem.Invalid, "model_base_url", "a web page", "/v1"},
		"JSON, no error": {modeltest.Turn{Fault: modeltest.Fault{Header: map[string]string{"Content-Type": "application/json"}, Body: `{"ok":true}`}}, problem.Invalid, "model_base_url", "not a model's answer", "_BASE_URL"},
		"not JSON":       {modeltest.Turn{Text: []string{"hi"}, Fault: modeltest.Fault{MalformedAfter: 1}}, problem.Unavailable, "model_stream_malformed", "not a valid answer", "_BASE_URL"},
		"no headers":     {modeltest.Turn{Fault: modeltest.Fault{HangBeforeHeaders: true}}, problem.Timeout, "model_first_token_timeout", "said nothing", "try again"},
		"no first token": {modeltest.Turn{Fault: modeltest.Fault{HangBeforeFirst: true}}, problem.Timeout, "model_first_token_timeout", "said nothing", "try again"},
		"asks for too long": {modeltest.Error(429, "rate_limit_error", "slow down", "Retry-After", "300"), problem.Exhausted, "model_rate_limited",
			"asks to wait 5m0s", "later"},
	}
	onEachWire(t, func(t *testing.T, connect func(model.Limits, ...modeltest.Turn) (model.Model, *modeltest.Server)) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var limits model.Limits
				if c.kind == problem.Timeout {
					limits.FirstToken = 200 * time.Millisecond
				}
				m, server := connect(limits, c.turn)
				h := listen(m.Stream(t.Context(), ask("go")))
				if h.problem == nil {
					t.Fatalf("no problem; heard %+v", h)
				}
				if h.problem.Kind != c.kind || h.problem.Code != c.code {
					t.Errorf("%s %s (%s), want %s %s", h.problem.Kind, h.problem.Code, h.problem, c.kind, c.code)
				}
				if !strings.Contains(h.problem.Message, c.says) || !strings.Contains(h.problem.Hint, c.hints) {
					t.Errorf("says %q, hints %q; want %q and %q in them", h.problem.Message, h.problem.Hint, c.says, c.hints)
				}
				if strings.Contains(h.problem.Error()+h.problem.Hint, "sk-secret-key") {
					t.Errorf("the key is in %q", h.problem.Error())
				}
				if len(server.Requests()) != 1 || len(h.parts) != 0 {
					t.Errorf("%d requests and parts %v, want one request and no parts", len(server.Requests()), h.parts)
				}
			})
		}
	})
}

func TestRetry(t *testing.T) {
	t.Parallel()
	fine := modeltest.Say("fine")
	date := time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat)
	cases := map[string]struct {
		turns    []modeltest.Turn
		code     string
		retries  int
		min, max float64 // seconds of the first retry
	}{
		"rate limit with seconds": {[]modeltest.Turn{modeltest.Error(429, "rate_limit_error", "slow", "Retry-After", "2"), fine}, "", 1, 2, 2},
		"rate limit with a date":  {[]modeltest.Turn{modeltest.Error(429, "rate_limit_error", "slow", "Retry-After", date), fine}, "", 1, 0, 30},
		"rate limit, no header":   {[]modeltest.Turn{modeltest.Error(429, "rate_limit_error", "slow"), fine}, "", 1, 0.75, 1},
		"server error twice":      {[]modeltest.Turn{modeltest.Error(500, "api_error", "oops"), {Fault: modeltest.Fault{Status: 502, Body: "<html>bad gateway"}}, fine}, "", 2, 0.75, 1},
		"overloaded":              {[]modeltest.Turn{modeltest.Error(529, "overloaded_error", "busy"), fine}, "", 1, 0.75, 1},
		"overloaded in stream":    {[]modeltest.Turn{{Text: []string{"x"}, Fault: modeltest.Fault{ErrorAfter: -1}}, fine}, "", 1, 0.75, 1},
		"request timeout":         {[]modeltest.Turn{{Fault: modeltest.Fault{Status: 408}}, fine}, "", 1, 0.75, 1},
		"connection dropped":      {[]modeltest.Turn{{Fault: modeltest.Fault{Disconnect: true}}, fine}, "", 1, 0.75, 1},
		"ended before a part":     {[]modeltest.Turn{{Text: []string{"x"}, Fault: modeltest.Fault{CutAfter: 1}}, fine}, "", 1, 0.75, 1},
		"four times": {slices.Repeat([]modeltest.Turn{modeltest.Error(503, "api_error", "down for maintenance")}, 4),
			"model_unavailable", 3, 0.75, 1},
	}
	onEachWire(t, func(t *testing.T, connect func(model.Limits, ...modeltest.Turn) (model.Model, *modeltest.Server)) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var slept []float64
				limits := model.Limits{Sleep: func(ctx context.Context, d time.Duration) error {
					slept = append(slept, d.Seconds())
					return ctx.Err()
				}}
				m, server := connect(limits, c.turns...)
				h := listen(m.Stream(t.Context(), ask("go")))
				if h.code() != c.code || len(h.retries) != c.retries {
					t.Fatalf("problem %v and %d retries, want %q and %d", h.problem, len(h.retries), c.code, c.retries)
				}
				for i, r := range h.retries {
					if r.Attempt != i+1 || r.Reason == "" || h.parts[i] != model.Part(r) || slept[i] != r.Seconds {
						t.Errorf("retry %d is %+v, slept %v", i, r, slept)
					}
				}
				if s := h.retries[0].Seconds; s < c.min || s > c.max {
					t.Errorf("waits %v s, want %v to %v", s, c.min, c.max)
				}
				if c.code == "" && (h.text != "fine" || len(h.finishes) != 1) {
					t.Errorf("heard %q, finishes %v", h.text, h.finishes)
				}
				if c.code != "" && (!strings.Contains(h.problem.Message, "tried 4 times") || !strings.Contains(h.problem.Message, "maintenance")) {
					t.Errorf("problem %q", h.problem.Message)
				}
				if server.Left() != 0 {
					t.Errorf("%d turns left", server.Left())
				}
			})
		}
	})
}

func TestImages(t *testing.T) {
	t.Parallel()
	png, jpg := []byte("\x89PNG picture"), []byte("\xff\xd8 picture")
	req := ask("What is this?")
	req.Messages[0].Content = append(req.Messages[0].Content, model.Image{MIME: "image/jpeg", Data: jpg})
	req.Messages = append(req.Messages,
		model.Message{Role: model.RoleAssistant, Content: []model.Content{model.ToolCall{ID: "c1", Name: "python", Arguments: `{"code":"plot()"}`}, model.ToolCall{ID: "c2", Name: "python", Arguments: `{"code": 1`}}},
		model.Message{Role: model.RoleTool, Content: []model.Content{
			model.ToolResult{CallID: "c1", Text: "figure", Images: []model.Image{{MIME: "image/png", Data: png}}},
			model.ToolResult{CallID: "c2", Text: "arguments are not JSON", IsError: true},
		}})
	onEachWire(t, func(t *testing.T, connect func(model.Limits, ...modeltest.Turn) (model.Model, *modeltest.Server)) {
		m, server := connect(model.Limits{}, modeltest.Say("a chart"))
		if h := listen(m.Stream(t.Context(), req)); h.problem != nil || !m.Capabilities().Images {
			t.Fatal(h.problem)
		}
		got := server.Requests()[0]
		if images := got.Images(); len(images) != 2 || string(images[0]) != string(jpg) || string(images[1]) != string(png) {
			t.Errorf("images %q", images)
		}
		for _, want := range []string{"What is this?", "figure", "arguments are not JSON"} {
			if !strings.Contains(got.Text(), want) {
				t.Errorf("%q is not in %q", want, got.Text())
			}
		}
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	turns := map[string]modeltest.Turn{
		"before the headers": {Fault: modeltest.Fault{HangBeforeHeaders: true}},
		"in the stream":      {Text: []string{"one", "two", "three", "four"}, Fault: modeltest.Fault{StallAfter: 4}},
	}
	onEachWire(t, func(t *testing.T, connect func(model.Limits, ...modeltest.Turn) (model.Model, *modeltest.Server)) {
		for name, turn := range turns {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m, server := connect(model.Limits{}, turn)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if name == "before the headers" {
					server.Decide(func(int, modeltest.Request) modeltest.Turn {
						cancel()
						return turn
					})
				}
				var h heard
				for part, err := range m.Stream(ctx, ask("go")) {
					h.add(part, err)
					cancel()
				}
				if h.problem == nil || h.problem.Kind != problem.Canceled || len(h.finishes) != 0 {
					t.Errorf("problem %v, finishes %v", h.problem, h.finishes)
				}
			})
		}
	})
}

func TestBreakingOffStopsTheRequest(t *testing.T) {
	t.Parallel()
	onEachWire(t, func(t *testing.T, connect func(model.Limits, ...modeltest.Turn) (model.Model, *modeltest.Server)) {
		m, _ := connect(model.Limits{}, modeltest.Turn{Text: []string{"one", "two", "three", "four"}, Fault: modeltest.Fault{StallAfter: 4}})
		n := 0
		for _, err := range m.Stream(t.Context(), ask("go")) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			break
		}
		if n != 1 {
			t.Errorf("%d parts", n)
		}
	})
}

func TestDeadlineAndCauseOfTheCaller(t *testing.T) {
	t.Parallel()
	onEachWire(t, func(t *testing.T, connect func(model.Limits, ...modeltest.Turn) (model.Model, *modeltest.Server)) {
		hang := modeltest.Turn{Fault: modeltest.Fault{HangBeforeHeaders: true}}
		m, _ := connect(model.Limits{}, hang, hang)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if h := listen(m.Stream(ctx, ask("go"))); h.code() != "model_deadline" || h.problem.Kind != problem.Timeout {
			t.Errorf("problem %v", h.problem)
		}
		own := problem.Received(problem.Exhausted, "steps", "no steps left")
		ctx, cancel = context.WithTimeoutCause(t.Context(), 50*time.Millisecond, own)
		defer cancel()
		if h := listen(m.Stream(ctx, ask("go"))); h.problem != own {
			t.Errorf("problem %v, want the caller's", h.problem)
		}
	})
}
