package bench_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/tools/bench"
)

func TestSummarize(t *testing.T) {
	t.Parallel()
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for name, c := range map[string]struct {
		samples []float64
		want    bench.Stats
	}{
		"none":           {nil, bench.Stats{}},
		"one":            {[]float64{7}, bench.Stats{N: 1, Min: 7, Median: 7, P95: 7, P99: 7, Max: 7}},
		"even":           {[]float64{4, 1, 3, 2}, bench.Stats{N: 4, Min: 1, Median: 2.5, P95: 4, P99: 4, Max: 4}},
		"odd":            {[]float64{30, 10, 20}, bench.Stats{N: 3, Min: 10, Median: 20, P95: 30, P99: 30, Max: 30}},
		"twenty":         {hundred[80:], bench.Stats{N: 20, Min: 1, Median: 10.5, P95: 19, P99: 20, Max: 20}},
		"a hundred":      {hundred, bench.Stats{N: 100, Min: 1, Median: 50.5, P95: 95, P99: 99, Max: 100}},
		"an outlier":     {append(slices.Repeat([]float64{1}, 199), 1000), bench.Stats{N: 200, Min: 1, Median: 1, P95: 1, P99: 1, Max: 1000}},
		"below zero too": {[]float64{-2, 2}, bench.Stats{N: 2, Min: -2, Median: 0, P95: 2, P99: 2, Max: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(c.samples)
			if diff := cmp.Diff(c.want, bench.Summarize(c.samples)); diff != "" {
				t.Errorf("stats (-want +got):\n%s", diff)
			}
			if !slices.Equal(before, c.samples) {
				t.Errorf("the samples were reordered to %v", c.samples)
			}
		})
	}
}
