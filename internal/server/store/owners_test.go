package store_test

import (
	"slices"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/server/hub"
	"cove/internal/server/ownership"
	"cove/internal/server/store"
	"cove/internal/server/stream"
)

func addOwner(t testing.TB, s *store.Store, home string, alone bool) ownership.Record {
	t.Helper()
	r, err := s.AddOwner(t.Context(), ownership.Record{ID: ident.New(ident.Owner), Home: home, About: ownership.About{Command: "test", PID: 7, Host: "h", Boot: "b"}}, alone, nil)
	must(t, err)
	return r
}

func TestOwnersComeAndGo(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		command, first := addOwner(t, s, "hom_1", false), addOwner(t, s, "hom_1", true)
		other := addOwner(t, s, "hom_2", true)
		if command.Epoch != 0 || first.Epoch != 1 || other.Epoch != 1 || first.Until.Sub(first.Since) != ownership.Lease {
			t.Errorf("registered are %+v, %+v and %+v", command, first, other)
		}
		second := addOwner(t, s, "hom_1", true)
		if second.Epoch != 2 {
			t.Errorf("the second one's epoch is %d", second.Epoch)
		}
		all, err := s.Owners(ctx)
		must(t, err)
		if len(all) != 3 || !slices.Contains(all, command) || !slices.Contains(all, other) || !slices.Contains(all, second) {
			t.Errorf("there are %+v", all)
		}
		if n, err := s.Neighbours(ctx, second.ID, "hom_1"); n != 1 || err != nil {
			t.Errorf("%d neighbours, %v", n, err)
		}
		if n, err := s.Others(ctx, second.ID); n != 2 || err != nil {
			t.Errorf("%d others, %v", n, err)
		}
		_, err = s.RenewOwner(ctx, first.ID)
		wantCode(t, err, "owner_lost")
		_, err = s.RemoveOwners(ctx, first.ID, all)
		wantCode(t, err, "owner_lost")
		if n, err := s.RemoveOwners(ctx, second.ID, []ownership.Record{{ID: command.ID, Until: command.Until.Add(-time.Second)}}); n != 0 || err != nil {
			t.Errorf("%d whose leases were renewed are buried, %v", n, err)
		}
		if n, err := s.RemoveOwners(ctx, second.ID, []ownership.Record{command}); n != 1 || err != nil {
			t.Errorf("%d are buried, %v", n, err)
		}
		now, err := s.RenewOwner(ctx, second.ID)
		must(t, err)
		renewed, err := s.Owner(ctx, second.ID)
		must(t, err)
		if now.Before(second.Since) || !renewed.Until.Equal(now.Add(ownership.Lease)) {
			t.Errorf("renewed at %v it is %+v", now, renewed)
		}
		must(t, s.RemoveOwner(ctx, other.ID))
		must(t, s.RemoveOwner(ctx, other.ID))
		_, err = s.Owner(ctx, other.ID)
		wantCode(t, err, "owner_not_found")
		if h, served, err := s.Home(ctx, "hom_2"); h.Host != "h" || served || err != nil {
			t.Errorf("%+v %v %v", h, served, err)
		}
		if h, served, err := s.Home(ctx, "hom_1"); h.Epoch != 2 || !served || err != nil {
			t.Errorf("%+v %v %v", h, served, err)
		}
		_, _, err = s.Home(ctx, "hom_3")
		wantCode(t, err, "home_not_found")
	})
}

// TestADeadOwnerIsFenced has an owner write before and after it was removed.
func TestADeadOwnerIsFenced(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		a, b := addOwner(t, s, "hom_1", false), addOwner(t, s, "hom_2", false)
		told := 0
		by := s.By(a.ID, func() { told++ })
		e := execution("exe_1", "")
		e.Owner = a.ID
		must(t, by.AddExecution(ctx, e))
		must(t, by.AddSession(ctx, session("ses_1", 0)))
		if _, err := s.RemoveOwners(ctx, b.ID, []ownership.Record{a}); err != nil {
			t.Fatal(err)
		}
		e.State = "ok"
		_, err := by.FinishExecution(ctx, e, nil)
		wantCode(t, err, "owner_lost")
		wantCode(t, by.AddEvents(ctx, []stream.Event{event("exe_1", 1, "exe_1", "{}")}), "owner_lost")
		wantCode(t, by.AddSession(ctx, session("ses_2", 0)), "owner_lost")
		_, err = by.UpdateSession(ctx, project, "ses_1", func(n *hub.Session) error { n.Name = "other"; return nil })
		wantCode(t, err, "owner_lost")
		if told != 4 {
			t.Errorf("it was told %d times", told)
		}
		if got, err := by.Execution(ctx, project, "exe_1"); err != nil || got.State != hub.ExecutionQueued {
			t.Errorf("%+v %v", got, err)
		}
		abandoned, err := s.AbandonedExecutions(ctx, 10)
		must(t, err)
		if len(abandoned) != 1 {
			t.Errorf("abandoned are %+v", abandoned)
		}
	})
}

