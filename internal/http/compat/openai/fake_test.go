package openai_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/compat/openai"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/machine/workspace"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/hub/hubtest"
)

// fakeHub is a hub in memory whose turns say what a test wrote.
type fakeHub struct {
	mu            sync.Mutex
	script        func(n hub.NewTurn) ([]loop.Event, error) // of the next turn; its error ends the turn
	refuse        error                                     // of StartTurn
	gate          chan struct{}                             // a turn waits for it before its last event
	model         model.Model
	asked         []hub.NewTurn
	turns         map[string]*fakeTurn
	order         []string
	conversations map[string]*hub.Conversation
	changing      map[string]chan struct{} // a change of that conversation says when it begins, and waits
	sessions      map[string]*hub.Session
	trees         map[string]*fakeTree
	files         map[string]*fakeFile
	fileOrder     []string
}

type fakeTurn struct {
	hub.Turn
	events   []loop.Event
	err      error
	gate     chan struct{}
	canceled chan struct{}
	once     sync.Once
}

type fakeFile struct {
	hub.File
	data []byte
}

func newFake(script ...loop.Event) *fakeHub {
	return &fakeHub{
		script: func(hub.NewTurn) ([]loop.Event, error) { return script, nil },
		turns:  map[string]*fakeTurn{}, conversations: map[string]*hub.Conversation{}, sessions: map[string]*hub.Session{},
		trees: map[string]*fakeTree{}, files: map[string]*fakeFile{},
	}
}

func absent(code string) error { return problem.Received(problem.NotFound, code, "it does not exist") }

func (f *fakeHub) StartTurn(_ context.Context, who auth.Principal, n hub.NewTurn) (hub.Turn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, n)
	if f.refuse != nil {
		return hub.Turn{}, f.refuse
	}
	if n.Conversation == "" {
		n.Conversation = ident.New(ident.Conversation)
		f.conversations[n.Conversation] = &hub.Conversation{ID: n.Conversation, Created: start, Source: n.Source}
	}
	talk := f.conversations[n.Conversation]
	if n.Session == "" {
		n.Session = talk.Session
	}
	if n.Session == "" && !n.NoPython {
		n.Session = ident.New(ident.Session)
		f.sessions[n.Session] = &hub.Session{ID: n.Session, Created: start, Used: start, Memory: 1 << 30}
		f.trees[n.Session] = &fakeTree{files: map[string][]byte{}}
	}
	talk.Session = n.Session
	t := &fakeTurn{canceled: make(chan struct{}), gate: f.gate, Turn: hub.Turn{ID: ident.New(ident.Turn), Project: who.Project, Conversation: n.Conversation,
		Parent: n.Parent, Session: n.Session, State: hub.TurnRunning, Model: n.Model, Created: start, Foreign: n.Foreign, Hidden: n.Hidden}}
	t.events, t.err = f.script(n)
	f.turns[t.ID] = t
	f.order = append(f.order, t.ID)
	return t.Turn, nil
}

func (f *fakeHub) Turn(_ context.Context, _ auth.Principal, id string) (hub.Turn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.turns[id]
	if !ok || t.Hidden && t.State.Final() {
		return hub.Turn{}, absent("turn_not_found")
	}
	return t.Turn, nil
}

func (f *fakeHub) CancelTurn(_ context.Context, _ auth.Principal, id string) (hub.Turn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.turns[id]
	if !ok {
		return hub.Turn{}, absent("turn_not_found")
	}
	t.once.Do(func() { close(t.canceled); t.State = hub.TurnCanceled })
	return t.Turn, nil
}

func (f *fakeHub) DeleteTurn(_ context.Context, _ auth.Principal, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.turns[id]; !ok {
		return absent("turn_not_found")
	}
	delete(f.turns, id)
	return nil
}

