package hub_test

import (
	"strings"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

func TestShares(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t)
	c, err := l.CreateConversation(t.Context(), who, hub.NewConversation{Title: "t"})
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error, code string) {
		t.Helper()
		if err == nil || problem.Of(err).Code != code {
			t.Errorf("%s is %v, not %s", what, err, code)
		}
	}
	_, err = l.LastTurn(t.Context(), who, c.ID)
	refused("the last turn of none", err, "conversation_empty")
	n := hub.NewShare{Conversation: c.ID, Turn: "trn_x", Title: "t", Turns: 1, Life: time.Hour, Document: []byte(`{}`)}
	s, code, err := l.AddShare(t.Context(), who, n)
	if err != nil || s.Hash == code || strings.Contains(s.Hash, code) {
		t.Fatalf("%+v, %v", s, err)
	}
	if got, packed, err := l.Shared(t.Context(), code); err != nil || got.ID != s.ID || len(packed) == 0 {
		t.Errorf("shared is %+v, %v", got, err)
	}
	reader := who
	reader.Role = auth.Viewer
	_, _, err = l.AddShare(t.Context(), reader, n)
	refused("a viewer's share", err, "forbidden")
	refused("a viewer's withdrawal", l.DeleteShare(t.Context(), reader, s.ID), "forbidden")
	stranger := who
	stranger.Project = "prj_x"
	refused("a stranger's withdrawal", l.DeleteShare(t.Context(), stranger, s.ID), "share_not_found")
	_, _, err = l.AddShare(t.Context(), stranger, n)
	refused("a stranger's share", err, "conversation_not_found")
	long := n
	long.Life = 20 * 365 * 24 * time.Hour
	_, _, err = l.AddShare(t.Context(), who, long)
	refused("a long life", err, "life_invalid")
	long = n
	long.Document = make([]byte, hub.LargestShare+1)
	_, _, err = l.AddShare(t.Context(), who, long)
	refused("much", err, "share_too_large")
	if list, err := l.Shares(t.Context(), who, hub.Page{}); err != nil || len(list.Items) != 1 {
		t.Errorf("listed are %+v, %v", list, err)
	}
	if err := l.DeleteShare(t.Context(), who, s.ID); err != nil {
		t.Error(err)
	}
	_, _, gone := l.Shared(t.Context(), code)
	for _, other := range []string{"", "x", strings.Repeat("0", 32), code + "0"} {
		_, _, err := l.Shared(t.Context(), other)
		refused("the code "+other, err, "share_not_found")
		if err.Error() != gone.Error() {
			t.Errorf("%q is told %v, and a withdrawn one %v", other, err, gone)
		}
	}
}
