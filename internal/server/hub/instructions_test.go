package hub_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// TestProjectInstructions: the model of a turn of cove's own interfaces is asked to follow the project's instructions, and one of a foreign protocol only what its client sent.
func TestProjectInstructions(t *testing.T) {
	t.Parallel()
	v := &voice{t: t, lines: []line{words("a"), words("b"), words("c"), words("d")}}
	texts := map[string]string{auth.LocalProject: "Amounts are in euros."}
	var broken error
	l := newLife(t, func(o *hub.Options) {
		o.Models = v
		o.Instructions = func(_ context.Context, project string) (string, error) { return texts[project], broken }
	})
	who := someone(auth.LocalProject)
	l.ask(who, hub.NewTurn{Input: input("?"), Source: "test", InProject: true})
	l.ask(who, hub.NewTurn{Input: input("?"), Source: "test", InProject: true, Instructions: "Be brief."})
	l.ask(who, hub.NewTurn{Input: input("?"), Source: "test", Instructions: "Be brief."})
	l.ask(someone("prj_other"), hub.NewTurn{Input: input("?"), Source: "test", InProject: true})
	has := func(n int, part string) bool { return strings.Contains(v.requests[n].System, part) }
	if !has(0, "Amounts are in euros.") || has(0, "Be brief.") {
		t.Errorf("the first request: %s", v.requests[0].System)
	}
	if project, question := strings.Index(v.requests[1].System, "Amounts are in euros."), strings.Index(v.requests[1].System, "Be brief."); project < 0 || question < project {
		t.Errorf("with instructions of the question: %s", v.requests[1].System)
	}
	if has(2, "euros") || !has(2, "Be brief.") {
		t.Errorf("of a foreign protocol: %s", v.requests[2].System)
	}
	if has(3, "euros") || has(3, "Instructions for all conversations") {
		t.Errorf("in another project: %s", v.requests[3].System)
	}
	broken = errors.New("the database is gone")
	if _, err := l.StartTurn(t.Context(), who, hub.NewTurn{Input: input("?"), Source: "test", InProject: true}); !errors.Is(err, broken) {
		t.Errorf("a turn without the instructions that it was to follow: %v", err)
	}
}
