package e2e_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/testkit/testneeds"
)

// TestDockerEngine has a server and commands run their sandboxes in containers of a Docker daemon: code, files and ports as everywhere, what cannot be is refused in words, and
// what is lost is told.
func TestDockerEngine(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	host := sandboxtest.Docker(t)
	env := []string{"COVE_ENGINE=docker", "COVE_DOCKER_RUNTIME=runc", "DOCKER_HOST=" + host, "COVE_POOL=1", "COVE_POOL_MOST=1"}
	dir := t.TempDir()
	s := startServer(t, dir, testKey(t), env...)
	if said := s.log.String(); !strings.Contains(said, "docker+runc shares this machine's kernel with code") {
		t.Errorf("the server does not say what isolates code:\n%s", said)
	}
	id := s.session()
	if got := s.says(id, "x = 42; open('made.txt', 'w').write('made'); print(x)"); got != "42\n" {
		t.Errorf("it says %q", got)
	}
	s.must("PUT", "/api/v1/sessions/"+id+"/files/sent.txt", []byte("sent"), nil)
	for _, path := range []string{"pause", "fork", "undo"} {
		r, err := s.call(t.Context(), "POST", "/api/v1/sessions/"+id+"/"+path, map[string]any{})
		if err != nil || r.status != 400 || !strings.Contains(string(r.body), `"code":"pause_unsupported"`) || !strings.Contains(string(r.body), "the engine docker cannot save sessions") {
			t.Errorf("%s: %v, %d %s", path, err, r.status, r.body)
		}
	}
	if got := s.says(id, "print(x, open('sent.txt').read())"); got != "42 sent\n" {
		t.Errorf("afterwards it says %q", got)
	}
	t.Run("a lost container", func(t *testing.T) {
		for _, name := range containers(t, host, s.runtime, "running") {
			dockerAPI(t, host, "POST", "/containers/"+name+"/kill")
		}
		var lost struct{ Events []map[string]any }
		for began := time.Now(); ; time.Sleep(100 * time.Millisecond) { // the server hears of the end a moment later
			s.must("POST", "/api/v1/sessions/"+id+"/executions?wait=true", map[string]any{"code": "print('x' in globals(), open('sent.txt').read())"}, &lost)
			if len(lost.Events) > 0 && lost.Events[0]["type"] == "rollback" || time.Since(began) > patience {
				break
			}
		}
		if len(lost.Events) < 2 || lost.Events[0]["type"] != "rollback" || lost.Events[1]["text"] != "False sent\n" {
			t.Errorf("events %v", lost.Events)
		}
	})
	s.stop().ended(t, 0)
	if left := containers(t, host, s.runtime); len(left) > 0 {
		t.Errorf("the server that has ended left %q", left)
	}
	s = startServer(t, dir, s.key, env...)
	var session struct{ State, Reason string }
	if s.must("GET", "/api/v1/sessions/"+id, nil, &session); session.State != "lost" || !strings.Contains(session.Reason, "cannot save") {
		t.Errorf("the next server has it as %+v", session)
	}
	if got := s.says(s.session(), "print(1)"); got != "1\n" {
		t.Errorf("a new session says %q", got)
	}
	s.kill()
	for began := time.Now(); len(containers(t, host, s.runtime, "running")) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal("the containers of a server that was killed run on")
		}
	}
}

// dockerAPI asks the Docker daemon at host, and returns its answer.
func dockerAPI(t *testing.T, host, method, path string) []byte {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", strings.TrimPrefix(host, "unix://"))
	}}}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://docker/v1.41"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s, %v: %s", method, path, response.Status, err, text)
	}
	return text
}

// containers lists those of a server, all or with a state.
func containers(t *testing.T, host, runtime string, state ...string) (ids []string) {
	t.Helper()
	path, err := filepath.EvalSymlinks(filepath.Join(runtime, "docker"))
	if err != nil {
		t.Fatal(err)
	}
	filter := map[string][]string{"label": {"cove.state=" + path}}
	if len(state) > 0 {
		filter["status"] = state
	}
	text, err := json.Marshal(filter)
	if err != nil {
		t.Fatal(err)
	}
	var found []struct{ ID string }
	if err := json.Unmarshal(dockerAPI(t, host, "GET", "/containers/json?all=1&filters="+url.QueryEscape(string(text))), &found); err != nil {
		t.Fatal(err)
	}
	for _, c := range found {
		ids = append(ids, c.ID)
	}
	return ids
}
