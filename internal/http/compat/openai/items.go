package openai

import (
	"encoding/json"
	"net/http"
	"strings"

	"cove/internal/server/hub"
)

// growing is a text that comes in many pieces; in JSON it is a string.
type growing struct{ strings.Builder }

func grown(text string) *growing {
	g := &growing{}
	g.WriteString(text)
	return g
}

// MarshalJSON implements json.Marshaler.
func (g *growing) MarshalJSON() ([]byte, error) { return json.Marshal(g.String()) }

// The words for how items and responses stand.
const (
	statusQueued     = "queued"
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
	statusCancelled  = "cancelled"
)

// item is an element of a response's output; exactly one of the pointers is set.
type item struct {
	id        string
	index     int
	done      bool
	void      bool // it is no part of the conversation: it broke off and was asked for again, or was not run
	message   *message
	code      *codeCall
	call      *functionCall
	reasoning *reasoning
	program   *program
	output    *programOutput
}

// json returns what is sent. Without outputs, those of code are null, as OpenAI sends them to clients that did not ask for them.
func (i *item) json(withOutputs bool) any {
	switch {
	case i.message != nil:
		return i.message
	case i.call != nil:
		return i.call
	case i.reasoning != nil:
		return i.reasoning
	case i.program != nil:
		return i.program
	case i.output != nil:
		return i.output
	}
	shown := *i.code
	if withOutputs && i.done {
		list := shown.all
		if list == nil {
			list = []output{}
		}
		shown.Outputs = &list
	}
	return &shown
}

func (i *item) setStatus(status string) {
	switch {
	case i.message != nil:
		i.message.Status = status
	case i.call != nil:
		i.call.Status = status
	case i.reasoning != nil:
		i.reasoning.Status = status
	case i.program != nil: // which has none
	case i.output != nil:
		i.output.Status = status
	default:
		i.code.Status = status
	}
}

type message struct {
	ID      string     `json:"id"`
	Type    string     `json:"type"`
	Role    string     `json:"role"`
	Status  string     `json:"status"`
	Content []textPart `json:"content"`
}

type textPart struct {
	Type        string       `json:"type"`
	Text        *growing     `json:"text"`
	Annotations []annotation `json:"annotations"`
	Logprobs    []struct{}   `json:"logprobs"`
}

type annotation struct {
	Type        string `json:"type"`
	ContainerID string `json:"container_id"`
	FileID      string `json:"file_id"`
	Filename    string `json:"filename"`
	StartIndex  int    `json:"start_index"`
	EndIndex    int    `json:"end_index"`
}

func newTextPart() textPart {
	return textPart{Type: "output_text", Text: grown(""), Annotations: []annotation{}, Logprobs: []struct{}{}}
}

type codeCall struct {
	ID          string    `json:"id"`
	Type        string    `json:"type"`
	Status      string    `json:"status"`
	ContainerID string    `json:"container_id"`
	Code        *growing  `json:"code"`
	Outputs     *[]output `json:"outputs"`

	all []output
}

type functionCall struct {
	ID        string   `json:"id"`
	Type      string   `json:"type"`
	Status    string   `json:"status"`
	CallID    string   `json:"call_id"`
	Name      string   `json:"name"`
	Arguments *growing `json:"arguments"`
	Caller    *caller  `json:"caller,omitempty"`
}

type reasoning struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Status  string          `json:"status"`
	Summary []struct{}      `json:"summary"`
	Content []reasoningPart `json:"content"`
}

type reasoningPart struct {
	Type string   `json:"type"`
	Text *growing `json:"text"`
}

func newReasoningPart() reasoningPart { return reasoningPart{Type: "reasoning_text", Text: grown("")} }

// event is an event of a stream: Type and Sequence always, of the rest what the type has.
type event struct {
	Type            string      `json:"type"`
	Sequence        int64       `json:"sequence_number"`
	Response        *response   `json:"response,omitempty"`
	OutputIndex     *int        `json:"output_index,omitempty"`
	ItemID          string      `json:"item_id,omitempty"`
	ContentIndex    *int        `json:"content_index,omitempty"`
	AnnotationIndex *int        `json:"annotation_index,omitempty"`
	Item            any         `json:"item,omitempty"`
	Part            any         `json:"part,omitempty"`
	Annotation      *annotation `json:"annotation,omitempty"`
	Name            string      `json:"name,omitempty"`
	Delta           *string     `json:"delta,omitempty"`
	Text            *string     `json:"text,omitempty"`
	Code            *string     `json:"code,omitempty"`
	Arguments       *string     `json:"arguments,omitempty"`
	Stream          string      `json:"stream,omitempty"`
	Logprobs        *[]struct{} `json:"logprobs,omitempty"`
}

// response is the response object.
type response struct {
	ID        string         `json:"id"`
	Object    string         `json:"object"`
	CreatedAt int64          `json:"created_at"`
	Status    string         `json:"status"`
	Error     *responseError `json:"error"`
	Details   *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	echo
	CompletedAt *int64 `json:"completed_at"`
	Output      []any  `json:"output"`
	Usage       *usage `json:"usage"`
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// responseErrorOf says with the few codes that a response's error has what an error of a request says with its status.
func responseErrorOf(f *fault) *responseError {
	code := "server_error"
	switch {
	case f.kind == "insufficient_quota":
		code = f.kind
	case f.status == http.StatusTooManyRequests:
		code = "rate_limit_exceeded"
	case f.status < http.StatusInternalServerError:
		code = "invalid_prompt"
	}
	return &responseError{Code: code, Message: f.message}
}

type usage struct {
	InputTokens  int64 `json:"input_tokens"`
	InputDetails struct {
		CachedTokens     int64 `json:"cached_tokens"`
		CacheWriteTokens int64 `json:"cache_write_tokens"` // always 0; openai-java wants it
	} `json:"input_tokens_details"`
	OutputTokens  int64 `json:"output_tokens"`
	OutputDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int64 `json:"total_tokens"`
}

// newResponse is the object of a turn at its beginning.
func newResponse(t hub.Turn, k kept) response {
	r := response{ID: responseID(t.ID), Object: "response", CreatedAt: t.Created.Unix(), Status: statusInProgress, echo: k.Echo, Output: []any{}}
	if r.Model == "" { // a turn that another surface made
		r.Model, r.Store = t.Model, true
		r.ParallelToolCalls, r.Truncation, r.ServiceTier = true, "disabled", "default"
	}
	if r.Metadata == nil {
		r.Metadata = map[string]string{}
	}
	if r.Tools == nil {
		r.Tools = rawList()
	}
	r.ToolChoice, r.Text = orRaw(r.ToolChoice, `"auto"`), orRaw(r.Text, `{"format":{"type":"text"},"verbosity":"medium"}`)
	r.Reasoning = orRaw(r.Reasoning, `{"effort":null,"summary":null}`)
	if r.Temperature == nil {
		r.Temperature = new(1.0)
	}
	if r.TopP == nil {
		r.TopP = new(1.0)
	}
	return r
}
