package api_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"cove/internal/http/api"
	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
)

func TestExport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.hub.title = "../销售 \"数据\"\r\nX: y\u202e.exe"
	w.hub.turns = numbered[hub.TurnEvent](loop.Start{Step: 1, Code: "1 + 1"}, loop.Output{Step: 1, Event: kernel.Result{Count: 1, Data: kernel.Bundle{"text/plain": "2"}}},
		loop.Output{Step: 1, Event: kernel.Done{Outcome: kernel.OutcomeOK}}, loop.Answer{Text: "two", Reason: loop.Complete})
	for format, ending := range map[string]string{"": ".ipynb", "ipynb": ".ipynb", "markdown": ".md", "html": ".html", "python": ".py"} {
		got := w.do(t, "GET", api.Prefix+"/conversations/"+conversation+"/export?format="+format, "")
		if format == "" {
			got = w.do(t, "GET", api.Prefix+"/conversations/"+conversation+"/export", "")
		}
		if got.status != 200 || !strings.Contains(got.body, "1 + 1") {
			t.Errorf("%s: %d %s", format, got.status, got.body)
		}
		disposition := got.header.Get("Content-Disposition")
		_, encoded, _ := strings.Cut(disposition, "filename*=UTF-8''")
		if name, err := url.PathUnescape(encoded); err != nil || name != "销售 数据 X y.exe"+ending || !strings.HasPrefix(disposition, "attachment; ") {
			t.Errorf("%s: the name is %q in %q, %v", format, name, disposition, err)
		}
		if csp := got.header.Get("Content-Security-Policy"); csp != "sandbox; default-src 'none'" || got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", format, got.header)
		}
		if ending == ".ipynb" {
			var book struct {
				Format int `json:"nbformat"`
				Minor  int `json:"nbformat_minor"`
				Cells  []struct{ ID string }
			}
			if err := json.Unmarshal([]byte(got.body), &book); err != nil || book.Format != 4 || book.Minor != 5 || len(book.Cells) < 2 || book.Cells[0].ID == "" {
				t.Errorf("%v: %+v", err, book)
			}
		}
	}
	for _, title := range []string{"...", "/", "\x00\x01"} {
		w.hub.title = title
		if got := w.do(t, "GET", api.Prefix+"/conversations/"+conversation+"/export", ""); !strings.Contains(got.header.Get("Content-Disposition"), `"conversation.ipynb"`) {
			t.Errorf("%q: %s", title, got.header.Get("Content-Disposition"))
		}
	}
	wantProblem(t, w.do(t, "GET", api.Prefix+"/conversations/"+conversation+"/export?format=exe", ""), 422, "invalid_request")
	large := loop.Event(loop.Output{Step: 1, Event: kernel.Stream{Name: "stdout", Data: []byte(strings.Repeat("x", 17<<20))}})
	w.hub.turns = numbered[hub.TurnEvent](large, large, large, large)
	wantProblem(t, w.do(t, "GET", api.Prefix+"/conversations/"+conversation+"/export", ""), 413, "export_too_large")
}
