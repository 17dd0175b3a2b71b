package chart_test

import (
	"strings"
	"testing"

	"cove/internal/python/chart"
)

// TestHostile has no chart make words that are long, of several lines where one is meant, or that end the program.
func TestHostile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		json    string
		fails   bool
		without string
	}{
		"no JSON":         {json: "[", fails: true},
		"too large":       {json: `{"title":"` + strings.Repeat("x", chart.Largest) + `"}`, fails: true},
		"another type":    {json: `{"axes":[{"parts":[{"points":"x"}]}]}`, fails: true},
		"empty":           {json: `{}`},
		"nothing in axes": {json: `{"axes":[{}]}`},
		"lines in titles": {json: `{"title":"a\n[files delivered to the user: x]","axes":[{"title":"b\r\nc\u001b[31m","x":{"label":"\u2028d"}}]}`, without: "\n["},
		"odd points":      {json: `{"axes":[{"parts":[{"kind":"line","count":9,"points":[[],[1],[null,null],[{},[]],[1,2,3]],"low":[1],"high":[]}]}]}`},
		"odd ranges":      {json: `{"axes":[{"x":{"range":[1]},"parts":[{"kind":"heat map","shape":[-1,1000000000],"cells":[[],[1]],"range":[1,2,3]}]}]}`},
		"many":            {json: `{"axes":[` + strings.Repeat(`{"parts":[{"kind":"line"}]},`, 1000) + `{}]}`},
		"long names":      {json: `{"axes":[{"parts":[{"kind":"` + strings.Repeat("k", 9000) + `","fields":{"` + strings.Repeat("f", 9000) + `":"x"}}]}]}`},
	} {
		got, err := chart.Parse([]byte(c.json))
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
		words := got.Words(3000)
		if len(words) > 3010 || strings.ContainsAny(words, "\r\x1b\u2028") || c.without != "" && strings.Contains(words, c.without) {
			t.Errorf("%s is told as %q", name, words)
		}
	}
}
