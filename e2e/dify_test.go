package e2e_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// difyAnswer is an answer as Dify reads it.
type difyAnswer struct {
	status  int
	Code    int
	Message string
	Data    struct {
		Stdout, Stderr, Error string
		ExitCode              int `json:"exit_code"`
		Dependencies          []struct{ Name, Version string }
	}
}

// dify asks a server as Dify does.
func (s *server) dify(ctx context.Context, key, method, path string, body any) (a difyAnswer, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, method, s.base+"/v1/sandbox/"+path, bytes.NewReader(text))
	if err != nil {
		return a, err
	}
	r.Header.Set("X-Api-Key", key)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return a, err
	}
	defer func() { _ = response.Body.Close() }()
	a.status = response.StatusCode
	if text, err = io.ReadAll(response.Body); err == nil {
		err = json.Unmarshal(text, &a)
	}
	return a, err
}

// difyRun has code run as a code node does; it asks for a network each time.
func (s *server) difyRun(language, code string) difyAnswer {
	s.t.Helper()
	a, err := s.dify(s.t.Context(), s.key, "POST", "run", map[string]any{"language": language, "code": code, "preload": "", "enable_network": true})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// noSessions waits until a server has no session.
func (s *server) noSessions() {
	s.t.Helper()
	s.sessionsAre(0)
}

// sessionsAre waits until a server has so many sessions.
func (s *server) sessionsAre(want int) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		var list struct{ Items []struct{ ID, State string } }
		s.must("GET", "/api/v1/sessions", nil, &list)
		if len(list.Items) == want {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the server has the sessions %+v", list.Items)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// difyPython is a code node's Python: a function of the user's, with its inputs, and the result between markers.
func difyPython(function, inputs string) string {
	return function + fmt.Sprintf(`
import base64, json
arguments = json.loads(base64.b64decode("%s").decode("utf-8"))
print(f"<<RESULT>>{json.dumps(main(**arguments), indent=4)}<<RESULT>>")
`, base64.StdEncoding.EncodeToString([]byte(inputs)))
}

// difyResult is what Dify takes for the result.
func difyResult(t *testing.T, a difyAnswer) (result map[string]any) {
	t.Helper()
	parts := strings.Split(a.Data.Stdout, "<<RESULT>>")
	if a.status != 200 || a.Code != 0 || a.Data.Error != "" || len(parts) != 3 {
		t.Fatalf("%+v", a)
	}
	if err := json.Unmarshal([]byte(parts[1]), &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// TestDify runs what code nodes run.
func TestDify(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	s := startServer(t, "", testKey(t))
	long := strings.Repeat("ü", 300_000)
	a := s.difyRun("python3", difyPython("def main(a: int, b: str) -> dict:\n    print('seen', a)\n    return {'sum': a + 1, 'b': b + '</b>', 'n': len(b)}", `{"a":41,"b":"`+long+`"}`))
	if r := difyResult(t, a); r["sum"] != 42.0 || r["b"] != long+"</b>" || r["n"] != 300_000.0 || !strings.HasPrefix(a.Data.Stdout, "seen 41\n<<RESULT>>{\n    \"sum\"") {
		t.Errorf("%.200v", a)
	}
	for name, c := range map[string]struct {
		code           string
		exit           int
		stdout, failed string // "": Error is empty
	}{
		"a warning":    {"import sys\nprint('careful', file=sys.stderr)\nprint('fine')", 0, "fine\n", ""},
		"an exception": {"print('before')\n1/0", 1, "before\n", "ZeroDivisionError"},
		"a mistake":    {"def main(:", 1, "", "SyntaxError"},
		"an exit code": {"import sys\nprint('x')\nsys.exit(3)", 3, "x\n", "exit code 3"},
		"a signal":     {"import os\nos.kill(os.getpid(), 9)", -1, "", "SIGKILL"},
		"no input":     {"input()", 1, "", "EOFError"},
		"no text":      {"import sys\nsys.stdout.buffer.write(b'\\x00\\xff\\xfe<\\xc3\\xbc>')", 0, "\x00\ufffd\ufffd<ü>", ""},
		"a child":      {"import subprocess\nsubprocess.Popen(['sleep', '10000'])\nprint('left it')", 0, "left it\n", ""},
		"a network":    {"import socket\nsocket.create_connection(('example.com', 80))", 1, "", "Programs have no network on this server"},
		"fresh":        {"import os, sys\nprint(os.listdir('.'), 'numpy' in sys.modules)", 0, "['main.py'] False\n", ""},
	} {
		a := s.difyRun("python3", c.code)
		if a.status != 200 || a.Code != 0 || a.Data.ExitCode != c.exit || a.Data.Stdout != c.stdout || (c.failed == "") != (a.Data.Error == "") || !strings.Contains(a.Data.Error, c.failed) {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if a := s.difyRun("python3", "print('x' * 10_000_000)"); a.status != 200 || a.Data.ExitCode != -1 || len(a.Data.Stdout) != 4<<20 || !strings.Contains(a.Data.Error, "printed more than") {
		t.Errorf("10 MB of output: %d, exit code %d, %d bytes, %q", a.status, a.Data.ExitCode, len(a.Data.Stdout), a.Data.Error)
	}
	if a, err := s.dify(t.Context(), testKey(t), "POST", "run", map[string]any{"language": "python3", "code": "1"}); err != nil || a.status != 401 || a.Code != -401 {
		t.Errorf("with a wrong key: %+v, %v", a, err)
	}
	if a := s.difyRun("ruby", "puts 1"); a.status != 400 || a.Code != -400 || !strings.Contains(a.Message, "ruby") {
		t.Errorf("another language: %+v", a)
	}
	a, err := s.dify(t.Context(), s.key, "GET", "dependencies?language=python3", nil)
	if err != nil || a.status != 200 || len(a.Data.Dependencies) == 0 || a.Data.Dependencies[0].Version == "" {
		t.Errorf("dependencies: %+v, %v", a, err)
	}
	s.noSessions()
}

// TestDifyNode runs JavaScript.
func TestDifyNode(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	s := startServer(t, "", testKey(t))
	code := `function main({a}) { return {sum: a + 1, by: require("os").platform()} }
console.log("<<RESULT>>" + JSON.stringify(main(JSON.parse(Buffer.from("eyJhIjo0MX0=", "base64").toString("utf-8")))) + "<<RESULT>>")`
	if _, err := exec.LookPath("node"); err != nil {
		if a := s.difyRun("nodejs", code); a.status != 200 || a.Code >= 0 || !strings.Contains(a.Message, "no Node.js") {
			t.Errorf("without Node.js: %+v", a)
		}
		return
	}
	if r := difyResult(t, s.difyRun("nodejs", code)); r["sum"] != 42.0 || r["by"] != "linux" {
		t.Errorf("%v", r)
	}
	if a := s.difyRun("nodejs", `throw new Error("no")`); a.Data.ExitCode != 1 || !strings.Contains(a.Data.Error, "Error: no") {
		t.Errorf("%+v", a)
	}
	s.noSessions()
}

// TestDifyEndlessProgram: the time limit of the server ends a program, and so does a client that leaves.
func TestDifyEndlessProgram(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	s := startServer(t, "", testKey(t), "COVE_TIMEOUT=2s")
	if a := s.difyRun("python3", "while True: pass"); a.status != 200 || a.Code != 0 || a.Data.ExitCode != -1 || !strings.HasPrefix(a.Data.Error, "timeout") {
		t.Errorf("%+v", a)
	}
	s.noSessions()
	s.stop()
	s = startServer(t, "", s.key)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := s.dify(ctx, s.key, "POST", "run", map[string]any{"language": "python3", "code": "while True: pass"})
		left <- err
	}()
	s.sessionsAre(1)
	leave()
	if err := <-left; err == nil {
		t.Error("the client that left got an answer")
	}
	s.noSessions()
}

// TestDifyNetwork: a program reaches what the server allows.
func TestDifyNetwork(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	in := newInner(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") }))
	s := startServer(t, "", testKey(t), "COVE_NETWORK_ALLOW="+strings.Join(in.rules, ","))
	code := "import urllib.request\nprint(urllib.request.urlopen('http://" + in.host + "').read())"
	if a := s.difyRun("python3", code); a.Data.Error != "" || a.Data.Stdout != "b'reached'\n" {
		t.Errorf("%+v", a)
	}
	a, err := s.dify(t.Context(), s.key, "POST", "run", map[string]any{"language": "python3", "code": code, "enable_network": false})
	if err != nil || a.Data.ExitCode != 1 || strings.Contains(a.Data.Stdout, "reached") {
		t.Errorf("a program that did not ask for a network: %+v, %v", a, err)
	}
	s.noSessions()
}
