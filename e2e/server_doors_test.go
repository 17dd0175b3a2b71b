package e2e_test

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// door is a way in which clients put a file, or make a folder, and how it is looked at later.
type door struct {
	method, path, body string
	header             []string
	look               string // the path of a GET
	lookHeader         []string
	want               string // what the answer to that has
}

const uploadForm = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"u.txt\"\r\n\r\nnew u\r\n--b--\r\n"

// doors are those of all surfaces. id is a native session with a file a.txt.
func doors(id string, m machines, token, key string) map[string]door {
	fs := "/api/v1/sessions/" + id + "/fs/"
	bearer := []string{"Authorization", "Bearer " + key}
	agent := []string{"E2b-Sandbox-Id", m.e2b, "E2b-Sandbox-Port", "49983", "X-Access-Token", token}
	form := func(h []string) []string {
		return append(slices.Clone(h), "Content-Type", "multipart/form-data; boundary=b")
	}
	tools := "/daytona/toolbox/" + m.daytona + "/toolbox/files"
	read := func(path string) string { return fs + "content?path=" + url.QueryEscape(path) }
	return map[string]door{
		"native, the workspace":          {"PUT", "/api/v1/sessions/" + id + "/files/w.txt", "new w", bearer, read("w.txt"), bearer, "new w"},
		"native, a file":                 {"PUT", fs + "content?path=f.txt", "new f", bearer, read("f.txt"), bearer, "new f"},
		"native, outside":                {"PUT", fs + "content?path=" + url.QueryEscape("/tmp/o/o.txt"), "new o", bearer, read("/tmp/o/o.txt"), bearer, "new o"},
		"native, a folder":               {"POST", fs + "folder", `{"path":"fd/deep"}`, bearer, fs + "stat?path=fd/deep", bearer, `"folder"`},
		"native, a copy":                 {"POST", fs + "copy", `{"from":"a.txt","to":"c.txt"}`, bearer, read("c.txt"), bearer, "old a"},
		"native, a replaced text":        {"POST", fs + "replace", `{"paths":["r.txt"],"text":"old","with":"new"}`, bearer, read("r.txt"), bearer, "new r"},
		"native, a move":                 {"POST", fs + "move", `{"from":"m.txt","to":"moved.txt"}`, bearer, read("moved.txt"), bearer, "old m"},
		"E2B, a file":                    {"POST", "/files?path=e.txt&username=user", strings.ReplaceAll(uploadForm, "new u", "new e"), form(agent), "/files?path=e.txt&username=user", agent, "new e"},
		"E2B, a folder":                  {"POST", "/filesystem.Filesystem/MakeDir", `{"path":"ed"}`, append(slices.Clone(agent), "Connect-Protocol-Version", "1"), "/api/v1/sessions/ses_" + m.e2b + "/fs/stat?path=ed", bearer, `"folder"`},
		"Daytona, a file":                {"POST", tools + "/upload?path=d.txt", strings.ReplaceAll(uploadForm, "new u", "new d"), form(bearer), tools + "/download?path=d.txt", bearer, "new d"},
		"Daytona, a folder":              {"POST", tools + "/folder?path=dd&mode=755", "", bearer, tools + "/info?path=dd", bearer, `"isDir":true`},
		"Jupyter, a notebook":            {"PUT", "/jupyter/api/contents/n.ipynb", `{"type":"notebook","format":"json","content":{"cells":[],"metadata":{"word":"new n"},"nbformat":4,"nbformat_minor":5}}`, bearer, "/jupyter/api/contents/n.ipynb", bearer, "new n"},
		"Jupyter, a file":                {"PUT", "/jupyter/api/contents/t.txt", `{"type":"file","format":"text","content":"new t"}`, bearer, "/jupyter/api/contents/t.txt", bearer, "new t"},
		"Jupyter, a folder":              {"PUT", "/jupyter/api/contents/jd", `{"type":"directory"}`, bearer, "/jupyter/api/contents/jd", bearer, `"directory"`},
		"Jupyter, a notebook saved anew": {"PUT", "/jupyter/api/contents/twice.ipynb", `{"type":"notebook","format":"json","content":{"cells":[],"metadata":{"word":"second"},"nbformat":4,"nbformat_minor":5}}`, bearer, "/jupyter/api/contents/twice.ipynb", bearer, "second"},
	}
}

