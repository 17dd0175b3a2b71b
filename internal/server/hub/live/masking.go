package live

import (
	"context"
	"iter"
	"time"

	"cove/internal/code/redact"
	"cove/internal/machine/process"
)

// How long output is held back that may be the beginning of a secret and does not go on. People see what they type come back from a terminal.
const (
	outputHeld   = 50 * time.Millisecond
	terminalHeld = 15 * time.Millisecond
)

// masker puts masks of the same length in the place of what is taken out of a process's output, so that positions stay what they are. It is used by one goroutine.
type masker struct {
	kinds   redact.Kinds
	from    int64 // nobody asked for what is before
	streams map[process.Kind]*redact.Stream
	kind    process.Kind // of the last output
	next    int64        // the position after it
	echo    *echo        // what comes back from a terminal because it was typed; nil: unknown
}

// masked yields what follow yields of a process's output, which has to end with its context, with masks. It begins to look before the position that is asked for, where something may have begun.
func masked(ctx context.Context, kinds redact.Kinds, from int64, typed *echo, follow func(ctx context.Context, from int64) iter.Seq2[process.Event, error]) iter.Seq2[process.Event, error] {
	if kinds.None() {
		return follow(ctx, from)
	}
	return func(yield func(process.Event, error) bool) {
		m := &masker{kinds: kinds, from: from, echo: typed, streams: map[process.Kind]*redact.Stream{}}
		come, leave := inBackground(ctx, func(ctx context.Context) iter.Seq2[process.Event, error] {
			return follow(ctx, max(0, from-redact.Reach))
		})
		defer leave()
		pass := func(all []process.Event) bool {
			for _, e := range all {
				if !yield(e, nil) {
					return false
				}
			}
			return true
		}
		for {
			select {
			case e, more := <-come:
				if !more {
					e.err = ctx.Err() // follow has ended with it
				}
				if !more || e.err != nil {
					if pass(m.flush()) && e.err != nil {
						yield(process.Event{}, e.err)
					}
					return
				}
				if !pass(m.event(e.event)) || e.event.Kind == process.Ended {
					return
				}
			case <-m.late():
				if !pass(m.flush()) {
					return
				}
			}
		}
	}
}

// emission is one of an iteration.
type emission struct {
	event process.Event
	err   error
}

// inBackground iterates in a goroutine of its own, so that somebody may wait for other things as well. It ends before leave returns.
func inBackground(ctx context.Context, all func(context.Context) iter.Seq2[process.Event, error]) (come <-chan emission, leave func()) {
	ctx, cancel := context.WithCancel(ctx)
	events := make(chan emission, 1)
	go func() {
		defer close(events)
		for e, err := range all(ctx) {
			select {
			case events <- emission{e, err}:
			case <-ctx.Done(): // the one who iterates knows
				return
			}
		}
	}()
	return events, func() {
		cancel()
		for range events { // until the other goroutine has ended
			continue
		}
	}
}

// late returns a channel for when what is held back is to be passed on.
func (m *masker) late() <-chan time.Time {
	s := m.streams[m.kind]
	if s == nil || s.Held() == 0 {
		return nil
	}
	if m.kind == process.Terminal {
		return time.After(terminalHeld)
	}
	return time.After(outputHeld)
}

// event returns what is to be passed on when an event has come.
func (m *masker) event(e process.Event) (all []process.Event) {
	if e.Kind != m.kind || e.At != m.next {
		all = m.flush()
	}
	switch e.Kind {
	case process.Stdout, process.Stderr, process.Terminal:
	case process.Gap:
		if e.At <= m.from {
			return all
		}
		return append(all, e)
	default:
		return append(all, e)
	}
	s := m.streams[e.Kind]
	if s == nil {
		s = &redact.Stream{Kinds: m.kinds, Masks: true}
		m.streams[e.Kind] = s
	}
	begin := e.At - int64(s.Held())
	m.kind, m.next = e.Kind, e.Next()
	if e.Kind == process.Terminal && s.Idle() && m.echo.came(e.Data) {
		return append(all, m.wanted(e)...)
	}
	return append(all, m.wanted(process.Event{Kind: e.Kind, At: begin, Data: s.Write(e.Data), Recycle: e.Recycle})...)
}

// flush returns what was held back.
func (m *masker) flush() []process.Event {
	s := m.streams[m.kind]
	if s == nil {
		return nil
	}
	rest := s.Flush()
	return m.wanted(process.Event{Kind: m.kind, At: m.next - int64(len(rest)), Data: rest})
}

// wanted returns what of an event is at or after the position that was asked for.
func (m *masker) wanted(e process.Event) []process.Event {
	if before := m.from - e.At; before > 0 {
		skipped := min(before, int64(len(e.Data)))
		e.At, e.Data = e.At+skipped, e.Data[skipped:]
	}
	if len(e.Data) > 0 {
		return []process.Event{e}
	}
	if e.Recycle != nil {
		e.Recycle()
	}
	return nil
}
