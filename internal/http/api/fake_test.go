package api_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/code/advice"
	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/http/api/apitest"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/llm/tool"
	"cove/internal/machine/egress"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/machine/workspace"
	"cove/internal/python/installation"
	"cove/internal/python/kernel"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/hub/hubtest"
	"cove/internal/server/ports"
)

const (
	session      = "ses_00000000000000000000000001"
	execution    = "exe_00000000000000000000000001"
	conversation = "cnv_00000000000000000000000001"
	turn         = "trn_00000000000000000000000001"
	stored       = "fil_00000000000000000000000001"
	upload       = "upl_00000000000000000000000001"
	started      = "prc_00000000000000000000000001"
	queued       = "qst_00000000000000000000000001"
)

var then = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// fakeHub has one thing of each kind, and a workspace. It keeps what it was asked.
type fakeHub struct {
	mu       sync.Mutex
	asked    []any // the last arguments of interest
	calls    int
	fail     error // of every method
	tree     map[string][]byte
	events   []hub.Numbered[hub.Event]
	turns    []hub.Numbered[hub.TurnEvent]
	turnEnds error
	title    string // of the conversation
	ends     error
	// follow, when set, takes the place of events.
	follow   func(ctx context.Context, after int64) hub.Follower[hub.Event]
	adding   chan struct{} // when set, adding a file waits for it twice
	modified time.Time     // of files, when not zero
}

func (h *fakeHub) note(who auth.Principal, args ...any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	h.asked = args
	if who.User == "" {
		return errors.New("the caller was not passed on")
	}
	if id, ok := first(args).(string); ok && !slices.Contains([]string{session, execution, conversation, turn, stored, upload, "churn", "", "p", "shr_1"}, id) {
		return problem.Received(problem.NotFound, "not_found", "there is no "+id)
	}
	return h.fail
}

func first(args []any) any {
	if len(args) == 0 {
		return nil
	}
	return args[0]
}

