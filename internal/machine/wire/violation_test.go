package wire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"cove/internal/machine/wire"
)

// Each case is what a hostile guest sends to a host that has opened channel 1.
func TestViolations(t *testing.T) {
	t.Parallel()
	const window = wire.DefaultWindow / wire.MaxFrame
	for name, frames := range map[string][]wire.Frame{
		"beyond credit on the host's channel": append(repeat(1, window), frame(1, wire.KindData, 'x')),
		"beyond credit on its own channel":    append(append([]wire.Frame{frame(2, wire.KindOpen)}, repeat(2, window)...), frame(2, wire.KindData, 'x')),
		"open with the host's parity":         {frame(3, wire.KindOpen)},
		"open of channel zero":                {frame(0, wire.KindOpen)},
		"open of an open channel":             {frame(2, wire.KindOpen), frame(2, wire.KindOpen)},
		"open of a used channel":              {frame(2, wire.KindOpen), frame(2, wire.KindReset), frame(2, wire.KindOpen)},
		"open out of order":                   {frame(4, wire.KindOpen), frame(2, wire.KindOpen)},
		"open with a payload":                 {frame(2, wire.KindOpen, 1)},
		"open of a window not agreed on":      {frame(2, wire.KindOpen, u32(wire.NarrowWindow)...)},
		"data after the end":                  {frame(1, wire.KindEOF), frame(1, wire.KindData, 'x')},
		"a second end":                        {frame(1, wire.KindEOF), frame(1, wire.KindEOF)},
		"an end with a payload":               {frame(1, wire.KindEOF, 1)},
		"credit that was not used":            {frame(1, wire.KindCredit, u32(1)...)},
		"credit that overflows":               {frame(1, wire.KindCredit, u32(1<<32-1)...)},
		"credit of three bytes":               {frame(1, wire.KindCredit, 0, 0, 0)},
		"a second hello":                      {frame(0, wire.KindHello, []byte(`{"version":1}`)...)},
		"a ping on a channel":                 {frame(1, wire.KindPing, u64(1)...)},
		"a ping of one byte":                  {frame(0, wire.KindPing, 1)},
		"a pong without a ping":               {frame(0, wire.KindPong, u64(1)...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := socketPair(t)
			defer b.Close()
			host := run(t, context.Background(), wire.NewConn(a, true))
			ch, err := host.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			send(t, b, frames...)
			wantError(t, host.wait(), wire.ErrProtocol)
			for err == nil {
				_, err = ch.Write([]byte("x"))
			}
			wantError(t, err, wire.ErrProtocol)
			wantError(t, err, wire.ErrClosed)
			_, err = host.Open(t.Context())
			wantError(t, err, wire.ErrProtocol)
		})
	}
}

// scripted is a stream that reads what a peer once sent and swallows the answers.
type scripted struct{ io.Reader }

func (scripted) Write(p []byte) (int, error) { return len(p), nil }
func (scripted) Close() error                { return nil }

func FuzzConn(f *testing.F) {
	seed := func(frames ...wire.Frame) {
		var b bytes.Buffer
		send(f, &b, frames...)
		f.Add(b.Bytes())
	}
	seed(frame(2, wire.KindOpen), frame(2, wire.KindData, 'x'), frame(2, wire.KindEOF), frame(4, wire.KindOpen), frame(4, wire.KindReset, 'x'))
	seed(frame(1, wire.KindData, 'x'), frame(1, wire.KindCredit, u32(1)...), frame(0, wire.KindPing, u64(1)...), frame(0, wire.KindPong, u64(1)...))
	seed(frame(1, wire.KindEOF), frame(1, wire.KindReset), frame(0, wire.KindHello, '{', '}'))
	f.Fuzz(func(t *testing.T, in []byte) {
		host := wire.NewConn(scripted{bytes.NewReader(in)}, true)
		own, err := host.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := own.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		err = host.Run(t.Context())
		if err != nil && !errors.Is(err, wire.ErrProtocol) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("Run ended with %v", err)
		}
		held := drain(t, own)
		for {
			ch, err := host.Accept(t.Context())
			if err != nil {
				wantError(t, err, wire.ErrClosed)
				break
			}
			held += drain(t, ch)
		}
		if held > len(in) {
			t.Fatalf("channels held %d bytes of %d that arrived", held, len(in))
		}
	})
}

// drain reads what a channel of an ended connection still holds.
func drain(t *testing.T, ch *wire.Channel) int {
	t.Helper()
	b, err := io.ReadAll(ch)
	if err != nil && !errors.Is(err, wire.ErrClosed) && !errors.Is(err, wire.ErrReset) {
		t.Fatalf("read ended with %v", err)
	}
	if _, err := ch.Write([]byte("x")); err == nil {
		t.Fatal("a write to an ended connection succeeded")
	}
	return len(b)
}
