package cli_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cove/internal/auth"
	"cove/internal/cli"
	"cove/internal/hub"
	"cove/internal/store"
)

// remembered puts conversations into the history, the first one used last.
func remembered(t *testing.T, titles ...string) func(dir string, p *cli.Program) {
	return func(dir string, p *cli.Program) {
		p.Config.Store.History = true
		s, err := store.Open(t.Context(), store.Options{Database: filepath.Join(dir, "cove.db")})
		if err != nil {
			t.Fatal(err)
		}
		if err := (&auth.Accounts{Store: s, Audit: s}).FoundLocal(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n, title := range titles {
			at := time.Now().Add(-time.Duration(n*40*24) * time.Hour)
			c := hub.Conversation{ID: fmt.Sprintf("cnv_%026d", n+1), Project: auth.LocalProject, User: auth.Local().User, Title: title, Source: "cli", Model: "replay:x", Created: at, Used: at}
			if err := s.AddConversation(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHistoryMarksWhatHasNoAnswer wants the list to say of which conversations the last question failed.
func TestHistoryMarksWhatHasNoAnswer(t *testing.T) {
	t.Parallel()
	r := run(t, &scripted{}, func(dir string, p *cli.Program) {
		remembered(t, "good", "bad", "stopped")(dir, p)
		s, err := store.Open(t.Context(), store.Options{Database: filepath.Join(dir, "cove.db")})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for n, state := range []hub.TurnState{hub.TurnCompleted, hub.TurnFailed, hub.TurnCanceled} {
			turn := hub.Turn{ID: fmt.Sprintf("trn_%026d", n+1), Project: auth.LocalProject, User: auth.Local().User, Conversation: fmt.Sprintf("cnv_%026d", n+1), State: hub.TurnRunning, Created: time.Now()}
			if err := s.AddTurn(t.Context(), turn); err != nil {
				t.Fatal(err)
			}
			turn.State = state
			if _, err := s.FinishTurn(t.Context(), turn, nil); err != nil {
				t.Fatal(err)
			}
		}
	}, "history")
	for title, want := range map[string]string{"good": "1", "bad": "1 (failed)", "stopped": "1 (stopped)"} {
		found := false
		for line := range strings.Lines(r.out) {
			found = found || strings.Contains(line, " "+title+" ") && strings.Contains(line, "  "+want+"  ")
		}
		if !found {
			t.Errorf("%s is not shown with %s:\n%s%s", title, want, r.out, r.err)
		}
	}
}

func TestHistoryIsDeleted(t *testing.T) {
	t.Parallel()
	titles := []string{"one", "two", "three", "four"}
	for name, c := range map[string]struct {
		args []string
		left string
		says string
		code int
	}{
		"by number":   {[]string{"2", "4"}, "one three", "2 conversations were deleted", 0},
		"by id":       {[]string{"cnv_00000000000000000000000003"}, "one two four", "1 conversation was deleted", 0},
		"twice":       {[]string{"1", "1"}, "two three four", "1 conversation was deleted", 0},
		"by age":      {[]string{"--before", "60d"}, "one two", "2 conversations were deleted", 0},
		"all":         {[]string{"--all"}, "", "4 conversations were deleted", 0},
		"none":        {nil, "one two three four", "it is not said which", 125},
		"one too far": {[]string{"1", "9"}, "one two three four", "no such conversation", 125},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var dir string
			first := run(t, &scripted{}, func(d string, p *cli.Program) { dir = d; remembered(t, titles...)(d, p) }, append([]string{"history", "rm"}, c.args...)...)
			if first.code != c.code || !strings.Contains(first.err, c.says) {
				t.Errorf("%d %s", first.code, first.err)
			}
			list := run(t, &scripted{}, func(_ string, p *cli.Program) {
				p.Config.Store.History = true
				p.Records = recordsIn(dir)
			}, "history")
			var left []string
			for line := range strings.Lines(list.out) {
				if f := strings.Fields(line); f[0] != "#" {
					left = append(left, f[1])
				}
			}
			if got := strings.Join(left, " "); got != c.left {
				t.Errorf("left: %s\n%s", got, list.out)
			}
			if c.left == "" && !strings.Contains(list.err, "the history is empty") {
				t.Errorf("an empty history says %s", list.err)
			}
		})
	}
}
