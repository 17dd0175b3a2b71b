package e2b

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Why the requests of a sandbox end.
var (
	errKilled = errors.New("the sandbox was killed")
	errEnded  = errors.New("the sandbox has reached its timeout")
	errPaused = errors.New("the sandbox was paused")
)

// atEnd pauses or deletes a sandbox whose end has come, unless somebody has prolonged its life meanwhile.
func (s *server) atEnd(session string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, who, err := s.Hub.LinkOf(ctx, s.token(session))
	row := hub.Session{}
	if err == nil {
		row, err = s.Hub.Session(ctx, who, session)
	}
	r, ok := recordOf(row, kindSandbox)
	if err != nil || !ok { // it is gone, or the hub deletes it by its own clock
		s.clocks.Stop(session, errEnded)
		return
	}
	if r.Paused || time.Now().Before(r.End) {
		return
	}
	switch {
	case r.AutoPause && r.Forgets:
		err = s.sleep(ctx, who, session, false)
	case r.AutoPause:
		s.clocks.Stop(session, errPaused)
		_, err = s.Hub.PauseSession(ctx, who, session)
	default:
		err = s.remove(ctx, who, session, errEnded)
	}
	if err != nil {
		s.Log.WarnContext(ctx, "a sandbox has reached its end and could not be ended", "session", session, "error", err)
	}
}

// remove ends a sandbox. From the moment at which its requests break off it is not there for others: a client whose stream breaks asks at once whether the sandbox is.
func (s *server) remove(ctx context.Context, who auth.Principal, session string, why error) error {
	s.gone.set(session, true)
	s.clocks.Stop(session, why)
	err := s.Hub.DeleteSession(ctx, who, session)
	if err != nil {
		s.gone.set(session, false)
	}
	return err
}

// endings are sandboxes that this process has ended, for a while. A port of one is answered for by its name with the words for a sandbox that is gone; of other names nobody is told whether there is
// such a session.
type endings struct {
	mu  sync.Mutex
	all map[string]time.Time
}

const (
	endedLife = 10 * time.Minute
	mostEnded = 10_000
)

func (e *endings) set(session string, is bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !is {
		delete(e.all, session)
		return
	}
	now := time.Now()
	if len(e.all) >= mostEnded {
		maps.DeleteFunc(e.all, func(_ string, at time.Time) bool { return now.Sub(at) > endedLife })
	}
	if e.all == nil || len(e.all) >= mostEnded {
		e.all = map[string]time.Time{}
	}
	e.all[session] = now
}

func (e *endings) has(session string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ok := e.all[session]
	return ok && time.Since(at) <= endedLife
}
