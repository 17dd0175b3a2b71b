package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/commands/cli"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/store"
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
		begun := time.Now()
		for n, one := range []struct {
			conversation int
			state        hub.TurnState
			of           string // the turn that it is a try of
		}{{1, hub.TurnFailed, ""}, {1, hub.TurnCompleted, ""}, {2, hub.TurnFailed, ""}, {2, hub.TurnCompleted, fmt.Sprintf("trn_%026d", 3)}, {3, hub.TurnCanceled, ""}} {
			turn := hub.Turn{ID: fmt.Sprintf("trn_%026d", n+1), Project: auth.LocalProject, User: auth.Local().User, Conversation: fmt.Sprintf("cnv_%026d", one.conversation), State: hub.TurnRunning, Created: begun.Add(time.Duration(n) * time.Second)}
			if one.of != "" {
				turn.Tries = &hub.TurnTries{Of: one.of}
			}
			if err := s.AddTurn(t.Context(), turn); err != nil {
				t.Fatal(err)
			}
			turn.State = one.state
			if _, err := s.FinishTurn(t.Context(), turn, nil); err != nil {
				t.Fatal(err)
			}
		}
	}, "history")
	for title, want := range map[string]string{"good": "2", "bad": "1 (failed)", "stopped": "1 (stopped)"} {
		found := false
		for line := range strings.Lines(r.out) {
			found = found || strings.Contains(line, " "+title+" ") && strings.Contains(line, "  "+want+"  ")
		}
		if !found {
			t.Errorf("%s is not shown with %s:\n%s%s", title, want, r.out, r.err)
		}
	}
}

// TestHistoryAsksForLittle wants of a server the last turn of the conversations that are listed, and no more of them after one that it does not give.
func TestHistoryAsksForLittle(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"marked": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if !strings.HasSuffix(r.URL.Path, "/turns") {
					var items []string
					for n := range 30 {
						items = append(items, fmt.Sprintf(`{"id":"cnv_%026d","title":"number%d","turns":3}`, n, n))
					}
					_, _ = io.WriteString(w, `{"items":[`+strings.Join(items, ",")+`]}`)
					return
				}
				mu.Lock()
				asked = append(asked, r.URL.RawQuery)
				mu.Unlock()
				if fails {
					w.Header().Set("Content-Type", "application/problem+json")
					w.WriteHeader(http.StatusForbidden)
					_, _ = io.WriteString(w, `{"status":403,"kind":"denied","code":"forbidden","detail":"no"}`)
					return
				}
				_, _ = io.WriteString(w, `{"items":[{"id":"trn_06f1k3t3y4m0v8s2k5r7w9x1z4","state":"failed"}]}`)
			}))
			t.Cleanup(server.Close)
			r := run(t, &scripted{}, nil, "history", "--server", server.URL, "--key", "cove_x", "-n", "20")
			if r.code != 0 || strings.Count(r.out, "number") != 20 {
				t.Errorf("exit code %d:\n%s%s", r.code, r.out, r.err)
			}
			most, marks := 20, 20
			if fails {
				most, marks = 4, 0 // as many as are asked at a time
			}
			if len(asked) > most || len(asked) == 0 || strings.Count(r.out, "3 (failed)") != marks {
				t.Errorf("asked %d times:\n%s", len(asked), r.out)
			}
			for _, query := range asked {
				if query != "limit=1&order=newest" {
					t.Errorf("asked with %s", query)
				}
			}
		})
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
