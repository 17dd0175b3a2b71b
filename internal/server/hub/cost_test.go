package hub_test

import (
	"testing"
	"time"

	"cove/internal/llm/model"
	"cove/internal/server/hub"
	"cove/internal/testkit/testneeds"
)

// priced has a model's price in every hub's settings.
func priced(o *hub.Options) {
	o.About = func(name string) model.About {
		if name != "test/voice" {
			return model.About{}
		}
		return model.About{Context: 1000, Price: &model.Price{Input: 1_000_000, Output: 10_000_000, Currency: "EUR"}}
	}
}

func TestATurnHasItsCost(t *testing.T) {
	t.Parallel()
	v := &voice{t: t, lines: []line{calls(python("c1", "say hello")), words("It said hello."), words("Passed on.")}}
	l, who := newLife(t, func(o *hub.Options) { o.Models = v; priced(o) }), someone("prj_a")
	turn := l.ask(who, hub.NewTurn{Input: input("Say hello")})
	if want := (model.Cost{Amount: 0.00004, Currency: "EUR"}); turn.Cost != want || turn.Context != (hub.Context{Used: 11, Size: 1000}) {
		t.Errorf("%+v, %+v", turn.Cost, turn.Context)
	}
	m, err := l.OpenModel(t.Context(), who, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range m.Stream(t.Context(), model.Request{Messages: input("Hello")}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var days []hub.Usage
	for deadline := time.Now().Add(testneeds.Patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if days, err = l.Usage(t.Context(), who, "", "", ""); err != nil {
			t.Fatal(err)
		}
		if len(days) == 1 && days[0].Cost == 0.00006 && days[0].Currency == "EUR" {
			return
		}
	}
	t.Errorf("%+v", days)
}

func TestATurnWithoutPricesHasNoCost(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, words("Hello."))
	turn := l.ask(who, hub.NewTurn{Input: input("Say hello"), NoPython: true})
	if turn.Cost != (model.Cost{}) || turn.Context != (hub.Context{Used: 11}) {
		t.Errorf("%+v, %+v", turn.Cost, turn.Context)
	}
}
