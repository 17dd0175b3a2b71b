package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"cove/internal/core/problem"
)

// Reply is an answer of a model service that is not a stream of events: an error, or something else altogether.
type Reply struct {
	Status int
	Header map[string][]string // canonical names
	Body   string              // the first 64 KiB
	Tools  bool                // the request offered tools
	Images bool                // the request carried images
}

const maxReply = 64 << 10

// Inspect looks at the start of an HTTP response. For a stream it returns nil and the body, watched; for anything else
// the reply, and an empty body to leave to the SDK.
func Inspect(status int, header map[string][]string, body io.ReadCloser, watch *Watch) (*Reply, io.ReadCloser) {
	watch.Alive()
	kind := strings.ToLower(first(header, "Content-Type"))
	if status < 300 && !strings.Contains(kind, "html") && !strings.Contains(kind, "application/json") {
		return nil, watch.Body(body)
	}
	// A body that breaks off still tells its beginning.
	text, _ := io.ReadAll(io.LimitReader(body, maxReply))
	_ = body.Close()
	return &Reply{Status: status, Header: header, Body: string(text)}, io.NopCloser(bytes.NewReader(text))
}

// Rejected explains a reply that is not a stream.
func (p Provider) Rejected(r Reply) *Failure {
	said := r.said()
	lower := strings.ToLower(said.text + " " + said.kind)
	if r.Status < 400 && said.found {
		r.Status = statusOfKind(said.kind)
	}
	quoted := p.quote(said.text)
	switch {
	case r.Status < 400:
		return p.notAModelService(r)
	case r.Tools && refusesTools(lower):
		return final(problem.ToolsUnsupported, p.Name+" cannot call tools"+quoted,
			"choose a model that can call tools with --model, or use the fenced-block protocol")
	case r.Images && refusesImages(lower):
		return final(problem.ImagesUnsupported, p.Name+" cannot see images"+quoted,
			"choose a model that sees images with --model")
	case anyIn(lower, "insufficient_quota", "exceeded your current quota", "credit balance is too low", "insufficient balance", "billing_error", "billing hard limit"), r.Status == 402:
		return final(problem.ModelQuotaExhausted, fmt.Sprintf("the account behind %s has no quota left%s", p.keyName(), quoted),
			"check the plan and billing of the provider, or choose another model with --model")
	case r.Status == 401 || r.Status == 403:
		return final(problem.ModelAuth, fmt.Sprintf("%s refused the key (%d)%s", p.host(), r.Status, quoted), p.keyHint())
	case isContextLength(lower):
		return final(problem.ModelContextTooLong, fmt.Sprintf("the conversation is longer than %s can read%s", p.Name, quoted),
			"start a new conversation, give smaller files, or choose a model with a longer context with --model")
	case r.Status == 404 && (strings.Contains(lower, "model") || said.found && strings.Contains(lower, strings.ToLower(p.Model))), anyIn(lower, "model_not_found", "model not found", "unknown model", "invalid model", "model does not exist"):
		return final(problem.ModelUnknown, fmt.Sprintf("%s has no model named %q%s", p.host(), p.Model, quoted), p.ListHint)
	case r.Status == 404 || r.Status == 405:
		return p.notAModelService(r)
	}
	return p.refused(r, lower, quoted)
}

// refused explains the statuses that do not depend on what the service says beside them.
func (p Provider) refused(r Reply, lower, quoted string) *Failure {
	wait := retryAfter(r.Header, time.Now())
	again := "try again in a while, or choose another model with --model"
	switch {
	case r.Status == 429:
		return retry(wait, problem.ModelRateLimited, p.host()+" is limiting the rate of requests (429)"+quoted, again)
	case r.Status == 529 || r.Status >= 500 && strings.Contains(lower, "overloaded"):
		return retry(wait, problem.ModelOverloaded, fmt.Sprintf("%s is overloaded (%d)%s", p.host(), r.Status, quoted), again)
	case r.Status >= 500 || r.Status == 408:
		return retry(wait, problem.ModelUnavailable, fmt.Sprintf("%s failed to answer (%d)%s", p.host(), r.Status, quoted), again)
	}
	return final(problem.ModelRequestRejected, fmt.Sprintf("%s rejected the request (%d)%s", p.host(), r.Status, quoted),
		"check the name given to --model and what the provider says about it")
}

