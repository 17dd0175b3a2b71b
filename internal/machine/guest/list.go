package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"cove/internal/machine/wire"
)

// Bounds of a listing. In seconds, code can make so many files, and folders so deep, that walking all of them takes minutes.
const (
	maxListedBytes = 4 << 20 // of paths; JSON makes up to six times as much of them
	deepest        = 100     // folders within each other that it looks into
	maxLooks       = 50_000  // entries that it looks at
	folderLooks    = 10      // what looking into a folder takes, in entries
	linkLooks      = 3       // what following a symlink takes
	batch          = 1024    // entries that are read at a time
)

// lister lists files in the order of their names.
type lister struct {
	g      *guest
	root   *os.Root
	device uint64 // of the workspace; 0: not looked at yet
	looks  int    // still to be had
	bytes  int    // of paths
	files  []wire.FileInfo
	links  []string // names of symlinks of the folder that was read last, which lead to no file of the workspace
	more   bool     // there is something that is not listed for its number or its place
}

func (g *guest) listFiles(ch *wire.Channel) error {
	return g.list(ch, func(l *lister) error {
		l.walk(".", 0)
		return nil
	})
}

// listFolder lists the files and folders of one folder. What is neither, as FIFOs, is left out. A symlink that leads to a file of the workspace counts as that file.
func (g *guest) listFolder(ch *wire.Channel, req wire.Request) error {
	dir, err := checkFolder(req.Path)
	if err != nil {
		return err
	}
	return g.list(ch, func(l *lister) error {
		asked := dir
		dir = g.followed(dir)
		if err := refuseSymlinks(l.root, dir); err != nil {
			return err
		}
		entries, err := l.entries(dir)
		for _, e := range entries {
			l.add(path.Join(asked, e.Name()), e)
		}
		slices.Sort(l.links)
		for _, name := range l.links {
			l.list(wire.FileInfo{Path: spell(path.Join(asked, name)), Link: true})
		}
		return err
	})
}

// list answers with what fill has listed.
func (g *guest) list(ch *wire.Channel, fill func(*lister) error) error {
	l := lister{g: g, looks: maxLooks, files: []wire.FileInfo{}}
	err := g.inWorkspace(func(root *os.Root) error {
		l.root = root
		return fill(&l)
	})
	if err != nil {
		return err
	}
	body, err := json.Marshal(l.files)
	if err != nil {
		return err
	}
	answer(ch, wire.Response{More: l.more}, body)
	return nil
}

// walk lists the files in a folder and below it. A folder that cannot be read has none.
func (l *lister) walk(dir string, depth int) {
	if depth > deepest || l.looks < folderLooks {
		l.more = true
		return
	}
	l.looks -= folderLooks
	entries, _ := l.entries(dir)
	for _, e := range entries {
		switch p := path.Join(dir, e.Name()); {
		case l.full():
			return
		case e.IsDir() && l.elsewhere(p): // a volume, which others change, too
		case e.IsDir():
			l.walk(p, depth+1)
		default:
			l.add(p, e)
		}
	}
}

// elsewhere says whether a folder is another file system's than the workspace.
func (l *lister) elsewhere(p string) bool {
	device := func(p string) uint64 {
		info, err := l.root.Lstat(p)
		if err != nil {
			return 0
		}
		st, _ := info.Sys().(*syscall.Stat_t)
		return uint64(st.Dev) //nolint:unconvert // as large as that on each system
	}
	if l.device == 0 {
		l.device = device(".")
	}
	d := device(p)
	return d != 0 && d != l.device
}

// entries returns the files and folders of a folder, by name.
func (l *lister) entries(dir string) (found []fs.DirEntry, err error) {
	f, err := l.root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	l.links = nil
	for l.looks > 0 && err == nil {
		var some []fs.DirEntry
		some, err = f.ReadDir(min(batch, l.looks))
		l.looks -= len(some)
		for _, e := range some {
			p := path.Join(dir, e.Name())
			speakable := l.g.speakable(path.Join(l.g.workspace, dir), e.Name())
			if e.Type()&fs.ModeSymlink != 0 {
				if e = l.linked(p, e); !e.Type().IsRegular() && speakable {
					l.links = append(l.links, e.Name())
				}
			}
			if (e.IsDir() || e.Type().IsRegular()) && speakable && len(p) <= longestPath && !l.sending(p) {
				found = append(found, e)
			}
		}
	}
	slices.SortFunc(found, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	l.more = l.more || err == nil // where it was left off; the next one may have been the end
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return found, err
}

// linked returns a symlink as the file that it leads to, if that is in the workspace. A folder is listed at its own place alone: links to folders can lead in circles.
func (l *lister) linked(p string, e fs.DirEntry) fs.DirEntry {
	l.looks -= linkLooks
	if to := l.g.followed(p); to != p {
		if fi, err := l.root.Lstat(to); err == nil && fi.Mode().IsRegular() {
			return link{e.Name(), fs.FileInfoToDirEntry(fi)}
		}
	}
	return e
}

// link is an entry with the name of a symlink to it.
type link struct {
	name string
	fs.DirEntry
}

func (l link) Name() string { return l.name }

// sending says whether the host was still sending the file when its folder was read. A file that has become whole since has another name now.
func (l *lister) sending(p string) bool {
	if !strings.HasPrefix(path.Base(p), partPrefix) {
		return false
	}
	if l.g.parts.has(path.Join(l.g.workspace, p)) {
		return true
	}
	_, err := l.root.Lstat(p)
	return err != nil
}

func (l *lister) full() bool {
	return l.more && (len(l.files) == wire.ListLimit || l.bytes > maxListedBytes)
}

// add lists a file or a folder, if it is still there.
func (l *lister) add(p string, e fs.DirEntry) {
	if fi, err := e.Info(); err == nil && (fi.IsDir() || fi.Mode().IsRegular()) {
		l.list(describe(p, fi))
	}
}

// list lists an entry, if there is room.
func (l *lister) list(info wire.FileInfo) {
	if l.bytes += len(info.Path); len(l.files) == wire.ListLimit || l.bytes > maxListedBytes {
		l.more = true
		return
	}
	l.files = append(l.files, info)
}

func describe(p string, fi fs.FileInfo) wire.FileInfo {
	d := wire.FileInfo{Path: spell(p), Stamp: stamp(fi), Folder: fi.IsDir(), Modified: fi.ModTime().UnixMicro()}
	if !d.Folder {
		d.Size = fi.Size()
	}
	return d
}

// stamp uses the change time, which code cannot set.
func stamp(fi fs.FileInfo) string {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d.%d.%d", st.Ino, st.Ctim.Nano(), st.Size)
	}
	return fmt.Sprintf("%d.%d", fi.ModTime().UnixNano(), fi.Size())
}
