package jupyter_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// disk is a workspace in memory: files by their paths, folders with nil.
type disk struct {
	guestlink.Files
	all map[string][]byte
}

func gone() error { return problem.New(problem.FileNotFound, "there is no such file") }

func (d *disk) entry(p string) filesystem.Entry {
	text := d.all[p]
	e := filesystem.Entry{Path: p, Full: path.Join("/home/user", p), Kind: filesystem.File, Size: int64(len(text)), Modified: start, Changed: start}
	if text == nil {
		e.Kind = filesystem.Folder
	}
	return e
}

func (d *disk) StatPath(_ context.Context, p string, _ bool) (filesystem.Entry, error) {
	if _, ok := d.all[p]; !ok && p != "." {
		return filesystem.Entry{}, gone()
	}
	return d.entry(p), nil
}

func (d *disk) ListPath(_ context.Context, p string, _ int) (all []filesystem.Entry, more bool, unnamed int64, err error) {
	for _, name := range slices.Sorted(maps.Keys(d.all)) {
		if path.Dir(name) == p {
			all = append(all, d.entry(name))
		}
	}
	return all, false, 0, nil
}

type reading struct {
	*bytes.Reader
}

func (r reading) Close() error { return nil }
func (r reading) Whole() int64 { return r.Size() }
func (r reading) Len() int64   { return int64(r.Reader.Len()) }

func (d *disk) OpenPath(_ context.Context, p string, _, _ int64) (guestlink.Reading, error) {
	if d.all[p] == nil {
		return nil, gone()
	}
	return reading{bytes.NewReader(d.all[p])}, nil
}

func (d *disk) put(p string, text []byte, fresh bool) (filesystem.Entry, error) {
	if _, there := d.all[p]; there && fresh {
		return filesystem.Entry{}, problem.New(problem.FileExists, "it is there")
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		d.all[dir] = nil
	}
	d.all[p] = text
	return d.entry(p), nil
}

func (d *disk) WritePath(_ context.Context, p string, r io.Reader, _ filesystem.Set, fresh bool) (filesystem.Entry, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return filesystem.Entry{}, err
	}
	return d.put(p, append([]byte{}, text...), fresh)
}

func (d *disk) MakePath(_ context.Context, p string, _ filesystem.Set, fresh bool) (filesystem.Entry, error) {
	return d.put(p, nil, fresh)
}

func (d *disk) CopyPath(_ context.Context, c filesystem.Copy) (filesystem.Entry, error) {
	if _, there := d.all[c.From]; !there {
		return filesystem.Entry{}, gone()
	}
	return d.put(c.To, d.all[c.From], !c.Replace)
}

func (d *disk) MovePath(ctx context.Context, c filesystem.Copy) (filesystem.Entry, error) {
	e, err := d.CopyPath(ctx, c)
	if err == nil {
		delete(d.all, c.From)
	}
	return e, err
}

func (d *disk) RemovePath(_ context.Context, p string, _ bool) error {
	if _, there := d.all[p]; !there {
		return gone()
	}
	maps.DeleteFunc(d.all, func(name string, _ []byte) bool { return name == p || strings.HasPrefix(name, p+"/") })
	return nil
}

func (f *fakeHub) UseFiles(ctx context.Context, who auth.Principal, session string, u hub.FilesUse, use func(context.Context, guestlink.Files) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sessions[session] == nil {
		return problem.New(problem.SessionNotFound, "there is no such session")
	}
	if u.Action != "" && who.Require(auth.FilesWrite) != nil {
		return who.Require(auth.FilesWrite)
	}
	return use(ctx, &disk{all: f.disk})
}

func (f *fakeHub) StartKernel(_ context.Context, _ auth.Principal, _, name string) (hub.Kernel, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kernels = append(f.kernels, name)
	return hub.Kernel{Name: name}, nil
}

func (f *fakeHub) StopKernel(_ context.Context, _ auth.Principal, _, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kernels = slices.DeleteFunc(f.kernels, func(n string) bool { return n == name })
	return nil
}

func (f *fakeHub) CheckProgram(context.Context, auth.Principal, string) error { return nil }

func (f *fakeHub) StartProcess(_ context.Context, _ auth.Principal, _ string, start process.Start) (process.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := process.Info{ID: fmt.Sprint(len(f.processes)), Label: start.Label, Terminal: start.Terminal, Dir: start.Dir}
	f.processes = append(f.processes, p)
	return p, nil
}

