package problem_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"cove/internal/core/problem"
)

// full is a writer without room.
type full struct{}

var errFull, errBroken = errors.New("no room"), errors.New("broken")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestSourceTellsWhoFailed(t *testing.T) {
	text := strings.NewReader("text")
	for name, c := range map[string]struct {
		from      io.Reader
		to        io.Writer
		err, want error
	}{
		"nobody":     {text, io.Discard, nil, nil},
		"the reader": {io.MultiReader(text, iotest.ErrReader(errBroken)), io.Discard, errBroken, errBroken},
		"the writer": {strings.NewReader("text"), full{}, errFull, nil},
	} {
		s := &problem.Source{From: c.from}
		if _, err := io.Copy(c.to, s); !errors.Is(err, c.err) || !errors.Is(s.Failed, c.want) || (c.want == nil) != (s.Failed == nil) {
			t.Errorf("%s fails: the copy has %v, the source %v", name, err, s.Failed)
		}
	}
}
