package e2e_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cove/internal/http/api"
	"cove/internal/testkit/testneeds"
)

// files are requests about the files of one session on a server.
type files struct {
	t       *testing.T
	s       *server
	session string
}

func (f files) at(what, path, more string) string {
	return "/api/v1/sessions/" + f.session + "/fs/" + what + "?path=" + url.QueryEscape(path) + more
}

// send makes a request with a header, and returns its answer with its body.
func (f files) send(method, target string, body io.Reader, header ...string) (answered, []byte) {
	f.t.Helper()
	request, err := http.NewRequestWithContext(f.t.Context(), method, f.s.base+target, body)
	if err != nil {
		f.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+f.s.key)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableCompression: true}}).Do(request)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return answered{answer.StatusCode, answer.Header}, text
}

// answered is what an answer says beside its body.
type answered struct {
	StatusCode int
	Header     http.Header
}

func (f files) wants(status int, method, target string, body io.Reader, part string) {
	f.t.Helper()
	if answer, text := f.send(method, target, body); answer.StatusCode != status || !strings.Contains(string(text), part) {
		f.t.Errorf("%s %s: %d %.300s, not %d %s", method, target, answer.StatusCode, text, status, part)
	}
}

// TestFileSystemOfASession writes, looks at and watches files of a session inside and outside the workspace, over a pause, a fork and the death of the server.
func TestFileSystemOfASession(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	s := startServer(t, dir, testKey(t))
	f := files{t, s, s.session()}
	var made api.FileEntry
	s.must(http.MethodPost, "/api/v1/sessions/"+f.session+"/fs/folder", map[string]any{"path": "/tmp/deep/er", "mode": "0711"}, &made)
	if made.Full != "/tmp/deep/er" || made.Symbolic != "drwx--x--x" || made.Owner != "user" {
		t.Errorf("made: %+v", made)
	}
	f.wants(201, http.MethodPut, f.at("content", "/tmp/deep/a.txt", "&mode=0600"), strings.NewReader("outside"), `"mode":"0600"`)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for n := range 20_000 {
		_, _ = fmt.Fprintf(z, "row %d of many\n", n)
	}
	_ = z.Close()
	answer, text := f.send(http.MethodPut, f.at("content", "data/rows.txt", ""), bytes.NewReader(packed.Bytes()), "Content-Encoding", "gzip")
	var written api.FileEntry
	if err := json.Unmarshal(text, &written); err != nil || answer.StatusCode != 201 || written.Size < 300_000 {
		t.Fatalf("written: %d %s", answer.StatusCode, text)
	}
	if got := s.says(f.session, "import os, stat\nprint(open('/tmp/deep/a.txt').read(), oct(os.stat('/tmp/deep/a.txt').st_mode), len(open('data/rows.txt').readlines()))"); got != "outside 0o100600 20000\n" {
		t.Errorf("code sees %q", got)
	}
	answer, text = f.send(http.MethodGet, f.at("content", "data/rows.txt", ""), nil, "Accept-Encoding", "gzip")
	if unpacked, err := gzip.NewReader(bytes.NewReader(text)); answer.Header.Get("Content-Encoding") != "gzip" || err != nil || int64(len(text)) > written.Size/2 {
		t.Errorf("compressed: %v %v, %d bytes", answer.Header, err, len(text))
	} else if all, err := io.ReadAll(unpacked); err != nil || int64(len(all)) != written.Size {
		t.Errorf("%d bytes, %v", len(all), err)
	}
	answer, text = f.send(http.MethodGet, f.at("content", "data/rows.txt", ""), nil, "Range", "bytes=4-7", "Accept-Encoding", "gzip")
	if answer.StatusCode != 206 || string(text) != "0 of" || answer.Header.Get("Etag") != written.ETag {
		t.Errorf("a range: %d %q, %v", answer.StatusCode, text, answer.Header)
	}
	if answer, _ := f.send(http.MethodGet, f.at("content", "data/rows.txt", ""), nil, "If-None-Match", written.ETag); answer.StatusCode != 304 {
		t.Errorf("what is there already: %d", answer.StatusCode)
	}
	f.wants(200, http.MethodGet, f.at("content", "/proc/version", ""), nil, "Linux")
	f.wants(200, http.MethodGet, f.at("search", "data", "&text=row+19999+"), nil, `"line":20000`)
	f.wants(200, http.MethodGet, f.at("list", "/tmp/deep", "&depth=2"), nil, `"full":"/tmp/deep/er"`)

	// What cannot be.
	s.says(f.session, "import os\nos.truncate(os.open('sparse', os.O_CREAT | os.O_RDWR), 1 << 50); os.symlink('/etc/passwd', 'users'); open('mine', 'w').close(); os.chmod('mine', 0)")
	if answer, _ := f.send(http.MethodPut, f.at("content", "data/rows.txt", ""), strings.NewReader("no gzip"), "Content-Encoding", "gzip"); answer.StatusCode != 400 {
		t.Errorf("no gzip: %d", answer.StatusCode)
	}
	for what, c := range map[string]struct {
		method, target string
		status         int
		code           string
	}{
		"a sparse pebibyte":     {http.MethodGet, f.at("content", "sparse", ""), 413, "file_too_large"},
		"an unreadable file":    {http.MethodGet, f.at("content", "/root/x", ""), 404, "file_not_found"},
		"a link that leads out": {http.MethodGet, f.at("content", "users", ""), 403, "file_denied"},
		"a mode forbids":        {http.MethodGet, f.at("content", "mine", ""), 403, "file_denied"},
		"a folder":              {http.MethodGet, f.at("content", "data", ""), 400, "is_folder"},
		"a system's folder":     {http.MethodPut, f.at("content", "/usr/x", ""), 403, "file_denied"},
		"a device":              {http.MethodGet, f.at("content", "/dev/zero", ""), 400, "invalid_path"},
		"a way out":             {http.MethodGet, f.at("stat", "../x", ""), 400, "invalid_path"},
		"nothing to look for":   {http.MethodGet, f.at("search", "", ""), 422, "invalid_request"},
		"an odd mode":           {http.MethodPut, f.at("content", "x", "&mode=99"), 422, "invalid_request"},
	} {
		answer, text := f.send(c.method, c.target, nil)
		if answer.StatusCode != c.status || !strings.Contains(string(text), c.code) {
			t.Errorf("%s: %d %.300s", what, answer.StatusCode, text)
		}
	}
	if answer, text := f.send(http.MethodGet, f.at("content", "sparse", ""), nil, "Range", "bytes=5-9"); answer.StatusCode != 206 || string(text) != "\x00\x00\x00\x00\x00" {
		t.Errorf("a part of it: %d %q", answer.StatusCode, text)
	}
	if answer, _ := f.send(http.MethodPut, f.at("content", "data/rows.txt", ""), bytes.NewReader(packed.Bytes()[:packed.Len()-20]), "Content-Encoding", "gzip"); answer.StatusCode != 400 {
		t.Errorf("half a gzip: %d", answer.StatusCode)
	}
	f.wants(200, http.MethodGet, f.at("stat", "data/rows.txt", ""), nil, fmt.Sprintf(`"size":%d`, written.Size))

	// An execution does not claim what a client has put there.
	events, err := s.execute(t.Context(), f.session, "open('own.txt', 'w').close()")
	if err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprint(events); !strings.Contains(all, "own.txt") || strings.Contains(all, "rows.txt") {
		t.Errorf("the execution says %s", all)
	}

	watch := f.watch("")
	s.says(f.session, "open('late.txt', 'w').write('x')")
	watch.until(t, `"path":"late.txt"`)
	s.must(http.MethodPost, "/api/v1/sessions/"+f.session+"/pause", nil, nil)
	watch.until(t, "session_taken")
	f.wants(200, http.MethodGet, f.at("content", "/tmp/deep/a.txt", ""), nil, "outside")
	var forked struct{ ID string }
	s.must(http.MethodPost, "/api/v1/sessions/"+f.session+"/fork", nil, &forked)
	other := files{t, s, forked.ID}
	other.wants(201, http.MethodPut, other.at("content", "/tmp/deep/a.txt", ""), strings.NewReader("fork's"), "")
	f.wants(200, http.MethodGet, f.at("content", "/tmp/deep/a.txt", ""), nil, "outside")
	s.must(http.MethodPost, "/api/v1/sessions/"+f.session+"/pause", nil, nil)
	s.kill()
	f.s = startServer(t, dir, s.key)
	f.wants(200, http.MethodGet, f.at("stat", "/tmp/deep/a.txt", ""), nil, `"mode":"0600"`)
	watch = f.watch("&all=true")
	f.wants(201, http.MethodPut, f.at("content", "new/er/file", ""), strings.NewReader("x"), "")
	watch.until(t, `"path":"new/er/file"`)
}

