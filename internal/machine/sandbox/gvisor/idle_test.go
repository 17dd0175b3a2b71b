package gvisor

import "testing"

// TestRestingCollectsOnce wants one collection after each time in which a process worked, when that is over.
func TestRestingCollectsOnce(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	var r resting
	for i, look := range []struct {
		allocated uint64
		want      bool
	}{
		{20 * mb, false},                   // it starts
		{31 * mb, false},                   // and goes on
		{31*mb + 1000, true},               // it rests
		{31*mb + 2000, false},              // nothing is new
		{60 * mb, false},                   // a save
		{60 * mb, true},                    // is over
		{61 * mb, false}, {61 * mb, false}, // little
		{61*mb + mb/2, false}, {62 * mb, false}, {62 * mb, true}, // adds up
	} {
		if got := r.after(look.allocated); got != look.want {
			t.Errorf("look %d, at %d bytes: %v", i, look.allocated, got)
		}
	}
}
