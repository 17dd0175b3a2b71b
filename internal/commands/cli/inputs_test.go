package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/commands/cli"
	"cove/internal/llm/model"
	"cove/internal/llm/model/choose"
	"cove/internal/python/kernel"
)

func lay(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFoldersLeaveSecretsOut also wants what is left out to be said, and to be brought when it is named.
func TestFoldersLeaveSecretsOut(t *testing.T) {
	t.Parallel()
	const key = "-----BEGIN RSA PRIVATE KEY-----\nx\n"
	s := &scripted{events: []kernel.Event{ok()}}
	r := run(t, s, func(dir string, _ *cli.Program) {
		lay(t, dir, map[string]string{
			"d/a.csv": "1", "d/.env": "S=1", "d/.env.example": "S=", "d/.git/config": "x", "d/sub/.env.local": "S=2", "d/sub/b.csv": "2", "d/id_rsa": key, "d/id_rsa.pub": "p", "d/server.key": key, "d/slides.key": "slides", "d/ca.pem": "CERT", "d/.gitignore": "i",
		})
	}, "run", "-f", "$DIR/d", "-f", "$DIR/d/.env", "-c", "x")
	want := map[string]string{"d/a.csv": "1", "d/.env.example": "S=", "d/sub/b.csv": "2", "d/id_rsa.pub": "p", "d/slides.key": "slides", "d/ca.pem": "CERT", "d/.gitignore": "i", ".env": "S=1"}
	if fmt.Sprint(s.put) != fmt.Sprint(want) {
		t.Errorf("the workspace got %v, want %v", s.put, want)
	}
	for _, name := range []string{"left out", "/d/.env,", "/d/.git,", "id_rsa", "server.key", ".env.local"} {
		if !strings.Contains(r.err, name) {
			t.Errorf("stderr lacks %q: %s", name, r.err)
		}
	}
}

func TestOtherNamesInTheWorkspace(t *testing.T) {
	t.Parallel()
	s := &scripted{events: []kernel.Event{ok()}}
	run(t, s, func(dir string, _ *cli.Program) {
		lay(t, dir, map[string]string{"a.csv": "1", "e/a.csv": "2", "a:b.csv": "3"})
	}, "run", "-f", "$DIR/a.csv", "-f", "$DIR/e/a.csv:data/b.csv", "-f", "$DIR/e:f", "-f", "$DIR/a:b.csv", "-c", "x")
	if want := map[string]string{"a.csv": "1", "data/b.csv": "2", "f/a.csv": "2", "a:b.csv": "3"}; fmt.Sprint(s.put) != fmt.Sprint(want) {
		t.Errorf("the workspace got %v, want %v", s.put, want)
	}
	for _, name := range []string{"../x", "/x", "x/../../y"} {
		r := run(t, &scripted{}, func(dir string, _ *cli.Program) { lay(t, dir, map[string]string{"a.csv": "1"}) }, "run", "-f", "$DIR/a.csv:"+name, "-c", "x")
		if r.code != 125 || !strings.Contains(r.err, "no name in the workspace") {
			t.Errorf("%s: exit code %d, %s", name, r.code, r.err)
		}
	}
}

// TestFilesAmongTheWords is about patterns that a shell has put more than one file in the place of.
func TestFilesAmongTheWords(t *testing.T) {
	t.Parallel()
	asks := func(args ...string) (*scripted, result) {
		s := &scripted{events: []kernel.Event{ok()}}
		return s, run(t, s, func(dir string, p *cli.Program) {
			lay(t, dir, map[string]string{"a.csv": "1", "b.csv": "2", "c.csv": "3", "r": ""})
			p.NewModel = func(choose.Choice) (model.Model, error) {
				return model.NewReplay("replay", strings.NewReader(`{"parts": [{"text": "fine"}]}`), 0)
			}
		}, append([]string{"ask", "--model", "replay:$DIR/r"}, args...)...)
	}
	s, r := asks("-f", "$DIR/a.csv", "$DIR/b.csv", "$DIR/c.csv", "what is it?")
	if r.code != 0 || len(s.put) != 3 || !strings.Contains(r.err, "b.csv") || !strings.Contains(r.err, "as if -f were before each") {
		t.Errorf("exit code %d, %v, %s", r.code, s.put, r.err)
	}
	for _, args := range [][]string{{"$DIR/a.csv", "what is it?"}, {"-f", "$DIR/a.csv", "$DIR/b.csv"}} {
		if _, r := asks(args...); r.code != 125 || !strings.Contains(r.err, "is a file") {
			t.Errorf("%v: exit code %d, %s", args, r.code, r.err)
		}
	}
	if s, r := asks("what", "is", "it?"); r.code != 0 || len(s.put) != 0 {
		t.Errorf("exit code %d, %v", r.code, s.put)
	}
}

// TestFetchedFiles fetches from this machine, which has to be named, and refuses what leads elsewhere than it says.
func TestFetchedFiles(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/data/sales.csv", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a,b\n") })
	mux.HandleFunc("/gone.csv", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	mux.HandleFunc("/moved.csv", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/secrets.csv", http.StatusFound)
	})
	mux.HandleFunc("/round.csv", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round.csv", http.StatusFound) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	fetches := func(address string, args ...string) (*scripted, result) {
		s := &scripted{events: []kernel.Event{ok()}}
		return s, run(t, s, nil, append([]string{"run", "-c", "x", "-f", address}, args...)...)
	}
	s, r := fetches(server.URL+"/data/sales.csv?key=1", "--allow-net", host)
	if r.code != 0 || s.put["sales.csv"] != "a,b\n" {
		t.Errorf("exit code %d, %v, %s", r.code, s.put, r.err)
	}
	if s, r := fetches(server.URL+"/data/sales.csv:x.csv", "--allow-net", host); r.code != 0 || s.put["x.csv"] != "a,b\n" {
		t.Errorf("exit code %d, %v, %s", r.code, s.put, r.err)
	}
	for path, want := range map[string]string{"/gone.csv": "404", "/moved.csv": "169.254.169.254", "/round.csv": "more than 5 times"} {
		if _, r := fetches(server.URL+path, "--allow-net", host); r.code != 125 || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit code %d, %s", path, r.code, r.err)
		}
	}
	for _, address := range []string{server.URL + "/data/sales.csv", "http://localhost:" + host[strings.IndexByte(host, ':')+1:] + "/data/sales.csv", "http://[::1]/x.csv", "http://10.0.0.1/x.csv"} {
		if _, r := fetches(address); r.code != 125 || !strings.Contains(r.err, "cove: ") || strings.Contains(r.err, "saved") {
			t.Errorf("%s: exit code %d, %s", address, r.code, r.err)
		}
	}
}

func TestEnvironmentOfQuestions(t *testing.T) {
	t.Parallel()
	s := &scripted{inTurn: [][]kernel.Event{{ok()}}}
	r := run(t, s, func(dir string, p *cli.Program) {
		lay(t, dir, map[string]string{"r": ""})
		p.NewModel = func(choose.Choice) (model.Model, error) {
			return model.NewReplay("replay", strings.NewReader(`{"parts": [{"text": "fine"}]}`), 0)
		}
	}, "ask", "--model", "replay:$DIR/r", "--env", "YEAR=2025", "what is it?")
	if r.code != 0 || s.req.Environment["YEAR"] != "2025" {
		t.Errorf("exit code %d, %v, %s", r.code, s.req.Environment, r.err)
	}
}
