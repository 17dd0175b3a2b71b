package stream_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"unsafe"

	"cove/internal/server/stream"
)

// counting is a store that counts what is read from it, and can hold readers up.
type counting struct {
	memory
	mu    sync.Mutex
	reads map[int64]int // by the number after which they begin
	most  int           // bytes of one read
	hold  chan struct{} // nil: nobody waits
}

func (c *counting) Events(ctx context.Context, name, part string, after int64, limit, size int) ([]stream.Event, error) {
	events, err := c.memory.Events(ctx, name, part, after, limit, size)
	read := 0
	for _, e := range events {
		read += len(e.Body)
	}
	c.mu.Lock()
	c.reads[after]++
	c.most = max(c.most, read)
	hold := c.hold
	c.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return events, err
}

// TestPagesAreBoundedAndShared has many followers begin to read a stream and read no further. What they hold of it is one page, which is small.
func TestPagesAreBoundedAndShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counting{reads: map[int64]int{}}
		s := streamsOf(t, t.Context(), store, stream.Options{})
		const size = 200 // of an event; a page has 512 bytes
		for seq := range int64(100) {
			if err := store.AddEvents(t.Context(), []stream.Event{{Stream: "a", Seq: seq + 1, Body: body(int(seq), size)}}); err != nil {
				t.Fatal(err)
			}
		}
		ended := func(context.Context) (bool, error) { return true, nil }
		begun, leave := make(chan *byte), make(chan struct{})
		const followers = 500
		for range followers {
			go func() {
				for e, err := range s.Follow(t.Context(), stream.Source{Stream: "a", Ended: ended}, 0) {
					if err != nil {
						t.Error(err)
					}
					begun <- unsafe.SliceData(e.Event)
					<-leave
					return
				}
			}()
		}
		copies := map[*byte]bool{}
		for range followers {
			copies[<-begun] = true
		}
		close(leave)
		if len(copies) > 1 || store.reads[0] > 1 {
			t.Errorf("%d followers hold %d copies of the first event, and read it %d times", followers, len(copies), store.reads[0])
		}
		if store.most > 512+size+10 {
			t.Errorf("a follower reads %d bytes at once", store.most)
		}
	})
}

// TestAPageThatWasReadTooEarly has one follower ask the store before the last event is there, and another one come in after it while the store still answers.
func TestAPageThatWasReadTooEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counting{reads: map[int64]int{}, hold: make(chan struct{})}
		s := streamsOf(t, t.Context(), store, stream.Options{})
		var early, late heard
		go early.hear(s.Recorded(t.Context(), stream.Source{Stream: "a"}), 0)
		synctest.Wait()
		if err := store.AddEvents(t.Context(), []stream.Event{{Stream: "a", Seq: 1, Body: []byte(`"end"`)}}); err != nil {
			t.Fatal(err)
		}
		go late.hear(s.Recorded(t.Context(), stream.Source{Stream: "a"}), 0)
		synctest.Wait()
		close(store.hold)
		synctest.Wait()
		if got := fmt.Sprint(late.bodies); got != `["end"]` || !late.ended {
			t.Errorf("the second follower heard %s", got)
		}
	})
}

// TestLargeEventsAreHeldWithLeave has followers read an event that is larger than a page. Each asks for room, and one that gets none ends.
func TestLargeEventsAreHeldWithLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counting{reads: map[int64]int{}}
		full := errors.New("there is no room")
		room := int64(100_000)
		s := streamsOf(t, t.Context(), store, stream.Options{Hold: func(_ context.Context, bytes int64) error {
			if room -= bytes; room < 0 {
				return full
			}
			return nil
		}})
		for seq, size := range []int{100, 40_000, 100} {
			if err := store.AddEvents(t.Context(), []stream.Event{{Stream: "a", Seq: int64(seq) + 1, Body: body(seq, size)}}); err != nil {
				t.Fatal(err)
			}
		}
		ended := func(context.Context) (bool, error) { return true, nil }
		for n := range 4 {
			read, last := 0, error(nil)
			for e, err := range s.Follow(t.Context(), stream.Source{Stream: "a", Ended: ended}, 0) {
				read += len(e.Event)
				last = err
			}
			switch {
			case n < 2 && (last != nil || read < 40_000):
				t.Errorf("follower %d read %d bytes, %v", n, read, last)
			case n >= 2 && !errors.Is(last, full):
				t.Errorf("follower %d has %v", n, last)
			}
		}
	})
}
