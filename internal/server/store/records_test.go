package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cove/internal/core/ident"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/server/stream"
)

const project = "prj_a"

func session(id string, seconds int) hub.Session {
	return hub.Session{
		ID: id, Project: project, User: "usr_a", Key: "key_a", Name: "Churn " + id, Metadata: map[string]string{"team": "数据", "n": id},
		State: hub.SessionPaused, Created: at(seconds), Used: at(seconds + 1), Expires: at(seconds + 100), Idle: 15 * time.Minute,
		Packages: "standard", Memory: 2 << 30, CPUs: 1.5, Executions: 3, Disk: 100, Image: &hub.SessionImage{Reference: "team/tool:1", Digest: "sha256:" + id}, Origin: &hub.SessionOrigin{Session: "ses_of", At: at(seconds), Undo: true},
	}
}

func TestSessionsAreKept(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		want := session("ses_1", 0)
		must(t, s.AddSession(ctx, want))
		got, err := s.Session(ctx, project, "ses_1")
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		_, err = s.Session(ctx, "prj_b", "ses_1")
		wantCode(t, err, "session_not_found")
		_, err = s.Session(ctx, project, "ses_2\x00\xff")
		wantCode(t, err, "session_not_found")
		wantCode(t, s.AddSession(ctx, want), "already_exists")

		no := errors.New("no")
		_, err = s.UpdateSession(ctx, project, "ses_1", func(n *hub.Session) error { n.Name = "x"; return no })
		if !errors.Is(err, no) {
			t.Errorf("the error of change came back as %v", err)
		}
		want.Name, want.State, want.Metadata, want.Expires = "new\uFFFDname", hub.SessionDeleted, map[string]string{"b": "c"}, time.Time{}
		got, err = s.UpdateSession(ctx, project, "ses_1", func(n *hub.Session) error {
			n.Name, n.State, n.Metadata, n.Expires = "new\x00name", hub.SessionDeleted, map[string]string{"b": "c"}, time.Time{}
			return nil
		})
		must(t, err)
		got, err = s.Session(ctx, project, got.ID)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		_, err = s.UpdateSession(ctx, "prj_b", "ses_1", func(*hub.Session) error { return nil })
		wantCode(t, err, "session_not_found")
	})
}

func TestSessionsAreListed(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		for i := range 7 {
			n := session(fmt.Sprint("ses_", i), i/2) // pairs were made in the same instant
			n.Name = fmt.Sprint("Name-", i)
			if i == 5 {
				n.State = hub.SessionDeleted
			}
			must(t, s.AddSession(ctx, n))
		}
		other := session("ses_x", 9)
		other.Project = "prj_b"
		must(t, s.AddSession(ctx, other))
		for _, c := range []struct {
			name   string
			filter hub.SessionFilter
			page   hub.Page
			want   string
		}{
			{"all", hub.SessionFilter{}, hub.Page{}, "6 4 3 2 1 0"},
			{"two at a time", hub.SessionFilter{}, hub.Page{Limit: 2}, "6 4 3 2 1 0"},
			{"oldest", hub.SessionFilter{}, hub.Page{Limit: 1, Oldest: true}, "0 1 2 3 4 6"},
			{"deleted", hub.SessionFilter{State: hub.SessionDeleted}, hub.Page{}, "5"},
			{"paused", hub.SessionFilter{State: hub.SessionPaused}, hub.Page{Limit: 5}, "6 4 3 2 1 0"},
			{"user", hub.SessionFilter{User: "usr_b"}, hub.Page{}, ""},
			{"name", hub.SessionFilter{Name: "Name-3"}, hub.Page{}, "3"},
			{"name's beginning", hub.SessionFilter{Name: "Nam"}, hub.Page{Limit: 4}, "6 4 3 2 1 0"},
			{"name in other letters", hub.SessionFilter{Name: "name"}, hub.Page{}, ""},
			{"metadata", hub.SessionFilter{Meta: map[string]string{"team": "数据", "n": "ses_4"}}, hub.Page{}, "4"},
			{"other metadata", hub.SessionFilter{Meta: map[string]string{"team": "x"}}, hub.Page{}, ""},
		} {
			got := ""
			for c.page.After = ""; ; {
				l, err := s.Sessions(ctx, project, c.filter, c.page)
				must(t, err)
				for _, n := range l.Items {
					got += " " + n.ID[len("ses_"):]
				}
				if c.page.After = l.Next; l.Next == "" {
					break
				}
			}
			if len(got) > 0 {
				got = got[1:]
			}
			if got != c.want {
				t.Errorf("%s: got %q, want %q", c.name, got, c.want)
			}
		}
		page, err := s.Sessions(ctx, project, hub.SessionFilter{}, hub.Page{Limit: 1})
		must(t, err)
		_, err = s.Files(ctx, project, "", hub.Page{After: page.Next})
		wantCode(t, err, "bad_cursor")
		for _, bad := range []string{"x", "!", page.Next[1:], "c2Vzc2lvbnMvMS8A"} {
			_, err = s.Sessions(ctx, project, hub.SessionFilter{}, hub.Page{After: bad})
			wantCode(t, err, "bad_cursor")
		}
		for _, bad := range []int{-1, 101} {
			_, err = s.Sessions(ctx, project, hub.SessionFilter{}, hub.Page{Limit: bad})
			wantCode(t, err, "bad_limit")
		}
	})
}

