package e2e_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cove/internal/core/ident"
	"cove/internal/testkit/testneeds"
)

// raw makes a request whose address is sent as it is written.
func (s *server) raw(method, target, body string) reply {
	s.t.Helper()
	u, err := url.Parse(s.base)
	if err != nil {
		s.t.Fatal(err)
	}
	u.Opaque = target
	req := (&http.Request{Method: method, URL: u, Host: u.Host, Header: http.Header{"Authorization": {"Bearer " + s.key}}}).WithContext(s.t.Context())
	if body != "" {
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
	client := http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, target, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // a file that changes while it is sent ends too early
		s.t.Fatalf("%s %s: %v", method, target, err)
	}
	return reply{response.StatusCode, response.Header, text}
}

// says runs code in a session and returns what it printed.
func (s *server) says(session, code string) string {
	s.t.Helper()
	all, err := s.execute(s.t.Context(), session, code)
	if err != nil || outcome(all) != "ok" {
		s.t.Fatalf("%v %v", err, all)
	}
	return printed(all)
}

// outward are paths that lead out of a workspace to a file called NAME in /tmp, or would if they were read carelessly.
func outward() []string {
	return []string{
		"../../../../../../../../tmp/NAME", "..%2f..%2f..%2f..%2f..%2f..%2f..%2ftmp%2fNAME", "%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/tmp/NAME",
		"%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2ftmp%2fNAME", "a/../../../../../../../tmp/NAME", "a%2f..%2f..%2f..%2f..%2f..%2f..%2ftmp%2fNAME",
		"/tmp/NAME", "%2ftmp%2fNAME", "%2Ftmp/NAME", ".%2f%2ftmp%2fNAME", "..%00%2f..%2f..%2ftmp%2fNAME", "%2ftmp%2fNAME%00.csv", "out%2fNAME", "out/NAME",
		"out%2f..%2fNAME", "..%2f..%2fproc%2fself%2froot%2ftmp%2fNAME", "..", "%2e%2e", "%2e%2e%2f", "%00",
	}
}

// TestPathsStayInside sends every way out of a workspace that there is to every operation that takes a path. Neither the host nor the rest of the
// sandbox is read, written or deleted.
func TestPathsStayInside(t *testing.T) {
	t.Parallel()
	s := startServer(t, "", testKey(t), "COVE_REQUESTS_PER_SECOND=0", "COVE_POOL=1")
	session, name := s.session(), ident.New("x")
	at, canary := "/api/v1/sessions/"+session, "the canary "+name
	host := filepath.Join("/tmp", name)
	if err := os.WriteFile(host, []byte(canary), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(host) })
	var file struct{ ID string }
	s.must("POST", "/api/v1/files?name=f.csv", []byte("overwritten"), &file)
	s.says(session, fmt.Sprintf("import os\nopen('/tmp/%s', 'w').write(%q)\nos.symlink('/tmp', 'out')\nos.mkdir('a')\nopen('a/own.txt', 'w').write('own')", name, canary))
	for _, path := range outward() {
		path = strings.ReplaceAll(path, "NAME", name)
		plain, err := url.PathUnescape(path)
		if err != nil {
			t.Fatal(err)
		}
		quoted, _ := json.Marshal(plain)
		in := string(quoted)
		for _, r := range []struct{ method, target, body string }{
			{"GET", at + "/files/" + path, ""}, {"HEAD", at + "/files/" + path, ""}, {"PUT", at + "/files/" + path, "overwritten"},
			{"DELETE", at + "/files/" + path, ""}, {"DELETE", at + "/files/" + path + "?all=true", ""},
			{"GET", at + "/files?path=" + path, ""}, {"GET", at + "/stat?path=" + path, ""}, {"GET", at + "/archive?format=zip&path=" + path, ""},
			{"POST", at + "/move", `{"from":` + in + `,"to":"taken.txt"}`}, {"POST", at + "/move", `{"from":"a/own.txt","to":` + in + `}`},
			{"POST", at + "/folders", `{"path":` + in + `}`}, {"POST", at + "/files", `{"file":"` + file.ID + `","path":` + in + `}`},
		} {
			got := s.raw(r.method, r.target, r.body)
			if got.status < 300 || got.status >= 500 {
				t.Errorf("%s %s %s: %d %s", r.method, r.target, r.body, got.status, got.body)
			}
			if bytes.Contains(got.body, []byte("the canary")) {
				t.Errorf("%s %s %s reads what is outside: %s", r.method, r.target, r.body, got.body)
			}
		}
		cntr := "/v1/containers/cntr_" + ident.Body(session) + "/files/" + containerFile(plain)
		for _, r := range []reply{s.raw("GET", cntr, ""), s.raw("GET", cntr+"/content", ""), s.raw("DELETE", cntr, "")} {
			if r.status != http.StatusNotFound {
				t.Errorf("%q as a container's file: %d %s", plain, r.status, r.body)
			}
		}
	}
	if text, err := os.ReadFile(host); err != nil || string(text) != canary {
		t.Errorf("the host's file is %q now: %v", text, err)
	}
	if got := s.says(session, "print(open('/tmp/"+name+"').read(), sorted(os.listdir('.')), open('a/own.txt').read())"); got != canary+" ['a', 'out'] own\n" {
		t.Errorf("afterwards: %s", got)
	}
	s.stop().ended(t, 0)
}

