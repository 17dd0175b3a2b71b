package model

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"cove/internal/problem"
)

// Watch ends an attempt whose server stays silent for too long. It is safe for concurrent use.
type Watch struct {
	provider Provider
	limits   Limits
	cancel   context.CancelCauseFunc

	mu      sync.Mutex
	timer   *time.Timer
	phase   phase
	stopped bool
}

type phase int

const (
	connecting phase = iota
	waiting          // for the first part
	streaming
)

func newWatch(provider Provider, limits Limits, cancel context.CancelCauseFunc) *Watch {
	w := &Watch{provider: provider, limits: limits, cancel: cancel}
	w.timer = time.AfterFunc(limits.Connect, w.expire)
	return w
}

// Connected says that the request has a connection to travel on.
func (w *Watch) Connected() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phase == connecting {
		w.phase = waiting
	}
	w.restart()
}

// Alive says that the server sent something, be it only a comment that keeps the connection open.
func (w *Watch) Alive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restart()
}

// Body returns body with every byte that is read from it counted as a sign of life.
func (w *Watch) Body(body io.ReadCloser) io.ReadCloser {
	return &watchedBody{ReadCloser: body, watch: w}
}

type watchedBody struct {
	io.ReadCloser
	watch *Watch
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watch.Alive()
	}
	return n, err
}

// hold stops the clock while the consumer, not the server, is the one who takes time.
func (w *Watch) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = streaming
	w.timer.Stop()
}

func (w *Watch) resume() { w.Alive() }

func (w *Watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

func (w *Watch) restart() {
	if !w.stopped {
		w.timer.Reset(w.limit())
	}
}

func (w *Watch) limit() time.Duration {
	switch w.phase {
	case connecting:
		return w.limits.Connect
	case waiting:
		return w.limits.FirstToken
	default:
		return w.limits.Stall
	}
}

func (w *Watch) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	w.stopped = true
	host, limit := w.provider.host(), w.limit()
	switch w.phase {
	case connecting:
		w.cancel(problem.New(problem.Timeout, "model_connect_timeout", fmt.Sprintf("no connection to %s within %s", host, limit)).
			WithHint(w.provider.reachHint()))
	case waiting:
		w.cancel(problem.New(problem.Timeout, "model_first_token_timeout",
			fmt.Sprintf("%s accepted the request but %s said nothing for %s", host, w.provider.Model, limit)).
			WithHint("the server may be loading the model or be overloaded: try again, or choose another model with --model"))
	default:
		w.cancel(problem.New(problem.Timeout, "model_stalled",
			fmt.Sprintf("%s stopped in the middle of its answer and said nothing for %s", w.provider.Model, limit)).
			WithHint("ask again; if it keeps happening, choose another model with --model"))
	}
}