func TestTheLifeCycleFindsSessions(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		for i, state := range []hub.SessionState{hub.SessionActive, hub.SessionPaused, hub.SessionLost, hub.SessionDeleted, hub.SessionActive} {
			n := session(fmt.Sprint("ses_", i), i)
			n.State = state
			must(t, s.AddSession(ctx, n))
		}
		for _, c := range []struct {
			where hub.Where
			limit int
			want  int
		}{
			{hub.Where{}, 10, 4},
			{hub.Where{}, 2, 2},
			{hub.Where{States: []hub.SessionState{hub.SessionActive}}, 10, 2},
			{hub.Where{States: []hub.SessionState{hub.SessionActive, hub.SessionPaused}, UsedUntil: at(2)}, 10, 2},
			{hub.Where{ExpiredBy: at(101)}, 10, 2},
			{hub.Where{ExpiredBy: at(50)}, 10, 0},
		} {
			got, err := s.SessionsWhere(ctx, c.where, c.limit)
			must(t, err)
			if len(got) != c.want {
				t.Errorf("%+v: %d sessions, want %d", c.where, len(got), c.want)
			}
		}
		must(t, s.AddFile(ctx, hub.File{ID: "fil_1", Project: project, Size: 11, SHA256: "aa"}))
		held, err := s.HeldDisk(ctx, project)
		must(t, err)
		if held != 4*100+11 {
			t.Errorf("%d bytes are held", held)
		}
		if held, err = s.HeldDisk(ctx, "prj_b"); held != 0 || err != nil {
			t.Errorf("%d bytes are held by nobody, %v", held, err)
		}
	})
}

func execution(id, turn string) hub.Execution {
	return hub.Execution{ID: id, Project: project, User: "usr_a", Key: "key_a", Session: "ses_1", Kernel: "main", Turn: turn, Step: 2, Code: "import pandas as pd\nprint(1)",
		State: hub.ExecutionQueued, Created: at(0)}
}

func event(name string, seq int64, execution, body string) stream.Event {
	return stream.Event{Stream: name, Seq: seq, Origin: stream.Origin{Part: execution, Step: 1}, At: at(int(seq)), Body: []byte(body)}
}

