package workspace

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestReadTold(t *testing.T) {
	t.Parallel()
	say := func(what string, lines ...string) []byte {
		text, err := json.Marshal(map[string]any{"what": what, "lines": lines})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if got := ReadTold(say("3 rows × 2 columns,\n separated by\ttabs", "a\tb", "1\x1b[2J\u202e2")); got.What != "3 rows × 2 columns, separated by tabs" || len(got.Lines) != 2 || got.Lines[0] != "a\tb" || got.Lines[1] != "1 [2J 2" {
		t.Errorf("%q", got)
	}
	many := make([]string, 1000)
	for i := range many {
		many[i] = strings.Repeat("é", 20)
	}
	long := ReadTold(say(strings.Repeat("é", 1000), many...))
	total := 0
	for _, line := range long.Lines {
		total += len(line)
	}
	if len(long.What) > longestWhat+3 || !utf8.ValidString(long.What) || len(long.Lines) > mostTold || total > wholeTold+3 {
		t.Errorf("%d bytes, %d lines with %d bytes", len(long.What), len(long.Lines), total)
	}
	if one := ReadTold(say("text", strings.Repeat("x", 60_000))); len(one.Lines[0]) > longestTold+3 {
		t.Errorf("a line has %d bytes", len(one.Lines[0]))
	}
	for _, text := range []string{"", "{", "null", `{"what":7}`, `{"lines":{"a":1}}`, `{"what":"` + strings.Repeat("x", LargestTold) + `"}`, "\xff"} {
		if got := ReadTold([]byte(text)); got.What != "" || len(got.Lines) != 0 {
			t.Errorf("%.20q is told as %+v", text, got)
		}
	}
}
