package e2b

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"sync"
	"time"

	"connectrpc.com/connect"

	"cove/internal/http/compat/e2b/envd"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/server/auth"
)

const (
	mostWatchers = 32     // of a sandbox
	mostPending  = 10_000 // events of one that nobody has asked for yet
	watcherLife  = 10 * time.Minute
)

// watching is what a client wants to be told of.
type watching struct {
	b         sandbox
	path      string
	recursive bool
	entries   bool                 // with what is known of each file
	arrived   map[string]time.Time // the files of which it was told that they have come
}

// begin begins to watch a folder.
func (f files) begin(ctx context.Context, w watching) (iter.Seq2[filesystem.Event, error], error) {
	err := f.look(ctx, w.b, w.path, func(ctx context.Context, use guestlink.Files) error {
		n, err := use.StatPath(ctx, w.path, false)
		if err == nil && n.Kind != filesystem.Folder {
			return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("path %s not a directory", w.path))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	events, err := f.s.Hub.WatchFiles(ctx, w.b.who, w.b.id, w.path, w.recursive)
	return events, rpcFault(err)
}

// told is a change in the agent's words: of a move there are two.
func (f files) told(ctx context.Context, w watching, e filesystem.Event) []*envd.FilesystemEvent {
	kinds := map[filesystem.EventKind]envd.EventType{
		filesystem.Created: envd.EventType_EVENT_TYPE_CREATE, filesystem.Written: envd.EventType_EVENT_TYPE_WRITE, filesystem.Altered: envd.EventType_EVENT_TYPE_CHMOD,
		filesystem.Removed: envd.EventType_EVENT_TYPE_REMOVE,
	}
	if e.Kind == filesystem.Moved {
		return []*envd.FilesystemEvent{{Name: e.From, Type: envd.EventType_EVENT_TYPE_RENAME}, f.described(ctx, w, &envd.FilesystemEvent{Name: e.Path, Type: envd.EventType_EVENT_TYPE_CREATE})}
	}
	kind, ok := kinds[e.Kind]
	if !ok || e.Path == "" {
		return nil
	}
	out := &envd.FilesystemEvent{Name: e.Path, Type: kind}
	if e.Kind == filesystem.Removed {
		return []*envd.FilesystemEvent{out}
	}
	f.described(ctx, w, out)
	if at, ok := f.s.arrivals.of(w.b.id, path.Join(w.path, e.Path)); ok && e.Kind == filesystem.Written && w.arrived[e.Path] != at {
		if len(w.arrived) >= mostArrivals {
			clear(w.arrived)
		}
		w.arrived[e.Path] = at
		made, owned := &envd.FilesystemEvent{Name: e.Path, Type: envd.EventType_EVENT_TYPE_CREATE, Entry: out.GetEntry()}, &envd.FilesystemEvent{Name: e.Path, Type: envd.EventType_EVENT_TYPE_CHMOD, Entry: out.GetEntry()}
		return []*envd.FilesystemEvent{made, owned, out}
	}
	return []*envd.FilesystemEvent{out}
}

// described adds what is known of the file, where the client wants that and the file is still there.
func (f files) described(ctx context.Context, w watching, e *envd.FilesystemEvent) *envd.FilesystemEvent {
	if !w.entries {
		return e
	}
	p := path.Join(w.path, e.GetName())
	_ = f.look(ctx, w.b, p, func(ctx context.Context, use guestlink.Files) error { // it may be gone by now
		n, err := use.StatPath(ctx, p, true)
		if err == nil {
			e.Entry = infoOf(n)
		}
		return err
	})
	return e
}

// WatchDir streams the changes in a folder.
func (f files) WatchDir(ctx context.Context, in *envd.WatchDirRequest, out *connect.ServerStream[envd.WatchDirResponse]) error {
	b, p, err := f.place(ctx, in.GetPath())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := watching{b, p, in.GetRecursive(), in.GetIncludeEntry(), map[string]time.Time{}}
	events, err := f.begin(ctx, w)
	if err != nil {
		return err
	}
	if err := out.Send(&envd.WatchDirResponse{Event: &envd.WatchDirResponse_Start{Start: &envd.WatchDirResponse_StartEvent{}}}); err != nil {
		return err
	}
	beats := ticker(header(ctx))
	defer beats.Stop()
	for e, err := range beating(ctx, events, beats.C) {
		if err != nil {
			return rpcFault(err)
		}
		if e == nil {
			if err := out.Send(&envd.WatchDirResponse{Event: &envd.WatchDirResponse_Keepalive{Keepalive: &envd.WatchDirResponse_KeepAlive{}}}); err != nil {
				return err
			}
			continue
		}
		for _, said := range f.told(ctx, w, *e) {
			if err := out.Send(&envd.WatchDirResponse{Event: &envd.WatchDirResponse_Filesystem{Filesystem: said}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// arrivals are files that clients have just written where there were none. E2B's agent makes such a file, gives it its owner, and writes it, of which a watch tells one by one; in cove a file
// is there at once, and whole, which is one change.
type arrivals struct {
	mu  sync.Mutex
	all map[[2]string]time.Time // by session and path
}

const (
	arrivalLife  = 10 * time.Second // a watch tells of it long before
	mostArrivals = 10_000
)

// note says before a file is written whether it is new.
func (a *arrivals) note(session, path string, isNew bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if len(a.all) >= mostArrivals {
		maps.DeleteFunc(a.all, func(_ [2]string, at time.Time) bool { return now.Sub(at) > arrivalLife })
	}
	if !isNew || len(a.all) >= mostArrivals {
		delete(a.all, [2]string{session, path})
		return
	}
	if a.all == nil {
		a.all = map[[2]string]time.Time{}
	}
	a.all[[2]string{session, path}] = now
}

// of returns when a file came, if that was just now.
func (a *arrivals) of(session, path string) (at time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok = a.all[[2]string{session, path}]
	return at, ok && time.Since(at) <= arrivalLife
}

// watchers are those of clients that ask for events rather than follow a stream. One that nobody asks for a while is removed.
type watchers struct {
	mu  sync.Mutex
	all map[string]*watcher
}

type watcher struct {
	session string
	stop    func()
	idle    *time.Timer

	mu     sync.Mutex
	events []*envd.FilesystemEvent
	lost   bool // events that nobody has asked for in time
	ended  error
}

func (w *watchers) add(id string, one *watcher) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 0
	for _, other := range w.all {
		if other.session == one.session {
			count++
		}
	}
	if count >= mostWatchers {
		return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the sandbox has %d watchers already; remove some", mostWatchers))
	}
	if w.all == nil {
		w.all = map[string]*watcher{}
	}
	w.all[id] = one
	one.idle = time.AfterFunc(watcherLife, func() { w.remove(id, one.session) })
	return nil
}

func (w *watchers) find(id, session string) (*watcher, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.all[id]; one != nil && one.session == session {
		one.idle.Reset(watcherLife)
		return one, nil
	}
	return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("watcher with id %.64s not found", id))
}

func (w *watchers) remove(id, session string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.all[id]; one != nil && one.session == session {
		one.idle.Stop()
		one.stop()
		delete(w.all, id)
	}
}

// CreateWatcher begins to watch a folder, and keeps what happens.
func (f files) CreateWatcher(ctx context.Context, in *envd.CreateWatcherRequest) (*envd.CreateWatcherResponse, error) {
	b, p, err := f.place(ctx, in.GetPath())
	if err != nil {
		return nil, err
	}
	w := watching{b, p, in.GetRecursive(), in.GetIncludeEntry(), map[string]time.Time{}}
	id, _ := auth.RandomCode()
	lasting, leave := f.s.clocks.Enter(context.WithoutCancel(ctx), b.id, false)
	one := &watcher{session: b.id, stop: leave}
	if err := f.s.watchers.add(id, one); err != nil {
		leave()
		return nil, err
	}
	events, err := f.begin(lasting, w)
	if err != nil {
		f.s.watchers.remove(id, b.id)
		return nil, err
	}
	go func() {
		ended := error(nil)
		for e, err := range events {
			if err != nil {
				ended = rpcFault(err)
				break
			}
			one.keep(f.told(lasting, w, e))
		}
		one.mu.Lock()
		one.ended = ended
		one.mu.Unlock()
	}()
	return &envd.CreateWatcherResponse{WatcherId: id}, nil
}

func (w *watcher) keep(events []*envd.FilesystemEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, events...)
	if n := len(w.events) - mostPending; n > 0 {
		w.events, w.lost = w.events[n:], true
	}
}

// GetWatcherEvents returns what has happened since it was asked last.
func (f files) GetWatcherEvents(ctx context.Context, in *envd.GetWatcherEventsRequest) (*envd.GetWatcherEventsResponse, error) {
	one, err := f.s.watchers.find(in.GetWatcherId(), sandboxOf(ctx).id)
	if err != nil {
		return nil, err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.lost {
		one.lost = false
		return nil, connect.NewError(connect.CodeDataLoss, errors.New("more happened than is kept for a watcher that nobody asks: list the folder again"))
	}
	out := &envd.GetWatcherEventsResponse{Events: one.events}
	one.events = nil
	if len(out.Events) == 0 && one.ended != nil {
		return nil, one.ended
	}
	return out, nil
}

// RemoveWatcher ends the watching.
func (f files) RemoveWatcher(ctx context.Context, in *envd.RemoveWatcherRequest) (*envd.RemoveWatcherResponse, error) {
	b := sandboxOf(ctx)
	if _, err := f.s.watchers.find(in.GetWatcherId(), b.id); err != nil {
		return nil, err
	}
	f.s.watchers.remove(in.GetWatcherId(), b.id)
	return &envd.RemoveWatcherResponse{}, nil
}
