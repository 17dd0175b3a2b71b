package kernel_test

import (
	"testing"
	"time"

	"cove/internal/python/kernel"
)

func TestPatience(t *testing.T) {
	t.Parallel()
	for loadavg, want := range map[string]time.Duration{
		"0.00 0.01 0.05 1/200 4711\n":       5 * time.Second,
		"1.50 9.00 9.00 2/200 4711\n":       5 * time.Second,
		"6.00 0.01 0.05 1/200 4711\n":       15 * time.Second,
		"0.10 0.01 0.05 8/200 4711\n":       20 * time.Second,
		"110.00 80.00 60.00 112/900 4711\n": 30 * time.Second,
		"":                                  5 * time.Second,
		"1e308 x":                           5 * time.Second,
	} {
		if got := kernel.Patience(2, loadavg, 2); got != want {
			t.Errorf("%q: %v, want %v", loadavg, got, want)
		}
	}
	if got := kernel.Patience(0, "110.00 80.00 60.00 112/900 4711\n", 2); got != 4*time.Second {
		t.Errorf("code has %v to hear an interrupt", got)
	}
}
