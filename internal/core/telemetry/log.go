package telemetry

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

// LogOptions say how log lines look.
type LogOptions struct {
	JSON    bool // one object per line; else text for people
	Level   slog.Leveler
	Secrets []string // texts that never appear, as the keys of model services
}

// NewLog returns a logger that writes to w, and what writes the rest of the lines at the end, in bounded time. Lines have the ids of the
// request and the trace from their context, and no secrets. A w that does not take them, as a pipe that nobody reads, costs lines and
// delays nobody; how many were lost is said as soon as w takes lines again.
func NewLog(w io.Writer, o LogOptions) (log *slog.Logger, finish func()) {
	q := &queue{w: w, lines: make(chan []byte, 4096), done: make(chan struct{})}
	go q.run()
	return slog.New(NewHandler(q, o)), q.finish
}

// NewHandler returns the handler of NewLog that writes to w directly.
func NewHandler(w io.Writer, o LogOptions) slog.Handler {
	options := &slog.HandlerOptions{Level: o.Level, ReplaceAttr: newCleaner(o.Secrets).attr}
	if o.JSON {
		return &handler{slog.NewJSONHandler(w, options)}
	}
	return &handler{slog.NewTextHandler(w, options)}
}

// handler adds what the context knows to every line.
type handler struct{ slog.Handler }

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if id := RequestID(ctx); id != "" {
		r.AddAttrs(slog.String("request", id))
	}
	if id := TraceID(ctx); id != "" {
		r.AddAttrs(slog.String("trace", id))
	}
	return h.Handler.Handle(ctx, r)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs)}
}
func (h *handler) WithGroup(name string) slog.Handler { return &handler{h.Handler.WithGroup(name)} }

// finishing bounds the time that a writer gets for the last lines.
const finishing = 2 * time.Second

// queue is lines on their way to a writer that may be slow or stuck.
type queue struct {
	w     io.Writer
	lines chan []byte
	done  chan struct{}

	mu     sync.Mutex
	lost   int
	closed bool
}

// Write takes a line. It never waits and never fails.
func (q *queue) Write(line []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return len(line), nil
	}
	select {
	case q.lines <- append([]byte(nil), line...):
	default:
		q.lost++
	}
	return len(line), nil
}

func (q *queue) run() {
	defer close(q.done)
	for line := range q.lines {
		_, _ = q.w.Write(line)
		if n := q.takeLost(); n > 0 {
			slog.New(slog.NewTextHandler(q.w, nil)).Warn("log lines were lost: the log was not read", "lines", n)
		}
	}
}

func (q *queue) takeLost() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.lost
	q.lost = 0
	return n
}

func (q *queue) finish() {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.lines)
	}
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-time.After(finishing):
	}
}
