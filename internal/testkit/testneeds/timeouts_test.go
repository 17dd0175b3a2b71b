package testneeds

import (
	"testing"
	"time"
)

// TestAllowed has tests take longer where that is said, and never less.
func TestAllowed(t *testing.T) {
	for slowness, want := range map[string]time.Duration{"": time.Minute, "10": 10 * time.Minute, "1": time.Minute, "0": time.Minute, "-3": time.Minute, "ten": time.Minute} {
		t.Setenv(slownessVariable, slowness)
		if got := Allowed(time.Minute); got != want {
			t.Errorf("%q: %s instead of %s", slowness, got, want)
		}
	}
}

// TestCountedTime counts no more time than has passed, and some of it.
func TestCountedTime(t *testing.T) {
	t.Parallel()
	if got := CountedTime(time.Second); got <= 0 || got > time.Second {
		t.Errorf("of a second, %s count", got)
	}
}
