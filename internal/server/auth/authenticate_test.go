package auth_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
	"cove/internal/server/auth"
)

func TestGoodKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, role := range auth.Roles() {
		who := w.login(t, w.texts[role])
		if who.Role != role || who.Project != w.who[auth.Owner].Project || who.Key == "" || who.Admin {
			t.Errorf("the key of the %s is %+v", role, who)
		}
	}
	if !w.root.Admin || w.root.Project != auth.LocalProject || w.root.User != auth.LocalUser {
		t.Errorf("the first key is %+v", w.root)
	}
	if w.other.Project == w.who[auth.Owner].Project {
		t.Error("a key of another project has this one")
	}
}

// TestBadKeys: whatever is wrong with a key, the answer is the same, and the look-up is made for every well-formed one.
func TestBadKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	text := w.texts[auth.Member]
	revoked, revokedText, err := w.CreateKey(ctx, w.who[auth.Member], auth.NewKey{Name: "revoked"})
	must(t, err)
	_, err = w.RevokeKey(ctx, w.who[auth.Member], revoked.ID)
	must(t, err)
	gone := w.member(t, w.who[auth.Owner].Project, "gone", auth.Member)
	_, err = w.Accounts.SetMember(ctx, w.who[auth.Owner], auth.Membership{User: "gone"})
	must(t, err)
	deleted := w.member(t, w.who[auth.Owner].Project, "deleted", auth.Member)
	must(t, w.Accounts.DeleteUser(ctx, w.root, "deleted"))

	var answers []*problem.Error
	for name, bad := range map[string]struct {
		text   string
		lookup int
	}{
		"empty":         {"", 0},
		"words":         {"let me in", 0},
		"truncated":     {text[:len(text)-1], 0},
		"mistyped":      {text[:40] + flip(text[40]) + text[41:], 0},
		"unknown":       {auth.NewText(), 1},
		"wrong secret":  {withSecretOf(t, w, text), 1},
		"revoked":       {revokedText, 1},
		"not a member":  {gone, 1},
		"deleted users": {deleted, 1},
	} {
		before := w.asked
		_, err := w.Authenticate(ctx, bad.text)
		p := problem.Of(err)
		if p == nil || p.Kind != problem.Denied || p.Code != "unauthenticated" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if w.asked-before != bad.lookup {
			t.Errorf("%s: the store was asked %d times, not %d", name, w.asked-before, bad.lookup)
		}
		answers = append(answers, p)
	}
	for _, a := range answers {
		if diff := cmp.Diff(answers[0], a); diff != "" {
			t.Errorf("two answers differ:\n%s", diff)
		}
	}
}

func flip(c byte) string {
	if c == '0' {
		return "1"
	}
	return "0"
}

// withSecretOf returns a well-formed text with the id of the key and another secret: the id is put into the record of a new one.
func withSecretOf(t *testing.T, w *world, text string) string {
	t.Helper()
	id, _, err := auth.ParseText(text)
	must(t, err)
	other := auth.NewText()
	otherID, _, err := auth.ParseText(other)
	must(t, err)
	k := w.keys[id]
	k.ID = otherID // the same hash under the id that other has
	w.keys[otherID] = k
	return other
}

func TestExpiredKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, text, err := w.CreateKey(t.Context(), w.who[auth.Member], auth.NewKey{Name: "short", Life: 2 * time.Second})
	must(t, err)
	w.login(t, text)
	w.at = w.at.Add(2 * time.Second) // less than what a good key is remembered for
	_, err = w.Authenticate(t.Context(), text)
	wantCode(t, err, "key_expired")
	if httpstatus.Of(problem.Of(err)) != 401 {
		t.Error("an expired key is not a 401")
	}
}

func TestAKeyIsRememberedForAMomentOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := w.texts[auth.Viewer]
	w.login(t, text)
	before := w.asked
	for range 10 {
		w.login(t, text)
	}
	if w.asked != before {
		t.Errorf("the store was asked %d times for a key that was good a moment ago", w.asked-before)
	}
	// Another process revokes it: this one does not hear of it, and stops taking it within seconds.
	id, _, _ := auth.ParseText(text)
	k := w.keys[id]
	k.Revoked = w.at
	w.keys[id] = k
	w.at = w.at.Add(5 * time.Second)
	_, err := w.Authenticate(t.Context(), text)
	wantCode(t, err, "unauthenticated")
}

func TestChangesActAtOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, c := range map[string]struct {
		do   func(w *world) error
		want string
	}{
		"revoked": {func(w *world) error {
			_, err := w.RevokeKey(ctx, w.who[auth.Owner], w.who[auth.Viewer].Key)
			return err
		}, "unauthenticated"},
		"removed": {func(w *world) error {
			_, err := w.Accounts.SetMember(ctx, w.who[auth.Owner], auth.Membership{User: "viewer"})
			return err
		}, "unauthenticated"},
		"deleted": {func(w *world) error { return w.Accounts.DeleteUser(ctx, w.root, "viewer") }, "unauthenticated"},
		"other role": {func(w *world) error {
			_, err := w.Accounts.SetMember(ctx, w.who[auth.Owner], auth.Membership{User: "viewer", Role: auth.Auditor})
			return err
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.login(t, w.texts[auth.Viewer])
			must(t, c.do(w))
			who, err := w.Authenticate(ctx, w.texts[auth.Viewer])
			wantCode(t, err, c.want)
			if err == nil && who.Role != auth.Auditor {
				t.Errorf("the role is still %s", who.Role)
			}
		})
	}
}

func TestUsedIsNotedOnceAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Wait()
	text := w.texts[auth.Member]
	id, _, _ := auth.ParseText(text)
	if got := w.keys[id].Used; !got.Equal(w.at) {
		t.Errorf("the key was used at %s, not %s", got, w.at)
	}
	before := w.changed
	for range 20 {
		w.at = w.at.Add(6 * time.Second)
		w.login(t, text)
		w.Wait()
	}
	if n := w.changed - before; n != 2 {
		t.Errorf("in two minutes the key was written %d times", n)
	}
}

func TestABrokenStoreIsNotAWrongKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.broken = problem.New(problem.DatabaseUnavailable, "down")
	w.at = w.at.Add(time.Minute)
	_, err := w.Authenticate(t.Context(), w.texts[auth.Owner])
	wantCode(t, err, "database_unavailable")
	w.broken = errors.New("what")
	_, err = w.Authenticate(t.Context(), w.texts[auth.Owner])
	wantCode(t, err, "internal")
}

// slowStore holds the first look-up of a key until it is let go.
type slowStore struct {
	*memory
	held      atomic.Bool
	read, let chan struct{}
}

func (s *slowStore) Role(ctx context.Context, project, user string) (auth.Role, error) {
	role, err := s.memory.Role(ctx, project, user)
	if s.held.CompareAndSwap(false, true) {
		close(s.read)
		<-s.let
	}
	return role, err
}

// TestARevocationIsNotOvertaken: what was read before a change is not remembered after it.
func TestARevocationIsNotOvertaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.at = w.at.Add(time.Minute)
	slow := &slowStore{memory: w.memory, read: make(chan struct{}), let: make(chan struct{})}
	w.Store = slow
	first := make(chan error)
	go func() {
		_, err := w.Authenticate(context.Background(), w.texts[auth.Viewer])
		first <- err
	}()
	<-slow.read
	_, err := w.RevokeKey(t.Context(), w.who[auth.Owner], w.who[auth.Viewer].Key)
	must(t, err)
	close(slow.let)
	must(t, <-first) // it began before the revocation
	_, err = w.Authenticate(t.Context(), w.texts[auth.Viewer])
	wantCode(t, err, "unauthenticated")
}

// TestWhoIsPresent: what was asked for before is done with the rights of now, and no more of them than it takes to work in the project.
func TestWhoIsPresent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, member := t.Context(), w.who[auth.Member]
	who, err := w.Present(ctx, member.Project, member.User, member.Key)
	must(t, err)
	if !who.May(auth.ConversationsWrite) || who.Key != member.Key || who.Role != auth.Member {
		t.Errorf("present is %+v", who)
	}
	root, err := w.Present(ctx, w.root.Project, w.root.User, "")
	must(t, err)
	if root.Admin || root.May(auth.ServerManage) {
		t.Errorf("the server's admin is %+v", root)
	}
	limited, _, err := w.CreateKey(ctx, member, auth.NewKey{Name: "short", Scopes: []auth.Action{auth.ConversationsRead}, Life: time.Hour})
	must(t, err)
	if who, err = w.Present(ctx, member.Project, member.User, limited.ID); err != nil || who.May(auth.ConversationsWrite) {
		t.Errorf("a limited key is %+v, %v", who, err)
	}
	_, err = w.Present(ctx, w.other.Project, member.User, member.Key)
	wantCode(t, err, "asker_gone")
	_, err = w.Present(ctx, member.Project, w.who[auth.Owner].User, member.Key)
	wantCode(t, err, "asker_gone")
	w.at = w.at.Add(2 * time.Hour)
	_, err = w.Present(ctx, member.Project, member.User, limited.ID)
	wantCode(t, err, "asker_gone")
	_, err = w.Accounts.SetMember(ctx, w.who[auth.Owner], auth.Membership{User: "member", Role: auth.Viewer})
	must(t, err)
	if who, err = w.Present(ctx, member.Project, member.User, member.Key); err != nil || who.May(auth.ConversationsWrite) {
		t.Errorf("a member who became a viewer is %+v, %v", who, err)
	}
	_, err = w.RevokeKey(ctx, w.who[auth.Owner], member.Key)
	must(t, err)
	_, err = w.Present(ctx, member.Project, member.User, member.Key)
	wantCode(t, err, "asker_gone")
	must(t, w.Accounts.DeleteUser(ctx, w.root, "member"))
	for _, key := range []string{"", member.Key} {
		_, err = w.Present(ctx, member.Project, member.User, key)
		wantCode(t, err, "asker_gone")
	}
}