func TestExecutionsAreKept(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		e := execution("exe_1", "")
		must(t, s.AddExecution(ctx, e))
		must(t, s.AddExecution(ctx, execution("exe_2", "")))
		must(t, s.StartExecution(ctx, "exe_1", at(1)))
		wantCode(t, s.StartExecution(ctx, "exe_3", at(1)), "execution_not_found")
		open, err := s.AbandonedExecutions(ctx, 10)
		must(t, err)
		if len(open) != 2 || open[0].State != hub.ExecutionRunning || !open[0].Started.Equal(at(1)) {
			t.Errorf("unfinished are %+v", open)
		}
		must(t, s.AddEvents(ctx, []stream.Event{event("exe_1", 1, "exe_1", `{"type":"stream","text":"a"}`)}))
		e.State, e.ExitCode, e.Message, e.Lost, e.Started, e.Finished = "error", 1, "a sentence", kernel.LostKernel, at(1), at(3)
		e.Wall, e.CPU, e.Events, e.Dropped = 2*time.Second, 1500*time.Millisecond, 3, 9
		last := []stream.Event{event("exe_1", 2, "exe_1", "{}"), event("exe_1", 3, "exe_1", "{}")}
		first, err := s.FinishExecution(ctx, e, last)
		must(t, err)
		if !first {
			t.Error("the first end is not the first")
		}
		again := e
		again.State = hub.ExecutionLost
		if first, err = s.FinishExecution(ctx, again, []stream.Event{event("exe_1", 9, "exe_1", "{}")}); first || err != nil {
			t.Errorf("the second end is the first, or failed: %v", err)
		}
		got, err := s.Execution(ctx, project, "exe_1")
		must(t, err)
		if diff := cmp.Diff(e, got); diff != "" {
			t.Error(diff)
		}
		events, err := s.Events(ctx, "exe_1", "", 1, 10, 1<<30)
		must(t, err)
		if diff := cmp.Diff(last, events); diff != "" {
			t.Error(diff)
		}
		missing := e
		missing.Project = "prj_b"
		_, err = s.FinishExecution(ctx, missing, nil)
		wantCode(t, err, "execution_not_found")
		for filter, want := range map[hub.ExecutionFilter]int{{}: 2, {Session: "ses_1"}: 2, {Session: "ses_2"}: 0, {State: "error"}: 1, {Kernel: "k"}: 0, {Turn: "t"}: 0} {
			l, err := s.Executions(ctx, project, filter, hub.Page{})
			must(t, err)
			if len(l.Items) != want {
				t.Errorf("%+v: %d executions, want %d", filter, len(l.Items), want)
			}
		}
	})
}

func TestEventsAreReadInOrder(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		var all []stream.Event
		for i := range int64(257) {
			all = append(all, event("trn_1", 257-i, []string{"exe_1", "exe_2"}[i%2], "\x00\xff"))
		}
		must(t, s.AddEvents(ctx, all))
		must(t, s.AddEvents(ctx, append(all[:3:3], event("exe_9", 1, "", ""))))
		must(t, s.AddEvents(ctx, nil))
		for _, c := range []struct {
			execution   string
			after       int64
			limit, want int
		}{{"", 0, 1000, 257}, {"", 250, 1000, 7}, {"", 0, 5, 5}, {"exe_1", 0, 1000, 129}, {"exe_1", 255, 1000, 1}, {"exe_3", 0, 10, 0}} {
			got, err := s.Events(ctx, "trn_1", c.execution, c.after, c.limit, 1<<30)
			must(t, err)
			if len(got) != c.want {
				t.Errorf("%+v: %d events", c, len(got))
			}
			for i, e := range got {
				if i > 0 && e.Seq <= got[i-1].Seq || string(e.Body) != "\x00\xff" {
					t.Fatalf("%+v: event %+v behind %d", c, e, i)
				}
			}
		}
	})
}

// TestEventsAreReadInBounds reads events up to a number of bytes, and one event that is larger by itself.
func TestEventsAreReadInBounds(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		var all []stream.Event
		for i, size := range []int{10, 100, 1000, 10, 0, 10} {
			all = append(all, event("trn_1", int64(i+1), []string{"exe_1", "exe_2"}[i%2], strings.Repeat("x", size*1000)))
		}
		must(t, s.AddEvents(ctx, append(all, event("trn_2", 1, "exe_1", strings.Repeat("x", 1000)))))
		for _, c := range []struct {
			part        string
			after       int64
			limit, size int // kB
			want        []int64
		}{
			{"", 0, 100, 0, []int64{1}}, {"", 0, 100, 10, []int64{1}}, {"", 0, 100, 11, []int64{1, 2}}, {"", 0, 100, 110, []int64{1, 2}}, {"", 0, 100, 111, []int64{1, 2, 3}},
			{"", 2, 100, 1, []int64{3}}, {"", 2, 100, 1001, []int64{3, 4}}, {"", 3, 100, 11, []int64{4, 5, 6}}, {"", 0, 2, 1 << 30, []int64{1, 2}}, {"", 0, 0, 1 << 30, nil},
			{"exe_1", 0, 100, 11, []int64{1, 3}}, {"exe_2", 0, 100, 101, []int64{2, 4}}, {"", 6, 100, 100, nil},
		} {
			events, err := s.Events(ctx, "trn_1", c.part, c.after, c.limit, c.size*1000-500) // what is sealed is a little longer
			must(t, err)
			var got []int64
			for _, e := range events {
				got = append(got, e.Seq)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%+v: %v", c, got)
			}
		}
	})
}

