package daytona

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/compat/daytona/toolbox"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
	"cove/internal/server/builder"
	"cove/internal/server/hub"
	"cove/internal/server/ports"
)

var caller = auth.Principal{User: "usr", Project: "prj_1", Key: "key_1", Role: auth.Owner}

// fakeHub has sessions as rows alone.
type fakeHub struct {
	builder.Hub // nothing is built

	mu    sync.Mutex
	rows  map[string]hub.Session
	links map[string]hub.SessionLink
	made  []hub.NewSession
	files map[string]storedFile

	refused error  // that no command is run
	allowed string // the image that sessions may begin from
	volumes []hub.Volume
}

func (f *fakeHub) StartProcess(context.Context, auth.Principal, string, process.Start) (process.Info, error) {
	return process.Info{}, f.refused
}

func (f *fakeHub) CheckProgram(context.Context, auth.Principal, string) error { return f.refused }

type storedFile struct {
	hub.File
	content []byte
}

func newFake() *fakeHub {
	return &fakeHub{rows: map[string]hub.Session{}, links: map[string]hub.SessionLink{}, files: map[string]storedFile{}}
}

func (f *fakeHub) AddFile(_ context.Context, who auth.Principal, n hub.NewFile, r io.Reader) (hub.File, error) {
	content, err := io.ReadAll(r)
	if err != nil {
		return hub.File{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	one := storedFile{hub.File{ID: ident.New(ident.File), Project: who.Project, User: who.User, Name: n.Name, Purpose: n.Purpose, Size: int64(len(content)), SHA256: strings.Repeat("ab", 32), Expires: time.Now().Add(n.Life)}, content}
	f.files[one.ID] = one
	return one.File, nil
}

func (f *fakeHub) Files(_ context.Context, who auth.Principal, purpose string, _ hub.Page) (out hub.Listing[hub.File], err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.files {
		if one.Project == who.Project && one.Purpose == purpose {
			out.Items = append(out.Items, one.File)
		}
	}
	return out, nil
}

func (f *fakeHub) AddVolume(_ context.Context, who auth.Principal, name string) (hub.Volume, error) {
	v := hub.Volume{ID: ident.New(ident.Volume), Project: who.Project, Name: name}
	f.volumes = append(f.volumes, v)
	return v, nil
}

func (f *fakeHub) Volumes(context.Context, auth.Principal) ([]hub.Volume, error) {
	return f.volumes, nil
}

func (f *fakeHub) Volume(_ context.Context, _ auth.Principal, name string) (hub.Volume, error) {
	for _, v := range f.volumes {
		if v.ID == name || v.Name == name {
			return v, nil
		}
	}
	return hub.Volume{}, problem.New(problem.VolumeNotFound, "there is none")
}

func (f *fakeHub) DeleteVolume(ctx context.Context, who auth.Principal, id string) error {
	v, err := f.Volume(ctx, who, id)
	f.volumes = slices.DeleteFunc(f.volumes, func(other hub.Volume) bool { return other.ID == v.ID })
	return err
}

type openFile struct{ *bytes.Reader }

func (openFile) Close() error { return nil }

func (f *fakeHub) OpenFile(_ context.Context, _ auth.Principal, id string) (hub.File, io.ReadSeekCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one, ok := f.files[id]
	if !ok {
		return one.File, nil, problem.New(problem.FileNotFound, "there is no such file")
	}
	return one.File, openFile{bytes.NewReader(one.content)}, nil
}

func (f *fakeHub) DeleteFile(_ context.Context, _ auth.Principal, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.files, id)
	return nil
}

func (f *fakeHub) add(who auth.Principal, n hub.NewSession) hub.Session {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made = append(f.made, n)
	row := hub.Session{ID: ident.New(ident.Session), Project: who.Project, State: hub.SessionActive, Metadata: n.Metadata, Idle: n.Idle, Memory: 1 << 30, CPUs: 0.5, Network: n.Network, Volumes: n.Volumes, Expires: time.Now().Add(n.Life)}
	f.rows[row.ID] = row
	return row
}

func (f *fakeHub) CreateSession(_ context.Context, who auth.Principal, n hub.NewSession) (hub.Session, error) {
	return f.add(who, n), nil
}

func (f *fakeHub) ForkSession(_ context.Context, who auth.Principal, _ string, n hub.NewSession) (hub.Session, error) {
	return f.add(who, n), nil
}

func (f *fakeHub) Session(_ context.Context, who auth.Principal, id string) (hub.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	row, ok := f.rows[id]
	if !ok || row.Project != who.Project {
		return hub.Session{}, problem.New(problem.SessionNotFound, "there is no such session")
	}
	return row, nil
}

func (f *fakeHub) Sessions(_ context.Context, who auth.Principal, filter hub.SessionFilter, _ hub.Page) (hub.Listing[hub.Session], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out hub.Listing[hub.Session]
rows:
	for _, row := range f.rows {
		for name, value := range filter.Meta {
			if row.Metadata[name] != value {
				continue rows
			}
		}
		if row.Project == who.Project {
			out.Items = append(out.Items, row)
		}
	}
	return out, nil
}

func (f *fakeHub) DeleteSession(_ context.Context, _ auth.Principal, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.rows, id)
	return nil
}

