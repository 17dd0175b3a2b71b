// Package workspace says what is in a session's workspace, in the words of those who serve it to people and programs.
package workspace

import "time"

// Entry is a file or folder.
type Entry struct {
	Path     string // relative to the workspace, slash-separated
	Size     int64  // bytes
	Stamp    string // changes whenever the content may have changed
	Folder   bool
	Modified time.Time // to the microsecond; zero where nobody looked
}
