// Package toolserver has servers of the Model Context Protocol whose tools code in sandboxes may call. This process runs them, or holds connections to them: how they are reached, and what
// they need to be allowed in, stays here. The code sends names and arguments, and gets results.
//
// The protocol is that of github.com/modelcontextprotocol/go-sdk, in the versions from 2024-11-05 to 2026-07-28, over standard input and output and streamable HTTP; see
// https://modelcontextprotocol.io/specification. What a server says is hostile: everything of it is bounded, and nothing of it is interpreted here but the protocol.
package toolserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/llm/tool"
)

const (
	usualTimeout = time.Minute
	usualIdle    = 10 * time.Minute
	usualAtOnce  = 8
	// notSent is the code of the SDK's own error for requests that its transport could not send, or got no answer to.
	notSent = -32005
	// Calls that may be under way, those that wait for a server included.
	mostCalls        = 512
	mostProjectCalls = 256
	mostKeyCalls     = 128
)

// Options are what servers are made of.
type Options struct {
	Servers   []Config
	Getenv    func(string) string
	Log       *slog.Logger         // nil: nothing is logged
	Telemetry *telemetry.Telemetry // nil: nothing is counted
	Version   string               // of this program, which servers are told
}

// Servers are all that are set up. They implement hub.ToolServers.
type Servers struct {
	byName  map[string]*server
	names   []string
	seen    *telemetry.Telemetry
	end     context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	underWay map[string]int // calls by project and by key; "": all
}

// New returns servers. None is started before it is used.
func New(o Options) *Servers {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	life, end := context.WithCancel(context.Background())
	all := &Servers{byName: map[string]*server{}, seen: o.Telemetry, end: end, underWay: map[string]int{}}
	for _, c := range o.Servers {
		c.Timeout, c.Idle, c.AtOnce = cmp.Or(c.Timeout, usualTimeout), cmp.Or(c.Idle, usualIdle), cmp.Or(c.AtOnce, usualAtOnce)
		scrub := newScrubber(c.secrets)
		all.byName[c.Name] = &server{
			Config: c, getenv: o.Getenv, log: slog.New(scrubbing{o.Log.Handler(), scrub}).With("tool_server", c.Name), version: o.Version, scrub: scrub, slots: make(chan struct{}, c.AtOnce),
			life: life, running: &all.running,
		}
		all.names = append(all.names, c.Name)
	}
	slices.Sort(all.names)
	return all
}

// Close ends all servers and connections, and the calls that are under way. It returns when no process of theirs is left.
func (a *Servers) Close() {
	a.end()
	for _, s := range a.byName {
		s.finish()
	}
	a.running.Wait()
}

func (a *Servers) of(project, name string) (*server, error) {
	s := a.byName[name]
	if s == nil || !s.allows(project) {
		return nil, problem.New(problem.ToolServerNotFound, fmt.Sprintf("there is no tool server %.60q for this project", name)).
			WithHint("GET /api/v1/tool-servers lists those that there are")
	}
	return s, nil
}

// Offer implements hub.ToolServers.
func (a *Servers) Offer(ctx context.Context, project string, names []string) ([]tool.Tool, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	servers := make([]*server, len(names))
	for i, name := range names {
		var err error
		if servers[i], err = a.of(project, name); err != nil {
			return nil, err
		}
	}
	lists, errs := make([]*list, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { lists[i], errs[i] = s.offer(ctx) })
	}
	all.Wait()
	var out []tool.Tool
	for i := range lists {
		if errs[i] != nil {
			return nil, errs[i]
		}
		out = append(out, lists[i].tools...)
	}
	return out, nil
}

func (s *server) offer(ctx context.Context) (*list, error) {
	c, release, err := s.use(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return s.tools(ctx, c)
}

// List implements hub.ToolServers.
func (a *Servers) List(ctx context.Context, project string) []tool.Server {
	var out []tool.Server
	var servers []*server
	for _, name := range a.names {
		if s := a.byName[name]; s.allows(project) {
			servers = append(servers, s)
			out = append(out, tool.Server{Name: name, Description: s.Description})
		}
	}
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			l, err := s.offer(ctx)
			if err != nil {
				out[i].Problem = problem.Of(err)
				return
			}
			out[i].Tools, out[i].Without = l.tools, l.without
		})
	}
	all.Wait()
	return out
}

// Call implements hub.ToolServers.
func (a *Servers) Call(ctx context.Context, project, key string, call tool.Call) tool.Result {
	name, ours, _ := strings.Cut(call.Name, ".")
	s, err := a.of(project, name)
	if err != nil {
		return tool.Failed(problem.Of(err).Message)
	}
	leave, ok := a.enter(project, key)
	if !ok {
		return tool.Failed("too many calls of tools are under way; wait for some of them")
	}
	defer leave()
	r := s.call(ctx, ours, call.Arguments)
	outcome := "ok"
	if r.Err != "" {
		outcome = "failed"
	}
	if a.seen != nil {
		a.seen.Count(telemetry.ToolCalls, 1, name, outcome)
	}
	return r
}

