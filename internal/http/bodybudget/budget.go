package bodybudget

import (
	"context"
	"runtime"
	"sync"
	"time"

	"cove/internal/core/problem"
)

// Budget is the memory, in bytes, that requests may take at the same time with what they sent. It is an estimate that errs on the high side.
type Budget struct {
	total, each int64
	wait        time.Duration

	mu    sync.Mutex
	used  int64
	keys  map[string]int64
	freed chan struct{} // closed when something was given back, where somebody waits for that
}

// NewBudget returns a budget of total bytes for the server and half of it for each key. A request that there is no room for waits as long as
// wait and is then refused.
func NewBudget(total int64, wait time.Duration) *Budget {
	return &Budget{total: total, each: total / 2, wait: wait, keys: map[string]int64{}}
}

// Used is how much is taken, in bytes.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Share is what one request has taken of a budget. A nil share takes nothing and is never refused.
type Share struct {
	budget *Budget
	key    string

	// Guarded by the budget's mutex.
	held    int64
	decodes int64 // of held, what is given back when the request was decoded
	recalls int64 // of held, for records that were read again for it
	holders int
}

// Share begins a request of a key. The caller releases it when the request was answered.
func (b *Budget) Share(key string) *Share { return &Share{budget: b, key: key, holders: 1} }

// With returns a context whose request takes of s.
func With(ctx context.Context, s *Share) context.Context {
	return context.WithValue(ctx, shareKey{}, s)
}

type shareKey struct{}

func from(ctx context.Context) *Share {
	s, _ := ctx.Value(shareKey{}).(*Share)
	return s
}

// Release says that one of those that held the share needs it no more. When the last one did, everything is given back.
func (s *Share) Release() {
	if s == nil {
		return
	}
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.holders--; s.holders == 0 {
		b.free(s, s.held)
	}
}

// Another returns a context for one more request of the context's caller, as connections that carry several have them. Release it when the
// request was answered.
func Another(ctx context.Context) (one context.Context, release func()) {
	s := from(ctx)
	if s == nil {
		return ctx, func() {}
	}
	next := s.budget.Share(s.key)
	return With(ctx, next), sync.OnceFunc(next.Release)
}

// Hold keeps what the context's request has taken until release is called, also after the request was answered.
func Hold(ctx context.Context) (release func()) {
	s := from(ctx)
	if s == nil {
		return func() {}
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if s.holders == 0 {
		return func() {}
	}
	s.holders++
	return sync.OnceFunc(s.Release)
}

// Decoded says that the context's request was decoded and acted upon: what that took is free again, and what was read is still held.
func Decoded(ctx context.Context) {
	if s := from(ctx); s != nil {
		s.budget.mu.Lock()
		defer s.budget.mu.Unlock()
		n := s.decodes
		s.decodes = 0
		s.budget.free(s, n)
	}
}

// Recall takes room for records of so many bytes that are read again for the context's request: what a client sent once costs each time that
// it is looked at. Taking again for the same request adds only what is more. Problems: memory_busy, overloaded.
func Recall(ctx context.Context, bytes int64) error {
	s := from(ctx)
	if s == nil {
		return nil
	}
	s.budget.mu.Lock()
	more := bytes - s.recalls
	s.budget.mu.Unlock()
	if more <= 0 {
		return nil
	}
	if err := s.take(ctx, more); err != nil {
		return err
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.recalls += more
	return nil
}

// decoding takes what it costs to decode what was read.
func (s *Share) decoding(ctx context.Context, n int64) error {
	if s == nil {
		return nil
	}
	taken, err := s.takes(ctx, n)
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.decodes += taken
	return err
}

func (s *Share) giveBack(n int64) {
	if s != nil {
		s.budget.mu.Lock()
		defer s.budget.mu.Unlock()
		s.budget.free(s, n)
	}
}

func (s *Share) take(ctx context.Context, n int64) error {
	if s == nil {
		return nil
	}
	_, err := s.takes(ctx, n)
	return err
}

// takes waits a moment for room. What is larger than all the room that a key has takes all of it.
func (s *Share) takes(ctx context.Context, n int64) (taken int64, err error) {
	b := s.budget
	var patience <-chan time.Time
	for {
		taken, freed, err := b.try(s, n)
		if err == nil {
			return taken, nil
		}
		if patience == nil {
			timer := time.NewTimer(b.wait)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case <-freed:
		case <-patience:
			return 0, err
		case <-ctx.Done():
			return 0, problem.New(problem.GivenUp, "the client gave up the request").WithCause(context.Cause(ctx))
		}
	}
}

// try takes what there is room for, or returns what to wait for and what to say when that was in vain.
func (b *Budget) try(s *Share, n int64) (taken int64, freed <-chan struct{}, refused error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.holders == 0 {
		return 0, nil, nil // its request is over: what still runs for it is somebody else's to bound
	}
	n = min(n, b.each-s.held)
	switch {
	case b.keys[s.key]+n > b.each:
		refused = problem.New(problem.MemoryBusy, "the requests of this key that are being served have sent as much as the server holds for one key")
	case b.used+n > b.total:
		refused = problem.New(problem.Overloaded, "the server holds as much of its clients' requests as it can")
	default:
		b.used += n
		b.keys[s.key] += n
		s.held += n
		return n, nil, nil
	}
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	return 0, b.freed, refused
}

// worthCollecting is how many bytes have to be given back at once to be worth a collection of garbage.
const worthCollecting = 32 << 20

// free gives back n of what s holds. What is large counts as taken until the garbage collector has it: until then the process does have that memory, and the next request
// would come on top. The caller holds mu.
func (b *Budget) free(s *Share, n int64) {
	n = min(n, s.held)
	s.held -= n
	if n < worthCollecting {
		b.settle(s.key, n)
		return
	}
	go func() {
		runtime.GC()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.settle(s.key, n)
	}()
}

// settle makes n bytes of a key free for others. The caller holds mu.
func (b *Budget) settle(key string, n int64) {
	b.used -= n
	if b.keys[key] -= n; b.keys[key] <= 0 {
		delete(b.keys, key)
	}
	if b.freed != nil && n > 0 {
		close(b.freed)
		b.freed = nil
	}
}
