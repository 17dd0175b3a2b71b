package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cove/internal/http/api"
	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

// TestWhatIsShared: what a link shows has neither users, sessions nor keys, and where code is not shown nothing that code made but the files' names.
func TestWhatIsShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.hub.turns = numbered[hub.TurnEvent](loop.Text{Delta: "<b>"}, loop.Start{Step: 1, Code: "secret_code()"},
		loop.Output{Step: 1, Event: kernel.Stream{Name: "stdout", Data: []byte("secret output")}},
		loop.Output{Step: 1, Event: kernel.File{Path: "a.csv", Size: 1}}, loop.Output{Step: 1, Event: kernel.File{Path: "a.csv", Size: 7}},
		loop.Answer{Text: "42", Reason: loop.Complete})
	for body, most := range map[string]time.Duration{`{}`: 30 * 24 * time.Hour, `{"code":false,"seconds":0}`: 0, `{"code":true,"seconds":60}`: time.Minute} {
		got := w.do(t, "POST", api.Prefix+"/conversations/"+conversation+"/shares", body)
		if got.status != 201 || strings.Contains(got.body, "secret hash") {
			t.Fatalf("%d %s", got.status, got.body)
		}
		n, _ := w.hub.last()[0].(hub.NewShare)
		if n.Life != most || n.Turns != 1 || n.Turn != turn || n.Conversation != conversation {
			t.Errorf("%s asks for %+v", body, n)
		}
		var doc api.Shared
		if err := json.Unmarshal(n.Document, &doc); err != nil || len(doc.Turns) != 1 {
			t.Fatalf("%v: %s", err, n.Document)
		}
		if f := doc.Turns[0].Files; len(f) != 1 || f[0] != (api.SharedFile{Name: "a.csv", Size: 7}) {
			t.Errorf("the files are %+v", f)
		}
		text := string(n.Document)
		for _, word := range []string{"usr_", "ses_", "key_"} {
			if strings.Contains(text, word) {
				t.Errorf("the document has %s: %s", word, text)
			}
		}
		shows := body != `{"code":false,"seconds":0}`
		if strings.Contains(text, "secret_code") != shows || strings.Contains(text, "secret output") != shows || !strings.Contains(text, `"delta":"<b>"`) || !strings.Contains(text, `"type":"answer"`) {
			t.Errorf("%s: %s", body, text)
		}
	}
}

func TestSharingIsBoundedAndCanBeOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	large := loop.Event(loop.Output{Step: 1, Event: kernel.Stream{Name: "stdout", Data: []byte(strings.Repeat("x", 7<<20))}})
	w.hub.turns = numbered[hub.TurnEvent](large, large, large)
	path := api.Prefix + "/conversations/" + conversation + "/shares"
	wantProblem(t, w.do(t, "POST", path, `{}`), 413, "share_too_large")
	if got := w.do(t, "POST", path, `{"code":false}`); got.status != 201 {
		t.Errorf("without the output: %d %s", got.status, got.body)
	}
	shown := w.do(t, "GET", api.Prefix+"/shared/abc", "", "Accept-Encoding: identity")
	if shown.header.Get("Cache-Control") != "no-store" || shown.header.Get("X-Robots-Tag") != "noindex" {
		t.Errorf("the headers are %v", shown.header)
	}
	off := newWorld(t, func(o *api.Options) { o.NoSharing = true })
	wantProblem(t, off.do(t, "POST", path, `{}`), 403, "sharing_off")
	wantProblem(t, off.do(t, "GET", api.Prefix+"/shared/abc", ""), 403, "sharing_off")
}
