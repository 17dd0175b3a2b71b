// Package mcp is cove as a server of the Model Context Protocol, at /mcp, as a translation onto the hub: a model that speaks it gets a Python that remembers.
//
// It speaks the versions of the protocol from 2024-11-05 to 2026-07-28 over streamable HTTP, as github.com/modelcontextprotocol/go-sdk has them. A session of cove's is named in the arguments
// of a tool; sessions of the protocol, which newer versions do not have, are only for older clients whose users can be asked. Each request is its caller's alone.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/http/protocol"
	"cove/internal/python/installation"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Sessions are where code runs, with their files and packages.
type Sessions interface {
	CreateSession(ctx context.Context, who auth.Principal, n hub.NewSession) (hub.Session, error)
	DeleteSession(ctx context.Context, who auth.Principal, id string) error
	Sessions(ctx context.Context, who auth.Principal, f hub.SessionFilter, p hub.Page) (hub.Listing[hub.Session], error)
	Tree(ctx context.Context, who auth.Principal, session string, write bool, use func(context.Context, hub.Tree) error) error
	Install(ctx context.Context, who auth.Principal, session string, requirements []string, told func(installation.Progress)) (installation.Provision, error)
}

// Code is what runs in a session's kernel.
type Code interface {
	StartExecution(ctx context.Context, who auth.Principal, n hub.NewExecution) (hub.Execution, error)
	InterruptExecution(ctx context.Context, who auth.Principal, id string) (hub.Execution, error)
	Follow(ctx context.Context, who auth.Principal, id string, after int64) (hub.Follower[json.RawMessage], error)
}

// Hub is what this surface needs of the server. *hub.Hub has it.
type Hub interface {
	Sessions
	Code
}

// Options say what the surface stands on. Zero fields but Hub take their defaults.
type Options struct {
	Hub       Hub
	Log       *slog.Logger
	Version   string
	MaxBody   int64         // bytes of a request; 8 MiB
	MaxOutput int64         // bytes of text that an answer has; 64 KiB
	Timeout   time.Duration // wall clock of an execution; 5 minutes
	Idle      time.Duration // without use after which a session that is made here is paused; 5 minutes
	Home      string        // sessions of other homes are not listed; "": all are
	OAuth     *OAuth        // nil: keys alone
	Private   bool          // the client's user is the operator, who is told of failures with all details
}

type server struct {
	Options
	protocol *sdk.Server
	open     visits
	waiting  waiting
}

const at = "/mcp"

// Surfaces returns the interface as the server's front door takes it, and beside it what says whose access tokens it takes.
func Surfaces(o Options) []protocol.Surface {
	var routes []protocol.Route
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} { // the last two are of older clients, which hear that there is nothing
		routes = append(routes, protocol.Route{Method: method, Pattern: at})
	}
	out := protocol.Surface{
		About: "a server of the Model Context Protocol", Prefix: at, Only: func(r *http.Request) bool { return r.URL.Path == at },
		Handler: New(o), Routes: routes, Refuse: o.OAuth.refuse,
	}
	if o.OAuth != nil {
		out.Tokens = o.OAuth.Caller
	}
	return []protocol.Surface{out, o.OAuth.metadata()}
}

// New returns the handler. The caller must be in the request's context, as auth.With puts it there.
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &server{Options: o}
	s.MaxBody = cmp.Or(o.MaxBody, 8<<20)
	s.MaxOutput = cmp.Or(o.MaxOutput, 64<<10)
	s.Timeout = cmp.Or(o.Timeout, 5*time.Minute)
	s.Idle = cmp.Or(o.Idle, 5*time.Minute)
	s.protocol = s.speaks()
	return s.door()
}

const instructions = `A Python that remembers, in a sandbox: variables, imports and files of a session stay between calls. Leave the session out of the first call of python; the answer names a new one, which the next calls pass on.
Packages are installed when code imports them. Figures that are shown come back as pictures; files that code writes are named, and can be read with read_file or as resources. The last expression of the code is its result.`

