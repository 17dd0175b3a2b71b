package tool

import (
	"context"
	"sync"
)

// Calls performs calls that code made at one time; see kernel.Tools.
type Calls = func(ctx context.Context, calls []Call, answer func(number int, r Result))

// Each performs calls side by side, each by itself, and returns when all are answered.
func Each(one func(context.Context, Call) Result) Calls {
	return func(ctx context.Context, calls []Call, answer func(int, Result)) {
		var all sync.WaitGroup
		for _, c := range calls {
			all.Go(func() { answer(c.Number, one(ctx, c)) })
		}
		all.Wait()
	}
}

// Split has the calls of some tools performed by theirs, and all others by rest.
func Split(some []Tool, theirs, rest Calls) Calls {
	named := make(map[string]bool, len(some))
	for _, t := range some {
		named[t.Name] = true
	}
	return func(ctx context.Context, calls []Call, answer func(int, Result)) {
		var a, b []Call
		for _, c := range calls {
			if named[c.Name] {
				a = append(a, c)
			} else {
				b = append(b, c)
			}
		}
		var both sync.WaitGroup
		if len(a) > 0 {
			both.Go(func() { theirs(ctx, a, answer) })
		}
		if len(b) > 0 {
			both.Go(func() { rest(ctx, b, answer) })
		}
		both.Wait()
	}
}
