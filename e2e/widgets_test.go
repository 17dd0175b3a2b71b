package e2e_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestWidgets: the states of widgets are read by who may read sessions, and moved by who may run code; a move is an execution, whose events tell what came of it.
func TestWidgets(t *testing.T) {
	t.Parallel()
	home, index := pagePackages(t)
	addWidgets(t, index)
	s := startServer(t, "", testKey(t), "COVE_HOME="+home, "UV_DEFAULT_INDEX="+index.URL, "COVE_PACKAGES=standard")
	var me, user, key, session struct{ Project, ID, Text string }
	s.must(http.MethodGet, "/api/v1/me", nil, &me)
	s.must(http.MethodPost, "/api/v1/users", map[string]any{"name": "vera"}, &user)
	s.must(http.MethodPut, "/api/v1/projects/"+me.Project+"/members/"+user.ID, map[string]any{"role": "viewer"}, nil)
	s.must(http.MethodPost, "/api/v1/keys", map[string]any{"name": "vera", "project": me.Project, "user": user.ID}, &key)
	s.must(http.MethodPost, "/api/v1/sessions", map[string]any{}, &session)
	at := "/api/v1/sessions/" + session.ID
	runs := func(code string, shows bool) string {
		t.Helper()
		return string(s.must(http.MethodPost, at+"/executions", map[string]any{"code": code, "widgets": shows}, nil).body)
	}
	made := runs("import ipywidgets as w\nsize = w.IntSlider(value=3)\nsize.observe(lambda c: print('heard', c['new']), 'value')\nprint('id', size.model_id)\nsize", true)
	_, id, _ := strings.Cut(made, `"text":"id `)
	id, _, _ = strings.Cut(id, `\n`)
	if !strings.Contains(made, `"type":"widgets"`) || !strings.Contains(made, "widget-view+json") || id == "" {
		t.Fatalf("the events are %s", made)
	}
	if said := runs("size", false); strings.Contains(said, `"type":"widgets"`) || !strings.Contains(said, "IntSlider(value=3)") {
		t.Errorf("who shows no widgets is told %s", said)
	}
	widgets := at + "/kernels/main/widgets"
	if r := s.with(key.Text, http.MethodGet, widgets, ""); r.status != http.StatusOK || !strings.Contains(string(r.body), `"value":3`) {
		t.Errorf("a viewer reads %d %s", r.status, r.body)
	}
	const move = `{"state":{"value":5}}`
	if r := s.with(key.Text, http.MethodPost, widgets+"/"+id, move); r.status != http.StatusForbidden {
		t.Errorf("a viewer moves: %d %s", r.status, r.body)
	}
	for _, bad := range []string{`{}`, `{"state":5}`, `{"state":{},"content":{}}`, `{"state":{"value":"` + strings.Repeat("x", 300<<10) + `"}}`} {
		if r := s.with(s.key, http.MethodPost, widgets+"/"+id, bad); r.status != http.StatusBadRequest && r.status != http.StatusUnprocessableEntity {
			t.Errorf("%.40s: %d %s", bad, r.status, r.body)
		}
	}
	moved := func() string {
		t.Helper()
		r := s.with(s.key, http.MethodPost, widgets+"/"+id, move)
		_, execution, _ := strings.Cut(string(r.body), `"id":"`)
		execution, _, _ = strings.Cut(execution, `"`)
		if r.status != http.StatusOK {
			t.Fatalf("moved: %d %s", r.status, r.body)
		}
		return string(s.must(http.MethodGet, "/api/v1/executions/"+execution+"/events", nil, nil).body)
	}
	if events := moved(); !strings.Contains(events, "heard 5") || !strings.Contains(events, `"value":5`) {
		t.Errorf("a move brings %s", events)
	}
	if said := runs("print('now', size.value)", false); !strings.Contains(said, "now 5") {
		t.Errorf("code has %s", said)
	}
	// While code runs nobody is told, and nobody waits.
	var waits struct{ ID string }
	s.must(http.MethodPost, at+"/executions?background=true", map[string]any{"code": "import time\ntime.sleep(600)"}, &waits)
	for busy := false; !busy; {
		busy = strings.Contains(string(s.must(http.MethodGet, widgets, nil, nil).body), `"busy":true`)
	}
	s.must(http.MethodPost, "/api/v1/executions/"+waits.ID+"/interrupt", nil, nil)
	s.must(http.MethodPost, at+"/kernels/main/restart", nil, nil)
	if events := moved(); !strings.Contains(events, `"closed":["`+id+`"]`) {
		t.Errorf("a widget of a former interpreter brings %s", events)
	}
	if r := s.must(http.MethodGet, widgets, nil, nil); !strings.Contains(string(r.body), `"models":{}`) {
		t.Errorf("a new interpreter has %s", r.body)
	}
}
