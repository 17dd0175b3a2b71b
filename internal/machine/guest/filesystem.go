package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"cove/internal/machine/wire"
)

// filesystem does an operation on the file system; see wire.OpFilesStat and what follows it.
func (g *guest) filesystem(ch *wire.Channel, req wire.Request) error {
	spec := req.Files
	if spec == nil {
		return fault{wire.FaultInvalid, "the operation is about nothing"}
	}
	switch req.Op {
	case wire.OpFilesRead:
		return g.readPlace(ch, *spec, req.Offset, req.Limit)
	case wire.OpFilesWrite:
		return g.writePlace(ch, *spec)
	}
	var said any
	resp := wire.Response{}
	as, err := g.rightsFor(*spec)
	if err != nil {
		return err
	}
	err = as(func() (err error) {
		if spec.Path == "" || !path.IsAbs(spec.Path) {
			if err := g.mendWorkspace(); err != nil {
				return err
			}
		}
		switch req.Op {
		case wire.OpFilesStat:
			said, err = g.statPlace(*spec)
		case wire.OpFilesList:
			said, resp, err = g.listPlace(*spec)
		case wire.OpFilesChange:
			said, err = g.changePlace(*spec)
		case wire.OpFilesMove:
			said, err = g.movePlace(*spec)
		case wire.OpFilesCopy:
			said, err = g.copyPlace(*spec)
		case wire.OpFilesRemove:
			err = g.removePlace(*spec)
		case wire.OpFilesFolder:
			said, err = g.makePlace(*spec)
		case wire.OpFilesLink:
			said, err = g.linkPlace(*spec)
		case wire.OpFilesSearch:
			said, err = g.search(*spec)
		case wire.OpFilesReplace:
			said, err = g.replaceIn(*spec)
		}
		return err
	})
	if err != nil {
		return err
	}
	var body []byte
	if said != nil {
		if body, err = json.Marshal(said); err != nil {
			return err
		}
	}
	answer(ch, resp, body)
	return nil
}

func (g *guest) statPlace(spec wire.FileSpec) (wire.Entry, error) {
	p, err := g.find(spec.Path, spec.Link)
	if err != nil {
		return wire.Entry{}, err
	}
	return p.entry(new(names), spec.Link)
}

// entry describes what is at a place, a symlink itself with link.
func (p place) entry(who *names, link bool) (wire.Entry, error) {
	look := os.Stat
	if link {
		look = os.Lstat
	}
	fi, err := look(p.full)
	if err != nil {
		return wire.Entry{}, err
	}
	return describeEntry(p.asked, p.full, fi, who), nil
}

// listPlace lists a folder in the order of a walk. Symlinks are listed and not followed, but that of the folder itself.
func (g *guest) listPlace(spec wire.FileSpec) ([]wire.Entry, wire.Response, error) {
	l := entryLister{g: g, listed: []wire.Entry{}, looks: maxLooks}
	p, err := g.find(spec.Path, false)
	if err != nil {
		return nil, wire.Response{}, err
	}
	fi, err := os.Stat(p.full)
	if err != nil {
		return nil, wire.Response{}, err
	}
	if !fi.IsDir() {
		return nil, wire.Response{}, fault{wire.FaultPath, fmt.Sprintf("%.300q is not a folder", spec.Path)}
	}
	if err := l.walk(spec.Path, p.full, max(spec.Depth, 1), true); err != nil {
		return nil, wire.Response{}, err
	}
	return l.listed, wire.Response{More: l.more, Size: l.unnamed}, nil
}

// entryLister lists what is in a folder and below it.
type entryLister struct {
	g       *guest
	who     names
	listed  []wire.Entry
	looks   int // still to be had
	bytes   int
	more    bool
	unnamed int64
}

