package bodybudget_test

import (
	"runtime"
	"testing"
	"time"

	"cove/internal/http/bodybudget"
)

// TestLargeIsFreeWhenCollected: memory that a large request has given back counts as taken until it is collected.
func TestLargeIsFreeWhenCollected(t *testing.T) {
	t.Parallel()
	budget := bodybudget.NewBudget(256<<20, 0)
	share := budget.Share("key")
	if err := bodybudget.Recall(bodybudget.With(t.Context(), share), 64<<20); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	share.Release()
	for deadline := time.Now().Add(time.Minute); budget.Used() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are held", budget.Used())
		}
	}
	if runtime.ReadMemStats(&after); after.NumGC == before.NumGC {
		t.Error("nothing was collected")
	}
}
