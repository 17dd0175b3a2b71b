package guestlink

import (
	"context"
	"io"
)

// dialAttempts bounds how many connections of a guest are tried. A checkpoint severs the one under way, of which the guest learns when
// it is over, and what it has dialed meanwhile may be waiting before the good one.
const dialAttempts = 8

// Dialer is what Dial needs of a sandbox.
type Dialer interface {
	Dial(ctx context.Context) (io.ReadWriteCloser, error)
	Done() <-chan struct{}
}

// Dial opens a link to the guest of a sandbox, whether it has just been started, restored, or saved and kept.
func Dial(ctx context.Context, sb Dialer, about Session) (*Link, error) {
	for attempt := 1; ; attempt++ {
		stream, err := sb.Dial(ctx)
		if err != nil {
			return nil, err
		}
		l, err := Open(ctx, stream, about)
		if err == nil {
			// A hello may be all that is left of a severed connection: only an answer shows that somebody is there.
			if err = l.Ping(ctx); err == nil {
				return l, nil
			}
			_ = l.Close()
		}
		if attempt == dialAttempts || ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-sb.Done():
			return nil, err
		default:
		}
	}
}