func turn(id, parent string, seconds int) hub.Turn {
	return hub.Turn{
		ID: id, Project: project, User: "usr_a", Key: "key_a", Conversation: "cnv_1", Parent: parent, Session: "ses_1", State: hub.TurnRunning,
		Model: "m/" + id, Prompt: "Why do customers churn?", Created: at(seconds), Foreign: json.RawMessage(`{"b":1,"a":2}`), Files: []hub.TurnFile{{ID: "fil_1", Name: "a.csv", Size: 3}},
	}
}

func TestConversationsAndTurnsAreKept(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		c := hub.Conversation{ID: "cnv_1", Project: project, User: "usr_a", Title: "T", Metadata: map[string]string{"a": "b"}, Created: at(0), Used: at(0), Source: "cli"}
		must(t, s.AddConversation(ctx, c))
		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_2", Project: project, Created: at(1), Used: at(1)}))
		one, two, three := turn("trn_1", "", 2), turn("trn_2", "trn_1", 3), turn("trn_3", "trn_1", 4)
		for _, n := range []hub.Turn{one, two, three} {
			must(t, s.AddTurn(ctx, n))
		}
		wrong := turn("trn_4", "", 2)
		wrong.Project = "prj_b"
		wantCode(t, s.AddTurn(ctx, wrong), "conversation_not_found")
		c.Used, c.Turns, c.Model, c.Session = at(4), 3, "m/trn_3", "ses_1"
		got, err := s.Conversation(ctx, project, "cnv_1")
		must(t, err)
		if diff := cmp.Diff(c, got); diff != "" {
			t.Error(diff)
		}
		l, err := s.Conversations(ctx, project, hub.ConversationFilter{}, hub.Page{})
		must(t, err)
		if len(l.Items) != 2 || l.Items[0].ID != "cnv_1" {
			t.Errorf("the conversations are %+v", l.Items)
		}
		for id, want := range map[string][]string{"trn_1": {"trn_1"}, "trn_2": {"trn_1", "trn_2"}, "trn_3": {"trn_1", "trn_3"}} {
			branch, err := s.Branch(ctx, project, id)
			must(t, err)
			var ids []string
			for _, b := range branch {
				ids = append(ids, b.ID)
			}
			if diff := cmp.Diff(want, ids); diff != "" {
				t.Error(diff)
			}
		}
		_, err = s.Branch(ctx, "prj_b", "trn_1")
		wantCode(t, err, "turn_not_found")
		_, err = s.TurnHistory(ctx, "prj_b", "trn_1")
		wantCode(t, err, "turn_not_found")

		two.State, two.Answer, two.Reason, two.Finished, two.Steps, two.Events = hub.TurnCompleted, "42", "complete", at(9), 2, 7
		two.Problem = json.RawMessage(`{"code":"x"}`)
		two.Messages = []model.Message{{Role: "user", Content: []model.Content{model.Text{Text: "hi\x00"}, model.Image{MIME: "image/png", Data: []byte{1, 2}}}},
			{Role: "assistant", Content: []model.Content{model.ToolCall{ID: "c", Name: "python", Arguments: "{}"}}}}
		two.Calls = []model.ToolCall{{ID: "c", Name: "f", Arguments: "{}"}}
		two.Usage = model.Usage{InputTokens: 10, OutputTokens: 20, CachedTokens: 3, ReasoningTokens: 4, Estimated: true}
		two.Cost, two.Context = model.Cost{Amount: 0.012345, Currency: "USD"}, hub.Context{Used: 30, Size: 400_000}
		first, err := s.FinishTurn(ctx, two, []stream.Event{event("trn_2", 7, "", "{}")})
		if !first || err != nil {
			t.Fatalf("finish: %v, %v", first, err)
		}
		if first, err = s.FinishTurn(ctx, two, nil); first || err != nil {
			t.Errorf("finish again: %v, %v", first, err)
		}
		must(t, s.SetForeign(ctx, project, "trn_2", []byte(`{}`)))
		wantCode(t, s.SetForeign(ctx, "prj_b", "trn_2", nil), "turn_not_found")
		two.Foreign = json.RawMessage(`{}`)
		back, err := s.Turn(ctx, project, "trn_2")
		must(t, err)
		if diff := cmp.Diff(two, back); diff != "" {
			t.Error(diff)
		}
		said, err := s.TurnHistory(ctx, project, "trn_2")
		must(t, err)
		if diff := cmp.Diff(two.Messages, said); diff != "" {
			t.Error(diff)
		}
		open, err := s.AbandonedTurns(ctx, 10)
		must(t, err)
		if len(open) != 2 {
			t.Errorf("%d turns are unfinished", len(open))
		}
	})
}

