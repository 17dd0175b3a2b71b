package app

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"cove/internal/core/problem"
	"cove/internal/core/sdnotify"
	"cove/internal/core/telemetry"
	"cove/internal/server/ownership"
)

// retainEvery is how often the operator's retention is seen to.
const retainEvery = time.Hour

// tellEnd is how much longer than work streams may go on when the server ends: what a drain interrupts has to say so, and its clients to hear it.
const tellEnd = 15 * time.Second

// Serve implements cli.Server.
func (s *server) Serve(soft, hard context.Context) error {
	defer s.close()
	defer limitMemory()()
	s.log.Info("serving", "address", s.about.Address, "engine", s.cfg.Sandbox.Engine, "database", s.about.Database, "version", s.about.Version)
	background, stop := context.WithCancel(telemetry.With(context.WithoutCancel(soft), s.seen))
	defer stop()
	loops, failed := errgroup.WithContext(background)
	loops.Go(func() error { return ended(failed, s.hub.Run(failed)) })
	loops.Go(func() error { s.retain(failed); return nil })
	loops.Go(func() error { s.keepBackups(failed); return nil })
	loops.Go(func() error { giveBackMemory(failed); return nil })
	loops.Go(func() error { return s.untilLost(failed) })

	// Whatever ends the server, requests are answered until their work is done, while the hub sees to it that there is less and less of it.
	ending, end := context.WithCancel(soft)
	defer end()
	defer context.AfterFunc(failed, end)()
	filling, empty := context.WithCancel(failed) // a server that ends needs no sandboxes that wait
	defer empty()
	defer context.AfterFunc(ending, empty)()
	loops.Go(func() error { return ended(filling, s.warm.Run(filling)) })
	s.tell(sdnotify.Ready, "serving on "+s.about.Address)
	defer context.AfterFunc(ending, func() { s.tell(sdnotify.Stopping, "running code may finish, and sessions are paused") })()
	gone := make(chan error, 1)
	go func() { gone <- s.serve(ending) }()
	var err error
	select {
	case err = <-gone:
	case <-hard.Done():
		return problem.New(problem.Stopped, "the server was stopped at once; what ran is lost")
	}
	stop()
	if broken := loops.Wait(); broken != nil {
		err = errors.Join(broken, err)
	}
	s.log.Info("ended")
	return err
}

// tell tells who started the server how far the server is. That serving goes on when it does not hear is for the log.
func (s *server) tell(state, status string) {
	if err := s.starter.Tell(state, status); err != nil {
		s.log.Warn("who started the server was not told how far it is", "status", status, "error", err)
	}
}

// untilLost ends the server when other processes have taken it for dead.
func (s *server) untilLost(ctx context.Context) error {
	select {
	case <-s.owner.Lost():
		return ownership.ErrLost()
	case <-ctx.Done():
		return nil
	}
}

// ended makes nothing of an error that says that ctx is over.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// serve answers requests until ctx ends, and drains.
func (s *server) serve(ctx context.Context) error {
	var both errgroup.Group
	front, stop := context.WithCancel(ctx)
	both.Go(func() error {
		defer stop() // a listener that fails ends the server
		return s.front.Serve(front)
	})
	both.Go(func() error {
		<-front.Done()
		close(s.stopping)
		patience, cancel := context.WithTimeout(context.Background(), time.Duration(s.cfg.Serve.DrainTimeout))
		defer cancel()
		return s.hub.Drain(telemetry.With(patience, s.seen))
	})
	return both.Wait()
}

// retain deletes what has passed and what the operator does not want to keep, until ctx ends.
func (s *server) retain(ctx context.Context) {
	for {
		var unused, audit time.Time
		if d := time.Duration(s.cfg.Store.Retention); d > 0 {
			unused = time.Now().Add(-d)
		}
		if d := time.Duration(s.cfg.Store.AuditRetention); d > 0 {
			audit = time.Now().Add(-d)
		}
		if n, err := s.store.Retain(ctx, unused, audit); err != nil && ctx.Err() == nil {
			s.log.Warn("old records could not be deleted", "error", err)
		} else if n > 0 {
			s.log.Info("old records were deleted", "count", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retainEvery):
		}
	}
}
