package guest

import (
	"bytes"
	"os"
	"sync"
	"testing"
	"time"

	"cove/internal/machine/wire"
)

// tapped makes a tap of a pipe, whose other end it returns.
func tapped(t *testing.T) (*tap, *os.File) {
	t.Helper()
	read, write, err := pipe()
	if err != nil {
		t.Fatal(err)
	}
	f, err := ours(read, wire.FromStdout)
	if err != nil {
		t.Fatal(err)
	}
	w := os.NewFile(uintptr(write), "pipe")
	t.Cleanup(func() { _ = w.Close() })
	return &tap{file: f, kind: wire.FromStdout}, w
}

// fast says whether the tap looks at its stream by itself.
func (t *tap) fast() bool {
	t.end.Lock()
	defer t.end.Unlock()
	return t.file == nil
}

// A stream is read to its end, whether it is fast, slow, or one after the other.
func TestTapOfFastAndSlowStreams(t *testing.T) {
	t.Parallel()
	tap, w := tapped(t)
	o := newOutput(true)
	over := make(chan bool)
	go func() {
		tap.run(o)
		o.finish()
		close(over)
	}()
	var want []byte
	turns := 0
	var writing sync.WaitGroup
	writing.Go(func() {
		defer func() { _ = w.Close() }()
		for range 3 {
			for piece := bytes.Repeat([]byte("0123456789abcdef"), 512); !tap.fast(); want = append(want, piece...) {
				if _, err := w.Write(piece); err != nil {
					t.Error(err)
				}
			}
			for tap.fast() {
				time.Sleep(time.Millisecond)
			}
			turns++
		}
	})
	got, gaps, err := collect(o, 0, func() {})
	<-over
	writing.Wait()
	if err != nil || gaps != 0 || turns != 3 || !bytes.Equal(got, want) {
		t.Errorf("%d of %d bytes and %d gaps came in %d turns: %v", len(got), len(want), gaps, turns, err)
	}
}

// A fast stream ends when its writer has gone, and when it is closed here; what is in it is drained first.
func TestTapOfAFastStreamEnds(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{true, false} {
		tap, w := tapped(t)
		o := newOutput(false)
		over := make(chan bool)
		go func() {
			tap.run(o)
			close(over)
		}()
		piece := make([]byte, 8<<10)
		written := int64(0)
		for !tap.fast() {
			n, err := w.Write(piece)
			if err != nil {
				t.Fatal(err)
			}
			written += int64(n)
		}
		tap.drain(o)
		if _, to := o.span(); to != written {
			t.Errorf("%d of %d bytes were there when it was drained", to, written)
		}
		if closed {
			tap.close()
		} else if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		<-over
		tap.close()
		tap.drain(o) // after the end there is nothing
	}
}
