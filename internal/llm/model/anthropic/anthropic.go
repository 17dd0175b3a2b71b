// Package anthropic talks to Anthropic's Messages and to servers that are compatible with it.
package anthropic

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
)

// DefaultBaseURL is Anthropic's own service.
const DefaultBaseURL = "https://api.anthropic.com"

// DefaultMaxTokens bounds an answer when the request does not; the wire format demands a bound.
const DefaultMaxTokens = 16000

// Options name a model and the service that runs it.
type Options struct {
	Name    string // PROVIDER/NAME, as --model takes it; "anthropic/" and Model when empty
	Model   string // the name that the service knows
	BaseURL string // without the version; DefaultBaseURL when empty
	APIKey  string
	Images  model.Sight
	Limits  model.Limits
	// HTTPClient replaces http.DefaultClient, whose connections all models of the process share.
	HTTPClient *http.Client
}

// New returns the model. It does not connect; a wrong base URL is told by the first Stream.
func New(opts Options) model.Model {
	if opts.BaseURL == "" {
		opts.BaseURL = DefaultBaseURL
	}
	// The SDK adds the version itself, and people add it out of habit.
	opts.BaseURL = strings.TrimSuffix(strings.TrimRight(opts.BaseURL, "/"), "/v1")
	if opts.Name == "" {
		opts.Name = "anthropic/" + opts.Model
	}
	if opts.HTTPClient == nil {
		opts.HTTPClient = http.DefaultClient
	}
	a := &adapter{
		opts: opts,
		sees: opts.Images.Sees(opts.Model),
		provider: model.Provider{
			Name: opts.Name, Model: opts.Model, BaseURL: opts.BaseURL, Secret: opts.APIKey,
			KeyVariable: "ANTHROPIC_API_KEY", URLVariable: "ANTHROPIC_BASE_URL",
			BaseURLHint: "it has no /v1 at the end",
			ListHint: "list the models with `curl -H \"x-api-key: $ANTHROPIC_API_KEY\" -H \"anthropic-version: 2023-06-01\" " +
				opts.BaseURL + "/v1/models` and choose one with --model anthropic/NAME",
		},
	}
	settings := []option.RequestOption{
		option.WithBaseURL(opts.BaseURL), option.WithHTTPClient(opts.HTTPClient), option.WithMaxRetries(0),
	}
	if opts.APIKey != "" {
		settings = append(settings, option.WithAPIKey(opts.APIKey))
	}
	a.messages = sdk.NewMessageService(settings...)
	return model.Guard(a.provider, model.Capabilities{Tools: true, Images: a.sees}, opts.Limits, a.attempt)
}

type adapter struct {
	opts     Options
	provider model.Provider
	sees     bool
	messages sdk.MessageService
}

func (a *adapter) attempt(ctx context.Context, req model.Request, watch *model.Watch, emit func(model.Part) bool) error {
	if failure := a.provider.CheckBaseURL(); failure != nil {
		return failure
	}
	var reply *model.Reply
	stream := a.messages.NewStreaming(ctx, a.params(req), option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
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
		return a.provider.Rejected(*reply)
	}
	return a.read(stream, emit)
}

func (a *adapter) read(stream *ssestream.Stream[sdk.MessageStreamEventUnion], emit func(model.Part) bool) error {
	answer := &answer{open: map[int64]int{}}
	for stream.Next() {
		event := stream.Current()
		if part := answer.take(event); part != nil && !emit(part) {
			return nil
		}
		if event.Type == "message_stop" {
			break
		}
	}
	if answer.reason == "" {
		return a.failure(stream.Err())
	}
	if answer.reason == sdk.StopReasonPauseTurn {
		return &model.Failure{Problem: problem.New(problem.ModelPaused, a.opts.Model+" paused in the middle of its answer").
			WithHint("ask again, or choose another model with --model")}
	}
	finish, err := answer.finish()
	if err != nil {
		return a.provider.Truncated(err)
	}
	emit(finish)
	return nil
}

func (a *adapter) failure(err error) error {
	if inStream, ok := errors.AsType[*sdk.Error](err); ok {
		return a.provider.InStream(inStream.RawJSON())
	}
	return a.provider.Broken(err)
}