// enter counts a call in, if it may be made.
func (a *Servers) enter(project, key string) (leave func(), ok bool) {
	bounds := map[string]int{"": mostCalls, "project " + project: mostProjectCalls, "key " + project + key: mostKeyCalls}
	a.mu.Lock()
	defer a.mu.Unlock()
	for what, most := range bounds {
		if a.underWay[what] >= most {
			return nil, false
		}
	}
	for what := range bounds {
		a.underWay[what]++
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for what := range bounds {
			if a.underWay[what]--; a.underWay[what] == 0 {
				delete(a.underWay, what)
			}
		}
	}, true
}

// call has the server perform a call. It is made once: one that was lost is not made again, since nobody knows whether it was performed.
func (s *server) call(ctx context.Context, ours string, arguments json.RawMessage) tool.Result {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	late := func(doing string) tool.Result {
		if whole.Err() != nil {
			return tool.Failed("the code that called has ended")
		}
		return tool.Failed(fmt.Sprintf("%s for longer than %s, which is what a call may take", doing, s.Timeout))
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return late(fmt.Sprintf("it waited behind others for the tool server %s", s.Name))
	}
	c, release, err := s.use(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return late(fmt.Sprintf("it waited for the tool server %s to start", s.Name))
		}
		return tool.Failed(problem.Of(err).Message)
	}
	theirs, known := c.tools.Load().named[ours]
	if !known || !s.offers(theirs) {
		release()
		return tool.Failed("the server does not have this tool any more")
	}
	done := make(chan tool.Result, 1)
	go func() {
		defer release()
		done <- s.perform(ctx, c, theirs, arguments)
	}()
	select {
	case r := <-done:
		return r
	case <-ctx.Done():
	}
	select { // it may have ended at the same time
	case r := <-done:
		if r.Err == "" {
			return r
		}
	default:
		time.AfterFunc(returnPatience, func() {
			if len(done) == 0 {
				c.guard.die(errors.New("it does not take in what it is told"))
			}
		})
	}
	if whole.Err() == nil {
		s.mu.Lock()
		if !s.over {
			s.running.Go(func() { s.probe(c) })
		}
		s.mu.Unlock()
	}
	return late("it went on")
}

// probe ends a connection whose server, after a call that took too long, does not answer a ping either: it stands still, and every call that follows would wait in vain. The next call starts it anew.
func (s *server) probe(c *connection) {
	if !c.probing.CompareAndSwap(false, true) {
		return
	}
	defer c.probing.Store(false)
	ctx, cancel := context.WithTimeout(c.guard.life, min(pingPatience, s.Timeout))
	defer cancel()
	err := c.session.Ping(ctx, nil)
	if said, answered := errors.AsType[*jsonrpc.Error](err); err == nil || answered && said.Code != notSent {
		return
	}
	c.guard.die(errHangs)
}

// perform makes a call on a connection. What the server says in an error is the code's to read, without secrets.
func (s *server) perform(ctx context.Context, c *connection, theirs string, arguments json.RawMessage) tool.Result {
	k := &kept{empty: json.RawMessage(`{"content":[]}`)}
	_, err := c.session.CallTool(keeping(ctx, k), &sdk.CallToolParams{Name: theirs, Arguments: arguments})
	switch said := (*jsonrpc.Error)(nil); {
	case err == nil && k.raw != nil:
		r := result(k.raw)
		if r.Err != "" {
			return tool.Failed(s.scrub.text(r.Err))
		}
		r.Value = json.RawMessage(s.scrub.text(string(r.Value)))
		return r
	case errors.As(err, &said) && said.Code == unreadable:
		return tool.Failed(fmt.Sprintf("the tool server %s gave an answer that cannot be read: %s", s.Name, s.scrub.text(said.Message)))
	case errors.As(err, &said) && said.Code != notSent:
		return tool.Failed("the server says: " + s.scrub.text(cut(said.Message, longestDescription)))
	case ctx.Err() != nil:
		return tool.Failed("its time is over") // call says it better
	}
	s.log.Warn("a call was lost", "tool", theirs, "error", fmt.Sprint(err), "why", fmt.Sprint(context.Cause(c.guard.life)))
	if why := context.Cause(c.guard.life); errors.Is(why, errTooLarge) || errors.Is(why, errUnreadable) || errors.Is(why, errAsksTooMuch) || errors.Is(why, errHangs) {
		return tool.Failed(fmt.Sprintf("the tool server %s does not keep to the protocol: %v; its connection was ended, and the next call makes another; whether this call was performed is not known", s.Name, why))
	}
	return tool.Failed(fmt.Sprintf("the tool server %s failed to answer, ended, or lost its connection in the middle of the call; whether the call was performed is not known, and it is not made again", s.Name))
}
