package deps_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/deps"
	"cove/internal/python/installation"
)

// TestDownloadsEarnTime has an installation end at its limit, and later by what it has downloaded until then; what is told twice earns nothing.
func TestDownloadsEarnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, tell, cancel := deps.Bounded(t.Context(), 10*time.Second)
		defer cancel()
		for range 3 {
			time.Sleep(3 * time.Second)
			tell(installation.Progress{Received: 5_000_000})
		}
		time.Sleep(5 * time.Second) // 14 s
		if ctx.Err() != nil {
			t.Fatalf("ended after 14 s: %v", context.Cause(ctx))
		}
		time.Sleep(2 * time.Second)
		if !problem.Has(context.Cause(ctx), problem.ResolveTimeout) {
			t.Errorf("after 16 s: %v", context.Cause(ctx))
		}
		tell(installation.Progress{Received: 50_000_000})
		if ctx.Err() == nil {
			t.Error("it goes on after its end")
		}

		free, _, end := deps.Bounded(t.Context(), 0)
		time.Sleep(24 * time.Hour)
		if free.Err() != nil {
			t.Errorf("without a limit: %v", context.Cause(free))
		}
		end()
	})
}