// TestFilesOfEveryDoorOutliveAKill changes files by every surface, kills the server as soon as all was acknowledged, and finds everything on the next one.
func TestFilesOfEveryDoorOutliveAKill(t *testing.T) {
	t.Parallel()
	dir, key := t.TempDir(), testKey(t)
	s := startServer(t, dir, key, "COVE_PACKAGES=standard", "COVE_REQUESTS_PER_SECOND=0", "COVE_PROJECT_REQUESTS_PER_SECOND=0")
	w := &world{server: s, t: t}
	id := s.session()
	m := w.machines(key, id)
	for name, text := range map[string]string{"a.txt": "old a", "r.txt": "old r", "m.txt": "old m"} {
		s.must("PUT", "/api/v1/sessions/"+id+"/files/"+name, []byte(text), nil)
	}
	first := w.send("PUT", "/jupyter/api/contents/twice.ipynb", `{"type":"notebook","format":"json","content":{"cells":[],"metadata":{"word":"first"},"nbformat":4,"nbformat_minor":5}}`, "Authorization", "Bearer "+key)
	if first.status/100 != 2 {
		t.Fatalf("%d %s", first.status, first.body)
	}
	var box struct {
		Token string `json:"envdAccessToken"`
	}
	w.send("GET", "/sandboxes/"+m.e2b, "", "X-API-Key", key).into(t, &box)
	all := doors(id, m, box.Token, key)
	command := t.TempDir() + "/cli.txt"
	if err := os.WriteFile(command, []byte("new cli"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d := all[name]
		if r := w.send(d.method, d.path, d.body, d.header...); r.status/100 != 2 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
			delete(all, name)
		}
	}
	cp := newCommand(t, "session", "cp", command, id+":")
	cp.setenv("COVE_SERVER="+s.base, "COVE_KEY="+key)
	cp.run().ended(t, 0)
	all["cove session cp"] = door{look: "/api/v1/sessions/" + id + "/fs/content?path=" + filepath.Base(command), lookHeader: []string{"Authorization", "Bearer " + key}, want: "new cli"}
	s.kill()

	again := startServer(t, dir, key, "COVE_PACKAGES=standard", "COVE_REQUESTS_PER_SECOND=0", "COVE_PROJECT_REQUESTS_PER_SECOND=0")
	w.server = again
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d := all[name]
		r := w.send(http.MethodGet, d.look, "", d.lookHeader...)
		if !bytes.Contains(r.body, []byte(d.want)) {
			t.Errorf("%s: after the kill there is %d %.300s, want %s", name, r.status, r.body, d.want)
		}
	}
	if r := w.send(http.MethodGet, "/api/v1/sessions/"+id+"/fs/content?path=m.txt", "", "Authorization", "Bearer "+key); r.status != http.StatusNotFound {
		t.Errorf("a file that was moved is there: %d %s", r.status, r.body)
	}
	again.stop().ended(t, 0)
}

// TestE2BSaysARollback kills a server after a save and after more code: the first code that E2B's client runs after that is told what is gone.
func TestE2BSaysARollback(t *testing.T) {
	t.Parallel()
	dir, key := t.TempDir(), testKey(t)
	s := startServer(t, dir, key, "COVE_PACKAGES=standard")
	w := &world{server: s, t: t}
	made := w.send("POST", "/sandboxes", `{"templateID":"code-interpreter-v1","timeout":3600}`, "X-API-Key", key)
	var box struct {
		ID    string `json:"sandboxID"`
		Token string `json:"envdAccessToken"`
	}
	made.into(t, &box)
	run := func(code string) string {
		t.Helper()
		r := w.send("POST", "/execute", `{"code":"`+code+`"}`, "E2b-Sandbox-Id", box.ID, "E2b-Sandbox-Port", "49999", "X-Access-Token", box.Token)
		if r.status != http.StatusOK {
			t.Fatalf("%s: %d %s", code, r.status, r.body)
		}
		return string(r.body)
	}
	run("n = 1")
	s.until("the sandbox is saved", func() (string, bool) {
		var list struct {
			Items []struct {
				Saved string `json:"saved_at"`
			}
		}
		r := s.must("GET", "/api/v1/sessions", nil, &list)
		return string(r.body), len(list.Items) == 1 && list.Items[0].Saved != ""
	})
	run("n = 2")
	s.kill()
	w.server = startServer(t, dir, key, "COVE_PACKAGES=standard")
	if said := run("print(n)"); !strings.Contains(said, `1\n`) || !strings.Contains(said, "went back to its state of") {
		t.Errorf("the first code after the kill is told %s", said)
	}
	if said := run("print(n)"); strings.Contains(said, "went back to its state of") {
		t.Errorf("the one after that is told again: %s", said)
	}
	w.stop().ended(t, 0)
}
