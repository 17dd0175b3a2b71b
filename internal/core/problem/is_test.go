package problem_test

import (
	"errors"
	"fmt"
	"testing"

	"cove/internal/core/problem"
)

func TestHas(t *testing.T) {
	t.Parallel()
	full := problem.New(problem.DiskFull, "x")
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"one of them":                {full, true},
		"one that is wrapped":        {fmt.Errorf("save: %w", full), true},
		"one in other words":         {full.Reworded("y"), true},
		"one from another program":   {problem.Received(problem.Exhausted, "disk_full", "x"), true},
		"another":                    {problem.New(problem.Draining, "x"), false},
		"another that was caused so": {problem.New(problem.Draining, "x").WithCause(full), false},
		"no problem":                 {errors.New("disk_full"), false},
		"nothing":                    {nil, false},
		"none":                       {(*problem.Error)(nil), false},
	} {
		if got := problem.Has(c.err, problem.WorkspaceFull, problem.DiskFull); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if full.Kind != problem.Unavailable || full.Code != "disk_full" {
		t.Errorf("a full disk is %s, %s", full.Kind, full.Code)
	}
}
