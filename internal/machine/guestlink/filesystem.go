package guestlink

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/wire"
)

// Bounds of what a guest says of its files. Code may have taken the guest's place.
const (
	longestName   = 4096
	longestPlace  = 2 * longestName
	mostMode      = 0o7777
	longestOwner  = 100
	mostAttribute = wire.AttributeLimit
)

// Files is the file system of a sandbox, as its code sees it: *Link, whose methods say what each does.
type Files interface {
	FilesSeen
	FilesWritten
	FilesNamed
}

// FilesSeen looks at files.
type FilesSeen interface {
	StatPath(ctx context.Context, path string, link bool) (filesystem.Entry, error)
	ListPath(ctx context.Context, path string, depth int) (entries []filesystem.Entry, more bool, unnamed int64, err error)
	OpenPath(ctx context.Context, path string, offset, limit int64) (Reading, error)
	SearchFiles(ctx context.Context, s filesystem.Search) (filesystem.Found, error)
}

// FilesWritten changes what is in files, and what is said of them.
type FilesWritten interface {
	WritePath(ctx context.Context, path string, r io.Reader, set filesystem.Set, fresh bool) (filesystem.Entry, error)
	ChangePath(ctx context.Context, path string, set filesystem.Set, all bool) (filesystem.Entry, error)
	ReplaceText(ctx context.Context, r filesystem.Replace) ([]filesystem.Replaced, error)
}

// FilesNamed makes, moves and removes names.
type FilesNamed interface {
	MovePath(ctx context.Context, c filesystem.Copy) (filesystem.Entry, error)
	CopyPath(ctx context.Context, c filesystem.Copy) (filesystem.Entry, error)
	RemovePath(ctx context.Context, path string, all bool) error
	MakePath(ctx context.Context, path string, set filesystem.Set, fresh bool) (filesystem.Entry, error)
	LinkPath(ctx context.Context, path, target string, replace bool) (filesystem.Entry, error)
}

// Reading is a file that is being read: a *Content.
type Reading interface {
	io.ReadCloser
	Whole() int64 // the size of the file, when it was opened
	Len() int64   // how much is still to be read
}

type rootKey struct{}

// AsRoot has what is done with files in the context be done with the rights of the sandbox's root, where it has one (problem no_root otherwise), but for watching.
func AsRoot(ctx context.Context) context.Context { return context.WithValue(ctx, rootKey{}, true) }

// IsRoot says whether the context is one of AsRoot.
func IsRoot(ctx context.Context) bool { return ctx.Value(rootKey{}) != nil }

// knowsFiles returns the problem of a guest that is older than these operations.
func (l *Link) knowsFiles() error {
	if l.info.Files {
		return nil
	}
	return problem.New(problem.FilesAbsent, "the session was saved by an older cove, whose sandboxes show their workspace alone").WithHint("make a new session; this one goes on running code")
}

// mayAsk returns what is wrong with a request, or with the guest: what is no text would be another path when JSON has been made of it.
func (l *Link) mayAsk(spec wire.FileSpec) error {
	if err := l.knowsFiles(); err != nil {
		return err
	}
	for _, p := range append(slices.Clone(spec.Paths), spec.Path) {
		if err := filesystem.CheckPath(p); err != nil {
			return err
		}
	}
	return nil
}

// askFiles does an operation that is one request and one answer, whose body is JSON when into is not nil.
func (l *Link) askFiles(ctx context.Context, op string, spec wire.FileSpec, into any) (wire.Response, error) {
	if err := l.mayAsk(spec); err != nil {
		return wire.Response{}, err
	}
	spec.Root = IsRoot(ctx)
	ch, release, err := l.open(ctx, wire.Request{Op: op, Files: &spec}, nil)
	if err != nil {
		return wire.Response{}, err
	}
	defer release()
	resp, body, err := l.respond(ctx, ch)
	if err == nil && into != nil {
		if err = json.Unmarshal(body, into); err != nil {
			err = problem.New(problem.GuestFault, "what the guest says of its files cannot be read").WithCause(err)
		}
	}
	return resp, err
}