func (h *fakeHub) last() []any {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

func numbered[E any](events ...E) []hub.Numbered[E] {
	var out []hub.Numbered[E]
	for i, e := range events {
		out = append(out, hub.Numbered[E]{Seq: int64(i + 1), At: then, Event: e})
	}
	return out
}

func follower[E any](events []hub.Numbered[E], after int64, end error) hub.Follower[E] {
	return func(yield func(hub.Numbered[E], error) bool) {
		for _, n := range events {
			if n.Seq > after && !yield(n, nil) {
				return
			}
		}
		if end != nil {
			yield(hub.Numbered[E]{}, end)
		}
	}
}

func (h *fakeHub) one() hub.Session {
	return hub.Session{ID: session, Project: "prj", User: "usr", State: hub.SessionActive, Created: then, Used: then, Expires: then.Add(time.Hour), Idle: time.Minute}
}

func (h *fakeHub) CreateSession(_ context.Context, who auth.Principal, n hub.NewSession) (hub.Session, error) {
	s := h.one()
	s.Name = n.Name
	return s, h.note(who, n)
}

func (h *fakeHub) Session(_ context.Context, who auth.Principal, id string) (hub.Session, error) {
	if id != session {
		return hub.Session{}, problem.New(problem.SessionNotFound, "there is no such session")
	}
	return h.one(), h.note(who, id)
}

func (h *fakeHub) Sessions(_ context.Context, who auth.Principal, f hub.SessionFilter, p hub.Page) (hub.Listing[hub.Session], error) {
	return hub.Listing[hub.Session]{Items: []hub.Session{h.one()}, Next: "more"}, h.note(who, f, p)
}

func (h *fakeHub) SessionsInUse(_ context.Context, who auth.Principal, f hub.SessionFilter, p hub.Page) (hub.Listing[hub.Session], error) {
	one := h.one()
	one.Uses = []hub.SessionUse{{Conversation: "cnv_1", Title: "Sales"}}
	return hub.Listing[hub.Session]{Items: []hub.Session{one}}, h.note(who, f, p)
}

func (h *fakeHub) ChangeSession(_ context.Context, who auth.Principal, id string, c hub.SessionChange) (hub.Session, error) {
	return h.one(), h.note(who, id, c)
}
func (h *fakeHub) PauseSession(_ context.Context, who auth.Principal, id string) (hub.Session, error) {
	return h.one(), h.note(who, id)
}
func (h *fakeHub) ResumeSession(_ context.Context, who auth.Principal, id string) (hub.Session, error) {
	return h.one(), h.note(who, id)
}
func (h *fakeHub) AcknowledgeRollback(_ context.Context, who auth.Principal, id string) (hub.Session, error) {
	return h.Session(context.Background(), who, id)
}

func (h *fakeHub) ForkSession(_ context.Context, who auth.Principal, id string, n hub.NewSession) (hub.Session, error) {
	fork := h.one()
	fork.Origin = &hub.SessionOrigin{Session: "ses_origin", At: then}
	return fork, h.note(who, id, n)
}
func (h *fakeHub) Points(_ context.Context, who auth.Principal, id string) ([]hub.Point, error) {
	return []hub.Point{{ID: "start"}, {ID: "snp_1", Saved: h.one().Created, Before: []string{"trn_1"}, Executions: 1, Bytes: 1 << 20, Present: true}}, h.note(who, id)
}

func (h *fakeHub) KeepPoint(_ context.Context, who auth.Principal, id string) (hub.Point, error) {
	return hub.Point{ID: "snp_1", Saved: h.one().Created}, h.note(who, id)
}

func (h *fakeHub) ReturnSession(_ context.Context, who auth.Principal, id, point string) (hub.Session, error) {
	return h.one(), h.note(who, id, point)
}

func (h *fakeHub) DeleteSession(_ context.Context, who auth.Principal, id string) error {
	return h.note(who, id)
}
func (h *fakeHub) Kernels(_ context.Context, who auth.Principal, id string) ([]hub.Kernel, error) {
	return []hub.Kernel{{Name: "main", Busy: true}}, h.note(who, id)
}
func (h *fakeHub) StartKernel(_ context.Context, who auth.Principal, id, name string) (hub.Kernel, error) {
	return hub.Kernel{Name: name}, h.note(who, id, name)
}

var running = process.Info{ID: started, PID: 7, Args: []string{"cat"}, Dir: "/home/user", Input: true, Terminal: &process.Size{Columns: 80, Rows: 24}, Started: then, Written: 5}

func (h *fakeHub) StartProcess(_ context.Context, who auth.Principal, id string, start process.Start) (process.Info, error) {
	return running, h.note(who, id, start)
}

func (h *fakeHub) RunProcess(ctx context.Context, who auth.Principal, id string, start process.Start) (process.Info, iter.Seq2[process.Event, error], error) {
	events, _ := h.FollowProcess(ctx, who, id, started, 0)
	return running, events, h.note(who, id, start)
}

func (h *fakeHub) Processes(_ context.Context, who auth.Principal, id string) ([]process.Info, error) {
	return []process.Info{running}, h.note(who, id)
}

func (h *fakeHub) Process(_ context.Context, who auth.Principal, session, id string) (process.Info, error) {
	p := running
	p.Exit = &process.Exit{At: then, Signal: "SIGKILL", Reason: process.ForTime}
	return p, h.note(who, session, id)
}

func (h *fakeHub) TellProcess(_ context.Context, who auth.Principal, session, id string, r io.Reader, end bool) (int64, error) {
	n, err := io.Copy(io.Discard, r)
	return n, errors.Join(err, h.note(who, session, id, end))
}

func (h *fakeHub) ResizeProcess(_ context.Context, who auth.Principal, session, id string, size process.Size) error {
	return h.note(who, session, id, size)
}

func (h *fakeHub) SignalProcess(_ context.Context, who auth.Principal, session, id, signal string, all bool) error {
	return h.note(who, session, id, signal, all)
}

func (h *fakeHub) FollowProcess(_ context.Context, who auth.Principal, session, id string, from int64) (iter.Seq2[process.Event, error], error) {
	return func(yield func(process.Event, error) bool) {
		if from > 0 && !yield(process.Event{Kind: process.Gap, At: 10}, nil) {
			return
		}
		for _, e := range []process.Event{
			{Kind: process.Stdout, At: 10, Data: []byte("é")}, {Kind: process.Terminal, At: 12, Data: []byte{0xff, 0}},
			{Kind: process.Ended, At: 14, Exit: &process.Exit{At: then, Code: 3}},
		} {
			if !yield(e, nil) {
				return
			}
		}
	}, h.note(who, session, id, from)
}

func (h *fakeHub) NetworkConnections(_ context.Context, who auth.Principal, id string) ([]egress.Event, error) {
	return []egress.Event{{Host: "evil.test", Refused: "evil.test may not be reached"}}, h.note(who, id)
}

func (h *fakeHub) Ports(_ context.Context, who auth.Principal, id string) ([]process.Port, error) {
	return []process.Port{{Number: 8000, Address: "0.0.0.0"}}, h.note(who, id)
}

func (h *fakeHub) UsePort(ctx context.Context, who auth.Principal, id string, port int, use func(ctx context.Context, s guestlink.Stream) error) error {
	if err := h.note(who, id, port); err != nil {
		return err
	}
	return use(ctx, mute{})
}

// mute is a connection to a program that says nothing.
type mute struct{}

func (mute) Read([]byte) (int, error)    { return 0, io.EOF }
func (mute) Write(b []byte) (int, error) { return len(b), nil }
func (mute) CloseWrite() error           { return nil }
func (mute) Close() error                { return nil }

func (h *fakeHub) Check(_ context.Context, who auth.Principal, n hub.NewCheck) (hub.Checked, error) {
	return hub.Checked{Report: &advice.Report{File: n.Name, Findings: []advice.Finding{{Rule: "F821", Severity: advice.Error, Line: 1, Column: 1, Message: "m"}}}}, h.note(who, n.Session, n.Code)
}

func (h *fakeHub) Complete(_ context.Context, who auth.Principal, id, name, code string, cursor int) ([]string, int, int, error) {
	return []string{code + "e"}, 0, cursor, h.note(who, id, name, code)
}

func (h *fakeHub) Describe(_ context.Context, who auth.Principal, id, name, code string, cursor int) (string, error) {
	return code + " at " + strconv.Itoa(cursor), h.note(who, id, name, code)
}

func (h *fakeHub) IsComplete(_ context.Context, who auth.Principal, id, name, code string) (string, error) {
	return "incomplete", h.note(who, id, name, code)
}

func (h *fakeHub) Variables(_ context.Context, who auth.Principal, id, name string) (kernel.Variables, error) {
	return kernel.Variables{Items: []kernel.Variable{{Name: "df", Type: "pandas.DataFrame", Shape: []int64{2, 1}, Table: true}}}, h.note(who, id, name)
}

func (h *fakeHub) Table(_ context.Context, who auth.Principal, id, name string, q kernel.TableQuery) (kernel.Table, error) {
	return kernel.Table{Columns: []kernel.Column{{Name: "n", Type: "int64"}}, Total: 2, Matching: 1, Index: []string{"1"}, Rows: [][]any{{*q.Sort}}}, h.note(who, id, name, q.Name, q.Filter)
}

func (h *fakeHub) Preview(_ context.Context, who auth.Principal, id string, look workspace.Look) (workspace.Entry, workspace.Preview, error) {
	total := int64(look.Limit)
	t := &workspace.PreviewTable{Columns: []workspace.PreviewColumn{{Name: "n", Type: "int64"}}, Total: &total, Offset: int64(look.Offset), Index: []string{"3"}, Rows: [][]any{{1.0}}}
	return workspace.Entry{Path: look.Path, Size: 3}, workspace.Preview{Kind: "table", Table: t, Sheet: look.Sheet}, h.note(who, id, look.Path)
}

func (h *fakeHub) Connections(_ context.Context, who auth.Principal) ([]hub.Connection, error) {
	return []hub.Connection{{Provider: "openai", Key: "sk-secret-of-somebody-1234", Models: []string{"gpt"}, Default: "gpt"}}, h.note(who)
}

func (h *fakeHub) SetConnection(_ context.Context, who auth.Principal, c hub.ConnectionChange) (hub.Connection, error) {
	return hub.Connection{Provider: c.Provider, Address: c.Address, Key: *c.Key, Models: c.Models}, h.note(who)
}

func (h *fakeHub) DeleteConnection(_ context.Context, who auth.Principal, _ string) error {
	return h.note(who)
}

func (h *fakeHub) TryConnection(_ context.Context, who auth.Principal, c hub.ConnectionChange) (hub.Trial, error) {
	return hub.Trial{Models: c.Models, Answer: "Hello", Took: time.Second}, h.note(who)
}

func (h *fakeHub) Profile(_ context.Context, who auth.Principal, id, name, table string, column int) (kernel.Profile, error) {
	return kernel.Profile{Name: "n", Rows: int64(column), Bars: []int64{1, 2}}, h.note(who, id, name, table)
}

func (h *fakeHub) Widgets(_ context.Context, who auth.Principal, id, name string) (kernel.WidgetStates, error) {
	return kernel.WidgetStates{Models: map[string]any{"w": map[string]any{"model_name": "IntSliderModel"}}, More: 1}, h.note(who, id, name)
}

func (h *fakeHub) MoveWidget(_ context.Context, who auth.Principal, id, name string, m hub.WidgetMove) (hub.Execution, error) {
	return hub.Execution{ID: "exe_1", Session: id, Kernel: name}, h.note(who, id, name, m.Widget)
}

func (h *fakeHub) RestartKernel(_ context.Context, who auth.Principal, id, name string) (hub.Kernel, error) {
	return hub.Kernel{Name: name}, h.note(who, id, name)
}
func (h *fakeHub) StopKernel(_ context.Context, who auth.Principal, id, name string) error {
	return h.note(who, id, name)
}

func (h *fakeHub) StartExecution(_ context.Context, who auth.Principal, n hub.NewExecution) (hub.Execution, error) {
	return hub.Execution{ID: execution, Session: n.Session, Kernel: "main", Code: n.Code, State: hub.ExecutionQueued, Created: then}, h.note(who, n)
}
func (h *fakeHub) Execution(_ context.Context, who auth.Principal, id string) (hub.Execution, error) {
	return hub.Execution{ID: id, Session: session, State: "ok", Created: then, Finished: then, Events: 3}, h.note(who, id)
}
func (h *fakeHub) Executions(_ context.Context, who auth.Principal, f hub.ExecutionFilter, p hub.Page) (hub.Listing[hub.Execution], error) {
	return hub.Listing[hub.Execution]{Items: []hub.Execution{{ID: execution, Created: then}}}, h.note(who, f, p)
}
func (h *fakeHub) InterruptExecution(_ context.Context, who auth.Principal, id string) (hub.Execution, error) {
	return hub.Execution{ID: id, State: hub.ExecutionRunning}, h.note(who, id)
}
func (h *fakeHub) ApproveCall(_ context.Context, who auth.Principal, id string, number int, w tool.Word) (hub.Execution, error) {
	return hub.Execution{ID: id, State: hub.ExecutionRunning}, h.note(who, id, number, w)
}
func (h *fakeHub) AnswerInput(_ context.Context, who auth.Principal, id string, number int, r hub.InputReply) (hub.Execution, error) {
	return hub.Execution{ID: id, State: hub.ExecutionRunning}, h.note(who, id, number, r)
}
func (h *fakeHub) Follow(ctx context.Context, who auth.Principal, id string, after int64) (hub.Follower[json.RawMessage], error) {
	if id != execution {
		return nil, problem.New(problem.ExecutionNotFound, "there is no such execution")
	}
	if h.follow != nil {
		return hubtest.Events(h.follow(ctx, after)), nil
	}
	return hubtest.Events(follower(h.events, after, h.ends)), h.note(who, id, after)
}

func (h *fakeHub) Tree(ctx context.Context, who auth.Principal, id string, write bool, use func(context.Context, hub.Tree) error) error {
	if id != session {
		return problem.New(problem.SessionNotFound, "there is no such session")
	}
	if err := h.note(who, id, write); err != nil {
		return err
	}
	return use(ctx, fakeTree{h})
}

func (h *fakeHub) UseFiles(ctx context.Context, who auth.Principal, id string, u hub.FilesUse, use func(context.Context, guestlink.Files) error) error {
	if id != session {
		return problem.New(problem.SessionNotFound, "there is no such session")
	}
	if err := h.note(who, id, u); err != nil {
		return err
	}
	return use(ctx, fakeFiles{h})
}

func (h *fakeHub) WatchFiles(_ context.Context, who auth.Principal, id, path string, all bool) (iter.Seq2[filesystem.Event, error], error) {
	if err := h.note(who, id, path, all); err != nil {
		return nil, err
	}
	return func(yield func(filesystem.Event, error) bool) {
		_ = yield(filesystem.Event{Kind: filesystem.Moved, Path: "b", From: "a"}, nil) && yield(filesystem.Event{Kind: filesystem.Ended}, nil)
	}, nil
}

const linked = "lnk_00000000000000000000000001"

func (h *fakeHub) AddLink(_ context.Context, who auth.Principal, n hub.NewLink) (hub.SessionLink, string, error) {
	l := hub.SessionLink{ID: linked, Session: n.Session, Purpose: n.Purpose, Path: n.Path, Port: n.Port, Open: n.Open, Wakes: n.Wakes, User: "usr", Created: then}
	if n.Life > 0 {
		l.Expires = then.Add(n.Life)
	}
	return l, "code of it", h.note(who, n.Session, n)
}

func (h *fakeHub) Links(_ context.Context, who auth.Principal, id string) ([]hub.SessionLink, error) {
	return []hub.SessionLink{{ID: linked, Session: id, Purpose: hub.LinkRead, Path: "a.csv", User: "usr", Created: then}}, h.note(who, id)
}

func (h *fakeHub) DeleteLink(_ context.Context, who auth.Principal, id, link string) error {
	return h.note(who, id, link)
}

func (h *fakeHub) LinkOf(_ context.Context, code string) (hub.SessionLink, auth.Principal, error) {
	if h.fail != nil {
		return hub.SessionLink{}, auth.Principal{}, h.fail
	}
	purpose := map[string]string{"toread": hub.LinkRead, "towrite": hub.LinkWrite, "toport": hub.LinkPort}[code]
	if purpose == "" {
		return hub.SessionLink{}, auth.Principal{}, problem.New(problem.LinkNotFound, "there is nothing behind this link")
	}
	return hub.SessionLink{ID: linked, Session: session, Purpose: purpose, Path: "a.csv"}, auth.Principal{User: "usr", Project: "prj", Role: auth.Member}, nil
}

// fakeFiles has the files of the fake's tree.
type fakeFiles struct{ h *fakeHub }

func (f fakeFiles) entry(path string) filesystem.Entry {
	return filesystem.Entry{Path: path, Full: "/home/user/" + path, Kind: filesystem.File, Size: 3, Mode: 0o644, Modified: then, Stamp: "s"}
}

func (f fakeFiles) StatPath(_ context.Context, path string, _ bool) (filesystem.Entry, error) {
	n := f.entry(path)
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	n.Size = int64(len(f.h.tree[path]))
	if path == "data" {
		n.Kind = filesystem.Folder
	}
	return n, nil
}

func (f fakeFiles) ListPath(context.Context, string, int) ([]filesystem.Entry, bool, int64, error) {
	return []filesystem.Entry{f.entry("data/a.csv")}, true, 2, nil
}

// fakeReading is what is read of a fake's file.
type fakeReading struct {
	*bytes.Reader
	whole int64
}

func (r fakeReading) Whole() int64 { return r.whole }
func (r fakeReading) Len() int64   { return int64(r.Reader.Len()) }
func (fakeReading) Close() error   { return nil }

func (f fakeFiles) OpenPath(_ context.Context, path string, offset, limit int64) (guestlink.Reading, error) {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	if path == "denied" {
		return nil, problem.New(problem.FileDenied, "its mode forbids to read it")
	}
	content := f.h.tree[path]
	if path == "/proc/version" {
		content = []byte("a kernel")
	}
	part := content[min(offset, int64(len(content))):]
	if limit > 0 {
		part = part[:min(limit, int64(len(part)))]
	}
	return fakeReading{bytes.NewReader(part), int64(len(content))}, nil
}

func (f fakeFiles) SearchFiles(_ context.Context, s filesystem.Search) (filesystem.Found, error) {
	return filesystem.Found{Matches: []filesystem.Match{{Path: s.Path + "/a.csv", Line: 3, Column: 7, Text: "a"}}, Looked: 1}, nil
}

func (f fakeFiles) WritePath(_ context.Context, path string, r io.Reader, _ filesystem.Set, _ bool) (filesystem.Entry, error) {
	content, err := io.ReadAll(r)
	if err != nil {
		return filesystem.Entry{}, err
	}
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	f.h.tree[path] = content
	n := f.entry(path)
	n.Size = int64(len(content))
	return n, nil
}

func (f fakeFiles) ChangePath(_ context.Context, path string, set filesystem.Set, _ bool) (filesystem.Entry, error) {
	n := f.entry(path)
	n.Mode = *cmp.Or(set.Mode, &n.Mode)
	return n, nil
}

func (f fakeFiles) MovePath(_ context.Context, c filesystem.Copy) (filesystem.Entry, error) {
	return f.entry(c.To), nil
}

func (f fakeFiles) CopyPath(_ context.Context, c filesystem.Copy) (filesystem.Entry, error) {
	return f.entry(c.To), nil
}
func (f fakeFiles) RemovePath(context.Context, string, bool) error { return nil }
func (f fakeFiles) MakePath(_ context.Context, path string, _ filesystem.Set, _ bool) (filesystem.Entry, error) {
	return f.entry(path), nil
}

func (f fakeFiles) LinkPath(_ context.Context, path, target string, _ bool) (filesystem.Entry, error) {
	n := f.entry(path)
	n.Target = target
	return n, nil
}

func (f fakeFiles) ReplaceText(_ context.Context, r filesystem.Replace) ([]filesystem.Replaced, error) {
	return []filesystem.Replaced{{Path: r.Paths[0], Times: 2}}, nil
}

type fakeTree struct{ h *fakeHub }

func (t fakeTree) lock() func() { t.h.mu.Lock(); return t.h.mu.Unlock }

func (t fakeTree) List(context.Context, string) ([]workspace.Entry, bool, error) {
	if !t.h.modified.IsZero() {
		return []workspace.Entry{{Path: "a.csv", Size: 3, Modified: t.h.modified}}, false, nil
	}
	return []workspace.Entry{{Path: "a.csv", Size: 3, Modified: then}, {Path: "data", Folder: true}}, false, nil
}

func (t fakeTree) Stat(_ context.Context, path string) (workspace.Entry, error) {
	defer t.lock()()
	if path == "" || path == "data" {
		return workspace.Entry{Path: path, Folder: true}, nil
	}
	content, ok := t.h.tree[path]
	if !ok {
		return workspace.Entry{}, problem.New(problem.FileNotFound, "there is no such file")
	}
	return workspace.Entry{Path: path, Size: int64(len(content)), Stamp: "s", Modified: cmp.Or(t.h.modified, then)}, nil
}

func (t fakeTree) Read(_ context.Context, path string, offset, limit int64, w io.Writer) (int64, error) {
	unlock := t.lock()
	content := t.h.tree[path]
	unlock()
	if path == "denied" {
		return 0, problem.New(problem.FileDenied, "its mode forbids to read it")
	}
	if limit > 0 {
		content = content[:min(int64(len(content)), offset+limit)]
	}
	for at := offset; at < int64(len(content)); at += 1000 {
		if _, err := w.Write(content[at:min(at+1000, int64(len(content)))]); err != nil {
			return int64(len(content)), err
		}
	}
	return int64(len(content)), nil
}

func (t fakeTree) Write(_ context.Context, path string, r io.Reader) (workspace.Entry, error) {
	content, err := io.ReadAll(r)
	if err != nil {
		return workspace.Entry{}, err
	}
	defer t.lock()()
	t.h.tree[path] = content
	return workspace.Entry{Path: path, Size: int64(len(content)), Stamp: "s", Modified: t.h.modified}, nil
}

func (t fakeTree) Move(_ context.Context, from, to string) error {
	defer t.lock()()
	if _, ok := t.h.tree[to]; ok {
		return problem.New(problem.FileExists, "there is such a file already")
	}
	t.h.tree[to] = t.h.tree[from]
	delete(t.h.tree, from)
	return nil
}

func (t fakeTree) Remove(_ context.Context, path string, _ bool) error {
	defer t.lock()()
	delete(t.h.tree, path)
	return nil
}
func (t fakeTree) MakeFolder(context.Context, string) error { return nil }
func (t fakeTree) Archive(_ context.Context, _, format string, w io.Writer) error {
	_, err := io.WriteString(w, "archive as "+format)
	return err
}

func (h *fakeHub) file() hub.File {
	return hub.File{ID: stored, Name: "Umsätze.csv", Size: 10, SHA256: "aa", Created: then}
}
func (h *fakeHub) AddFile(_ context.Context, who auth.Principal, n hub.NewFile, r io.Reader) (hub.File, error) {
	content, err := io.ReadAll(r)
	if err != nil {
		return hub.File{}, err
	}
	if h.adding != nil {
		<-h.adding // begun
		<-h.adding
		h.adding = nil
	}
	f := h.file()
	f.Name, f.Purpose, f.Size = n.Name, n.Purpose, int64(len(content))
	return f, h.note(who, n, string(content))
}
func (h *fakeHub) File(_ context.Context, who auth.Principal, id string) (hub.File, error) {
	return h.file(), h.note(who, id)
}
func (h *fakeHub) Files(_ context.Context, who auth.Principal, purpose string, p hub.Page) (hub.Listing[hub.File], error) {
	return hub.Listing[hub.File]{Items: []hub.File{h.file()}}, h.note(who, purpose, p)
}

type closer struct{ io.ReadSeeker }

func (closer) Close() error { return nil }

func (h *fakeHub) OpenFile(_ context.Context, who auth.Principal, id string) (hub.File, io.ReadSeekCloser, error) {
	return h.file(), closer{strings.NewReader("0123456789")}, h.note(who, id)
}
func (h *fakeHub) DeleteFile(_ context.Context, who auth.Principal, id string) error {
	return h.note(who, id)
}
func (h *fakeHub) BeginUpload(_ context.Context, who auth.Principal, n hub.NewUpload) (hub.Upload, error) {
	return hub.Upload{ID: upload, Name: n.Name, Size: n.Size, Expires: then}, h.note(who, n)
}
func (h *fakeHub) Upload(_ context.Context, who auth.Principal, id string) (hub.Upload, error) {
	return hub.Upload{ID: id, Size: 10, Received: 4, Expires: then}, h.note(who, id)
}

// AppendUpload has the first 4 bytes of 10.
func (h *fakeHub) AppendUpload(_ context.Context, who auth.Principal, id string, p hub.Piece) (hub.Upload, error) {
	u := hub.Upload{ID: id, Size: 10, Received: 4, Expires: then}
	if h.fail == nil && p.Offset != u.Received {
		return u, problem.New(problem.UploadOffset, "the next byte of the upload is number 4")
	}
	content, err := io.ReadAll(p.Body)
	if u.Received += int64(len(content)); err != nil {
		return u, err
	}
	if u.Received == u.Size {
		f := h.file()
		u.File, u.Stored = f.ID, &f
	}
	return u, h.note(who, id, p.Offset, p.Length, string(content))
}
func (h *fakeHub) DropUpload(_ context.Context, who auth.Principal, id string) error {
	return h.note(who, id)
}
func (h *fakeHub) PutFile(_ context.Context, who auth.Principal, id, file, path string) (workspace.Entry, error) {
	return workspace.Entry{Path: path, Size: 1}, h.note(who, id, file, path)
}
func (h *fakeHub) Install(_ context.Context, who auth.Principal, id string, r []string, told func(installation.Progress)) (installation.Provision, error) {
	told(installation.Progress{Phase: "download", Received: 1, Total: 2})
	return installation.Provision{Installed: []installation.Package{{Name: "polars", Version: "1.0"}}}, h.note(who, id, r)
}
func (h *fakeHub) Packages(_ context.Context, who auth.Principal, id string) (string, map[string]string, error) {
	return "3.12", map[string]string{"numpy": "2"}, h.note(who, id)
}

func (h *fakeHub) talk() hub.Conversation {
	return hub.Conversation{ID: conversation, Title: cmp.Or(h.title, "t"), Created: then, Used: then, Source: "api"}
}
func (h *fakeHub) CreateConversation(_ context.Context, who auth.Principal, n hub.NewConversation) (hub.Conversation, error) {
	return h.talk(), h.note(who, n)
}
func (h *fakeHub) Conversation(_ context.Context, who auth.Principal, id string) (hub.Conversation, error) {
	return h.talk(), h.note(who, id)
}
func (h *fakeHub) Conversations(_ context.Context, who auth.Principal, f hub.ConversationFilter, p hub.Page) (hub.Listing[hub.Conversation], error) {
	return hub.Listing[hub.Conversation]{Items: []hub.Conversation{h.talk()}}, h.note(who, f, p)
}
func (h *fakeHub) ChangeConversation(_ context.Context, who auth.Principal, id string, c hub.ConversationChange) (hub.Conversation, error) {
	return h.talk(), h.note(who, id, c)
}
func (h *fakeHub) ForkConversation(_ context.Context, who auth.Principal, id string, n hub.NewFork) (hub.Conversation, error) {
	c := h.talk()
	c.Origin = &hub.ConversationOrigin{Conversation: id, Turn: cmp.Or(n.Turn, turn)}
	return c, h.note(who, id, n)
}
func (h *fakeHub) DeleteConversation(_ context.Context, who auth.Principal, id string) error {
	return h.note(who, id)
}

func (h *fakeHub) StartTurn(_ context.Context, who auth.Principal, n hub.NewTurn) (hub.Turn, error) {
	return hub.Turn{ID: turn, Conversation: conversation, State: hub.TurnRunning, Prompt: n.Prompt, Created: then}, h.note(who, n)
}
func (h *fakeHub) Turn(_ context.Context, who auth.Principal, id string) (hub.Turn, error) {
	return hub.Turn{ID: id, Conversation: conversation, State: hub.TurnCompleted, Answer: "42", Created: then, Finished: then,
		Usage: model.Usage{InputTokens: 30, OutputTokens: 3, Estimated: true}, Cost: model.Cost{Amount: 0.000068, Currency: "USD"}, Context: hub.Context{Used: 33, Size: 4096}}, h.note(who, id)
}
func (h *fakeHub) Turns(_ context.Context, who auth.Principal, id string, p hub.Page) (hub.Listing[hub.Turn], error) {
	return hub.Listing[hub.Turn]{Items: []hub.Turn{{ID: turn, State: hub.TurnCompleted, Created: then}}}, h.note(who, id, p)
}
func (h *fakeHub) Branch(_ context.Context, who auth.Principal, id string) ([]hub.Turn, error) {
	return []hub.Turn{{ID: id, Conversation: conversation, User: "usr_secret", Session: "ses_secret", Key: "key_secret", State: hub.TurnCompleted, Created: then}}, h.note(who, id)
}
func (h *fakeHub) CancelTurn(_ context.Context, who auth.Principal, id string) (hub.Turn, error) {
	return hub.Turn{ID: id, State: hub.TurnCanceled}, h.note(who, id)
}
func (h *fakeHub) ApproveTurn(_ context.Context, who auth.Principal, id string, w hub.Word) (hub.Turn, error) {
	return hub.Turn{ID: id, State: hub.TurnRunning, Waiting: &hub.Waiting{Step: w.Step, Code: w.Code + w.Note, Since: then}}, h.note(who, id)
}
func (h *fakeHub) RateTurn(_ context.Context, who auth.Principal, id string, r *hub.Rating) (hub.Turn, error) {
	return hub.Turn{ID: id, State: hub.TurnCompleted, Rating: r}, h.note(who, id, r != nil)
}
func (h *fakeHub) UndoTurns(_ context.Context, who auth.Principal, id, from string) (hub.Turn, error) {
	return hub.Turn{ID: id, State: hub.TurnCompleted, Marks: &hub.TurnMarks{Undone: &hub.Undone{From: from, Session: session, At: then}}}, h.note(who, id, from)
}
func (h *fakeHub) RedoTurns(_ context.Context, who auth.Principal, id string) (hub.Turn, error) {
	return hub.Turn{ID: id, State: hub.TurnCompleted}, h.note(who, id)
}
func (h *fakeHub) NoteRerun(_ context.Context, who auth.Principal, id string, step int, execution string) (hub.Turn, error) {
	return hub.Turn{ID: id, State: hub.TurnCompleted, Marks: &hub.TurnMarks{Reruns: []hub.Rerun{{Step: step, Execution: execution, At: then}}}}, h.note(who, id, step, execution)
}
func (h *fakeHub) RatedTurns(_ context.Context, who auth.Principal, p hub.Page) (hub.Listing[hub.Turn], error) {
	return hub.Listing[hub.Turn]{Items: []hub.Turn{{ID: turn, Conversation: conversation, Model: "m", Prompt: "?", Answer: "!", Created: then, Rating: &hub.Rating{Reason: "wrong sum", User: "usr_1", At: then}}}}, h.note(who, p)
}
func (h *fakeHub) DeleteTurn(_ context.Context, who auth.Principal, id string) error {
	return h.note(who, id)
}
func (h *fakeHub) FollowTurn(_ context.Context, who auth.Principal, id string, after int64) (hub.Follower[json.RawMessage], error) {
	return hubtest.TurnEvents(follower(h.turns, after, h.turnEnds)), h.note(who, id, after)
}
func (h *fakeHub) Changes(_ context.Context, who auth.Principal) (iter.Seq2[hub.Change, error], error) {
	return func(yield func(hub.Change, error) bool) {
		yield(hub.Change{Kind: hub.ChangedTurn, ID: turn, Conversation: conversation, State: "running"}, nil)
	}, h.note(who)
}
func (h *fakeHub) LastTurn(_ context.Context, who auth.Principal, id string) (hub.Turn, error) {
	return hub.Turn{ID: turn, Conversation: conversation, State: hub.TurnCompleted}, h.note(who, id)
}
func (h *fakeHub) Recorded(_ context.Context, who auth.Principal, id string) (hub.Follower[json.RawMessage], error) {
	return hubtest.TurnEvents(follower(h.turns, 0, nil)), h.note(who, id)
}

var question = hub.Question{ID: queued, Conversation: conversation, Turn: hub.NewTurn{Prompt: "?"}, User: "usr_1", Created: then}

func (h *fakeHub) PutQuestion(_ context.Context, who auth.Principal, n hub.NewTurn) (hub.Question, error) {
	return question, h.note(who, n.Conversation, n)
}

func (h *fakeHub) Questions(_ context.Context, who auth.Principal, of string) ([]hub.Question, error) {
	held := question
	held.Held = &hub.Held{Kind: problem.Exhausted, Code: "quota_tokens", Message: "used up", Since: then}
	return []hub.Question{held}, h.note(who, of)
}

func (h *fakeHub) ChangeQuestion(_ context.Context, who auth.Principal, of, id string, c hub.QuestionChange) (hub.Question, error) {
	changed := question
	changed.Turn.Prompt = *c.Prompt
	return changed, h.note(who, of, id, c)
}

func (h *fakeHub) DeleteQuestion(_ context.Context, who auth.Principal, of, id string) error {
	return h.note(who, of, id)
}

func (h *fakeHub) AddShare(_ context.Context, who auth.Principal, n hub.NewShare) (hub.Share, string, error) {
	return hub.Share{ID: "shr_1", Hash: "secret hash", Conversation: n.Conversation, Turns: n.Turns, Created: then}, "code of it", h.note(who, n)
}
func (h *fakeHub) Shares(_ context.Context, who auth.Principal, p hub.Page) (hub.Listing[hub.Share], error) {
	return hub.Listing[hub.Share]{Items: []hub.Share{{ID: "shr_1", Hash: "secret hash", Title: "t", Created: then}}}, h.note(who, p)
}
func (h *fakeHub) DeleteShare(_ context.Context, who auth.Principal, id string) error {
	return h.note(who, id)
}
func (h *fakeHub) Shared(context.Context, string) (hub.Share, []byte, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(`{"title":"<shared>","shows_code":true,"files":[],"turns":[],"created_at":"2026-11-21T10:00:00Z"}`))
	_ = w.Close()
	return hub.Share{}, packed.Bytes(), h.note(auth.Local())
}
func (h *fakeHub) Search(_ context.Context, who auth.Principal, q string, p hub.Page) (hub.Listing[hub.Found], error) {
	return hub.Listing[hub.Found]{Items: []hub.Found{{Turn: turn, Field: "prompt", Snippet: q, At: then}}}, h.note(who, q, p)
}
func (h *fakeHub) ToolServers(_ context.Context, who auth.Principal) ([]tool.Server, error) {
	return []tool.Server{{Name: "git", Tools: []tool.Tool{{Name: "git.git_log", Parameters: json.RawMessage(`{"type":"object"}`)}}, Without: []tool.Without{{Name: "x", Why: "y"}}},
		{Name: "lost", Problem: problem.New(problem.ToolServerUnreachable, "it does not start")}}, h.note(who)
}
func (h *fakeHub) Models(_ context.Context, who auth.Principal) ([]hub.ModelInfo, error) {
	return []hub.ModelInfo{{ID: "a/b", Provider: "a", Default: true, About: model.About{Context: 4096, Vision: new(false),
		Price: &model.Price{Input: 1_250_000, Output: 10_000_000, Cached: new(int64(0)), Currency: "USD"}}}, {ID: "a/c", Provider: "a"}}, h.note(who)
}
func (h *fakeHub) Usage(_ context.Context, who auth.Principal, key, first, last string) ([]hub.Usage, error) {
	return []hub.Usage{{Day: first, Executions: 2, Cost: 0.25, Currency: "USD"}}, h.note(who, key, first, last)
}
func (h *fakeHub) UsageOfAll(_ context.Context, who auth.Principal, first, last string) ([]hub.Usage, error) {
	return []hub.Usage{{Day: first, Executions: 7}}, h.note(who, "", first, last)
}
func (h *fakeHub) UsageByProject(_ context.Context, who auth.Principal, first, last string) ([]hub.ProjectUsage, error) {
	return []hub.ProjectUsage{{Project: "prj_1", Usage: hub.Usage{Executions: 7}}}, h.note(who, "", first, last)
}
func (h *fakeHub) Answers(_ context.Context, who auth.Principal, _ bool, first, last string) ([]hub.AnswerDay, error) {
	return []hub.AnswerDay{{Day: first, Model: "openai/gpt", Turns: 4, Completed: 3, Repaired: 1, Within: [11]int64{0, 0, 3, 1}, Median: 4, P95: 8}}, h.note(who, "", first, last)
}
func (h *fakeHub) Ready(context.Context) error { return h.fail }

