package stream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"cove/internal/server/stream"
)

type rawMessage = json.RawMessage

// step is one thing that happens to a stream.
type step struct {
	what string // "append", "offer", "poison", "away", "back", "forget", "follow", "leave", "pass"
	n    int    // bytes of a body, events until a follower leaves, or milliseconds
	on   int    // which stream
}

// model is what is known of one stream: what was appended, in order.
type model struct {
	log      *stream.Writer
	kept     int
	poison   int
	expected []want
	told     []*heard
}

// want is an event that was appended. may says whether it can be missing: "" it cannot, "out" it was left out, "refused" it is
// shown until the store refuses it.
type want struct{ body, may string }

// TestModel has events appended, offered, stored and followed, with a store that goes away, loses answers and refuses events: every follower sees every event once and in order, has
// a gap exactly where events found no room or were refused, and sees the end, once.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		streams := rapid.IntRange(1, 3).Draw(rt, "streams")
		limit := rapid.SampledFrom([]int64{0, 0, 1 << 10, 3 << 10}).Draw(rt, "limit")
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{
				what: rapid.SampledFrom([]string{"append", "append", "append", "offer", "offer", "poison", "away", "back", "forget", "follow", "leave", "pass", "pass"}).Draw(t, "what"),
				n:    rapid.SampledFrom([]int{1, 20, 40, 200, 900, 1500, 5000}).Draw(t, "n"),
				on:   rapid.IntRange(0, streams-1).Draw(t, "on"),
			}
		}), 10, 60).Draw(rt, "steps")
		var problems []string
		synctest.Test(t, func(t *testing.T) { problems = play(t, streams, limit, steps) })
		if len(problems) > 0 {
			rt.Fatalf("%s", strings.Join(problems, "\n"))
		}
	})
}

// play does the steps and returns what was wrong.
func play(t *testing.T, streams int, limit int64, steps []step) (problems []string) {
	life, end := context.WithCancel(context.Background())
	m := &memory{takes: 5 * time.Millisecond}
	s := streamsOf(t, life, m, stream.Options{Limit: limit})
	models := make([]*model, streams)
	for i := range models {
		models[i] = &model{log: s.Open(name(i))}
	}
	var followers sync.WaitGroup
	for n, step := range steps {
		synctest.Wait()
		o := models[step.on]
		switch step.what {
		case "append", "offer":
			o.add(s, name(step.on), limit, step.what == "offer", body(n, step.n))
		case "poison":
			if o.poison++; o.poison > 2 {
				continue // more are not searched for one by one
			}
			o.add(s, name(step.on), limit, true, fmt.Appendf(nil, `"poison %d"`, n))
		case "away":
			m.set(true, 0)
		case "back":
			m.set(false, 0)
		case "forget":
			m.set(false, 2)
		case "follow", "leave": // from the beginning, or from where another one has left
			h, most := &heard{}, 0
			if step.what == "leave" {
				most = step.n
			}
			o.told = append(o.told, h)
			followers.Go(func() {
				h.hear(s.Follow(life, stream.Source{Stream: name(step.on)}, 0), most)
				if most > 0 && !h.ended { // it comes back
					h.hear(s.Follow(life, stream.Source{Stream: name(step.on)}, h.last()), 0)
				}
			})
		case "pass":
			answers := !m.away && m.forget == 0 // each answer that is lost delays the next attempt
			time.Sleep(time.Duration(step.n) * time.Millisecond)
			synctest.Wait()
			if size, _ := s.Held(name(step.on)); step.n == 5000 && answers && (size > 1<<10 || s.Unsaved(name(step.on)) != 0) {
				problems = append(problems, fmt.Sprintf("step %d: %d bytes are in memory, and %d are not stored", n, size, s.Unsaved(name(step.on))))
			}
		}
	}
	m.set(false, 0)
	for i, o := range models {
		if o.poison > 0 {
			time.Sleep(time.Minute) // else what waits with it goes, too; see Shortened
		}
		if err := finish(life, o.log, m); err != nil {
			problems = append(problems, fmt.Sprintf("stream %d: finish: %v", i, err))
		}
	}
	followers.Wait()
	end()
	s.Wait()
	for i, o := range models {
		late := &heard{}
		late.hear(s.Recorded(t.Context(), stream.Source{Stream: name(i)}), 0)
		for k, h := range append(o.told, late) {
			if why := o.wrong(h); why != "" {
				problems = append(problems, fmt.Sprintf("stream %d, follower %d: %s\nheard %.200q\nof %.200q", i, k, why, h.bodies, o.expected))
			}
		}
	}
	return problems
}

func name(i int) string { return fmt.Sprint("stream", i) }

// add appends or offers an event, and notes what must become of it.
func (o *model) add(s *stream.Streams, name string, limit int64, offer bool, b []byte) {
	unsaved := s.Unsaved(name)
	w := want{body: string(b)}
	l := int(limit)
	switch {
	case limit > 0 && (o.kept > 2*l || o.kept > l && len(b) > 4<<10):
		w.may = "out"
	case unsaved > 4<<10 && offer:
		w.may = "out"
	case strings.Contains(w.body, "poison"):
		w.may = "refused"
	}
	if offer {
		o.log.Offer(stream.Origin{}, b)
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		o.log.Append(ctx, stream.Origin{}, b)
		if ctx.Err() != nil { // it waited for room for so long
			w.may = "out"
		}
	}
	if w.may != "out" {
		if n := len(o.expected); n > 0 && o.expected[n-1].may == "out" {
			o.kept += stream.Cost + len(`{"type":"gap"}`)
		}
		o.kept += stream.Cost + len(b)
	}
	o.expected = append(o.expected, w)
}

// wrong compares what a follower heard with what was appended, and says what differs.
func (o *model) wrong(h *heard) string {
	if h.err != nil {
		return h.err.Error()
	}
	for i, seq := range h.seqs {
		before := int64(0)
		if i > 0 {
			before = h.seqs[i-1]
		}
		if seq != before+1 && (seq <= before || h.bodies[i] != "gap") {
			return fmt.Sprintf("number %d comes after %d", seq, before)
		}
	}
	n, gap, missing := 0, false, false
	for _, w := range append(slices.Clone(o.expected), want{body: `"end"`}) {
		for ; n < len(h.bodies) && h.bodies[n] == "gap"; n++ {
			gap = true
		}
		switch heard := n < len(h.bodies) && h.bodies[n] == w.body; {
		case heard && w.may == "out":
			return fmt.Sprintf("%.10s was left out, and was heard", w.body)
		case heard && gap != missing:
			return fmt.Sprintf("before %.10s: a gap: %v, something missing: %v", w.body, gap, missing)
		case heard:
			n, gap, missing = n+1, false, false
		case w.may == "":
			return fmt.Sprintf("%.10s is missing", w.body)
		default:
			missing = true
		}
	}
	if n != len(h.bodies) {
		return fmt.Sprintf("%d events come behind the end", len(h.bodies)-n)
	}
	return ""
}