func TestTurnsHaveASize(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project, Created: at(0), Used: at(0)}))
		for _, id := range []string{"trn_1", "trn_2"} {
			n := turn(id, "", 2)
			n.Prompt, n.Foreign = strings.Repeat("语", 1000), json.RawMessage(`"`+strings.Repeat("x", 998)+`"`)
			must(t, s.AddTurn(ctx, n))
			n.State, n.Answer = hub.TurnCompleted, strings.Repeat("y", 1000)
			n.Messages = []model.Message{{Role: "user", Content: []model.Content{model.Text{Text: strings.Repeat("z", 1000)}}}}
			if _, err := s.FinishTurn(ctx, n, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			conversation, turn string
			least              int64
		}{{"cnv_1", "", 12_000}, {"", "trn_2", 6000}, {"cnv_2", "", 0}} {
			got, err := s.TurnsSize(ctx, project, c.conversation, c.turn)
			if err != nil || got < c.least || got > c.least+1000 {
				t.Errorf("%+v: %d, %v", c, got, err)
			}
		}
		if got, err := s.TurnsSize(ctx, "prj_b", "cnv_1", ""); got != 0 || err != nil {
			t.Errorf("another project's turns have a size: %d, %v", got, err)
		}
	})
}

func TestWhatIsDeletedIsGone(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.AddConversation(ctx, hub.Conversation{ID: "cnv_1", Project: project, Created: at(0), Used: at(0)}))
		for i, id := range []string{"trn_1", "trn_2", "trn_3"} {
			asked := turn(id, []string{"", "trn_1", "trn_2"}[i], i)
			must(t, s.AddTurn(ctx, asked))
			e := execution("exe_"+id, id)
			must(t, s.AddExecution(ctx, e))
			must(t, s.AddEvents(ctx, []stream.Event{event(id, 1, e.ID, `{"type":"output","event":{"type":"stream","text":"printed"}}`), event(e.ID, 1, e.ID, `{}`)}))
			e.State = "ok"
			_, err := s.FinishExecution(ctx, e, nil)
			must(t, err)
			asked.State, asked.Finished = hub.TurnCompleted, at(i+1)
			_, err = s.FinishTurn(ctx, asked, nil)
			must(t, err)
		}
		count := func(query string) int {
			l, err := s.Search(ctx, project, query, hub.Page{})
			must(t, err)
			return len(l.Items)
		}
		if count("churn") != 3 || count("pandas") != 3 || count("printed") != 3 {
			t.Fatalf("%d prompts, %d codes, %d outputs are found", count("churn"), count("pandas"), count("printed"))
		}
		must(t, s.DeleteTurn(ctx, project, "trn_2"))
		wantCode(t, s.DeleteTurn(ctx, project, "trn_2"), "turn_not_found")
		branch, err := s.Branch(ctx, project, "trn_3")
		must(t, err)
		if len(branch) != 2 || branch[0].ID != "trn_1" {
			t.Errorf("without the middle the branch is %+v", branch)
		}
		if count("churn") != 2 || count("pandas") != 2 || count("printed") != 2 {
			t.Errorf("what was deleted is found")
		}
		wantCode(t, s.DeleteConversation(ctx, "prj_b", "cnv_1"), "conversation_not_found")
		must(t, s.DeleteConversation(ctx, project, "cnv_1"))
		_, err = s.Execution(ctx, project, "exe_trn_1")
		wantCode(t, err, "execution_not_found")
		_, err = s.Turn(ctx, project, "trn_1")
		wantCode(t, err, "turn_not_found")
		for _, stream := range []string{"trn_1", "trn_2", "exe_trn_1", "exe_trn_2"} {
			if events, err := s.Events(ctx, stream, "", 0, 10, 1<<30); len(events) > 0 || err != nil {
				t.Errorf("%s has %d events, %v", stream, len(events), err)
			}
		}
		if n := count("churn") + count("pandas") + count("printed"); n != 0 {
			t.Errorf("%d texts are found after all were deleted", n)
		}
	})
}

