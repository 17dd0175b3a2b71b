package pool_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/sessions/pool"
)

// maker makes numbers and remembers which were discarded.
type maker struct {
	mu        sync.Mutex
	made      int
	discarded []int
	err       error
}

func (m *maker) make(ctx context.Context) (int, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return 0, m.err
	}
	m.made++
	return m.made, nil
}

func (m *maker) discard(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.discarded = append(m.discarded, n)
}

func run(t *testing.T, p *pool.Pool[int]) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

func TestFillsAndRefills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &maker{}
		p := pool.New(pool.Options[int]{Size: 3, Make: m.make, Discard: m.discard})
		stop := run(t, p)
		if err := p.Fill(t.Context()); err != nil {
			t.Error(err)
		}
		if p.Ready() != 3 {
			t.Fatalf("ready: %d, want 3", p.Ready())
		}
		began := time.Now()
		for want := 1; want <= 3; want++ {
			if n, err := p.Claim(t.Context()); err != nil || n != want {
				t.Errorf("claimed %d, %v; want %d", n, err, want)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("three claims of ready ones took %v", took)
		}
		if n, err := p.Claim(t.Context()); err != nil || n < 4 {
			t.Errorf("a claim on an empty pool gave %d, %v", n, err)
		}
		time.Sleep(10 * time.Second)
		if p.Ready() != 3 {
			t.Errorf("ready after refilling: %d", p.Ready())
		}
		stop()
		if len(m.discarded) != 3 {
			t.Errorf("discarded on shutdown: %v", m.discarded)
		}
		if n, err := p.Claim(t.Context()); err != nil || slices.Contains(m.discarded, n) || p.Ready() != 0 {
			t.Errorf("a claim after the end gave %d, %v", n, err)
		}
	})
}

func TestHoldsBackWhileClaimsComeIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &maker{}
		p := pool.New(pool.Options[int]{Size: 4, Make: m.make, Discard: m.discard, Calm: 3 * time.Second})
		defer run(t, p)()
		time.Sleep(10 * time.Second)
		for range 3 { // a burst that leaves one
			if _, err := p.Claim(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(500 * time.Millisecond)
		}
		synctest.Wait()
		if m.made != 4 {
			t.Errorf("made %d in the midst of a burst, want none beyond the first 4", m.made-4)
		}
		time.Sleep(10 * time.Second)
		if p.Ready() != 2 {
			t.Errorf("ready soon after the burst: %d, want half", p.Ready())
		}
		time.Sleep(time.Minute)
		if p.Ready() != 4 {
			t.Errorf("ready after the burst: %d", p.Ready())
		}
	})
}

// TestPolishesAhead claims one that is ready, and one that the claim makes: only the first is polished. One that cannot be polished is not handed out.
func TestPolishesAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &maker{}
		var polished []int
		failures := 0
		p := pool.New(pool.Options[int]{Size: 1, Make: m.make, Discard: m.discard, Failed: func(error) { failures++ }, Polish: func(_ context.Context, n int) error {
			if n == 1 {
				return errors.New("it does not shine")
			}
			polished = append(polished, n)
			return nil
		}})
		stop := run(t, p)
		time.Sleep(10 * time.Second)
		if n, err := p.Claim(t.Context()); err != nil || n != 2 || failures != 1 || !slices.Equal(m.discarded, []int{1}) {
			t.Errorf("claimed %d, %v after %d failures, %v were discarded", n, err, failures, m.discarded)
		}
		stop()
		if n, err := p.Claim(t.Context()); err != nil || slices.Contains(polished, n) || !slices.Contains(polished, 2) {
			t.Errorf("the claim made %d, %v; polished were %v", n, err, polished)
		}
	})
}

// TestClaimTakesWhatIsBeingMade: of two claims that find the pool empty while it makes one, the first takes that one, as it is, and the second has its own made. A claim whose pool fails has its own made.
func TestClaimTakesWhatIsBeingMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &maker{}
		polished := 0
		p := pool.New(pool.Options[int]{Size: 1, Make: m.make, Discard: m.discard, Failed: func(error) {}, Polish: func(context.Context, int) error { polished++; return nil }})
		defer run(t, p)()
		time.Sleep(900 * time.Millisecond) // of the second that making takes
		began := time.Now()
		var claims sync.WaitGroup
		var waits [2]time.Duration
		for i := range waits {
			claims.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if _, err := p.Claim(t.Context()); err != nil {
					t.Error(err)
				}
				waits[i] = time.Since(began)
			})
		}
		claims.Wait()
		if waits != [2]time.Duration{100 * time.Millisecond, 1001 * time.Millisecond} || polished != 0 {
			t.Errorf("the claims waited for %v, and %d were polished", waits, polished)
		}
		time.Sleep(time.Minute)
		if _, err := p.Claim(t.Context()); err != nil || polished != 1 {
			t.Errorf("later %d were polished, %v", polished, err)
		}
		m.mu.Lock()
		m.err = errors.New("there is no memory")
		m.mu.Unlock()
		time.Sleep(500 * time.Millisecond) // it makes one again
		began = time.Now()
		if _, err := p.Claim(t.Context()); err == nil || time.Since(began) > 2*time.Second {
			t.Errorf("a claim of a pool that fails ended after %v: %v", time.Since(began), err)
		}
		gone, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := p.Claim(gone); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a claim that nobody waits for any more: %v", err)
		}
	})
}

func TestKeepsMoreAfterABurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &maker{}
		p := pool.New(pool.Options[int]{Size: 2, Most: 6, Make: m.make, Discard: m.discard})
		defer run(t, p)()
		burst := func(claims, ready int) {
			t.Helper()
			time.Sleep(10 * time.Second)
			for range claims {
				if _, err := p.Claim(t.Context()); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(2 * time.Minute)
			if p.Ready() != ready {
				t.Errorf("%d ready after %d claims, want %d", p.Ready(), claims, ready)
			}
		}
		burst(1, 2)
		burst(4, 4)
		burst(2, 4) // the larger one is not forgotten yet
		burst(20, 6)
		if len(m.discarded) != 0 {
			t.Errorf("discarded %v", m.discarded)
		}
		time.Sleep(14 * time.Minute)
		if p.Ready() != 2 || len(m.discarded) != 4 {
			t.Errorf("%d ready a quarter of an hour later, %d discarded", p.Ready(), len(m.discarded))
		}
	})
}

func TestNeverHandsOutTheUnusable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &maker{}
		p := pool.New(pool.Options[int]{Size: 3, Make: m.make, Discard: m.discard, Usable: func(n int) bool { return n != 1 && n != 2 }})
		defer run(t, p)()
		time.Sleep(10 * time.Second)
		if n, err := p.Claim(t.Context()); err != nil || n != 3 {
			t.Errorf("claimed %d, %v", n, err)
		}
		if !slices.Equal(m.discarded, []int{1, 2}) {
			t.Errorf("discarded %v", m.discarded)
		}
	})
}

func TestTriesAgainAfterFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &maker{err: errors.New("disk full")}
		failures := 0
		p := pool.New(pool.Options[int]{Size: 1, Make: m.make, Discard: m.discard, Failed: func(error) { failures++ }})
		defer run(t, p)()
		time.Sleep(time.Minute)
		synctest.Wait()
		if failures < 3 || failures > 20 {
			t.Errorf("%d attempts in a minute", failures)
		}
		if _, err := p.Claim(t.Context()); err == nil {
			t.Error("a claim was served although nothing can be made")
		}
		m.mu.Lock()
		m.err = nil
		m.mu.Unlock()
		time.Sleep(time.Minute)
		if p.Ready() != 1 {
			t.Error("the pool did not recover")
		}
	})
}

// TestSaysWhyNoneCanBeHad: the reason is there while nothing is ready and the last one could not be made, also where a claim could not make one.
func TestSaysWhyNoneCanBeHad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &maker{}
		p := pool.New(pool.Options[int]{Size: 1, Make: m.make, Discard: m.discard})
		set := func(err error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.err = err
		}
		stop := run(t, p)
		if err := errors.Join(p.Fill(t.Context()), p.Failure()); err != nil {
			t.Error(err)
		}
		broken := errors.New("nothing starts")
		set(broken)
		if _, err := p.Claim(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if !errors.Is(p.Failure(), broken) {
			t.Errorf("the pool is empty, and says %v", p.Failure())
		}
		set(nil)
		if err := errors.Join(p.Fill(t.Context()), p.Failure()); err != nil {
			t.Error(err)
		}
		stop()
		set(broken)
		if _, err := p.Claim(t.Context()); !errors.Is(err, broken) || !errors.Is(p.Failure(), broken) {
			t.Errorf("a claim failed with %v, and the pool says %v", err, p.Failure())
		}
	})
}

func TestSizeFor(t *testing.T) {
	t.Parallel()
	if n, err := pool.SizeFor(4, 1); err != nil || n != 4 {
		t.Errorf("small things: %d, %v", n, err)
	}
	if n, err := pool.SizeFor(4, 1<<50); err != nil || n != 1 {
		t.Errorf("huge things: %d, %v", n, err)
	}
}
