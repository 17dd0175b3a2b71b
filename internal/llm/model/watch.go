package model

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"cove/internal/core/problem"
)

// mostCalls bounds the calls of one answer.
const mostCalls = 128

// Watch ends an attempt whose server makes no progress for too long, or says too much. It is safe for concurrent use.
type Watch struct {
	provider Provider
	limits   Limits
	cancel   context.CancelCauseFunc

	mu      sync.Mutex
	timer   *time.Timer
	phase   phase
	patient time.Time // until then the first part is waited for, where the server gives signs of life
	said    int64     // bytes of the parts
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
		w.phase, w.patient = waiting, time.Now().Add(3*w.limits.FirstToken)
	}
	w.restart()
}

// Alive says that the server sent something, be it only a comment that keeps the connection open. While a model is loaded or thinks, that is worth
// something; once it speaks, only what it says is.
func (w *Watch) Alive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phase != streaming {
		w.restart()
	}
}

// Body returns body with every byte that is read from it counted as a sign of life. What cannot be part of an answer within the limits is not
// passed on: an event that is longer, or more than any answer has around its words.
func (w *Watch) Body(body io.ReadCloser) io.ReadCloser {
	return &watchedBody{ReadCloser: body, watch: w}
}

type watchedBody struct {
	io.ReadCloser
	watch      *Watch
	all, event int64 // bytes, of the body and since the last empty line
	newline    bool  // the line that is being read is empty so far
}

// Of an answer's words JSON may make twice as much, where it does not write them as escapes, and each token comes with dozens of times its length.
const (
	eventOverhead = 2
	bodyOverhead  = 64
)

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n == 0 {
		return n, err
	}
	b.watch.Alive()
	for _, c := range p[:n] {
		b.event++
		switch {
		case c == '\n' && b.newline:
			b.event = 0
		case c != '\r':
			b.newline = c == '\n'
		}
		if b.event > eventOverhead*b.watch.limits.Answer {
			return 0, b.watch.tooLong()
		}
	}
	if b.all += int64(n); b.all > bodyOverhead*b.watch.limits.Answer {
		return 0, b.watch.tooLong()
	}
	return n, err
}

// took counts what an answer has and says whether that is within the limits.
func (w *Watch) took(p Part) bool {
	w.mu.Lock()
	more, calls := int64(0), 0
	switch p := p.(type) {
	case TextDelta:
		more = int64(len(p.Text))
	case ReasoningDelta:
		more = int64(len(p.Text))
	case CallDelta:
		more, calls = int64(len(p.ID)+len(p.Name)+len(p.Arguments)), p.Index+1
	case Finish:
		calls = len(p.Calls)
	}
	w.said += more
	fits := w.said <= w.limits.Answer && calls <= mostCalls
	w.mu.Unlock()
	if !fits {
		_ = w.tooLong()
	}
	return fits
}

// heard is how many bytes the answer has.
func (w *Watch) heard() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said
}

// tooLong ends the attempt.
func (w *Watch) tooLong() error {
	p := problem.New(problem.ModelAnswerTooLong, fmt.Sprintf("the answer of %s is longer than an answer may be (%d MiB, or %d calls)",
		w.provider.Model, max(w.limits.Answer>>20, 1), mostCalls)).WithHint("ask for less at once, or choose another model with --model")
	w.cancel(p)
	return p
}

// hold stops the clock while the consumer, not the server, is the one who takes time.
func (w *Watch) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = streaming
	w.timer.Stop()
}

// resume says that there was progress.
func (w *Watch) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restart()
}

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
		return max(min(w.limits.FirstToken, time.Until(w.patient)), 0)
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
	host, limit := w.provider.host(), w.limits.FirstToken
	switch w.phase {
	case connecting:
		w.cancel(problem.New(problem.ModelConnectTimeout, fmt.Sprintf("no connection to %s within %s", host, w.limits.Connect)).
			WithHint(w.provider.reachHint()))
	case waiting:
		w.cancel(problem.New(problem.ModelFirstTokenTimeout,
			fmt.Sprintf("%s accepted the request but %s said nothing for %s", host, w.provider.Model, limit)).
			WithHint("the server may be loading the model or be overloaded: try again, or choose another model with --model"))
	default:
		w.cancel(problem.New(problem.ModelStalled,
			fmt.Sprintf("%s stopped in the middle of its answer and said nothing for %s", w.provider.Model, w.limits.Stall)).
			WithHint("ask again; if it keeps happening, choose another model with --model"))
	}
}
