package api

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"cove/internal/http/sse"
)

// TestTogether: events of all streams come in their order, an end of one ends no other, and an error or a reader that leaves ends all.
func TestTogether(t *testing.T) {
	t.Parallel()
	counting := func(name string, n int, err error) iter.Seq2[sse.Event, error] {
		return func(yield func(sse.Event, error) bool) {
			for i := range n {
				if !yield(sse.Event{ID: int64(i), Name: name}, nil) {
					return
				}
			}
			if err != nil {
				yield(sse.Event{}, err)
			}
		}
	}
	waiting := func(leave <-chan struct{}) iter.Seq2[sse.Event, error] {
		return func(func(sse.Event, error) bool) { <-leave }
	}

	last := map[string][]int64{}
	for m, err := range together([]iter.Seq2[sse.Event, error]{counting("a", 100, nil), counting("b", 3, nil)}, func() {}) {
		if err != nil {
			t.Fatal(err)
		}
		last[m.Name] = append(last[m.Name], m.ID)
	}
	if len(last["a"]) != 100 || len(last["b"]) != 3 || !slices.IsSorted(last["a"]) || !slices.IsSorted(last["b"]) {
		t.Errorf("came as %v", last)
	}

	broken := errors.New("broken")
	left := make(chan struct{})
	var got error
	for _, err := range together([]iter.Seq2[sse.Event, error]{waiting(left), counting("a", 2, broken)}, func() { close(left) }) {
		got = err
	}
	if !errors.Is(got, broken) {
		t.Errorf("ended with %v", got)
	}

	left = make(chan struct{})
	for _, err := range together([]iter.Seq2[sse.Event, error]{waiting(left), counting("a", 100, nil)}, func() { close(left) }) {
		if err != nil {
			t.Errorf("an error before the reader left: %v", err)
		}
		break
	}
	<-left
}
