package bodybudget_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/http/httpstatus"
)

// text is a JSON text, which may be huge, that comes as its reader is asked.
func text(head, one string, n int, tail string) io.Reader {
	return io.MultiReader(strings.NewReader(head), strings.NewReader(strings.Repeat(one, n)), strings.NewReader(tail))
}

func TestReadBoundsWhatATextIsMadeOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    io.Reader
		refused bool
	}{
		"nothing":                  {strings.NewReader(""), false},
		"no JSON":                  {strings.NewReader(`]]}{"\`), false}, // whoever decodes it says so
		"as many values":           {text("[0", ",0", 199_998, "]"), false},
		"too many numbers":         {text("[0", ",0", 200_000, "]"), true},
		"too many objects":         {text(`{"a":[{}`, ",{}", 100_000, "]}"), true},
		"too many fields":          {text(`{"a":0`, `,"a":0`, 100_000, "}"), true},
		"commas in a string":       {text(`["`, `,{[:`, 200_000, `"]`), false},
		"behind an escaped quote":  {text(`["\"`, `,`, 300_000, `"]`), false},
		"behind a closed string":   {text(`["\\"`, `,1`, 300_000, `]`), true},
		"as deep":                  {strings.NewReader(strings.Repeat("[", 100) + strings.Repeat("]", 100)), false},
		"too deep":                 {strings.NewReader(strings.Repeat("[", 101) + strings.Repeat("]", 101)), true},
		"too deep with objects":    {text("", `{"a":`, 101, ""), true},
		"many beside each other":   {text("[[]", ",[[]]", 10_000, "]"), false},
		"a long string":            {text(`{"a":"`, "x", 10<<20, `"}`), false},
		"a long name":              {text(`{"`, "x", 9<<10, `":1}`), true},
		"a long name of escapes":   {text(`{"`, `\u0041`, 9<<10, `":1}`), true},
		"a long value, then names": {text(`{"a":"`, "x", 9<<10, `","b":1}`), false},
	} {
		whole, _ := io.ReadAll(c.text)
		for kind, r := range []io.Reader{strings.NewReader(string(whole)), iotest.DataErrReader(iotest.HalfReader(strings.NewReader(string(whole))))} {
			got, err := bodybudget.Read(t.Context(), r)
			if c.refused {
				if p := problem.Of(err); p.Code != "request_too_complex" || httpstatus.Of(p) != 413 {
					t.Errorf("%s, %d: %v", name, kind, err)
				}
				if rest, _ := io.ReadAll(r); len(rest) > 0 {
					t.Errorf("%s: the client is left with %d bytes", name, len(rest))
				}
			} else if err != nil || string(got) != string(whole) {
				t.Errorf("%s, %d: %d bytes, %v", name, kind, len(got), err)
			}
		}
	}
}

func TestReadReturnsTheReadersErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if _, err := bodybudget.Read(t.Context(), io.MultiReader(strings.NewReader(`{"a"`), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"c\"d\\"}],"e":{}}`))
	f.Add([]byte(`[[[[],[]],"\\",""]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := bodybudget.Read(context.Background(), iotest.OneByteReader(strings.NewReader(string(body))))
		if err == nil && string(got) != string(body) {
			t.Errorf("%q became %q", body, got)
		}
		if len(body) < 100 && err != nil && json.Valid(body) {
			t.Errorf("%q: %v", body, err)
		}
	})
}

// body is a JSON text of n bytes.
func body(n int) io.Reader { return strings.NewReader(`"` + strings.Repeat("x", n-2) + `"`) }

func TestBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bodybudget.NewBudget(16<<20, time.Second)
		begin := func(key string) (context.Context, *bodybudget.Share) {
			s := b.Share(key)
			return bodybudget.With(t.Context(), s), s
		}
		ctx, first := begin("a")
		if _, err := bodybudget.Read(ctx, body(1<<20)); err != nil {
			t.Fatal(err)
		}
		if b.Used() < 5<<20 {
			t.Errorf("%d bytes are taken while 1 MiB is decoded", b.Used())
		}
		other, second := begin("a")
		if _, err := bodybudget.Read(other, body(1<<20)); problem.Of(err).Code != "memory_busy" || httpstatus.RetryAfter(problem.Of(err)) == 0 || httpstatus.Of(problem.Of(err)) != 429 {
			t.Errorf("one key takes all: %v", err)
		}
		second.Release()
		theirs, third := begin("b")
		if _, err := bodybudget.Read(theirs, body(1<<20)); err != nil {
			t.Errorf("another key gets nothing: %v", err)
		}
		last, fourth := begin("c")
		if _, err := bodybudget.Read(last, body(1<<20)); problem.Of(err).Code != "overloaded" || httpstatus.Of(problem.Of(err)) != 503 {
			t.Errorf("the server takes everything: %v", err)
		}
		fourth.Release()

		bodybudget.Decoded(ctx)
		if used := b.Used(); used < 7<<20 || used > 9<<20 { // theirs, and what the first one sent
			t.Errorf("%d bytes are taken after one was decoded", used)
		}
		release := bodybudget.Hold(ctx)
		first.Release()
		third.Release()
		if used := b.Used(); used < 1<<20 || used > 3<<20 {
			t.Errorf("%d bytes are taken while one is held", used)
		}
		release()
		release()
		if b.Used() != 0 {
			t.Errorf("%d bytes are taken by nobody", b.Used())
		}
		if err := bodybudget.Recall(ctx, 1<<30); err != nil || b.Used() != 0 {
			t.Errorf("a request that is over takes %d: %v", b.Used(), err)
		}
	})
}

func TestBudgetIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bodybudget.NewBudget(4<<20, time.Minute)
		var all sync.WaitGroup
		for range 20 { // each is larger than what a key may have: it takes all of that, one after the other
			all.Go(func() {
				s := b.Share("a")
				defer s.Release()
				ctx := bodybudget.With(t.Context(), s)
				if err := bodybudget.Recall(ctx, 1<<30); err != nil {
					t.Error(err)
				}
				if used := b.Used(); used != 2<<20 {
					t.Errorf("%d bytes are taken", used)
				}
				time.Sleep(time.Second)
			})
		}
		all.Wait()
		if b.Used() != 0 {
			t.Errorf("%d bytes are taken by nobody", b.Used())
		}
		held := b.Share("a")
		if err := bodybudget.Recall(bodybudget.With(t.Context(), held), 1<<30); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		waits := b.Share("a")
		if err := bodybudget.Recall(bodybudget.With(ctx, waits), 1); problem.Of(err).Kind != problem.Canceled {
			t.Errorf("a client that went away: %v", err)
		}
		waits.Release()
		held.Release()
	})
}
