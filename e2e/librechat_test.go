package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cove/internal/testkit/testneeds"
)

// libreAnswer is an answer to an execution as LibreChat reads it.
type libreAnswer struct {
	Session        string `json:"session_id"`
	Stdout, Stderr string
	Code           int
	Message        *string
	Files          []struct {
		ID, Name string
		Storage  string `json:"storage_session_id"`
	}
}

// libre asks a server as LibreChat does.
func (s *server) libre(ctx context.Context, method, path, kind string, body []byte) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.base+"/librechat/"+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("X-API-Key", s.key)
	r.Header.Set("Content-Type", kind)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, text}, err
}

// libreExec has code run.
func (s *server) libreExec(body map[string]any) (a libreAnswer) {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := s.libre(s.t.Context(), "POST", "exec", "application/json", text)
	if err != nil || r.status != 200 {
		s.t.Fatalf("%v, %d %s", err, r.status, r.body)
	}
	r.into(s.t, &a)
	return a
}

// libreFile is a file that was uploaded.
type libreFile struct{ id, storage string }

func (f libreFile) input() map[string]any {
	return map[string]any{"id": f.id, "storage_session_id": f.storage, "name": "data.csv", "kind": "user"}
}

func (s *server) libreUpload(name, content string) libreFile {
	s.t.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("kind", "user")
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		_, err = io.WriteString(part, content)
	}
	if err != nil || w.Close() != nil {
		s.t.Fatal(err)
	}
	r, err := s.libre(s.t.Context(), "POST", "upload", w.FormDataContentType(), form.Bytes())
	var up struct {
		Message string
		Storage string `json:"storage_session_id"`
		Files   []struct{ FileID, Filename string }
	}
	if r.into(s.t, &up); err != nil || up.Message != "success" || len(up.Files) != 1 || up.Files[0].Filename != name {
		s.t.Fatalf("%v, %s", err, r.body)
	}
	return libreFile{up.Files[0].FileID, up.Storage}
}

// TestLibreChatSameName uploads a second file of a name, which code is to read from then on, also where both are sent; what code has changed meanwhile stays.
func TestLibreChatSameName(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	s := startServer(t, "", testKey(t))
	read := func(hint string, code string, files ...libreFile) string {
		inputs := []map[string]any{}
		for _, f := range files {
			inputs = append(inputs, f.input())
		}
		return s.libreExec(map[string]any{"lang": "py", "code": code + "\nprint(open('/mnt/data/data.csv').read())", "files": inputs, "runtime_session_hint": hint}).Stdout
	}
	first := s.libreUpload("data.csv", "1")
	if got := read("a", "", first); got != "1\n" {
		t.Errorf("the first: %q", got)
	}
	second := s.libreUpload("data.csv", "2222")
	if got := read("a", "", second); got != "2222\n" {
		t.Errorf("the second: %q", got)
	}
	if got := read("a", "open('/mnt/data/data.csv', 'w').write('changed')", first, second); got != "changed\n" {
		t.Errorf("changed by code: %q", got)
	}
	if got := read("a", "", first, second); got != "changed\n" {
		t.Errorf("sent again: %q", got)
	}
	if r, err := s.libre(t.Context(), "DELETE", "files/"+first.storage+"/"+first.id, "", nil); err != nil || r.status != 200 {
		t.Fatalf("%v, %d %s", err, r.status, r.body)
	}
	if got := read("a", "", first, second); got != "changed\n" {
		t.Errorf("sent again when the first upload was deleted: %q", got)
	}
	if got := read("a", "", first); got != "changed\n" {
		t.Errorf("the deleted upload alone, which the session has: %q", got)
	}
	first = s.libreUpload("data.csv", "1")
	second = s.libreUpload("data.csv", "2222")
	for hint, files := range map[string][]libreFile{"b": {first, second}, "c": {second, first}} {
		if got := read(hint, "", files...); got != "2222\n" {
			t.Errorf("both, in the conversation %s: %q", hint, got)
		}
	}
}

