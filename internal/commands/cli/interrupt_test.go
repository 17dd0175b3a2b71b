package cli_test

import (
	"slices"
	"strings"
	"testing"

	"cove/internal/commands/cli"
	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
)

// TestOnlyCodeDoesNotStop wants what is said of code that goes on to be said while code runs in this process: not of a model or a server that is slow to stop.
func TestOnlyCodeDoesNotStop(t *testing.T) {
	t.Parallel()
	begun := []loop.Event{loop.Text{Delta: "let me see"}, loop.Start{Code: "x"}, loop.Output{Event: kernel.Stream{Name: "stdout", Data: []byte("1")}}}
	ended := slices.Concat(begun, []loop.Event{loop.Output{Event: kernel.Done{Outcome: kernel.OutcomeInterrupted}}})
	for name, test := range map[string]struct {
		here   bool
		events []loop.Event
		said   bool
	}{
		"the model thinks":           {true, begun[:1], false},
		"code runs":                  {true, begun, true},
		"code ran":                   {true, ended, false},
		"the model goes on after it": {true, append(ended[:4:4], loop.Text{Delta: "so"}), false},
		"the next code runs":         {true, append(ended[:4:4], loop.Start{Code: "y"}), true},
		"code runs on a server":      {false, begun, false},
	} {
		text := cli.LateWords(test.here, test.events...)
		if said := text == "cove: the code does not stop: its Python is ended in a few seconds and its variables are lost; Ctrl-C again ends it at once\n"; said != test.said || !said && strings.TrimSpace(text) != "" {
			t.Errorf("%s: %q", name, text)
		}
	}
}