// onePath does an operation that is answered with an Entry.
func (l *Link) onePath(ctx context.Context, op string, spec wire.FileSpec) (filesystem.Entry, error) {
	var said heardEntry
	if _, err := l.askFiles(ctx, op, spec, &said); err != nil {
		return filesystem.Entry{}, err
	}
	return fileEntryOf(said), nil
}

// StatPath describes what a path names, with link a symbolic link itself.
func (l *Link) StatPath(ctx context.Context, path string, link bool) (filesystem.Entry, error) {
	return l.onePath(ctx, wire.OpFilesStat, wire.FileSpec{Path: path, Link: link})
}

// ListPath lists what is in a folder, down to a depth. more says that there is more than a listing holds, and unnamed how many entries have names that are no text.
func (l *Link) ListPath(ctx context.Context, path string, depth int) (entries []filesystem.Entry, more bool, unnamed int64, err error) {
	var said entryList
	resp, err := l.askFiles(ctx, wire.OpFilesList, wire.FileSpec{Path: path, Depth: depth}, &said)
	if err != nil {
		return nil, false, 0, err
	}
	entries = make([]filesystem.Entry, 0, len(said))
	for _, n := range said {
		entries = append(entries, fileEntryOf(n))
	}
	return entries, resp.More, max(resp.Size, 0), nil
}

// entryList is decoded only as far as an honest guest's goes.
type entryList []heardEntry

// heardEntry is an entry that a guest tells of. Its attributes are decoded only where they are no more than an honest guest's: decoded, a few bytes of JSON can take hundreds.
type heardEntry struct {
	wire.Entry
	Attributes heardAttributes `json:"attributes"`
}

type heardAttributes map[string]string

func (a *heardAttributes) UnmarshalJSON(text []byte) error {
	const escaped = 6 // bytes that JSON may make of one
	if len(text) > (escaped+1)*mostAttribute {
		return errors.New("the guest tells of more attributes than a file can have")
	}
	var all map[string]string
	err := json.Unmarshal(text, &all)
	*a = all
	return err
}

func (l *entryList) UnmarshalJSON(text []byte) error {
	entries, err := bounded[heardEntry](text, wire.ListLimit)
	*l = entries
	return err
}

// ChangePath changes what set says of a file or folder, with all of everything in a folder too.
func (l *Link) ChangePath(ctx context.Context, path string, set filesystem.Set, all bool) (filesystem.Entry, error) {
	return l.onePath(ctx, wire.OpFilesChange, wire.FileSpec{Path: path, All: all, Set: setTo(set)})
}

// MovePath gives a file or folder another name, also from one file system to another.
func (l *Link) MovePath(ctx context.Context, c filesystem.Copy) (filesystem.Entry, error) {
	if err := filesystem.CheckPath(c.To); err != nil {
		return filesystem.Entry{}, err
	}
	return l.onePath(ctx, wire.OpFilesMove, wire.FileSpec{Path: c.From, To: c.To, Replace: c.Replace})
}

// CopyPath copies a file, or a folder with what is in it.
func (l *Link) CopyPath(ctx context.Context, c filesystem.Copy) (filesystem.Entry, error) {
	if err := filesystem.CheckPath(c.To); err != nil {
		return filesystem.Entry{}, err
	}
	return l.onePath(ctx, wire.OpFilesCopy, wire.FileSpec{Path: c.From, To: c.To, Replace: c.Replace})
}

// RemovePath removes a file, a link or an empty folder, with all a folder with what is in it.
func (l *Link) RemovePath(ctx context.Context, path string, all bool) error {
	_, err := l.askFiles(ctx, wire.OpFilesRemove, wire.FileSpec{Path: path, All: all}, nil)
	return err
}

// MakePath makes a folder and those on the way to it. Where it is there already it is left, or with fresh that is the problem file_exists.
func (l *Link) MakePath(ctx context.Context, path string, set filesystem.Set, fresh bool) (filesystem.Entry, error) {
	return l.onePath(ctx, wire.OpFilesFolder, wire.FileSpec{Path: path, New: fresh, Set: setTo(set)})
}

// LinkPath makes a symbolic link that leads to target, which need not be there.
func (l *Link) LinkPath(ctx context.Context, path, target string, replace bool) (filesystem.Entry, error) {
	return l.onePath(ctx, wire.OpFilesLink, wire.FileSpec{Path: path, To: target, Replace: replace})
}

