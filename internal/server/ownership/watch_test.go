package ownership

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// process is one owner of the model. Times are seconds of the database's clock.
type process struct {
	until   time.Time
	seen    watch
	next    int // when it renews again
	stopped int // until when it stands still; it cannot reach the database meanwhile
	killed  int // since when it is dead; 0: it is not
	buried  bool
	faulted int // when it last stood still or was killed
}

func second(n int) time.Time { return time.Unix(int64(n), 0) }

// round is what Owner.round does: it returns whom p finds dead.
func (p *process) round(now int, all []*process) (dead []*process) {
	p.until, p.next = second(now).Add(Lease), now+int(Round/time.Second)
	p.seen = p.seen.saw(second(now))
	for _, o := range all {
		if o != p && !o.buried && p.seen.dead(Record{Until: o.until}) {
			dead = append(dead, o)
		}
	}
	return dead
}

// TestWhoIsTakenForDead has processes stand still, die and start anew while the database comes and goes. Nobody is taken for dead who could have renewed his
// lease, and whoever died is found within a lease and a round when another one could reach the database all the while.
func TestWhoIsTakenForDead(t *testing.T) {
	t.Parallel()
	const lease, every = int(Lease / time.Second), int(Round / time.Second)
	rapid.Check(t, func(t *rapid.T) {
		all := make([]*process, rapid.IntRange(2, 4).Draw(t, "processes"))
		for i := range all {
			all[i] = &process{until: second(100).Add(Lease), next: 100 + rapid.IntRange(0, every-1).Draw(t, "phase")}
			all[i].seen = all[i].seen.saw(second(100))
		}
		away, up := 0, 100 // the database is away until, and is there since
		for now := 100; now < 400; now++ {
			switch p := all[rapid.IntRange(0, len(all)-1).Draw(t, "who")]; rapid.IntRange(0, 59).Draw(t, "what") {
			case 0:
				p.stopped = max(p.stopped, now+rapid.IntRange(1, 60).Draw(t, "stop"))
			case 1:
				if p.killed == 0 {
					p.killed = now
				}
			case 2:
				away = max(away, now+rapid.IntRange(1, 40).Draw(t, "outage"))
			}
			if now < away {
				up = now + 1
			}
			for _, p := range all {
				if p.killed > 0 || now < p.stopped {
					p.faulted = now
					continue
				}
				if p.buried || now < p.next {
					continue
				}
				if now < away {
					p.next = now + int(retry/time.Second)
					continue
				}
				for _, o := range p.round(now, all) {
					if o.buried = true; now-o.faulted > lease {
						t.Fatalf("at %d a process was taken for dead that had been well since %d", now, o.faulted)
					}
				}
			}
			well := false // somebody could reach the database since the lease of every dead one began to run out
			for _, p := range all {
				well = well || !p.buried && p.killed == 0 && now-max(p.faulted, up) > lease+2*every
			}
			for _, p := range all {
				if well && p.killed > 0 && !p.buried && now-p.killed > lease+every {
					t.Fatalf("at %d a process that died at %d was not found", now, p.killed)
				}
			}
		}
	})
}