func (f *fakeHub) Processes(context.Context, auth.Principal, string) ([]process.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.processes), nil
}

// TellProcess has the fake shell say what it is told, and end at "exit".
func (f *fakeHub) TellProcess(_ context.Context, _ auth.Principal, _, _ string, r io.Reader, _ bool) (int64, error) {
	text, err := io.ReadAll(r)
	f.typed <- string(text)
	return int64(len(text)), err
}

func (f *fakeHub) ResizeProcess(_ context.Context, _ auth.Principal, _, _ string, size process.Size) error {
	f.typed <- fmt.Sprintf("size %d %d", size.Rows, size.Columns)
	return nil
}

func (f *fakeHub) SignalProcess(_ context.Context, _ auth.Principal, _, id, _ string, _ bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes = slices.DeleteFunc(f.processes, func(p process.Info) bool { return p.ID == id })
	return nil
}

func (f *fakeHub) FollowProcess(ctx context.Context, _ auth.Principal, _, _ string, _ int64) (iter.Seq2[process.Event, error], error) {
	return func(yield func(process.Event, error) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case text := <-f.typed:
				if text == "exit" {
					yield(process.Event{Kind: process.Ended, Exit: &process.Exit{}}, nil)
					return
				}
				for _, b := range []byte(text) { // characters come in pieces
					if !yield(process.Event{Kind: process.Terminal, Data: []byte{b}}, nil) {
						return
					}
				}
			}
		}
	}, nil
}

// contents asks the Contents API, and returns what is said and its status.
func (g *rig) contents(method, at, body string) (int, map[string]any) {
	g.t.Helper()
	mark := "?"
	if strings.Contains(at, "?") {
		mark = "&"
	}
	status, _, v := g.ask(method, "/api/contents"+at+mark+"token=annskey", body)
	m, _ := v.(map[string]any)
	return status, m
}