func TestFilesAreKept(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		one := hub.File{ID: "fil_1", Project: project, User: "usr_a", Name: "数据.csv", Size: 1 << 40, SHA256: "aa", Purpose: "user_data", Created: at(0), Expires: at(5)}
		two := hub.File{ID: "fil_2", Project: project, SHA256: "aa", Created: at(1)}
		must(t, s.AddFile(ctx, one))
		must(t, s.AddFile(ctx, two))
		got, err := s.File(ctx, project, "fil_1")
		must(t, err)
		if diff := cmp.Diff(one, got); diff != "" {
			t.Error(diff)
		}
		if l, err := s.Files(ctx, project, "user_data", hub.Page{}); err != nil || len(l.Items) != 1 {
			t.Errorf("%d files, %v", len(l.Items), err)
		}
		if old, err := s.ExpiredFiles(ctx, at(6), 10); err != nil || len(old) != 1 || old[0].ID != "fil_1" {
			t.Errorf("expired are %+v, %v", old, err)
		}
		if got, err = s.DeleteFile(ctx, project, "fil_1"); err != nil || got.SHA256 != "aa" {
			t.Errorf("deleted %+v, %v", got, err)
		}
		_, err = s.DeleteFile(ctx, project, "fil_1")
		wantCode(t, err, "file_not_found")
		unused, err := s.UnusedContent(ctx, []string{"aa", "bb"})
		must(t, err)
		if diff := cmp.Diff([]string{"bb"}, unused); diff != "" {
			t.Error(diff)
		}
		if hashes, err := s.Contents(ctx); err != nil || len(hashes) != 1 {
			t.Errorf("contents are %v, %v", hashes, err)
		}
	})
}

// TestUsageSurvivesWhatCannotBe has counters that models lied into a database of before.
func TestUsageSurvivesWhatCannotBe(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		u := hub.Usage{Day: "2026-11-21", Turns: 1, InputTokens: 10, OutputTokens: 20}
		for _, bad := range []string{"-5", "9223372036854775807", "-9223372036854775807"} {
			must(t, s.AddUsage(ctx, project, "key_a", hub.Addition{}, u))
			must(t, s.Write(ctx, "UPDATE usage_days SET input_tokens = "+bad+", output_tokens = "+bad))
			if each, err := s.UsageByProject(ctx, u.Day, u.Day, 10); err != nil || len(each) != 1 || each[0].InputTokens != 0 || each[0].Turns == 0 {
				t.Errorf("%s: %+v, %v", bad, each, err)
			}
			for _, want := range []int64{0, 10} {
				days, err := s.Usage(ctx, project, "", u.Day, u.Day)
				if err != nil || len(days) != 1 || days[0].InputTokens != want || days[0].OutputTokens != 2*want {
					t.Fatalf("%s: %+v, %v", bad, days, err)
				}
				if want == 0 {
					must(t, s.AddUsage(ctx, project, "key_a", hub.Addition{}, u))
				}
			}
		}
		lie := hub.Usage{Day: "2026-11-22", InputTokens: math.MaxInt64, OutputTokens: -5}
		for range 3 {
			must(t, s.AddUsage(ctx, project, "", hub.Addition{}, lie))
		}
		days, err := s.Usage(ctx, project, "", lie.Day, lie.Day)
		if err != nil || len(days) != 1 || days[0].InputTokens != 0 || days[0].OutputTokens != 0 {
			t.Errorf("%+v, %v", days, err)
		}
	})
}

