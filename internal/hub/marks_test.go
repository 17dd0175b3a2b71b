package hub_test

import (
	"fmt"
	"strings"
	"testing"

	"cove/internal/auth"
	"cove/internal/hub"
)

// TestUndoneTurns has a conversation go on with the state from before a turn, and then with the one after it again: nothing is lost on the way.
func TestUndoneTurns(t *testing.T) {
	t.Parallel()
	l, v, who := newTalk(t, calls(python("c1", "remember one")), words("First."), calls(python("c2", "remember two")), words("Second."),
		calls(python("c3", "recall")), words("Third."), calls(python("c4", "recall")), words("Fourth."))
	first := l.ask(who, hub.NewTurn{Input: input("Go on"), Source: "test"})
	second := l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("Go on"), Source: "test"})
	marked, err := l.UndoTurns(t.Context(), who, second.ID, second.ID)
	if err != nil || marked.Marks.Undone.From != second.ID || marked.Marks.Undone.Session == second.Session {
		t.Fatalf("%+v %v", marked.Marks, err)
	}
	if kept, err := l.Turn(t.Context(), who, second.ID); err != nil || kept.UndoneTo() == nil || kept.Marks.Undone.Session != marked.Marks.Undone.Session {
		t.Fatalf("%+v %v", kept.Marks, err)
	}
	third := l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("Go on"), Source: "test"})
	if third.Session != marked.Marks.Undone.Session || third.Parent != second.ID {
		t.Errorf("%+v", third)
	}
	if asked := v.asked(5); !strings.HasSuffix(asked, "|one") {
		t.Errorf("the model was asked %s", asked)
	}
	if got, _ := l.run(who, second.Session, "recall"); fmt.Sprint(got) != "[one two]" {
		t.Errorf("the session itself has %q", got)
	}
	if _, err := l.RedoTurns(t.Context(), who, second.ID); err != nil {
		t.Fatal(err)
	}
	fourth := l.ask(who, hub.NewTurn{Parent: second.ID, Input: input("Go on"), Source: "test"})
	if fourth.Session != second.Session {
		t.Errorf("%+v", fourth)
	}
	refused := func(who auth.Principal, id, from, code string) {
		t.Helper()
		_, err := l.UndoTurns(t.Context(), who, id, from)
		fails(t, err, code)
	}
	refused(who, first.ID, second.ID, "turn_invalid")
	refused(who, "trn_never", second.ID, "turn_not_found")
	refused(someone("prj_other"), second.ID, second.ID, "turn_not_found")
	reader := who
	reader.Scopes = []auth.Action{auth.ConversationsRead}
	refused(reader, second.ID, second.ID, "forbidden")
}

// TestStepsThatRanAgain marks the answers that were written before a step of theirs, or one above, ran again.
func TestStepsThatRanAgain(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "remember one")), words("First."), words("Second."), words("Third."))
	first := l.ask(who, hub.NewTurn{Input: input("Go on"), Source: "test"})
	second := l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("Go on"), Source: "test"})
	_, done := l.run(who, first.Session, "remember two")
	all, err := l.Executions(t.Context(), who, hub.ExecutionFilter{Session: first.Session}, hub.Page{})
	if err != nil || len(all.Items) != 2 {
		t.Fatalf("%+v %v %v", all, err, done)
	}
	again := all.Items[0].ID
	if got, err := l.NoteRerun(t.Context(), who, first.ID, 1, again); err != nil || len(got.Marks.Reruns) != 1 || got.Marks.Reruns[0].Execution != again {
		t.Fatalf("%+v %v", got.Marks, err)
	}
	third := l.ask(who, hub.NewTurn{Parent: second.ID, Input: input("Go on"), Source: "test"})
	outdated := func() []bool {
		t.Helper()
		branch, err := l.Branch(t.Context(), who, third.ID)
		if err != nil {
			t.Fatal(err)
		}
		return hub.Outdated(branch)
	}
	if got := fmt.Sprint(outdated()); got != "[true true false]" {
		t.Errorf("outdated are %s", got)
	}
	for step, execution := range map[int]string{0: again, 2: again, 1001: ""} {
		_, err = l.NoteRerun(t.Context(), who, first.ID, step, execution)
		fails(t, err, "execution_not_found")
	}
	_, err = l.NoteRerun(t.Context(), who, first.ID, 1, "exe_never")
	fails(t, err, "execution_not_found")
	if _, err = l.NoteRerun(t.Context(), who, first.ID, 1, ""); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(outdated()); got != "[false false false]" {
		t.Errorf("shown as it was, outdated are %s", got)
	}
}