// SearchFiles looks for names and text.
func (l *Link) SearchFiles(ctx context.Context, s filesystem.Search) (filesystem.Found, error) {
	var said struct {
		wire.Found
		Matches matchList `json:"matches"`
	}
	spec := wire.FileSpec{Path: s.Path, Name: s.Name, Text: s.Text, Regular: s.Regular, Fold: s.Fold, Limit: s.Limit}
	if _, err := l.askFiles(ctx, wire.OpFilesSearch, spec, &said); err != nil {
		return filesystem.Found{}, err
	}
	out := filesystem.Found{More: said.More, Looked: max(said.Looked, 0), Skipped: max(said.Skipped, 0), Matches: make([]filesystem.Match, 0, len(said.Matches))}
	for _, m := range said.Matches {
		out.Matches = append(out.Matches, filesystem.Match{Path: cut(m.Path, longestPlace), Folder: m.Folder, Line: max(m.Line, 0), Column: max(m.Column, 0), Text: cut(m.Text, 2*wire.MatchText)})
	}
	return out, nil
}

type matchList []wire.Match

func (l *matchList) UnmarshalJSON(text []byte) error {
	matches, err := bounded[wire.Match](text, wire.MatchLimit)
	*l = matches
	return err
}

// ReplaceText replaces text in files, each whole or not at all. There is an answer for each path, in their order.
func (l *Link) ReplaceText(ctx context.Context, r filesystem.Replace) ([]filesystem.Replaced, error) {
	var said replacedList
	spec := wire.FileSpec{Paths: r.Paths, Text: r.Text, Regular: r.Regular, Fold: r.Fold, With: r.With}
	if _, err := l.askFiles(ctx, wire.OpFilesReplace, spec, &said); err != nil {
		return nil, err
	}
	if len(said) != len(r.Paths) {
		return nil, problem.New(problem.GuestFault, "the guest does not say what it has done to each file")
	}
	out := make([]filesystem.Replaced, len(said))
	for i, s := range said {
		out[i] = filesystem.Replaced{Path: r.Paths[i], Times: max(s.Times, 0)}
		if s.Fault != "" {
			out[i].Err = problem.Of(asProblem(wire.Response{Code: s.Fault, Message: wire.Printable(s.Why, longestMessage)}))
		}
	}
	return out, nil
}

type replacedList []wire.Replaced

func (l *replacedList) UnmarshalJSON(text []byte) error {
	all, err := bounded[wire.Replaced](text, wire.PathsLimit)
	*l = all
	return err
}