func TestContents(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	if status, m := g.contents("GET", "?content=1", ""); status != 200 || fmt.Sprint(m["content"]) != "[]" || len(g.sessions) != 0 {
		t.Errorf("without a personal session: %d %v, sessions %v", status, m, g.sessions)
	}
	for _, c := range []struct {
		method, at, body string
		status           int
		want             string // in what is said
	}{
		{"GET", "/a.txt", "", 404, ""},
		{"PUT", "/a.txt", `{"type":"file","format":"text","content":"ünicode"}`, 201, `"path":"a.txt"`},
		{"PUT", "/a.txt", `{"type":"file","format":"text","content":"two"}`, 200, `"size":3`},
		{"GET", "/a.txt?hash=1", "", 200, `"content":"two"`},
		{"GET", "/a.txt?content=0", "", 200, `"content":null`},
		{"GET", "/a.txt?type=directory", "", 400, "is not a directory"},
		{"GET", "/a.txt?format=base64", "", 200, `"content":"dHdv"`},
		{"GET", "/a.txt?format=odd", "", 400, "invalid"},
		{"PUT", "/d/b.bin", `{"type":"file","format":"base64","content":"/w=="}`, 201, ""},
		{"GET", "/d/b.bin?format=text", "", 400, "UTF-8"},
		{"GET", "/d?content=1", "", 200, `"name":"b.bin"`},
		{"PUT", "/d/c.bin", `{"type":"file","format":"base64","content":"*"}`, 400, "base64"},
		{"PUT", "/d/c.bin", `{"type":"file","content":"x"}`, 400, "format"},
		{"PUT", "/.hidden", `{"type":"file","format":"text","content":"x"}`, 400, "Cannot"},
		{"PUT", "/x/.hidden/y", `{"type":"directory"}`, 400, "Cannot"},
		{"GET", "/.hidden", "", 404, ""},
		{"GET", "/x/..%2F..%2Fetc", "", 400, ""},
		{"POST", "", `{"type":"notebook"}`, 201, `"path":"Untitled.ipynb"`},
		{"POST", "", `{"ext":".ipynb"}`, 201, `"path":"Untitled1.ipynb"`},
		{"POST", "/d", `{"type":"directory"}`, 201, `"path":"d/Untitled Folder"`},
		{"POST", "/d", `{"copy_from":"a.txt"}`, 201, `"path":"d/a.txt"`},
		{"POST", "", `{"copy_from":"a.txt"}`, 201, `"path":"a-Copy1.txt"`},
		{"POST", "/a.txt", `{"type":"file"}`, 400, "not a directory"},
		{"PUT", "/n.ipynb", `{"type":"notebook","content":{"cells":[],"metadata":{},"nbformat":3}}`, 400, "version 4"},
		{"PUT", "/n.ipynb", `{"type":"notebook","content":{"cells":[{"cell_type":"code","source":["a\n","b"],"metadata":{},"outputs":[{"data":{"text/plain":["c","d"],"application/json":["e"]}}]}],"metadata":{},"nbformat":4}}`, 201, ""},
		{"GET", "/n.ipynb", "", 200, `"outputs":[{"data":{"application/json":["e"],"text/plain":"cd"}}],"source":"a\nb"`},
		{"GET", "/n.ipynb/checkpoints", "", 200, ""},
		{"POST", "/n.ipynb/checkpoints", "", 201, `"id":"checkpoint"`},
		{"PATCH", "/n.ipynb", `{"path":"d/m.ipynb"}`, 200, `"path":"d/m.ipynb"`},
		{"PATCH", "/d/m.ipynb", `{"path":"a.txt"}`, 409, ""},
		{"PATCH", "/d/m.ipynb", `{"path":".m"}`, 400, ""},
		{"POST", "/d/m.ipynb/checkpoints/checkpoint", "", 204, ""},
		{"DELETE", "/d/m.ipynb/checkpoints/checkpoint", "", 204, ""},
		{"DELETE", "/d/m.ipynb/checkpoints/checkpoint", "", 404, ""},
		{"POST", "/d/m.ipynb/trust", "", 201, ""},
		{"DELETE", "", "", 405, ""},
		{"DELETE", "/d", "", 204, ""},
		{"GET", "/d", "", 404, ""},
	} {
		status, m := g.contents(c.method, c.at, c.body)
		text, _ := json.Marshal(m)
		if status != c.status || !strings.Contains(string(text), c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.at, status, text)
		}
	}
	if status, _, _ := g.ask("PUT", "/api/contents/a.txt?token=viewer", `{"type":"file","format":"text","content":"x"}`); status != 403 {
		t.Errorf("a viewer writes: %d", status)
	}
	if status, m := g.contents("PUT", "/large", `{"type":"file","format":"text","content":"`+strings.Repeat("x", 33<<20)+`"}`); status != 413 || m["reason"] != "body_too_large" {
		t.Errorf("too much: %d %v", status, m)
	}
	if len(g.sessions) != 1 {
		t.Errorf("there are %d sessions", len(g.sessions))
	}
}

// TestChunks: a file comes in pieces, and is there when the last one is.
func TestChunks(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for n, text := range []string{"left behind", "one ", "two ", "three"} {
		chunk := []int{1, 1, 2, -1}[n]
		status, m := g.contents("PUT", "/d/big.bin", fmt.Sprintf(`{"type":"file","format":"base64","chunk":%d,"content":%q}`, chunk, base64.StdEncoding.EncodeToString([]byte(text))))
		if status >= 300 || m["path"] != "d/big.bin" {
			t.Fatalf("chunk %d: %d %v", chunk, status, m)
		}
	}
	if got := string(g.disk["d/big.bin"]); got != "one two three" {
		t.Errorf("the file is %q", got)
	}
	for name := range g.disk {
		if strings.Contains(name, "cove-upload") {
			t.Errorf("%s is left", name)
		}
	}
	for _, body := range []string{`{"type":"notebook","chunk":1,"content":"x"}`, `{"type":"file","format":"text","chunk":0,"content":"x"}`, `{"type":"file","format":"text","chunk":100000,"content":"x"}`} {
		if status, m := g.contents("PUT", "/x", body); status != 400 {
			t.Errorf("%s: %d %v", body, status, m)
		}
	}
}