func (f *fakeHub) FollowTurn(ctx context.Context, _ auth.Principal, id string, after int64) (hub.Follower[json.RawMessage], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.turns[id]
	if !ok {
		return nil, absent("turn_not_found")
	}
	return hubtest.TurnEvents(func(yield func(hub.Numbered[hub.TurnEvent], error) bool) { f.follow(ctx, t, after, yield) }), nil
}

func (f *fakeHub) follow(ctx context.Context, t *fakeTurn, after int64, yield func(hub.Numbered[hub.TurnEvent], error) bool) {
	stopped := func() bool {
		select {
		case <-ctx.Done():
			yield(hub.Numbered[hub.TurnEvent]{}, ctx.Err())
			return true
		case <-t.canceled:
			yield(hub.Numbered[hub.TurnEvent]{}, problem.New(problem.GivenUp, "the question was stopped before it was answered"))
			return true
		default:
			return false
		}
	}
	for n, e := range t.events {
		if n == len(t.events)-1 && t.gate != nil {
			select {
			case <-t.gate:
			case <-ctx.Done():
			case <-t.canceled:
			}
		}
		if stopped() {
			return
		}
		f.mu.Lock()
		if t.Events = max(t.Events, int64(n+1)); n == len(t.events)-1 && t.err == nil {
			t.State = hub.TurnCompleted
		}
		f.mu.Unlock()
		if int64(n+1) > after && !yield(hub.Numbered[hub.TurnEvent]{Seq: int64(n + 1), At: start.Add(time.Second), Event: e, Gap: e == nil}, nil) {
			return
		}
	}
	if t.err != nil {
		f.mu.Lock()
		t.State = hub.TurnFailed
		f.mu.Unlock()
		yield(hub.Numbered[hub.TurnEvent]{}, t.err)
	}
}

func (f *fakeHub) Turns(_ context.Context, _ auth.Principal, conversation string, _ hub.Page) (hub.Listing[hub.Turn], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var l hub.Listing[hub.Turn]
	for _, id := range f.order {
		if t, ok := f.turns[id]; ok && t.Conversation == conversation {
			l.Items = append(l.Items, t.Turn)
		}
	}
	return l, nil
}

func (f *fakeHub) CreateConversation(_ context.Context, _ auth.Principal, n hub.NewConversation) (hub.Conversation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &hub.Conversation{ID: ident.New(ident.Conversation), Metadata: n.Metadata, Created: start}
	f.conversations[t.ID] = t
	return *t, nil
}

func (f *fakeHub) Conversation(_ context.Context, _ auth.Principal, id string) (hub.Conversation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t, ok := f.conversations[id]; ok {
		return *t, nil
	}
	return hub.Conversation{}, absent("conversation_not_found")
}

