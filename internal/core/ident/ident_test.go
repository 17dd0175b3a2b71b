package ident_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/core/ident"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 10_000 {
		id := ident.New(ident.Session)
		if seen[id] || !ident.Valid(ident.Session, id) || ident.Valid(ident.Kernel, id) {
			t.Fatalf("%s is not a new session's id", id)
		}
		seen[id] = true
	}
	for _, bad := range []string{"", "ses_", "ses", "ses_x", ident.New("ses") + "0", strings.ToUpper(ident.New("ses")), "ses_iiiiiiiiiiiiiiiiiiiiiiiiii"} {
		if ident.Valid(ident.Session, bad) {
			t.Errorf("%q passes for an id", bad)
		}
	}
	id := ident.New(ident.Session)
	for _, bad := range []string{id[:len(id)-1] + "\n", "ses_\r\n" + id[6:], id[:10] + "/" + id[11:], id[:10] + "\x00" + id[11:], id[:28] + "é"} {
		if ident.Valid(ident.Session, bad) {
			t.Errorf("%q passes for an id", bad)
		}
	}
	if back, ok := ident.As(ident.Session, "cntr_"+ident.Body(id)); !ok || back != id {
		t.Errorf("%s came back as %s", id, back)
	}
}

func TestIDsSortByTime(t *testing.T) {
	t.Parallel()
	var ids []string
	for range 5 {
		ids = append(ids, ident.New("x"))
		time.Sleep(2 * time.Millisecond)
	}
	if !slices.IsSorted(ids) {
		t.Errorf("not in order: %q", ids)
	}
}
