package hub_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cove/internal/http/bodybudget"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/stream"
)

// TestFollowersMissNothing has followers come and go at random while an execution prints numbers, some more than the memory keeps.
func TestFollowersMissNothing(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s := l.session(who)
	gates := 0
	rapid.Check(t, func(t *rapid.T) {
		gates++
		var code []string
		want := 0
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			verb := rapid.SampledFrom([]string{"count", "flood"}).Draw(t, "verb")
			n := rapid.IntRange(0, 60).Draw(t, "n")
			want += n
			code = append(code, fmt.Sprint(verb, " ", n))
		}
		part := rapid.IntRange(0, len(code)-1).Draw(t, "gate")
		gate := fmt.Sprint("gate", gates)
		code[part] += "\nwait " + gate
		e := l.start(who, s.ID, strings.Join(code, "\n"))
		opened := false
		after, seen, ended := int64(0), 0, 0
		for ended == 0 {
			// A follower that leaves after some events; when it has none for now, the gate has to open first.
			leaves := rapid.IntRange(1, 200).Draw(t, "leaves")
			ctx, cancel := context.WithCancel(context.Background())
			f, err := l.Follow(ctx, who, e.ID, after)
			if err != nil {
				t.Fatal(err)
			}
			room := before(code, part) - seen
			if !opened && (room == 0 || rapid.Bool().Draw(t, "open")) {
				opened = true
				l.toys.open(gate)
			}
			if !opened {
				leaves = min(leaves, room)
			}
			for n, err := range f {
				if err != nil {
					t.Fatal(err)
				}
				if n.Seq != after+1 || n.Gap {
					t.Fatalf("number %d comes after %d", n.Seq, after)
				}
				after = n.Seq
				leaves--
				switch n.Event.(type) {
				case kernel.Stream:
					seen++
				case kernel.Done:
					ended++
				}
				if leaves <= 0 {
					break
				}
			}
			cancel()
		}
		if seen != want || ended != 1 {
			t.Fatalf("saw %d events of %d and %d ends", seen, want, ended)
		}
	})
}

// before is how many events come before the gate.
func before(code []string, gate int) int {
	n := 0
	for _, c := range code[:gate+1] {
		var verb string
		var k int
		_, _ = fmt.Sscan(c, &verb, &k)
		n += k
	}
	return n
}

// TestASlowFollowerCostsNothing has an execution print far more than the memory keeps while somebody reads one event and no more.
func TestASlowFollowerCostsNothing(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s := l.session(who)
	e := l.start(who, s.ID, "say on\nwait go\nflood 400\nwait end")
	f, err := l.Follow(t.Context(), who, e.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	stuck, release, left := make(chan bool), make(chan bool), make(chan int)
	go func() {
		seen := 0
		for _, err := range f {
			if err != nil {
				t.Error(err)
			}
			if seen++; seen == 1 {
				stuck <- true
				<-release
			}
		}
		left <- seen
	}()
	<-stuck
	l.toys.open("go")
	fast, err := l.Follow(t.Context(), who, e.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, err := range fast {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 401 {
			break
		}
	}
	for last := int64(0); last < 401; last = l.Stored(e.ID) {
		runtime.Gosched()
	}
	if n := l.Tail(e.ID); n > 2<<20 {
		t.Errorf("%d bytes of events are in memory", n)
	}
	l.toys.open("end")
	if _, done := l.wait(who, e.ID); done.Outcome != kernel.OutcomeOK {
		t.Errorf("%+v", done)
	}
	release <- true
	if n := <-left; n != 402 {
		t.Errorf("the slow follower saw %d events", n)
	}
}

func TestFollowEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s := l.session(who)
	e := l.start(who, s.ID, "say on\nwait never")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f, err := l.Follow(ctx, who, e.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	var last error
	for _, err := range f {
		last = err
		cancel()
	}
	fails(t, last, "canceled")
	if e, err := l.Execution(t.Context(), who, e.ID); err != nil || e.State != hub.ExecutionRunning {
		t.Errorf("without its follower it is %+v %v", e, err)
	}
}

// TestFollowersCountForTheirKey: what each follower may hold of a stream is taken from what the requests of its key may hold, and given back when it leaves.
func TestFollowersCountForTheirKey(t *testing.T) {
	t.Parallel()
	l, who := newLife(t, nil), someone(auth.LocalProject)
	s := l.session(who)
	e := l.start(who, s.ID, "say on")
	l.wait(who, e.ID)
	const most = 4
	budget := bodybudget.NewBudget(2*most*stream.PageSize, 0) // half of it for one key
	var shares []*bodybudget.Share
	follow := func() error {
		share := budget.Share("key")
		shares = append(shares, share)
		_, err := l.Follow(bodybudget.With(t.Context(), share), who, e.ID, 0)
		return err
	}
	for range most {
		if err := follow(); err != nil {
			t.Fatal(err)
		}
	}
	fails(t, follow(), "memory_busy")
	shares[0].Release()
	if err := follow(); err != nil {
		t.Error(err)
	}
}
