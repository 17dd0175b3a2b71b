package tool

import (
	"context"
	"sync"
)

// Relay hands the calls of code to a client that performs them, in requests of its own, and the client's results back to the code.
type Relay struct {
	mu      sync.Mutex
	waiting map[int]func(Result) // by number
	fresh   []Call               // that the client has not been told of
	news    chan struct{}        // holds a token when there are fresh calls
}

// NewRelay returns a relay without calls.
func NewRelay() *Relay { return &Relay{waiting: map[int]func(Result){}, news: make(chan struct{}, 1)} }

// Call takes calls that code made at one time; see kernel.Tools. It does not wait for the answers.
func (r *Relay) Call(_ context.Context, calls []Call, answer func(number int, result Result)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range calls {
		r.waiting[c.Number] = func(result Result) { answer(c.Number, result) }
	}
	r.fresh = append(r.fresh, calls...)
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// Next waits for calls that the client has not been told of. It returns none when over is closed before there are any, and the cause of ctx when that ends.
func (r *Relay) Next(ctx context.Context, over <-chan struct{}) ([]Call, error) {
	for {
		if calls := r.take(); len(calls) > 0 {
			return calls, nil
		}
		select {
		case <-r.news:
		case <-over:
			return r.take(), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (r *Relay) take() (calls []Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls, r.fresh = r.fresh, nil
	return calls
}

// Answer hands over a result. It says whether the code waits for one of this number.
func (r *Relay) Answer(number int, result Result) bool {
	r.mu.Lock()
	answer := r.waiting[number]
	delete(r.waiting, number)
	r.mu.Unlock()
	if answer == nil {
		return false
	}
	answer(result)
	return true
}
