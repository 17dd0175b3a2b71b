package stream

import (
	"context"
)

// crashGap is more events than a process can have shown and not stored when it was killed.
const crashGap = 1 << 20

// Ending numbers the last events of a stream whose process died: a gap, then end, which is not empty. A follower may have seen events that
// the process had not stored; the gap's number is above all of theirs. The events are returned for the caller to store; they get their Stream, Seq and At.
func (s *Streams) Ending(ctx context.Context, stream string, end ...Event) ([]Event, error) {
	last, err := s.lastStored(ctx, stream)
	if err != nil {
		return nil, err
	}
	events := append([]Event{Gap(end[len(end)-1].Origin)}, end...)
	at := s.o.Now()
	for n := range events {
		events[n].Stream, events[n].Seq, events[n].At = stream, last+crashGap+int64(n), at
	}
	return events, nil
}

// lastStored is the number of the last stored event of a stream without gaps in its numbers, found by bisection; 0 where there is none.
func (s *Streams) lastStored(ctx context.Context, stream string) (int64, error) {
	more := func(after int64) (bool, error) {
		events, err := s.store.Events(ctx, stream, "", after, 1, 1)
		return len(events) > 0, err
	}
	low, high := int64(0), int64(1) // an event is after low-1, and none after high
	for {
		found, err := more(high - 1)
		if err != nil {
			return 0, err
		}
		if !found {
			break
		}
		low, high = high, 2*high
	}
	for high-1 > low {
		mid := (low + high) / 2
		found, err := more(mid - 1)
		if err != nil {
			return 0, err
		}
		if found {
			low = mid
		} else {
			high = mid
		}
	}
	return low, nil
}
