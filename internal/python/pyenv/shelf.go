package pyenv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
)

const (
	manifestName = "environment.json"
	tmpPrefix    = ".tmp-"
	keptFor      = 30 * 24 * time.Hour // since an environment was last opened
)

// shelf is the folder that holds the environments, seen by someone who wants one of recipe.
type shelf struct {
	dir    string
	recipe recipe
}

// manifest is written into an environment as the last thing before it gets its name.
type manifest struct {
	Set      Set               `json:"set"`
	Recipe   string            `json:"recipe"`
	Python   stamp             `json:"python"`
	Base     string            `json:"base"`
	Version  string            `json:"version"`
	Packages map[string]string `json:"packages"`
}

const keyLength = 16 // hexadecimal digits

func (s shelf) keyOf(python stamp) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%d\n%d\n", s.recipe.digest, python.Path, python.Size, python.Modified)
	return string(s.recipe.set) + "-" + hex.EncodeToString(h.Sum(nil))[:keyLength]
}

// openKnown opens the environment that an earlier call made for the same request,
// without starting a Python. It returns nil when there is none.
func (s shelf) openKnown(explicit string) *Environment {
	if explicit == "" {
		key, err := os.ReadFile(s.chosenPath())
		if err != nil {
			return nil
		}
		return s.open(strings.TrimSpace(string(key)))
	}
	path, err := exec.LookPath(explicit)
	if err != nil {
		return nil
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil
	}
	python, err := stampOf(path)
	if err != nil {
		return nil
	}
	return s.open(s.keyOf(python))
}

// open returns the environment with that key, or nil when it is missing, was made
// by another recipe, or when the Python below it is not the one it was built on.
func (s shelf) open(key string) *Environment {
	if key == "" || filepath.Base(key) != key {
		return nil
	}
	dir := filepath.Join(s.dir, key)
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return nil
	}
	var m manifest
	if json.Unmarshal(text, &m) != nil || m.Recipe != s.recipe.digest || s.keyOf(m.Python) != key {
		return nil
	}
	if now, err := stampOf(m.Python.Path); err != nil || now != m.Python {
		return nil
	}
	e := s.environment(key, m)
	if _, err := os.Stat(e.Python); err != nil {
		return nil
	}
	s.touch(dir)
	return e
}

// take opens the environment with that key from the data folder ahead, to which the shelf gets a link; nil when it is not there, or does not fit. The caller holds the lock.
func (s shelf) take(ahead, key string) (*Environment, error) {
	there := shelf{dir: filepath.Join(ahead, filepath.Base(s.dir)), recipe: s.recipe}
	if there.open(key) == nil {
		return nil, nil
	}
	link := filepath.Join(s.dir, key)
	if err := discard(link); err != nil { // a link that leads nowhere, or what no longer is an environment
		return nil, fmt.Errorf("remove %s: %w", link, err)
	}
	if err := os.Symlink(filepath.Join(there.dir, key), link); err != nil {
		return nil, fmt.Errorf("use %s: %w", filepath.Join(there.dir, key), err)
	}
	return s.open(key), nil
}

// touch remembers, at most once a day, that the environment is in use.
func (s shelf) touch(dir string) {
	path := filepath.Join(dir, manifestName)
	if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // another user's folder may be read-only to us
	}
}

func (s shelf) chosenPath() string {
	return filepath.Join(s.dir, string(s.recipe.set)+".chosen")
}

// choose makes key the environment for those who name no Python.
func (s shelf) choose(key string) error {
	if text, err := os.ReadFile(s.chosenPath()); err == nil && string(text) == key+"\n" {
		return nil
	}
	tmp := filepath.Join(s.dir, tmpPrefix+"chosen")
	if err := os.WriteFile(tmp, []byte(key+"\n"), 0o644); err != nil {
		return fmt.Errorf("remember the environment: %w", err)
	}
	if err := os.Rename(tmp, s.chosenPath()); err != nil {
		return fmt.Errorf("remember the environment: %w", err)
	}
	return nil
}

// lock waits until this process alone may change the shelf.
func (s shelf) lock(ctx context.Context, progress io.Writer) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(s.dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, problem.New(problem.DataFolderUnusable, "cove cannot write to "+s.dir).
			WithHint("make it writable, or set COVE_HOME to a folder that is").WithCause(err)
	}
	for told := false; ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", s.dir, err)
		}
		if !told {
			fmt.Fprintln(progress, "Another cove is preparing the Python environment: waiting for it.")
			told = true
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, canceled(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// sweep removes what killed builds left and environments that nobody has opened for a long time nor needs.
// The caller holds the lock.
func (s shelf) sweep(needed []string) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("read %s: %w", s.dir, err)
	}
	for _, entry := range entries {
		path := filepath.Join(s.dir, entry.Name())
		stale := strings.HasPrefix(entry.Name(), tmpPrefix)
		if entry.IsDir() && !stale && !slices.Contains(needed, entry.Name()) {
			info, err := os.Stat(filepath.Join(path, manifestName))
			stale = err == nil && time.Since(info.ModTime()) > keptFor
		}
		if !stale {
			continue
		}
		if err := discard(path); err != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
	}
	return nil
}

// discard removes a directory in such an order that a removal cut short never looks whole.
func discard(dir string) error {
	if err := os.Remove(filepath.Join(dir, manifestName)); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
		return err
	}
	return os.RemoveAll(dir)
}
