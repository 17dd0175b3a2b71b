package live_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/code/redact"
	"cove/internal/machine/process"
	"cove/internal/server/hub/live"
)

// written is an output as a guest gives it: from the piece on in which the position is, cut there.
func written(all []process.Event, pause time.Duration) func(context.Context, int64) iter.Seq2[process.Event, error] {
	return func(ctx context.Context, from int64) iter.Seq2[process.Event, error] {
		return func(yield func(process.Event, error) bool) {
			for _, e := range all {
				if before := from - e.At; before > 0 && e.Kind != process.Ended {
					if before >= int64(len(e.Data)) {
						continue
					}
					e.At, e.Data = from, e.Data[before:]
				}
				if !yield(e, nil) {
					return
				}
				select {
				case <-time.After(pause):
				case <-ctx.Done():
					yield(process.Event{}, ctx.Err())
					return
				}
			}
		}
	}
}

// TestProcessOutputIsMasked cuts output with secrets into pieces, and follows it from many places: what is no secret is where it was.
func TestProcessOutputIsMasked(t *testing.T) {
	t.Parallel()
	const secret = "AKIA" + "0123456789ABCDEF"
	plain := strings.Repeat("words 12, ", 30) + secret + "\nafter\n" + strings.Repeat("x", 30) + " and " + secret
	want := strings.ReplaceAll(plain, secret, "*"+strings.Repeat("*", len(secret)-1))
	if strings.Contains(want, secret) || len(want) != len(plain) {
		t.Fatal("the test is wrong")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var all []process.Event
		for at := 0; at < len(plain); {
			n := min(len(plain)-at, 1+r.IntN(40))
			all = append(all, process.Event{Kind: process.Stdout, At: int64(at), Data: []byte(plain[at : at+n])})
			at += n
		}
		all = append(all, process.Event{Kind: process.Ended, At: int64(len(plain)), Exit: &process.Exit{}})
		from := r.IntN(len(plain))
		var got strings.Builder
		ended := false
		for e, err := range live.Masked(t.Context(), redact.Kinds{Secrets: true}, int64(from), written(all, 0)) {
			if err != nil {
				t.Fatal(err)
			}
			if ended = e.Kind == process.Ended; ended {
				continue
			}
			if e.At != int64(from+got.Len()) {
				t.Fatalf("a piece at %d, not %d", e.At, from+got.Len())
			}
			got.Write(e.Data)
		}
		if !ended || got.String() != want[from:] {
			t.Fatalf("from %d: %q, not %q", from, got.String(), want[from:])
		}
	}
}

// TestMaskedStreamsKeepTheirOrder has what is held back of one stream come before what came later in the other, and after a while by itself.
func TestMaskedStreamsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out, errs := process.Event{Kind: process.Stdout, Data: []byte("key AKIA0123")}, process.Event{Kind: process.Stderr, At: 12, Data: []byte("oh\n")}
		gap := process.Event{Kind: process.Gap, At: 40}
		later := process.Event{Kind: process.Stdout, At: 40, Data: []byte("more 7")}
		prompt := process.Event{Kind: process.Terminal, At: 46, Data: []byte("1")}
		var got []string
		for e, err := range live.Masked(t.Context(), redact.Kinds{Secrets: true}, 0, written([]process.Event{out, errs, gap, later, prompt}, 0)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(e.Kind)+" "+string(e.Data))
		}
		if all := strings.Join(got, "|"); all != "stdout key |stdout AKIA0123|stderr oh\n|gap |stdout more |stdout 7|terminal 1" {
			t.Errorf("got %q", all)
		}

		for range 100 { // whatever comes first, it is said
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var last error
			for _, err := range live.Masked(ctx, redact.Kinds{Secrets: true}, 0, written([]process.Event{{Kind: process.Stdout, Data: []byte("x\n")}}, time.Hour)) {
				last = err
				cancel()
			}
			if !errors.Is(last, context.Canceled) {
				t.Fatalf("the last is %v", last)
			}
		}

		begin := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		for e, err := range live.Masked(ctx, redact.Kinds{Secrets: true}, 0, written([]process.Event{{Kind: process.Terminal, Data: []byte("1")}}, time.Hour)) {
			if errors.Is(err, context.Canceled) {
				break
			}
			if err != nil || string(e.Data) != "1" || time.Since(begin) > time.Second {
				t.Fatalf("after %v: %q, %v", time.Since(begin), e.Data, err)
			}
			cancel()
		}
		cancel()
	})
}

// TestWhatIsTypedComesBackAtOnce: the echo of a key is passed on without a delay, though it may be how a secret begins; what a program writes, and what comes back a second time, is not.
func TestWhatIsTypedComesBackAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const secret = "AKIA" + "0123456789ABCDEF"
		var pieces []process.Event
		at := int64(0)
		write := func(text string) {
			pieces = append(pieces, process.Event{Kind: process.Terminal, At: at, Data: []byte(text)})
			at += int64(len(text))
		}
		for _, key := range "ghp_1" { // the person types it
			write(string(key))
		}
		write("ghp_")          // nobody typed it again
		write("\r\n" + secret) // a program writes it
		write("\r\n")
		all, typed := live.MaskedAtTerminal(t.Context(), redact.Kinds{Secrets: true}, func(ctx context.Context, _ int64) iter.Seq2[process.Event, error] {
			return written(pieces, time.Millisecond)(ctx, 0)
		})
		typed("xgh")
		typed("p_1")
		var got []string
		begin := time.Now()
		for e, err := range all {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, time.Since(begin).String()+" "+string(e.Data))
		}
		want := []string{"0s g", "1ms h", "2ms p", "3ms _", "4ms 1", "6ms ghp_\r\n", "7ms " + strings.Repeat("*", len(secret)) + "\r\n"}
		if text := strings.Join(got, "|"); text != strings.Join(want, "|") {
			t.Errorf("got %q", text)
		}
	})
}
