package bodybudget_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cove/internal/http/bodybudget"
)

func TestBounded(t *testing.T) {
	t.Parallel()
	for _, length := range []int{0, 1, 9, 10, 11, 100} {
		w := httptest.NewRecorder()
		got, err := io.ReadAll(bodybudget.Bounded(w, io.NopCloser(strings.NewReader(strings.Repeat("x", length))), 10))
		var long *http.MaxBytesError
		if len(got) != min(length, 10) || errors.As(err, &long) != (length > 10) || long != nil && long.Limit != 10 || w.Header().Get("Connection") != "" {
			t.Errorf("of %d bytes: %d, %v", length, len(got), err)
		}
	}
	broken := errors.New("broken")
	if _, err := io.ReadAll(bodybudget.Bounded(httptest.NewRecorder(), io.NopCloser(io.MultiReader(strings.NewReader("x"), failing{broken})), 10)); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestTooLargeIsAnswered sends far too much without looking for an answer meanwhile, as Python's http.client does: the answer is there after that. One that goes on for ever is cut off.
func TestTooLargeIsAnswered(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(bodybudget.Bounded(w, r.Body, 1<<20)); err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		}
	}))
	defer s.Close()
	for _, c := range []struct {
		length   int64
		answered bool
	}{{28 << 20, true}, {1 << 40, false}} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", c.length)
		piece := bytes.Repeat([]byte("x"), 1<<20)
		var sent int64
		for ; sent < c.length && err == nil; sent += int64(len(piece)) {
			_, err = conn.Write(piece)
		}
		if !c.answered {
			if err == nil || sent > 200<<20 {
				t.Errorf("%d bytes were taken: %v", sent, err)
			}
			_ = conn.Close()
			continue
		}
		answer := make([]byte, 12)
		if _, err2 := io.ReadFull(conn, answer); err != nil || err2 != nil || string(answer) != "HTTP/1.1 413" {
			t.Errorf("%v, %v, %q", err, err2, answer)
		}
		_ = conn.Close()
	}
}
