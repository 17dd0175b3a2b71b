package dify

import (
	"context"
	"errors"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
	"cove/internal/server/hub"
)

const (
	// life bounds a session that is not deleted, as when the server is killed.
	life = 10 * time.Minute
	// farewell bounds the deletion of a session.
	farewell = 30 * time.Second
	// lateness is how long after its time limit a program's end has to be heard of. The limit is kept inside the sandbox, which code may have made slow.
	lateness = 5 * time.Second
)

func busy() *problem.Error {
	return problem.New(problem.Overloaded, "the server has as many programs running as it can").WithHint("try again in a moment")
}

func slow() *problem.Error {
	return problem.New(problem.Overloaded, "the program could not be started in time").WithHint("try again in a moment")
}

// inSession makes a session, has use work with it, and deletes it, also when the client has left. A use that answers has done so before the session is deleted. The context
// of begin is that of starting, which is bounded.
func (s *server) inSession(c *call, n hub.NewSession, use func(begin context.Context, session string) error) error {
	leave, err := s.places.enter(c.Context(), c.who.Project, s.Patience)
	if err != nil {
		return err
	}
	defer leave()
	begin, cancel := context.WithTimeoutCause(c.Context(), s.Startup, slow())
	defer cancel()
	n.Life = life
	session, err := s.Hub.CreateSession(begin, c.who, n)
	if err != nil {
		return inTime(begin, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), farewell)
		defer cancel()
		if err := s.Hub.DeleteSession(ctx, c.who, session.ID); err != nil {
			s.Log.WarnContext(ctx, "the session of a program was not deleted; it ends by itself", "session", session.ID, "error", err)
		}
	}()
	return use(begin, session.ID)
}

// inTime returns the problem of having taken too long in the place of an error that comes from it.
func inTime(begin context.Context, err error) error {
	if late, ok := errors.AsType[*problem.Error](context.Cause(begin)); ok && err != nil {
		return late.WithCause(err)
	}
	return err
}

// perform runs a program and answers with what came of it.
func (s *server) perform(c *call, p program, l language) error {
	n := hub.NewSession{}
	if p.Network {
		var err error
		if n.Network, err = s.Hub.WidestNetwork(c.Context(), c.who); err != nil {
			return err
		}
	}
	return s.inSession(c, n, func(begin context.Context, session string) error {
		id, err := s.start(begin, c, session, p, l)
		if err != nil {
			return inTime(begin, err)
		}
		out, err := s.follow(c, session, id)
		if err != nil {
			return err
		}
		if p.Network && n.Network == nil {
			out.noteNetwork()
		}
		return c.reply(out)
	})
}

// start starts a program in a session, and returns the id of its process.
func (s *server) start(begin context.Context, c *call, session string, p program, l language) (string, error) {
	err := s.Hub.Tree(begin, c.who, session, true, func(ctx context.Context, t hub.Tree) error {
		_, err := t.Write(ctx, l.file, strings.NewReader(p.text()))
		return err
	})
	if err != nil {
		return "", err
	}
	started, err := s.Hub.StartProcess(begin, c.who, session, process.Start{Args: l.command, Followed: true, Timeout: s.Timeout})
	if problem.Has(err, problem.ProgramMissing) {
		err = problem.New(problem.ProgramMissing, l.absent).WithHint("the operator can install it on the server's machine").WithCause(err)
	}
	return started.ID, err
}

// follow waits for the end of a program. It stops waiting when the program has printed too much or has taken too long; deleting its session ends it.
func (s *server) follow(c *call, session, id string) (*outcome, error) {
	over := errors.New("the program's time is over")
	ctx, cancel := context.WithTimeoutCause(c.Context(), s.Timeout+lateness, over)
	defer cancel()
	events, err := s.Hub.FollowProcess(ctx, c.who, session, id, 0)
	if err != nil {
		return nil, err
	}
	r := recorder{most: s.MaxOutput, limit: s.Timeout}
	for e, err := range events {
		if errors.Is(context.Cause(ctx), over) {
			return r.late(), nil
		}
		if err != nil {
			return nil, err
		}
		if out := r.take(e); out != nil {
			return out, nil
		}
	}
	if errors.Is(context.Cause(ctx), over) {
		return r.late(), nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, problem.New(problem.Fault, "the session did not say how the program ended")
}
