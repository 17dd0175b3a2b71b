// Package modeltest is a scripted model service: an HTTP server that speaks the streaming formats of OpenAI's Chat
// Completions and Anthropic's Messages, says what a test wrote for it, misbehaves as told, and remembers every request.
package modeltest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// Turn is what the service answers to one request. The zero value is an empty answer that ends properly. The parts
// come in the order reasoning, text, calls; then faults apply.
type Turn struct {
	Reasoning []string `json:"reasoning,omitempty"` // one delta each
	Text      []string `json:"text,omitempty"`      // one delta each
	Calls     []Call   `json:"calls,omitempty"`

	// Finish replaces the reason that follows from the content, in the words of the wire format in use
	// ("length", "content_filter"; "max_tokens", "refusal", "pause_turn").
	Finish string `json:"finish,omitempty"`
	// Input and Output are the tokens that the service reports; 0 reports none on the OpenAI format. Of them, Cached were read from a cache and
	// Reasoned were reasoning.
	Input    int `json:"input_tokens,omitempty"`
	Output   int `json:"output_tokens,omitempty"`
	Cached   int `json:"cached_tokens,omitempty"`
	Reasoned int `json:"reasoning_tokens,omitempty"`
	// Delay is waited before each event, so that an answer looks alive or can be interrupted.
	Delay time.Duration `json:"delay,omitempty"`

	Fault
	// Dialect, when set, replaces the script's for this turn.
	Dialect *Dialect `json:"dialect,omitempty"`
}

// Call is a tool call. Code is sent as {"code": ...}; Arguments, when set, is sent as it is. Name defaults to "python".
type Call struct {
	ID        string `json:"id,omitempty"` // "" makes one up
	Name      string `json:"name,omitempty"`
	Code      string `json:"code,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Fragment  int    `json:"fragment,omitempty"` // characters of the arguments in each delta; 4
	ASCII     bool   `json:"ascii,omitempty"`    // writes everything beyond ASCII as \uXXXX escapes
}

// Fault is a way to misbehave. The zero value is none.
type Fault struct {
	Status int               `json:"status,omitempty"` // instead of a stream: this status, Header and Body
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"` // with Status 0: this body with status 200 instead of a stream

	HangBeforeHeaders bool `json:"hang_before_headers,omitempty"` // nothing at all comes back
	HangBeforeFirst   bool `json:"hang_before_first,omitempty"`   // the headers come, the first part never does
	StallAfter        int  `json:"stall_after,omitempty"`         // after so many events the stream is silent for ever
	CutAfter          int  `json:"cut_after,omitempty"`           // after so many events the stream ends as if it were complete
	TruncateAfter     int  `json:"truncate_after,omitempty"`      // after so many bytes the connection is broken
	MalformedAfter    int  `json:"malformed_after,omitempty"`     // after so many events an event follows that is not JSON
	CommentsAfter     int  `json:"comments_after,omitempty"`      // after so many events only comments follow, for ever
	RepeatAfter       int  `json:"repeat_after,omitempty"`        // after so many events the last one comes again and again, for ever
	// ErrorAfter makes the service send an error event after so many events (0: none, -1: at once), of ErrorType
	// ("overloaded_error" when empty).
	ErrorAfter int    `json:"error_after,omitempty"`
	ErrorType  string `json:"error_type,omitempty"`
	// CutCall ends the last call halfway, with the finish reason for the token limit.
	CutCall bool `json:"cut_call,omitempty"`
	// Disconnect closes the connection without a word.
	Disconnect bool `json:"disconnect,omitempty"`
}

// Dialect is how a compatible server differs from the original.
type Dialect struct {
	WholeCall   bool   `json:"whole_call,omitempty"`   // each call in one delta
	NoIndex     bool   `json:"no_index,omitempty"`     // deltas of calls have no index
	ZeroIndex   bool   `json:"zero_index,omitempty"`   // deltas of all calls have index 0
	NoID        bool   `json:"no_id,omitempty"`        // calls have no id
	SameID      bool   `json:"same_id,omitempty"`      // every call of every turn has the id "call_0"
	RepeatID    bool   `json:"repeat_id,omitempty"`    // id and name come with every delta of a call
	ObjectArgs  bool   `json:"object_args,omitempty"`  // arguments are an object instead of a string; with WholeCall
	FinishStop  bool   `json:"finish_stop,omitempty"`  // finish reason "stop" although there are calls
	NoDone      bool   `json:"no_done,omitempty"`      // the stream ends without [DONE]
	NoFinish    bool   `json:"no_finish,omitempty"`    // the stream ends without a finish reason
	ReasoningAs string `json:"reasoning_as,omitempty"` // the field of reasoning deltas; "reasoning_content"

	RejectTools         bool `json:"reject_tools,omitempty"`          // 400 to requests with tools
	RejectStreamOptions bool `json:"reject_stream_options,omitempty"` // 400 to requests with stream_options
	RejectImages        bool `json:"reject_images,omitempty"`         // 400 to requests with images
	// RejectParameter answers 400 to requests that have this parameter, and names it.
	RejectParameter string `json:"reject_parameter,omitempty"`
}

// HTMLPage is the turn of a server that is not a model service at all.
func HTMLPage() Turn {
	return Turn{Fault: Fault{Header: map[string]string{"Content-Type": "text/html; charset=utf-8"}, Body: "<!doctype html><title>Welcome</title>"}}
}

// Error is a turn that answers with status and the provider's usual JSON error. Headers are name, value, name, value.
func Error(status int, kind, message string, headers ...string) Turn {
	header := map[string]string{"Content-Type": "application/json"}
	for i := 0; i+1 < len(headers); i += 2 {
		header[headers[i]] = headers[i+1]
	}
	body, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"message": message, "type": kind, "code": kind}})
	return Turn{Fault: Fault{Status: status, Header: header, Body: string(body)}}
}

// Say is a turn of plain text, one delta for each piece.
func Say(text ...string) Turn { return Turn{Text: text} }

// Run is a turn that calls the tool "python" with code.
func Run(code string) Turn { return Turn{Calls: []Call{{Code: code}}} }

// LoadScript reads a script file: a JSON object {"dialect": {...}, "turns": [...]} with the fields of Dialect and Turn,
// durations in nanoseconds.
func LoadScript(path string) (*Script, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read model script: %w", err)
	}
	var file struct {
		Dialect Dialect `json:"dialect"`
		Turns   []Turn  `json:"turns"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("read model script %s: %w", path, err)
	}
	s := NewScript(file.Turns...)
	s.SetDialect(file.Dialect)
	return s, nil
}

func (c Call) name() string {
	if c.Name == "" {
		return "python"
	}
	return c.Name
}

func (c Call) arguments() string {
	text := c.Arguments
	if text == "" {
		var encoded strings.Builder
		enc := json.NewEncoder(&encoded)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(map[string]string{"code": c.Code})
		text = strings.TrimSpace(encoded.String())
	}
	if !c.ASCII {
		return text
	}
	var out []rune
	for _, r := range text {
		if r < 0x80 {
			out = append(out, r)
			continue
		}
		out = append(out, []rune(escape(r))...)
	}
	return string(out)
}

// fragments cuts the arguments without regard to escapes, as real services do.
func (c Call) fragments(cut bool) []string {
	size := c.Fragment
	if size <= 0 {
		size = 4
	}
	runes := []rune(c.arguments())
	if cut {
		runes = runes[:len(runes)/2]
	}
	var pieces []string
	for len(runes) > 0 {
		n := min(size, len(runes))
		pieces = append(pieces, string(runes[:n]))
		runes = runes[n:]
	}
	return pieces
}
