package scan_test

import (
	"testing"

	"cove/internal/core/problem"
)

func requireProblem(t testing.TB, err error, code string) {
	t.Helper()
	if p := problem.Of(err); p == nil || p.Code != code {
		t.Errorf("got %v, want a problem with code %s", err, code)
	}
}
