package gemini_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cove/internal/http/compat/gemini"
	"cove/internal/http/protocol"
	"cove/internal/llm/model"
)

// send makes a request of an upload.
func send(t *testing.T, s *httptest.Server, address, command, offset, body string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"X-Goog-Upload-Protocol": "resumable", "X-Goog-Upload-Command": command, "X-Goog-Upload-Offset": offset, "X-Goog-Api-Key": "cove_key"} {
		req.Header.Set(name, value)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(text)
}

func TestUpload(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := serve(t, f)
	status, header, body := send(t, s, s.URL+"/gemini/upload/v1beta/files", "start", "", `{"file": {"display_name": "My table", "mimeType": "text/csv"}}`)
	to := header.Get("X-Goog-Upload-Url")
	if status != 200 || !strings.HasPrefix(to, s.URL+"/gemini/upload/v1beta/files?") || strings.Contains(to, "cove_key") {
		t.Fatalf("%d %v %s", status, header, body)
	}
	for range 2 { // a piece that comes twice counts once
		if status, header, body = send(t, s, to, "upload", "0", "a,b\n"); status != 200 || header.Get("X-Goog-Upload-Status") != "active" {
			t.Fatalf("%d %v %s", status, header, body)
		}
	}
	if status, _, body = send(t, s, to, "upload, finalize", "5", "1,2\n"); status != 400 {
		t.Errorf("behind a gap: %d %s", status, body)
	}
	if status, header, body = send(t, s, to, "upload, finalize", "4", "1,2\n"); status != 200 || header.Get("X-Goog-Upload-Status") != "final" {
		t.Fatalf("%d %v %s", status, header, body)
	}
	file := at(decoded(t, body), "file")
	name, uri := at(file, "name").(string), at(file, "uri").(string)
	if f.files["My table"] != "a,b\n1,2\n" || at(file, "displayName") != "My table" || at(file, "mimeType") != "text/csv" || at(file, "sizeBytes") != "8" || at(file, "state") != "ACTIVE" {
		t.Errorf("%s", body)
	}
	if _, list := ask(t, s, "GET", "/gemini/v1beta/files", ""); at(decoded(t, list), "files", 0, "name") != name || at(decoded(t, list), "files", 1) != nil {
		t.Errorf("%s", list)
	}
	content := `{"contents": [{"parts": [{"fileData": {"fileUri": "` + uri + `", "mimeType": "text/csv"}}, {"text": "Read it"}]}]`
	if status, body := ask(t, s, "POST", generate, content+`}`); !strings.Contains(wordsOf(f), "File My table:\na,b\n1,2\n") {
		t.Errorf("%d %s, the model gets %s", status, body, wordsOf(f))
	}
	if status, body := ask(t, s, "POST", generate, content+`, "tools": [{"codeExecution": {}}]}`); len(f.last(t).Files) != 1 || f.last(t).Names[f.last(t).Files[0]] != "input_file_0.csv" || !strings.Contains(wordsOf(f), "input_file_0.csv") {
		t.Errorf("%d %s %+v", status, body, f.last(t))
	}
	for range 2 {
		status, body = ask(t, s, "DELETE", "/gemini/v1beta/"+name, "")
	}
	if status != 404 || !strings.Contains(body, "NOT_FOUND") {
		t.Errorf("what is gone: %d %s", status, body)
	}
	if status, body := ask(t, s, "POST", generate, content+`}`); status != 404 {
		t.Errorf("a request with what is gone: %d %s", status, body)
	}
}

// wordsOf are the words of the last turn's input.
func wordsOf(f *fakeHub) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, m := range f.asked[len(f.asked)-1].Input {
		for _, c := range m.Content {
			if text, ok := c.(model.Text); ok {
				out = append(out, text.Text)
			}
		}
	}
	return strings.Join(out, "\n")
}

func TestUploadRefusals(t *testing.T) {
	t.Parallel()
	s := serve(t, newFake())
	start := s.URL + "/gemini/upload/v1beta/files"
	_, header, _ := send(t, s, start, "start", "", `{}`)
	to := header.Get("X-Goog-Upload-Url")
	other := "A" // than the letter that the address has there
	if to[len(to)-30] == 'A' {
		other = "B"
	}
	for name, c := range map[string]struct {
		address, command, offset, body string
		want                           int
	}{
		"multipart":  {start, "", "", `{}`, 400},
		"a name":     {start, "start", "", `{"file": {"name": "files/mine"}}`, 400},
		"forged":     {start + "?upload_id=AAAA", "upload, finalize", "0", "x", 404},
		"changed":    {to[:len(to)-30] + other + to[len(to)-29:], "upload, finalize", "0", "x", 404},
		"query":      {to, "query", "0", "", 400},
		"no offset":  {to, "upload, finalize", "", "x", 400},
		"not begun":  {to, "upload, finalize", "7", "x", 400},
		"far behind": {to, "upload, finalize", "99999999999999", "x", 400},
	} {
		if status, _, body := send(t, s, c.address, c.command, c.offset, c.body); status != c.want {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

// TestKeysOfUploads: the address of an upload brings the key with which it was begun, and no other address does.
func TestKeysOfUploads(t *testing.T) {
	t.Parallel()
	f := newFake()
	o := gemini.Options{Hub: f, Secret: []byte("of the server")}
	of := gemini.Surface(o)
	s := serveWith(t, of.Handler)
	_, header, _ := send(t, s, s.URL+"/gemini/upload/v1beta/files", "start", "", `{}`)
	to := header.Get("X-Goog-Upload-Url")
	key := func(of protocol.Surface, address string) string {
		return strings.Join(of.Keys(httptest.NewRequestWithContext(t.Context(), http.MethodPost, address, nil)), " ")
	}
	if got := key(of, to); got != "cove_key" {
		t.Errorf("%q", got)
	}
	if got := key(gemini.Surface(o), to); got != "cove_key" {
		t.Errorf("another server with the same secret: %q", got)
	}
	if got := key(gemini.Surface(gemini.Options{Hub: f, Secret: []byte("of another")}), to); got != "" {
		t.Errorf("another server: %q", got)
	}
	if got := key(of, strings.Replace(to, "/upload/v1beta/files", "/v1beta/models", 1)); got != "" {
		t.Errorf("another address: %q", got)
	}
}
