package toolserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/core/problem"
)

const (
	// startPatience is how long a server has to start, to greet and to list its tools: some are downloaded when they start.
	startPatience = time.Minute
	// againAfter is how long a server that did not start is not tried again; twice as long after each further time, up to seldomAfter.
	againAfter  = 2 * time.Second
	seldomAfter = time.Minute
	// pingPatience is how long a server may take to answer a ping after a call that took too long, where a call may take as long.
	pingPatience = 10 * time.Second
	// returnPatience is how long the SDK may hold a call whose time is over, before its connection is given up.
	returnPatience = 15 * time.Second
)

// server is one that is set up. Its connection is made when somebody needs it, and again when it was lost.
type server struct {
	Config
	getenv  func(string) string
	log     *slog.Logger
	version string // of this program
	scrub   scrubber
	slots   chan struct{} // held by calls that the server performs
	life    context.Context
	running *sync.WaitGroup

	mu      sync.Mutex
	over    bool // no connection is made any more
	now     *connection
	making  chan struct{} // closed when the attempt is over that is under way
	failure error         // of the last attempt
	again   time.Time     // when the next may be made
	pause   time.Duration // until then
}

// connection is one that a server has answered on.
type connection struct {
	guard   *guard
	session *sdk.ClientSession
	program *program // nil: HTTP
	carrier *carrier // nil: a program
	stale   atomic.Bool
	probing atomic.Bool // somebody finds out whether the server still answers

	// The server's mu guards these.
	users int
	idle  *time.Timer

	listing chan struct{} // held by who reads the list of tools
	tools   atomic.Pointer[list]
}

// use returns a connection, until release. Problems: tool_server_unreachable, tool_server_invalid.
func (s *server) use(ctx context.Context) (c *connection, release func(), err error) {
	for {
		s.mu.Lock()
		switch {
		case s.over:
			s.mu.Unlock()
			return nil, nil, s.unreachable("this process ends", nil)
		case s.now != nil && s.now.guard.life.Err() == nil:
			c := s.now
			c.users++
			c.idle.Stop()
			s.mu.Unlock()
			return c, func() { s.release(c) }, nil
		case s.failure != nil && time.Now().Before(s.again):
			err := s.failure
			s.mu.Unlock()
			return nil, nil, err
		case s.making == nil:
			s.making = make(chan struct{})
			s.running.Go(s.connect)
		}
		making := s.making
		s.mu.Unlock()
		select {
		case <-making:
		case <-ctx.Done():
			return nil, nil, s.unreachable("it takes longer to start than is waited for", context.Cause(ctx))
		}
	}
}

// finish has no further connection be made.
func (s *server) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

func (s *server) release(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.users--; c.users == 0 {
		c.idle.Reset(s.Idle)
	}
}

// connect makes a connection for all who wait for one.
func (s *server) connect() {
	ctx, cancel := context.WithTimeout(s.life, startPatience)
	defer cancel()
	c, err := s.open(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.pause = 0
		s.now = c
		c.idle = time.AfterFunc(s.Idle, func() { s.drop(c, true) })
		s.running.Go(func() { s.watch(c) })
	} else {
		s.pause = max(againAfter, min(2*s.pause, seldomAfter))
		s.again = time.Now().Add(s.pause)
		s.log.Warn("a tool server cannot be reached", "error", err)
	}
	s.failure = err
	close(s.making)
	s.making = nil
}

// drop has nobody use a connection from now on; ifIdle: unless somebody does.
func (s *server) drop(c *connection, ifIdle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ifIdle && c.users > 0 {
		return
	}
	if s.now == c {
		s.now = nil
	}
	c.idle.Stop()
	c.guard.die(errEnded)
}

// watch waits for the end of a connection, and clears away what it leaves.
func (s *server) watch(c *connection) {
	select {
	case <-c.guard.life.Done():
	case <-s.life.Done():
	}
	s.drop(c, false)
	s.log.Info("a connection to a tool server has ended", "why", s.scrub.text(fmt.Sprint(context.Cause(c.guard.life))))
	c.close()
}

