package guest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"cove/internal/machine/wire"
)

const (
	watchedChanges = syscall.IN_CREATE | syscall.IN_MODIFY | syscall.IN_ATTRIB | syscall.IN_MOVED_FROM | syscall.IN_MOVED_TO | syscall.IN_DELETE | syscall.IN_DELETE_SELF | syscall.IN_MOVE_SELF
	// movePatience is how long the second half of a move may take: a name that went and did not come within what is watched has left it.
	movePatience = 50 * time.Millisecond
)

// watch tells of the changes of a file, or in a folder and with spec.All in those below it, until the host has had enough.
func (g *guest) watch(ctx context.Context, ch *wire.Channel, req wire.Request) error {
	if req.Files == nil {
		return fault{wire.FaultInvalid, "nothing to watch"}
	}
	if g.watches.Add(1) > wire.WatchLimit {
		g.watches.Add(-1)
		return fault{wire.FaultMany, fmt.Sprintf("%d clients watch files of the session, which is the most at a time", wire.WatchLimit)}
	}
	defer g.watches.Add(-1)
	w, err := g.newWatch(*req.Files)
	if err != nil {
		return err
	}
	defer w.close()
	if err := wire.WriteMessage(ch, wire.Response{}, nil); err != nil {
		return nil
	}
	defer context.AfterFunc(ctx, w.stop)()
	go func() {
		_, _ = ch.Read(make([]byte, 1)) // the host says nothing more: the end of its interest ends this
		w.stop()
	}()
	w.run(func(e wire.FileEvent) bool { return wire.WriteMessage(ch, e, nil) == nil })
	_ = ch.CloseWrite()
	return nil
}

// watch is a file or folder that somebody watches.
type watch struct {
	g         *guest
	recursive bool
	top       string // the folder, absolute
	only      string // the file in it that the watch is about, so that one which is replaced is watched on; "": all
	fd        int
	file      *os.File // of fd
	stopped   atomic.Bool
	folders   map[int32]string // from top, by the number of their watch
	known     map[string]bool  // entries of new folders that were told of when the folder was looked at, so that they are not told of twice
	left      *departure
	queue     []wire.FileEvent
	wrote     map[string]bool // files of which the queue tells that they were written, as the last that it tells of them
	lost      bool
}

// departure is the first half of a move.
type departure struct {
	cookie uint32
	path   string
	folder bool
	part   bool // nobody knew of it: the host has just sent it, or the watch is about another file
	at     time.Time
}

func (g *guest) newWatch(spec wire.FileSpec) (*watch, error) {
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	w := &watch{g: g, recursive: spec.All, fd: fd, file: os.NewFile(uintptr(fd), "inotify"), folders: map[int32]string{}, known: map[string]bool{}, wrote: map[string]bool{}}
	err = g.asUser(func() error {
		p, err := g.find(spec.Path, false)
		if err != nil {
			return err
		}
		fi, err := os.Stat(p.full)
		if err != nil {
			return err
		}
		if w.top = p.full; !fi.IsDir() {
			w.top, w.only, w.recursive = p.folder(), p.base(), false
		}
		return w.add("", false)
	})
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *watch) close() { _ = w.file.Close() }

// stop has run return.
func (w *watch) stop() {
	w.stopped.Store(true)
	_ = w.file.SetReadDeadline(time.Unix(1, 0))
}

// add watches a folder, from top, and with recursive what is in it. With tell what is in it is told of as new. The caller is the sandboxed user.
func (w *watch) add(below string, tell bool) error {
	full := path.Join(w.top, below)
	if len(w.folders) >= wire.WatchFolders || strings.Count(full, "/") > deepestPath {
		w.lose()
		return nil
	}
	flags := uint32(watchedChanges)
	if below != "" {
		flags |= syscall.IN_DONT_FOLLOW | syscall.IN_ONLYDIR
	}
	number, err := syscall.InotifyAddWatch(w.fd, full, flags)
	if err != nil {
		return &os.PathError{Op: "watch", Path: full, Err: err}
	}
	w.folders[int32(number)] = below
	if !w.recursive {
		return nil
	}
	entries, more, err := readFolder(full, wire.WatchFolders)
	if err != nil && below == "" {
		return err
	}
	if more {
		w.lose()
	}
	for _, e := range entries {
		p := path.Join(below, e.Name())
		if tell && !isPart(e.Name()) {
			w.known[p] = true
			w.tell(wire.FileEvent{Kind: wire.FileEventCreate, Path: p, Folder: e.IsDir()})
		}
		if e.IsDir() {
			w.addBelow(p, tell)
		}
	}
	return nil
}

// addBelow is add for a folder that may be gone. One that the user may not look into changes unseen.
func (w *watch) addBelow(below string, tell bool) {
	if err := w.add(below, tell); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		w.lose()
	}
}

// lose says once, until something else is told, that changes were missed.
func (w *watch) lose() {
	if !w.lost {
		w.lost = true
		w.queue = append(w.queue, wire.FileEvent{Kind: wire.FileEventLost})
	}
}

func (w *watch) tell(e wire.FileEvent) {
	e.Path, e.From = spell(e.Path), spell(e.From)
	if e.Kind == wire.FileEventWrite {
		if w.wrote[e.Path] {
			return // nothing of the queue has been told yet
		}
		w.wrote[e.Path] = true
	} else {
		delete(w.wrote, e.Path)
	}
	w.lost = false
	w.queue = append(w.queue, e)
}