// TestWhatIsAbandoned has records of owners that live and that do not, and of none.
func TestWhatIsAbandoned(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		living, dead, none := addOwner(t, s, "hom_1", false).ID, ident.New(ident.Owner), ""
		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project, Created: at(0), Used: at(0)}))
		for i, by := range []string{living, dead, none} {
			e := execution("exe_"+string(rune('a'+i)), "")
			e.Owner = by
			must(t, s.AddExecution(ctx, e))
			must(t, s.AddTurn(ctx, hub.Turn{ID: "trn_" + string(rune('a'+i)), Project: project, Conversation: "cnv_1", State: hub.TurnRunning, Created: at(i), Hidden: true, Owner: by}))
			for _, home := range []string{"hom_1", "hom_2", ""} {
				n := session("ses_"+string(rune('a'+i))+home, i)
				n.Owner, n.Home, n.State = by, home, hub.SessionActive
				must(t, s.AddSession(ctx, n))
				n.ID, n.State = n.ID+"_lost", hub.SessionLost
				must(t, s.AddSession(ctx, n))
			}
		}
		executions, err := s.AbandonedExecutions(ctx, 10)
		must(t, err)
		turns, err := s.AbandonedTurns(ctx, 10)
		must(t, err)
		if len(executions) != 2 || executions[0].ID != "exe_b" || len(turns) != 2 || turns[0].ID != "trn_b" {
			t.Errorf("abandoned are %+v and %+v", executions, turns)
		}
		sessions, err := s.AbandonedSessions(ctx, "hom_1", 10)
		must(t, err)
		wantSessions(t, sessions, "ses_b", "ses_b_lost", "ses_bhom_1", "ses_bhom_1_lost", "ses_bhom_2")
		for _, c := range []struct {
			where hub.Where
			want  []string
		}{
			{hub.Where{Home: "hom_2"}, []string{"ses_a", "ses_ahom_2", "ses_b", "ses_bhom_2", "ses_c", "ses_chom_2"}},
			{hub.Where{Home: "hom_2", Free: true}, []string{"ses_b", "ses_bhom_2", "ses_c", "ses_chom_2"}},
			{hub.Where{Home: "hom_2", Free: true, By: living}, []string{"ses_a", "ses_ahom_2", "ses_b", "ses_bhom_2", "ses_c", "ses_chom_2"}},
			{hub.Where{Reach: "hom_3", Free: true}, []string{"ses_b", "ses_bhom_2", "ses_c", "ses_chom_2"}},
			{hub.Where{Reach: "hom_1", Free: true}, []string{"ses_b", "ses_bhom_1", "ses_bhom_2", "ses_c", "ses_chom_1", "ses_chom_2"}},
			{hub.Where{InMemory: true, By: living}, []string{"ses_a", "ses_ahom_1", "ses_ahom_2"}},
		} {
			c.where.States = []hub.SessionState{hub.SessionActive}
			got, err := s.SessionsWhere(ctx, c.where, 100)
			must(t, err)
			wantSessions(t, got, c.want...)
		}
	})
}

func wantSessions(t *testing.T, got []hub.Session, want ...string) {
	t.Helper()
	ids := map[string]bool{}
	for _, n := range got {
		ids[n.ID] = true
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %q", ids, want)
	}
	for _, id := range want {
		if !ids[id] {
			t.Errorf("%s is missing from %v", id, ids)
		}
	}
}

// TestAConversationHasOneTurnAtATime has two owners begin turns in one conversation.
func TestAConversationHasOneTurnAtATime(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		a, b := addOwner(t, s, "hom_1", false).ID, addOwner(t, s, "hom_2", false).ID
		turn := func(id, by string) hub.Turn {
			return hub.Turn{ID: id, Project: project, Conversation: "cnv_1", State: hub.TurnRunning, Created: at(0), Owner: by}
		}
		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project, Created: at(0), Used: at(0)}))
		must(t, s.By(a, nil).AddTurn(ctx, turn("trn_a", a)))
		wantCode(t, s.By(b, nil).AddTurn(ctx, turn("trn_b", b)), "turn_running")
		wantCode(t, s.By(b, nil).DeleteConversation(ctx, project, "cnv_1"), "turn_running")
		must(t, s.RemoveOwner(ctx, a))
		must(t, s.By(b, nil).AddTurn(ctx, turn("trn_b", b)))
		must(t, s.By(b, nil).DeleteConversation(ctx, project, "cnv_1"))
	})
}

// TestRegister has processes of one home and of two register, end and be taken over.
func TestRegister(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx, folder := t.Context(), t.TempDir()
		register := func(folder string, alone bool) *ownership.Owner {
			o, err := ownership.Register(ctx, ownership.Options{Store: s, Folder: folder, Alone: alone, Command: "test"})
			must(t, err)
			return o
		}
		server, command, far := register(folder, true), register(folder, false), register(t.TempDir(), true)
		if server.Home != command.Home || server.Home == far.Home || server.Epoch != 1 || !server.Alone() || command.Alone() {
			t.Errorf("%+v, %+v, %+v", server.Record, command.Record, far.Record)
		}
		next := register(folder, true)
		if next.Epoch != 2 {
			t.Errorf("the next one's epoch is %d", next.Epoch)
		}
		must(t, command.Release(ctx))
		all, err := s.Owners(ctx)
		must(t, err)
		if len(all) != 2 {
			t.Errorf("there are %+v", all)
		}
		select {
		case <-far.Lost():
			t.Error("an owner of another home is lost")
		case <-server.Lost(): // at its next round
		case <-time.After(time.Minute):
			t.Error("a server goes on that another one took the place of")
		}
		must(t, server.Release(ctx))
		must(t, next.Release(ctx))
		must(t, far.Release(ctx))
	})
}
