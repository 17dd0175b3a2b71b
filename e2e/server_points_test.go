package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

// points are what a session can be returned to.
type points struct {
	Items []struct {
		ID     string
		Before []string
		Bytes  int64
	}
}

// TestBackToBeforeATurn has turns change variables and files, returns to before one of them, and branches at another.
func TestBackToBeforeATurn(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	service := modeltest.NewServer()
	t.Cleanup(service.Close)
	service.Decide(func(_ int, r modeltest.Request) modeltest.Turn {
		messages := r.Messages()
		last := messages[len(messages)-1]
		if last["role"] == "tool" {
			return modeltest.Say("Done.")
		}
		prompt := modeltest.Request{Body: map[string]any{"messages": []any{last}}}.Text()
		_, code, _ := strings.Cut(modeltest.Asked(prompt), "run: ")
		return modeltest.Run(code)
	})
	dir := t.TempDir()
	s := startServer(t, dir, testKey(t), append([]string{"COVE_MODEL=openai/gpt-4o", "OPENAI_BASE_URL=" + service.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_POOL=1"}, crowd...)...)
	var conversation struct{ ID, Session string }
	s.must("POST", "/api/v1/conversations", map[string]any{"title": "t"}, &conversation)
	var turns []string
	ask := func(parent, session, code string) string {
		t.Helper()
		var turn struct{ ID, State, Session string }
		body := map[string]any{"prompt": "run: " + code}
		if parent != "" {
			body["parent"] = parent
		}
		if session != "" {
			body["session"] = session
		}
		s.must("POST", "/api/v1/conversations/"+conversation.ID+"/turns?wait=true", body, &turn)
		if turn.State != "completed" {
			t.Fatalf("the turn is %+v", turn)
		}
		conversation.Session = turn.Session
		return turn.ID
	}
	for _, code := range []string{
		"import pandas as pd; df = pd.DataFrame({'a': range(10)}); open('kept', 'w').write('1')",
		"df['b'] = df.a * 2; open('new', 'w').write('2')",
		"import os; os.remove('kept'); del df",
	} {
		turns = append(turns, ask("", "", code))
	}
	session := "/api/v1/sessions/" + conversation.Session
	look := "import os; print(sorted(os.listdir('.')), list(df.columns) if 'df' in globals() else None)"
	if got := s.says(conversation.Session, look); got != "['new'] None\n" {
		t.Fatalf("after three turns it has %q", got)
	}
	var kept struct{ Present bool }
	if s.must("POST", session+"/points", nil, &kept); !kept.Present {
		t.Error("what was kept is not the present state")
	}
	var all points
	s.must("GET", session+"/points", nil, &all)
	if len(all.Items) != 4 || all.Items[1].Before[0] != turns[1] {
		t.Fatalf("the points are %+v", all)
	}
	if one := all.Items[2]; one.Bytes > 12<<20 || one.Bytes < 1<<16 {
		t.Errorf("a point takes %d bytes beside the one before", one.Bytes)
	}
	var fork struct{ ID string }
	s.must("POST", session+"/fork", map[string]any{"point": turns[1]}, &fork)
	if got := s.says(fork.ID, look); got != "['kept'] ['a']\n" {
		t.Errorf("a branch from before the second turn has %q", got)
	}
	var after struct{ Rollback struct{ Executions []string } }
	s.must("POST", session+"/undo", map[string]any{"to": turns[2]}, &after)
	if got := s.says(conversation.Session, look); got != "['kept', 'new'] ['a', 'b']\n" {
		t.Errorf("before the third turn it has %q", got)
	}
	if len(after.Rollback.Executions) != 2 {
		t.Errorf("told as undone are %q", after.Rollback.Executions)
	}
	ask(turns[0], fork.ID, "print(df.a.sum())")
	if r, err := s.call(t.Context(), "POST", session+"/undo", map[string]any{"to": "trn_none"}); err != nil || r.status != http.StatusNotFound || !strings.Contains(string(r.body), "point_unknown") {
		t.Errorf("%v %d %s", err, r.status, r.body)
	}
	s.stop().ended(t, 0)

	// Points are on the disk: another server returns to them.
	s = startServer(t, dir, s.key, append([]string{"COVE_MODEL=openai/gpt-4o", "OPENAI_BASE_URL=" + service.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_POOL=1"}, crowd...)...)
	s.must("POST", session+"/undo", map[string]any{}, nil)
	s.must("POST", session+"/undo", map[string]any{"to": turns[1]}, nil)
	if got := s.says(conversation.Session, look); got != "['kept'] ['a']\n" {
		t.Errorf("after a restart, before the second turn, it has %q", got)
	}
	s.stop().ended(t, 0)
}