// TestLibreChat uploads a file, works with it in one conversation, and downloads what comes of it.
func TestLibreChat(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	s := startServer(t, "", testKey(t))
	up := s.libreUpload("data.csv", "a\n1\n2\n")
	input := []map[string]any{{"id": up.id, "storage_session_id": up.storage, "name": "data.csv", "kind": "user"}}
	a := s.libreExec(map[string]any{"lang": "py", "code": "text = open('/mnt/data/data.csv').read()\nopen('/mnt/data/out.txt', 'w').write(text * 2)\nprint(len(text))", "files": input, "runtime_session_hint": "one"})
	if a.Stdout != "6\n" || a.Code != 0 || len(a.Files) != 1 || a.Files[0].Name != "out.txt" {
		t.Fatalf("%+v", a)
	}
	for _, id := range []string{a.Session, a.Files[0].ID, up.storage, up.id} {
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{21}$`).MatchString(id) {
			t.Errorf("LibreChat does not take the id %q", id)
		}
	}
	object := a.Files[0].Storage + "/" + a.Files[0].ID
	if r, err := s.libre(t.Context(), "GET", "download/"+object, "", nil); err != nil || r.status != 200 || string(r.body) != "a\n1\n2\na\n1\n2\n" {
		t.Errorf("%v, %d %s", err, r.status, r.body)
	}
	if b := s.libreExec(map[string]any{"lang": "py", "code": "len(text)", "runtime_session_hint": "one"}); b.Stdout != "6\n" || b.Session != a.Session || len(b.Files) != 0 {
		t.Errorf("the next of the conversation: %+v", b)
	}
	if b := s.libreExec(map[string]any{"lang": "py", "code": "len(text)", "runtime_session_hint": "two"}); b.Code != 1 || !strings.Contains(b.Stderr, "NameError") || b.Session == a.Session {
		t.Errorf("another conversation: %+v", b)
	}
	if b := s.libreExec(map[string]any{"lang": "bash", "code": "cat out.txt | wc -l; echo $1 >&2; echo x > by.txt; exit 3", "args": []string{"arg"}, "session_id": a.Session}); b.Stdout != "6\n" || b.Stderr != "arg\n" || b.Code != 3 || len(b.Files) != 1 || b.Files[0].Name != "by.txt" {
		t.Errorf("bash: %+v", b)
	}
	if _, err := exec.LookPath("node"); err == nil {
		b := s.libreExec(map[string]any{"lang": "js", "code": "console.log(require('fs').readdirSync('.').join())", "files": []map[string]any{{"id": a.Files[0].ID, "storage_session_id": a.Files[0].Storage, "name": "copy.txt"}}})
		if b.Stdout != "copy.txt\n" || b.Code != 0 || b.Session == a.Session {
			t.Errorf("js, with a file of another session: %+v", b)
		}
	}
	sessions := make(chan string)
	for range 3 {
		go func() {
			r, err := s.libre(t.Context(), "POST", "exec", "application/json", []byte(`{"lang":"bash","code":"true","runtime_session_hint":"at once"}`))
			var b libreAnswer
			if r.into(t, &b); err != nil || r.status != 200 {
				t.Errorf("%v, %d %s", err, r.status, r.body)
			}
			sessions <- b.Session
		}()
	}
	if one, two, three := <-sessions, <-sessions, <-sessions; one != two || two != three {
		t.Errorf("the sessions of one conversation are %s, %s and %s", one, two, three)
	}
	if b := s.libreExec(map[string]any{"lang": "py", "code": "print('x' * 3_000_000)"}); len(b.Stdout) != 1<<20 || b.Message == nil {
		t.Errorf("3 MB of output: %d bytes, %v", len(b.Stdout), b.Message)
	}
	steps := "from IPython.display import Markdown, clear_output\nimport matplotlib.pyplot as plt\nfor step in range(25):\n    clear_output(wait=True)\n    plt.plot([step])\n    plt.show()\ndisplay(Markdown('# Answer is 42'))"
	if b := s.libreExec(map[string]any{"lang": "py", "code": steps}); len(b.Files) != 1 || b.Stdout != "# Answer is 42\n" {
		t.Errorf("a figure that is drawn anew 25 times: %+v", b)
	}
	for _, at := range []string{"files/" + object, "files/" + up.storage + "/" + up.id} {
		if r, err := s.libre(t.Context(), "DELETE", at, "", nil); err != nil || r.status != 200 {
			t.Errorf("%v, %d %s", err, r.status, r.body)
		}
		look := strings.Replace(strings.Replace(at, "files/", "sessions/", 1), "/"+at[len(at)-21:], "/objects/"+at[len(at)-21:], 1)
		if r, err := s.libre(t.Context(), "GET", look, "", nil); err != nil || r.status != 404 {
			t.Errorf("%s: %v, %d %s", look, err, r.status, r.body)
		}
	}
}

// TestLibreChatEndlessCode: the time limit ends code of each kind, and the session goes on.
func TestLibreChatEndlessCode(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	s := startServer(t, "", testKey(t), "COVE_TIMEOUT=4s")
	for lang, code := range map[string]string{"py": "while True: pass", "bash": "while true; do echo x; done"} {
		if a := s.libreExec(map[string]any{"lang": lang, "code": code, "runtime_session_hint": "one"}); a.Code == 0 || a.Message == nil {
			t.Errorf("%s: exit code %d, %v", lang, a.Code, a.Message)
		}
	}
	if a := s.libreExec(map[string]any{"lang": "bash", "code": "echo on", "runtime_session_hint": "one"}); a.Stdout != "on\n" {
		t.Errorf("%+v", a)
	}
}

// TestClientsLibreChat has LibreChat's own client, as it is published, run code, also code that calls LibreChat's tools.
func TestClientsLibreChat(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t))
	cmd := nodeSDK(t, filepath.Join("testdata", "sdk", "librechat"))
	cmd.Env = append(os.Environ(), "LIBRECHAT_CODE_BASEURL="+s.base+"/librechat", "LIBRECHAT_CODE_API_KEY="+s.key)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ok programmatic") {
		t.Errorf("%v\n%s\nthe server: %s", err, out, s.log)
	}
}
