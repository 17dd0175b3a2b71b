package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cove/internal/http/api"
	"cove/internal/http/client"
	"cove/internal/llm/model/modeltest"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/server/hub"
	"cove/internal/testkit/testneeds"
)

// TestBatch has many cells and a question run in one request, by the client and by the command.
func TestBatch(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(sdkModel)
	s := startServer(t, "", testKey(t), "OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted", "COVE_KEY_EXECUTIONS=3")
	c := client.New(s.base, s.key)
	defer c.Close()
	// More at once than the key may run: those for which there is no room wait.
	what := api.NewBatch{AtOnce: 6, Items: []api.BatchItem{{Code: "import time\ntime.sleep(2)\nx = 1", Label: "slow"}, {Code: "1 / 0"}, {Code: "'x' in globals()"}, {Code: "import os\nos._exit(3)"},
		{Prompt: "compute"}, {Code: "print('é' * 2_000_000)"}, {Code: "6 * 7"}}}
	results, last, counts := map[int]api.BatchResult{}, -1, ""
	for body, err := range c.Batch(t.Context(), what) {
		if err != nil {
			t.Fatal(err)
		}
		var r api.BatchResult
		if err := json.Unmarshal(body, &r); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		switch r.Type {
		case "result":
			results[r.Index], last = r, r.Index
		case "end":
			counts = string(body)
		}
	}
	if counts != `{"type":"end","succeeded":5,"failed":2,"not_begun":0}` || len(results) != 7 {
		t.Fatalf("%s %+v", counts, results)
	}
	for n, want := range []hub.ExecutionState{"ok", "error", "ok", "kernel_died", "", "ok", "ok"} {
		if e := results[n].Execution; (e == nil) != (want == "") || e != nil && e.State != want {
			t.Errorf("item %d: %+v", n, e)
		}
	}
	if results[0].Label != "slow" || !strings.Contains(string(results[2].Execution.Events[0]), "False") || results[4].Turn.Answer != "The answer is 42." || !results[5].Execution.Cut && results[5].Execution.Dropped == 0 {
		t.Errorf("%+v, the last is %d", results, last)
	}
	r, err := s.call(t.Context(), http.MethodGet, "/api/v1/sessions", nil)
	var left api.List[api.Session]
	if r.into(t, &left); err != nil || len(left.Items) != 1 { // the question's
		t.Errorf("%v, sessions that are left: %s", err, r.body)
	}
	s.batchLeft()
	file := filepath.Join(t.TempDir(), "cells.jsonl")
	if err := os.WriteFile(file, []byte("{\"code\":\"x = 6\"}\n\n{\"code\":\"print(7)\",\"label\":\"seven\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), sandboxtest.Binary(t), "batch", file, "--server", s.base)
	cmd.Env = append(os.Environ(), "COVE_KEY="+s.key)
	if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "\n") != 2 || !strings.Contains(string(out), `"label":"seven","ok":true`) {
		t.Errorf("%v %s", err, out)
	}
	cmd = exec.CommandContext(t.Context(), sandboxtest.Binary(t), "batch", "-", "--server", s.base)
	cmd.Env, cmd.Stdin = append(os.Environ(), "COVE_KEY="+s.key), strings.NewReader(`{"cod":"1"}`)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "line 1") {
		t.Errorf("%v %s", err, out)
	}
}

// batchLeft leaves a batch: what has begun goes on, and nothing more begins.
func (s *server) batchLeft() {
	ctx, leave := context.WithCancel(s.t.Context())
	defer leave()
	answer, err := s.request(ctx, http.MethodPost, "/api/v1/batches", json.RawMessage(`{"at_once":1,"items":[{"code":"import time\ntime.sleep(1)\nprint('went on')"},{"code":"print('began')"}]}`))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	line, err := bufio.NewReader(answer.Body).ReadString('\n')
	var begun struct{ ID string }
	if json.Unmarshal([]byte(line), &begun) != nil || err != nil || begun.ID == "" {
		s.t.Fatalf("%v %q", err, line)
	}
	leave()
	c := client.New(s.base, s.key)
	defer c.Close()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		e, err := c.Execution(s.t.Context(), begun.ID)
		if err == nil && e.State.Final() {
			if e.State != "ok" {
				s.t.Errorf("%+v", e)
			}
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%v %+v", err, e)
		}
	}
	for e, err := range c.Executions(s.t.Context(), client.ExecutionFilter{}) {
		if err != nil || strings.Contains(e.Code, "began") {
			s.t.Errorf("%v, it has begun: %+v", err, e)
		}
	}
}
