package client

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"

	"cove/internal/http/api"
	"cove/internal/machine/process"
)

// StartProcess starts a process in a session, which goes on when the caller has left.
func (c *Client) StartProcess(ctx context.Context, session string, start process.Start) (process.Info, error) {
	out, err := create[api.Process](ctx, c, "/sessions"+join(session, "processes"), api.NewProcessOf(start))
	return out.Info(), err
}

// Processes lists a session's processes, the oldest first.
func (c *Client) Processes(ctx context.Context, session string) ([]process.Info, error) {
	out, err := get[api.List[api.Process]](ctx, c, "/sessions"+join(session, "processes"), nil)
	var all []process.Info
	for _, p := range out.Items {
		all = append(all, p.Info())
	}
	return all, err
}

// WriteProcess writes to the input of a process what r has, and ends the input with end. It waits for as long as the process does not read.
func (c *Client) WriteProcess(ctx context.Context, session, id string, r io.Reader, end bool) (int64, error) {
	q := call{method: http.MethodPost, path: "/sessions" + join(session, "processes", id, "input"), raw: r, kind: "application/octet-stream"}
	if end {
		q.query = url.Values{"end": {"true"}}
	}
	var out api.Written
	err := c.ask(ctx, q, &out)
	return out.Bytes, err
}

// ResizeProcess gives the terminal of a process another size.
func (c *Client) ResizeProcess(ctx context.Context, session, id string, size process.Size) error {
	return c.ask(ctx, call{method: http.MethodPut, path: "/sessions" + join(session, "processes", id, "terminal"), body: api.TerminalSize(size)}, nil)
}

// SignalProcess sends a signal, by its name or number, to the group of a process, or with all to everything that it has started.
func (c *Client) SignalProcess(ctx context.Context, session, id, signal string, all bool) error {
	return c.ask(ctx, call{method: http.MethodPost, path: "/sessions" + join(session, "processes", id, "signal"), body: api.ProcessSignal{Signal: signal, All: all}}, nil)
}

// FollowProcess yields what a process emits from a position of its output on, the last of it its end. When the connection breaks it is followed again, and nothing is
// missed or comes twice.
func (c *Client) FollowProcess(ctx context.Context, session, id string, from int64) iter.Seq2[process.Event, error] {
	events := follow(ctx, c, "/sessions"+join(session, "processes", id, "events"), from, nil, api.ParseOutput, func(o api.ProcessOutput) bool { return o.Type == process.Ended })
	return func(yield func(process.Event, error) bool) {
		at := from
		for o, err := range events {
			if gap, lost := errors.AsType[*Gap](err); lost {
				at = gap.Until
				if !yield(process.Event{Kind: process.Gap, At: at}, nil) {
					return
				}
				continue
			}
			if err != nil {
				yield(process.Event{}, err)
				return
			}
			e := o.Event(at)
			at = e.Next()
			if !yield(e, nil) {
				return
			}
		}
	}
}
