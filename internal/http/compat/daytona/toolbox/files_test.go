package toolbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// memory is a hub whose sandbox has files in memory, and nothing else.
type memory struct {
	Hub
	guestlink.Files
	files map[string][]byte
	short bool // files end before their size says
}

func (m *memory) UseFiles(ctx context.Context, who auth.Principal, _ string, u hub.FilesUse, use func(ctx context.Context, f guestlink.Files) error) error {
	right := auth.FilesRead
	if u.Action != "" {
		right = auth.FilesWrite
	}
	if err := who.Require(right); err != nil {
		return err
	}
	return use(ctx, m)
}

func (m *memory) StatPath(_ context.Context, path string, _ bool) (filesystem.Entry, error) {
	text, ok := m.files[path]
	switch {
	case path == "/home/user":
		return filesystem.Entry{Full: path, Kind: filesystem.Folder}, nil
	case !ok:
		return filesystem.Entry{}, problem.New(problem.FileNotFound, "there is no such file")
	}
	return filesystem.Entry{Full: path, Kind: filesystem.File, Size: int64(len(text)), Mode: 0o644}, nil
}

type content struct {
	io.Reader
	size int64
}

func (c content) Close() error { return nil }
func (c content) Whole() int64 { return c.size }
func (c content) Len() int64   { return c.size }

func (m *memory) OpenPath(_ context.Context, path string, _, _ int64) (guestlink.Reading, error) {
	text := m.files[path]
	size := int64(len(text))
	if m.short {
		text = text[:len(text)/2]
	}
	return content{bytes.NewReader(text), size}, nil
}

func (m *memory) WritePath(_ context.Context, path string, r io.Reader, _ filesystem.Set, _ bool) (filesystem.Entry, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return filesystem.Entry{}, err
	}
	m.files[path] = text
	return filesystem.Entry{Full: path, Size: int64(len(text))}, nil
}

// ask asks a toolbox on a memory.
func ask(t *testing.T, m *memory, method, path, kind string, body io.Reader) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "http://host/daytona/toolbox/id"+path, body)
	r.Header.Set("Content-Type", kind)
	r = r.WithContext(auth.With(r.Context(), auth.Local()))
	w := httptest.NewRecorder()
	New(Options{Hub: m}).Serve(w, r, Sandbox{Home: "/home/user", Work: "/home/user"}, r.URL.Path[len("/daytona/toolbox/id"):])
	return w
}

