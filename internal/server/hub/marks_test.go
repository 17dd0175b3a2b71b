package hub_test

import (
	"fmt"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// TestUndoneTurns has a conversation go on with the state from before a turn, and then with the one after it again: nothing is lost on the way.
func TestUndoneTurns(t *testing.T) {
	t.Parallel()
	l, v, who := newTalk(t, calls(python("c1", "remember one")), words("First."), calls(python("c2", "remember two")), words("Second."),
		calls(python("c3", "recall")), words("Third."), words("And on."), calls(python("c4", "recall")), words("Fourth."))
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
	again := l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("Go on"), Source: "test"})
	if again.Session != third.Session || again.Parent != third.ID {
		t.Errorf("the turn after it is %+v", again)
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

// TestUndosLeaveNothing has sessions that undos made, and nobody used, deleted when they are not needed any more; one that was used stays, and one that somebody deleted is made again.
func TestUndosLeaveNothing(t *testing.T) {
	t.Parallel()
	l, v, who := newTalk(t, calls(python("c1", "remember one")), words("First."), calls(python("c2", "remember two")), words("Second."),
		calls(python("c3", "remember three")), words("Third."), calls(python("c4", "recall")), words("Fourth."), words("Fifth."), words("Sixth."))
	first := l.ask(who, hub.NewTurn{Input: input("Go on"), Source: "test"})
	second := l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("Go on"), Source: "test"})
	undo := func(from string) string {
		t.Helper()
		marked, err := l.UndoTurns(t.Context(), who, second.ID, from)
		if err != nil {
			t.Fatal(err)
		}
		return marked.Marks.Undone.Session
	}
	state := func(id string) hub.SessionState {
		t.Helper()
		s, err := l.Session(t.Context(), who, id)
		if problem.Has(err, problem.SessionNotFound) {
			return hub.SessionDeleted
		}
		if err != nil {
			t.Fatal(err)
		}
		return s.State
	}
	redo := func() {
		t.Helper()
		if _, err := l.RedoTurns(t.Context(), who, second.ID); err != nil {
			t.Fatal(err)
		}
	}
	one := undo(second.ID)
	if again := undo(second.ID); again != one {
		t.Errorf("undone once more, the session is %s and not %s", again, one)
	}
	if both := undo(first.ID); state(one) != hub.SessionDeleted || state(both) != hub.SessionPaused {
		t.Errorf("replaced, it is %s; the other one %s", state(one), state(both))
	}
	redo()
	used := undo(second.ID)
	if s, err := l.Session(t.Context(), who, used); err != nil || s.Name == "" {
		t.Errorf("the session has no name: %+v %v", s, err)
	}
	third := l.ask(who, hub.NewTurn{Parent: second.ID, Input: input("Go on"), Source: "test"})
	if again := undo(second.ID); again == used || state(used) == hub.SessionDeleted {
		t.Errorf("undone once more after a turn, the session is %s, and that of the turn %s", again, state(used))
	}
	redo()
	if third.Session != used || state(used) == hub.SessionDeleted {
		t.Errorf("the session that a turn used is %s", state(used))
	}
	named, precious := undo(second.ID), "precious"
	if _, err := l.ChangeSession(t.Context(), who, named, hub.SessionChange{Name: &precious}); err != nil {
		t.Fatal(err)
	}
	c, err := l.Conversation(t.Context(), who, first.Conversation)
	if err == nil {
		_, err = l.ChangeSession(t.Context(), who, named, hub.SessionChange{Name: &c.Title}) // somebody chose it, even if it is the one that it had
	}
	if err != nil {
		t.Fatal(err)
	}
	redo()
	kept := undo(second.ID)
	talker := who
	talker.Scopes = []auth.Action{auth.ConversationsWrite}
	if _, err := l.RedoTurns(t.Context(), talker, second.ID); err != nil || state(named) == hub.SessionDeleted || state(kept) == hub.SessionDeleted {
		t.Errorf("the session with a name is %s, that of who may not delete sessions %s: %v", state(named), state(kept), err)
	}

	gone := undo(second.ID)
	if err := l.DeleteSession(t.Context(), who, gone); err != nil {
		t.Fatal(err)
	}
	fourth := l.ask(who, hub.NewTurn{Parent: second.ID, Input: input("Go on"), Source: "test"})
	marked, err := l.Turn(t.Context(), who, second.ID)
	if err != nil || fourth.Session == gone || fourth.Session == first.Session || marked.UndoneTo().Session != fourth.Session {
		t.Errorf("%+v %+v %v", fourth, marked.Marks, err)
	}
	if asked := v.asked(7); !strings.HasSuffix(asked, "|one") || strings.Contains(asked, "Everything is lost") {
		t.Errorf("the model was asked %s", asked)
	}
	fifth := l.ask(who, hub.NewTurn{Parent: fourth.ID, Input: input("Go on"), Source: "test"})
	if fifth.Session != fourth.Session {
		t.Errorf("the turn after it has the session %s, and not %s", fifth.Session, fourth.Session)
	}
	if err := l.DeleteSession(t.Context(), who, fifth.Session); err != nil {
		t.Fatal(err)
	}
	_, err = l.StartTurn(t.Context(), who, hub.NewTurn{Parent: fifth.ID, Input: input("Go on"), Source: "test", Root: true})
	fails(t, err, "turn_invalid")
	sixth := l.ask(who, hub.NewTurn{Parent: fifth.ID, Input: input("Go on"), Source: "test"})
	if sixth.Session == fifth.Session || sixth.Session == first.Session {
		t.Errorf("deleted once more, the session is %s", sixth.Session)
	}
	if c, err := l.Conversation(t.Context(), who, first.Conversation); err != nil || c.Session != first.Session {
		t.Errorf("the conversation has the session %s, and not %s: %v", c.Session, first.Session, err)
	}
}

