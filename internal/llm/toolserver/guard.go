package toolserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"
)

const (
	// unaskedASecond and unaskedAtOnce bound what a server may say without being asked: messages, each KiB counting as one. What is beyond waits in the server.
	unaskedASecond = 1000
	unaskedAtOnce  = 5000
	// mostAsked is how many requests of a server may be without an answer.
	mostAsked = 16
)

var (
	errAsksTooMuch = errors.New("it asks for more at one time than is answered")
	errHangs       = errors.New("after a call that took too long it answered nothing any more")
	errEnded       = errors.New("it has ended")
)

// guard is a connection that a server cannot make hold more than its bounds. The SDK keeps each message that it does not expect until it has come to it, without a bound; so it gets
// only those that it needs. It is a Transport for one connection, too.
//
// It also keeps results as the server wrote them: the SDK's reading of them would change numbers and the order of fields, and take many times their size.
type guard struct {
	dial  func(ctx context.Context) (sdk.Connection, error)
	inner sdk.Connection
	life  context.Context // until die
	end   context.CancelCauseFunc
	pace  *rate.Limiter
	asked atomic.Int32

	version atomic.Pointer[string] // of the protocol, as soon as the server has said it; for HTTP

	mu      sync.Mutex
	results map[jsonrpc.ID]*kept // of requests without an answer
}

// kept is where the result of a request goes.
type kept struct {
	raw   json.RawMessage
	empty json.RawMessage // what the SDK gets in its place; nil: the result, too
}

type keptKey struct{}

// keeping returns a context with which a request leaves its result in k.
func keeping(ctx context.Context, k *kept) context.Context {
	return context.WithValue(ctx, keptKey{}, k)
}

func newGuard(dial func(ctx context.Context) (sdk.Connection, error)) *guard {
	g := &guard{dial: dial, pace: rate.NewLimiter(unaskedASecond, unaskedAtOnce), results: map[jsonrpc.ID]*kept{}}
	g.life, g.end = context.WithCancelCause(context.Background())
	return g
}

// die ends the connection: who waits for an answer hears why.
func (g *guard) die(why error) { g.end(why) }

// Connect implements the SDK's Transport.
func (g *guard) Connect(ctx context.Context) (sdk.Connection, error) {
	inner, err := g.dial(ctx)
	g.inner = inner
	return g, err
}

// Read implements the SDK's Connection.
func (g *guard) Read(context.Context) (jsonrpc.Message, error) {
	for {
		m, err := g.inner.Read(g.life)
		if g.life.Err() != nil {
			return nil, context.Cause(g.life)
		}
		if err != nil {
			g.die(err)
			return nil, err
		}
		switch m := m.(type) {
		case *jsonrpc.Response:
			g.keep(m)
			return m, nil
		case *jsonrpc.Request:
			if err := g.pace.WaitN(g.life, min(1+len(m.Params)>>10, unaskedAtOnce)); err != nil {
				return nil, context.Cause(g.life)
			}
			if m.IsCall() && g.asked.Add(1) > mostAsked {
				g.die(errAsksTooMuch)
				return nil, errAsksTooMuch
			}
			if m.IsCall() || wanted(m.Method) {
				return m, nil
			}
		}
	}
}

// wanted says whether a notification is for the SDK: neither progress nor log messages, which may be many, are.
func wanted(method string) bool {
	return method == "notifications/tools/list_changed" || strings.HasPrefix(method, "notifications/subscriptions/")
}

// keep takes the result of a request that is to be kept.
func (g *guard) keep(r *jsonrpc.Response) {
	g.mu.Lock()
	k := g.results[r.ID]
	delete(g.results, r.ID)
	g.mu.Unlock()
	if k != nil && r.Error == nil {
		k.raw = r.Result
		if k.empty != nil {
			r.Result = k.empty
		}
	}
	if g.version.Load() == nil {
		var said struct {
			Version string `json:"protocolVersion"`
		}
		if json.Unmarshal(r.Result, &said) == nil && said.Version != "" && len(said.Version) < 40 {
			g.version.Store(&said.Version)
		}
	}
}

// Write implements the SDK's Connection.
func (g *guard) Write(ctx context.Context, m jsonrpc.Message) error {
	if g.life.Err() != nil {
		return context.Cause(g.life)
	}
	switch m := m.(type) {
	case *jsonrpc.Response:
		g.asked.Add(-1)
	case *jsonrpc.Request:
		if k, ok := ctx.Value(keptKey{}).(*kept); ok && m.IsCall() {
			g.mu.Lock()
			g.results[m.ID] = k
			g.mu.Unlock()
			context.AfterFunc(ctx, func() { // which ends with the request
				g.mu.Lock()
				delete(g.results, m.ID)
				g.mu.Unlock()
			})
		}
	}
	return g.inner.Write(ctx, m)
}

// Close implements the SDK's Connection.
func (g *guard) Close() error {
	g.die(errEnded)
	return g.inner.Close()
}

// SessionID implements the SDK's Connection.
func (g *guard) SessionID() string { return g.inner.SessionID() }
