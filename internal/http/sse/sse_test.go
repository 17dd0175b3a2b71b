package sse_test

import (
	"bytes"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"cove/internal/http/sse"
)

// TestWhatIsWrittenIsRead holds the two against each other for any events, with comments between them.
func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		var want []sse.Event
		for range rapid.IntRange(0, 20).Draw(t, "events") {
			e := sse.Event{ID: rapid.Int64Min(0).Draw(t, "id"), Name: rapid.StringMatching(`[a-z_.]{0,12}`).Draw(t, "name"),
				Data: []byte(rapid.StringMatching(`[^\r]{0,40}`).Draw(t, "data"))}
			want = append(want, e)
			text = e.Append(text)
			if rapid.Bool().Draw(t, "silence") {
				text = append(text, sse.Comment...)
			}
		}
		r := sse.NewReader(bytes.NewReader(text), 1<<10, nil)
		for _, e := range want {
			got, err := r.Next()
			if err != nil || cmp.Diff(e, got) != "" && len(e.Data)+len(got.Data) > 0 {
				t.Fatalf("%v: %s", err, cmp.Diff(e, got))
			}
		}
		if e, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Fatalf("behind the end: %+v %v", e, err)
		}
	})
}

// TestStreamsOfOthers reads what the standard allows and this package does not write.
func TestStreamsOfOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"carriage returns":        {"event: a\r\ndata: 1\r\n\r\n", "0 a 1;"},
		"no space":                {"data:1\n\n", "0  1;"},
		"no data":                 {"event: a\nid: 3\n\ndata: 1\n\n", "0  1;"},
		"data without a colon":    {"data\n\n", "0  ;"},
		"several lines":           {"data: a\ndata:\ndata: b\n\n", "0  a\n\nb;"},
		"an id that is no number": {"id: x\ndata: 1\n\n", "0  1;"},
		"retry and what is new":   {"retry: 1000\nnew: x\ndata: 1\n\n", "0  1;"},
		"not whole":               {"data: 1\n\ndata: 2\n", "0  1;"},
		"too large":               {"data: " + strings.Repeat("x", 100) + "\n\n", "too large"},
		"too many lines":          {strings.Repeat("data: "+strings.Repeat("x", 40)+"\n", 3), "too large"},
	} {
		r := sse.NewReader(strings.NewReader(test.text), 64, nil)
		var got strings.Builder
		for {
			e, err := r.Next()
			if errors.Is(err, sse.ErrTooLarge) {
				got.WriteString("too large")
			}
			if err != nil {
				break
			}
			got.WriteString(strings.Join([]string{string(rune('0' + e.ID)), e.Name, string(e.Data)}, " ") + ";")
		}
		if got.String() != test.want {
			t.Errorf("%s: %q, not %q", name, got.String(), test.want)
		}
	}
}

// TestEachPieceGoesAtOnce looks for the headers that keep proxies from holding a stream back, and for the flush.
func TestEachPieceGoesAtOnce(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	if _, err := sse.NewWriter(w).Write([]byte(sse.Comment)); err != nil {
		t.Fatal(err)
	}
	if h := w.Header(); !strings.HasPrefix(h.Get("Content-Type"), sse.ContentType) || h.Get("X-Accel-Buffering") != "no" || !w.Flushed {
		t.Errorf("%v, flushed: %v", h, w.Flushed)
	}
}
