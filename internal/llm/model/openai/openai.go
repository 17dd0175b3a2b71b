// Package openai talks to OpenAI and to every server that is compatible with its Chat Completions: Ollama, vLLM,
// llama.cpp, DeepSeek, Qwen, Gemini's compatible endpoint and others, with their deviations.
package openai

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"cove/internal/llm/model"
)

// DefaultBaseURL is OpenAI's own service.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options name a model and the service that runs it.
type Options struct {
	Name    string // PROVIDER/NAME, as --model takes it; "openai/" or "ollama/" and Model when empty
	Model   string // the name that the service knows
	BaseURL string // with the version, e.g. "http://127.0.0.1:8000/v1"; DefaultBaseURL when empty
	APIKey  string // may be empty where the service wants none
	Ollama  bool   // the service is Ollama: what is said about failures names its commands
	Images  model.Sight
	Limits  model.Limits
	// HTTPClient replaces http.DefaultClient, whose connections all models of the process share.
	HTTPClient *http.Client
}

// OllamaBaseURL is the base URL for a value of OLLAMA_HOST, which may lack scheme and port, or be empty. A server that
// listens on every address is called on this machine.
func OllamaBaseURL(host string) string {
	host = strings.TrimSpace(host)
	if host == "" {
		host = "127.0.0.1"
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	u, err := url.Parse(host)
	if err != nil {
		return host
	}
	name, port := u.Hostname(), u.Port()
	if name == "0.0.0.0" || name == "::" || name == "" {
		name = "127.0.0.1"
	}
	if port == "" {
		port = "11434"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return u.Scheme + "://" + net.JoinHostPort(name, port) + strings.TrimSuffix(u.Path, "/") + "/v1"
}

// New returns the model. It does not connect; a wrong base URL is told by the first Stream.
func New(opts Options) model.Model {
	if opts.BaseURL == "" {
		opts.BaseURL = DefaultBaseURL
	}
	if opts.Name == "" {
		opts.Name = "openai/" + opts.Model
		if opts.Ollama {
			opts.Name = "ollama/" + opts.Model
		}
	}
	if opts.HTTPClient == nil {
		opts.HTTPClient = http.DefaultClient
	}
	a := &adapter{opts: opts, provider: provider(opts), sees: opts.Images.Sees(opts.Model)}
	a.own = strings.Contains(opts.BaseURL, "//api.openai.com")
	a.quirks.newTokenLimit.Store(a.own)
	settings := []option.RequestOption{
		option.WithBaseURL(opts.BaseURL), option.WithHTTPClient(opts.HTTPClient), option.WithMaxRetries(0),
	}
	if opts.APIKey != "" {
		settings = append(settings, option.WithAPIKey(opts.APIKey))
	}
	a.chat = openai.NewChatCompletionService(settings...)
	capabilities := model.Capabilities{Tools: true, Images: a.sees, Extra: !a.own}
	if opts.Ollama {
		a.window.free = make(chan struct{}, 1)
		capabilities.Window = a.tokensAtOnce
	}
	return model.Guard(a.provider, capabilities, opts.Limits, a.attempt)
}

func provider(opts Options) model.Provider {
	if opts.Ollama {
		return model.Provider{
			Name: opts.Name, Model: opts.Model, BaseURL: opts.BaseURL, URLVariable: "OLLAMA_HOST", Secret: opts.APIKey,
			BaseURLHint: "it is usually http://127.0.0.1:11434",
			StartHint:   "check that Ollama is running, or start it with `ollama serve`",
			ListHint:    "fetch it with `ollama pull " + opts.Model + "`, or see `ollama list` and choose another with --model ollama/NAME",
		}
	}
	return model.Provider{
		Name: opts.Name, Model: opts.Model, BaseURL: opts.BaseURL, Secret: opts.APIKey,
		KeyVariable: "OPENAI_API_KEY", URLVariable: "OPENAI_BASE_URL",
		BaseURLHint: "it usually ends in /v1",
		ListHint: "list the models with `curl -H \"Authorization: Bearer $OPENAI_API_KEY\" " +
			strings.TrimSuffix(opts.BaseURL, "/") + "/models` and choose one with --model openai/NAME",
	}
}

type adapter struct {
	opts     Options
	provider model.Provider
	sees     bool
	own      bool // the service is OpenAI's own
	chat     openai.ChatCompletionService
	quirks   quirks
	window   window // of Ollama's model
}

// quirks are what the service was found not to take. They are learned from its refusals and kept.
type quirks struct {
	noUsage       atomic.Bool // stream_options
	newTokenLimit atomic.Bool // max_completion_tokens in place of max_tokens
	noParallel    atomic.Bool // parallel_tool_calls, a wish that an answer without it fulfils as well
	noFormat      atomic.Bool // response_format, which the model was asked for in words as well
	noEffort      atomic.Bool // reasoning_effort, a wish as well
}

// learn reports whether the reply taught something that makes it worth asking again.
func (q *quirks) learn(r model.Reply, limited bool) bool {
	if r.Status != http.StatusBadRequest && r.Status != http.StatusUnprocessableEntity {
		return false
	}
	said := strings.ToLower(r.Body)
	if strings.Contains(said, "stream_options") || strings.Contains(said, "include_usage") {
		return q.noUsage.CompareAndSwap(false, true)
	}
	if strings.Contains(said, "parallel_tool_calls") {
		return q.noParallel.CompareAndSwap(false, true)
	}
	if strings.Contains(said, "reasoning_effort") || strings.Contains(said, "reasoning effort") {
		return q.noEffort.CompareAndSwap(false, true)
	}
	// What is wrong with the schema itself is for the client to know.
	if !strings.Contains(said, "invalid schema") && (strings.Contains(said, "response_format") || strings.Contains(said, "json_schema")) {
		return q.noFormat.CompareAndSwap(false, true)
	}
	if limited && strings.Contains(said, "max_tokens") && !q.newTokenLimit.Load() {
		return q.newTokenLimit.CompareAndSwap(false, true)
	}
	if limited && strings.Contains(said, "max_completion_tokens") && q.newTokenLimit.Load() {
		return q.newTokenLimit.CompareAndSwap(true, false)
	}
	return false
}

func (a *adapter) attempt(ctx context.Context, req model.Request, watch *model.Watch, emit func(model.Part) bool) error {
	if failure := a.provider.CheckBaseURL(); failure != nil {
		return failure
	}
	// Each refusal can teach one thing, and there are five to learn.
	for range 5 {
		reply, err := a.ask(ctx, req, watch, emit)
		if reply == nil || !a.quirks.learn(*reply, req.MaxTokens > 0) {
			return err
		}
	}
	_, err := a.ask(ctx, req, watch, emit)
	return err
}

// ask makes one HTTP request. The reply is not nil when the service answered with something else than a stream.
func (a *adapter) ask(ctx context.Context, req model.Request, watch *model.Watch, emit func(model.Part) bool) (*model.Reply, error) {
	var reply *model.Reply
	params := a.params(req)
	stream := a.chat.NewStreaming(ctx, params, option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { watch.Connected() }}
		res, err := next(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
		if err == nil {
			reply, res.Body = model.Inspect(res.StatusCode, res.Header, res.Body, watch)
		}
		return res, err
	}))
	defer func() { _ = stream.Close() }()
	if reply != nil {
		reply.Tools, reply.Images = len(req.Tools) > 0, a.sees && model.HasImages(req)
		return reply, a.provider.Rejected(*reply)
	}
	return nil, a.read(stream, req, emit)
}

// read passes the stream on. After the finish reason only the usage can be missing, so whatever happens then does
// not spoil the answer.
func (a *adapter) read(stream *ssestream.Stream[openai.ChatCompletionChunk], req model.Request, emit func(model.Part) bool) error {
	answer := newAnswer(req)
	for stream.Next() {
		for _, part := range answer.take(stream.Current()) {
			if !emit(part) {
				return nil
			}
		}
		if answer.complete() {
			break
		}
	}
	if answer.reason == "" {
		return a.failure(stream.Err())
	}
	for _, part := range spoken(answer.thought.rest()) {
		if !emit(part) {
			return nil
		}
	}
	finish, err := answer.finish()
	if err != nil {
		return a.provider.Truncated(err)
	}
	emit(finish)
	return nil
}

func (a *adapter) failure(err error) error {
	if inStream, ok := errors.AsType[*ssestream.StreamError](err); ok {
		return a.provider.InStream(string(inStream.Event.Data))
	}
	return a.provider.Broken(err)
}
