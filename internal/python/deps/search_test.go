package deps_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"cove/internal/python/deps"
)

// answers is a straight account of the order in which a search tries things: it takes the verdicts one by one and says what the search ends in.
type answers func(step string) string

func (ask answers) search() string {
	for range deps.Rounds {
		if ask("settle") == "solved" || ask("recall") == "solved" {
			return "found"
		}
		switch ask("mend") {
		case "emptied":
			return "empty"
		case "mended":
			continue
		}
		break
	}
	if ask("build") == "solved" || ask("change") == "solved" || ask("salvage") == "solved" {
		return "found"
	}
	return "failed"
}

// failure ends the account where a step has failed.
type failure struct{}

func (ask answers) end() (end string) {
	defer func() {
		if r := recover(); r != nil && r != (failure{}) {
			panic(r)
		} else if r != nil {
			end = "failed"
		}
	}()
	return ask.search()
}

// Whatever the steps find, a search tries the same as the account of it does, in the same order, and ends in the same.
func TestASearchGoesByItsTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type tried struct{ step, verdict string }
		var trace []tried
		fault := errors.New("the index is away")
		end, err := deps.Walk(func(at string) (string, error) {
			v := rapid.SampledFrom(append(deps.Verdicts(at), "fault")).Draw(t, at)
			if at != "salvage" && rapid.Bool().Draw(t, "goes on") { // else most searches are over at once
				v = map[string]string{"mend": "mended"}[at]
				if v == "" {
					v = "unsolved"
				}
			}
			trace = append(trace, tried{at, v})
			if v == "fault" {
				return "", fault
			}
			return v, nil
		})
		if (end == "failed") != errors.Is(err, fault) {
			t.Fatalf("it ended in %s with %v after %v", end, err, trace)
		}
		left := slices.Clone(trace)
		want := answers(func(step string) string {
			if len(left) == 0 || left[0].step != step {
				t.Fatalf("%s should be tried, where %v is left of %v", step, left, trace)
			}
			v := left[0].verdict
			left = left[1:]
			if v == "fault" {
				panic(failure{})
			}
			return v
		}).end()
		if want != end || len(left) > 0 {
			t.Fatalf("it ended in %s and not in %s, with %v left of %v", end, want, left, trace)
		}
	})
}

// A verdict that a step cannot have is no way out of a search.
func TestASearchRefusesAnUnknownVerdict(t *testing.T) {
	t.Parallel()
	if end, err := deps.Walk(func(string) (string, error) { return "emptied", nil }); end != "failed" || err == nil {
		t.Errorf("it ended in %s with %v", end, err)
	}
}