// TestWorkspaceRootStays tries to delete or move the workspace itself.
func TestWorkspaceRootStays(t *testing.T) {
	t.Parallel()
	s := startServer(t, "", testKey(t), "COVE_POOL=1")
	session := s.session()
	at := "/api/v1/sessions/" + session
	s.must("PUT", at+"/files/own.txt", []byte("own"), nil)
	for _, path := range []string{"", ".", "%2e", "./", "%2f", "//", "%2e%2f", "own.txt%2f..", "own.txt/.."} {
		for _, all := range []string{"", "?all=true"} {
			if r := s.raw("DELETE", at+"/files/"+path+all, ""); r.status < 300 || r.status >= 500 {
				t.Errorf("DELETE %q%s: %d %s", path, all, r.status, r.body)
			}
		}
	}
	for _, path := range []string{".", "./", "own.txt/.."} {
		if r := s.raw("POST", at+"/move", `{"from":"`+path+`","to":"elsewhere"}`); r.status/100 != 4 {
			t.Errorf("move %q: %d %s", path, r.status, r.body)
		}
	}
	if got := s.raw("GET", at+"/files/own.txt", ""); string(got.body) != "own" {
		t.Errorf("the file is %d %s", got.status, got.body)
	}
	s.stop().ended(t, 0)
}

const odd = `
import os, socket
open('/tmp/outside.txt', 'w').write('outside')
for name, to in {'absolute': '/etc/passwd', 'relative': '../../etc/passwd', 'fd': '/proc/self/fd/0', 'environ': '/proc/self/environ', 'folder': '/etc',
                 'loop': 'loop', 'dangling': '/nowhere', 'outside': '/tmp/outside.txt', 'device': '/dev/zero'}.items():
    os.symlink(to, name)
os.mkfifo('pipe')
socket.socket(socket.AF_UNIX).bind('socket')
os.mkdir('d'); os.mkfifo('d/pipe'); os.symlink('/etc/passwd', 'd/link'); open('d/plain.txt', 'w').write('plain')
try: os.link('/etc/passwd', 'hard')
except OSError: pass
`

// TestOddFiles has code leave symlinks, pipes and sockets in the workspace. Nothing is followed, and nothing waits.
func TestOddFiles(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t), "COVE_REQUESTS_PER_SECOND=0", "COVE_POOL=1")
	session := s.session()
	at := "/api/v1/sessions/" + session
	s.says(session, odd)
	for _, name := range []string{"absolute", "relative", "fd", "environ", "folder/passwd", "folder", "loop", "dangling", "outside", "device", "pipe", "socket", "d/link", "d/pipe"} {
		for _, target := range []string{"/files/" + name, "/stat?path=" + name, "/files?path=" + name, "/archive?path=" + name} {
			if r := s.raw("GET", at+target, ""); r.status/100 != 4 || r.code() == "" || bytes.Contains(r.body, []byte("root:")) {
				t.Errorf("GET %s: %d %s", target, r.status, r.body)
			}
		}
		content := "/v1/containers/cntr_" + ident.Body(session) + "/files/" + containerFile(name) + "/content"
		if r := s.raw("GET", content, ""); r.status/100 != 4 || bytes.Contains(r.body, []byte("root:")) {
			t.Errorf("GET %s as a container's file: %d %s", name, r.status, r.body)
		}
	}
	for _, name := range []string{"outside", "pipe", "folder/written.txt", "dangling"} {
		r := s.raw("PUT", at+"/files/"+name, "overwritten")
		t.Logf("upload over %s: %d", name, r.status)
		if r.status >= 500 {
			t.Errorf("PUT %s: %d %s", name, r.status, r.body)
		}
	}
	archive := s.raw("GET", at+"/archive?format=zip", "")
	z, err := zip.NewReader(bytes.NewReader(archive.body), int64(len(archive.body)))
	if err != nil {
		t.Fatalf("%v: %s", err, archive.body)
	}
	var names []string
	for _, f := range z.File {
		if names = append(names, f.Name); !f.Mode().IsRegular() && !f.Mode().IsDir() {
			t.Errorf("%s is a %s in the archive", f.Name, f.Mode())
		}
	}
	if !slices.Contains(names, "d/plain.txt") || bytes.Contains(archive.body, []byte("root:")) {
		t.Errorf("the archive has %q", names)
	}
	if got := s.says(session, "print(open('/tmp/outside.txt').read(), os.path.exists('/etc/written.txt'), os.path.exists('/nowhere'))"); got != "outside False False\n" {
		t.Errorf("afterwards: %s", got)
	}
	s.race(session)
	s.stop().ended(t, 0)
}

