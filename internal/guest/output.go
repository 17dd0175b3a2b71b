package guest

import (
	"context"
	"sync"
	"time"

	"cove/internal/wire"
)

// output is what a process has written, as far as it is kept: the last bytes of it, and all that a follower has not read. Positions are numbers of bytes
// since the process began, over all its streams.
type output struct {
	mu        sync.Mutex
	changed   chan struct{} // closed and made anew when there is more, room, or the end
	chunks    []chunk       // the oldest first
	kept      int           // bytes in chunks
	end       int64         // position behind the last byte
	over      bool          // nothing that followers wait for comes any more
	followers map[*follower]struct{}
	expected  *follower // among the followers until the first of them comes; or nil
}

// chunk is output of one stream. Its bytes are appended to and never changed, so that followers can read them without the lock.
type chunk struct {
	kind  string
	at    int64
	bytes []byte
}

const (
	mostChunks    = 4096
	mergedUpTo    = 16 << 10 // bytes of a chunk that more is appended to
	followerGrace = 10 * time.Second
)

// follower reads an output from a position on.
type follower struct {
	at   int64
	read time.Time // when it last got on; one that does not for followerGrace is not waited for
}

// newOutput makes an output. One that is followed waits for its first follower as for one who reads.
func newOutput(followed bool) *output {
	o := &output{changed: make(chan struct{}), followers: map[*follower]struct{}{}}
	if followed {
		o.expected = &follower{read: time.Now()}
		o.followers[o.expected] = struct{}{}
	}
	return o
}

// signal wakes all who wait. The caller holds mu.
func (o *output) signal() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// add keeps output. It waits for followers that read before it drops what they have not read.
func (o *output) add(kind string, p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.chunks) > 0 && o.full(len(p)) {
		if !o.awaited() {
			o.kept -= len(o.chunks[0].bytes)
			o.chunks[0].bytes = nil
			o.chunks = o.chunks[1:]
			continue
		}
		changed := o.changed
		o.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(time.Second): // a follower may have given up meanwhile
		}
		o.mu.Lock()
	}
	last := len(o.chunks) - 1
	if last >= 0 && o.chunks[last].kind == kind && len(o.chunks[last].bytes) < mergedUpTo {
		o.chunks[last].bytes = append(o.chunks[last].bytes, p...)
	} else {
		o.chunks = append(o.chunks, chunk{kind: kind, at: o.end, bytes: append([]byte(nil), p...)})
	}
	o.kept += len(p)
	o.end += int64(len(p))
	o.signal()
}

// full says whether the oldest chunk has to go when there are n bytes more. The caller holds mu.
func (o *output) full(n int) bool {
	return o.kept+n > wire.ProcessOutputKept || len(o.chunks) >= mostChunks
}

// awaited says whether somebody who reads has not read the oldest chunk. The caller holds mu.
func (o *output) awaited() bool {
	if len(o.chunks) == 0 {
		return false
	}
	behind := o.chunks[0].at + int64(len(o.chunks[0].bytes))
	for f := range o.followers {
		if f.at < behind && time.Since(f.read) < followerGrace {
			return true
		}
	}
	return false
}

// finish lets followers end behind what there is. What comes later, from what the process left behind, is kept as the rest is.
func (o *output) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	o.signal()
}

func (o *output) span() (from, to int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	from = o.end
	if len(o.chunks) > 0 {
		from = o.chunks[0].at
	}
	return from, o.end
}

// follow passes on the output from a position on, and returns when it is over, ctx ends, or tell fails.
func (o *output) follow(ctx context.Context, from int64, tell func(h wire.FromProcess, p []byte) error) error {
	o.mu.Lock()
	f := &follower{at: min(max(from, 0), o.end), read: time.Now()}
	o.followers[f] = struct{}{}
	delete(o.followers, o.expected)
	o.signal()
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.followers, f)
		o.signal()
	}()
	for {
		h, p, changed := o.next(f)
		switch {
		case h.Kind != "":
			if err := tell(h, p); err != nil {
				return err
			}
		case changed == nil:
			return nil
		default:
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// next returns what a follower gets now; or, with no kind, what to wait for, nil at the end.
func (o *output) next(f *follower) (h wire.FromProcess, p []byte, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f.read = time.Now()
	if len(o.chunks) > 0 && f.at < o.chunks[0].at {
		f.at = o.chunks[0].at
		return wire.FromProcess{Kind: wire.FromGap, At: f.at}, nil, nil
	}
	if f.at == o.end {
		if o.over {
			return h, nil, nil
		}
		return h, nil, o.changed
	}
	// The newest chunks are the ones that are read: of a hundred thousand, a search from the end finds them at once.
	i := len(o.chunks) - 1
	for o.chunks[i].at > f.at {
		i--
	}
	c := o.chunks[i]
	p = c.bytes[f.at-c.at:]
	p = p[:min(len(p), wire.MaxFrame-1024)]
	h = wire.FromProcess{Kind: c.kind, At: f.at}
	f.at += int64(len(p))
	o.signal() // there may be room
	return h, p, nil
}
