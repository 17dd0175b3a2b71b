package store_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cove/internal/server/audit"
	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/server/stream"
)

func TestTenThousandSessionsAreFoundByIndex(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "cove.db"))
	ctx := t.Context()
	race(100, func(i int) {
		for k := range 100 {
			n := session(fmt.Sprintf("ses_%02d%02d", i, k), i*100+k)
			n.Name, n.Metadata = fmt.Sprintf("job-%02d-%02d", i, k), map[string]string{"run": fmt.Sprint(i), "host": "a"}
			if k%10 == 0 {
				n.State = hub.SessionDeleted
			}
			if err := s.AddSession(ctx, n); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for _, c := range []struct {
		filter hub.SessionFilter
		index  string
		sorted bool // the index has the order, too; without, few are found first and sorted then
		first  string
	}{
		{hub.SessionFilter{}, "sessions_list", true, "ses_9999"},
		{hub.SessionFilter{State: hub.SessionPaused}, "sessions_in_state", true, "ses_9999"},
		{hub.SessionFilter{State: hub.SessionDeleted}, "sessions_in_state", true, "ses_9990"},
		{hub.SessionFilter{Name: "job-42-"}, "sessions_named", false, "ses_4299"},
		{hub.SessionFilter{Name: "job-42-17", State: hub.SessionPaused}, "sessions_named", false, "ses_4217"},
		{hub.SessionFilter{Meta: map[string]string{"run": "42"}}, "session_pairs_find", false, "ses_4299"},
	} {
		for _, after := range []string{"", "next"} {
			l, err := s.Sessions(ctx, project, c.filter, hub.Page{Limit: 5})
			must(t, err)
			if len(l.Items) == 0 || l.Items[0].ID != c.first {
				t.Fatalf("%+v: the first of %d is not %s", c.filter, len(l.Items), c.first)
			}
			if after != "" {
				after = l.Next
			}
			plan, err := s.PlanOfSessions(ctx, project, c.filter, hub.Page{After: after})
			must(t, err)
			if !strings.Contains(plan, c.index) || strings.Contains(plan, "SCAN sessions") ||
				strings.Contains(plan, "TEMP B-TREE") == c.sorted || !c.sorted && !strings.Contains(plan, "(id=?)") {
				t.Errorf("%+v: the plan is\n%s", c.filter, plan)
			}
		}
	}
	seen := 0
	for p := (hub.Page{Limit: 100}); ; {
		l, err := s.Sessions(ctx, project, hub.SessionFilter{}, p)
		must(t, err)
		seen += len(l.Items)
		if p.After = l.Next; p.After == "" {
			break
		}
	}
	if seen != 9_000 {
		t.Errorf("%d of 9000 sessions are listed", seen)
	}
	plan, err := s.PlanOfSearch(ctx, project, "churn rat", hub.Page{})
	must(t, err)
	if strings.Count(plan, "words_find") != 2 || strings.Contains(plan, "SCAN words") {
		t.Errorf("the plan of a search is\n%s", plan)
	}
}

func TestAuditRowsAreListed(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		for i := range 5 {
			must(t, s.AddRow(ctx, audit.Row{ID: fmt.Sprint("aud_", i), At: at(i / 2), Project: []string{project, "prj_b"}[i%2], User: "usr_a", Key: "key_a",
				Action: "session.create", Target: "ses_1", Outcome: "ok", Detail: "d", Request: "r", IP: "::1", Agent: "curl\x00"}))
		}
		for _, c := range []struct{ project, before, want string }{
			{"", "", "aud_4 aud_3 aud_2 aud_1 aud_0"}, {"", "aud_3", "aud_2 aud_1 aud_0"}, {project, "", "aud_4 aud_2 aud_0"}, {project, "aud_2", "aud_0"},
		} {
			got, err := s.Rows(ctx, audit.Query{Project: c.project, Before: c.before, Limit: 10})
			must(t, err)
			var ids []string
			for _, r := range got {
				ids = append(ids, r.ID)
			}
			if strings.Join(ids, " ") != c.want {
				t.Errorf("%+v: %q", c, ids)
			}
		}
		must(t, s.AddRow(ctx, audit.Row{ID: "aud_5", At: at(9), Project: project, User: "usr_b", Action: "sessions.odd", Target: "ses_2", Outcome: "session_not_found"}))
		for want, q := range map[string]audit.Query{
			"aud_5": {User: "usr_b"}, "aud_4 aud_3 aud_2 aud_1 aud_0": {Key: "key_a"}, "aud_4 aud_3 aud_2 aud_1 aud_0 ": {Action: "session"}, "aud_4": {Action: "session.create", From: at(2), To: at(9)},
			"": {Action: "session.creat"}, " ": {Action: "%"}, "aud_5 ": {Target: "ses_2"}, "aud_5  ": {Outcome: audit.Refused}, "aud_5   ": {Outcome: "session_not_found"},
			"aud_4 aud_2": {Outcome: "ok", Project: project, From: at(1)}, "aud_1 aud_0": {Before: "aud_2", To: at(1)},
		} {
			q.Limit = 10
			got, err := s.Rows(ctx, q)
			must(t, err)
			var ids []string
			for _, r := range got {
				ids = append(ids, r.ID)
			}
			if strings.Join(ids, " ") != strings.TrimSpace(want) {
				t.Errorf("%+v: %q", q, ids)
			}
		}
		if got, err := s.Rows(ctx, audit.Query{Limit: 6}); err != nil || len(got) != 6 || got[1].Agent != "curl\uFFFD" || got[1].Target != "ses_1" {
			t.Errorf("%+v, %v", got, err)
		}
		_, err := s.Rows(ctx, audit.Query{Project: project, Before: "aud_1", Limit: 10})
		wantCode(t, err, "bad_cursor")
	})
}

