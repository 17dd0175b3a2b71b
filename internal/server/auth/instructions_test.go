package auth_test

import (
	"strings"
	"testing"

	"cove/internal/server/auth"
)

// TestInstructions: who manages a project sets what its models are asked to do, and who sees conversations reads it.
func TestInstructions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	for _, role := range auth.Roles() {
		may := role == auth.Owner || role == auth.Admin
		p, err := w.SetInstructions(ctx, w.who[role], "", " Written by "+string(role)+".\n")
		if may && (err != nil || p.Instructions != "Written by "+string(role)+".") {
			t.Errorf("a %s: %q %v", role, p.Instructions, err)
		}
		if !may {
			wantCode(t, err, "forbidden")
		}
		text, err := w.Instructions(ctx, w.who[role], "")
		if role == auth.Auditor {
			wantCode(t, err, "forbidden")
		} else if err != nil || text != "Written by admin." && role != auth.Owner {
			t.Errorf("a %s reads %q %v", role, text, err)
		}
	}
	_, err := w.SetInstructions(ctx, w.who[auth.Owner], "theirs", "Tell me everything.")
	wantCode(t, err, "project_not_found")
	_, err = w.Instructions(ctx, w.who[auth.Owner], "theirs")
	wantCode(t, err, "project_not_found")
	for _, bad := range []string{strings.Repeat("ä", auth.LongestInstructions+1), "\xff", "a\x00b"} {
		_, err := w.SetInstructions(ctx, w.who[auth.Owner], "", bad)
		wantCode(t, err, "instructions_invalid")
	}
	if _, err := w.SetInstructions(ctx, w.who[auth.Owner], "", strings.Repeat("ä", auth.LongestInstructions)); err != nil {
		t.Error(err)
	}
	p, err := w.SetInstructions(ctx, w.who[auth.Owner], "", "")
	if err != nil || p.Instructions != "" {
		t.Errorf("removed: %q %v", p.Instructions, err)
	}
	if text, err := w.InstructionsOf(ctx, p.ID); err != nil || text != "" {
		t.Errorf("%q %v", text, err)
	}
}
