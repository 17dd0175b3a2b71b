package bodybudget_test

import (
	"strings"
	"testing"

	"cove/internal/http/bodybudget"
)

// TestAnother: each request on one connection takes of the budget by itself and gives back by itself.
func TestAnother(t *testing.T) {
	t.Parallel()
	budget := bodybudget.NewBudget(64<<20, 0)
	share := budget.Share("key")
	ctx := bodybudget.With(t.Context(), share)
	before := budget.Used()
	for range 100 {
		one, release := bodybudget.Another(ctx)
		if _, err := bodybudget.Read(one, strings.NewReader(`["`+strings.Repeat("x", 1<<20)+`"]`)); err != nil {
			t.Fatal(err)
		}
		if budget.Used() <= before {
			t.Fatal("what was read costs nothing")
		}
		release()
	}
	share.Release()
	if used := budget.Used(); used != 0 {
		t.Errorf("%d bytes are held", used)
	}
}