// race downloads, uploads and lists while code swaps a file and a folder for symlinks that lead out.
func (s *server) race(session string) {
	s.t.Helper()
	at := "/api/v1/sessions/" + session
	var e struct{ ID string }
	s.must("POST", at+"/executions?background=true", map[string]any{"code": `
import os
os.makedirs('real', exist_ok=True); open('real/passwd', 'w').write('mine')
while not os.path.exists('enough'):
    for name, to in (('swap', '/etc/passwd'), ('swap', 'plain'), ('way', '/etc'), ('way', 'real')):
        open('plain', 'w').write('mine')
        os.symlink(to, 'new'); os.rename('new', name) if not os.path.isdir(name) or os.path.islink(name) else os.unlink('new')
        if to == 'plain':
            os.unlink('swap'); os.rename('plain', 'swap')
`}, &e)
	for range 60 {
		for _, r := range []reply{
			s.raw("GET", at+"/files/swap", ""), s.raw("GET", at+"/files/way/passwd", ""), s.raw("GET", at+"/archive?path=way&format=zip", ""), s.raw("GET", at+"/files?path=way", ""),
		} {
			if bytes.Contains(r.body, []byte("root:")) || r.status >= 500 && r.code() != "file_changing" {
				s.t.Errorf("%d %s", r.status, r.body)
			}
		}
	}
	s.must("PUT", at+"/files/enough", []byte("x"), nil)
	r := s.raw("GET", "/api/v1/executions/"+e.ID+"/events", "")
	if !bytes.Contains(r.body, []byte(`"outcome":"ok"`)) {
		s.t.Errorf("the swapping code: %s", r.body)
	}
}

// TestHostileNames lists and downloads files whose names are made to harm terminals, headers and pages.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := startServer(t, "", testKey(t), "COVE_REQUESTS_PER_SECOND=0", "COVE_POOL=1")
	session := s.session()
	at := "/api/v1/sessions/" + session
	names := []string{"new\nline.txt", "\x1b[31mred.txt", "cr\r\nSet-Cookie: a=b", "<img src=x onerror=alert(1)>.html", "-rf", "CON", `quo"te;a='b'.csv`, "\u202egnp.exe",
		strings.Repeat("x", 251) + ".svg", "page.html", "picture.svg", "script.js", "表.csv", "per%2fcent", "back\\slash", "q?a=b#c", " space ", "~", "pa+th"}
	list, _ := json.Marshal(names)
	s.says(session, "import json\nfor n in json.loads("+fmt.Sprintf("%q", list)+"): open(n, 'w').write('<script>alert(1)</script>')\nopen(b'bad\\xff.bin', 'w').write('x')")
	var folder struct {
		Items []struct{ Path string }
	}
	s.must("GET", at+"/files", nil, &folder)
	for _, name := range names {
		if !slices.ContainsFunc(folder.Items, func(i struct{ Path string }) bool { return i.Path == name }) {
			t.Logf("%q is not listed", name)
			continue
		}
		r := s.raw("GET", at+"/files/"+url.PathEscape(name), "")
		if r.status != http.StatusOK || string(r.body) != "<script>alert(1)</script>" {
			t.Errorf("%q: %d %s", name, r.status, r.body)
		}
		download(t, name, r)
		download(t, name+" as a container's file", s.raw("GET", "/v1/containers/cntr_"+ident.Body(session)+"/files/"+containerFile(name)+"/content", ""))
	}
	download(t, "the archive", s.raw("GET", at+"/archive?format=zip", ""))
	var stored struct{ ID string }
	s.must("POST", "/api/v1/files?name=page.html", []byte("<script>alert(1)</script>"), &stored)
	download(t, "a stored file", s.raw("GET", "/api/v1/files/"+stored.ID+"/content", ""))
	download(t, "OpenAI's file", s.raw("GET", "/v1/files/file-"+ident.Body(stored.ID)+"/content", ""))
	for _, name := range []string{"bad%ff.bin", strings.Repeat("y", 256), strings.Repeat("z/", 2000) + "z", "a%00b"} {
		if r := s.raw("PUT", at+"/files/"+name, "x"); r.status/100 != 4 {
			t.Errorf("upload as %.40q: %d %s", name, r.status, r.body)
		}
	}
	if log := s.log.String(); strings.ContainsAny(log, "\x1b\u202e") || strings.Contains(log, "onerror") {
		t.Error("the log shows a file's name")
	}
	s.stop().ended(t, 0)
}

// download checks that a browser saves what it gets, takes it for nothing else, and would run nothing in it.
func download(t *testing.T, name string, r reply) {
	t.Helper()
	h := r.header
	if r.status != http.StatusOK || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment;") || h.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || h.Get("Set-Cookie") != "" || len(h.Values("Content-Disposition")) != 1 {
		t.Errorf("%q comes with %d %v", name, r.status, h)
	}
	if strings.ContainsAny(h.Get("Content-Disposition"), "\r\n\x1b") {
		t.Errorf("%q comes as %q", name, h.Get("Content-Disposition"))
	}
}
