package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cove/internal/http/api/apitest"
	"cove/internal/server/auth"
)

// server is a running `cove serve` with a folder of its own.
type server struct {
	*command
	base   string
	key    string
	log    *watched
	killed atomic.Bool
}

// firstKey is what the servers of tests are told to take for their first key. Its form is that of every key.
const firstKey = "COVE_FIRST_KEY"

// startServer starts `cove serve` on a folder (a new one when dir is "") and waits until it is ready. It ends with the test.
func startServer(t *testing.T, dir, key string, env ...string) *server {
	t.Helper()
	s := newServer(t, dir, key, env...)
	s.begin()
	return s
}

// startServerOf starts another cove's server than that of the tests'.
func startServerOf(t *testing.T, program, dir, key string, env ...string) *server {
	t.Helper()
	s := newServer(t, dir, key, env...)
	s.cmd.Path = program
	s.begin()
	return s
}

// startServerIn starts a server in a control group.
func startServerIn(t *testing.T, group, key string, env ...string) *server {
	t.Helper()
	s := newServer(t, "", key, env...)
	s.cmd.Args = append([]string{"sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group, s.cmd.Path}, s.cmd.Args[1:]...)
	s.cmd.Path = "/bin/sh"
	s.begin()
	return s
}

func newServer(t *testing.T, dir, key string, env ...string) *server {
	t.Helper()
	if dir == "" {
		dir = t.TempDir()
	}
	s := &server{command: newCommand(t, "serve", "--listen", "127.0.0.1:0"), key: key}
	s.setenv("COVE_SERVER_FOLDER="+filepath.Join(dir, "server"), "COVE_DATABASE="+filepath.Join(dir, "cove.db"), firstKey+"="+key,
		"COVE_POOL=1", "COVE_POOL_MOST=1") // what is kept ready is in vain when a test has few sessions
	s.setenv(env...)
	s.log = &s.stderr
	t.Cleanup(func() {
		if said := s.log.String(); t.Failed() {
			for line := range strings.Lines(said) {
				if strings.Contains(line, " level=ERROR ") {
					t.Logf("the server's log has %.2000s", line)
				}
			}
			lines := strings.SplitAfter(said, "\n")
			t.Logf("the server's log ends with\n%s", strings.Join(lines[max(0, len(lines)-40):], ""))
		}
	})
	return s
}

// begin starts the server and waits until it is ready. Its log has its address: the system chose the port.
func (s *server) begin() {
	t := s.t
	t.Helper()
	s.start()
	deadline := time.Now().Add(patience)
	for {
		var err error
		if said := serving.FindStringSubmatch(s.log.String()); said != nil {
			s.base = said[1]
			var response *http.Response
			if response, err = http.Get(s.base + "/api/v1/health"); err == nil {
				_ = response.Body.Close()
				if response.StatusCode == http.StatusOK {
					return
				}
			}
		}
		if time.Now().After(deadline) || syscall.Kill(s.cmd.Process.Pid, 0) != nil {
			t.Fatalf("the server does not get ready: %v\n%s%s", err, s.stdout.String(), s.stderr.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// serving is where the log has a server's address.
var serving = regexp.MustCompile(`msg=serving address=(http://[0-9.:]+)`)

// stop ends the server as an operator does, and checks that nothing is left.
func (s *server) stop() result {
	s.t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	return s.wait()
}

// kill ends the server as a machine that loses its power does, but for what the system keeps.
func (s *server) kill() {
	s.t.Helper()
	s.killed.Store(true)
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// reply is what a server answered.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		t.Errorf("%v in %s", err, r.body)
	}
}

// code is the code of the problem that an answer is.
func (r reply) code() string {
	var p struct{ Code string }
	_ = json.Unmarshal(r.body, &p)
	return p.Code
}

// request makes a request; body is nil, bytes or something that becomes JSON.
func (s *server) request(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var r io.Reader
	kind := "application/json"
	switch b := body.(type) {
	case nil:
	case []byte:
		r, kind = bytes.NewReader(b), "application/octet-stream"
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, r)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	return http.DefaultClient.Do(req)
}

// call makes a request and reads the whole answer.
func (s *server) call(ctx context.Context, method, path string, body any) (reply, error) {
	response, err := s.request(ctx, method, path, body)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil {
		s.described(method, path, response, text)
	}
	return reply{response.StatusCode, response.Header, text}, err
}

// described checks an answer against the document of the API.
func (s *server) described(method, target string, response *http.Response, body []byte) {
	if err := apitest.Check(method, target, response.StatusCode, response.Header, body); err != nil {
		s.t.Error(err)
	}
}

// must makes a request that has to succeed.
func (s *server) must(method, path string, body, into any) reply {
	s.t.Helper()
	r, err := s.call(s.t.Context(), method, path, body)
	if err != nil || r.status/100 != 2 {
		s.t.Fatalf("%s %s: %v, %d %s\n%s", method, path, err, r.status, r.body, s.log)
	}
	if into != nil {
		r.into(s.t, into)
	}
	return r
}

// event is an event of a stream of the server's.
type event struct {
	id, name string
	data     map[string]any
	at       time.Time
}

// events reads a stream until its end or until until returns true.
func events(body io.Reader, until func(event) bool) ([]event, error) {
	var all []event
	var now event
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		line := lines.Text()
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if now.data != nil {
				now.at = time.Now()
				all = append(all, now)
				if until != nil && until(now) {
					return all, nil
				}
			}
			now = event{}
		case field == "id":
			now.id = value
		case field == "event":
			now.name = value
		case field == "data":
			if err := json.Unmarshal([]byte(value), &now.data); err != nil {
				return all, fmt.Errorf("data of an event: %w: %s", err, value)
			}
		}
	}
	return all, lines.Err()
}

// session makes a session and returns its id.
func (s *server) session() string {
	s.t.Helper()
	var made struct{ ID string }
	s.must("POST", "/api/v1/sessions", map[string]any{}, &made)
	return made.ID
}

// execute runs code and returns the events.
func (s *server) execute(ctx context.Context, session, code string) ([]event, error) {
	response, err := s.request(ctx, "POST", "/api/v1/sessions/"+session+"/executions?stream=true", map[string]any{"code": code})
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(response.Body)
		return nil, fmt.Errorf("execute: %d %s", response.StatusCode, text)
	}
	return events(response.Body, nil)
}

// printed is what an execution wrote.
func printed(all []event) string {
	var text strings.Builder
	for _, e := range all {
		if e.data["type"] == "stream" {
			s, _ := e.data["text"].(string)
			text.WriteString(s)
		}
	}
	return text.String()
}

// outcome is how an execution ended: "" when its end is missing, an error when there is more than one.
func outcome(all []event) string {
	how := ""
	for _, e := range all {
		if e.data["type"] == "done" {
			if how != "" {
				return "two ends"
			}
			how = fmt.Sprint(e.data["outcome"])
		}
	}
	return how
}

// testKey is a key for one test: what a server takes for its first.
func testKey(*testing.T) string { return auth.NewText() }