// InStream explains an error that the service sends as an event of the stream: its JSON, as it came.
func (p Provider) InStream(event string) *Failure {
	return p.Rejected(Reply{Status: 200, Body: event})
}

func (p Provider) notAModelService(r Reply) *Failure {
	what := "something that is not a model's answer"
	if r.isHTML() {
		what = "a web page instead of a model's answer"
	}
	if r.Status >= 400 {
		what = fmt.Sprintf("status %d: there is no model service at this address", r.Status)
	}
	return final(problem.ModelBaseURL, fmt.Sprintf("%s answered with %s", p.publicURL(), what),
		fmt.Sprintf("check %s; %s", p.URLVariable, p.BaseURLHint))
}

func (p Provider) keyHint() string {
	if p.KeyVariable == "" {
		return "check " + p.URLVariable + " and whether the server wants a key"
	}
	return "check the environment variable " + p.KeyVariable
}

func (p Provider) keyName() string {
	if p.KeyVariable == "" {
		return p.host()
	}
	return p.KeyVariable
}

// quote appends what the service said, short and without the key.
func (p Provider) quote(text string) string {
	text = strings.TrimRight(strings.Join(strings.Fields(p.redact(text)), " "), ".")
	if text == "" {
		return ""
	}
	if r := []rune(text); len(r) > 300 {
		text = string(r[:300]) + "…"
	}
	return ": " + text
}

func final(code problem.Code, message, hint string) *Failure {
	return &Failure{Problem: problem.New(code, message).WithHint(hint)}
}

func retry(wait *time.Duration, code problem.Code, message, hint string) *Failure {
	return &Failure{Problem: problem.New(code, message).WithHint(hint), Retryable: true, Wait: wait}
}

type said struct {
	text  string
	kind  string // type and code, as the provider names them
	found bool   // the body is a JSON error
}

// said reads the error shapes in use: OpenAI's and Anthropic's {"error":{...}}, {"error":"text"} of small servers,
// {"message":...} and {"detail":...} of vLLM and FastAPI.
func (r Reply) said() said {
	var body map[string]any
	if json.Unmarshal([]byte(r.Body), &body) != nil {
		if r.isHTML() {
			return said{}
		}
		return said{text: r.Body}
	}
	var s said
	for _, key := range []string{"error", "detail", "message"} {
		switch v := body[key].(type) {
		case string:
			s.text, s.found = v, true
		case map[string]any:
			s.text, _ = v["message"].(string)
			s.kind, s.found = kindOf(v), true
		}
		if s.found {
			s.kind += " " + kindOf(body)
			return s
		}
	}
	return s
}

func kindOf(v map[string]any) string {
	return fmt.Sprint(v["type"], " ", v["code"])
}

func statusOfKind(kind string) int {
	kind = strings.ToLower(kind)
	for _, k := range []struct {
		word   string
		status int
	}{
		{"overloaded", 529}, {"rate_limit", 429}, {"authentication", 401}, {"permission", 403}, {"not_found", 404},
		{"invalid_request", 400}, {"context_length", 400}, {"billing", 402}, {"429", 429}, {"401", 401}, {"404", 404}, {"400", 400},
	} {
		if strings.Contains(kind, k.word) {
			return k.status
		}
	}
	return 500
}

func (r Reply) isHTML() bool {
	return strings.Contains(strings.ToLower(first(r.Header, "Content-Type")), "html") || strings.HasPrefix(strings.TrimSpace(r.Body), "<")
}

func refusesTools(lower string) bool {
	return anyIn(lower, "does not support tools", "does not support function", "not support tool", "support tool use", "tool use is not supported",
		"tools are not supported", "tools is not supported", "tool calling is not supported", "function calling is not", "unsupported parameter: 'tools'",
		"enable-auto-tool-choice", "tools param requires", "unrecognized request argument supplied: tools", "unknown field \"tools\"", "'tools' is not")
}

func refusesImages(lower string) bool {
	return strings.Contains(lower, "image") &&
		anyIn(lower, "not support", "unsupported", "not a multimodal", "unknown variant", "only supported by", "text only", "invalid content type", "cannot see", "vision")
}

func isContextLength(lower string) bool {
	return anyIn(lower, "context_length_exceeded", "context length", "context window", "prompt is too long", "maximum context", "context size", "too many tokens")
}

func anyIn(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