// fakeAccounts has one of each.
type fakeAccounts struct{}

var oneKey = auth.Key{ID: "key_1", Name: "k", Created: then, Hash: []byte("secret hash"), Quota: []byte(`{"tokens_per_day":5}`)}

func (fakeAccounts) CreateKey(context.Context, auth.Principal, auth.NewKey) (auth.Key, string, error) {
	return oneKey, "cove_text", nil
}
func (fakeAccounts) Keys(context.Context, auth.Principal) ([]auth.Key, error) {
	return []auth.Key{oneKey}, nil
}
func (fakeAccounts) AllKeys(context.Context, auth.Principal) ([]auth.Key, error) {
	return []auth.Key{oneKey, {ID: "key_2", Subject: "somebody"}}, nil
}
func (fakeAccounts) RevokeKey(context.Context, auth.Principal, string) (auth.Key, error) {
	return oneKey, nil
}
func (fakeAccounts) Instructions(context.Context, auth.Principal, string) (string, error) {
	return "Be brief.", nil
}

func (fakeAccounts) SetInstructions(_ context.Context, _ auth.Principal, _, text string) (auth.Project, error) {
	return auth.Project{Instructions: text}, nil
}

func (fakeAccounts) SetKeyQuota(context.Context, auth.Principal, string, []byte) (auth.Key, error) {
	return oneKey, nil
}
func (fakeAccounts) Authenticate(_ context.Context, text string) (auth.Principal, error) {
	if text == "wrong" {
		return auth.Principal{}, problem.New(problem.Unauthenticated, "the key is not valid")
	}
	return auth.Principal{User: "usr_1", Project: "prj_1", Key: "key_1", Role: auth.Member}, nil
}
func (fakeAccounts) Redeem(_ context.Context, visitor auth.Principal, text string) (auth.Principal, error) {
	if text == "used" {
		return auth.Principal{}, problem.New(problem.SignInCodeUsed, "used")
	}
	return auth.Principal{User: "usr_1", Project: "prj_1", Role: auth.Viewer, IP: visitor.IP}, nil
}
func (fakeAccounts) AuthenticatePassword(_ context.Context, visitor auth.Principal, name, _, _ string) (auth.Principal, error) {
	visitor.User = name
	return visitor, nil
}
func (fakeAccounts) Invite(_ context.Context, _ auth.Principal, n auth.NewInvitation) (auth.Invitation, string, error) {
	return auth.Invitation{ID: "inv_1", Hash: "secret hash", Role: n.Role}, "code of it", nil
}
func (fakeAccounts) Invitations(context.Context, auth.Principal) ([]auth.Invitation, error) {
	return []auth.Invitation{{ID: "inv_1", Hash: "secret hash", Role: auth.Viewer}}, nil
}
func (fakeAccounts) Uninvite(context.Context, auth.Principal, string) error { return nil }
func (fakeAccounts) LookInvitation(context.Context, string) (auth.Invited, error) {
	return auth.Invited{Project: "lab", Role: auth.Member}, nil
}
func (fakeAccounts) AcceptInvitation(_ context.Context, who auth.Principal, n auth.Acceptance) (auth.Principal, error) {
	return auth.Principal{User: n.Login, Browser: who.Browser}, nil
}
func (fakeAccounts) Self(context.Context, auth.Principal) (auth.Self, error) {
	return auth.Self{User: "ada", Project: "lab", Login: "ada@example.com"}, nil
}

