package store_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/server/stream"
	"cove/internal/testkit/testneeds"
)

// nasty is what PostgreSQL takes for no text: the byte 0, what is not UTF-8, half a surrogate pair.
const nasty = "a\x00b\xff\xed\xa0\x80c"

// spoil puts nasty into all texts of a record but those that say which it is.
func spoil[T any](record T) T {
	spoilFields(reflect.ValueOf(&record).Elem())
	return record
}

func spoilFields(v reflect.Value) {
	for i := range v.NumField() {
		switch name := v.Type().Field(i).Name; {
		case name == "ID" || name == "Project" || name == "Conversation" || name == "Parent" || name == "Turn" || name == "State":
		case v.Field(i).Kind() == reflect.String:
			v.Field(i).SetString(nasty)
		case v.Field(i).Type() == reflect.TypeFor[map[string]string]():
			v.Field(i).Set(reflect.ValueOf(map[string]string{nasty: nasty}))
		case v.Field(i).Kind() == reflect.Slice && v.Field(i).Type().Elem().Kind() == reflect.Uint8:
			v.Field(i).SetBytes([]byte(`"` + nasty + `"`))
		case v.Type().Field(i).Anonymous:
			spoilFields(v.Field(i))
		}
	}
}

func TestNoTextIsTooNasty(t *testing.T) {
	t.Parallel()
	shown := make(chan map[string]any, 4)
	t.Run("both", func(t *testing.T) {
		both(t, func(t *testing.T, s *store.Store) { shown <- nastyRecords(t, s) })
	})
	testneeds.Asked(t, testneeds.PostgreSQL)
	if len(shown) < cap(shown) {
		t.Fatal("one of the databases failed")
	}
	for first := <-shown; len(shown) > 0; {
		if diff := cmp.Diff(first, <-shown); diff != "" {
			t.Errorf("the databases keep different things: %s", diff)
		}
	}
}

// nastyRecords writes a record of every kind, and returns what is read.
func nastyRecords(t *testing.T, s *store.Store) map[string]any {

	ctx, out := t.Context(), map[string]any{}
	read := func(name string, value any, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		out[name] = value
	}
	must(t, s.AddUser(ctx, spoil(auth.User{ID: "usr_a"})))
	user, err := s.User(ctx, nasty)
	read("user", user, err)
	must(t, s.AddProject(ctx, spoil(auth.Project{ID: project})))
	p, err := s.Project(ctx, nasty)
	read("project", p, err)
	must(t, s.AddKey(ctx, spoil(auth.Key{ID: "key_a", Project: project, Scopes: []auth.Action{nasty}})))
	key, err := s.Key(ctx, "key_a")
	read("key", key, err)
	must(t, s.AddSession(ctx, spoil(session("ses_1", 0))))
	sessions, err := s.Sessions(ctx, project, hub.SessionFilter{User: nasty, Name: nasty, Meta: map[string]string{nasty: nasty}}, hub.Page{})
	read("sessions", sessions, err)
	must(t, s.AddConversation(ctx, spoil(hub.Conversation{ID: "cnv_1", Project: project})))
	conversations, err := s.Conversations(ctx, project, hub.ConversationFilter{Session: nasty, User: nasty, Source: nasty}, hub.Page{})
	read("conversations", conversations, err)
	n := spoil(turn("trn_1", "", 1))
	must(t, s.AddTurn(ctx, n))
	n.State = hub.TurnCompleted
	_, err = s.FinishTurn(ctx, n, []stream.Event{spoil(event("trn_1", 1, "", ""))})
	must(t, err)
	n, err = s.Turn(ctx, project, "trn_1")
	read("turn", n, err)
	e := spoil(execution("exe_1", ""))
	must(t, s.AddExecution(ctx, e))
	e.State = nasty
	_, err = s.FinishExecution(ctx, e, nil)
	must(t, err)
	executions, err := s.Executions(ctx, project, hub.ExecutionFilter{Session: nasty, Kernel: nasty, State: nasty}, hub.Page{})
	read("executions", executions, err)
	events, err := s.Events(ctx, nasty, nasty, 0, 10, 1<<30)
	read("events", events, err)
	must(t, s.AddFile(ctx, spoil(hub.File{ID: "fil_1", Project: project})))
	files, err := s.Files(ctx, project, nasty, hub.Page{})
	read("files", files, err)
	must(t, s.AddRow(ctx, spoil(audit.Row{ID: "aud_1", Project: project})))
	rows, err := s.Rows(ctx, audit.Query{Project: project, Limit: 10})
	read("rows", rows, err)
	must(t, s.AddUsage(ctx, project, nasty, hub.Addition{}, spoil(hub.Usage{})))
	usage, err := s.Usage(ctx, project, nasty, nasty, nasty)
	read("usage", usage, err)
	found, err := s.Search(ctx, project, nasty, hub.Page{})
	for i := range found.Items {
		found.Items[i].Execution = "" // two texts of one instant come in either order
	}
	read("found", len(found.Items), err)
	for name, value := range map[string]int{"sessions": len(sessions.Items), "conversations": len(conversations.Items), "executions": len(executions.Items),
		"events": len(events), "files": len(files.Items), "rows": len(rows), "usage": len(usage)} {
		if value != 1 {
			t.Errorf("%d %s are found by nasty words", value, name)
		}
	}
	return out
}