// close ends the connection, and waits until no process of its is left.
func (c *connection) close() {
	if c.program != nil {
		_ = c.program.Close() // first: the SDK's Close waits for what is under way
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = c.session.Close()
	}()
	select {
	case <-closed:
	case <-time.After(returnPatience):
	}
	if c.program != nil {
		c.program.wait()
	}
	if c.carrier != nil {
		c.carrier.next.CloseIdleConnections()
	}
}

// open connects and reads the tools.
func (s *server) open(ctx context.Context) (*connection, error) {
	c := &connection{listing: make(chan struct{}, 1)}
	c.guard = newGuard(func(ctx context.Context) (sdk.Connection, error) {
		if s.Command == "" {
			return c.carrier.dial(ctx)
		}
		var err error
		c.program, err = start(s.Config, s.getenv, s.log)
		return c.program, err
	})
	if s.Command == "" {
		var err error
		if c.carrier, err = newCarrier(s.Config, func() string {
			if v := c.guard.version.Load(); v != nil {
				return *v
			}
			return ""
		}); err != nil {
			return nil, s.unreachable(err.Error(), err)
		}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "cove", Version: s.version}, &sdk.ClientOptions{
		Logger: slog.New(slog.DiscardHandler), Capabilities: &sdk.ClientCapabilities{}, MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { c.stale.Store(true) },
	})
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c.session, err = client.Connect(ctx, c.guard, nil); err == nil {
			_, err = s.tools(ctx, c)
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
		c.guard.die(context.Cause(ctx))
		<-done // a write ends after writePatience
	}
	if err == nil {
		return c, nil
	}
	cause := err
	if why := context.Cause(c.guard.life); why != nil && ctx.Err() == nil {
		cause = why
	}
	c.guard.die(errEnded)
	if c.session != nil {
		c.close()
	} else if c.program != nil {
		_ = c.program.Close()
		c.program.wait()
	}
	return nil, s.explain(ctx, c, cause)
}

// explain says why a server cannot be used, in words that show nothing of how it is reached.
func (s *server) explain(ctx context.Context, c *connection, cause error) error {
	var known *problem.Error
	refused := 0
	if c.carrier != nil {
		refused = int(c.carrier.refused.Load())
	}
	switch {
	case errors.As(cause, &known):
		return known
	case s.life.Err() != nil:
		return s.unreachable("this process ends", cause)
	case ctx.Err() != nil:
		return s.unreachable(fmt.Sprintf("it has not answered within %.0f s", startPatience.Seconds()), cause)
	case errors.Is(cause, errTooLarge), errors.Is(cause, errUnreadable), errors.Is(cause, errAsksTooMuch):
		return s.invalid(cause.Error(), cause)
	case refused == http.StatusUnauthorized || refused == http.StatusForbidden:
		return s.unreachable("it does not let this server in: its credentials are missing or wrong", cause)
	case refused != 0:
		return s.unreachable(fmt.Sprintf("it answers with the status %d", refused), cause)
	case c.carrier != nil:
		return s.unreachable("nothing that speaks the protocol answers at its address", cause)
	case c.program == nil:
		return s.unreachable("its program cannot be started", cause)
	}
	return s.unreachable("its program does not start, ends, or does not speak the protocol", cause)
}

func (s *server) unreachable(why string, cause error) error {
	return problem.New(problem.ToolServerUnreachable, fmt.Sprintf("the tool server %s cannot be used: %s", s.Name, why)).
		WithHint("try again in a moment").WithCause(s.hide(cause))
}

func (s *server) invalid(why string, cause error) error {
	return problem.New(problem.ToolServerInvalid, fmt.Sprintf("the tool server %s does not keep to the protocol: %s", s.Name, why)).WithHint("tell the operator").WithCause(s.hide(cause))
}

// hide returns an error whose words have no secret of the server's.
func (s *server) hide(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(s.scrub.text(err.Error()))
}
