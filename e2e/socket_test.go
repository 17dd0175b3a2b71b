package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

// TestResponsesOverAWebSocket keeps variables over responses that are stored nowhere, has a revoked key refused, and the server stop in time.
func TestResponsesOverAWebSocket(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(sdkModel)
	s := startServer(t, "", testKey(t), "OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted")
	var made struct {
		Text string
		Key  struct{ ID string }
	}
	s.must(http.MethodPost, "/api/v1/keys", map[string]any{"name": "socket"}, &made)
	conn, _, err := websocket.Dial(t.Context(), strings.Replace(s.base, "http", "ws", 1)+"/v1/responses", //nolint:bodyclose // Dial says that it never needs to be
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + made.Text}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(1 << 20)
	type event struct {
		Type     string
		Error    struct{ Code string }
		Response struct {
			ID     string
			Output []struct {
				Content []struct{ Text string }
			}
		}
	}
	ask := func(question, previous string) event {
		t.Helper()
		message := map[string]any{"type": "response.create", "model": "scripted", "store": false, "input": question,
			"tools": []any{map[string]any{"type": "code_interpreter", "container": map[string]any{"type": "auto"}}}}
		if previous != "" {
			message["previous_response_id"] = previous
		}
		text, _ := json.Marshal(message)
		if err := conn.Write(t.Context(), websocket.MessageText, text); err != nil {
			t.Fatal(err)
		}
		for {
			var e event
			_, text, err := conn.Read(t.Context())
			if err == nil {
				err = json.Unmarshal(text, &e)
			}
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == "response.completed" || e.Type == "response.failed" || e.Type == "error" {
				return e
			}
		}
	}
	e := ask("set the variable", "")
	for range 2 {
		e = ask("recall the variable", e.Response.ID)
		if text := fmt.Sprint(e.Response.Output); !strings.Contains(text, "It is 42.") {
			t.Fatalf("%+v\n%s", e, s.log)
		}
	}
	s.must(http.MethodDelete, "/api/v1/keys/"+made.Key.ID, nil, nil)
	if e := ask("recall the variable", e.Response.ID); e.Error.Code != "invalid_api_key" {
		t.Errorf("a revoked key: %+v", e)
	}
	if r := s.stop(); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("the connection ends with %v", err)
	}
}
