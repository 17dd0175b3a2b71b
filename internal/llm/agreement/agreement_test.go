package agreement_test

import (
	"fmt"
	"testing"

	"cove/internal/llm/agreement"
)

func TestGroups(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		question string
		answers  []string
		want     string
	}{
		"one against two":          {"total?", []string{"It is 41.", "The total is **42**.", "42 (from 3 rows)"}, "[[1 2] [0]]"},
		"rounded":                  {"mean?", []string{"about 3.14", "3.14159", "3.2"}, "[[0 1] [2]]"},
		"thousands":                {"sum?", []string{"12,345.50", "12345.5", "−12345.5"}, "[[0 1] [2]]"},
		"numbers of the question":  {"sales of 2024?", []string{"In 2024 they were 7", "2024: 8", "7"}, "[[0 2] [1]]"},
		"words":                    {"which?", []string{"North", "**north**.", "South", ""}, "[[0 1] [2] [3]]"},
		"Chinese":                  {"哪个？", []string{"北方。", "北方", "南方"}, "[[0 1] [2]]"},
		"nothing said":             {"which?", []string{"", " ", "x"}, "[[0] [1] [2]]"},
		"a number against a word":  {"which?", []string{"42", "forty-two"}, "[[0] [1]]"},
		"only numbers it was told": {"is 7 prime?", []string{"7 is prime", "7 is prime!", "7 is not prime"}, "[[0 1] [2]]"},
		"none":                     {"", nil, "[]"},
	} {
		if got := fmt.Sprint(agreement.Groups(c.question, c.answers)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