func TestUploads(t *testing.T) {
	t.Parallel()
	m := &memory{files: map[string][]byte{}}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, f := range [][2]string{
		{"files[0].path", "a/b.txt"}, {"files[0].file", "one"}, {"files[1].path", "/tmp/c"}, {"files[1].file", ""}, {"files[2].file", "of nobody"}, {"files[3].path", "/home/user"}, {"files[3].file", "x"}, {"other", "x"},
	} {
		part, err := form.CreateFormField(f[0])
		if err == nil {
			_, err = io.WriteString(part, f[1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	whole := body.String()
	w := ask(t, m, http.MethodPost, "/files/bulk-upload", form.FormDataContentType(), strings.NewReader(whole))
	var said struct {
		Errors []string
		Files  []uploaded
	}
	if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || w.Code != http.StatusBadRequest || len(said.Errors) != 3 || len(said.Files) != 2 || said.Files[0].Bytes != 3 {
		t.Errorf("%d %s %v", w.Code, w.Body, err)
	}
	if want := map[string][]byte{"/home/user/a/b.txt": []byte("one"), "/tmp/c": {}}; !reflect.DeepEqual(m.files, want) {
		t.Errorf("there are %q", m.files)
	}
	if w := ask(t, m, http.MethodPost, "/files/bulk-upload", form.FormDataContentType(), strings.NewReader(whole[:len(whole)-20])); w.Code != http.StatusBadRequest {
		t.Errorf("a form that does not come whole: %d %s", w.Code, w.Body)
	}
	if w := ask(t, m, http.MethodPost, "/files/upload-v2?path=raw", "application/octet-stream", strings.NewReader("bytes")); w.Code != http.StatusOK || string(m.files["/home/user/raw"]) != "bytes" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestDownloads(t *testing.T) {
	t.Parallel()
	const odd = `/tmp/a "b"` + "\\c"
	m := &memory{files: map[string][]byte{"/home/user/a": []byte("one"), odd: []byte("two"), "/home/user/empty": {}}}
	paths, err := json.Marshal(map[string]any{"paths": []string{"a", "none", odd, "empty"}})
	if err != nil {
		t.Fatal(err)
	}
	w := ask(t, m, http.MethodPost, "/files/bulk-download", "application/json", bytes.NewReader(paths))
	_, params, err := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	form, got := multipart.NewReader(w.Body, params["boundary"]), []string{}
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		_, names, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		if err != nil {
			t.Fatal(err)
		}
		if part.FormName() == "error" {
			var said struct{ Code string }
			if json.Unmarshal(text, &said) != nil {
				t.Errorf("%s", text)
			}
			text = []byte(said.Code)
		}
		got = append(got, part.FormName()+" "+names["filename"]+" "+string(text))
	}
	if want := []string{"file a one", "error none FILE_NOT_FOUND", "file " + odd + " two", "file empty "}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if w := ask(t, m, http.MethodGet, "/files/download?path=none", "", nil); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `"source":"DAYTONA_DAEMON"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestBrokenDownloads has files end early: an answer that looked whole would be taken for the file.
func TestBrokenDownloads(t *testing.T) {
	t.Parallel()
	m := &memory{files: map[string][]byte{"/home/user/a": []byte("one two")}, short: true}
	for _, one := range [][3]string{{http.MethodGet, "/files/download?path=a", ""}, {http.MethodPost, "/files/bulk-download", `{"paths":["a"]}`}} {
		func() {
			defer func() {
				if p := recover(); p != any(http.ErrAbortHandler) {
					t.Errorf("%s %s ended with %v", one[0], one[1], p)
				}
			}()
			w := ask(t, m, one[0], one[1], "application/json", strings.NewReader(one[2]))
			t.Errorf("%s %s was answered: %d %s", one[0], one[1], w.Code, w.Body)
		}()
	}
}

// TestRefusals has what is absent refused by name, and routes that a caller may not use.
func TestRefusals(t *testing.T) {
	t.Parallel()
	m := &memory{files: map[string][]byte{}}
	for _, c := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{http.MethodGet, "/computeruse/status", "", 503, "no desktop"},
		{http.MethodPost, "/nothing", "", 404, "cove does not have POST /nothing"},
		{http.MethodPost, "/process/code-run", `{"code":"1","language":"ruby"}`, 400, "ruby"},
		{http.MethodPost, "/process/code-run", `{"code":"1","language":"python","timeout":-1}`, 400, "negative"},
		{http.MethodPost, "/process/execute", `{"command":" "}`, 400, "nothing to run"},
		{http.MethodPost, "/process/execute", `{"command":"x","envs":{"a-b":"1"}}`, 400, "name of a variable"},
		{http.MethodPost, "/process/session", `{"sessionId":"../x"}`, 400, "sessionId"},
		{http.MethodPost, "/process/interpreter/context", `{"language":"r"}`, 400, "python"},
		{http.MethodDelete, "/process/interpreter/context/default", "", 400, "default"},
		{http.MethodPost, "/git/clone", `{"url":"--upload-pack=x","path":"p"}`, 400, "url"},
		{http.MethodPost, "/lsp/start", `{"languageId":"ruby","pathToProject":"p"}`, 400, "ruby"},
		{http.MethodPost, "/env", `{"set":{"A":"1"}}`, 501, "variables"},
		{http.MethodPost, "/files/permissions?path=x&mode=9", "", 400, "octal"},
	} {
		w := ask(t, m, c.method, c.path, "application/json", strings.NewReader(c.body))
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/files", nil)
	w := httptest.NewRecorder()
	New(Options{Hub: m}).Serve(w, r, Sandbox{}, "/files")
	if w.Code != http.StatusUnauthorized {
		t.Errorf("nobody's request: %d %s", w.Code, w.Body)
	}
}