func TestUsageAddsUp(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		u := hub.Usage{Day: "2026-11-21", Executions: 1, WallSeconds: 0.5, CPUSeconds: 0.25, Turns: 1, InputTokens: 10, OutputTokens: 20, UploadBytes: 5, Cost: 0.1, Currency: "USD"}
		must(t, s.AddUsage(ctx, project, "key_a", hub.Addition{}, u))
		must(t, s.AddUsage(ctx, project, "key_a", hub.Addition{}, u))
		must(t, s.AddUsage(ctx, project, "", hub.Addition{}, u))
		must(t, s.AddUsage(ctx, "prj_b", "key_b", hub.Addition{}, u))
		u.Day = "2026-11-22"
		must(t, s.AddUsage(ctx, project, "key_b", hub.Addition{}, u))
		days, err := s.Usage(ctx, project, "", "2026-11-21", "2026-11-22")
		must(t, err)
		want := []hub.Usage{{Day: "2026-11-21", Executions: 3, WallSeconds: 1.5, CPUSeconds: 0.75, Turns: 3, InputTokens: 30, OutputTokens: 60, UploadBytes: 15, Cost: 0.3, Currency: "USD"}, u}
		if diff := cmp.Diff(want, days); diff != "" {
			t.Error(diff)
		}
		whole, err := s.UsageOfAll(ctx, "2026-11-21", "2026-11-22")
		must(t, err)
		first := hub.Usage{Day: "2026-11-21", Executions: 4, WallSeconds: 2, CPUSeconds: 1, Turns: 4, InputTokens: 40, OutputTokens: 80, UploadBytes: 20, Cost: 0.4, Currency: "USD"}
		if diff := cmp.Diff([]hub.Usage{first, u}, whole); diff != "" {
			t.Error(diff)
		}
		each, err := s.UsageByProject(ctx, "2026-11-21", "2026-11-22", 10)
		must(t, err)
		if len(each) != 2 || each[0].Project != project || each[0].Executions != 4 || each[0].Day != "" || each[1].Project != "prj_b" || each[1].InputTokens != 10 {
			t.Errorf("the projects have used %+v", each)
		}
		if each, err = s.UsageByProject(ctx, "2026-11-21", "2026-11-22", 1); err != nil || len(each) != 1 {
			t.Errorf("%+v %v", each, err)
		}
		if days, err = s.Usage(ctx, project, "key_a", "2026-11-01", "2026-11-30"); err != nil || len(days) != 1 || days[0].Executions != 2 {
			t.Errorf("the key's days are %+v, %v", days, err)
		}
		for _, c := range []struct {
			add, want hub.Usage
		}{
			{hub.Usage{Turns: 1}, hub.Usage{Cost: 0.1, Currency: "USD"}}, // of a model without prices
			{hub.Usage{Cost: 0.000001, Currency: "USD"}, hub.Usage{Cost: 0.100001, Currency: "USD"}},
			{hub.Usage{Cost: 0.7, Currency: "CNY"}, hub.Usage{Cost: 0.7, Currency: "CNY"}},
			{hub.Usage{Cost: math.NaN(), Currency: "CNY"}, hub.Usage{Cost: 0.7, Currency: "CNY"}},
			{hub.Usage{Cost: math.Inf(1), Currency: "CNY"}, hub.Usage{Cost: 1e9 + 0.7, Currency: "CNY"}},
		} {
			c.add.Day = "2026-11-22"
			must(t, s.AddUsage(ctx, project, "key_b", hub.Addition{}, c.add))
			days, err := s.Usage(ctx, project, "key_b", c.add.Day, c.add.Day)
			if err != nil || len(days) != 1 || days[0].Cost != c.want.Cost || days[0].Currency != c.want.Currency {
				t.Errorf("%+v: %+v, %v", c.add, days, err)
			}
		}
	})
}

