// Package libdata brings data that Python's libraries download when they are used, such as NLTK's corpora, spaCy's models and seaborn's example tables, to sandboxes,
// which have no network. The host fetches an item once, from the place that the operator names; all sandboxes see it read-only, where the library looks for it.
package libdata

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
	"cove/internal/python/pyenv"
)

// Folder is where the data folder of cove has the store.
const Folder = "libdata"

// Limits of one item.
const (
	mostFiles   = 200_000
	longestName = 200
)

// Item names data of a library, as in "nltk:punkt_tab".
type Item struct {
	Library string
	Name    string
	Version string // after ==, of libraries that have versions
}

var itemForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z]+):([A-Za-z0-9_][A-Za-z0-9._/-]*)(?:==([A-Za-z0-9._-]+))?$`)
})

// ParseItem reads LIBRARY:NAME, with ==VERSION after it where the library has versions.
func ParseItem(text string) (Item, error) {
	m := itemForm().FindStringSubmatch(text)
	switch {
	case len(text) > longestName || m == nil || slices.ContainsFunc(strings.Split(m[2], "/"), func(part string) bool { return strings.Trim(part, ".") == "" }):
		return Item{}, problem.New(problem.DataInvalid, fmt.Sprintf("%.60q does not name data of a library", text)).
			WithHint("write LIBRARY:NAME, as in nltk:punkt_tab; the libraries are " + strings.Join(Libraries(), ", "))
	case libraries[m[1]] == nil:
		return Item{}, problem.New(problem.DataInvalid, "no data of "+m[1]+" is known").WithHint("the libraries are " + strings.Join(Libraries(), ", ") + "; files:NAME with --from FOLDER takes any folder")
	}
	return Item{m[1], m[2], m[3]}, nil
}

// String returns the item as ParseItem reads it.
func (i Item) String() string {
	text := i.Library + ":" + i.Name
	if i.Version != "" {
		text += "==" + i.Version
	}
	return text
}

// Record says what was fetched for an item.
type Record struct {
	Item  string    `json:"item"`
	Place string    `json:"place"` // an address or a folder
	Added time.Time `json:"added"`
	Size  int64     `json:"size"`  // bytes
	Files []File    `json:"files"` // by path
}

// File is one that an item has brought. Path is relative to the mount.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // in hexadecimal, of what was fetched
}

// Store holds the data of one machine's sandboxes.
type Store struct{ dir string }

// Open returns the store in a folder, which it makes.
func Open(dir string) (*Store, error) {
	s := &Store{dir}
	folders := []string{s.records(), s.root()}
	for _, sub := range pyenv.DataFolders() {
		folders = append(folders, filepath.Join(s.root(), sub)) // libraries try to make a folder that is not there
	}
	for _, folder := range folders {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, problem.New(problem.DataFolderUnusable, "cannot make the folder for data of libraries "+folder).WithCause(err)
		}
	}
	return s, nil
}

func (s *Store) root() string    { return filepath.Join(s.dir, "root") }
func (s *Store) records() string { return filepath.Join(s.dir, "records") }

// Root is the host's folder that sandboxes see at pyenv.DataMountPoint.
func (s *Store) Root() string { return s.root() }

// List returns what is there, by name.
func (s *Store) List() ([]Record, error) {
	entries, err := os.ReadDir(s.records())
	if err != nil {
		return nil, fmt.Errorf("list the data of libraries: %w", err)
	}
	out := []Record{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(s.records(), e.Name()))
		if err != nil {
			return nil, fmt.Errorf("list the data of libraries: %w", err)
		}
		var r Record
		if json.Unmarshal(text, &r) == nil {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Record) int { return strings.Compare(a.Item, b.Item) })
	return out, nil
}

func (s *Store) recordFile(i Item) string {
	return filepath.Join(s.records(), strings.NewReplacer("/", "--", ":", "--").Replace(i.Library+":"+i.Name)+".json")
}

// Remove takes an item away. Sandboxes that use it lose it at once.
func (s *Store) Remove(i Item) (Record, error) {
	text, err := os.ReadFile(s.recordFile(i))
	if errors.Is(err, os.ErrNotExist) {
		return Record{}, problem.New(problem.DataUnknown, "there is no "+i.String()).WithHint("cove data ls lists what is there")
	}
	var r Record
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return Record{}, fmt.Errorf("remove %s: %w", i, err)
	}
	kept, err := s.List()
	if err != nil {
		return Record{}, err
	}
	shared := map[string]bool{}
	for _, other := range kept {
		if other.Item != r.Item {
			for _, f := range other.Files {
				shared[f.Path] = true
			}
		}
	}
	if err := os.Remove(s.recordFile(i)); err != nil {
		return Record{}, fmt.Errorf("remove %s: %w", i, err)
	}
	for _, f := range r.Files {
		if !shared[f.Path] && filepath.IsLocal(f.Path) {
			_ = os.Remove(filepath.Join(s.root(), f.Path))
			s.prune(filepath.Dir(f.Path))
		}
	}
	return r, nil
}

// prune removes folders that are empty, but for those that libraries expect.
func (s *Store) prune(path string) {
	for strings.Contains(path, "/") && os.Remove(filepath.Join(s.root(), path)) == nil {
		path = filepath.Dir(path)
	}
}

// publish moves what lies in a folder of the store's own to its place, and writes the record.
func (s *Store) publish(work string, i Item, place string, files []File) (Record, error) {
	r := Record{Item: i.String(), Place: place, Added: time.Now().UTC().Truncate(time.Second), Files: files}
	for _, f := range files {
		r.Size += f.Size
		target := filepath.Join(s.root(), f.Path)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return Record{}, fmt.Errorf("put %s into place: %w", i, err)
		}
		if err := os.Rename(filepath.Join(work, f.Path), target); err != nil {
			return Record{}, fmt.Errorf("put %s into place: %w", i, err)
		}
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return Record{}, fmt.Errorf("record %s: %w", i, err)
	}
	return r, durable.Replace(s.recordFile(i), 0o644, strings.NewReader(string(text)))
}
