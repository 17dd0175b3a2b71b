package guest

import (
	"context"
	"sync"
	"time"

	"cove/internal/machine/wire"
)

// output is what a process has written, as far as it is kept: the last bytes of it, and all that a follower has not read. Positions are numbers of bytes
// since the process began, over all its streams.
type output struct {
	mu        sync.Mutex
	changed   chan struct{}     // closed and made anew when there is more, room, or the end
	chunks    []chunk           // the oldest first
	open      map[string]*piece // by kind: where the next bytes go
	free      []*piece          // that have been used
	kept      int               // bytes in chunks
	end       int64             // position after the last byte
	over      bool              // nothing that followers wait for comes any more
	followers map[*follower]struct{}
	expected  *follower // among the followers until the first of them comes; or nil
}

// chunk is output of one stream. Its bytes are in a piece.
type chunk struct {
	kind  string
	at    int64
	bytes []byte
	in    *piece
}

// piece is memory that output is read into and stays in. It is filled from its beginning and, while anybody uses it, not changed where it is full, so that followers can read it
// without the lock. Where output comes without end a piece is used again and again: a gigabyte of garbage costs more time than its output.
type piece struct {
	buf   []byte
	full  int // bytes
	users int // chunks, followers, and the stream that it is open for
}

const (
	mostChunks    = 4096
	mergedUpTo    = 16 << 10 // bytes of a chunk that more is appended to
	followerGrace = 10 * time.Second
	firstPiece    = 4 << 10 // bytes; each is larger than the one before, up to wire.ProcessPiece
	growth        = 8
	mostFree      = 4
)

// follower reads an output from a position on.
type follower struct {
	at   int64
	read time.Time // when it last got on; one that does not for followerGrace is not waited for
}

// newOutput makes an output. One that is followed waits for its first follower as for one who reads.
func newOutput(followed bool) *output {
	o := &output{changed: make(chan struct{}), followers: map[*follower]struct{}{}, open: map[string]*piece{}}
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

// room returns where to put the next bytes of a stream. There is one writer to each.
func (o *output) room(kind string) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.open[kind]
	if p == nil || len(p.buf)-p.full < len(p.buf)/growth {
		size := firstPiece
		if p != nil {
			size = min(growth*len(p.buf), wire.ProcessPiece)
			o.leave(p)
		}
		p = o.newPiece(size)
		o.open[kind] = p
	}
	return p.buf[p.full:]
}

// newPiece returns a piece with one user. The caller holds mu.
func (o *output) newPiece(size int) *piece {
	if n := len(o.free); n > 0 && size == wire.ProcessPiece {
		p := o.free[n-1]
		o.free = o.free[:n-1]
		p.full, p.users = 0, 1
		return p
	}
	return &piece{buf: make([]byte, size), users: 1}
}

// leave has a piece used by one less. The caller holds mu.
func (o *output) leave(p *piece) {
	if p.users--; p.users == 0 && len(p.buf) == wire.ProcessPiece && len(o.free) < mostFree && !o.over {
		o.free = append(o.free, p)
	}
}

// shut says that nothing more comes of a stream.
func (o *output) shut(kind string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := o.open[kind]; p != nil {
		o.leave(p)
		delete(o.open, kind)
	}
}

// add keeps n bytes that have been put where room said. It waits for followers that read before it drops what they have not read.
func (o *output) add(kind string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.chunks) > 0 && o.full(n) {
		if !o.awaited() {
			o.drop(n)
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
	p, last := o.open[kind], len(o.chunks)-1
	from := p.full
	p.full += n
	if last >= 0 && o.chunks[last].in == p && len(o.chunks[last].bytes) < mergedUpTo {
		from -= len(o.chunks[last].bytes)
		o.chunks[last].bytes = p.buf[from:p.full]
	} else {
		p.users++
		o.chunks = append(o.chunks, chunk{kind: kind, at: o.end, bytes: p.buf[from:p.full], in: p})
	}
	o.kept += n
	o.end += int64(n)
	o.signal()
}

// drop drops the oldest output, for n bytes more. The caller holds mu.
func (o *output) drop(n int) {
	oldest := &o.chunks[0]
	cut := o.kept + n - wire.ProcessOutputKept
	if cut <= 0 || cut >= len(oldest.bytes) {
		cut = len(oldest.bytes)
	}
	o.kept -= cut
	oldest.at += int64(cut)
	if oldest.bytes = oldest.bytes[cut:]; len(oldest.bytes) == 0 {
		o.leave(oldest.in)
		*oldest = chunk{}
		o.chunks = o.chunks[1:]
	}
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

// finish lets followers end after what there is. What comes later, from what the process left behind, is kept as the rest is.
func (o *output) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over, o.free = true, nil
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

// follow passes on the output from a position on, at most so many bytes at a time, and returns when it is over, ctx ends, or tell fails.
func (o *output) follow(ctx context.Context, from int64, most int, tell func(h wire.FromProcess, p []byte) error) error {
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
		h, p, in, changed := o.next(f, most)
		switch {
		case h.Kind != "":
			err := tell(h, p)
			o.give(in)
			if err != nil {
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

// give is called when a follower has passed on what was in a piece.
func (o *output) give(p *piece) {
	if p == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leave(p)
}

// next returns what a follower gets now, and the piece that it is in until give; or, with no kind, what to wait for, nil at the end.
func (o *output) next(f *follower, most int) (h wire.FromProcess, p []byte, in *piece, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f.read = time.Now()
	if len(o.chunks) > 0 && f.at < o.chunks[0].at {
		f.at = o.chunks[0].at
		return wire.FromProcess{Kind: wire.FromGap, At: f.at}, nil, nil, nil
	}
	if f.at == o.end {
		if o.over {
			return h, nil, nil, nil
		}
		return h, nil, nil, o.changed
	}
	// The newest chunks are the ones that are read: of a hundred thousand, a search from the end finds them at once.
	i := len(o.chunks) - 1
	for o.chunks[i].at > f.at {
		i--
	}
	c := o.chunks[i]
	p = c.bytes[f.at-c.at:]
	p = p[:min(len(p), most)]
	h = wire.FromProcess{Kind: c.kind, At: f.at}
	f.at += int64(len(p))
	c.in.users++
	o.signal() // there may be room
	return h, p, c.in, nil
}
