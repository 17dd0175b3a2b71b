package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"cove/internal/machine/wire"

	"github.com/google/go-cmp/cmp"
)

func TestFrameRoundTrip(t *testing.T) {
	t.Parallel()
	frames := []wire.Frame{
		{Channel: 0, Kind: wire.KindHello, Payload: []byte(`{"version":1}`)},
		{Channel: 7, Kind: wire.KindOpen, Payload: []byte{}},
		{Channel: 1<<32 - 1, Kind: wire.KindData, Payload: bytes.Repeat([]byte("x"), wire.MaxFrame)},
		{Channel: 3, Kind: wire.KindPong, Payload: []byte{0, 1, 255}},
	}
	var b bytes.Buffer
	for _, f := range frames {
		if err := wire.WriteFrame(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range frames {
		got, err := wire.ReadFrame(&b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
	if _, err := wire.ReadFrame(&b); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v, want io.EOF", err)
	}
}

func TestFrameBytes(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := wire.WriteFrame(&b, wire.Frame{Channel: 0x01020304, Kind: wire.KindData, Payload: []byte("hi")}); err != nil {
		t.Fatal(err)
	}
	want := []byte{1, 2, 3, 4, 3, 0, 0, 0, 2, 'h', 'i'}
	if d := cmp.Diff(want, b.Bytes()); d != "" {
		t.Error(d)
	}
}

func TestReadFrameRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   []byte
		want error
	}{
		"nothing":           {nil, io.EOF},
		"part of a header":  {[]byte{0, 0, 0, 1, 3}, io.ErrUnexpectedEOF},
		"no payload":        {[]byte{0, 0, 0, 1, 3, 0, 0, 0, 2}, io.ErrUnexpectedEOF},
		"part of a payload": {[]byte{0, 0, 0, 1, 3, 0, 0, 0, 2, 'h'}, io.ErrUnexpectedEOF},
		"too long by one":   {[]byte{0, 0, 0, 1, 3, 0, 1, 0, 1}, wire.ErrProtocol},
		"far too long":      {[]byte{0, 0, 0, 1, 3, 255, 255, 255, 255}, wire.ErrProtocol},
		"kind zero":         {[]byte{0, 0, 0, 1, 0, 0, 0, 0, 0}, wire.ErrProtocol},
		"kind after last":   {[]byte{0, 0, 0, 1, 9, 0, 0, 0, 0}, wire.ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := wire.ReadFrame(bytes.NewReader(c.in))
			wantError(t, err, c.want)
		})
	}
}

func TestWriteFrameRefuses(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]wire.Frame{
		"too long":     {Kind: wire.KindData, Payload: make([]byte, wire.MaxFrame+1)},
		"unknown kind": {Kind: 9},
	} {
		var b bytes.Buffer
		wantError(t, wire.WriteFrame(&b, f), wire.ErrProtocol)
		if b.Len() > 0 {
			t.Errorf("%s: %d bytes were written", name, b.Len())
		}
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 3, 0, 0, 0, 2, 'h', 'i'})
	f.Add([]byte{0, 0, 0, 1, 3, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, in []byte) {
		frame, err := wire.ReadFrame(bytes.NewReader(in))
		if err != nil {
			if !errors.Is(err, wire.ErrProtocol) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("an error of no known sort: %v", err)
			}
			return
		}
		var b bytes.Buffer
		if err := wire.WriteFrame(&b, frame); err != nil {
			t.Fatal(err)
		}
		if want := in[:9+binary.BigEndian.Uint32(in[5:])]; !bytes.Equal(b.Bytes(), want) {
			t.Fatalf("read %x, wrote %x", want, b.Bytes())
		}
	})
}
