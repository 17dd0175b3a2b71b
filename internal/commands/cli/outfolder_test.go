package cli

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// TestLossesAreBounded loses more results than anybody reads of.
func TestLossesAreBounded(t *testing.T) {
	t.Parallel()
	o, err := newOutFolder(t.TempDir(), t.TempDir(), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		o.lose("figure-"+strconv.Itoa(i), errors.New("no room"))
	}
	var told strings.Builder
	o.tellLosses(&told)
	if n := strings.Count(told.String(), "\n"); n != mostLosses+1 || !strings.Contains(told.String(), afterwards) {
		t.Errorf("%d lines: %.500s", n, told.String())
	}
}