func (f *fakeHub) ChangeConversation(_ context.Context, _ auth.Principal, id string, c hub.ConversationChange) (hub.Conversation, error) {
	f.mu.Lock()
	gate := f.changing[id]
	f.mu.Unlock()
	if gate != nil {
		gate <- struct{}{} // the change is on its way
		<-gate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.conversations[id]
	if !ok {
		return hub.Conversation{}, absent("conversation_not_found")
	}
	if c.Metadata != nil {
		t.Metadata = maps.Clone(c.Metadata)
	}
	if c.Edit != nil {
		edited, err := c.Edit(maps.Clone(t.Metadata))
		if err != nil {
			return hub.Conversation{}, err
		}
		t.Metadata = edited
	}
	return *t, nil
}

func (f *fakeHub) DeleteConversation(_ context.Context, _ auth.Principal, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.conversations[id]; !ok {
		return absent("conversation_not_found")
	}
	delete(f.conversations, id)
	return nil
}

func (f *fakeHub) CreateSession(_ context.Context, _ auth.Principal, n hub.NewSession) (hub.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &hub.Session{ID: ident.New(ident.Session), Name: n.Name, Metadata: n.Metadata, Created: start, Used: start, Memory: n.Memory, Network: n.Network, State: hub.SessionActive}
	f.sessions[s.ID] = s
	f.trees[s.ID] = &fakeTree{files: map[string][]byte{}}
	for _, id := range n.Files {
		f.trees[s.ID].files[f.files[id].Name] = f.files[id].data
	}
	return *s, nil
}

func (f *fakeHub) Session(_ context.Context, _ auth.Principal, id string) (hub.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, ok := f.sessions[id]; ok {
		return *s, nil
	}
	return hub.Session{}, absent("session_not_found")
}

func (f *fakeHub) Sessions(_ context.Context, _ auth.Principal, filter hub.SessionFilter, p hub.Page) (hub.Listing[hub.Session], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var l hub.Listing[hub.Session]
	for _, s := range f.sessions {
		if strings.HasPrefix(s.Name, filter.Name) {
			l.Items = append(l.Items, *s)
		}
	}
	slices.SortFunc(l.Items, func(a, b hub.Session) int {
		if p.Oldest {
			return strings.Compare(a.ID, b.ID)
		}
		return strings.Compare(b.ID, a.ID)
	})
	return l, nil
}

func (f *fakeHub) ChangeSession(_ context.Context, _ auth.Principal, id string, c hub.SessionChange) (hub.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.sessions[id]
	if !ok {
		return hub.Session{}, absent("session_not_found")
	}
	if c.Metadata != nil {
		s.Metadata = maps.Clone(c.Metadata)
	}
	return *s, nil
}

func (f *fakeHub) DeleteSession(_ context.Context, _ auth.Principal, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.sessions[id]; !ok {
		return absent("session_not_found")
	}
	delete(f.sessions, id)
	return nil
}

func (f *fakeHub) Tree(ctx context.Context, _ auth.Principal, session string, _ bool, use func(context.Context, hub.Tree) error) error {
	f.mu.Lock()
	t, ok := f.trees[session]
	f.mu.Unlock()
	if !ok {
		return absent("session_not_found")
	}
	return use(ctx, t)
}

func (f *fakeHub) PutFile(ctx context.Context, _ auth.Principal, session, file, _ string) (workspace.Entry, error) {
	f.mu.Lock()
	stored, ok := f.files[file]
	t := f.trees[session]
	f.mu.Unlock()
	if !ok {
		return workspace.Entry{}, absent("file_not_found")
	}
	return t.Write(ctx, stored.Name, bytes.NewReader(stored.data))
}

func (f *fakeHub) AddFile(_ context.Context, _ auth.Principal, n hub.NewFile, r io.Reader) (hub.File, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return hub.File{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	file := &fakeFile{hub.File{ID: ident.New(ident.File), Name: n.Name, Purpose: n.Purpose, Size: int64(len(data)), Created: start,
		SHA256: fmt.Sprintf("%x", sha256.Sum256(data))}, data}
	if n.Life > 0 {
		file.Expires = start.Add(n.Life)
	}
	f.files[file.ID] = file
	f.fileOrder = append(f.fileOrder, file.ID)
	return file.File, nil
}

func (f *fakeHub) File(_ context.Context, _ auth.Principal, id string) (hub.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if file, ok := f.files[id]; ok {
		return file.File, nil
	}
	return hub.File{}, absent("file_not_found")
}

// Files has pages of two, so that a list takes several.
func (f *fakeHub) Files(_ context.Context, _ auth.Principal, purpose string, p hub.Page) (hub.Listing[hub.File], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	order := slices.Clone(f.fileOrder)
	if !p.Oldest {
		slices.Reverse(order)
	}
	var l hub.Listing[hub.File]
	begun := p.After == ""
	for _, id := range order {
		file, ok := f.files[id]
		switch {
		case !begun:
			begun = id == p.After
		case !ok || purpose != "" && file.Purpose != purpose:
		case len(l.Items) == 2:
			l.Next = l.Items[1].ID
			return l, nil
		default:
			l.Items = append(l.Items, file.File)
		}
	}
	return l, nil
}

type nopSeeker struct{ *bytes.Reader }

func (nopSeeker) Close() error { return nil }

func (f *fakeHub) OpenFile(_ context.Context, _ auth.Principal, id string) (hub.File, io.ReadSeekCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if file, ok := f.files[id]; ok {
		return file.File, nopSeeker{bytes.NewReader(file.data)}, nil
	}
	return hub.File{}, nil, absent("file_not_found")
}

func (f *fakeHub) DeleteFile(_ context.Context, _ auth.Principal, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.files[id]; !ok {
		return absent("file_not_found")
	}
	delete(f.files, id)
	return nil
}

func (f *fakeHub) Models(context.Context, auth.Principal) ([]hub.ModelInfo, error) {
	return []hub.ModelInfo{{ID: "test/scripted", Provider: "test", Default: true}}, nil
}

func (f *fakeHub) OpenModel(_ context.Context, _ auth.Principal, name string) (model.Model, error) {
	if f.model == nil || name == "nobody" {
		return nil, problem.New(problem.ModelUnknown, "there is no model of that name")
	}
	return f.model, nil
}

// fakeTree is a workspace in memory.
type fakeTree struct {
	mu    sync.Mutex
	files map[string][]byte
}

func (t *fakeTree) info(name string) workspace.Entry {
	return workspace.Entry{Path: name, Size: int64(len(t.files[name])), Modified: start}
}

func (t *fakeTree) List(_ context.Context, dir string) ([]workspace.Entry, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := map[string]bool{}
	var out []workspace.Entry
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		rest := strings.TrimPrefix(name, dir+"/")
		if dir != "" && rest == name {
			continue
		}
		first, _, below := strings.Cut(rest, "/")
		if seen[first] {
			continue
		}
		seen[first] = true
		if below {
			out = append(out, workspace.Entry{Path: path.Join(dir, first), Folder: true})
			continue
		}
		out = append(out, t.info(name))
	}
	return out, false, nil
}

func (t *fakeTree) Stat(_ context.Context, name string) (workspace.Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.files[name]; !ok {
		return workspace.Entry{}, absent("file_not_found")
	}
	return t.info(name), nil
}

func (t *fakeTree) Read(_ context.Context, name string, offset, _ int64, w io.Writer) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := w.Write(t.files[name][offset:])
	return int64(n), err
}