// watchStream is what a watch has told so far.
type watchStream struct {
	lines chan string
	told  []string
}

func (f files) watch(more string) *watchStream {
	f.t.Helper()
	request, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, f.s.base+f.at("watch", "", more), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+f.s.key)
	answer, err := http.DefaultClient.Do(request) //nolint:bodyclose // closed with its last line
	if err != nil || answer.StatusCode != http.StatusOK {
		f.t.Fatalf("watch: %v, %v", answer, err)
	}
	w := &watchStream{lines: make(chan string, 1000)}
	go func() {
		defer func() { _ = answer.Body.Close() }()
		defer close(w.lines)
		for scanner := bufio.NewScanner(answer.Body); scanner.Scan(); {
			w.lines <- scanner.Text()
		}
	}()
	return w
}

func (w *watchStream) until(t *testing.T, part string) {
	t.Helper()
	for over := time.After(patience); ; {
		select {
		case line, ok := <-w.lines:
			if w.told = append(w.told, line); strings.Contains(line, part) {
				return
			}
			if !ok {
				t.Fatalf("it told %q, and not %s", w.told, part)
			}
		case <-over:
			t.Fatalf("it told %q, and not %s", w.told, part)
		}
	}
}

// TestCopyFilesOfASession copies files into a session and out of it, here and on a server.
func TestCopyFilesOfASession(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	server := startServer(t, "", testKey(t))
	sessions := t.TempDir()
	for name, env := range map[string][]string{"here": {"COVE_SESSIONS=" + sessions}, "on a server": {"COVE_SERVER=" + server.base, "COVE_KEY=" + server.key}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			session := func(input string, args ...string) result {
				t.Helper()
				c := newCommand(t, append([]string{"session"}, args...)...)
				c.setenv(env...)
				c.cmd.Dir = dir
				c.cmd.Stdin = strings.NewReader(input)
				return c.run()
			}
			big := bytes.Repeat([]byte("0123456789abcdef"), 1<<19)
			for name, text := range map[string]string{"in/a.txt": "a", "in/deep/b.txt": "b", "big.bin": string(big)} {
				if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o640)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("a.txt", filepath.Join(dir, "in/link")); err != nil {
				t.Fatal(err)
			}
			r := session("", "cp", "in", "big.bin", "lab:")
			if r.ended(t, 0); !strings.Contains(r.stderr, "left out 1 link") {
				t.Errorf("it said %s", r.stderr)
			}
			session("piped", "cp", "-", "lab:/tmp/piped").ended(t, 0)
			session("", "cp", "in/a.txt", "lab:in/new.txt").ended(t, 0)
			r = session("", "exec", "lab", "--", "bash", "-c", "ln -s /etc in/etc; ls -l big.bin | cut -c1-10; cat in/a.txt in/deep/b.txt in/new.txt /tmp/piped; mkdir empty; echo mine > 'in/odd\nname'")
			if r.ended(t, 0); r.stdout != "-rw-r-----\nabapiped" {
				t.Errorf("in the session: %q", r.stdout)
			}
			r = session("", "cp", "lab:in", "lab:big.bin", "lab:empty", "out/")
			if r.ended(t, 0); !strings.Contains(r.stderr, "in/etc") {
				t.Errorf("it said %s", r.stderr)
			}
			var found []string
			_ = filepath.WalkDir(filepath.Join(dir, "out"), func(p string, _ fs.DirEntry, err error) error {
				found = append(found, strings.TrimPrefix(p, dir))
				return err
			})
			if want := "[/out /out/big.bin /out/empty /out/in /out/in/a.txt /out/in/deep /out/in/deep/b.txt /out/in/new.txt /out/in/odd\nname]"; fmt.Sprint(found) != want {
				t.Errorf("copied: %q", found)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "out/big.bin")); err != nil || !bytes.Equal(got, big) {
				t.Errorf("%d bytes came back, %v", len(got), err)
			}
			if r = session("", "cp", "lab:/tmp/piped", "-"); r.stdout != "piped" {
				t.Errorf("printed: %+v", r)
			}
			r = session("", "cp", "--json", "lab:in/a.txt", "again.txt")
			if r.ended(t, 0); r.stdout != `{"bytes":1,"from":"in/a.txt","to":"again.txt"}`+"\n" {
				t.Errorf("as JSON: %s", r.stdout)
			}
			for what, args := range map[string][]string{"in the session": {"lab:none", "."}, "one side": {"a", "b"}, "does not exist": {"none", "lab:"}, "and where to": {"lab:x"}, "name of a file": {"-", "lab:"}, "permission": {"big.bin", "lab:/usr/bin/"}} {
				if r := session("", append([]string{"cp"}, args...)...); r.code == 0 || what != "in the session" && !strings.Contains(r.stderr, what) || strings.Contains(r.stderr, ".part-") {
					t.Errorf("%s: %+v", what, r)
				}
			}
			leftovers, _ := filepath.Glob(filepath.Join(dir, ".cove-*"))
			if len(leftovers) > 0 {
				t.Errorf("left behind: %v", leftovers)
			}
		})
	}
}
