package pool

import "time"

const (
	// spell is how long claims count as one burst.
	spell = time.Minute
	// memoryOfBursts is how long a burst is remembered.
	memoryOfBursts = 15 * time.Minute
)

// burst is how many claims came within a spell from its first one on.
type burst struct {
	began  time.Time
	claims int
}

// demand knows the bursts of late. Its zero value knows none.
type demand struct{ bursts []burst }

// note counts a claim.
func (d *demand) note(now time.Time) {
	if n := len(d.bursts); n > 0 && now.Sub(d.bursts[n-1].began) < spell {
		d.bursts[n-1].claims++
		return
	}
	d.forget(now)
	d.bursts = append(d.bursts, burst{began: now, claims: 1})
}

// most is how many claims the largest burst had.
func (d *demand) most(now time.Time) int {
	d.forget(now)
	most := 0
	for _, b := range d.bursts {
		most = max(most, b.claims)
	}
	return most
}

func (d *demand) forget(now time.Time) {
	gone := 0
	for gone < len(d.bursts) && now.Sub(d.bursts[gone].began) >= memoryOfBursts {
		gone++
	}
	d.bursts = append(d.bursts[:0], d.bursts[gone:]...)
}
