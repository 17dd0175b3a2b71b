package stream_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/store"
	"cove/internal/server/stream"
)

var (
	background = context.Background
	everything = stream.Origin{}
)

// pass waits for a time of the bubble, and for what happens then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// bodies follows a stream to its end.
func bodies(f stream.Follower[rawMessage]) (string, error) {
	h := &heard{}
	h.hear(f, 0)
	return strings.Join(h.bodies, " "), h.err
}

func TestAFollowerOfAPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		s := streamsOf(t, t.Context(), m, stream.Options{})
		l := s.Open("work")
		var live, all heard
		go live.hear(s.Follow(t.Context(), stream.Source{Stream: "work", Part: "b"}, 0), 0)
		go all.hear(s.Follow(t.Context(), stream.Source{Stream: "work"}, 0), 0)
		for n := range 600 { // more than a follower takes at once, and than is in memory
			l.Append(t.Context(), stream.Origin{Part: []string{"a", "b", "a"}[n%3]}, body(n, 1))
			if n%100 == 0 {
				pass(time.Second)
			}
		}
		pass(time.Second)
		l.Append(t.Context(), stream.Origin{Part: "a"}, body(600, 1))
		synctest.Wait()
		var late heard // begins where the store has nothing of its part that is new, and memory has
		go late.hear(s.Follow(t.Context(), stream.Source{Stream: "work", Part: "b"}, 599), 0)
		l.Append(t.Context(), stream.Origin{Part: "b"}, body(601, 1))
		if err := finish(t.Context(), l, m); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(live.bodies) != 201 || !live.ended || live.bodies[1] != `"4 x"` || live.bodies[200] != `"601 x"` {
			t.Errorf("%d events of the part: %.100q", len(live.bodies), live.bodies)
		}
		if len(all.bodies) != 603 || !all.ended {
			t.Errorf("%d events of all", len(all.bodies))
		}
		if fmt.Sprint(late.bodies) != `["601 x"]` || !late.ended {
			t.Errorf("the late one heard %q", late.bodies)
		}
	})
}

// TestAStreamThatIsWrittenElsewhere is followed in the store until an event ends it, or its record says that it has ended.
func TestAStreamThatIsWrittenElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		here, there := streamsOf(t, t.Context(), m, stream.Options{}), streamsOf(t, t.Context(), m, stream.Options{})
		var ended atomic.Bool
		from := stream.Source{Stream: "work", Ended: func(context.Context) (bool, error) { return ended.Load(), nil }}
		l := there.Open("work")
		l.Append(t.Context(), everything, []byte("1"))
		var h, other heard
		go h.hear(here.Follow(t.Context(), from, 0), 0)
		from.Stream = "other"
		go other.hear(here.Follow(t.Context(), from, 0), 0)
		pass(time.Second)
		l.Append(t.Context(), everything, []byte("2"))
		pass(time.Second)
		if fmt.Sprint(h.bodies) != "[1 2]" || h.ended {
			t.Errorf("%q %v", h.bodies, h.ended)
		}
		if err := finish(t.Context(), l, m); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if fmt.Sprint(h.bodies) != `[1 2 "end"]` || !h.ended || other.ended {
			t.Errorf("%q %v, the other one %v", h.bodies, h.ended, other.ended)
		}
		if err := m.AddEvents(t.Context(), []stream.Event{{Stream: "other", Seq: 1, Body: []byte("3")}}); err != nil {
			t.Fatal(err)
		}
		ended.Store(true)
		pass(time.Second)
		if fmt.Sprint(other.bodies) != "[3]" || !other.ended {
			t.Errorf("%q %v", other.bodies, other.ended)
		}
	})
}

func TestFollowersEndWithAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		over, fence, gone := errors.New("over"), errors.New("fenced"), errors.New("gone")
		var fenced error
		life, end := context.WithCancelCause(background())
		s := streamsOf(t, life, &memory{}, stream.Options{Fenced: func() error { return fenced }})
		follow := func(ctx context.Context, name string) *heard {
			h := &heard{}
			go h.hear(s.Follow(ctx, stream.Source{Stream: name}, 0), 0)
			synctest.Wait()
			return h
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		s.Open("kept")
		fencedOff := s.Open("fenced")
		a, b, c := follow(ctx, "kept"), follow(t.Context(), "fenced"), follow(t.Context(), "kept")
		elsewhere := &heard{}
		go elsewhere.hear(s.Follow(t.Context(), stream.Source{Stream: "other", Ended: func(context.Context) (bool, error) { return false, nil }}, 0), 0)
		cancel(gone)
		fenced = fence
		fencedOff.Close()
		synctest.Wait()
		if !problem.Has(a.err, problem.GivenUp) || !errors.Is(a.err, gone) {
			t.Errorf("without its caller: %v", a.err)
		}
		if !errors.Is(b.err, fence) {
			t.Errorf("of another process: %v", b.err)
		}
		end(over)
		synctest.Wait()
		if !errors.Is(c.err, over) || !errors.Is(elsewhere.err, over) {
			t.Errorf("at the end: %v, %v", c.err, elsewhere.err)
		}
	})
}

// TestTheLastWrite has life end while events wait for the store: they are written once more, and Wait waits for that.
func TestTheLastWrite(t *testing.T) {
	t.Parallel()
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			life, end := context.WithCancel(background())
			m := &memory{takes: time.Second}
			m.set(true, 0)
			s := streamsOf(t, life, m, stream.Options{})
			l := s.Open("work")
			for range 4 {
				l.Offer(everything, body(1, 900)) // after which there is no room
			}
			pass(time.Minute)
			m.set(away, 0)
			end()
			began := time.Now()
			l.Append(background(), everything, body(2, 900)) // does not wait, either
			s.Wait()
			if waited := time.Since(began); waited > 10*time.Second {
				t.Errorf("it waited for %v", waited)
			}
			if got, err := bodies(s.Recorded(t.Context(), stream.Source{Stream: "work"})); err != nil || (strings.Count(got, " x") == 0) != away {
				t.Errorf("away %v: %.100s %v", away, got, err)
			}
			if !away {
				if err := finish(background(), l, m); err != nil {
					t.Fatal(err)
				}
				got, _ := bodies(s.Recorded(t.Context(), stream.Source{Stream: "work"}))
				if !strings.HasSuffix(got, ` gap "end"`) {
					t.Errorf("%.20s...%s", got, got[max(0, len(got)-20):])
				}
			}
		})
	}
}

// TestAfterACrash has a process die that has shown more than it stored: what is read after it has a gap, and the end, with numbers that nobody has seen.
func TestAfterACrash(t *testing.T) {
	t.Parallel()
	for _, stored := range []int{0, 1, 2, 3, 700} {
		m := &memory{}
		s := streamsOf(t, t.Context(), m, stream.Options{})
		for n := range stored {
			if err := m.AddEvents(t.Context(), []stream.Event{{Stream: "work", Seq: int64(n + 1), Body: []byte("1")}}); err != nil {
				t.Fatal(err)
			}
		}
		from := stream.Origin{Part: "p", Step: 1}
		last, err := s.Ending(t.Context(), "work", stream.Gap(from), stream.Event{Origin: from, Body: []byte("2")}, stream.Event{Body: []byte(`"end"`)})
		if err != nil {
			t.Fatal(err)
		}
		if len(last) != 4 || !last[0].IsGap() || last[0].Origin != everything || last[0].Seq < int64(stored)+1<<20 || last[2].Origin != from || last[3].Stream != "work" {
			t.Errorf("%+v", last)
		}
		if err := m.AddEvents(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		got, err := bodies(s.Recorded(t.Context(), stream.Source{Stream: "work"}))
		if want := strings.Repeat("1 ", stored) + `gap gap 2 "end"`; err != nil || got != want {
			t.Errorf("%d: %s %v", stored, got, err)
		}
	}
}

// TestAnEndThatIsRefused is stored without what waited with it.
func TestAnEndThatIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		s := streamsOf(t, t.Context(), m, stream.Options{})
		l := s.Open("work")
		l.Append(t.Context(), everything, []byte("1"))
		pass(time.Second)
		l.Append(t.Context(), everything, []byte("2"))
		l.Append(t.Context(), everything, []byte(`"poison"`))
		if err := finish(t.Context(), l, m); err != nil {
			t.Fatal(err)
		}
		if got, err := bodies(s.Recorded(t.Context(), stream.Source{Stream: "work"})); err != nil || got != `1 gap "end"` {
			t.Errorf("%s %v", got, err)
		}
		if last := []stream.Event{{Body: []byte("1")}}; !slices.EqualFunc(stream.Shortened(last), last, func(a, b stream.Event) bool { return string(a.Body) == string(b.Body) }) {
			t.Error("an end alone cannot become shorter")
		}
	})
}

