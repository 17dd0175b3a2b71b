package gateway

import (
	"context"
	"errors"
	"io"
	"time"
)

// watched is the body of an answer that ends the request when nothing comes for too long.
type watched struct {
	body   io.ReadCloser
	watch  *time.Timer
	stall  time.Duration
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (w *watched) Read(p []byte) (int, error) {
	w.watch.Reset(w.stall)
	n, err := w.body.Read(p)
	w.watch.Stop()
	if err != nil && !errors.Is(err, io.EOF) && w.ctx.Err() != nil {
		err = context.Cause(w.ctx)
	}
	return n, err
}

func (w *watched) Close() error {
	w.watch.Stop()
	w.cancel(nil)
	return w.body.Close()
}

// bounded reads so many bytes at most, and remembers how the reading ended.
type bounded struct {
	from io.Reader
	left int64
	over bool
	err  error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.over = true
		return 0, io.ErrUnexpectedEOF
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.from.Read(p)
	b.left -= int64(n)
	if err != nil {
		b.err = err
	}
	return n, err
}
