package bench

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const noServer = "it is no server"

func serveRow() Row {
	const warm, perRound = 5, 20
	return Row{
		ID: "serve", Title: "execution over the network", Rounds: 12, Quick: 3,
		Measures: []Measure{{ID: "serve", Title: "1+1 in a live session, over the network", Unit: "ms",
			Detail: fmt.Sprintf("from the request until its client has read that it is over, on loopback; %d in each of several sessions, after %d that do not count. "+
				"cove: HTTP and server-sent events; the gateway: its open WebSocket.", perRound, warm)}},
		Able: as[Serving](noServer),
		Round: func(ctx context.Context, s Subject, rec Recorder) (err error) {
			l, err := s.(Serving).Create(ctx)
			if err != nil {
				return err
			}
			defer free(ctx, l, &err)
			return sums(ctx, l, rec, warm, perRound)
		},
	}
}

func eventsRow() Row {
	const lines = 200
	code := fmt.Sprintf("import time\nfor i in range(%d):\n    print(i, time.time_ns(), flush=True)\n    time.sleep(0.01)", lines)
	return Row{
		ID: "events", Title: "output while code runs", Rounds: 5, Quick: 1,
		Measures: []Measure{{ID: "events", Title: "from print to the client", Unit: "ms",
			Detail: fmt.Sprintf("%d lines 10 ms apart, each with the code's own clock, until the client has read them, on loopback.", lines)}},
		Able: as[Serving](noServer),
		Round: func(ctx context.Context, s Subject, rec Recorder) (err error) {
			l, err := s.(Serving).Create(ctx)
			if err != nil {
				return err
			}
			defer free(ctx, l, &err)
			if _, err := timed(ctx, time.Now(), l, sum()); err != nil {
				return err
			}
			var seen clockLines
			if err := l.(Watched).Watch(ctx, code, seen.read); err != nil {
				return err
			}
			if seen.err == nil && len(seen.late) != lines {
				seen.err = fmt.Errorf("%d of %d lines arrived", len(seen.late), lines)
			}
			if seen.err != nil {
				return seen.err
			}
			for _, d := range seen.late {
				rec.took(0, d)
			}
			return nil
		},
	}
}

// clockLines reads lines that have a number and the time of their printing, and notes how late they are.
type clockLines struct {
	begun string // a line whose end has not come
	late  []time.Duration
	err   error
}

func (c *clockLines) read(text string) {
	now := time.Now()
	c.begun += text
	for {
		line, rest, ended := strings.Cut(c.begun, "\n")
		if !ended {
			return
		}
		c.begun = rest
		var number int
		var printed int64
		if _, err := fmt.Sscan(line, &number, &printed); err != nil || number != len(c.late) {
			c.err = fmt.Errorf("line %d is %.80q", len(c.late), line)
		}
		c.late = append(c.late, now.Sub(time.Unix(0, printed)))
	}
}

func pandas() Task { return Task{Setup: "import pandas", Expr: "1+1", Want: "2"} }

func createRow() Row {
	return Row{
		ID: "create", Title: "a new session of a server", Rounds: 15, Quick: 5,
		Measures: []Measure{
			{ID: "create", Title: "a new session of a server, ready for code", Unit: "ms",
				Detail: "from the request on, with everything prepared ahead that the server can. The gateway is ready when the client is connected to the kernel."},
			{ID: "create-import", Title: "the same, until `import pandas` is answered", Unit: "ms", Detail: "counted from the request for the session."},
		},
		Able: as[Creating](noServer),
		Round: func(ctx context.Context, s Subject, rec Recorder) (err error) {
			p := s.(Creating)
			if err := p.Refill(ctx); err != nil {
				return fmt.Errorf("prepare: %w", err)
			}
			defer quiet(ctx, p)
			begun := time.Now()
			l, err := p.Create(ctx)
			ready := time.Since(begun)
			if err != nil {
				return err
			}
			defer free(ctx, l, &err)
			d, err := timed(ctx, begun, l, pandas())
			if err == nil {
				rec.took(0, ready)
				rec.took(1, d)
			}
			return err
		},
	}
}

func createManyRow() Row {
	const n = 20
	return Row{
		ID: "create-many", Title: "20 clients that make a session at once", Rounds: 3, Quick: 1,
		Measures: []Measure{
			{ID: "create-many", Title: "20 clients at once: a new session, ready for code", Unit: "ms",
				Detail: "as create; all begin together, and the server has as many prepared as it keeps."},
			{ID: "create-many-import", Title: "20 clients at once: until `import pandas` is answered", Unit: "ms", Detail: "each counted from the common start."},
		},
		Able: as[Serving](noServer),
		Round: func(ctx context.Context, s Subject, rec Recorder) error {
			p := s.(Serving)
			if room := memInfo()["MemAvailable"] * 8 / 10 / p.Footprint(); room < n {
				return fmt.Errorf("there is memory for %d sessions only", room)
			}
			if err := p.Refill(ctx); err != nil {
				return fmt.Errorf("prepare: %w", err)
			}
			defer quiet(ctx, p)
			c := crowd{lives: make([]Live, n)}
			defer func() { c.close(ctx, rec) }()
			begun := time.Now()
			c.each(func(i int) {
				l, err := p.Create(ctx)
				ready := time.Since(begun)
				if err == nil {
					c.lives[i] = l
					rec.took(0, ready)
				}
				c.note(err, func() { rec.Fail(0, err); rec.Fail(1, err) })
				if err != nil {
					return
				}
				d, err := timed(ctx, begun, l, pandas())
				if err == nil {
					rec.took(1, d)
				}
				c.note(err, func() { rec.Fail(1, err) })
			})
			return nil
		},
	}
}
