package archive

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cove/internal/core/durable"
)

// partPrefix begins the names of files that are not whole yet.
const partPrefix = ".cove-partial-"

// folder is a Place on this machine.
type folder struct{ dir string }

func (f folder) Path(name string) string { return filepath.Join(f.dir, name) }

// explain makes problems of errors of the system, and leaves those of others.
func (f folder) explain(name string, err error) error {
	var at *fs.PathError
	var link *os.LinkError
	switch {
	case err == nil || !errors.As(err, &at) && !errors.As(err, &link):
		return err
	case errors.Is(err, fs.ErrExist):
		return taken(f, name)
	case name != "" && errors.Is(err, fs.ErrNotExist):
		return absent(f, name)
	}
	return unusable(f, err)
}

// Write implements Place.
func (f folder) Write(_ context.Context, name string, fill func(io.Writer) error) (int64, error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return 0, unusable(f, err)
	}
	if _, err := os.Lstat(f.Path(name)); err == nil {
		return 0, taken(f, name)
	}
	part := f.Path(partPrefix + name)
	out, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, unusable(f, err)
	}
	to := &counted{to: out}
	failed := fill(to)
	if failed == nil {
		failed = out.Sync()
	}
	failed = errors.Join(failed, out.Close())
	if failed == nil {
		failed = os.Rename(part, f.Path(name))
	}
	if failed == nil {
		failed = durable.SyncFolder(f.dir)
	}
	if failed != nil {
		_ = os.Remove(part)
		return 0, f.explain(name, failed)
	}
	return to.n, nil
}

// Read implements Place.
func (f folder) Read(_ context.Context, name string) (io.ReadCloser, error) {
	in, err := os.Open(f.Path(name))
	if err != nil {
		return nil, f.explain(name, err)
	}
	return in, nil
}

// List implements Place.
func (f folder) List(context.Context) ([]Entry, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unusable(f, err)
	}
	var out []Entry
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") || !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, unusable(f, err)
		}
		out = append(out, Entry{e.Name(), info.Size(), info.ModTime().UTC()})
	}
	return sorted(out), nil
}

// Remove implements Place.
func (f folder) Remove(_ context.Context, name string) error {
	if err := os.Remove(f.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unusable(f, err)
	}
	return nil
}

// Sweep implements Place.
func (f folder) Sweep(_ context.Context, mine func(string) bool) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unusable(f, err)
	}
	for _, e := range entries {
		name, part := strings.CutPrefix(e.Name(), partPrefix)
		if !part || !mine(name) {
			continue
		}
		if err := os.Remove(f.Path(e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unusable(f, err)
		}
	}
	return nil
}