func (fakeAccounts) SetPassword(context.Context, auth.Principal, auth.NewPassword) error { return nil }
func (fakeAccounts) SignIn(_ context.Context, who auth.Principal, _ string) (auth.Browser, string, error) {
	return auth.Browser{ID: "brw_1", User: who.User, Hash: []byte("secret hash"), Expires: time.Date(2026, 12, 21, 0, 0, 0, 0, time.UTC)}, "text of " + who.User, nil
}
func (fakeAccounts) SignOut(context.Context, auth.Principal) error { return nil }
func (fakeAccounts) Browsers(context.Context, auth.Principal) ([]auth.Browser, error) {
	return []auth.Browser{{ID: "brw_1", Hash: []byte("secret hash"), Agent: "Mozilla"}, {ID: "brw_2"}}, nil
}
func (fakeAccounts) RevokeBrowser(context.Context, auth.Principal, string) error { return nil }
func (fakeAccounts) CreateUser(_ context.Context, _ auth.Principal, name string, _ bool) (auth.User, error) {
	return auth.User{Name: name}, nil
}
func (fakeAccounts) Users(context.Context, auth.Principal) ([]auth.User, error) {
	return []auth.User{{Name: "ann"}}, nil
}
func (fakeAccounts) User(_ context.Context, _ auth.Principal, user string) (auth.User, error) {
	return auth.User{Name: user}, nil
}
func (fakeAccounts) SetAdmin(_ context.Context, _ auth.Principal, user string, admin bool) (auth.User, error) {
	return auth.User{Name: user, Admin: admin}, nil
}
func (fakeAccounts) DeleteUser(context.Context, auth.Principal, string) error { return nil }
func (fakeAccounts) CreateProject(_ context.Context, _ auth.Principal, name string) (auth.Project, error) {
	return auth.Project{Name: name}, nil
}
func (fakeAccounts) Projects(context.Context, auth.Principal) ([]auth.Project, error) {
	return []auth.Project{{Name: "p"}}, nil
}
func (fakeAccounts) Project(_ context.Context, _ auth.Principal, p string) (auth.Project, error) {
	return auth.Project{Name: p}, nil
}
func (fakeAccounts) SetQuota(_ context.Context, _ auth.Principal, p string, quota []byte) (auth.Project, error) {
	return auth.Project{Name: p, Quota: quota}, nil
}
func (fakeAccounts) Members(context.Context, auth.Principal, string) ([]auth.Membership, error) {
	return []auth.Membership{{User: "ann", Role: auth.Member}}, nil
}
func (fakeAccounts) SetMember(_ context.Context, _ auth.Principal, m auth.Membership) (auth.Membership, error) {
	return m, nil
}
func (fakeAccounts) Rows(_ context.Context, _ auth.Principal, _ bool, q audit.Query) ([]audit.Row, error) {
	return slices.Repeat([]audit.Row{{ID: "aud_1", At: then, Action: "session.create", Outcome: "ok"}}, min(q.Limit, 2)), nil
}

