package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"unicode/utf16"
)

// Script decides what the service says. It is safe for concurrent use.
type Script struct {
	closing chan struct{}
	once    sync.Once

	mu       sync.Mutex
	turns    []Turn
	next     int
	decide   func(n int, r Request) Turn
	dialect  Dialect
	requests []Request
}

// NewScript returns a script that answers one request with each turn, in order. A request beyond the last turn gets
// status 400 and a message that says so.
func NewScript(turns ...Turn) *Script {
	return &Script{turns: turns, closing: make(chan struct{})}
}

// SetDialect sets how the service differs from the original, for turns that do not say it themselves.
func (s *Script) SetDialect(d Dialect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialect = d
}

// Decide makes f choose the turn for each request; n counts the requests that got a turn, from 0.
func (s *Script) Decide(f func(n int, r Request) Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decide = f
}

// Requests returns every request to a model so far, also those that a dialect rejected.
func (s *Script) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Left is how many turns have not been asked for.
func (s *Script) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.turns) - s.next
}

// Stop ends every hanging answer. The script stays usable otherwise.
func (s *Script) Stop() { s.once.Do(func() { close(s.closing) }) }

// Handler serves POST /v1/chat/completions and GET /v1/models of OpenAI, and POST /v1/messages of Anthropic.
func (s *Script) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, openAI{}) })
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, anthropic{}) })
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"scripted","object":"model","created":1,"owned_by":"modeltest"}]}`)
	})
	return mux
}

// Server is a script that listens on 127.0.0.1.
type Server struct {
	*Script
	*httptest.Server
}

// NewServer starts a server with a script of turns. Close it when done.
func NewServer(turns ...Turn) *Server { return Serve(NewScript(turns...)) }

// Serve starts a server for a script.
func Serve(s *Script) *Server {
	return &Server{Script: s, Server: httptest.NewServer(s.Handler())}
}

// Close stops the server, also answers that hang.
func (s *Server) Close() {
	s.Stop()
	s.Server.Close()
}

// OpenAIURL is the base URL for OpenAI clients.
func (s *Server) OpenAIURL() string { return s.URL + "/v1" }

// AnthropicURL is the base URL for Anthropic clients.
func (s *Server) AnthropicURL() string { return s.URL }

// OllamaHost is the value of OLLAMA_HOST that leads to this server.
func (s *Server) OllamaHost() string { return strings.TrimPrefix(s.URL, "http://") }

func (s *Script) serve(w http.ResponseWriter, r *http.Request, format wire) {
	req, err := readRequest(r)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	turn, dialect, rejection := s.take(req)
	if rejection != "" {
		writeError(w, http.StatusBadRequest, rejection)
		return
	}
	if turn.HangBeforeHeaders {
		s.hang(r)
		return
	}
	if turn.Disconnect {
		panic(http.ErrAbortHandler)
	}
	if turn.Status != 0 || turn.Body != "" {
		for name, value := range turn.Header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(max(turn.Status, 200))
		_, _ = io.WriteString(w, turn.Body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	p := &player{script: s, w: w, r: r, turn: turn, format: format}
	p.play(format.events(turn, dialect, req))
}

// take picks the turn for req; a rejection by the dialect does not use one up.
func (s *Script) take(req Request) (Turn, Dialect, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	if reason := s.dialect.rejects(req); reason != "" {
		return Turn{}, s.dialect, reason
	}
	n := s.next
	if s.decide == nil && n >= len(s.turns) {
		return Turn{}, s.dialect, fmt.Sprintf("modeltest: the script has %d turns and this is request %d", len(s.turns), n+1)
	}
	s.next++
	var turn Turn
	if s.decide != nil {
		turn = s.decide(n, req)
	} else {
		turn = s.turns[n]
	}
	dialect := s.dialect
	if turn.Dialect != nil {
		dialect = *turn.Dialect
	}
	return turn, dialect, ""
}

func (s *Script) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.closing:
	}
}

func (d Dialect) rejects(r Request) string {
	_, streamOptions := r.Body["stream_options"]
	_, parameter := r.Body[d.RejectParameter]
	switch {
	case d.RejectTools && len(r.Tools()) > 0:
		return r.Model() + " does not support tools"
	case d.RejectStreamOptions && streamOptions:
		return "Unrecognized request argument supplied: stream_options"
	case d.RejectImages && len(r.Images()) > 0:
		return "this model does not support image input"
	case d.RejectParameter != "" && parameter:
		return "Unsupported parameter: '" + d.RejectParameter + "' is not supported with this model."
	}
	return ""
}

func writeError(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": map[string]any{"message": message, "type": "invalid_request_error"}})
}

// Request is a request that the service got.
type Request struct {
	Path   string
	Header http.Header
	Body   map[string]any // the decoded JSON
}

func readRequest(r *http.Request) (Request, error) {
	req := Request{Path: r.URL.Path, Header: r.Header.Clone()}
	return req, json.NewDecoder(r.Body).Decode(&req.Body)
}

// Model is the model that was asked for.
func (r Request) Model() string {
	name, _ := r.Body["model"].(string)
	return name
}

// Messages are the messages as they came.
func (r Request) Messages() []map[string]any { return objects(r.Body["messages"]) }

// Tools are the names of the tools offered.
func (r Request) Tools() []string {
	var names []string
	for _, t := range objects(r.Body["tools"]) {
		if f, ok := t["function"].(map[string]any); ok {
			t = f
		}
		name, _ := t["name"].(string)
		names = append(names, name)
	}
	return names
}

// Asked returns what a user's message asks, without what cove tells below it of files and variables.
func Asked(message string) string {
	for _, head := range []string{"\n\nFiles in the working directory:\n", "\n\nNew or changed files in the working directory:\n", "\n\nVariables in the session:\n"} {
		message, _, _ = strings.Cut(message, head)
	}
	return message
}

// Text is every text in the system prompt and the messages, joined by newlines.
func (r Request) Text() string {
	var out []string
	walk([]any{r.Body["system"], r.Body["messages"]}, func(object map[string]any) {
		for _, key := range []string{"content", "text"} {
			if s, ok := object[key].(string); ok {
				out = append(out, s)
			}
		}
	})
	if s, ok := r.Body["system"].(string); ok {
		out = append(out, s)
	}
	return strings.Join(out, "\n")
}

// Images are the pictures in the messages, decoded, in order.
func (r Request) Images() [][]byte {
	var out [][]byte
	add := func(encoded string) {
		if data, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			out = append(out, data)
		}
	}
	walk(r.Body["messages"], func(object map[string]any) {
		if link, ok := object["image_url"].(map[string]any); ok {
			address, _ := link["url"].(string)
			if _, data, found := strings.Cut(address, ";base64,"); found {
				add(data)
			}
		}
		if source, ok := object["source"].(map[string]any); ok && object["type"] == "image" {
			data, _ := source["data"].(string)
			add(data)
		}
	})
	return out
}

func objects(v any) []map[string]any {
	list, _ := v.([]any)
	var out []map[string]any
	for _, item := range list {
		if object, ok := item.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}

// walk visits the objects in v from the outside in; lists keep their order.
func walk(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			walk(item, visit)
		}
	case map[string]any:
		visit(v)
		if content, ok := v["content"].([]any); ok {
			walk(content, visit)
		}
	}
}

func escape(r rune) string {
	if r < 0x10000 {
		return fmt.Sprintf(`\u%04x`, r)
	}
	high, low := utf16.EncodeRune(r)
	return fmt.Sprintf(`\u%04x\u%04x`, high, low)
}
