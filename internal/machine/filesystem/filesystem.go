// Package filesystem has what is said of the file system of a session's machine: its entries, what may be changed of them, searches, and what happens to them. A relative
// path begins at the workspace and stays in it, whatever symlinks lead out of it; an absolute path is anywhere in the sandbox, with the rights that code has.
package filesystem

import (
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"cove/internal/core/problem"
)

// Kind is the kind of an Entry.
type Kind string

// The kinds of entries.
const (
	File   Kind = "file"
	Folder Kind = "folder"
	Link   Kind = "link" // a symbolic link
	Other  Kind = "other"
)

// Entry is an entry of the file system.
type Entry struct {
	Path         string // as it was asked for
	Full         string // absolute
	Kind         Kind
	Size         int64  // bytes
	Mode         uint32 // permission bits, with set-user-id and its like
	UID, GID     int
	Owner, Group string // "" where the sandbox has no name for it
	Modified     time.Time
	Accessed     time.Time
	Changed      time.Time
	Stamp        string // changes whenever the content may have changed
	Target       string // of a link, as it says
	Resolved     string // where that leads in the end, absolute; "" where nothing is
	To           Kind   // of what is there
	Attributes   map[string]string
}

// Symbolic is a mode as ls writes it.
func (n Entry) Symbolic() string {
	out := []byte("?rwxrwxrwx")
	if sign, ok := map[Kind]byte{File: '-', Folder: 'd', Link: 'l'}[n.Kind]; ok {
		out[0] = sign
	}
	for i := range 9 {
		if n.Mode&(1<<(8-i)) == 0 {
			out[1+i] = '-'
		}
	}
	for i, bit := range []uint32{0o4000, 0o2000, 0o1000} {
		if n.Mode&bit != 0 {
			at, set := 3+3*i, []byte("sst")[i]
			if out[at] == '-' {
				set -= 'a' - 'A'
			}
			out[at] = set
		}
	}
	return string(out)
}

// Set is what to change of an entry. What is nil or "" stays.
type Set struct {
	Mode         *uint32
	Owner, Group string // names or numbers
	Modified     *time.Time
	Attributes   map[string]*string // nil removes one
}

// Copy says what to copy or to move.
type Copy struct {
	From, To string
	Replace  bool // a file that is at To may be replaced; a folder never is
}

// Search says what to look for, in a file, or in a folder and below it.
type Search struct {
	Path    string
	Name    string // a pattern of names, or where it has a slash of paths: *, ?, [abc], and ** over folders
	Text    string // "": names alone
	Regular bool   // Text is a regular expression of Go's package regexp
	Fold    bool   // without regard to case
	Limit   int    // matches; 0: as many as there may be
}

// Found is what a search has found.
type Found struct {
	Matches []Match
	More    bool // there may be more: it ended at a bound of number, size or time
	Looked  int  // files that it looked into
	Skipped int  // files and folders that could not be read, are no text, or are too large
}

// Match is a place that a search has found. Line and Column, in characters, begin at 1; they are 0 where names alone were looked for.
type Match struct {
	Path   string
	Folder bool
	Line   int
	Column int
	Text   string
}

// Replace says what to replace, and in which files.
type Replace struct {
	Paths   []string
	Text    string
	Regular bool // With has $1 for the first group
	Fold    bool
	With    string
}

// Replaced is what was done to one of them.
type Replaced struct {
	Path  string
	Times int
	Err   *problem.Error // nil: none
}

// EventKind says what happened.
type EventKind string

// The kinds of events.
const (
	Created EventKind = "create"
	Written EventKind = "write"
	Altered EventKind = "change" // mode, owner, times or attributes
	Moved   EventKind = "move"   // within what is watched
	Removed EventKind = "remove"
	Lost    EventKind = "lost" // something that is not told of: list the folder again
	Ended   EventKind = "end"  // what was watched is gone
)

// Event is a change.
type Event struct {
	Kind   EventKind
	Path   string // from the folder that is watched, or the name of the file; "" is the folder itself
	From   string // of a move
	Folder bool
}

// Bounds of what is asked for.
const (
	longestPath = 4096
	longestText = 4 << 10
	longestWith = 64 << 10
	mostPaths   = 1000
	// DeepestList is the largest depth of a listing.
	DeepestList = 100
)

// CheckPath returns what is wrong with a path.
func CheckPath(p string) error {
	switch {
	case len(p) > longestPath || strings.ContainsRune(p, 0) || !utf8.ValidString(p):
		return problem.New(problem.InvalidPath, fmt.Sprintf("%.300q is no path", p))
	case !path.IsAbs(p) && Outside(p):
		return problem.New(problem.InvalidPath, fmt.Sprintf("%.300q is not a path inside the workspace", p)).WithHint("an absolute path is anywhere in the sandbox")
	}
	return nil
}

// Outside says whether a path is not one of the workspace by its form.
func Outside(p string) bool {
	clean := path.Clean(p)
	return path.IsAbs(p) || clean == ".." || strings.HasPrefix(clean, "../")
}

// Check returns what is wrong with a search.
func (s Search) Check() error {
	switch {
	case s.Name == "" && s.Text == "":
		return problem.New(problem.InvalidRequest, "a search is for a name or for text").WithHint("give name, as in *.py, or text")
	case len(s.Name) > longestText || len(s.Text) > longestText:
		return problem.New(problem.InvalidRequest, fmt.Sprintf("a search is for at most %d bytes", longestText))
	}
	return CheckPath(s.Path)
}

// Check returns what is wrong with a replacement.
func (r Replace) Check() error {
	switch {
	case len(r.Paths) == 0 || len(r.Paths) > mostPaths:
		return problem.New(problem.InvalidRequest, fmt.Sprintf("text is replaced in 1 to %d files", mostPaths))
	case r.Text == "" || len(r.Text) > longestText || len(r.With) > longestWith:
		return problem.New(problem.InvalidRequest, fmt.Sprintf("a text of 1 to %d bytes is replaced by one of at most %d", longestText, longestWith))
	}
	for _, p := range r.Paths {
		if err := CheckPath(p); err != nil {
			return err
		}
	}
	return nil
}