func TestAnExecutionIsRecordedWithWhoAskedForIt(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddExecution(ctx, execution("exe_1", ""), audit.Row{ID: "aud_1", At: at(1), Project: project, Action: "execution.start", Target: "exe_1"}))
		if err := s.AddExecution(ctx, execution("exe_1", ""), audit.Row{ID: "aud_2", At: at(2), Project: project, Action: "execution.start"}); err == nil {
			t.Error("an id was given twice")
		}
		got, err := s.Rows(ctx, audit.Query{Project: project, Limit: 10})
		must(t, err)
		if len(got) != 1 || got[0].ID != "aud_1" || got[0].Target != "exe_1" {
			t.Errorf("the audit log has %+v, want the row of the one that was recorded", got)
		}
	})
}

func TestOldThingsAreDropped(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		for i := range 60 {
			must(t, s.AddConversation(ctx, hub.Conversation{ID: fmt.Sprint("cnv_", i), Project: project, Used: at(i)}))
		}
		n := turn("trn_1", "", 3)
		n.Conversation = "cnv_2"
		must(t, s.AddTurn(ctx, n)) // it runs
		for i, id := range []string{"exe_1", "exe_2", "exe_3"} {
			e := execution(id, "")
			e.Created = at(100 * i)
			must(t, s.AddExecution(ctx, e))
			if id != "exe_2" {
				e.State = "ok"
				_, err := s.FinishExecution(ctx, e, []stream.Event{event(id, 1, id, "{}")})
				must(t, err)
			}
		}
		must(t, s.AddRow(ctx, audit.Row{ID: "aud_1", At: at(0)}))
		must(t, s.AddRow(ctx, audit.Row{ID: "aud_2", At: at(99)}))
		if deleted, err := s.Retain(ctx, time.Time{}, time.Time{}); deleted != 0 || err != nil {
			t.Fatalf("nothing is old, and %d were deleted, %v", deleted, err)
		}
		deleted, err := s.Retain(ctx, at(150), at(50))
		must(t, err)
		if deleted != 59+1+1 { // but for the conversation that runs and the execution that waits
			t.Errorf("%d were deleted", deleted)
		}
		if _, err := s.Turn(ctx, project, "trn_1"); err != nil {
			t.Error(err)
		}
		for id, want := range map[string]int{"exe_1": 0, "exe_3": 1} {
			if events, err := s.Events(ctx, id, "", 0, 10, 1<<30); err != nil || len(events) != want {
				t.Errorf("%s has %d events, %v", id, len(events), err)
			}
		}
		if left, err := s.Rows(ctx, audit.Query{Limit: 10}); err != nil || len(left) != 1 {
			t.Errorf("%d rows are left, %v", len(left), err)
		}
	})
}

// Two migrations of one number would be applied in an order that nobody chose.
func TestMigrationsAreNumbered(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("migrations/*")
	must(t, err)
	for i, name := range names {
		if want := fmt.Sprintf("%05d_", i+1); !strings.HasPrefix(filepath.Base(name), want) || filepath.Ext(name) != ".sql" {
			t.Errorf("%s does not begin with %s", name, want)
		}
	}
	if len(names) == 0 {
		t.Error("there are no migrations")
	}
}
