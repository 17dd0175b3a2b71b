package hub_test

import (
	"strings"
	"testing"
	"time"

	"cove/internal/llm/model"
	"cove/internal/server/hub"
)

// TestTitlesAreClean: what a model writes becomes one short line of plain text, or nothing.
func TestTitlesAreClean(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Growth by region":                    "Growth by region",
		"\n  \"Growth by region.\"\nand more": "Growth by region",
		"**海外**增长最快：`+56 %`。":                 "海外增长最快：+56 %",
		"**各地区的增长。**":                         "各地区的增长",
		"<think>hm\nhm</think>\n# Growth":     "Growth",
		"a\x1b[31mb\u202ec":                   "a [31mb c",
		"\x00 \n ... \n":                      "",
		"":                                    "",
		strings.Repeat("long ", 40):           strings.TrimSpace(strings.Repeat("long ", 12)) + "…",
	} {
		if got := hub.CleanTitle(text); got != want {
			t.Errorf("%q becomes %q, not %q", text, got, want)
		}
	}
}

// TestTitle: the model names a conversation of the page after its first turn; what a user has set stays, and nothing else is named.
func TestTitle(t *testing.T) {
	t.Parallel()
	say := func(text string) line {
		return line{parts: []model.Part{model.TextDelta{Text: text}, model.Finish{Reason: model.FinishStop, Usage: model.Usage{InputTokens: 10, OutputTokens: 1}}}}
	}
	v := &voice{t: t, lines: []line{say("42"), say("«The answer»."), say("43"), say("44")}}
	l := newLife(t, func(o *hub.Options) { o.Models, o.Titles = v, true })
	who := someone("prj_local")
	ask := func(n hub.NewTurn) hub.Turn {
		n.Input, n.Prompt, n.NoPython = input("What is it?"), "What is it?", true
		turn := l.begin(who, n)
		if _, err := l.hear(who, turn.ID); err != nil {
			t.Fatal(err)
		}
		return turn
	}
	title := func(turn hub.Turn) string {
		c, err := l.Conversation(t.Context(), who, turn.Conversation)
		if err != nil {
			t.Fatal(err)
		}
		return c.Title
	}
	first := ask(hub.NewTurn{Source: "web"})
	for end := time.Now().Add(time.Minute); title(first) != "The answer"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the title is %q", title(first))
		}
	}
	if ask(hub.NewTurn{Source: "web", Conversation: first.Conversation}); title(first) != "The answer" {
		t.Errorf("the second turn changed it to %q", title(first))
	}
	if other := ask(hub.NewTurn{Source: "api"}); title(other) != "What is it?" {
		t.Errorf("a conversation of the API is called %q", title(other))
	}
	if n := len(v.requests); n != 4 {
		t.Errorf("the model was asked %d times", n)
	}
}