func TestAccountsAreKept(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		ada := auth.User{ID: "usr_a", Name: "ada@example.org", Admin: true, Created: at(0)}
		must(t, s.AddUser(ctx, ada))
		wantCode(t, s.AddUser(ctx, auth.User{ID: "usr_b", Name: ada.Name}), "user_exists")
		must(t, s.AddUser(ctx, auth.User{ID: "usr_c", Name: "usr_a"}))
		for _, by := range []string{"usr_a", ada.Name} {
			got, err := s.User(ctx, by)
			must(t, err)
			if diff := cmp.Diff(ada, got); diff != "" {
				t.Error(diff)
			}
		}
		_, err := s.ChangeUser(ctx, "usr_c", func(u *auth.User) error { u.Name = ada.Name; return nil })
		wantCode(t, err, "user_exists")
		p := auth.Project{ID: project, Name: "local", Created: at(0), Quota: []byte(`{"live_sessions":1}`)}
		must(t, s.AddProject(ctx, p))
		got, err := s.Project(ctx, "local")
		must(t, err)
		if diff := cmp.Diff(p, got); diff != "" {
			t.Error(diff)
		}
		if got, err = s.ChangeProject(ctx, project, func(p *auth.Project) error { p.Quota = nil; return nil }); err != nil || got.Quota != nil {
			t.Errorf("changed to %+v, %v", got, err)
		}
		must(t, s.SetMember(ctx, auth.Membership{Project: project, User: "usr_a", Role: auth.Owner}))
		must(t, s.SetMember(ctx, auth.Membership{Project: project, User: "usr_a", Role: auth.Admin}))
		wantCode(t, s.SetMember(ctx, auth.Membership{Project: "prj_x", User: "usr_a", Role: auth.Admin}), "project_not_found")
		if role, err := s.Role(ctx, project, "usr_a"); role != auth.Admin || err != nil {
			t.Errorf("the role is %q, %v", role, err)
		}
		if role, err := s.Role(ctx, project, "usr_c"); role != "" || err != nil {
			t.Errorf("the role is %q, %v", role, err)
		}
		for i, scopes := range [][]auth.Action{nil, {}, {auth.SessionsRead}} {
			k := auth.Key{ID: fmt.Sprint("key_", i), Project: project, User: "usr_a", Name: "n", Hash: []byte{0, 255, byte(i)}, Last4: "abcd", Scopes: scopes,
				Created: at(i), Expires: at(9), Used: at(i + 1), Quota: [][]byte{nil, []byte(`{"disk_bytes":1}`), nil}[i]}
			must(t, s.AddKey(ctx, k))
			got, err := s.Key(ctx, k.ID)
			must(t, err)
			if diff := cmp.Diff(k, got); diff != "" {
				t.Error(diff)
			}
		}
		if _, err := s.ChangeKey(ctx, "key_0", func(k *auth.Key) error { k.Revoked = at(3); return nil }); err != nil {
			t.Error(err)
		}
		if keys, err := s.Keys(ctx, project); err != nil || len(keys) != 3 || !keys[0].Revoked.Equal(at(3)) {
			t.Errorf("the keys are %+v, %v", keys, err)
		}
		must(t, s.DeleteUser(ctx, "usr_a"))
		wantCode(t, s.DeleteUser(ctx, "usr_a"), "user_not_found")
		if keys, err := s.Keys(ctx, project); err != nil || len(keys) != 0 {
			t.Errorf("%d keys are left, %v", len(keys), err)
		}
		if members, err := s.Members(ctx, project); err != nil || len(members) != 0 {
			t.Errorf("%d members are left, %v", len(members), err)
		}
		_, err = s.Key(ctx, ident.New(ident.Key))
		wantCode(t, err, "key_not_found")
	})
}
