// Package rootfs is what engines make the root file systems of sandboxes of: a tree of places where something is mounted and a few small files, and what of the host is shown there.
package rootfs

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Entry is one path of a root file system.
type Entry struct {
	Kind    string // "dir", "file", "link"
	Text    string // of a file; of a link, where it leads
	Program bool   `json:",omitempty"` // a file that can be run
	Open    bool   `json:",omitempty"` // a folder in which everybody may make entries, as in /tmp
}

// Tree is a root file system, by absolute paths.
type Tree map[string]Entry

// Dir adds a folder. It takes the place of an alias.
func (t Tree) Dir(path string) {
	for _, alias := range aliases {
		if t[alias].Kind == "link" && (path == alias || strings.HasPrefix(path, alias+"/")) {
			delete(t, alias)
		}
	}
	t[path] = Entry{Kind: "dir"}
}

// aliases are where programs look for a folder to work in: OpenAI's, agents' that come with one of their own, Daytona's.
var aliases = []string{"/mnt/data", "/workspace", "/home/daytona"}

// Aliases has the aliases of a workspace lead to it.
func (t Tree) Aliases(workspace string) {
	for _, alias := range aliases {
		t.Link(workspace, alias)
	}
}

// Open lets everybody make entries in a folder. On the host that holds for who knows its name, too.
func (t Tree) Open(path string) { t[path] = Entry{Kind: "dir", Open: true} }

// Link adds a symbolic link at path.
func (t Tree) Link(target, path string) { t[path] = Entry{Kind: "link", Text: target} }

// File adds a file.
func (t Tree) File(path, text string) { t[path] = Entry{Kind: "file", Text: text} }

// Build makes the entries below root, open to the sandboxed user whatever the host's umask.
func (t Tree) Build(root string) error {
	if err := os.Chmod(root, 0o755); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(t)) {
		full := filepath.Join(root, path)
		if err := makeFolders(root, filepath.Dir(path)); err != nil {
			return err
		}
		var err error
		switch e := t[path]; e.Kind {
		case "dir":
			if err = makeFolders(root, path); err == nil && e.Open {
				err = os.Chmod(full, 0o777|fs.ModeSticky)
			}
		case "link":
			err = os.Symlink(e.Text, full)
		default:
			mode := fs.FileMode(0o644)
			if e.Program {
				mode = 0o755
			}
			if err = os.WriteFile(full, []byte(e.Text), 0o600); err == nil {
				err = os.Chmod(full, mode)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makeFolders makes path and what is above it, below root.
func makeFolders(root, path string) error {
	if path == "/" {
		return nil
	}
	if err := makeFolders(root, filepath.Dir(path)); err != nil {
		return err
	}
	full := filepath.Join(root, path)
	if err := os.Mkdir(full, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return os.Chmod(full, 0o755)
}
