package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"cove/internal/testkit/testneeds"
)

// TestRequestRepeatedAfterAKill: a client that does not know whether its request got through sends it again, to the next server, and the code runs once.
func TestRequestRepeatedAfterAKill(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir, key := t.TempDir(), testKey(t)
	s := startServer(t, dir, key)
	session := s.session()
	first := s.once(session, "word", "print(6 * 7)")
	s.kill()
	next := startServer(t, dir, key)
	if again := next.once(session, "word", "print(6 * 7)"); again != first {
		t.Errorf("the repeated request began %s, not %s", again, first)
	}
	var list struct{ Items []struct{ ID string } }
	next.must("GET", "/api/v1/sessions/"+session+"/executions", nil, &list)
	if len(list.Items) != 1 {
		t.Errorf("there are %d executions", len(list.Items))
	}
	metrics := string(next.must("GET", "/metrics", nil, nil).body)
	for _, want := range []string{"cove_sandboxes_ready ", `cove_store_seconds_count{operation="read"}`, "cove_sessions_live "} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// once has code run to its end with an idempotency key and returns the execution's id.
func (s *server) once(session, word, code string) string {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"code": code})
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), "POST", s.base+"/api/v1/sessions/"+session+"/executions?wait=true", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Idempotency-Key", word)
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	var made struct{ ID string }
	if err != nil || response.StatusCode/100 != 2 || json.Unmarshal(text, &made) != nil || made.ID == "" {
		s.t.Fatalf("%d %s %v", response.StatusCode, text, err)
	}
	return made.ID
}
