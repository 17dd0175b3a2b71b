package session_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/python/kernel"
)

var cellNumber = regexp.MustCompile(`<cell \d+>`)

// traceback is a cell that must raise with exactly these lines; cells' numbers are written as N.
func traceback(code string, want ...string) cell {
	return codeCheck(code, func(t *testing.T, r *run) {
		got := tracebackOf(t, r)
		for i := range got {
			got[i] = cellNumber.ReplaceAllString(got[i], "<cell N>")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("traceback (-want +got):\n%s", diff)
		}
	})
}

func tracebackOf(t *testing.T, r *run) []string {
	t.Helper()
	for _, ev := range r.events {
		if e, ok := ev.(kernel.Error); ok {
			return e.Traceback
		}
	}
	t.Errorf("raised nothing:\n%s", r.transcript())
	return nil
}

func wantInTraceback(t *testing.T, r *run, wants ...string) {
	t.Helper()
	got := strings.Join(tracebackOf(t, r), "\n")
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("traceback lacks %q:\n%s", want, got)
		}
	}
}

func repeated(n int, f func(i string) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(strconv.Itoa(i))
	}
	return strings.Join(parts, "\n")
}
