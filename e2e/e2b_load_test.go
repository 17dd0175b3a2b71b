package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// e2bRequest sends what E2B's libraries send, and returns the whole answer.
func (s *server) e2bRequest(ctx context.Context, method, path string, header map[string]string, body any) (status int, text []byte, err error) {
	sent, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(sent))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err = io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}

// e2bSandbox makes a sandbox, has it compute twice, and kills it.
func (s *server) e2bSandbox(ctx context.Context, m *timings, number int) error {
	var made struct {
		ID    string `json:"sandboxID"`
		Token string `json:"envdAccessToken"`
	}
	key := map[string]string{"X-API-Key": s.key}
	begun := time.Now()
	status, text, err := s.e2bRequest(ctx, "POST", "/sandboxes", key, map[string]any{"templateID": "code-interpreter-v1", "timeout": 600})
	if err == nil && status == http.StatusCreated {
		err = json.Unmarshal(text, &made)
	}
	if err != nil || made.ID == "" {
		return fmt.Errorf("create: %d %s, %w", status, text, err)
	}
	inside := map[string]string{"E2b-Sandbox-Id": made.ID, "E2b-Sandbox-Port": "49999", "X-Access-Token": made.Token}
	for _, step := range []string{"create and first run_code", "one more run_code"} {
		status, text, err := s.e2bRequest(ctx, "POST", "/execute", inside, map[string]any{"code": fmt.Sprintf("print(%d * 2)", number)})
		if err != nil || status != http.StatusOK || !strings.Contains(string(text), fmt.Sprintf(`"%d\n"`, number*2)) || !strings.Contains(string(text), "end_of_execution") {
			return fmt.Errorf("run_code: %d %s, %w", status, text, err)
		}
		m.add(step, time.Since(begun))
		begun = time.Now()
	}
	if status, text, err := s.e2bRequest(ctx, "DELETE", "/sandboxes/"+made.ID, key, nil); err != nil || status != http.StatusNoContent {
		return fmt.Errorf("kill: %d %s, %w", status, text, err)
	}
	return nil
}

// TestScaleE2BSandboxes has clients make and kill sandboxes at the same time: none of them has an error, and nothing is left.
func TestScaleE2BSandboxes(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t), "COVE_PACKAGES=standard")
	sandboxes := cycles(t, 12, 1000)
	clients := min(sandboxes/2, 50)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(sandboxes)*10*time.Second+patience)
	defer cancel()
	var m timings
	var next atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for range clients {
		all.Go(func() {
			for number := next.Add(1); number <= int64(sandboxes) && ctx.Err() == nil; number = next.Add(1) {
				if err := s.e2bSandbox(ctx, &m, int(number)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d sandboxes by %d clients in %s\n%s", sandboxes, clients, time.Since(start).Round(time.Second), m.table())
	s.noSessions()
	s.stop().ended(t, 0)
}
