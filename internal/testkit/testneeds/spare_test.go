package testneeds

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// TestSpare: there is a slot more while a processor had nothing to do for the last seconds.
func TestSpare(t *testing.T) {
	t.Parallel()
	var s spare
	idle, all := 1000, 5000
	see := func(after time.Duration, ticks, of int) int {
		idle, all = idle+ticks, all+of
		s.see(fmt.Sprintf("cpu  %d 0 0 %d 0 0 0 0 0 0\ncpu0 1 2 3 4\n", all-idle, idle), s.looked.Add(after))
		s.looked = time.Now() // lest it looks for itself
		return s.slots()
	}
	n := runtime.NumCPU()
	for _, c := range []struct {
		what      string
		after     time.Duration
		idle, all int
		want      int
	}{
		{"the first look", 2 * time.Second, 200, 200 * n, 0},
		{"one idle", 2 * time.Second, 200, 200 * n, 1},
		{"a half idle", 2 * time.Second, 100, 200 * n, 0},
		{"all idle", 3 * time.Second, 300 * n, 300 * n, 1},
		{"long ago", time.Minute, 6000 * n, 6000 * n, 0},
		{"idle again", 2 * time.Second, 200 * n, 200 * n, 1},
		{"counted backwards", 2 * time.Second, -5, 200 * n, 0},
	} {
		if got := see(c.after, c.idle, c.all); got != c.want {
			t.Errorf("%s: %d slots more", c.what, got)
		}
	}
	for _, text := range []string{"", "intr 1 2 3 4 5 6", "cpu a b c d e f g h", "cpu 1"} {
		if _, _, ok := ticks(text); ok {
			t.Errorf("%q has ticks", text)
		}
	}
}
