package bench

import (
	"math"
	"slices"
)

// Stats sums samples up. All but N are in the samples' unit and 0 when there are none.
type Stats struct {
	N      int     `json:"n"`
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// Summarize sorts a copy of samples. The median of an even number is the mean of the two in the middle; the percentiles
// are by nearest rank, so each of them was really measured.
func Summarize(samples []float64) Stats {
	n := len(samples)
	if n == 0 {
		return Stats{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	return Stats{
		N: n, Min: sorted[0], Max: sorted[n-1],
		Median: (sorted[(n-1)/2] + sorted[n/2]) / 2,
		P95:    nearestRank(sorted, 95), P99: nearestRank(sorted, 99),
	}
}

func nearestRank(sorted []float64, percent float64) float64 {
	rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}
