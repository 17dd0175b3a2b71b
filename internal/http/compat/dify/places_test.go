package dify

import (
	"context"
	"testing"
	"time"

	"cove/internal/core/problem"
)

// TestPlacesOfProjects leaves half of the places to others, and forgets who has none.
func TestPlacesOfProjects(t *testing.T) {
	t.Parallel()
	p := newPlaces(4)
	enter := func(project string) (func(), error) { return p.enter(t.Context(), project, 10*time.Millisecond) }
	var leaves []func()
	for _, c := range []struct {
		project string
		ok      bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"c", true}, {"d", false}} {
		leave, err := enter(c.project)
		if (err == nil) != c.ok || err != nil && !problem.Has(err, problem.Overloaded) {
			t.Errorf("%s: %v", c.project, err)
		}
		if err == nil {
			leaves = append(leaves, leave)
		}
	}
	leaves[0]()
	if leave, err := enter("d"); err != nil {
		t.Errorf("after one has left: %v", err)
	} else {
		leave()
	}
	for _, leave := range leaves[1:] {
		leave()
	}
	if len(p.projects) != 0 || len(p.all) != 0 {
		t.Errorf("%d projects and %d places are left", len(p.projects), len(p.all))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	one := newPlaces(1)
	leave, err := one.enter(t.Context(), "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.enter(gone, "b", time.Minute); err == nil {
		t.Error("who has left has a place")
	}
	leave()
}
