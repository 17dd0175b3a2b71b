package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
	"cove/tools/bench"
)

// playsServer says that this process is to be `cove serve`, and names the file for what it was asked.
const playsServer = "BENCH_TEST_SERVER"

func TestMain(m *testing.M) {
	if report := os.Getenv(playsServer); report != "" {
		os.Exit(playServer(report, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// played is a `cove serve` whose sessions know the benchmark's few programs.
type played struct {
	mu      sync.Mutex
	made    int
	live    map[string]bool
	refused int
}

func playServer(report string, args []string) int {
	if len(args) == 0 || args[0] != "serve" || os.Getenv("BENCH_TEST_SERVER_BROKEN") != "" {
		fmt.Fprintln(os.Stderr, "cove: the folder is in use")
		return 125
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	p := &played{live: map[string]bool{}}
	m := http.NewServeMux()
	m.HandleFunc("GET /api/v1/health", func(http.ResponseWriter, *http.Request) {})
	m.HandleFunc("POST /api/v1/sessions", p.create)
	m.HandleFunc("DELETE /api/v1/sessions/{id}", p.remove)
	m.HandleFunc("POST /api/v1/sessions/{id}/executions", p.execute)
	m.HandleFunc("POST /api/v1/turns", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"state":"completed","answer":"5"}`) })
	metrics := http.NewServeMux()
	metrics.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE cove_sandboxes_ready gauge\ncove_sandboxes_ready 3\n")
	})
	key := "Bearer " + os.Getenv("COVE_FIRST_KEY")
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != key {
			p.mu.Lock()
			p.refused++
			p.mu.Unlock()
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		m.ServeHTTP(w, r)
	})
	listen := ""
	for i, arg := range args[1:] {
		if arg == "--listen" {
			listen = args[i+2]
		}
	}
	failed := make(chan error, 2)
	go func() { failed <- http.ListenAndServe(listen, api) }()
	go func() { failed <- http.ListenAndServe(os.Getenv("COVE_METRICS_LISTEN"), metrics) }()
	fmt.Println(`{"level":"INFO","msg":"a line of the log"}`)
	fmt.Println(`{"type":"serving","sandboxes_kept_ready":3}`)
	select {
	case err := <-failed:
		fmt.Fprintln(os.Stderr, err)
		return 125
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("made %d, left %d, refused %d", p.made, len(p.live), p.refused)
	if err := os.WriteFile(report, []byte(text), 0o644); err != nil {
		return 125
	}
	return 0
}

func (p *played) create(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	id := fmt.Sprintf("ses_%d", p.made)
	p.live[id] = true
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"id":%q}`, id)
}

func (p *played) remove(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.live, r.PathValue("id"))
	w.WriteHeader(http.StatusNoContent)
}

func (p *played) execute(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Code string }
	p.mu.Lock()
	known := p.live[r.PathValue("id")]
	p.mu.Unlock()
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || !known {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	number := 0
	say := func(event map[string]any) {
		number++
		text, _ := json.Marshal(event)
		fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", number, event["type"], text)
	}
	fmt.Fprint(w, "retry: 1000\n\n: still here\n\n")
	switch {
	case strings.Contains(asked.Code, "time_ns"):
		for i := range 200 {
			line := fmt.Sprintf("%d %d\n", i, time.Now().UnixNano())
			say(map[string]any{"type": "stream", "name": "stdout", "text": line[:i%4]}) // lines need not come whole
			say(map[string]any{"type": "stream", "name": "stdout", "text": line[i%4:]})
		}
	case strings.HasSuffix(asked.Code, "1+1"):
		say(map[string]any{"type": "result", "count": 1, "data": map[string]string{"text/plain": "2"}})
	default:
		say(map[string]any{"type": "error", "name": "NameError", "value": asked.Code})
	}
	say(map[string]any{"type": "done", "outcome": "ok"})
}

// serverProgram is a program that is this test, and the file for what it was asked.
func serverProgram(t *testing.T, variables ...string) (program, report string) {
	t.Helper()
	dir := t.TempDir()
	program, report = filepath.Join(dir, "cove"), filepath.Join(dir, "report")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	variables = append(variables, playsServer+"="+report)
	script := fmt.Sprintf("#!/bin/sh\nexec env %s %s \"$@\"\n", strings.Join(variables, " "), own)
	testneeds.Program(t, program, script)
	return program, report
}

func TestEveryRowOfAServer(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	program, asked := serverProgram(t)
	data := t.TempDir()
	report, err := bench.Run(t.Context(), bench.Options{Data: data, Env: python(t), Cove: &fakeCove{t: t}, Command: program,
		Subjects: []string{"cove", "cove-serve"}, Rows: []string{"serve", "events", "create", "create-many"}, Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, row := range report.Rows {
		result := row.Results[0]
		got[row.ID] += result.Stats.N
		if result.Subject != "cove-serve" || len(row.Results) != 1 || len(result.Errors) > 0 || result.Ratio != 1 || result.Stats.Min <= 0 {
			t.Errorf("%s: %+v", row.ID, row.Results)
		}
	}
	want := map[string]int{"serve": 20, "events": 200, "create": 1, "create-import": 1, "create-many": 20, "create-many-import": 20}
	if !maps.Equal(got, want) {
		t.Errorf("samples %v, want %v", got, want)
	}
	// A round that counts and one that does not: 1 session each in three rows, 20 in the fourth.
	if text, err := os.ReadFile(asked); err != nil || string(text) != "made 46, left 0, refused 0" {
		t.Errorf("the server was asked for %q, %v", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(data, "bench", "run-*")); len(left) > 0 || report.CoveFailed() {
		t.Errorf("left behind: %v; cove failed: %v", left, report.CoveFailed())
	}
}

func TestAServerThatDoesNotStart(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	program, _ := serverProgram(t, "BENCH_TEST_SERVER_BROKEN=1")
	report, err := bench.Run(t.Context(), bench.Options{Data: t.TempDir(), Env: python(t), Command: program, Subjects: []string{"cove-serve"}, Rows: []string{"serve"}})
	if err != nil {
		t.Fatal(err)
	}
	if s := report.Subjects[0]; !strings.Contains(s.Absent, "the folder is in use") || !report.CoveFailed() {
		t.Errorf("%+v, cove failed %v", s, report.CoveFailed())
	}
}

func TestAServerGoesWithARunThatIsStopped(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	program, asked := serverProgram(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	report, err := bench.Run(ctx, bench.Options{Data: t.TempDir(), Env: python(t), Command: program, Subjects: []string{"cove-serve"},
		Rows: []string{"serve", "create"}, Rounds: 1, Progress: whenSaid{"[1/2]", stop}})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(asked); err != nil || !strings.HasSuffix(string(text), "left 0, refused 0") || report.Complete {
		t.Errorf("the server was asked for %q, %v; complete %v", text, err, report.Complete)
	}
}

// whenSaid calls do when text is written.
type whenSaid struct {
	text string
	do   func()
}

func (w whenSaid) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.text) {
		w.do()
	}
	return len(p), nil
}