type rows struct {
	mu   sync.Mutex
	kept []audit.Row
}

func (r *rows) AddRow(_ context.Context, row audit.Row) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, row)
	return nil
}
func (r *rows) Rows(context.Context, audit.Query) ([]audit.Row, error) { return r.kept, nil }

// world is the interface before a fake hub, after what stands for the server's authentication.
type world struct {
	hub   *fakeHub
	rows  *rows
	who   auth.Principal
	known bool // false: no caller
	url   string
}

func newWorld(t *testing.T, change func(*api.Options)) *world {
	t.Helper()
	w := &world{hub: &fakeHub{tree: map[string][]byte{"a.csv": []byte("abc")}}, rows: &rows{}, who: auth.Local(), known: true}
	w.hub.events = numbered[hub.Event](kernel.Stream{Name: "stdout", Data: []byte("hi\n")}, kernel.Result{Count: 1, Data: kernel.Bundle{"text/plain": "2"}}, kernel.Done{Outcome: kernel.OutcomeOK})
	w.hub.turns = numbered[hub.TurnEvent](loop.Text{Delta: "It is "}, loop.Answer{Text: "It is 42", Reason: loop.Complete})
	o := api.Options{Hub: w.hub, Accounts: fakeAccounts{}, Audit: w.rows, Version: "1.2.3", Ready: w.hub.Ready, Ports: func() ports.Address { return ports.Address{Scheme: "https", Host: "ports.test"} }, Now: func() time.Time { return then }}
	if change != nil {
		change(&o)
	}
	handler := api.New(o)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Request-Id", "req_1")
		ctx, end := context.WithCancelCause(r.Context())
		defer end(nil)
		r = r.WithContext(context.WithValue(ctx, endKey{}, end))
		if w.known {
			r = r.WithContext(auth.With(r.Context(), w.who))
		}
		handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// endKey is where a request's context has what ends it with a cause, as a server that ends does.
type endKey struct{}

type reply struct {
	status int
	header http.Header
	body   string
}

// do sends a request; headers are "Name: value".
func (w *world) do(t *testing.T, method, path, body string, headers ...string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := apitest.Check(method, path, answer.StatusCode, answer.Header, text); err != nil {
		t.Error(err)
	}
	return reply{answer.StatusCode, answer.Header, string(text)}
}
