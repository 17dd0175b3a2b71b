package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"cove/internal/server/store"
)

func TestPromises(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		later, past := time.Now().Add(time.Hour), time.Now().Add(-time.Second)
		says := func(project, word, want string) {
			t.Helper()
			request, id, err := s.Remembered(ctx, project, word)
			if got := request + " " + id; err != nil || got != want {
				t.Errorf("%s of %s stands for %q, not %q, %v", word, project, got, want, err)
			}
		}
		remember := func(project, word, request, id string, until time.Time, want string) {
			t.Helper()
			thatPrint, thatID, err := s.Remember(ctx, project, word, request, id, until)
			if got := thatPrint + " " + thatID; err != nil || got != want {
				t.Errorf("remembering %s %s of %s returned %q, not %q, %v", word, id, project, got, want, err)
			}
		}
		says("prj_1", "one", " ")
		remember("prj_1", "one", "a", "exe_1", later, "a exe_1")
		says("prj_1", "one", "a exe_1")
		says("prj_2", "one", " ")
		remember("prj_1", "one", "b", "exe_2", later, "a exe_1")
		says("prj_1", "one", "a exe_1")
		remember("prj_2", "one", "b", "exe_2", later, "b exe_2")

		remember("prj_1", "two", "a", "exe_3", past, " ")
		says("prj_1", "two", " ")
		remember("prj_1", "two", "b", "exe_4", later, "b exe_4")
		remember("prj_1", "three", "a", "exe_5", past, " ")
		if n, err := s.Retain(ctx, time.Time{}, time.Time{}); n != 0 || err != nil {
			t.Errorf("%d records were deleted, %v", n, err)
		}
		says("prj_1", "one", "a exe_1")
		says("prj_1", "two", "b exe_4")
		if n, err := store.Promises(ctx, s); n != 3 || err != nil {
			t.Errorf("%d promises are left, not 3, %v", n, err)
		}
	})
}

// TestOnePromiseWins: whoever of many comes first, all hear the same.
func TestOnePromiseWins(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		const many = 8
		heard := make([]string, many)
		var all sync.WaitGroup
		for n := range many {
			all.Go(func() {
				_, id, err := s.Remember(t.Context(), "prj_1", "word", "request", fmt.Sprint("exe_", n), time.Now().Add(time.Hour))
				if err != nil {
					t.Error(err)
				}
				heard[n] = id
			})
		}
		all.Wait()
		for _, id := range heard {
			if id == "" || id != heard[0] {
				t.Fatalf("they heard %q", heard)
			}
		}
	})
}