// speaks returns what answers the protocol's messages, for all callers: a request says whose it is.
func (s *server) speaks() *sdk.Server {
	out := sdk.NewServer(&sdk.Implementation{Name: "cove", Title: "cove, a code interpreter", Version: s.Version}, &sdk.ServerOptions{
		Instructions: instructions, Logger: s.Log,
		// The tools are always the same. There are no prompts, which is the answer to those who ask for them.
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}, Prompts: &sdk.PromptCapabilities{}},
	})
	for _, t := range s.all() {
		out.AddTool(&t.Tool, func(ctx context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			from, err := whose(q.Extra)
			if err != nil {
				return nil, err
			}
			ctx, over := until(ctx, from.Context)
			defer over()
			c := &call{Context: ctx, who: from.who, request: q, arguments: q.Params.Arguments}
			answer, err := t.perform(c)
			if err != nil {
				return s.failed(c, t.Name, err), nil
			}
			return answer, nil
		})
	}
	out.AddResourceTemplate(&sdk.ResourceTemplate{Name: "file", Title: "A file of a session", URITemplate: scheme + "{session}/{+path}", Description: "What code has written, or was put there."},
		func(ctx context.Context, q *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			from, err := whose(q.Extra)
			if err != nil {
				return nil, err
			}
			ctx, over := until(ctx, from.Context)
			defer over()
			return s.resource(ctx, from.who, q.Params.URI)
		})
	return out
}

// caller is who made a request; its context ends with the request.
type caller struct {
	context.Context
	who auth.Principal
}

// callerName is where the caller is among what the protocol's library knows of a request.
const callerName = "caller"

// whose returns the caller of a message.
func whose(of *sdk.RequestExtra) (caller, error) {
	if of != nil && of.TokenInfo != nil {
		if from, ok := of.TokenInfo.Extra[callerName].(caller); ok {
			return from, nil
		}
	}
	return caller{}, problem.New(problem.Unauthenticated, "a key is needed")
}

// known tells the protocol's library whose a request is. The front door has looked at the key already.
func known(ctx context.Context, _ string, _ *http.Request) (*sdkauth.TokenInfo, error) {
	who, ok := auth.From(ctx)
	if !ok {
		return nil, sdkauth.ErrInvalidToken
	}
	return &sdkauth.TokenInfo{UserID: owner(who), Extra: map[string]any{callerName: caller{ctx, who}}}, nil
}

// owner names whose a session of the protocol, or code that waits, is.
func owner(who auth.Principal) string { return who.Project + " " + who.User + " " + who.Key }

// until returns a context that ends with either of two.
func until(ctx, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(other, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// call is a call of a tool.
type call struct {
	context.Context
	who       auth.Principal
	request   *sdk.CallToolRequest
	arguments json.RawMessage
	said      float64 // of progress
}

// into reads the arguments. What is not in the schema of a tool is refused.
func (c *call) into(v any) error {
	if len(c.arguments) == 0 {
		c.arguments = json.RawMessage("{}")
	}
	if err := json.Unmarshal(c.arguments, v); err != nil {
		return problem.New(problem.InvalidRequest, "the arguments are not what the tool takes: "+bodybudget.WhyNotJSON(err))
	}
	return nil
}

// tell tells a client that has asked for it how far the call is.
func (c *call) tell(message string) {
	token := c.request.Params.GetProgressToken()
	if token == nil {
		return
	}
	c.said++
	_ = c.request.Session.NotifyProgress(c, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: c.said, Message: message}) // nobody may be there any more
}

// tellMeanwhile tells the same again and again, until the caller calls over.
func (c *call) tellMeanwhile(message string) (over func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(patience); ; {
			select {
			case <-tick.C:
				c.tell(message)
			case <-stop:
				tick.Stop()
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

// failed is the answer for a call that came to nothing. A model can read it and do better.
func (s *server) failed(c *call, name string, err error) *sdk.CallToolResult {
	p, less := problem.Public(err)
	if (p.Kind == problem.Internal || less) && c.Err() == nil {
		s.Log.ErrorContext(c, "a tool failed", "tool", name, "request", c.who.Request, "error", err)
	}
	text := p.Message
	if s.Private {
		p = problem.Of(err)
		text = p.Error()
	}
	if p.Hint != "" {
		text += "; " + p.Hint
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}
