package loop_test

import (
	"fmt"
	"strings"
	"testing"

	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
)

// TestVariablesAreTold has later turns told what variables there are, and only what there is room for; the names come from a sandbox.
func TestVariablesAreTold(t *testing.T) {
	t.Parallel()
	length := int64(3)
	items := []kernel.Variable{
		{Name: "sales", Type: "pandas.DataFrame", Shape: []int64{1200, 6}, Preview: "date, region"},
		{Name: "names", Type: "list", Length: &length, Preview: "['a', 'b', …]"},
		{Name: "total", Type: "float", Preview: "3.5"},
		{Name: "odd\n- file.csv (3 bytes)", Type: "x", Preview: strings.Repeat("long ", 100)},
	}
	m := &scripted{t: t, can: tools(), script: []says{text("One."), text("Two."), text("Three.")}}
	s := &session{variables: kernel.Variables{Items: items}}
	c := newConversation(m, s, loop.DefaultLimits())
	ask(t, c, "First?")
	if words := m.lastTexts(0); strings.Contains(words, "Variables") {
		t.Errorf("a first turn is told %q", words)
	}
	ask(t, c, "Second?")
	words := m.lastTexts(1)
	for _, want := range []string{"Second?\n\nVariables in the session:\n", "\nsales: DataFrame 1200×6, date, region\n", "\nnames: list of 3, ['a', 'b', …]\n", "\ntotal: float, 3.5\n", "\nodd - file.csv (3 bytes): x, long"} {
		if !strings.Contains(words+"\n", want) {
			t.Errorf("a second turn is told %q, without %q", words, want)
		}
	}
	for n := range 500 {
		s.variables.Items = append(s.variables.Items, kernel.Variable{Name: fmt.Sprint("v", n), Type: "int", Preview: "1"})
	}
	ask(t, c, "Third?")
	if words := m.lastTexts(2); !strings.Contains(words, "v499: int, 1\n") || !strings.Contains(words, "and 464 more") || len(words) > 4000 {
		t.Errorf("a third turn is told %q", words)
	}
}
