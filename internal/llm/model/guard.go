package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"cove/internal/core/problem"
)

// Limits bound one call of a model. A zero field takes its default.
type Limits struct {
	Connect    time.Duration // until a connection to the server is open; 10 s
	FirstToken time.Duration // of silence before the first part of the answer; three times that where the server keeps the connection alive; 120 s
	Stall      time.Duration // between two parts of the answer, whatever else the server sends; 60 s
	Answer     int64         // bytes of one answer's words, reasoning and calls together; 4 MiB
	Attempts   int           // how often a failing call is tried while nothing has been yielded; 4
	Backoff    time.Duration // before the second attempt, doubled for each further one; 1 s
	MaxWait    time.Duration // the longest Retry-After that is waited for; 60 s

	// Sleep waits between attempts; nil waits on the clock. It returns early with ctx's error.
	Sleep func(ctx context.Context, d time.Duration) error
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.Connect, 10*time.Second)
	setDefault(&l.FirstToken, 120*time.Second)
	setDefault(&l.Stall, 60*time.Second)
	setDefault(&l.Answer, 4<<20)
	setDefault(&l.Attempts, 4)
	setDefault(&l.Backoff, time.Second)
	setDefault(&l.MaxWait, 60*time.Second)
	if l.Sleep == nil {
		l.Sleep = sleep
	}
	return l
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Attempt asks a provider once. It passes each part to emit, ending with a Finish, and returns nil then or as soon
// as emit returns false. Every failure is returned, a *Failure where the adapter knows what it means. The adapter
// tells watch when the connection stands and whenever the server gives a sign of life, and reads what the server sends through watch.Body.
type Attempt func(ctx context.Context, req Request, watch *Watch, emit func(Part) bool) error

// Guard makes a Model of an adapter's attempt: it repeats attempts that failed before anything was yielded, puts a
// deadline on every silence and turns every failure into a problem. Provider describes the service in the
// sentences; limits may be zero.
func Guard(provider Provider, capabilities Capabilities, limits Limits, attempt Attempt) Model {
	return &guarded{provider: provider, capabilities: capabilities, limits: limits.withDefaults(), attempt: attempt}
}

type guarded struct {
	provider     Provider
	capabilities Capabilities
	limits       Limits
	attempt      Attempt
}

func (g *guarded) Name() string               { return g.provider.Name }
func (g *guarded) Capabilities() Capabilities { return g.capabilities }

func (g *guarded) Stream(ctx context.Context, req Request) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		for n := 1; ; n++ {
			run := g.once(ctx, req, yield)
			if run.abandoned || run.failure == nil {
				return
			}
			wait, err := g.pause(run, n)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(Retry{Attempt: n, Reason: run.failure.Problem.Message, Seconds: wait.Seconds()}, nil) {
				return
			}
			if err := g.limits.Sleep(ctx, wait); err != nil {
				yield(nil, given(ctx))
				return
			}
		}
	}
}

// outcome is how one attempt ended: abandoned by the consumer, failed, or, with neither, complete.
type outcome struct {
	failure   *Failure
	yielded   bool
	abandoned bool
}

func (g *guarded) once(ctx context.Context, req Request, yield func(Part, error) bool) outcome {
	if ctx.Err() != nil {
		return outcome{failure: &Failure{Problem: given(ctx)}}
	}
	attemptCtx, cancel := context.WithCancelCause(ctx)
	watch := newWatch(g.provider, g.limits, cancel)
	defer cancel(nil)
	defer watch.stop()

	var run outcome
	finished := false
	emit := func(p Part) bool {
		if run.abandoned || finished || !watch.took(p) {
			return false
		}
		watch.hold()
		if finish, ok := p.(Finish); ok {
			finish.Usage = credible(finish.Usage, req, watch.heard())
			p, finished = finish, true
		}
		run.yielded = true
		run.abandoned = !yield(p, nil)
		watch.resume()
		return !run.abandoned
	}
	err := g.attempt(attemptCtx, req, watch, emit)
	if run.abandoned || finished {
		return run
	}
	run.failure = g.explain(ctx, attemptCtx, err)
	return run
}

// explain finds what an attempt that did not finish died of. The caller's own cancellation comes first: whatever
// the adapter reports then is only its consequence, and likewise for a deadline that watch set off.
func (g *guarded) explain(ctx, attemptCtx context.Context, err error) *Failure {
	if ctx.Err() != nil {
		return &Failure{Problem: given(ctx)}
	}
	if expired, ok := errors.AsType[*problem.Error](context.Cause(attemptCtx)); ok {
		return &Failure{Problem: expired}
	}
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure
	}
	return g.provider.Broken(err)
}

// pause returns how long to wait before attempt n+1, or the error that ends the call.
func (g *guarded) pause(run outcome, n int) (time.Duration, error) {
	failure := run.failure
	if run.yielded || !failure.Retryable {
		return 0, failure.Problem
	}
	if failure.Wait != nil && *failure.Wait > g.limits.MaxWait {
		return 0, problem.New(problem.ModelRateLimited,
			fmt.Sprintf("%s asks to wait %s before the next request", g.provider.host(), failure.Wait.Round(time.Second))).
			WithHint("try again later, or choose another model with --model").WithCause(failure.Problem)
	}
	if n >= g.limits.Attempts {
		p := *failure.Problem
		p.Message = fmt.Sprintf("%s (tried %d times)", p.Message, n)
		return 0, &p
	}
	if failure.Wait != nil {
		return *failure.Wait, nil
	}
	return backoff(g.limits.Backoff, n), nil
}

// given is the problem for a context that its owner ended; a problem that the owner gave as the cause is kept.
func given(ctx context.Context) *problem.Error {
	cause := context.Cause(ctx)
	if p, ok := errors.AsType[*problem.Error](cause); ok {
		return p
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return problem.New(problem.ModelDeadline, "the time for this question ran out while the model was answering").
			WithCause(cause)
	}
	return problem.New(problem.GivenUp, "the question to the model was canceled").WithCause(cause)
}