func (l *entryLister) walk(asked, full string, depth int, top bool) error {
	if l.looks < folderLooks || strings.Count(full, "/") > deepestPath {
		l.more = true
		return nil
	}
	l.looks -= folderLooks
	entries, more, err := readFolder(full, l.looks)
	if err != nil && top {
		return err
	}
	l.looks -= len(entries)
	l.more = l.more || more
	for _, e := range entries {
		p := path.Join(full, e.Name())
		if !l.g.speakable(full, e.Name()) {
			l.unnamed++
			continue
		}
		fi, err := e.Info()
		if err != nil || l.g.parts.has(p) {
			continue
		}
		n := describeEntry(path.Join(asked, e.Name()), p, fi, &l.who)
		l.bytes += len(n.Path) + len(n.Full) + len(n.Target) + len(n.Resolved)
		for name, value := range n.Attributes {
			l.bytes += len(name) + len(value)
		}
		if len(l.listed) == wire.ListLimit || l.bytes > maxListedBytes {
			l.more = true
			return nil
		}
		l.listed = append(l.listed, n)
		if fi.IsDir() && depth > 1 {
			if err := l.walk(path.Join(asked, e.Name()), p, depth-1, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// readFolder returns at most limit entries of a folder, by name.
func readFolder(full string, limit int) (entries []fs.DirEntry, more bool, err error) {
	f, err := os.OpenFile(full, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = f.Close() }()
	for err == nil && len(entries) < limit {
		var some []fs.DirEntry
		some, err = f.ReadDir(min(batch, limit-len(entries)))
		entries = append(entries, some...)
	}
	sortEntries(entries)
	if errors.Is(err, io.EOF) {
		return entries, false, nil
	}
	return entries, err == nil, err
}

func (g *guest) changePlace(spec wire.FileSpec) (wire.Entry, error) {
	p, err := g.find(spec.Path, spec.Link)
	if err != nil {
		return wire.Entry{}, err
	}
	if spec.Set == nil {
		return wire.Entry{}, fault{wire.FaultInvalid, "nothing is to be changed"}
	}
	set, err := newSetter(*spec.Set)
	if err != nil {
		return wire.Entry{}, err
	}
	if !spec.All {
		err = set.apply(p.full, spec.Link)
	} else {
		looks := maxLooks
		err = filepath.WalkDir(p.full, func(full string, d fs.DirEntry, err error) error {
			if looks--; looks < 0 {
				return fault{wire.FaultInvalid, fmt.Sprintf("there are more than %d files and folders; the first of them are changed", maxLooks)}
			}
			if err != nil || d.Type()&fs.ModeSymlink != 0 {
				return err
			}
			return set.apply(full, false)
		})
	}
	if err != nil {
		return wire.Entry{}, err
	}
	return p.entry(new(names), spec.Link)
}

func (g *guest) movePlace(spec wire.FileSpec) (wire.Entry, error) {
	from, to, err := g.fromTo(spec)
	if err != nil {
		return wire.Entry{}, err
	}
	err = rename(from.full, to.full, spec.Replace)
	if errors.Is(err, syscall.EXDEV) { // from one file system to another
		if err = g.copyTo(from, to, spec.Replace); err == nil {
			err = removePath(from.full, true)
		}
	}
	if err != nil {
		return wire.Entry{}, err
	}
	return to.entry(new(names), true)
}

func (g *guest) copyPlace(spec wire.FileSpec) (wire.Entry, error) {
	from, to, err := g.fromTo(spec)
	if err == nil {
		err = g.copyTo(from, to, spec.Replace)
	}
	if err != nil {
		return wire.Entry{}, err
	}
	return to.entry(new(names), true)
}

// fromTo finds both places of a move or a copy, and makes the folders that lead to the second.
func (g *guest) fromTo(spec wire.FileSpec) (from, to place, err error) {
	if from, err = g.find(spec.Path, true); err != nil {
		return from, to, err
	}
	fi, err := os.Lstat(from.full)
	if err != nil {
		return from, to, err
	}
	if to, err = g.find(spec.To, true); err != nil {
		return from, to, err
	}
	if from.full == to.full || strings.HasPrefix(to.full, from.full+"/") {
		return from, to, fault{wire.FaultPath, fmt.Sprintf("%.300q cannot get into itself", spec.Path)}
	}
	there, err := os.Lstat(to.full)
	if err == nil && (!spec.Replace || there.IsDir() || fi.IsDir()) {
		return from, to, fault{wire.FaultExists, fmt.Sprintf("there is something at %.300q already", spec.To)}
	}
	return from, to, to.makeWay()
}

func (g *guest) removePlace(spec wire.FileSpec) error {
	p, err := g.find(spec.Path, true)
	if err != nil {
		return err
	}
	if top, err := filepath.EvalSymlinks(g.workspace); p.full == "/" || p.full == g.workspace || err == nil && p.full == top {
		return fault{wire.FaultPath, "the workspace itself cannot be removed"}
	}
	return removePath(p.full, spec.All)
}

// removePath removes a file, a symlink or an empty folder, with all a folder with what is in it.
func removePath(full string, all bool) error {
	root, err := os.OpenRoot(path.Dir(full))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	fi, err := root.Lstat(path.Base(full))
	switch {
	case err != nil:
		return err
	case all && fi.IsDir():
		return removeAll(root, path.Base(full))
	}
	return root.Remove(path.Base(full))
}

func (g *guest) makePlace(spec wire.FileSpec) (wire.Entry, error) {
	p, err := g.find(spec.Path, false)
	if err != nil {
		return wire.Entry{}, err
	}
	if fi, err := os.Lstat(p.full); err == nil && (spec.New || !fi.IsDir()) {
		return wire.Entry{}, fault{wire.FaultExists, fmt.Sprintf("there is something at %.300q already", spec.Path)}
	}
	if err := p.makeWay(); err != nil {
		return wire.Entry{}, err
	}
	if err := os.Mkdir(p.full, 0o755); err != nil && (spec.New || !errors.Is(err, fs.ErrExist)) {
		return wire.Entry{}, err
	}
	if spec.Set != nil {
		set, err := newSetter(*spec.Set)
		if err == nil {
			err = set.apply(p.full, false)
		}
		if err != nil {
			return wire.Entry{}, err
		}
	}
	return p.entry(new(names), false)
}

func (g *guest) linkPlace(spec wire.FileSpec) (wire.Entry, error) {
	if len(spec.To) == 0 || len(spec.To) > longestPath || strings.ContainsRune(spec.To, 0) {
		return wire.Entry{}, fault{wire.FaultPath, "a symlink leads to a path"}
	}
	p, err := g.find(spec.Path, true)
	if err != nil {
		return wire.Entry{}, err
	}
	if err := p.makeWay(); err != nil {
		return wire.Entry{}, err
	}
	if spec.Replace {
		if fi, err := os.Lstat(p.full); err == nil && !fi.IsDir() {
			if err := os.Remove(p.full); err != nil {
				return wire.Entry{}, err
			}
		}
	}
	if err := os.Symlink(spec.To, p.full); err != nil {
		return wire.Entry{}, err
	}
	return p.entry(new(names), true)
}
