// Package workspace has the type that describes a file of a session's workspace, for all packages that show it to people and programs.
package workspace

import "time"

// Entry is a file or folder.
type Entry struct {
	Path     string // relative to the workspace, slash-separated
	Size     int64  // bytes
	Stamp    string // changes whenever the content may have changed
	Link     bool   // a symlink that leads to no file of the workspace
	Folder   bool
	Modified time.Time // to the microsecond; zero where it was not read
}
