package layer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
)

// useGrain is how exactly the time of the last use is known.
const useGrain = time.Hour

// Store is a folder of layers. It is safe for concurrent use, by several processes.
type Store struct {
	dir    string
	limits Limits
	secret []byte
	tags   sync.Map      // path of an interpreter to its tag
	slots  chan struct{} // for each compiler that runs
}

// manifest is what is kept about a layer.
type manifest struct {
	Layer
	Tag    string `json:"python"`           // with which, and their hashes, its wheels are found
	Format int    `json:"format,omitempty"` // see unpackedFormat
}

// Open returns the store in dir, which is made when missing.
func Open(dir string, limits Limits) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("locate the package store: %w", err)
	}
	s := &Store{dir: dir, limits: limits, slots: make(chan struct{}, compilers)}
	if err := s.prepare(); err != nil {
		return nil, problem.New(problem.DataFolderUnusable, "cove cannot keep packages in "+dir).
			WithHint("make it writable, or set COVE_HOME to a folder that is").WithCause(err)
	}
	return s, nil
}

func (s *Store) prepare() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	for name, mode := range map[string]fs.FileMode{"": 0o700, "layers": 0o711, "manifests": 0o700, "wheels": 0o700, "work": 0o700, "locks": 0o700} {
		path := filepath.Join(s.dir, name)
		if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.Mode().Perm() != mode { // the umask, or somebody's chmod
			if err := os.Chmod(path, mode); err != nil {
				return err
			}
		}
	}
	var err error
	s.secret, err = openSecret(s.dir)
	return err
}

// Folder is the folder of the layers on this host.
func (s *Store) Folder() string { return filepath.Join(s.dir, "layers") }

// Mount shows the layers in a sandbox.
func (s *Store) Mount() sandbox.Mount {
	return sandbox.Mount{Source: sandbox.SecretFolder(s.Folder()), Target: MountPoint}
}

func (s *Store) layerPath(name string) string { return filepath.Join(s.dir, "layers", name) }
func (s *Store) manifestPath(name string) string {
	return filepath.Join(s.dir, "manifests", name+".json")
}
func (s *Store) wheelPath(key string) string { return filepath.Join(s.dir, "wheels", key) }

// Find returns the layer of a closure if it exists, and notes that it was used.
func (s *Store) Find(c Closure) (*Layer, bool) {
	if checkClosure(c) != nil {
		return nil, false
	}
	tag, err := s.tagOf(context.Background(), c.Python)
	if err != nil {
		return nil, false
	}
	return s.use(s.nameOf(tag, c.Wheels))
}

// Get returns the layer of that name and notes that it was used, or a problem of kind NotFound with code "layer_missing".
func (s *Store) Get(name string) (*Layer, error) {
	if isName(name) {
		if l, ok := s.use(name); ok {
			return l, nil
		}
	}
	return nil, problem.New(problem.LayerMissing, "packages that were installed for this session do not exist any more").
		WithHint("run the code again in a new session, which installs what it imports")
}

// use returns a layer that exists, after noting its use where the last note is old.
func (s *Store) use(name string) (*Layer, bool) {
	m, used, err := s.read(name)
	if err != nil {
		return nil, false
	}
	if time.Since(used) < useGrain {
		return &m.Layer, true
	}
	guard, err := s.guard(context.Background())
	if err != nil {
		return nil, false
	}
	defer guard.Close()
	if _, _, err := s.read(name); err != nil { // a sweep was faster
		return nil, false
	}
	touch(s.manifestPath(name))
	return &m.Layer, true
}

// read returns what is known of a layer whose folder exists, and when it was last used.
func (s *Store) read(name string) (manifest, time.Time, error) {
	var m manifest
	info, err := os.Stat(s.manifestPath(name))
	if err != nil {
		return m, time.Time{}, err
	}
	if err := unix.Access(s.layerPath(name), unix.F_OK); err != nil {
		return m, time.Time{}, err
	}
	text, err := os.ReadFile(s.manifestPath(name))
	if err != nil {
		return m, time.Time{}, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, time.Time{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if m.Name != name {
		return m, time.Time{}, fmt.Errorf("%w: it is of another layer", errDamaged)
	}
	return m, info.ModTime(), nil
}

// errDamaged means that a manifest was read and says nothing.
var errDamaged = errors.New("the manifest is damaged")

// touch notes that something is in use now.
func touch(path string) {
	now := time.Now()
	_ = os.Chtimes(path, now, now) // it only goes a little earlier then
}

// Layers lists the layers, last used first, with the time of that.
func (s *Store) Layers() ([]Used, error) {
	names, err := s.list("manifests")
	if err != nil {
		return nil, err
	}
	var all []Used
	for _, file := range names {
		name, ok := strings.CutSuffix(file, ".json")
		if !ok || !isName(name) {
			continue
		}
		if m, used, err := s.read(name); err == nil {
			all = append(all, Used{Layer: m.Layer, Used: used})
		}
	}
	slices.SortStableFunc(all, func(a, b Used) int { return b.Used.Compare(a.Used) })
	return all, nil
}

// list returns the names in a folder of the store.
func (s *Store) list(folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, folder))
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}
