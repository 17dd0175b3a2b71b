package hub_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/server/hub"
)

// TestMetadata: what may be kept is counted in characters, and what a surface keeps for itself is beside it.
func TestMetadata(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t)
	full := map[string]string{strings.Repeat("名", 64): strings.Repeat("值", 512)}
	for n := len(full); n < 16; n++ {
		full[fmt.Sprint(n)] = ""
	}
	with := func(key, value string) map[string]string {
		m := maps.Clone(full)
		m[key] = value
		return m
	}
	for name, c := range map[string]struct {
		metadata map[string]string
		refused  bool
	}{
		"full":                      {full, false},
		"and the surface's":         {with("openai.items", strings.Repeat("x", 100_000)), false},
		"one more":                  {with("more", ""), true},
		"a long value":              {with("1", strings.Repeat("值", 513)), true},
		"a long name":               {map[string]string{strings.Repeat("名", 65): ""}, true},
		"too much of the surface's": {with("openai.items", strings.Repeat("x", 2<<20)), true},
	} {
		_, err := l.CreateConversation(t.Context(), who, hub.NewConversation{Metadata: c.metadata})
		if refused := err != nil; refused != c.refused || refused && problem.Of(err).Code != "conversation_invalid" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