// TestForksAfterAnUndo has a conversation whose last turn was undone go on, as a fork, with the state from before that turn.
func TestForksAfterAnUndo(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "remember one")), words("First."), calls(python("c2", "remember two")), words("Second."), calls(python("c3", "remember three")), words("Third."))
	first := l.ask(who, hub.NewTurn{Input: input("Go on"), Source: "test"})
	second := l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("Go on"), Source: "test"})
	if _, err := l.UndoTurns(t.Context(), who, second.ID, second.ID); err != nil {
		t.Fatal(err)
	}
	noteRerun := func(session, code string) {
		t.Helper()
		l.run(who, session, code)
		all, err := l.Executions(t.Context(), who, hub.ExecutionFilter{Session: session}, hub.Page{Limit: 1})
		if err == nil {
			_, err = l.NoteRerun(t.Context(), who, first.ID, 1, all.Items[0].ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	has := func(turn string, state hub.ForkState, want string) {
		t.Helper()
		c, err := l.ForkConversation(t.Context(), who, first.Conversation, hub.NewFork{Turn: turn, State: state})
		if err != nil {
			t.Fatal(err)
		}
		if last, err := l.LastTurn(t.Context(), who, c.ID); err != nil || last.UndoneTo() != nil {
			t.Errorf("the copy has the marks %+v: %v", last.Marks, err)
		}
		if got, _ := l.run(who, c.Session, "recall"); fmt.Sprint(got) != want {
			t.Errorf("it has %q, not %s", got, want)
		}
	}
	has(second.ID, hub.StateThen, "[one]")
	third := l.ask(who, hub.NewTurn{Parent: second.ID, Input: input("Go on"), Source: "test"})
	has(second.ID, hub.StateThen, "[one]")
	has(second.ID, hub.StateNow, "[one three]")
	has(third.ID, hub.StateThen, "[one three]")
	has(first.ID, hub.StateThen, "[one]")

	copied := func(turn string, state hub.ForkState) []bool {
		t.Helper()
		c, err := l.ForkConversation(t.Context(), who, first.Conversation, hub.NewFork{Turn: turn, State: state})
		if err != nil {
			t.Fatal(err)
		}
		last, err := l.LastTurn(t.Context(), who, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		branch, err := l.Branch(t.Context(), who, last.ID)
		if err != nil {
			t.Fatal(err)
		}
		return hub.Outdated(branch)
	}
	noteRerun(second.Session, "remember four") // after the state that the undo went back to
	if got := copied(second.ID, hub.StateNow); fmt.Sprint(got) != "[false false]" {
		t.Errorf("what ran again in the session before the undo makes old %v", got)
	}
	noteRerun(third.Session, "remember five")
	if got := copied(second.ID, hub.StateNow); fmt.Sprint(got) != "[true true]" {
		t.Errorf("what ran again in the session after the undo makes old %v", got)
	}
	if got := copied(second.ID, hub.StateThen); fmt.Sprint(got) != "[false false]" {
		t.Errorf("what ran again after the point of the fork makes old %v", got)
	}
	if err := l.DeleteSession(t.Context(), who, third.Session); err != nil {
		t.Fatal(err)
	}
	has(second.ID, hub.StateThen, "[one]")
}

// TestRerunsInForksOfForks has a copy of a conversation know what ran again in the session from which its own was forked, and in that one's origin, as far as it has that.
func TestRerunsInForksOfForks(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "remember one")), words("First."), words("Second."), words("Third."))
	first := l.ask(who, hub.NewTurn{Input: input("Go on"), Source: "test"})
	note := func(code string) {
		t.Helper()
		l.run(who, first.Session, code)
		all, err := l.Executions(t.Context(), who, hub.ExecutionFilter{Session: first.Session}, hub.Page{Limit: 1})
		if err == nil {
			_, err = l.NoteRerun(t.Context(), who, first.ID, 1, all.Items[0].ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fork := func(of string) hub.Session {
		t.Helper()
		s, err := l.ForkSession(t.Context(), who, of, hub.NewSession{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Origin == nil || s.Origin.Session != of || s.Origin.At.IsZero() || s.Origin.Undo {
			t.Errorf("the fork is of %+v", s.Origin)
		}
		return s
	}
	marks := func(turn hub.Turn) int {
		t.Helper()
		c, err := l.ForkConversation(t.Context(), who, turn.Conversation, hub.NewFork{Turn: turn.ID, State: hub.StateNow})
		if err != nil {
			t.Fatal(err)
		}
		all, err := l.Turns(t.Context(), who, c.ID, hub.Page{Oldest: true})
		if err != nil || len(all.Items) != 2 {
			t.Fatalf("%+v %v", all.Items, err)
		}
		if all.Items[0].Marks == nil {
			return 0
		}
		return len(all.Items[0].Marks.Reruns)
	}
	before := fork(first.Session)
	note("remember two")
	after := fork(fork(first.Session).ID)
	if got := marks(l.ask(who, hub.NewTurn{Parent: first.ID, Session: after.ID, Input: input("Go on"), Source: "test"})); got != 1 {
		t.Errorf("the copy with a fork of a fork has %d marks", got)
	}
	if got := marks(l.ask(who, hub.NewTurn{Parent: first.ID, Session: before.ID, Input: input("Go on"), Source: "test"})); got != 0 {
		t.Errorf("the copy with a fork from before has %d marks", got)
	}
}

// TestStepsThatRanAgain marks the answers that were written before a step of theirs, or one above, ran again.
func TestStepsThatRanAgain(t *testing.T) {
	t.Parallel()
	l, _, who := newTalk(t, calls(python("c1", "remember one")), words("First."), words("Second."), words("Third."), words("Elsewhere."))
	first := l.ask(who, hub.NewTurn{Input: input("Go on"), Source: "test"})
	second := l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("Go on"), Source: "test"})
	other, err := l.CreateSession(t.Context(), who, hub.NewSession{})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := l.ask(who, hub.NewTurn{Parent: first.ID, Session: other.ID, Input: input("Go on"), Source: "test"})
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
	if branch, err := l.Branch(t.Context(), who, elsewhere.ID); err != nil || fmt.Sprint(hub.Outdated(branch)) != "[true false]" {
		t.Errorf("with a turn of another session, outdated are %v %v", hub.Outdated(branch), err)
	}
	_, err = l.NoteRerun(t.Context(), who, first.ID, 1, all.Items[1].ID)
	fails(t, err, "turn_invalid") // a step itself
	blind := who
	blind.Scopes = []auth.Action{auth.ConversationsWrite}
	_, err = l.NoteRerun(t.Context(), blind, first.ID, 1, again)
	fails(t, err, "forbidden")
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
