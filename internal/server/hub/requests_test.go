package hub_test

import (
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// TestRequestsAreChecked: what goes with code is bounded, and a repeated request that differs in it is another one.
func TestRequestsAreChecked(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s := l.session(who)
	start := func(n hub.NewExecution) error {
		n.Session, n.Code = s.ID, "say hello"
		_, err := l.StartExecution(t.Context(), who, n)
		return err
	}
	for name, c := range map[string]struct {
		n    hub.NewExecution
		code problem.Code
	}{
		"a folder": {hub.NewExecution{Program: "a/b.py"}, problem.InvalidRequest}, "a zero": {hub.NewExecution{Args: []string{"a\x00"}}, problem.InvalidRequest},
		"no text": {hub.NewExecution{Args: []string{"\xff"}}, problem.InvalidRequest}, "too much": {hub.NewExecution{Args: []string{strings.Repeat("x", 200_000)}}, problem.InvalidRequest},
		"no name of a variable": {hub.NewExecution{Environment: map[string]string{"A B": "x"}}, problem.ProcessInvalid},
	} {
		if err := start(c.n); !problem.Has(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	once := hub.NewExecution{Once: "word", Program: "a.py", Args: []string{"1"}}
	if err := start(once); err != nil {
		t.Fatal(err)
	}
	if err := start(once); err != nil {
		t.Errorf("repeated: %v", err)
	}
	once.Args = []string{"2"}
	if err := start(once); !problem.Has(err, problem.IdempotencyMismatch) {
		t.Errorf("with other arguments: %v", err)
	}
}
