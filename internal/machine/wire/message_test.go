package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"cove/internal/machine/wire"

	"github.com/google/go-cmp/cmp"
)

type note struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

func TestMessageRoundTrip(t *testing.T) {
	t.Parallel()
	for name, body := range map[string][]byte{
		"no body":      nil,
		"small":        []byte("body"),
		"first buffer": bytes.Repeat([]byte("ab"), wire.MaxFrame/2),
		"large":        bytes.Repeat([]byte("abc"), 1_000_001),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := note{Name: "图", N: len(body)}
			var b bytes.Buffer
			if err := wire.WriteMessage(&b, want, body); err != nil {
				t.Fatal(err)
			}
			var got note
			read, err := wire.ReadMessage(&b, b.Len()-8, &got)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if !bytes.Equal(read, body) {
				t.Errorf("read %d bytes that differ from the %d written", len(read), len(body))
			}
			if _, err := wire.ReadMessage(&b, 10, nil); !errors.Is(err, io.EOF) {
				t.Errorf("at the end: %v, want io.EOF", err)
			}
		})
	}
}

// A body goes where its reader says, if it fits there, and is as whole as in memory of its own.
func TestReadMessageInto(t *testing.T) {
	t.Parallel()
	host, guest := connect(t)
	near, far := open(t, guest, host)
	sent := noise(1, wire.ProcessPiece)
	go func() {
		for i := range 20 {
			if err := wire.WriteMessage(near, i, sent[:len(sent)>>i]); err != nil {
				t.Error(err)
			}
		}
		_ = near.CloseWrite()
	}()
	room := make([]byte, wire.ProcessPiece/2)
	for i := range 20 {
		var n, asked int
		body, err := wire.ReadMessageInto(far, wire.ProcessPiece+10, &n, func(size int) []byte {
			asked = size
			return room
		})
		if err != nil || n != i || !bytes.Equal(body, sent[:len(sent)>>i]) {
			t.Fatalf("message %d: %d bytes of message %d, %v", i, len(body), n, err)
		}
		if asked != len(body) || len(body) > 0 && (&body[0] == &room[0]) != (i > 0) {
			t.Errorf("message %d: room for %d of %d bytes was asked for, or not used as it should be", i, asked, len(body))
		}
	}
	var whole bytes.Buffer
	if err := wire.WriteMessage(&whole, 1, sent[:100]); err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < 100; cut += 40 {
		_, err := wire.ReadMessageInto(bytes.NewReader(whole.Bytes()[:whole.Len()-cut]), 200, nil, func(int) []byte { return room })
		wantError(t, err, io.ErrUnexpectedEOF)
	}
}

func TestReadMessageRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in    string
		limit int
		want  error
	}{
		"nothing":             {"", 10, io.EOF},
		"part of the lengths": {"\x00\x00\x00\x02\x00", 10, io.ErrUnexpectedEOF},
		"no header":           {"\x00\x00\x00\x02\x00\x00\x00\x01", 10, io.ErrUnexpectedEOF},
		"part of a header":    {"\x00\x00\x00\x02\x00\x00\x00\x01{", 10, io.ErrUnexpectedEOF},
		"no body":             {"\x00\x00\x00\x02\x00\x00\x00\x01{}", 10, io.ErrUnexpectedEOF},
		"part of a body":      {"\x00\x00\x00\x02\x00\x00\x00\x02{}x", 10, io.ErrUnexpectedEOF},
		"over the limit":      {"\x00\x00\x00\x02\x00\x00\x00\x02{}xx", 3, wire.ErrProtocol},
		"negative limit":      {"\x00\x00\x00\x02\x00\x00\x00\x02{}xx", -1, wire.ErrProtocol},
		"sum past 32 bits":    {"\xff\xff\xff\xff\x00\x00\x00\x02{}xx", 1 << 30, wire.ErrProtocol},
		"header not JSON":     {"\x00\x00\x00\x02\x00\x00\x00\x00{x", 10, wire.ErrProtocol},
		"header empty":        {"\x00\x00\x00\x00\x00\x00\x00\x01x", 10, wire.ErrProtocol},
		"header of a type":    {"\x00\x00\x00\x02\x00\x00\x00\x0012", 10, wire.ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var header note
			_, err := wire.ReadMessage(strings.NewReader(c.in), c.limit, &header)
			wantError(t, err, c.want)
		})
	}
}

// Not parallel: it measures what the process allocates.
func TestReadMessageAllocatesWhatArrives(t *testing.T) {
	in := "\x00\x00\x00\x02\x7f\xff\xff\xff{}only this much"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := wire.ReadMessage(strings.NewReader(in), math.MaxInt, nil)
	runtime.ReadMemStats(&after)
	wantError(t, err, io.ErrUnexpectedEOF)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("allocated %d bytes for a message of which %d arrived", n, len(in))
	}
}

func TestWriteMessageHeaderThatDoesNotEncode(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := wire.WriteMessage(&b, func() {}, nil); err == nil || b.Len() > 0 {
		t.Errorf("wrote %d bytes, error %v", b.Len(), err)
	}
}

func FuzzReadMessage(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02\x00\x00\x00\x02{}xx"))
	f.Add([]byte("\x00\x00\x00\x02\x7f\xff\xff\xff{}x"))
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 1 << 20
		var header json.RawMessage
		body, err := wire.ReadMessage(bytes.NewReader(in), limit, &header)
		if err != nil {
			if !errors.Is(err, wire.ErrProtocol) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("an error of no known sort: %v", err)
			}
			return
		}
		if len(header)+len(body) > min(limit, len(in)) {
			t.Fatalf("got %d+%d bytes out of %d", len(header), len(body), len(in))
		}
		if !bytes.Contains(in[8:], header) { // the decoder drops space around it
			t.Fatalf("header %q is not what was sent", header)
		}
	})
}