type observed struct {
	late []time.Duration
	gaps int
}

func (o *observed) Delivered(after time.Duration) { o.late = append(o.late, after) }
func (o *observed) Gap()                          { o.gaps++ }

func TestAnObserver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, m := &observed{}, &memory{}
		s := streamsOf(t, t.Context(), m, stream.Options{Observe: func(_ context.Context, name string) stream.Observer {
			if name != "work" {
				return nil
			}
			return o
		}})
		m.set(true, 0)
		l := s.Open("work")
		l.Append(t.Context(), everything, []byte("1")) // before there are followers
		pass(time.Second)
		go func() {
			for _, err := range s.Follow(t.Context(), stream.Source{Stream: "work"}, 0) {
				if err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		synctest.Wait()
		pass(time.Millisecond)
		l.Append(t.Context(), everything, []byte("2")) // is taken a second from the first, and processed a second later
		for range 7 {
			l.Offer(everything, body(3, 900))
		}
		m.set(false, 0)
		pass(time.Minute)
		if err := finish(t.Context(), l, m); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if o.gaps != 1 || len(o.late) != 6 || o.late[0] != 2*time.Second-time.Millisecond {
			t.Errorf("%+v", o)
		}
	})
}

// TestOnSQLite stores and follows a stream in a real database, which a second reader finds complete.
func TestOnSQLite(t *testing.T) {
	t.Parallel()
	address := filepath.Join(t.TempDir(), "events.db")
	db, err := store.Open(t.Context(), store.Options{Database: address})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	s := streamsOf(t, t.Context(), db, stream.Options{})
	l := s.Open("work")
	h, done := &heard{}, make(chan bool)
	go func() {
		h.hear(s.Follow(t.Context(), stream.Source{Stream: "work"}, 0), 0)
		close(done)
	}()
	const events = 500
	for n := range events {
		l.Append(t.Context(), stream.Origin{Part: "p", Step: n}, body(n, 100))
	}
	if err := l.Finish(t.Context(), everything, []byte(`"end"`), db.AddEvents); err != nil {
		t.Fatal(err)
	}
	<-done
	s.Wait()
	again := &heard{}
	again.hear(s.Recorded(t.Context(), stream.Source{Stream: "work"}), 0)
	if len(h.bodies) != events+1 || !h.ended || !slices.Equal(h.bodies, again.bodies) || !slices.Equal(h.seqs, again.seqs) {
		t.Errorf("%d events were heard and %d are recorded", len(h.bodies), len(again.bodies))
	}
	part := &heard{}
	part.hear(s.Recorded(t.Context(), stream.Source{Stream: "work", Part: "p"}), 0)
	if len(part.bodies) != events {
		t.Errorf("%d events of the part are recorded", len(part.bodies))
	}
}

// BenchmarkStream is what an event costs from its being appended until a live follower has it, with a store in memory.
func BenchmarkStream(b *testing.B) {
	for _, followers := range []int{1, 16} {
		b.Run(fmt.Sprint(followers), func(b *testing.B) {
			m := &forgetful{}
			s := stream.New(b.Context(), m, stream.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
			l := s.Open("work")
			done := make(chan int64, followers)
			for range followers {
				go func() {
					last := int64(0)
					for n, err := range s.Follow(b.Context(), stream.Source{Stream: "work"}, 0) {
						if err != nil {
							b.Error(err)
						}
						last = n.Seq
						if last == int64(b.N) {
							break
						}
					}
					done <- last
				}()
			}
			b.ReportAllocs()
			text := body(1, 64)
			for range b.N {
				l.Append(b.Context(), everything, text)
			}
			for range followers {
				<-done
			}
		})
	}
}

// forgetful is a store that takes everything, and of which followers need no more than where they are.
type forgetful struct{}

func (forgetful) AddEvents(context.Context, []stream.Event) error { return nil }

func (forgetful) Events(_ context.Context, name, _ string, after int64, limit, _ int) ([]stream.Event, error) {
	out := make([]stream.Event, limit)
	for n := range out {
		out[n] = stream.Event{Stream: name, Seq: after + int64(n) + 1, Body: []byte("1")}
	}
	return out, nil
}