// OpenPath opens a file for reading limit bytes (0: all) from offset on. ctx bounds the reading too.
func (l *Link) OpenPath(ctx context.Context, path string, offset, limit int64) (Reading, error) {
	spec := wire.FileSpec{Path: path, Root: IsRoot(ctx)}
	if err := l.mayAsk(spec); err != nil {
		return nil, err
	}
	c, err := l.content(ctx, wire.Request{Op: wire.OpFilesRead, Files: &spec, Offset: offset, Limit: limit})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// WritePath puts r's bytes in the place of a file, whole or not at all, and makes the folders that lead to it. With fresh nothing may be there.
func (l *Link) WritePath(ctx context.Context, path string, r io.Reader, set filesystem.Set, fresh bool) (filesystem.Entry, error) {
	spec := wire.FileSpec{Path: path, New: fresh, Set: setTo(set), Root: IsRoot(ctx)}
	if err := l.mayAsk(spec); err != nil {
		return filesystem.Entry{}, err
	}
	_, body, err := l.send(ctx, wire.Request{Op: wire.OpFilesWrite, Files: &spec}, r)
	if err != nil {
		return filesystem.Entry{}, err
	}
	var said heardEntry
	if err := json.Unmarshal(body, &said); err != nil {
		return filesystem.Entry{}, problem.New(problem.GuestFault, "the guest does not say what it has written").WithCause(err)
	}
	return fileEntryOf(said), nil
}

// Watch is the watching of files that has begun.
type Watch struct{ o *lasting }

// WatchFiles begins to watch a file, or a folder and with all those below it: what happens from the moment on in which it returns is told of. ctx bounds the call alone.
func (l *Link) WatchFiles(ctx context.Context, path string, all bool) (*Watch, error) {
	spec := wire.FileSpec{Path: path, All: all}
	if err := l.mayAsk(spec); err != nil {
		return nil, err
	}
	o, err := l.openLasting(ctx, wire.Request{Op: wire.OpFilesWatch, Files: &spec}, nil)
	if err != nil {
		return nil, err
	}
	return &Watch{o}, nil
}

// Close ends the watching.
func (w *Watch) Close() error {
	w.o.end()
	return nil
}

var eventKinds = map[string]filesystem.EventKind{
	wire.FileEventCreate: filesystem.Created, wire.FileEventWrite: filesystem.Written, wire.FileEventChange: filesystem.Altered, wire.FileEventMove: filesystem.Moved,
	wire.FileEventRemove: filesystem.Removed, wire.FileEventLost: filesystem.Lost, wire.FileEventEnd: filesystem.Ended,
}

// Events yields the changes, as they come, until Close, the end of the link, or one of kind Ended.
func (w *Watch) Events() iter.Seq2[filesystem.Event, error] {
	return func(yield func(filesystem.Event, error) bool) {
		for {
			var said wire.FileEvent
			if _, err := wire.ReadMessage(w.o.Channel, longestPlace*8, &said); err != nil {
				yield(filesystem.Event{}, fmt.Errorf("watch files: %w", err))
				return
			}
			kind, ok := eventKinds[said.Kind]
			if !ok {
				continue // of a newer guest
			}
			e := filesystem.Event{Kind: kind, Path: cut(said.Path, longestPlace), From: cut(said.From, longestPlace), Folder: said.Folder}
			if !yield(e, nil) || kind == filesystem.Ended {
				return
			}
		}
	}
}

func setTo(s filesystem.Set) *wire.EntrySet {
	out := &wire.EntrySet{Mode: s.Mode, Owner: s.Owner, Group: s.Group, Attributes: s.Attributes}
	if s.Modified != nil {
		micros := s.Modified.UnixMicro()
		out.Modified = &micros
	}
	return out
}

// fileEntryOf takes what a guest says of an entry, bounded.
func fileEntryOf(n heardEntry) filesystem.Entry {
	out := filesystem.Entry{
		Path: cut(n.Path, longestPlace), Full: cut(path.Clean("/"+n.Full), longestPlace), Kind: kindOf(n.Kind), Size: max(n.Size, 0), Mode: n.Mode & mostMode, UID: max(n.UID, 0), GID: max(n.GID, 0),
		Owner: cut(n.Owner, longestOwner), Group: cut(n.Group, longestOwner), Modified: micros(n.Modified), Accessed: micros(n.Accessed), Changed: micros(n.Changed),
		Stamp: cut(n.Stamp, longestOwner), Target: cut(n.Target, longestPlace), Resolved: cut(n.Resolved, longestPlace),
	}
	if n.To != "" {
		out.To = kindOf(n.To)
	}
	left := mostAttribute
	for name, value := range n.Attributes {
		if left -= len(name) + len(value); left < 0 {
			break
		}
		if out.Attributes == nil {
			out.Attributes = map[string]string{}
		}
		out.Attributes[name] = value
	}
	return out
}

// micros is a time in microseconds since 1970, which code can set to any.
func micros(at int64) time.Time { return time.UnixMicro(at).UTC() }

func kindOf(said string) filesystem.Kind {
	switch said {
	case wire.EntryFile:
		return filesystem.File
	case wire.EntryFolder:
		return filesystem.Folder
	case wire.EntryLink:
		return filesystem.Link
	}
	return filesystem.Other
}

func cut(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "\uFFFD")
}

// bounded decodes a JSON array of at most so many elements: decoded, two bytes of JSON can take hundreds.
func bounded[T any](text []byte, most int) (all []T, err error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	first, err := d.Token()
	if err != nil || first != json.Delim('[') {
		return nil, cmp.Or(err, errors.New("the guest's list is none"))
	}
	for d.More() {
		if len(all) == most {
			return nil, fmt.Errorf("the guest lists more than %d", most)
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}
