package app

import (
	"context"
	"io"
	"sync"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/sessions/ondisk"
	"cove/internal/sessions/template"
)

// When a session that a command's hub has made for its clients is saved behind its last use, and when it is paused: the command may be killed with its client, and other commands of the user's want
// the session.
const (
	ownSaved = 2 * time.Second
	ownIdle  = time.Minute
)

// ownSessions are those that the hub of a command makes for its clients.
type ownSessions struct {
	version  string
	cfg      config.Config
	base     ondisk.Base
	home     string // "" where nothing outlives the process
	engines  engines
	progress io.Writer

	making sync.Mutex // held by ahead, which would otherwise be told as another cove's work
	over   bool       // the command ends, and would not wait for what ahead has not made
}

func (s *ownSessions) prepare(ctx context.Context, b ondisk.Base) (*ondisk.Ground, error) {
	s.making.Lock()
	over := s.over
	s.making.Unlock()
	if over {
		return nil, problem.New(problem.GivenUp, "the command ended before a session was ready")
	}
	_, ground, err := prepareServed(ctx, s.version, s.cfg, &s.engines, b, s.progress)
	return ground, err
}

// ahead makes what the first session needs: the engine's helper each time, and on a new machine the Python environment and the warm interpreter, which take long. Where it cannot, the session that
// needs it says why, too.
func (s *ownSessions) ahead(ctx context.Context) {
	s.making.Lock()
	defer s.making.Unlock()
	engine, err := s.engines.of(s.cfg)
	if warms, ok := engine.(sandbox.Warmer); ok && err == nil {
		warms.Warm()
	}
	o, _, err := prepareServed(ctx, s.version, s.cfg, &s.engines, s.base, s.progress)
	if saver, ok := engine.(sandbox.Saver); ok && err == nil {
		_, err = template.Ensure(ctx, templateOf(s.cfg, saver, o, s.progress))
	}
	s.over = ctx.Err() != nil
	if err != nil && !s.over {
		sayFailed(s.progress, problem.Of(err))
	}
}
