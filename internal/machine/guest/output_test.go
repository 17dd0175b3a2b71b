package guest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"cove/internal/machine/wire"
)

// put adds bytes as a stream does.
func put(o *output, kind string, p []byte) {
	for len(p) > 0 {
		n := copy(o.room(kind), p)
		o.add(kind, n)
		p = p[n:]
	}
}

// collect follows an output to its end.
func collect(o *output, from int64, each func()) (got []byte, gaps int, err error) {
	err = o.follow(context.Background(), from, wire.MaxFrame, func(h wire.FromProcess, p []byte) error {
		if h.Kind == wire.FromGap {
			gaps++
		}
		got = append(got, p...)
		each()
		return nil
	})
	return got, gaps, err
}

// A reader loses nothing, however the output is cut and however often it changes its stream.
func TestOutputWaitsForReaders(t *testing.T) {
	t.Parallel()
	o := newOutput(false)
	put(o, wire.FromStdout, []byte("begun")) // a small piece before the large ones
	type read struct {
		got  []byte
		gaps int
	}
	done := make(chan read, 2)
	for range 2 {
		begun := make(chan bool, 1)
		go func() {
			got, gaps, _ := collect(o, 0, func() {
				select {
				case begun <- true:
				default:
				}
			})
			done <- read{got, gaps}
		}()
		<-begun
	}
	want := []byte("begun")
	for i := range 3 * mostChunks {
		piece := bytes.Repeat([]byte{byte(i)}, 1+i%3000)
		put(o, []string{wire.FromStdout, wire.FromStderr}[i%2], piece)
		want = append(want, piece...)
	}
	o.finish()
	for range 2 {
		if r := <-done; !bytes.Equal(r.got, want) || r.gaps != 0 {
			t.Errorf("%d of %d bytes came, and %d gaps", len(r.got), len(want), r.gaps)
		}
	}
}

// What is going to be followed loses nothing before that, but does not wait for ever.
func TestOutputWaitsForItsFirstReader(t *testing.T) {
	t.Parallel()
	fill := func(o *output) <-chan bool {
		full := make(chan bool)
		go func() {
			for range 3 * wire.ProcessOutputKept / (32 << 10) {
				put(o, wire.FromStdout, make([]byte, 32<<10))
			}
			o.finish()
			close(full)
		}()
		return full
	}
	o := newOutput(true)
	full := fill(o)
	for { // until no more is kept
		if _, to := o.span(); to >= wire.ProcessOutputKept-(32<<10) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if got, gaps, err := collect(o, 0, func() {}); err != nil || gaps != 0 || len(got) != 3*wire.ProcessOutputKept {
		t.Errorf("%d bytes and %d gaps came, %v", len(got), gaps, err)
	}
	<-full
	if len(o.followers) != 0 {
		t.Errorf("%d followers are left", len(o.followers))
	}
	o = newOutput(true)
	o.expected.read = time.Now().Add(-followerGrace) // as if nobody had come for so long
	<-fill(o)
}

// Without readers the last output is kept, within bounds.
func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	o := newOutput(false)
	for i := range 3 * mostChunks {
		put(o, []string{wire.FromStdout, wire.FromStderr}[i%2], []byte{byte(i)})
	}
	if from, to := o.span(); to != 3*mostChunks || to-from > mostChunks || len(o.chunks) > mostChunks {
		t.Errorf("%d to %d is kept in %d pieces", from, to, len(o.chunks))
	}
	for range 200 {
		put(o, wire.FromStdout, make([]byte, 32<<10))
	}
	o.finish()
	from, to := o.span()
	if to-from > wire.ProcessOutputKept || to-from < wire.ProcessOutputKept*99/100 {
		t.Errorf("%d bytes are kept", to-from)
	}
	if got, gaps, err := collect(o, 0, func() {}); err != nil || gaps != 1 || int64(len(got)) != to-from {
		t.Errorf("%d bytes and %d gaps came, %v", len(got), gaps, err)
	}
	if got, gaps, err := collect(o, to+100, func() {}); err != nil || gaps != 0 || len(got) != 0 {
		t.Errorf("%d bytes and %d gaps came from beyond the end, %v", len(got), gaps, err)
	}
}

// A follower that does not read is waited for, but not for ever.
func TestOutputDoesNotWaitForTheDeaf(t *testing.T) {
	t.Parallel()
	o := newOutput(false)
	deaf := errors.New("enough")
	block, blocked := make(chan bool), make(chan bool)
	followed := make(chan error)
	put(o, wire.FromStdout, []byte("x"))
	go func() {
		followed <- o.follow(context.Background(), 0, wire.MaxFrame, func(wire.FromProcess, []byte) error {
			close(blocked)
			<-block
			return deaf
		})
	}()
	<-blocked
	o.mu.Lock()
	for f := range o.followers {
		f.read = time.Now().Add(-followerGrace) // as if it had not read for so long
	}
	o.mu.Unlock()
	for range 2 * wire.ProcessOutputKept / (32 << 10) {
		put(o, wire.FromStdout, make([]byte, 32<<10))
	}
	close(block)
	if err := <-followed; !errors.Is(err, deaf) || len(o.followers) != 0 {
		t.Errorf("%v, %d followers are left", err, len(o.followers))
	}
}

// A gigabyte needs no more memory than a megabyte: pieces are used again, and what a reader has got is not written over before it has passed that on.
func TestOutputUsesPiecesAgain(t *testing.T) {
	t.Parallel()
	o := newOutput(true)
	want := make([]byte, 64<<20)
	for i := range want {
		want[i] = byte(i * 7 / 1000)
	}
	go func() {
		put(o, wire.FromStdout, want)
		o.finish()
	}()
	var got []byte
	seen := map[*byte]bool{}
	err := o.follow(t.Context(), 0, wire.ProcessPiece, func(_ wire.FromProcess, p []byte) error {
		time.Sleep(50 * time.Microsecond)
		if got = append(got, p...); len(p) == wire.ProcessPiece {
			seen[&p[0]] = true
		}
		return nil
	})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d of %d bytes came, or others: %v", len(got), len(want), err)
	}
	if most := wire.ProcessOutputKept/wire.ProcessPiece + mostFree; len(seen) > most {
		t.Errorf("%d pieces were used, at most %d are needed", len(seen), most)
	}
}