// run tells of changes until it is stopped, what it watches is gone, or say returns false.
func (w *watch) run(say func(wire.FileEvent) bool) {
	buffer := make([]byte, 64<<10)
	for {
		until := time.Time{}
		if w.left != nil {
			until = w.left.at.Add(movePatience)
		}
		_ = w.file.SetReadDeadline(until)
		if w.stopped.Load() { // after that, which takes back what stop has set
			return
		}
		n, err := w.file.Read(buffer)
		over := false
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && w.left != nil && time.Since(w.left.at) >= movePatience:
			w.depart()
		case err != nil:
			return
		default:
			_ = w.g.asUser(func() error {
				over = w.take(buffer[:n])
				return nil
			})
		}
		for _, e := range w.queue {
			if !say(e) {
				return
			}
		}
		w.queue = w.queue[:0]
		clear(w.wrote)
		if over {
			say(wire.FileEvent{Kind: wire.FileEventEnd})
			return
		}
	}
}

// take reads raw events, and says whether what is watched is gone.
func (w *watch) take(raw []byte) (over bool) {
	const header = syscall.SizeofInotifyEvent
	for len(raw) >= header {
		number := int32(binary.NativeEndian.Uint32(raw))
		mask, cookie, size := binary.NativeEndian.Uint32(raw[4:]), binary.NativeEndian.Uint32(raw[8:]), binary.NativeEndian.Uint32(raw[12:])
		if uint64(len(raw)) < header+uint64(size) {
			return over
		}
		name, _, _ := bytes.Cut(raw[header:header+size], []byte{0})
		raw = raw[header+size:]
		if mask&syscall.IN_Q_OVERFLOW != 0 {
			w.lose()
			w.addBelow("", false) // folders may have come unseen
			continue
		}
		folder, ok := w.folders[number]
		if !ok {
			continue
		}
		switch {
		case mask&syscall.IN_IGNORED != 0:
			delete(w.folders, number)
			over = over || folder == ""
		case mask&(syscall.IN_DELETE_SELF|syscall.IN_MOVE_SELF) != 0:
			over = over || folder == ""
		default:
			w.one(path.Join(folder, string(name)), mask, cookie, len(name) == 0)
		}
	}
	return over
}

// one takes one change. own says that it is one of the watched folder itself.
func (w *watch) one(p string, mask, cookie uint32, own bool) {
	isFolder := mask&syscall.IN_ISDIR != 0
	if own && p != "" {
		return // its parent tells of it, too
	}
	part := isPart(path.Base(p))
	if w.left != nil && (mask&syscall.IN_MOVED_TO == 0 || w.left.cookie != cookie) {
		w.depart()
	}
	other := w.only != "" && p != w.only
	switch {
	case mask&syscall.IN_MOVED_FROM != 0:
		w.left = &departure{cookie: cookie, path: p, folder: isFolder, part: part || other, at: time.Now()}
	case mask&syscall.IN_MOVED_TO != 0 && other:
		if w.left != nil {
			w.depart() // within the folder, but away from the name that the watch is about
		}
	case mask&syscall.IN_MOVED_TO != 0:
		w.arrive(p, cookie, isFolder)
	case part, other:
	case mask&syscall.IN_CREATE != 0:
		w.create(p, isFolder)
	case mask&syscall.IN_MODIFY != 0:
		w.tell(wire.FileEvent{Kind: wire.FileEventWrite, Path: p})
	case mask&syscall.IN_ATTRIB != 0:
		w.tell(wire.FileEvent{Kind: wire.FileEventChange, Path: p, Folder: isFolder})
	case mask&syscall.IN_DELETE != 0:
		w.forget(p)
		w.tell(wire.FileEvent{Kind: wire.FileEventRemove, Path: p, Folder: isFolder})
	}
}

func (w *watch) create(p string, isFolder bool) {
	if w.known[p] { // it was seen when its folder was looked at
		delete(w.known, p)
		return
	}
	w.tell(wire.FileEvent{Kind: wire.FileEventCreate, Path: p, Folder: isFolder})
	w.enter(p, isFolder)
}

// enter watches a folder that has just come, and tells of what is in it already.
func (w *watch) enter(p string, isFolder bool) {
	if !isFolder || !w.recursive {
		return
	}
	if len(w.known) > wire.WatchFolders {
		clear(w.known)
	}
	w.addBelow(p, true)
}

// arrive takes the second half of a move.
func (w *watch) arrive(p string, cookie uint32, isFolder bool) {
	from := w.left
	w.left = nil
	switch {
	case from == nil || from.cookie != cookie: // from outside
		w.forget(p)
		w.create(p, isFolder)
	case from.part:
		w.tell(wire.FileEvent{Kind: wire.FileEventWrite, Path: p, Folder: isFolder})
	default:
		w.forget(p)
		w.follow(from.path, p)
		w.tell(wire.FileEvent{Kind: wire.FileEventMove, Path: p, From: from.path, Folder: isFolder})
	}
}

// depart tells of a name that has left what is watched.
func (w *watch) depart() {
	from := w.left
	w.left = nil
	w.forget(from.path)
	w.unwatch(from.path)
	if !from.part {
		w.tell(wire.FileEvent{Kind: wire.FileEventRemove, Path: from.path, Folder: from.folder})
	}
}

// follow has the watched folders at and below a path have their new name.
func (w *watch) follow(from, to string) {
	for number, folder := range w.folders {
		if folder == from || strings.HasPrefix(folder, from+"/") {
			w.folders[number] = to + strings.TrimPrefix(folder, from)
		}
	}
}

// unwatch ends the watching of the folders at and below a path, which are elsewhere now.
func (w *watch) unwatch(p string) {
	for number, folder := range w.folders {
		if folder == p || strings.HasPrefix(folder, p+"/") {
			delete(w.folders, number)
			_, _ = syscall.InotifyRmWatch(w.fd, uint32(number))
		}
	}
}

// forget drops what is remembered of a name.
func (w *watch) forget(p string) { delete(w.known, p) }
