package layer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	linkers       = 2
	mostConflicts = 50 // that are listed
)

// joint is a layer that is being put together of unpacked wheels.
type joint struct {
	tag       string
	wheels    []*contents
	roots     []string           // of the wheels' trees
	files     map[string]source  // by path
	folders   map[string]*folder // by path; "." is the layer itself
	order     []string           // of folders, those above first
	conflicts []string
	bytes     int64
	count     int
}

// source is a file of one of the wheels.
type source struct {
	wheel int
	entry *entry
}

// folder lists what is linked into one folder.
type folder struct {
	links []link
	into  string // below the layer
}

// link is one file, of the same name in the layer and in a wheel's tree.
type link struct {
	wheel int
	base  string
}

// join puts a layer together. Its caller holds the layer's lock, and no sweep takes the wheels away meanwhile.
func (m *making) join(ctx context.Context, wheels []*contents) (*Layer, error) {
	guard, err := m.store.guard(ctx)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	j := &joint{tag: m.tag, wheels: wheels, files: map[string]source{}, folders: map[string]*folder{".": {}}, order: []string{"."}}
	for i, w := range m.wheels {
		key := wheelKey(w, m.tag)
		files, err := m.store.files(key)
		if err != nil {
			return nil, err
		}
		j.roots = append(j.roots, filepath.Join(m.store.wheelPath(key), treeName))
		j.add(i, files)
	}
	j.arrange()
	work, err := m.store.newWorkspace()
	if err != nil {
		return nil, err
	}
	l := j.describe(m.name)
	tree, about := work.path(m.name), work.path("manifest")
	group, linking := errgroup.WithContext(ctx)
	group.Go(func() error { return writeManifest(about, manifest{Layer: *l, Tag: m.tag, Format: unpackedFormat}) }) // waits for the disk
	group.Go(func() error { return j.link(linking, tree) })
	if err = group.Wait(); err == nil {
		err = m.publish(tree, about)
	}
	if err = errors.Join(err, work.remove()); err != nil {
		return nil, err
	}
	return l, nil
}

// add adds a wheel's files, sorted by path, to those of the wheels before it.
func (j *joint) add(wheel int, files []entry) {
	for i := range files {
		f := &files[i]
		dir := path.Dir(f.path)
		if !j.enter(dir) || j.folders[f.path] != nil {
			j.conflict(f.path, wheel)
			continue
		}
		if other, taken := j.files[f.path]; taken {
			switch {
			case other.entry.sum == f.sum || f.stub:
				continue
			case !other.entry.stub:
				j.conflict(f.path, wheel)
				continue
			}
		}
		j.files[f.path] = source{wheel: wheel, entry: f}
	}
}

// enter makes sure that there is a folder, and says if there cannot be because a file has its name.
func (j *joint) enter(dir string) bool {
	if j.folders[dir] != nil {
		return true
	}
	if _, file := j.files[dir]; file || !j.enter(path.Dir(dir)) {
		return false
	}
	j.folders[dir] = &folder{into: dir}
	j.order = append(j.order, dir)
	return true
}

func (j *joint) conflict(name string, wheel int) {
	switch len(j.conflicts) {
	case mostConflicts:
		j.conflicts = append(j.conflicts, "...")
	case mostConflicts + 1:
	default:
		j.conflicts = append(j.conflicts, fmt.Sprintf("%s: that of %s was left out", name, j.wheels[wheel].Name))
	}
}

// arrange sorts the files, with their bytecode, into folders.
func (j *joint) arrange() {
	for name, s := range j.files {
		f := j.folders[path.Dir(name)]
		f.links = append(f.links, link{wheel: s.wheel, base: path.Base(name)})
		j.bytes += s.entry.size
		j.count++
		if s.entry.compiled == 0 {
			continue
		}
		where := bytecodePath(name, j.tag)
		if j.enter(path.Dir(where)) {
			f := j.folders[path.Dir(where)]
			f.links = append(f.links, link{wheel: s.wheel, base: path.Base(where)})
			j.bytes += s.entry.compiled
			j.count++
		}
	}
}

// link makes the layer's folders and files at tree.
func (j *joint) link(ctx context.Context, tree string) error {
	for _, dir := range j.order {
		if err := makeFolder(filepath.Join(tree, dir)); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for first := range linkers {
		group.Go(func() error {
			for i := first; i < len(j.order); i += linkers {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := j.fillFolder(tree, j.folders[j.order[i]]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// fillFolder links the files of one folder. Names are looked up relative to open folders, which saves the walk down to them.
func (j *joint) fillFolder(tree string, f *folder) error {
	if len(f.links) == 0 {
		return nil
	}
	slices.SortFunc(f.links, func(a, b link) int {
		if a.wheel != b.wheel {
			return a.wheel - b.wheel
		}
		return strings.Compare(a.base, b.base)
	})
	to, err := os.Open(filepath.Join(tree, f.into))
	if err != nil {
		return err
	}
	defer to.Close()
	for group := range chunks(f.links) {
		from, err := os.Open(filepath.Join(j.roots[group[0].wheel], f.into))
		if err != nil {
			return err
		}
		for _, l := range group {
			if err = share(from, to, l.base); err != nil {
				break
			}
		}
		if err := errors.Join(err, from.Close()); err != nil {
			return err
		}
	}
	return nil
}

// chunks yields the links to one wheel after those to another.
func chunks(links []link) func(yield func([]link) bool) {
	return func(yield func([]link) bool) {
		for len(links) > 0 {
			n := 1
			for n < len(links) && links[n].wheel == links[0].wheel {
				n++
			}
			if !yield(links[:n]) {
				return
			}
			links = links[n:]
		}
	}
}

// share gives a file of one folder the same name in another, or makes a copy where a file can have no more names.
func share(from, to *os.File, name string) error {
	err := unix.Linkat(int(from.Fd()), name, int(to.Fd()), name, 0)
	if err == nil || !errors.Is(err, unix.EMLINK) && !errors.Is(err, unix.EPERM) {
		return err
	}
	return replicate(filepath.Join(from.Name(), name), filepath.Join(to.Name(), name))
}

func replicate(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in)
	if err == nil {
		err = out.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// describe says what is in the layer.
func (j *joint) describe(name string) *Layer {
	l := &Layer{Name: name, Owners: map[string][]string{}, Modules: []string{}, Files: j.count, Unpacked: j.bytes, Conflicts: j.conflicts}
	for _, w := range j.wheels {
		l.Wheels = append(l.Wheels, w.Wheel)
		l.Stripped = append(l.Stripped, w.Stripped...)
		for _, root := range w.Roots {
			l.Owners[root] = append(l.Owners[root], w.Name)
		}
	}
	for root := range l.Owners {
		l.Modules = append(l.Modules, root)
	}
	slices.Sort(l.Modules)
	return l
}

func writeManifest(path string, m manifest) error {
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// publish gives a layer its name. The manifest comes first and means nothing without the folder, so that the layer is there from one moment on.
func (m *making) publish(tree, about string) error {
	if err := os.Rename(about, m.store.manifestPath(m.name)); err != nil {
		return err
	}
	final := m.store.layerPath(m.name)
	err := os.Rename(tree, final)
	if errors.Is(err, fs.ErrExist) { // one whose manifest was lost
		if err = os.Rename(final, about); err == nil {
			err = os.Rename(tree, final)
		}
	}
	return err
}
