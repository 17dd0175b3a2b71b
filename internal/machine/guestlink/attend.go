package guestlink

import (
	"context"
	"sync/atomic"
	"time"

	"cove/internal/core/problem"
)

const (
	// lookEvery is how long a request waits before the guest is asked for a sign of life, and again and again while it gives one: some requests take long.
	lookEvery = 30 * time.Second
	// silence is how long a guest may give none. A sandbox that waits at its memory limit, or is being saved, gives none for some seconds.
	silence = 2 * time.Minute
)

// attendance looks after a request that waits for a guest.
type attendance struct {
	end    func()
	silent atomic.Bool
}

// attend calls abort when the guest gives no sign of life while a request waits for it, until end is called.
func (l *Link) attend(abort func()) *attendance {
	ctx, cancel := context.WithCancel(context.Background())
	a := &attendance{}
	var look func()
	look = func() {
		limited, over := context.WithTimeout(ctx, silence)
		defer over()
		switch err := l.Ping(limited); {
		case ctx.Err() != nil: // the request has ended
		case err == nil:
			time.AfterFunc(lookEvery, look)
		case limited.Err() != nil: // else the connection has ended, and the request hears it
			a.silent.Store(true)
			abort()
		}
	}
	timer := time.AfterFunc(lookEvery, look)
	a.end = func() {
		cancel()
		timer.Stop()
	}
	return a
}

// orSilent says in the place of an error that the guest was silent, where it was.
func (a *attendance) orSilent(err error) error {
	if err != nil && a.silent.Load() {
		return problem.New(problem.GuestSilent, "the sandbox of the session does not answer").WithCause(err).
			WithHint("try again; end the session if that goes on")
	}
	return err
}