func (t *fakeTree) Write(_ context.Context, name string, r io.Reader) (workspace.Entry, error) {
	data, err := io.ReadAll(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files[name] = data
	return t.info(name), err
}

func (t *fakeTree) Remove(_ context.Context, name string, _ bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.files, name)
	return nil
}

func (t *fakeTree) Move(context.Context, string, string) error               { return nil }
func (t *fakeTree) MakeFolder(context.Context, string) error                 { return nil }
func (t *fakeTree) Archive(context.Context, string, string, io.Writer) error { return nil }

// start is when everything in these tests happens.
var start = time.Unix(1_800_000_000, 0)

// serve has the surface served to an owner.
func serve(t *testing.T, f *fakeHub, change ...func(*openai.Options)) *httptest.Server {
	t.Helper()
	o := openai.Options{Hub: f, Settle: time.Minute, Now: func() time.Time { return start }, Spool: t.TempDir(), Memory: 8 << 30}
	for _, c := range change {
		c(&o)
	}
	handler := openai.New(o)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Authorization") {
		case "Bearer owner":
			handler.ServeHTTP(w, r.WithContext(auth.With(r.Context(), auth.Local())))
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// ask sends a request and returns the status, the body as an object, and the headers.
func ask(t *testing.T, s *httptest.Server, method, path, body string) (int, map[string]any, http.Header) {
	t.Helper()
	status, text, header := raw(t, s, method, path, body)
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%s %s: %d %q: %v", method, path, status, text, err)
	}
	return status, object, header
}

func raw(t *testing.T, s *httptest.Server, method, path, body string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer owner")
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text), res.Header
}

// at walks into decoded JSON: strings are keys, ints are indices.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p < 0 || p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}