func (f *fakeHub) ChangeSession(_ context.Context, _ auth.Principal, id string, c hub.SessionChange) (hub.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	row := f.rows[id]
	if c.Metadata != nil {
		row.Metadata = maps.Clone(c.Metadata)
	}
	if c.Idle != nil {
		row.Idle = *c.Idle
	}
	if c.Life != nil {
		row.Expires = time.Now().Add(*c.Life)
	}
	if c.Network != nil {
		row.Network = c.Network
	}
	f.rows[id] = row
	return row, nil
}

func (f *fakeHub) state(id string, to hub.SessionState) (hub.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	row := f.rows[id]
	row.State = to
	f.rows[id] = row
	return row, nil
}

func (f *fakeHub) PauseSession(_ context.Context, _ auth.Principal, id string) (hub.Session, error) {
	return f.state(id, hub.SessionPaused)
}

func (f *fakeHub) ResumeSession(_ context.Context, _ auth.Principal, id string) (hub.Session, error) {
	return f.state(id, hub.SessionActive)
}

func (f *fakeHub) MayBeginFrom(image string) (bool, error) {
	if image != f.allowed {
		return false, problem.New(problem.ImageDenied, "it is not allowed")
	}
	return true, nil
}

func (f *fakeHub) WidestNetwork(context.Context, auth.Principal) (*hub.Network, error) {
	return &hub.Network{Allow: []string{"everything.example"}}, nil
}

func (f *fakeHub) AddLink(_ context.Context, who auth.Principal, n hub.NewLink) (hub.SessionLink, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	code := n.Code
	if code == "" {
		code, _ = auth.RandomCode()
	}
	hash, _ := auth.CodeHash(code)
	l := hub.SessionLink{ID: ident.New(ident.Link), Hash: hash, Project: who.Project, Session: n.Session, Purpose: n.Purpose, Port: n.Port}
	f.links[hash] = l
	return l, code, nil
}

func (f *fakeHub) LinkOf(_ context.Context, code string) (hub.SessionLink, auth.Principal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hash, _ := auth.CodeHash(code)
	l, ok := f.links[hash]
	if !ok {
		return l, auth.Principal{}, problem.New(problem.LinkNotFound, "there is nothing behind this link")
	}
	return l, caller, nil
}

func (f *fakeHub) Links(_ context.Context, _ auth.Principal, session string) (out []hub.SessionLink, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.links {
		if l.Session == session {
			out = append(out, l)
		}
	}
	return out, nil
}

func (f *fakeHub) DeleteLink(_ context.Context, _ auth.Principal, _, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for hash, l := range f.links {
		if l.ID == id {
			delete(f.links, hash)
		}
	}
	return nil
}

func (f *fakeHub) UsePort(context.Context, auth.Principal, string, int, func(context.Context, guestlink.Stream) error) error {
	return problem.New(problem.PortRefused, "nothing listens")
}

// echo is a toolbox that says what it was asked.
type echo struct{}

func (echo) Serve(w http.ResponseWriter, r *http.Request, s toolbox.Sandbox, path string) {
	who, _ := auth.From(r.Context())
	_, _ = io.WriteString(w, path+" "+s.Language+" "+s.Env["A"]+" "+who.User)
}

// world is a surface on a hub that is none.
type world struct {
	t *testing.T
	s *Server
	f *fakeHub
}

func newWorld(t *testing.T, host string) world {
	f := newFake()
	s := New(Options{Hub: f, Toolbox: echo{}, Version: "1", Secret: []byte("secret"), Disk: 3 << 30, Address: func() ports.Address { return ports.Address{Scheme: "http", Host: host} }})
	return world{t, s, f}
}

// ask asks the control plane as the caller, or with another name of a client's version.
func (x world) ask(method, path, body string, header ...string) (int, map[string]any, string) {
	x.t.Helper()
	r := httptest.NewRequestWithContext(auth.With(x.t.Context(), caller), method, "http://server.test/daytona"+path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	x.s.handler().ServeHTTP(w, r)
	var out map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &out)
	return w.Code, out, w.Body.String()
}

// must is ask for what has to be answered with 200.
func (x world) must(method, path, body string) map[string]any {
	x.t.Helper()
	code, out, text := x.ask(method, path, body)
	if code != http.StatusOK {
		x.t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
	return out
}

// age has a sandbox be used last so long ago.
func (x world) age(id string, by time.Duration) {
	x.f.mu.Lock()
	defer x.f.mu.Unlock()
	row := x.f.rows["ses_"+id]
	r, ok := recordOf(row, kindSandbox)
	if !ok {
		x.t.Fatalf("%s is no sandbox", id)
	}
	for _, at := range []*time.Time{&r.Seen, &r.Created, &r.Stopped, &r.Dies} {
		if !at.IsZero() {
			*at = at.Add(-by)
		}
	}
	row.Metadata, _ = r.entries(kindSandbox, row.Metadata)
	x.f.rows[row.ID] = row
}
