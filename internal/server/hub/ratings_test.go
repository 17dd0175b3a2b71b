package hub_test

import (
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// TestRatings rates answers that have ended, with the name of who says it.
func TestRatings(t *testing.T) {
	t.Parallel()
	l := newLife(t, func(o *hub.Options) { o.Models = &voice{t: t, lines: []line{words("It is 42."), {hang: true}}} })
	who := someone(auth.LocalProject)
	turn := l.ask(who, hub.NewTurn{Input: input("What is the total?"), Source: "test"})
	got, err := l.RateTurn(t.Context(), who, turn.ID, &hub.Rating{Reason: "  wrong sum ", User: "usr_forged"})
	if err != nil || got.Rating.Good || got.Rating.Reason != "wrong sum" || got.Rating.User != who.User || got.Rating.At.IsZero() {
		t.Fatalf("%+v %v", got.Rating, err)
	}
	if all, err := l.RatedTurns(t.Context(), who, hub.Page{}); err != nil || len(all.Items) != 1 || all.Items[0].ID != turn.ID {
		t.Errorf("%+v %v", all.Items, err)
	}
	if _, err := l.RateTurn(t.Context(), who, turn.ID, &hub.Rating{Reason: strings.Repeat("ä", 2001)}); !problem.Has(err, problem.TurnInvalid) {
		t.Errorf("a long reason: %v", err)
	}
	if _, err := l.RateTurn(t.Context(), someone("prj_other"), turn.ID, &hub.Rating{}); !problem.Has(err, problem.TurnNotFound) {
		t.Errorf("another project: %v", err)
	}
	if _, err := l.RateTurn(t.Context(), who, l.begin(who, hub.NewTurn{Input: input("And now?"), Source: "test"}).ID, &hub.Rating{}); !problem.Has(err, problem.TurnRunning) {
		t.Errorf("a turn that runs: %v", err)
	}
	if _, err := l.RateTurn(t.Context(), who, turn.ID, nil); err != nil {
		t.Error(err)
	}
	if all, err := l.RatedTurns(t.Context(), who, hub.Page{}); err != nil || len(all.Items) != 0 {
		t.Errorf("after it was taken back: %+v %v", all.Items, err)
	}
}
