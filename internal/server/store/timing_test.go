package store_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/core/telemetry"
	"cove/internal/server/hub"
	"cove/internal/server/stream"
)

func TestOperationsAreTimed(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "cove.db"))
	fill(t, s)
	spans := make(chan telemetry.EndedSpan, 100)
	tel, err := telemetry.New(t.Context(), telemetry.Options{Ended: func(s telemetry.EndedSpan) { spans <- s }})
	must(t, err)
	must(t, s.Ping(telemetry.With(t.Context(), tel))) // of nothing, so it is no span
	ctx, over := telemetry.Span(telemetry.With(t.Context(), tel), "request")
	must(t, s.Ping(ctx))
	must(t, s.AddEvents(ctx, []stream.Event{{Stream: "exe_timed", Seq: 1, Body: []byte("{}")}}))
	must(t, s.AddSession(ctx, session("ses_timed", 1)))
	_, err = s.FinishExecution(ctx, hub.Execution{Project: project, ID: "exe_none"}, nil)
	wantCode(t, err, "execution_not_found")
	_, err = s.Search(ctx, project, "hello", hub.Page{})
	must(t, err)
	must(t, s.Backup(ctx, &bytes.Buffer{}))
	over(nil)
	close(spans)
	traced := map[string]int{}
	for s := range spans {
		if traced[s.Attrs["operation"]]++; s.Name != "request" && (s.Name != "store" || s.Parent == "") || s.Failed {
			t.Errorf("there is a span %+v", s)
		}
	}
	w := httptest.NewRecorder()
	tel.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, kind := range []string{"read", "write", "events", "end", "search", "backup"} {
		if !strings.Contains(w.Body.String(), `cove_store_seconds_count{operation="`+kind+`"}`) {
			t.Errorf("a %s was not timed", kind)
		}
		if traced[kind] == 0 {
			t.Errorf("a %s is in no trace", kind)
		}
	}
}