// TestPersonalSession: documents have kernels in their user's personal session, which others have no part in.
func TestPersonalSession(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	made := func(path string) (session, kernel string) {
		status, _, v := g.ask("POST", "/api/sessions?token=annskey", `{"path":"`+path+`","type":"notebook","kernel":{"name":"python3"}}`)
		m, _ := v.(map[string]any)
		if status != http.StatusCreated {
			t.Fatalf("%d %v", status, v)
		}
		return m["id"].(string), m["kernel"].(map[string]any)["id"].(string)
	}
	session, one := made("d/a.ipynb")
	again, same := made("d/a.ipynb")
	_, two := made("b.ipynb")
	if session != again || one != same || one == two || len(g.sessions) != 1 || len(g.kernels) != 2 {
		t.Errorf("%s %s, %s %s, %s: %d sessions, kernels %v", session, one, again, same, two, len(g.sessions), g.kernels)
	}
	s := g.dial(one, "one")
	s.all(s.send("shell", "execute_request", `{"code":"x"}`))
	if len(g.asked) != 2 || g.asked[0].Code != `get_ipython().kernel.comms.begin("d")` || g.asked[1].Code != "x" || g.asked[1].Kernel != g.kernels[0] || g.asked[1].Parent == "" {
		t.Errorf("the hub was asked for %+v", g.asked)
	}
	if status, _, _ := g.ask("DELETE", "/api/kernels/"+one+"?token=annskey", ""); status != 204 || len(g.kernels) != 1 {
		t.Errorf("%d, kernels %v", status, g.kernels)
	}
	if _, _, v := g.ask("GET", "/api/sessions?token=annskey", ""); len(v.([]any)) != 1 {
		t.Errorf("sessions: %v", v)
	}
	for _, s := range g.sessions { // somebody else's session says that it is this user's personal session
		s.User = "usr_eve"
	}
	if _, _, v := g.ask("GET", "/api/sessions?token=annskey", ""); len(v.([]any)) != 0 {
		t.Errorf("sessions: %v", v)
	}
}

// TestIDsOfClients: a kernel has the id that its client chooses, if none has it.
func TestIDsOfClients(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	const id = "12345678-1234-5678-1234-567812345678"
	for _, c := range []struct {
		body   string
		status int
	}{{`{"kernel_id":"` + id + `"}`, 201}, {`{"kernel_id":"` + id + `"}`, 409}, {`{"kernel_id":"../x"}`, 400}, {`{"kernel_id":"` + strings.Repeat("a-", 99) + `b"}`, 400}} {
		if status, _, v := g.ask("POST", "/api/kernels?token=annskey", c.body); status != c.status {
			t.Errorf("%s: %d %v", c.body, status, v)
		}
	}
	if status, _, v := g.ask("GET", "/api/kernels/"+id+"?token=annskey", ""); status != 200 || v.(map[string]any)["id"] != id {
		t.Errorf("%d %v", status, v)
	}
}

func TestTerminals(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	if status, _, v := g.ask("GET", "/api/terminals?token=annskey", ""); status != 200 || len(v.([]any)) != 0 {
		t.Errorf("%d %v", status, v)
	}
	for _, c := range []struct {
		body   string
		status int
		name   any
	}{{"", 200, "1"}, {"{}", 200, "2"}, {`{"name":"mine"}`, 200, "mine"}, {`{"name":"mine"}`, 409, nil}, {`{"name":"a/b"}`, 400, nil}, {`{"cwd":"../.."}`, 400, nil}} {
		if status, _, v := g.ask("POST", "/api/terminals?token=annskey", c.body); status != c.status || v.(map[string]any)["name"] != c.name {
			t.Errorf("%s: %d %v", c.body, status, v)
		}
	}
	conn := g.screen("mine")
	said := ""
	conn.write(`["set_size",30,100,1,1]`)
	conn.write(`["stdin","hé\n"]`)
	conn.write(`["odd"]`)
	conn.write(`["stdin","exit"]`)
	for !strings.Contains(said, "disconnect") {
		said += conn.read()
	}
	if want := `["setup",{}]`; !strings.HasPrefix(said, want) || !strings.Contains(strings.ReplaceAll(said, `"]["stdout","`, ""), `size 30 100h`+"é") {
		t.Errorf("the terminal says %s", said)
	}
	if status, _, _ := g.ask("DELETE", "/api/terminals/mine?token=annskey", ""); status != 204 {
		t.Errorf("%d", status)
	}
	if status, _, _ := g.ask("GET", "/api/terminals/mine?token=annskey", ""); status != 404 {
		t.Errorf("%d", status)
	}
	if status, _, _ := g.ask("POST", "/api/terminals?token=viewer", ""); status != 403 {
		t.Errorf("a viewer: %d", status)
	}
}
