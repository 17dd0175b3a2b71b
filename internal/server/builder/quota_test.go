package builder

import (
	"context"
	"errors"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// usedUp is a hub for a key whose processor time of the day is used up. It has nothing else: a step that began would panic.
type usedUp struct{ Hub }

func (usedUp) CheckProgram(context.Context, auth.Principal, string) error {
	return problem.New(problem.QuotaCPU, "the processor time of the day is used up")
}

func TestNoStepBeyondTheQuota(t *testing.T) {
	t.Parallel()
	_, err := Build(t.Context(), Options{Hub: usedUp{}, Recipe: Recipe{Steps: []Step{{Kind: Run, Command: "true"}}}})
	if f, ok := errors.AsType[*Fault](err); !ok || f.Step != 1 || !strings.Contains(f.Message, "used up") {
		t.Errorf("%v", err)
	}
}
