package hub_test

import (
	"strings"
	"testing"

	"cove/internal/server/hub"
)

// TestVersionsOfAFirstQuestion asks the first question of a conversation once more: in the same conversation, from nothing that was said in it.
func TestVersionsOfAFirstQuestion(t *testing.T) {
	t.Parallel()
	l, v, who := newTalk(t, words("Once."), words("And on."), words("Anew."), words("On from there."))
	first := l.ask(who, hub.NewTurn{Input: input("The first question")})
	l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("The second question")})
	again := l.ask(who, hub.NewTurn{Conversation: first.Conversation, First: true, Input: input("The first question, edited")})
	if again.Conversation != first.Conversation || again.Parent != "" || again.Answer != "Anew." {
		t.Errorf("%+v", again)
	}
	if got := v.asked(2); !strings.Contains(got, "edited") || strings.Contains(got, "Once.") || strings.Contains(got, "second") {
		t.Errorf("the model was told %s", got)
	}
	next := l.ask(who, hub.NewTurn{Conversation: first.Conversation, Input: input("What is next?")})
	if got := v.asked(3); next.Parent != again.ID || !strings.Contains(got, "Anew.") || strings.Contains(got, "Once.") {
		t.Errorf("%+v goes on from %s", next, got)
	}
	if c, err := l.Conversation(t.Context(), who, first.Conversation); err != nil || c.Turns != 4 || c.Title != "The first question" {
		t.Errorf("%+v %v", c, err)
	}
	_, err := l.StartTurn(t.Context(), who, hub.NewTurn{Conversation: first.Conversation, Parent: first.ID, First: true, Input: input("Both")})
	fails(t, err, "turn_invalid")
	_, err = l.PutQuestion(t.Context(), who, hub.NewTurn{Conversation: first.Conversation, First: true, Input: input("Later")})
	fails(t, err, "turn_invalid")
}
